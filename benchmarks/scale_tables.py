"""Tables about scale: how hard generated graphs are, and what several workers cost."""

from collections.abc import Callable

from benchmarks.report_tables import Record, milliseconds, number, table


def generated_quality(record: Record) -> str:
    """Scores on each graph, and the best that label noise allows."""
    results = record["results"]
    rows = [["all classes known", *(result["source"]["accuracy_ceiling"] for result in results)]]
    names = list(dict.fromkeys(name for result in results for name in result["scores"]))
    for name in names:
        found = [result["scores"].get(name) for result in results]
        rows.append([name, *(s["test_score"] if isinstance(s, dict) else s for s in found)])
    cells = [[name, *("" if s is None else f"{100 * s:.1f}" for s in r)] for name, *r in rows]
    source = results[0]["source"]
    what = f"test accuracy (%), {source['num_nodes']:,} nodes, {results[0]['edges']:,} edges"
    return table([what, *(result["graph"] for result in results)], cells)


def cluster(record: Record) -> str:
    """Steps by the number of workers, inference, the model, and what it predicts."""
    return "\n\n".join(
        (_steps(record), _inference(record), _model(record), _halos(record), _prediction(record))
    )


def _steps(record: Record) -> str:
    sizes = list(
        dict.fromkeys(
            (one["max_nodes"], one["hidden_channels"]) for one in record["results"][0]["training"]
        )
    )
    most = max(result["workers"] for result in record["results"])
    rows = []
    for size in (sizes[0], sizes[-1]):
        for kind in ("strong", "weak"):
            for result in record["results"]:
                parts = most if kind == "strong" else result["workers"]
                one = next(
                    one
                    for one in result["training"]
                    if (one["max_nodes"], one["hidden_channels"]) == size and one["parts"] == parts
                )
                model = milliseconds(one["predicted"]["seconds"])
                expected = 2 * (result["workers"] - 1) * one["gradient_bytes"]
                rows.append(
                    [
                        f"{kind}, {size[0]:,} nodes, width {size[1]}",
                        f"{result['workers']}: {parts / result['workers']:g}",
                        number(1 / one["seconds"]),
                        milliseconds(one["cpu_seconds"]),
                        f"{milliseconds(one['seconds'])}, {milliseconds(one['fastest'])} ({model})",
                        f"{one['sent_bytes'] / 1e6:.2f} ({expected / 1e6:.2f})",
                    ]
                )
    header = ["scaling, sub-graph", "workers: sub-graphs each", "steps per second"]
    header += ["CPU ms per worker", "ms: median, fastest (model)", "MB on the wire (ring)"]
    return table(header, rows)


def _inference(record: Record) -> str:
    rows = []
    for result in record["results"]:
        one = result["inference"][-1]
        rows.append(
            [
                f"{result['workers']}",
                number(one["seconds"]),
                number(one["cpu_seconds"]),
                f"{one['sent_bytes'] / 1e6:.1f}",
            ]
        )
    nodes = record["graph"]["num_nodes"]
    header = [f"inference, {nodes:,} nodes, {record['halo']:,} in halos: workers", "seconds"]
    return table([*header, "CPU seconds per worker", "MB on the wire"], rows)


def _model(record: Record) -> str:
    found = record["model"]
    rows = [
        ["a, per million units of work", f"{1e9 * found['a']:.2f} ms"],
        ["b, per million nodes times width²", f"{1e9 * found['b']:.2f} ms"],
        ["c, per sub-graph", f"{1e3 * found['c']:.2f} ms"],
        ["latency", f"{1e6 * found['latency']:.0f} µs"],
        ["bandwidth", f"{found['bandwidth'] / 1e9:.2f} GB/s"],
    ]
    return table(["cost model, loopback", "fitted"], rows)


def _halos(record: Record) -> str:
    first = record["halos"][0]
    rows = [[one["method"], f"{one['halo_per_node']:.2f}"] for one in record["halos"]]
    title = f"{first['nodes']:,} nodes in {first['parts']} parts: method"
    return table([title, "nodes in halos, per node"], rows)


def _prediction(record: Record) -> str:
    rows = []
    for one in record["extrapolated"]:
        step, inference = one["step"], one["inference"]
        halos = [
            f"{number(inference[halo['method']]['seconds'] / 60)} ({halo['method']})"
            for halo in record["halos"]
        ]
        rows.append(
            [
                one["network"] + (f", {one['speed']} times as fast" if one["speed"] > 1 else ""),
                " + ".join(milliseconds(step[name]) for name in ("compute", "waiting", "sums")),
                f"{one['efficiency']:.0%}",
                f"{inference['compute'] / 60:.1f}",
                ", ".join(halos),
            ]
        )
    header = ["64 machines, one worker each", "step, ms: compute + waiting + sums", "efficiency"]
    header += ["10⁹ nodes: minutes of inference", "minutes of exchange"]
    return table(header, rows)


TABLES: dict[str, Callable[[Record], str]] = {
    "generated_quality": generated_quality,
    "cluster": cluster,
}
