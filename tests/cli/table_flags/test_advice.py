"""Advice on tables is followed to the letter, and helps."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .tables import (
    NUM_NODES,
    OWN,
    PRINTS_WARNINGS,
    RUN,
    TOPIC,
    edge_columns,
    node_columns,
    write,
)

pytestmark = PRINTS_WARNINGS


class Case(NamedTuple):
    """A command that fails, and what of its message is to be added so that it succeeds.

    The advice is a pattern of words that are added to the command, if there is a group that alone.
    ``more`` is what a user has to add to them, ``instead`` what of the command they replace.
    """

    command: tuple[str, ...]
    advice: str
    prepare: Callable[[], Any] = lambda: None
    more: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()


def nodes(**columns: list[Any]) -> None:
    write("nodes.csv", node_columns() | columns)


def edges(**columns: list[Any]) -> None:
    write("edges.csv", edge_columns() | columns)


def stranger() -> None:
    edges(target=["stranger", *edge_columns()["target"][1:]])


def both(delimiter: str = ",", encoding: str = "utf-8", **columns: list[Any]) -> None:
    write("nodes.csv", node_columns() | columns, delimiter, encoding)
    write("edges.csv", edge_columns(), delimiter, encoding)


def last_age() -> None:
    nodes(age=[*range(NUM_NODES - 1), "inf"])


TRAIN = ("train", *TOPIC, *RUN)
CHECK = ("data", "check", *TOPIC)
IMPORT = ("import", "store", *TOPIC, "--memory", "4GB")
CASES = {
    "unknown nodes": Case(TRAIN, "--unknown-nodes drop", stranger),
    "unknown nodes, checked": Case(CHECK, "--unknown-nodes drop", stranger),
    "unknown nodes, imported": Case(IMPORT, "--unknown-nodes drop", stranger),
    "bad rows": Case(IMPORT, r"--skip-bad-rows \d+", stranger),
    "little memory": Case(
        (*IMPORT[:-2], "--memory", "1MB"),
        r"(--memory) must be at least ([\d.]+ MB)",
        more=("4GB",),
        instead=("--memory", "1MB"),
    ),
    "no edge but self-loops": Case(
        TRAIN,
        "--edges none",
        lambda: edges(target=edge_columns()["source"]),
        instead=("--edges", "edges.csv"),
    ),
    "no edge table": Case(("train", *TOPIC[2:], *RUN), "--edges none"),
    "no node table": Case(
        ("import", "store", "--edges", "edges.csv", "--label-column", "topic"),
        "--nodes",
        more=("nodes.csv",),
    ),
    "an encoding": Case(
        TRAIN, "--encoding latin-1", lambda: both(encoding="latin-1", title=["ü a b c"] * 60)
    ),
    "UTF-16": Case(CHECK, "--encoding utf-16", lambda: both(encoding="utf-16")),
    "no validation nodes": Case((*TRAIN, "--val", "0"), r"--val 0\.\d", instead=("--val", "0")),
    "a name misspelt": Case(
        ("train", *OWN, "--label-column", "topc", *RUN),
        "did you mean '(topic)'",
        instead=("topc",),
    ),
    "labels without a name": Case(("train", *OWN, *RUN), "--label-column", more=("topic",)),
    "ids that are not": Case(
        TRAIN,
        "--id-column",
        lambda: nodes(id=["p0", *node_columns()["id"][1:-1], "p0"], code=node_columns()["id"]),
        more=("code",),
    ),
    "words as numbers": Case(
        (*TRAIN, "--numeric-columns", "age"),
        "--categorical-columns",
        lambda: nodes(age=["old", "new"] * (NUM_NODES // 2)),
        more=("age",),
        instead=("--numeric-columns", "age"),
    ),
    "infinity among numbers": Case(
        (*TRAIN, "--numeric-columns", "age"),
        "--ignore-columns",
        last_age,
        more=("age",),
        instead=("--numeric-columns", "age"),
    ),
    "two rules to split": Case(
        (*TRAIN, "--val", "0.2", "--labels-per-class", "3"),
        "Omit all but one()",
        instead=("--val", "0.2"),
    ),
    "several labels, split by class": Case(
        (
            "train",
            *OWN,
            "--label-column",
            "title",
            "--label-separator",
            " ",
            *RUN,
            "--labels-per-class",
            "3",
        ),
        "--val",
        more=("0.3",),
        instead=("--labels-per-class", "3"),
    ),
    "a split without labels": Case(
        (*CHECK[:-2], "--val", "0.3"), "--label-column", more=("topic",)
    ),
    "a table by its name": Case(
        ("train", "--dataset", "tables", *RUN),
        "--edges and --nodes()",
        more=TOPIC,
        instead=("--dataset", "tables"),
    ),
}


def followed(case: Case, message: str) -> list[str]:
    """The command with the advice in the message."""
    found = re.search(case.advice, message)
    assert found is not None, message
    words = shlex.split(found[1] if found.re.groups else found[0])
    command = list(case.command)
    place = len(command)
    for word in case.instead:
        place = command.index(word)
        del command[place]
    command[place:place] = [*words, *case.more]
    return command


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_advice_helps(lgcn_, case: Case):
    case.prepare()
    message = lgcn_(*case.command).message
    output = lgcn_(*followed(case, message))
    assert output.code == 0, output.err


COMMANDS = {
    "predict": ("predict", "run", "--output", "p.csv"),
    "evaluate": ("evaluate", "run"),
    "embed": ("embed", "run", "--output", "e.npy"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_advice_on_new_tables_helps(lgcn_, trained: Path, command: tuple[str, ...]):
    for case in (
        Case((*command, *OWN), "--unknown-nodes drop", stranger),
        Case((*command, *OWN[2:]), "--edges none"),
        Case((*command, *OWN), "--encoding utf-16", lambda: both(encoding="utf-16")),
        Case(
            (*command, "--delimiter", ","),
            "--edges and --nodes()",
            lambda: [path.unlink() for path in Path().glob("*.csv")] + [both_elsewhere()],
            more=("--edges", "new/edges.csv", "--nodes", "new/nodes.csv"),
        ),
    ):
        case.prepare()
        message = lgcn_(*case.command).message
        output = lgcn_(*followed(case, message))
        assert output.code == 0, output.err


def both_elsewhere() -> None:
    write("new/nodes.csv", node_columns())
    write("new/edges.csv", edge_columns())


def test_a_trained_model_is_given_no_advice_that_it_cannot_take(lgcn_, trained: Path):
    last_age()
    message = lgcn_(*COMMANDS["predict"], *OWN).message
    assert "'age', line 61" in message
    assert "_columns" not in message
    assert "-columns" not in message
    nodes()
    assert lgcn_(*COMMANDS["predict"], *OWN).code == 0


def test_tables_with_two_delimiters(lgcn_):
    write("edges.csv", edge_columns() | {"note": ["a,b"] * 180}, ";")
    message = lgcn_(*TRAIN, "--delimiter", ";").message
    assert "nodes.csv" in message
    assert "Omit --delimiter" in message
    assert lgcn_(*TRAIN).code == 0


def test_flags_of_tables_need_tables(lgcn_):
    small = [w for s in ("dataset_options.num_nodes=60", "max_epochs=1") for w in ("--set", s)]
    assert lgcn_("train", "--dataset", "synthetic", "--out", "run", *small).code == 0
    output = lgcn_(*COMMANDS["predict"], "--unknown-nodes", "drop")
    assert output.code == 2
    assert "--unknown-nodes" in output.message
    output = lgcn_(*COMMANDS["predict"], *OWN)
    assert "--dataset" in output.message
    assert lgcn_(*COMMANDS["predict"], "--dataset", "synthetic").code == 0


def test_a_column_of_weights_is_named_as_the_note_says(lgcn_):
    edges(weight=[1] * (3 * NUM_NODES))
    report = lgcn_(*CHECK, "--json").json
    (note,) = [note for note in report["notes"] if "weight" in note]
    advice = re.search(r"--weight-column \w+", note)
    assert advice is not None
    assert lgcn_(*CHECK, *advice[0].split(), "--json").json["weighted"] is True
