"""Sweeps on the workers of a Dask cluster, here or elsewhere."""
