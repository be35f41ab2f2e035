"""Small graphs on disk for trainings on several workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lgcn.datasets import synthetic
from lgcn.graph import Graph
from lgcn.partition import open_partition
from lgcn.partition.write import write_partition
from lgcn.store.write_store import write_store

PARTS = 4
EPOCHS = 4
SETTINGS: dict[str, Any] = {
    "hidden_channels": 8,
    "num_layers": 1,
    "k": 4,
    "dropout": 0.2,
    "lr": 0.05,
    "max_epochs": EPOCHS,
    "patience": 100,
    "max_nodes": 60,
    "n_init": 4,
    "subgraphs_per_batch": 1,
    "subgraphs_per_epoch": 12,
    "evaluate_on": "graph",
    "num_workers": 0,
}


@dataclass(frozen=True)
class Data:
    """A graph on disk, as `--graph` wants it, and further settings.

    Attributes:
        path: Its folder.
        settings: Settings that it needs.
    """

    path: str
    settings: tuple[str, ...] = ()


def small_graph(seed: int = 0) -> Graph:
    return synthetic(
        num_nodes=240, num_classes=3, num_features=8, noise=1.0, labels_per_class=16, num_val=60,
        seed=seed,
    )  # fmt: skip


def parts_of(graph: Graph, folder: Path, *, without: int | None = None, seed: int = 0) -> Data:
    """A graph in parts on disk; part `without` loses its training nodes."""
    write_store(folder / "store", graph)
    # By hash, since parts must not depend on the split.
    write_partition(folder / "store", folder / "parts", PARTS, method="hash", seed=seed)
    if without is not None:
        shard = open_partition(folder / "parts").shard(without)
        assert graph.train_mask is not None
        assert shard.graph.n_id is not None
        mask = graph.train_mask.clone()
        mask[shard.graph.n_id[: shard.num_owned].long()] = False
        return parts_of(replace(graph, train_mask=mask), folder / "uneven", seed=seed)
    return Data(str(folder / "parts"))


def whole_of(graph: Graph, folder: Path) -> Data:
    """A graph on disk that is not in parts."""
    write_store(folder / "store", graph)
    return Data(str(folder / "store"), (f"subgraphs_per_step={PARTS}",))
