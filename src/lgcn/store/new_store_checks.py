"""Checks of a user's arguments about stores, before anything is imported that takes long."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from lgcn.errors import UsageError
from lgcn.store.format import ARRAYS, HEADER, UNUSED, file_of, is_store
from lgcn.tables.early_checks import EDGE_SUFFIXES, check_tables, table_files, table_kind
from lgcn.utils.limits import MAX_NODES
from lgcn.utils.numbers import real_number, whole_number
from lgcn.utils.sizes import parse_memory

FeatureKind = Literal["float32", "float16", "bfloat16", "uint8"]


class GraphKind(NamedTuple):
    """What a graph to generate is like, see `lgcn.store.generate.generate_store`."""

    homophily: float = 0.5
    imbalance: float = 1.0
    label_noise: float = 0.1
    noise: float = 0.7
    locality: float = 0.75
    skew: float = 0.5


DEFAULT_KIND = GraphKind()


def feature_kind(features: str) -> None:
    kinds = get_args(FeatureKind)
    if features not in kinds:
        raise UsageError(f"features must be one of {', '.join(kinds)}, got {features!r}")


class FolderKind(NamedTuple):
    """A kind of folder that a command writes as a whole.

    Args:
        name: Its name in messages.
        is_one: Whether a folder looks like one.
        foreign: The names of files in a folder that do not belong to one, not even to one that is
            being written.
    """

    name: str
    is_one: Callable[[Path], bool]
    foreign: Callable[[Path], list[str]]


def foreign_files(folder: Path) -> list[str]:
    """Files in a folder that do not belong to a store, not even to one that is being written."""
    known = {HEADER, "scratch", *(file_of(folder, name).name for name in ARRAYS | UNUSED)}
    return sorted(path.name for path in folder.iterdir() if path.name not in known)


STORE = FolderKind("store", is_store, foreign_files)


def check_target(path: Path, overwrite: bool, kind: FolderKind = STORE) -> None:
    """Refuses a path that exists; with `overwrite`, only one that is not purely of this kind."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise UsageError(f"{path} exists. Give another path, or overwrite=True")
    if path.is_symlink() or not kind.is_one(path):
        raise UsageError(
            f"{path} is not a {kind.name}, so it is not overwritten. Give another path"
        )
    if others := kind.foreign(path):
        raise UsageError(
            f"{path} has files that do not belong to a {kind.name} ({others[0]!r}), so it is not "
            "overwritten. Give another path"
        )


def check_new_store(path: Path, features: str, memory: str, overwrite: bool) -> None:
    """Refuses what no new store can have, whatever goes into it."""
    feature_kind(features)
    parse_memory(memory)
    check_target(path.absolute(), overwrite)


def check_import(
    path: Path, edges: list[Path], features: str, memory: str, overwrite: bool, **tables: Any
) -> None:
    """Refuses what can be known to be wrong with an import before tables are read.

    Args:
        path, features, memory, overwrite, **tables: See `lgcn.store.import_store.import_store`.
        edges: The files of edges.
    """
    check_new_store(path, features, memory, overwrite)
    for file in table_files(edges, "edges"):
        table_kind(file, "edges", EDGE_SUFFIXES)
    tables["features"] = tables.pop("node_features", None)
    check_tables(None, **{"nodes": None, **tables})


def generated_sizes(
    num_nodes: Any, num_edges: Any, num_features: Any, num_classes: Any, seed: Any
) -> tuple[int, int, int, int, int]:
    """The sizes of a graph to generate, as ints."""
    num_nodes = whole_number("num_nodes", num_nodes, 1, MAX_NODES)
    return (
        num_nodes,
        whole_number("num_edges", num_edges, 0, num_nodes * (num_nodes - 1) // 2),
        whole_number("num_features", num_features, 1),
        whole_number("num_classes", num_classes, 1, num_nodes),
        whole_number("seed", seed, 0),
    )


def generated_kind(
    homophily: Any, imbalance: Any, label_noise: Any, noise: Any, locality: Any, skew: Any
) -> GraphKind:
    """What a graph to generate is like, as floats."""
    return GraphKind(
        real_number("homophily", homophily, 0, 1),
        real_number("imbalance", imbalance, 0, 5),
        real_number("label_noise", label_noise, 0, 1),
        real_number("noise", noise, 0, 1000),
        real_number("locality", locality, 0, 1),
        real_number("skew", skew, 0, 1),
    )
