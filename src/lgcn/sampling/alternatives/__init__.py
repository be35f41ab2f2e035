"""Other ways to cut mini-batches."""
