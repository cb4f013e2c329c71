"""The database of measurements: nothing in it is overwritten, and a killed run keeps its rows."""
