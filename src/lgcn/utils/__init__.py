"""Tools that know nothing of graphs: files, memory, random numbers, checks."""
