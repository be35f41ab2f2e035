"""What the tests of all baselines ask of them."""

from pathlib import Path
from typing import Any

import torch
from torch.nn import Module

from lgcn import Graph, load_dataset
from lgcn.inference import predict
from lgcn.training import Run, Settings, train


def parameters(model: Module) -> int:
    return sum(p.numel() for p in model.parameters())


def sparse_features_equal_dense_ones(model: Module, graph: Graph) -> None:
    """In the scores and in the gradients of all weights, in which single precision would tell
    apart the orders of the sums."""
    assert graph.x is not None
    model.double()
    x = (graph.x * (graph.x > 0)).double()
    results = []
    for features in (x, x.to_sparse_csr()):
        model.zero_grad()
        out = model.eval()(features, graph)
        out.square().sum().backward()
        results.append([out, *[p.grad.clone() for p in model.parameters()]])
    for dense, sparse in zip(*results, strict=True):
        torch.testing.assert_close(sparse, dense)


def a_reset_draws_all_weights(model: Module) -> bool:
    """Whether every weight is drawn anew, the same by the same seed."""
    torch.manual_seed(1)
    model.reset_parameters()  # type: ignore[operator]
    first = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(7.0)
    torch.manual_seed(1)
    model.reset_parameters()  # type: ignore[operator]
    return all(
        torch.equal(p, expected) for p, expected in zip(model.parameters(), first, strict=True)
    )


def trained_and_loaded(folder: Path, **settings: Any) -> dict[str, Any]:
    """Trains on a small graph, loads the run, and predicts with it; the record."""
    graph = load_dataset(
        "synthetic",
        num_nodes=200,
        num_classes=3,
        num_features=8,
        noise=1.0,
        labels_per_class=10,
        num_val=60,
    )
    given = {"hidden_channels": 8, "lr": 0.02, "max_epochs": 40, "num_workers": 0, **settings}
    config = Settings.create(dataset="synthetic", **given)
    result = train(graph, config, out=folder / "run")
    loaded, loaded_config, _ = Run(folder / "run").load_model()
    assert type(loaded) is type(result.model)
    assert loaded_config.model.name == config.model.name
    scores = predict(loaded, graph)
    assert scores.shape == (200, 3)
    # On some CPUs an LSTM's last bits depend on how its weights lie in memory.
    torch.testing.assert_close(scores, predict(result.model, graph))
    assert result.record["parameters"] == parameters(loaded)
    return result.record
