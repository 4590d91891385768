"""Programs on GPUs: the vendors' drivers, kernels and streams."""
