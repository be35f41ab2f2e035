"""Features that the edges give: when they are added, how scaled, and what a run keeps of them."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from lgcn import load_run
from lgcn.errors import CheckpointError, UsageError
from lgcn.graph import Graph
from lgcn.graph.statistics import feature_length
from lgcn.graph.structural import structural_features
from lgcn.training import ModelSpec, Settings, State, loop, structure, train
from lgcn.training.structure import Structure

from .graphs import digest, settings, several_graphs, small_graph

BARE: dict[str, Any] = {"structural_features": "auto", "positions": "none"}
BOTH: dict[str, Any] = {"structural_features": "yes", "positions": "spectral"}


def bare(seed: int = 0) -> Graph:
    return replace(small_graph(seed=seed), x=None)


def test_graphs_with_features_get_nothing_by_default() -> None:
    graph = small_graph()
    spec = ModelSpec.of(graph, settings())
    assert spec.structure is None
    assert spec.prepare(graph) is graph


def test_graphs_without_features_get_both_by_default() -> None:
    graph = bare()
    spec = ModelSpec.of(graph, settings())
    assert spec.structure is not None
    assert (spec.structure.positions, spec.structure.dimensions) == ("learnt", 32)
    assert "log_degree" in spec.structure.features
    assert spec.given_features == 0
    prepared = spec.prepare(graph)
    assert prepared.num_features == spec.num_features == spec.structure.width
    assert torch.equal(prepared.x, spec.prepare(replace(graph, col=graph.col.clone())).x)


@pytest.mark.parametrize("given", [BARE, BOTH, {**BARE, "structural_features": "yes"}])
@pytest.mark.parametrize("layout", ["none", "dense", "sparse", "uint8"])
def test_columns_and_their_scale(given: dict[str, Any], layout: str) -> None:
    graph = small_graph()
    assert graph.x is not None
    before = 3 * graph.x
    if layout == "sparse":
        before = torch.where(before > 1, before, 0)
    x = {"none": None, "dense": before, "sparse": before.to_sparse_csr(), "uint8": before.byte()}
    scale = torch.tensor([[0.5] * 8, [1.0] * 8]) if layout == "uint8" else None
    graph = replace(graph, x=x[layout], feature_scale=scale)
    spec = ModelSpec.of(graph, settings(**given))
    prepared = spec.prepare(graph)
    if spec.structure is None:
        assert (layout, given) != ("none", BARE)
        return
    assert prepared.x is not None
    assert (prepared.x.layout == torch.sparse_csr) == (layout == "sparse")
    values = prepared.features().to_dense().numpy()
    width = 0
    if layout != "none":
        width = 8
        assert (values[:, :8] == graph.features().to_dense().numpy()).all()
    names = spec.structure.features
    own = structural_features(graph, names).astype(np.float64)
    expected = (own - own.mean(0)) / own.std(0)
    expected *= feature_length(graph) / np.sqrt(len(names))
    found = values[:, width : width + len(names)]
    np.testing.assert_allclose(found, expected, atol=2e-4 * feature_length(graph))
    # The scale of the input counts all of it.
    resolved = settings(**given, input_scale=None).resolve(graph)
    assert resolved.model.input_scale == pytest.approx(1 / feature_length(prepared), rel=1e-3)


def test_sparse_columns_equal_scipy() -> None:
    graph = small_graph()
    assert graph.x is not None
    kept = torch.where(graph.x > 1, graph.x, 0)
    block = torch.rand(200, 3)
    found = structure._beside(replace(graph, x=kept.to_sparse_csr()), block)
    both = [scipy.sparse.csr_matrix(part.numpy()) for part in (kept, block)]
    assert (found.to_dense().numpy() == scipy.sparse.hstack(both).toarray()).all()
    replace(graph, x=found)  # its indices are valid


def test_new_graphs_get_the_same_columns() -> None:
    spec = ModelSpec.of(bare(), settings(**BARE))
    other = bare(seed=5)
    assert spec.structure is not None
    own = structural_features(other, spec.structure.features)
    mean, factor = np.array(spec.structure.mean), np.array(spec.structure.factor)
    np.testing.assert_allclose(spec.prepare(other).x, (own - mean) * factor, atol=1e-5)
    part = spec.prepare(other.subgraph(torch.arange(50), keep_degree=False))
    assert part.num_features == spec.num_features


def test_separate_graphs() -> None:
    graphs = replace(several_graphs(), x=None)
    spec = ModelSpec.of(graphs, settings())
    assert spec.structure is not None
    assert spec.structure.positions == "none"
    prepared = spec.prepare(graphs)
    for part, alone in zip(prepared.separate(), graphs.separate(), strict=True):
        np.testing.assert_allclose(part.x, spec.prepare(alone).x, atol=1e-4)
    assert prepared.train_mask is not None
    assert prepared.x[prepared.train_mask].mean(0) == pytest.approx(
        np.zeros(prepared.num_features), abs=1e-4
    )
    with pytest.raises(UsageError, match="positions=spectral needs one graph"):
        ModelSpec.of(graphs, settings(**BOTH))


def test_the_degree_alone_is_given_to_graphs_without_features() -> None:
    given = {**BARE, "structural_features": "degree"}
    graph = bare()
    prepared = ModelSpec.of(graph, settings(**given)).prepare(graph)
    degree = graph.rowptr.diff().log1p()
    expected = (degree - degree.mean()) / degree.std(correction=0) * feature_length(graph)
    torch.testing.assert_close(prepared.x, expected[:, None].float(), atol=1e-4, rtol=1e-4)
    assert ModelSpec.of(small_graph(), settings(**given)).structure is None


def test_alike_nodes() -> None:
    nodes = torch.arange(40)
    ring = Graph.from_edge_index(torch.stack([nodes, nodes.roll(1)]))
    prepared = ModelSpec.of(ring, settings(**BARE)).prepare(ring)
    assert prepared.x.tolist() == [[0.0]] * 40


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"structural_features": "no"}, "no features.*structural_features=yes"),
        ({"structural_features": False}, "no features.*structural_features=yes"),
    ],
)
def test_switched_off(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        train(bare(), settings(**given))


def test_neither_features_nor_edges() -> None:
    graph = replace(bare(), rowptr=torch.zeros(201, dtype=torch.long), col=torch.empty(0).long())
    with pytest.raises(UsageError, match=r"no features.*no edges"):
        train(graph, settings())


def test_settings() -> None:
    assert Settings.create(structural_features=True).structural_features == "yes"
    assert Settings.create(positions=None).positions == "none"
    with pytest.raises(UsageError, match="structural_features must be one of auto, yes, no"):
        Settings.create(structural_features="maybe")
    with pytest.raises(UsageError, match="positions must be one of auto, none, spectral, learnt"):
        Settings.create(positions="gps")


@pytest.mark.parametrize("kind", ["none", "spectral", "learnt"])
def test_a_run_keeps_them(kind: str, tmp_path: Path) -> None:
    graph = bare()
    result = train(graph, settings(positions=kind, max_epochs=3), out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.spec == result.spec
    assert run.evaluate(graph=graph).splits["val"]["score"] == result.record["val_score"]
    other = bare(seed=5)
    if kind == "none":
        assert run.predict(graph=other).shape == (200, 3)
    else:
        with pytest.raises(UsageError, match=f"positions .{kind}.*positions=none"):
            run.predict(graph=other)
    with pytest.raises(UsageError, match=f"0 features.*adds {result.spec.num_features}"):
        run.predict(graph=small_graph())


def test_resumed_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(state: State) -> None:
        if state.epoch == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    chosen = settings(**BOTH)
    with pytest.raises(KeyboardInterrupt):
        train(bare(), chosen, out=tmp_path, on_epoch=die)
    resumed = train(bare(), chosen, out=tmp_path, resume=True)
    assert digest(resumed.model) == digest(train(bare(), chosen).model)


def test_positions_that_come_out_differently() -> None:
    graph = bare()
    spec = ModelSpec.of(graph, settings(**BOTH))
    assert spec.structure is not None
    other = replace(spec, structure=replace(spec.structure, check=(0.5,) * 32))
    with pytest.raises(UsageError, match="come out differently on this machine"):
        other.prepare(graph)


STORED = json.loads(json.dumps(asdict(ModelSpec.of(bare(), settings()).structure)))  # type: ignore[call-overload]


def test_stored_and_read() -> None:
    assert Structure.from_dict(STORED) == ModelSpec.of(bare(), settings()).structure


@pytest.mark.parametrize(
    "change",
    [
        {"features": ["shoe_size"] * len(STORED["features"])},
        {"features": STORED["features"][:1] * len(STORED["features"])},
        {"features": 3},
        {"features": [[]]},
        {"mean": []},
        {"factor": [float("nan")] * len(STORED["features"])},
        {"factor": ["1"] * len(STORED["features"])},
        {"positions": "gps"},
        {"positions": "none"},
        {"positions": []},
        {"dimensions": 10**9},
        {"dimensions": -1},
        {"dimensions": 2.0},
        {"position_factor": float("inf")},
        {"position_factor": None},
        {"seed": -1},
        {"seed": True},
        {"graph": None},
        {"graph": 7},
        {"check": [1.0]},
        {"extra": 1},
    ],
)
def test_damaged(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Structure.from_dict({**STORED, **change})


def test_a_damaged_run(tmp_path: Path) -> None:
    train(bare(), settings(max_epochs=1), out=tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    for wrong in (3, [], {"features": ["x"]}):
        record["model"]["structure"] = wrong
        (tmp_path / "run.json").write_text(json.dumps(record))
        with pytest.raises(CheckpointError, match=r"run\.json is damaged"):
            load_run(tmp_path)
