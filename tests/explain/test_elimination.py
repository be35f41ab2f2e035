"""Important edges: against the same elimination with masked edges, one after another."""

import pytest
import torch
from torch import Tensor
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from lgcn import LGCN
from lgcn.errors import UsageError
from lgcn.explain import NodeExplainer, important_edges
from lgcn.explain.elimination import CANDIDATES
from tests.conftest import make_graph


def eliminated(model: LGCN, x: Tensor, graph: object, edges: Tensor, start: list[int]) -> list[int]:
    """The edges in the order in which a network can do without them, by masked forward passes."""

    def chances(kept: list[int]) -> Tensor:
        mask = torch.zeros(edges.size(1))
        mask[kept] = 1
        set_masks(model, mask, edges, apply_sigmoid=False)
        scores = model(x, graph)[0].double()
        clear_masks(model)
        return scores.softmax(0)

    full = chances(list(range(edges.size(1))))
    left, order = list(start), []
    while len(left) > 1:
        harms = []
        for edge in left:
            found = chances([other for other in left if other != edge])
            harms.append(float((full * (full / found).log()).sum()))
        order.append(left.pop(harms.index(min(harms))))
    return [*order, *left]


@torch.no_grad()
def test_edges_go_in_the_order_in_which_the_network_can_do_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lgcn.explain.elimination.REMOVED", 1000)  # one at a time
    monkeypatch.setattr("lgcn.explain.elimination.CANDIDATES", 7)
    graph = make_graph(undirected=True)
    model = LGCN(5, 3, hidden_channels=8, num_layers=1, k=3, activation="relu").eval()
    with torch.enable_grad():
        explainer = NodeExplainer(model, graph)
        field, importance = important_edges(explainer, 4)
        (share,) = explainer.contributions(4).shares
    part = field.graph
    assert int(field.nodes[0]) == 4
    tried = (importance >= 1).nonzero().squeeze(1)
    strongest = share.by_edge.abs().argsort(descending=True)[:7]
    assert sorted(tried.tolist()) == sorted(strongest.tolist())
    expected = eliminated(model, part.features(), part, part.edge_index, strongest.tolist())
    assert tried[importance[tried].argsort()].tolist() == expected


def test_rounds_rank_every_candidate_and_leave_the_others_below() -> None:
    graph = make_graph(30, 0.3, undirected=True)
    model = LGCN(5, 3, hidden_channels=8, k=3).eval()
    _, importance = important_edges(NodeExplainer(model, graph), 0)
    top = importance[importance >= 1]
    assert sorted(top.tolist()) == list(range(1, CANDIDATES + 1))
    assert (importance >= 0).all()
    _, again = important_edges(NodeExplainer(model, graph), 0)
    assert torch.equal(again, importance)


def test_a_regression_has_no_important_edges() -> None:
    graph = make_graph(y=torch.rand(12))
    with pytest.raises(UsageError, match="one network that predicts classes"):
        important_edges(NodeExplainer(LGCN(5, 1).eval(), graph), 0)
