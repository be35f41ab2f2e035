"""Other ways to make mini-batches: clusters, sampled neighbours, random walks."""
