"""The version of kgen, which generated files and rows name."""

__version__ = "0.1.0"
