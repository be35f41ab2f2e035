"""The operators on the CPU, in Numba."""
