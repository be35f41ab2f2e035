"""Tables about scale: how hard generated graphs are, and what several workers cost."""

from collections.abc import Callable

from benchmarks.report_tables import Record, table


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


TABLES: dict[str, Callable[[Record], str]] = {"generated_quality": generated_quality}
