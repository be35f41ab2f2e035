"""After a warm-up, other processes find every kernel compiled."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn import Graph
from lgcn.graph import padded
from lgcn.training.warmup import _padded, kernels, warmup

LOAD = """
import json, torch
from lgcn import Graph, SubgraphLoader
from lgcn.training.warmup import kernels
edges = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 0]])
graph = Graph.from_edge_index(edges)
for options in ({}, {"max_expand": 1}, {"max_expand": [2, 1], "max_hops": 1}):
    for batch in SubgraphLoader(graph, n_init=2, max_nodes=5, **options):
        assert batch.num_nodes >= 3
"""
TRAIN = """
import json
from lgcn import load_dataset
from lgcn.training import Settings, train
from lgcn.training.warmup import kernels
for training in ("whole", "subgraph"):
    config = Settings.create(dataset="digits", training=training, max_epochs=2)
    train(load_dataset("digits"), config)
"""
REPORT = """
stats = {name: kernel.stats for name, kernel in kernels().items()}
print(json.dumps({
    "compiled": [name for name, s in stats.items() if s.cache_misses],
    "loaded": [name for name, s in stats.items() if s.cache_hits],
}))
"""
WARM_UP_SUBGRAPHS = """
import json, torch
from lgcn.training.warmup import warmup
print(json.dumps(warmup(float_dtypes=(), index_dtypes=(torch.int64,))._asdict()))
"""


def python(cache: Path, *arguments: str) -> Any:
    """The JSON on the last line that another process prints, which uses this cache folder."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow  # a minute: it compiles everything once
def test_another_process_compiles_nothing_for_subgraphs(tmp_path: Path) -> None:
    first = python(tmp_path, "-c", WARM_UP_SUBGRAPHS)
    assert {"lgcn.sampling.algorithm1._grow", "lgcn.ops.induced_subgraph._induced"} <= set(
        first["compiled"]
    )
    assert first["cached"] == {}
    assert all(Path(folder).is_relative_to(tmp_path) for folder in first["folders"])
    used = python(tmp_path, "-c", LOAD + REPORT)
    assert used["compiled"] == []
    assert used["loaded"] == [
        "lgcn.ops.induced_subgraph._induced",
        "lgcn.sampling.algorithm1._grow",
    ]


@pytest.mark.slow
def test_training_compiles_nothing_after_the_command(tmp_path: Path) -> None:
    first = python(tmp_path, "-m", "lgcn", "warmup", "--json")
    # In a process of their own: other tests may have imported kernels that training does not need.
    known = "import json; from lgcn.training.warmup import kernels\n"
    known += "print(json.dumps(list(kernels())))"
    wanted = set(python(tmp_path, "-c", known))
    if not torch.cuda.is_available():  # a GPU alone takes padded sub-graphs
        wanted = {name for name in wanted if not name.startswith("lgcn.graph.padded.")}
    assert set(first["compiled"]) >= wanted
    used = python(tmp_path, "-c", TRAIN + REPORT)
    assert used["compiled"] == []
    assert "lgcn.ops.cpu.select.k_largest" in used["loaded"]
    again = python(tmp_path, "-m", "lgcn", "warmup", "--json")
    assert again["compiled"] == {}
    assert set(again["cached"]) >= set(used["loaded"])


def test_steps_are_told_in_order() -> None:
    told: list[tuple[str, int, int]] = []
    done = warmup((), (torch.int32, torch.int64), lambda *step: told.append(step))
    steps = ["tables", "sub-graphs, int32", "sub-graphs, int64", "sub-graphs of a store", "done"]
    assert told == [(step, number, 4) for number, step in enumerate(steps)]
    name = "lgcn.ops.induced_subgraph._induced"  # other tests may have cached some
    assert len(done.compiled.get(name, []) + done.cached.get(name, [])) == 3
    assert done.seconds > 0


def test_kernels_are_named_by_the_module_that_defines_them() -> None:
    names = kernels()
    assert {"lgcn.ops.cpu.select.k_largest", "lgcn.sampling.algorithm1._grow"} <= set(names)
    assert len({id(kernel) for kernel in names.values()}) == len(names)


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_padding_compiles_nothing_afterwards(index_dtype: torch.dtype) -> None:
    """A warm-up on a machine with a GPU calls this; other machines pad nothing."""
    _padded(index_dtype)
    used = (padded._write_structure, padded._write_products)
    before = [list(kernel.signatures) for kernel in used]
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = Graph.from_edge_index(edge_index, x=torch.ones(3, 2), edge_weight=torch.ones(4))
    graph = replace(graph, rowptr=graph.rowptr.to(index_dtype), col=graph.col.to(index_dtype))
    forms = [padded.Form(False, normalize, True) for normalize in (False, True)]
    for one in (graph, graph.subgraph(torch.arange(2)), replace(graph, edge_weight=None)):
        padded.sizes_of(one, forms)
    assert [list(kernel.signatures) for kernel in used] == before
