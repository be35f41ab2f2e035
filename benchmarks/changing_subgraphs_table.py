"""The table of steps on sub-graphs that change."""

from benchmarks.report_tables import Record, number, table


def changing_subgraphs(record: Record) -> str:
    """Steps per second of each variant, on sub-graphs at hand and with those that draw them."""
    rows = []
    for result in record["results"]:
        rates = result["steps_per_second"]
        for name, rate in rates.items():
            if name.endswith(", with loader"):
                continue
            model = name.removesuffix(", not captured")
            rows.append(
                [
                    f"{result['dataset']}, {name}",
                    number(rate),
                    number(rates[f"{name}, with loader"]),
                    number(rate / rates[name.replace(model, "GCN")]),
                    f"{result['nodes_per_step']:,.0f}",
                    f"{result['entries_per_step']:,.0f}",
                ]
            )
    header = ["steps per second", "step alone", "with loader", "/ GCN", "nodes", "entries"]
    return table(header, rows)
