"""The operators on NVIDIA GPUs, in Triton."""
