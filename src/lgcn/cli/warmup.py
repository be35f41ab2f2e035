"""`lgcn warmup`: compile all kernels before they are needed."""

from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import Json
from lgcn.cli.output import err, out, print_json
from lgcn.utils.progress import step_progress


def warmup(as_json: Json = False) -> None:
    """Compile all kernels now, which takes about a minute, so that no training has to wait."""
    from lgcn.training.warmup import warmup as compile_kernels

    with step_progress(err) as on_progress:
        done = compile_kernels(on_progress=on_progress)
    if as_json:
        print_json(done._asdict())
        return
    table = Table("kernel")
    for column in ("compiled", "from the cache"):
        table.add_column(column, justify="right")
    for name in sorted({*done.compiled, *done.cached}):
        counts = (len(found.get(name, ())) for found in (done.compiled, done.cached))
        table.add_row(name, *map(str, counts))
    out.print(table)
    if not done.folders:
        out.print(
            f"{done.seconds:.1f} s; nothing is kept: set NUMBA_CACHE_DIR to a folder that can be "
            "written to"
        )
        return
    out.print(f"{done.seconds:.1f} s; kept in", *map(escape, done.folders), sep="\n")
