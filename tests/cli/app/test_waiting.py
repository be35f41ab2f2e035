"""Nobody waits for a word: mistakes are reported without torch, and Ctrl-C is answered at once."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lgcn.inference import predictions
from lgcn.store import generate
from lgcn.training import Run, loop

from ..small import write_npz

HEAVY = {"torch", "torch_geometric", "numba", "sklearn", "scipy"}
MISTAKES = [
    "train --dataset nope",
    "train --dataset no.npz",
    "train --dataset ppi",
    "train --set nope=1",
    "train --set k=abc",
    "train --set lr=-1",
    "train --set dataset_options.nope=1",
    "train --preset nope",
    "train --config no.toml",
    "train --graph nowhere",
    "train --graph store --memory much",
    "train --edges no.csv --nodes no.csv --label-column y",
    "train --edges edges.csv --nodes nodes.csv --label-column nope",
    "train --edges edges.csv --nodes nodes.csv --label-column y --unknown-nodes keep",
    "train --edges edges.csv",
    "train --dataset digits --graph nowhere",
    "train --config small.toml --out trained",
    "train --resume --out nowhere",
    "predict nowhere --output p.csv",
    "predict trained --output p.xyz",
    "serve nowhere",
    "serve trained --port 70000",
    "serve trained --graph nowhere",
    "serve trained --max-nodes 0",
    "predict trained --output p.csv --graph nowhere",
    "predict trained --output p.csv --dataset nope",
    "predict trained --output p.csv --abstain-below 2",
    "predict trained --output p.csv --edges edges.csv --nodes nodes.csv",
    "evaluate nowhere",
    "evaluate trained --dataset nope",
    "explain nowhere 1",
    "explain trained 1 --output e.xyz",
    "explain trained 1 --graph nowhere",
    "report nowhere",
    "report trained --output p.txt",
    "report trained --sample 1",
    "report trained --graph nowhere",
    "compare trained",
    "compare trained nowhere",
    "embed nowhere --output e.npy",
    "embed trained --output e.csv",
    "import s --edges no.csv",
    "import s --edges edges.csv --nodes no.csv",
    "import s --edges edges.csv --feature-type float8",
    "import s --edges edges.csv --nodes nodes.csv --label-column nope",
    "import trained --edges edges.csv",
    "generate s --nodes 0 --edges 1",
    "generate s --nodes 10 --edges 9 --memory much",
    "generate trained --nodes 10 --edges 9",
    "partition nowhere out --parts 2",
    "partition store out --parts 0",
    "partition store out --parts 2 --method nope",
    "data info nope",
    "data path nope",
    "data check --dataset nope",
    "data check --edges edges.csv --nodes nodes.csv --label-column nope",
    "reproduce nope",
    "reproduce table2 --datasets nope",
    "reproduce table2 --device nope",
    "settings --dataset nope",
]
ANSWERS = ["settings", "settings --preset gat", "data list", "data path digits"]


def write_tables() -> None:
    Path("nodes.csv").write_text("id,age,y\na,1,p\nb,2,q\n")
    Path("edges.csv").write_text("source,target\na,b\n")


def run(code: str, *, wait: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=wait, check=False
    )


def test_mistakes_are_reported_before_torch_is_imported(trained: Path):
    write_tables()
    code = f"""
