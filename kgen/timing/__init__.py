"""Times of kernels, and what may be said of them."""
