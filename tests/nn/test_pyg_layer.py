"""LGConv among PyG's tools: lazy sizes, pairs, copies, `to_hetero`."""

import copy
import pickle

import pytest
import torch
from torch import Tensor
from torch.nn import Conv1d, Module
from torch.nn.parameter import is_lazy
from torch_geometric.data import HeteroData
from torch_geometric.nn import MessagePassing, to_hetero

from lgcn import Graph, LGConv
from tests.conftest import make_graph


@pytest.mark.parametrize("in_channels", [-1, (-1, -1), (5, -1)])
@pytest.mark.parametrize("cnn", ["double", "single"])
def test_a_lazy_layer_takes_its_size_from_the_first_call(in_channels: object, cnn: str) -> None:
    graph = make_graph()
    conv = LGConv(in_channels, 3, k=4, cnn=cnn)
    torch.manual_seed(1)
    out = conv(graph.x, graph)
    plain = LGConv(5, 3, k=4, cnn=cnn)
    assert [p.shape for p in conv.parameters()] == [p.shape for p in plain.parameters()]
    plain.load_state_dict(conv.state_dict())
    assert torch.equal(plain(graph.x, graph), out)
    assert repr(conv) == "LGConv(5, 3, k=4)"
    assert str(conv.cnn) == str(plain.cnn)


def test_lazy_weights_are_glorot_and_are_drawn_again() -> None:
    graph, conv = make_graph(num_features=20), LGConv(-1, 10, k=8)
    assert repr(conv) == "LGConv(-1, 10, k=8)"
    conv.reset_parameters()
    assert all(is_lazy(p) for p in conv.parameters())
    conv(graph.x, graph)
    for _ in range(2):
        layer = conv.cnn[0]
        bound = (6 / ((layer.in_channels + layer.out_channels) * layer.kernel_size[0])) ** 0.5
        assert 0.9 * bound < layer.weight.abs().max() <= bound
        assert layer.bias.abs().max() == 0
        with torch.no_grad():
            layer.weight.fill_(100.0)
        conv.reset_parameters()


def test_an_optimiser_made_before_the_first_call_trains_a_lazy_layer() -> None:
    graph, conv = make_graph(), LGConv(-1, 3, k=2)
    parameters = list(conv.parameters())
    out = conv(graph.x, graph)
    out.square().sum().backward()
    assert all(p.grad is not None for p in parameters)


def test_lazy_layers_are_copied_pickled_saved_and_loaded() -> None:
    graph = make_graph()
    lazy, trained = LGConv(-1, 3, k=4), LGConv(5, 3, k=4)
    for other in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy)), copy.copy(lazy)):
        other = copy.deepcopy(other)
        other.load_state_dict(trained.state_dict())
        assert torch.equal(other(graph.x, graph), trained(graph.x, graph))
    assert all(is_lazy(p) for p in lazy.parameters())
    again = LGConv(-1, 3, k=4)
    again.load_state_dict(lazy.state_dict())
    assert again(graph.x, graph).shape == (12, 3)
    inside = torch.nn.ModuleList([LGConv(-1, 3, k=4)])
    inside.load_state_dict({f"0.{name}": value for name, value in trained.state_dict().items()})
    assert torch.equal(inside[0](graph.x, graph), trained(graph.x, graph))
    used = copy.deepcopy(trained)
    assert torch.equal(used(graph.x, graph), trained(graph.x, graph))


def test_a_lazy_layer_with_a_shared_kernel_or_a_cnn_of_yours() -> None:
    graph = make_graph()
    for cnn in ("shared", "depthwise"):
        assert LGConv(-1, 5, k=4, cnn=cnn)(graph.x, graph).shape == (12, 5)
    with pytest.raises(ValueError, match=r"equal in_channels \(5\) .* got 3"):
        LGConv(-1, 3, k=4, cnn="shared")(graph.x, graph)
    own = LGConv(-1, 3, k=4, cnn=Conv1d(5, 3, 5))
    assert own(graph.x, graph).shape == (12, 3)
    assert own.in_channels == 5


def test_pairs_of_sizes() -> None:
    source, own = torch.randn(6, 5), torch.randn(3, 5)
    edge_index = torch.tensor([[5, 0, 1, 4, 2], [0, 0, 0, 2, 2]])
    conv, plain = LGConv((5, 5), 2, k=2), LGConv(5, 2, k=2)
    plain.load_state_dict(conv.state_dict())
    assert conv.in_channels == 5
    assert torch.equal(conv((source, own), edge_index), plain((source, own), edge_index))
    assert LGConv((-1, -1), 2)((source, None), edge_index).shape == (3, 2)
    for make in (
        lambda: LGConv((5, 4), 2),
        lambda: LGConv((-1, -1), 2)((source, own[:, :4]), edge_index),
    ):
        with pytest.raises(ValueError, match=r"got 5 of source .* 4 of target .*Linear\(-1"):
            make()


def small_hetero() -> HeteroData:
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(6, 4), torch.randn(3, 4)
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 0, 1, 2, 2], [0, 1, 1, 3, 5]])
    data["paper", "by", "author"].edge_index = torch.tensor([[0, 1, 1, 3, 5], [0, 0, 1, 2, 2]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[1, 2, 3, 5], [0, 0, 2, 4]])
    return data


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = LGConv((-1, -1), 5, k=2)
        self.second = LGConv((5, 5), 3, k=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def test_to_hetero_is_one_layer_per_relation() -> None:
    data = small_hetero()
    model = to_hetero(Net(), data.metadata(), aggr="sum")
    out = model(data.x_dict, data.edge_index_dict)
    x = dict(data.x_dict)
    for layers in (model.first, model.second):
        assert len(layers) == 3
        new: dict[str, Tensor] = {}
        for (source, name, target), edge_index in data.edge_index_dict.items():
            conv = layers[f"{source}__{name}__{target}"]
            part = conv((x[source], x[target]), edge_index)
            new[target] = new[target] + part if target in new else part
        x = {kind: value.relu() for kind, value in new.items()} if layers is model.first else new
    for kind, expected in x.items():
        torch.testing.assert_close(out[kind], expected)
    weights = [conv.cnn[0].weight for conv in model.first.values()]
    assert not torch.equal(weights[0], weights[1])


def test_to_hetero_with_self_loops_is_refused_for_two_kinds_of_nodes() -> None:
    class Looped(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = LGConv((-1, -1), 5, k=2, self_loops=True)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    data = small_hetero()
    model = to_hetero(Looped(), data.metadata())
    with pytest.raises(ValueError, match="need one set of nodes, got a bipartite pair"):
        model(data.x_dict, data.edge_index_dict)


def test_other_message_passing_layers_do_not_change_ours() -> None:
    graph = make_graph()
    MessagePassing(aggr="mean")  # PyG then stores its propagate in the class that ours derive from
    conv = LGConv(5, 3, k=2)
    expected = conv(graph.x, graph)
    conv.explain = True
    conv.explain = None
    assert torch.equal(conv(graph.x, graph), expected)
    assert torch.equal(conv(graph.x, Graph.as_given(graph.edge_index, 12)), expected)
