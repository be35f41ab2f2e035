"""Tables that users have: edges and nodes in CSV, Parquet, NPZ, pandas or Arrow."""
