"""Times of kernels: how they are taken, and what they say."""
