"""The shape of a matrix."""

# Rows and cols.
Shape = tuple[int, int]
