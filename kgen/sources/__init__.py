"""Source texts: rendering, reading back, comparing, writing and exporting them."""
