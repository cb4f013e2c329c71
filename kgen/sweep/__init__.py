"""Sweeps: many combinations planned, compiled, verified, timed, and what they say."""
