"""Other people's `.cu` files: read by a parser, described in a file beside them, and judged."""
