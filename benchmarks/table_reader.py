"""Two engines for reading tables, Arrow and DuckDB: time and memory on an edge list with strings.

python -m benchmarks.table_reader [--out FILE] [--repeats N] [--quick]

10 million edges with string ids in a CSV file. ``scan`` reads the file once and hands over all
cells in Arrow batches; ``import`` makes a graph of it: the store's import, and DuckDB with ids
numbered by two joins, both directions of each edge, duplicates merged and rows sorted. DuckDB has
the same number of threads, and a memory limit. Each measurement is its own process, begins with a
tiny file, and they take turns. Needs ``pip install duckdb``.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._common import add_quick, machine, make_parser, peak_megabytes, write
from benchmarks.tables import write_files

NODES, EDGES = 1_000_000, 10_000_000
MEMORY = "900MB"  # the limit that DuckDB gets; the store's import has its default
THREADS = 2


def scan_arrow(file: Path, folder: Path) -> int:
    import pyarrow.csv

    from lgcn.tables.open_table import open_table

    table = open_table(file, "edges")
    text = pyarrow.string()
    batches = table.batches(table.columns, dict.fromkeys(table.columns, text))
    return sum(len(batch) for batch in batches)


def scan_blocks(file: Path, folder: Path) -> int:
    import pyarrow as pa

    from lgcn.store.csv_blocks import CsvBlocks
    from lgcn.tables.open_table import open_table

    table: Any = open_table(file, "edges")
    text = dict.fromkeys(table.columns, pa.string())
    blocks = CsvBlocks(table, table.columns, text, 1 << 24, lambda *_: None)
    return sum(len(block.columns[0]) for block in blocks)


def scan_duckdb(file: Path, folder: Path) -> int:
    reader = _duckdb(folder).execute(f"FROM {_read(file)}").to_arrow_reader(1 << 17)
    return sum(len(batch) for batch in reader)


def import_store(file: Path, folder: Path) -> int:
    from lgcn.store.import_store import import_store

    counts = import_store(folder / f"{file.stem}.store", file, overwrite=True)
    return int(counts["entries"])


def import_duckdb(file: Path, folder: Path) -> int:
    """Rows (node, neighbour) sorted, in a Parquet file, and the ids in another."""
    engine = _duckdb(folder)
    engine.execute(f"CREATE TABLE edge AS SELECT source, target FROM {_read(file)}")
    engine.execute(
        "CREATE TABLE node AS SELECT id, (row_number() OVER () - 1)::INTEGER AS number FROM "
        "(SELECT source AS id FROM edge UNION SELECT target FROM edge)"
    )
    engine.execute(
        "CREATE TABLE numbered AS SELECT a.number AS source, b.number AS target FROM edge "
        "JOIN node a ON a.id = source JOIN node b ON b.id = target WHERE a.number <> b.number"
    )
    engine.execute("DROP TABLE edge")
    engine.execute(f"COPY node TO '{folder / 'ids.parquet'}'")
    rows = folder / "rows.parquet"
    engine.execute(
        "COPY (SELECT DISTINCT * FROM (SELECT source, target FROM numbered UNION ALL "
        f"SELECT target, source FROM numbered) ORDER BY source, target) TO '{rows}'"
    )
    found = engine.execute(f"SELECT count(*) FROM '{rows}'").fetchone()
    return int(found[0])


def _read(file: Path) -> str:
    return f"read_csv('{file}', header = true, all_varchar = true)"


def _duckdb(folder: Path) -> Any:
    import duckdb

    temporary = Path(tempfile.mkdtemp(dir=folder))
    engine = duckdb.connect(str(temporary / "work.db"))
    engine.execute(f"SET memory_limit = '{MEMORY}'; SET threads = {THREADS}")
    engine.execute(f"SET temp_directory = '{temporary}'; SET preserve_insertion_order = false")
    return engine


VARIANTS: dict[str, Callable[[Path, Path], int]] = {
    "scan, Arrow": scan_arrow,
    "scan, Arrow in blocks": scan_blocks,
    "scan, DuckDB": scan_duckdb,
    "import, store": import_store,
    "import, DuckDB": import_duckdb,
}


def measure_here(variant: str, folder: Path) -> dict[str, float]:
    """One measurement, in its own process."""
    run, found = VARIANTS[variant], []
    run(folder / "tiny_edges.csv", folder)

    def timed() -> None:
        start = time.perf_counter()
        count = run(folder / "edges.csv", folder)
        found.extend([time.perf_counter() - start, count])

    peak = peak_megabytes(timed, "cpu")
    return {"seconds": found[0], "rows": found[1], "peak_megabytes": peak}


def main() -> None:
    parser = make_parser("table_reader", __doc__)
    parser.add_argument("--repeats", type=int, default=3)
    add_quick(parser)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        variant, folder = arguments.measure
        print(json.dumps(measure_here(variant, Path(folder))))
        return
    try:
        import duckdb
    except ImportError:
        parser.error("this benchmark needs DuckDB: pip install duckdb")
    num_nodes, num_edges = (2000, 10_000) if arguments.quick else (NODES, EDGES)
    runs: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), "string", num_nodes, num_edges)
        megabytes = (Path(name) / "edges.csv").stat().st_size / 1e6
        for _ in range(1 if arguments.quick else arguments.repeats):
            for variant in VARIANTS:
                command = [sys.executable, "-m", "benchmarks.table_reader"]
                command += ["--measure", variant, name]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                runs[variant].append(json.loads(done.stdout))
    results = []
    for variant in VARIANTS:
        middle = {
            key: statistics.median(run[key] for run in runs[variant])
            for key in ("seconds", "peak_megabytes", "rows")
        }
        results.append({"variant": variant, **middle, "all": runs[variant]})
        print(
            f"{variant}: {middle['seconds']:.2f} s, peak {middle['peak_megabytes']:.0f} MB",
            flush=True,
        )
    record = {
        "machine": machine(),
        "duckdb": duckdb.__version__,
        "memory_limit": MEMORY,
        "nodes": num_nodes,
        "edges": num_edges,
        "file_megabytes": megabytes,
        "results": results,
    }
    write(arguments.out, "cpu", record)


if __name__ == "__main__":
    main()
