"""Algorithm 1, and mini-batches of the sub-graphs that it selects."""
