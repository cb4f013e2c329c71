"""Sweeps: the space that a user names, and the plan of what in it is worth measuring."""
