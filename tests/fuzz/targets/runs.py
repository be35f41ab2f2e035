"""Altered run folders: they are loaded, resumed or refused."""

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lgcn import Graph, LGCNClassifier
from lgcn.cli.output import out as console
from lgcn.cli.score_tables import print_scores
from lgcn.tables.from_tables import from_tables
from lgcn.training import Run, loop, train
from tests.training.graphs import settings, small_graph

from ..json_values import altered_json, altered_safetensors
from ..rules import file_errors
from ..scratch import scratch
from ..source import Source
from ..table_files import EDGES, NODES, damaged, small_model
from .tables import edits_of

Files = dict[str, bytes]
EPOCHS = 2  # at most, in a resumed training; a file can ask for any number


class Ended(Exception):
    """Ends a training."""


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes these files to the folder, and removes all others."""
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def contents(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@cache
def table_graph() -> Graph:
    columns = {**NODES, "topic": [("x", "y")[i % 2] for i in range(len(NODES["id"]))]}
    return from_tables(EDGES, columns, label_column="topic", ignore_columns=["part"])


@cache
def finished_files(process: int) -> Files:
    """A saved estimator with an encoder, and what a training adds: all files of a finished run."""
    trained = scratch("trained")
    train(table_graph(), settings(max_epochs=1), out=trained)
    model = small_model().fit(table_graph())
    folder = scratch("made")
    model.save(folder)
    return {**contents(trained), **contents(folder)}


@cache
def train_graph() -> Graph:
    return small_graph(40)


@cache
def stopped_files(process: int) -> Files:
    """A run that was killed after its second epoch."""
    folder = scratch("stopped")

    def stop(state: Any) -> None:
        if state.epoch == 3:
            raise Ended

    before = loop.CHECKPOINT_SECONDS
    loop.CHECKPOINT_SECONDS = -1.0
    try:
        train(train_graph(), settings(max_epochs=4), out=folder, on_epoch=stop)
    except Ended:
        return contents(folder)
    finally:
        loop.CHECKPOINT_SECONDS = before
    raise AssertionError("training was not stopped")


def altered_file(source: Source, name: str, content: bytes) -> bytes:
    kind = source.below(4)
    if kind == 3 or name.endswith(".npz"):
        return damaged(content, edits_of(source), source.choice((0, 0, source.below(2000))))
    try:
        if name.endswith(".json"):
            text = altered_json(source, json.loads(content))
            return text.encode("utf-8", errors="replace")
        return altered_safetensors(source, content)
    except (ValueError, RecursionError):  # it was altered before
        return content


def alter_files(source: Source, files: dict[str, bytes]) -> None:
    """Alters or removes up to two files."""
    names = sorted(files)
    for _ in range(source.choice((0, 1, 1, 1, 2))):
        name = source.choice(names)
        if source.rarely():
            files.pop(name, None)
        elif name in files:
            files[name] = altered_file(source, name, files[name])


def finished_target(source: Source) -> None:
    """A finished run: model, result, temperature, encoder, estimator and its predictions."""
    files = dict(finished_files(os.getpid()))
    alter_files(source, files)
    folder = scratch("finished")
    put(folder, files)
    graph = table_graph()
    with file_errors():
        if source.flag():
            model = LGCNClassifier.load(folder, device="cpu")
            chances = model.predict_proba(graph)
            assert chances.shape == (graph.num_nodes, len(model.classes_))
        else:
            run = Run(folder)
            _, config, spec = run.load_model()
            spec.check(graph)
            assert config.model.k is not None
            assert 0 < run.temperature() < float("inf")
            encoder = run.encoder()
            if encoder is not None:
                json.dumps(encoder.to_dict(), allow_nan=False)
            metrics = run.metrics()
            if metrics is not None:
                with console.capture():
                    shown = (metrics["splits"], metrics["baselines"], metrics["summary"])
                    print_scores(*shown)
            run.split(graph.num_nodes)


def checkpoint_target(source: Source) -> None:
    """A stopped run is resumed with the settings in its folder, as the command line does it."""
    files = dict(stopped_files(os.getpid()))
    tensors = next(name for name in sorted(files) if name.endswith(".safetensors"))
    alter_files(source, files)
    if source.below(8) and tensors in files and b'"sha256": "' in files.get("checkpoint.json", b""):
        sign(files, tensors)
    folder = scratch("resumed")
    put(folder, files)
    epochs = []

    def count(state: Any) -> None:
        epochs.append(state.epoch)
        if len(epochs) >= EPOCHS:
            raise Ended

    with file_errors():
        config, _ = Run(folder).read()
        try:
            result = train(train_graph(), config, out=folder, resume=True, on_epoch=count)
        except Ended:
            return
        assert result.record["epochs"] >= 0


def sign(files: Files, tensors: str) -> None:
    """Updates the checksum of the tensors, so that the other checks run too."""
    text = files["checkpoint.json"]
    start = text.index(b'"sha256": "') + len(b'"sha256": "')
    digest = hashlib.sha256(files[tensors]).hexdigest().encode()
    files["checkpoint.json"] = text[:start] + digest + text[start + len(digest) :]
