"""Tables of what training on own tables costs: an epoch beside a GCN, and fewer steps."""

import statistics

from benchmarks.report_tables import Record, milliseconds, number, table

DEFAULTS = "defaults"  # the candidate that others are compared with


def own_epoch(record: Record) -> str:
    rows = []
    for row in record["results"]:
        seconds = row["seconds"]
        graph = f"{row['dataset']}, {row['split']}, {row['labels']} labels"
        times = (milliseconds(seconds["lgcn"]), milliseconds(seconds[row["fastest"]]))
        ratios = (number(row["ratio"]), number(row["ratio_plainest"]))
        rows.append([graph, *times, row["fastest"].removeprefix("GCN, "), *ratios])
    header = ["ms per epoch", "LGCN", "GCN, fastest form", "which", "time / fastest"]
    return table([*header, "time / plainest"], rows)


def fewer_steps(record: Record) -> str:
    """One row per candidate and kind of labels: means over graphs and splits."""
    rows = []
    for labels in ("few", "many"):
        of_labels = [row for row in record["results"] if row["labels"] == labels]
        found = []
        for name in dict.fromkeys(row["candidate"] for row in of_labels):
            own = [row for row in of_labels if row["candidate"] == name]
            if name != DEFAULTS:
                found.append((statistics.mean(row["epochs_ratio"] for row in own), name, own))
        for epochs, name, own in sorted(found):
            gains = [row["gain"] for row in own]
            lost = max(-row["gain"] / row["error"] for row in own if row["error"])
            tests = [row["test_gain"] for row in own if row["test_gain"] is not None]
            test = f"{statistics.mean(tests):+.2f}" if len(tests) == len(own) else "-"
            points = (f"{statistics.mean(gains):+.2f}", f"{min(gains):+.2f}", f"{lost:.1f}")
            rows.append([name, labels, str(len(own)), f"{epochs:.2f}", *points, test])
    header = ["candidate", "labels", "graphs and splits", "epochs / defaults"]
    header += ["validation points: mean", "lowest", "lost at most, in standard errors"]
    return table([*header, "test points: mean"], rows)


TABLES = {"own_epoch": own_epoch, "fewer_steps": fewer_steps}