import sys
from lgcn.__main__ import command_line
main = command_line().main
for line in {[*MISTAKES, *ANSWERS]!r}:
    sys.argv = ["lgcn", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert bool(end.code) == (line in {MISTAKES!r}), (line, end.code)
    found = {HEAVY!r} & set(sys.modules)
    assert not found, (line, found)
    print("next", file=sys.stderr)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    messages = done.stderr.split("next\n")[: len(MISTAKES)]
    for line, message in zip(MISTAKES, messages, strict=True):
        assert message.startswith("Error: "), line
    assert not Path("s").exists()


# Sends the signal when torch is imported, which takes seconds.
INTERRUPTED = """
import os, signal, sys
class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == "torch":
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Finder)
sys.argv = ["lgcn", *{line!r}.split()]
from lgcn.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("train --config small.toml --out a", "SIGINT"),
        ("train --config small.toml --out a", "SIGTERM"),
        ("train --resume --out unfinished", "SIGINT"),
        ("predict trained --output a.csv", "SIGINT"),
        ("evaluate trained", "SIGTERM"),
        ("embed trained --output a.npy", "SIGINT"),
        ("generate a --nodes 10 --edges 9", "SIGINT"),
        ("import a --edges edges.csv", "SIGINT"),
        ("data check --edges edges.csv --nodes nodes.csv --label-column y", "SIGINT"),
        ("data info ring.npz", "SIGINT"),
        ("warmup", "SIGINT"),
    ],
)
def test_ctrl_c_while_torch_is_imported(trained: Path, place: Path, line: str, name: str):
    write_tables()
    write_npz(place / "ring.npz")
    (place / "unfinished").mkdir()
    (place / "unfinished" / "run.json").write_bytes((trained / "run.json").read_bytes())
    before = set(place.iterdir())
    done = run(INTERRUPTED.format(line=line, signal=name))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Error: stopped\n")
    assert set(place.iterdir()) == before


def test_reproduce_says_how_to_go_on(place: Path):
    done = run(INTERRUPTED.format(line="reproduce table2 --quick", signal="SIGINT"))
    assert done.returncode == 130
    assert done.stderr.startswith("Error: stopped")
    assert "lgcn reproduce table2 --quick" in done.stderr
    assert done.stderr.count("\n") == 1


def press(times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_in_the_midst_of_the_work(lgcn_, monkeypatch: pytest.MonkeyPatch, trained: Path):
    before = set(Path().rglob("*"))
    for module, function, line in (
        (predictions, "_writer", ("predict", trained, "--output", "p.csv")),
        (generate, "_write_labels", ("generate", "s", "--nodes", 10, "--edges", 9)),
    ):
        monkeypatch.setattr(module, function, lambda *_, **__: press())
        output = lgcn_(*line)
        assert (output.code, output.message) == (130, "stopped")
    assert set(Path().rglob("*")) == before


def in_second_epoch(monkeypatch: pytest.MonkeyPatch, presses: int) -> None:
    train_epoch = loop._train_epoch

    def patched(*args: Any) -> Any:
        if args[3] == 2:
            press(presses)
        return train_epoch(*args)

    monkeypatch.setattr(loop, "_train_epoch", patched)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)


def test_the_first_ctrl_c_is_acknowledged_while_the_epoch_goes_on(
    lgcn_, monkeypatch: pytest.MonkeyPatch
):
    said = b""
    write = os.write

    def written(file: int, data: bytes) -> int:
        nonlocal said
        if file != 2:
            return write(file, data)
        said += data
        return len(data)

    monkeypatch.setattr(os, "write", written)
    in_second_epoch(monkeypatch, 1)
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--json")
    assert output.code == 130
    assert output.out == ""
    assert "stopped after epoch 2" in output.err
    assert b"stopping after this epoch (0 s so far)" in said
    assert b"Ctrl-C again stops at once" in said
    assert Run("a").load_checkpoint()[0] == 2


def test_the_second_ctrl_c_stops_at_once(lgcn_, monkeypatch: pytest.MonkeyPatch):
    in_second_epoch(monkeypatch, 2)
    output = lgcn_("train", "--config", "small.toml", "--out", "a", "--json")
    assert output.code == 130
    assert "lgcn train --resume --out a" in output.err
    assert Run("a").load_checkpoint()[0] == 1


def test_ctrl_c_before_the_first_epoch_stops_at_once(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lgcn.training.data.evaluation_graphs", lambda *_: press())
    output = lgcn_("train", "--config", "small.toml", "--out", "a")
    assert output.code == 130
    assert output.err.count("\n") == 1
    assert not Path("a").exists()


def test_ctrl_c_while_the_final_scores_are_computed(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    with monkeypatch.context() as patched:
        patched.setattr("lgcn.training.data.score_graphs", lambda *_: press())
        output = lgcn_("train", "--config", "small.toml", "--out", "a")
    assert output.code == 130
    assert "lgcn train --resume --out a" in output.err
    assert lgcn_("train", "--resume", "--out", "a", "--json").json["epochs"] == 5
