"""What operations cost, in counts that no clock changes, held to a committed baseline."""
