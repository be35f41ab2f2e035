"""The table of benchmarks/k_largest_sweep.py."""

from benchmarks.report_tables import Record, number, table


def k_largest_sweep(record: Record) -> str:
    """How many times as fast as the baseline for each shape; the worst ratio is bold."""
    ratios: dict[tuple[int, int], dict[str, float]] = {}
    for result in record["results"]:
        of_shape = ratios.setdefault((result["channels"], result["k"]), {})
        of_shape[result["degrees"]] = result["ratio"]
    kinds = list(dict.fromkeys(result["degrees"] for result in record["results"]))
    worst = record["worst"]["ratio"]

    def cell(ratio: float | None) -> str:
        if ratio is None:
            return "-"
        return f"**{number(ratio)}**" if ratio == worst else number(ratio)

    rows = (
        (str(channels), str(k), *(cell(of_shape.get(kind)) for kind in kinds))
        for (channels, k), of_shape in sorted(ratios.items())
    )
    return table(("C", "k", *(f"{kind} degrees" for kind in kinds)), rows)
