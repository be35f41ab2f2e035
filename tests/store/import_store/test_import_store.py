"""The rest of an import: wrong arguments, a full disk, a ceiling of memory.

That it can be killed is shown in tests/crash.
"""

import errno
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lgcn.errors import DataError, UsageError
from lgcn.store import edge_buckets
from lgcn.store.import_store import import_store

from .tables import ROOMY, imported

PAIR = np.array([[1, 2]])


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        (PAIR, {"memory": "much"}, "memory must be a size"),
        (PAIR, {"memory": "1MB"}, "memory must be at least .*B, got 1 MB"),
        (PAIR, {"skip_bad_rows": -1}, "skip_bad_rows"),
        (PAIR, {"features": "int8"}, "features must be one of"),
        (PAIR, {"unknown_nodes": "ask"}, "unknown_nodes"),
        (PAIR, {"label_column": "l"}, "Give nodes"),
        (PAIR, {"labels_column": "l"}, "labels_column is not an option .* 'label_column'"),
        (PAIR, {"source_column": "s"}, "together"),
        (None, {}, "nothing to import"),
        (3, {}, "edges must be a path"),
        ([], {}, "gave no arrays"),
        ([(np.zeros(2), np.zeros(3))], {}, "arrays of one length"),
        ([np.zeros((3, 3))], {}, r"shape \[n, 2\]"),
        ("nothing.csv", {}, "does not exist"),
        ("edges.xls", {}, "must end in one of"),
    ],
)
def test_wrong_arguments(tmp_path: Path, edges: Any, options: Any, message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        import_store(tmp_path / "store", edges, **({"memory": ROOMY} | options))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(edge_buckets, "_write_at", full)
    monkeypatch.setattr("lgcn.store.import_store._load_kernels", lambda *_: None)
    with pytest.raises(DataError, match="not enough room on the disk"):
        imported(tmp_path / "store", np.array([[0, 1]]))
    assert list(tmp_path.iterdir()) == []


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_memory_ceiling_holds(tmp_path: Path) -> None:
    # Sorting these edges in memory takes more than the 130 MB that are allowed here.
    code = """
    import sys
    import numpy as np
    from lgcn.store.import_store import import_store
    from lgcn.utils.memory import PeakMemory, anonymous_memory

    def edges():
        rng = np.random.default_rng(0)
        for _ in range(50):
            yield rng.integers(0, 500_000, (100_000, 2))

    # Compiles all there is to compile, which takes memory of its own.
    import_store(sys.argv[1], np.array([[0, 1], [1, 2]]))
    ceiling = anonymous_memory() + 130 * 10**6
    with PeakMemory(every=0.002) as peak:
        counts = import_store(sys.argv[1], edges(), memory=ceiling, overwrite=True)
    print(counts["rows"], counts["peak_memory"], peak.peak, ceiling)
    """
    done = run(code, str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr
    rows, reported, peak, ceiling = map(int, done.stdout.split())
    assert rows == 5_000_000
    assert max(reported, peak) <= ceiling
