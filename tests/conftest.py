"""What all tests share: threads, Triton's interpreter, the folder of real data, random graphs."""

import os

# Workers of pytest-xdist would fight for the cores. Torch and Numba share libgomp and read these
# when they are imported. Two Numba threads must be possible, since tests/ops compares one with two.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import numba
import pytest
import torch

# Triton reads this when it is imported, and then runs its kernels on the CPU.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

from lgcn import Graph
from tests.browser import Browser, started

# The first example of a kernel compiles it, and shared machines stall: tests do not time. The same
# examples each time; `make fuzz` tries others (--hypothesis-profile=random).
hypothesis.settings.register_profile(
    "lgcn", deadline=None, derandomize=True, database=None, print_blob=True
)
hypothesis.settings.register_profile("random", deadline=None, derandomize=False, print_blob=True)
hypothesis.settings.load_profile("lgcn")

torch.set_num_threads(1)
numba.set_num_threads(1)

# A shell's background jobs ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _seed() -> None:
    """The same weights in a test whichever tests ran before it in its process."""
    torch.manual_seed(0)


@pytest.fixture
def data_root() -> Path:
    """The folder of real data, $LGCN_DATA."""
    folder = os.environ.get("LGCN_DATA")
    if not folder:
        pytest.skip("LGCN_DATA is not set")
    if not Path(folder).is_dir():
        pytest.skip(f"LGCN_DATA is no folder: {folder}")
    return Path(folder)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, one for all tests of a process; skips where there is none."""
    with started() as found:
        yield found


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of its own; no data set on this machine, and no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LGCN_OFFLINE", "1")
    monkeypatch.delenv("LGCN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    return tmp_path


PROGRESS = re.compile(r"training \w+ on |about .* left for |epoch \d+/\d+  ")


class Output(NamedTuple):
    """What a command line printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object that is all of standard output."""
        assert self.code == 0, self.err
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def message(self) -> str:
        """The error, which is one line and all there is, apart from lines about a training."""
        assert self.out == ""
        assert self.err.endswith("\n")
        (line,) = [line for line in self.err.splitlines() if not PROGRESS.match(line)]
        assert line.startswith("Error: ")
        return line.removeprefix("Error: ").strip()

    def notes(self, about: str) -> list[str]:
        return [
            line for line in self.err.splitlines() if line.startswith("Note: ") and about in line
        ]


@pytest.fixture
def lgcn_(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Output]:
    """Runs a command line in this process. No failure may show a traceback."""
    from lgcn.__main__ import command_line

    cli = command_line()
    monkeypatch.setenv("LGCN_DEBUG", "1")  # a bug is raised, not reported in a line
    # Whether a test is the first to need a kernel must not show.
    monkeypatch.setattr("lgcn.cli.app.tell_of_compiling", lambda: None)

    def run(*args: object) -> Output:
        monkeypatch.setattr(sys, "argv", ["lgcn", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        code = end.value.code or 0
        assert isinstance(code, int)
        output = Output(code, *capsys.readouterr())
        assert "Traceback" not in output.err
        if output.code not in (0, 130):
            assert "Error" in output.err
            assert output.out == ""
        return output

    return run


@pytest.fixture(scope="session")
def random_graph() -> Callable[..., Graph]:
    """A function that makes graphs with distinct directed edges, see :func:`make_graph`."""
    return make_graph


def make_graph(
    num_nodes: int = 12,
    density: float = 0.25,
    *,
    num_features: int = 5,
    seed: int = 0,
    weighted: bool = False,
    self_loops: bool = False,
    undirected: bool = False,
    **fields: Any,
) -> Graph:
    """A random graph with features x and classes y of 0, 1 and 2."""
    generator = torch.Generator().manual_seed(seed)
    entries = torch.rand(num_nodes, num_nodes, generator=generator) < density
    if undirected:
        entries = entries | entries.t()
    if not self_loops:
        entries.fill_diagonal_(False)
    target, source = entries.nonzero().t()
    weight = torch.rand(target.numel(), generator=generator) + 0.1 if weighted else None
    fields.setdefault("x", torch.randn(num_nodes, num_features, generator=generator))
    fields.setdefault("y", torch.arange(num_nodes) % 3)
    edge_index = torch.stack([source, target])
    return Graph.as_given(edge_index, num_nodes, edge_weight=weight, **fields)
