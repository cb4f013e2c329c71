"""Times kernels and peers on a GPU, each in the same way, and judges the differences."""
