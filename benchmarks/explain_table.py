def key(record):
    return record["dataset"], record["seed"], record["method"]
