"""GIN against PyG's network, with the same weights."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import global_add_pool, global_mean_pool, models

from lgcn.paper.baselines.gin.network import GIN

from .checks import parameters
from .whole_graphs import as_pyg, features, in_use, some_batch

H, LAYERS = 6, 3


def pygs(ours: GIN, train_eps: bool) -> models.GIN:
    """PyG's network, which starts after the first perceptron and returns all levels."""
    theirs = models.GIN(H, H, LAYERS, norm="batch_norm", jk="cat", train_eps=train_eps)
    theirs.lin = nn.Identity()
    for conv, norm, own in zip(theirs.convs, theirs.norms, ours.convs, strict=True):
        conv.eps.data.copy_(own.eps)
        first, first_norm, _, second, second_norm, _ = own.nn
        conv.nn.lins[0].load_state_dict(first.linear.state_dict())
        conv.nn.lins[1].load_state_dict(second.linear.state_dict())
        conv.nn.norms[0].module.load_state_dict(first_norm.state_dict())
        norm.module.load_state_dict(second_norm.state_dict())
    return theirs.eval()


@pytest.mark.parametrize("readout", ["sum", "mean"])
@pytest.mark.parametrize("train_eps", [True, False])
def test_it_equals_pygs_network(readout: str, train_eps: bool) -> None:
    graph = some_batch(4, 1, 7, 5)
    model = in_use(
        GIN(5, 3, hidden_channels=H, num_layers=LAYERS, readout=readout, train_eps=train_eps)
    )
    assert isinstance(model, GIN)
    for number, conv in enumerate(model.convs):
        if train_eps:
            conv.eps.data.fill_(number + 0.5)
    batch = as_pyg(graph)
    first, first_norm, _, second, second_norm, _ = model.first
    h = first_norm(first.linear(batch.x)).relu()
    h = second_norm(second.linear(h)).relu()
    levels = torch.cat([h, pygs(model, train_eps)(h, batch.edge_index)], dim=1)
    pool = global_add_pool if readout == "sum" else global_mean_pool
    pooled = pool(levels, batch.batch)
    torch.testing.assert_close(model.embed(features(graph), graph), pooled)
    scores = sum(
        linear(pooled[:, H * level : H * (level + 1)])
        for level, linear in enumerate(model.classifier.linears)
    )
    torch.testing.assert_close(model(features(graph), graph), scores)


def test_the_weight_of_the_node_itself_is_learned_or_fixed() -> None:
    learned, fixed = (GIN(5, 3, train_eps=choice) for choice in (True, False))
    assert parameters(learned) - parameters(fixed) == 4
    assert [float(conv.eps) for conv in fixed.convs] == [0.0] * 4
    block = 2 * 64 + 64 * 64 + 64 + 2 * 64  # a norm, the second linear map and its norm
    assert parameters(fixed.first) == 5 * 64 + 64 + block
    classifiers = 5 * (64 * 3 + 3)
    assert parameters(fixed) == 5 * 64 + 64 + block + 4 * (64 * 64 + 64 + block) + classifiers


def test_scores_of_levels_are_dropped() -> None:
    model = GIN(5, 3, dropout=0.5, num_layers=1)
    level = torch.ones(200, 64)
    out = model.classifier(torch.cat([level, level], dim=1))
    both = torch.stack([linear(level[0]) for linear in model.classifier.linears])
    possible = [2 * (a * both[0, 0] + b * both[1, 0]) for a in (0, 1) for b in (0, 1)]
    found = (out[:, :1] - torch.stack(possible)).abs().min(1)
    assert found.values.max() < 1e-5
    assert set(found.indices.tolist()) == {0, 1, 2, 3}


def test_an_unknown_readout_is_named() -> None:
    with pytest.raises(ValueError, match="readout must be one of sum, mean, got 'max'"):
        GIN(5, 3, readout="max")
