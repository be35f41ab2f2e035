"""The table of `benchmarks.whole_graphs`, from its record."""

from benchmarks.report_tables import Record, number, table


def whole_graphs(record: Record) -> str:
    """Epochs and batches per second, relative to PyG's GIN and its DataLoader."""
    rows = []
    for result in record["results"]:
        seconds, base = result["seconds"], result["seconds"]["PyG's GIN"]
        rows.append(
            [
                result["graphs"],
                f"{result['training_graphs']:,}",
                f"{result['mean_nodes']} ({result['largest']:,})",
                number(base),
                *(f"{base / seconds[name]:.2f}" for name in ("LGCN", "GIN")),
                f"{result['batch_speedup']:.1f}",
                number(result["training_graphs"] / result["batch_seconds"]["LGCN"]),
                f"{result['padded']:.0f}",
            ]
        )
    header = ["set", "training graphs", "nodes: mean (most)", "PyG's GIN, s per epoch"]
    header += ["LGCN, times as fast", "our GIN, times as fast", "batches, times as fast"]
    return table([*header, "graphs per second", "padded, times as large"], rows)
