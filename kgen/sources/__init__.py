"""Source texts: rendering, reading back, comparing."""
