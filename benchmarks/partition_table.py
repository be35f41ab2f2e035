"""The tables of `benchmarks.partition`, from its record."""

from benchmarks.report_tables import Record, number, table


def partition(record: Record) -> str:
    """The large graph, then how much each method cuts of real ones."""
    graph = record["large"]
    rows = [
        [
            found["method"],
            number(found["seconds"]),
            number(found["processor_seconds"]),
            f"{found['peak_megabytes']:.0f}",
            f"{found['written_megabytes'] / 1e3:.1f}",
            f"{100 * found['cut_share']:.1f} %",
            f"{100 * found['halo_share']:.0f} %",
            f"{found['balance']:.2f}",
        ]
        for found in graph["cuts"]
    ]
    header = [
        f"{graph['edges']:,} edges, {graph['nodes']:,} nodes, {graph['cuts'][0]['parts']} parts"
    ]
    header += ["seconds", "processor seconds", "peak MB", "GB written", "edges cut"]
    header += ["halo, of the nodes", "largest part"]
    first = table(header, rows)
    rows = []
    methods = list(dict.fromkeys(found["method"] for found in record["real"][0]["cuts"]))
    for graph in record["real"]:
        for parts in dict.fromkeys(found["parts"] for found in graph["cuts"]):
            cuts = {one["method"]: one for one in graph["cuts"] if one["parts"] == parts}
            shares = [
                f"{100 * one['cut_share']:.1f} % ({100 * one['halo_share']:.0f} %)"
                for one in map(cuts.__getitem__, methods)
            ]
            trained = [
                "-" if cuts[m]["train_balance"] is None else f"{cuts[m]['train_balance']:.2f}"
                for m in methods
            ]
            rows.append([graph["dataset"], str(parts), *shares, " / ".join(trained)])
    header = ["graph", "parts", *(f"{method}: cut (halo)" for method in methods)]
    return f"{first}\n\n{table([*header, 'most training nodes, over the average'], rows)}"
