"""GraphSAGE, with PyG's layer."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.aggr import LSTMAggregation

from lgcn.graph import Graph
from lgcn.graph.csr import take_rows
from lgcn.nn.k_largest_aggregation import KLargestAggregation
from lgcn.paper.baselines.inputs import apply_linear, dense, drop, glorot_linear
from lgcn.paper.baselines.sage import AGGREGATORS
from lgcn.paper.baselines.stack import Stack, widths
from lgcn.sampling.alternatives.neighbors import rows_of_layers

LINEAR = ("gcn", "mean")  # aggregators that are linear in the neighbours' features
# Width of the pooled layer and of the LSTM: the "small" sizes of the authors' program.
POOL_CHANNELS, LSTM_CHANNELS = 512, 128


class GraphSAGE(Stack):
    r"""The network of ["Inductive Representation Learning on Large
    Graphs"](https://arxiv.org/abs/1706.02216), as in its authors' program: layers of one aggregator
    with ReLU between them, a normalisation of each node's vector to length one, and a linear
    classifier. A layer has half of its features from the node and half from its neighbours, by
    `torch_geometric.nn.SAGEConv`:

    $$
    \mathbf{x}^{\prime}_i = \mathbf{W}_1 \mathbf{x}_i \, \Vert \,
    \mathbf{W}_2 \, \mathrm{aggregate}_{j \in \mathcal{N}(i)} \mathbf{x}_j
    $$

    The aggregators are ``"mean"``; ``"pool"``, the maximum of a layer with ReLU; ``"lstm"``, the
    last state of an LSTM over the neighbours, in the random order in which they are sampled; and
    ``"gcn"``, the mean over the node and its neighbours, without the node's own part.

    In a batch of sampled neighbours
    (`lgcn.sampling.alternatives.neighbors.SampledGraph`), each layer is computed only for
    the nodes that the next layer needs, and the output has the scores of the roots.

    Args:
        in_channels: Input features of a node.
        num_classes: Number of classes, or of labels where a node can have several.
        aggregator: One of the four. (default: ``"mean"``)
        hidden_channels: Width of the layers, both halves together. (default: 256)
        num_layers: Number of layers. (default: 2)
        dropout: Dropout rate of each layer's input. (default: 0)
        input_scale: Factor of the input features. (default: 1)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** class scores before softmax or sigmoid $(N, \mathrm{classes})$, or
          those of the roots if neighbours were sampled
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        aggregator: str = "mean",
        hidden_channels: int = 256,
        num_layers: int = 2,
        dropout: float = 0.0,
        input_scale: float = 1.0,
    ) -> None:
        if aggregator not in AGGREGATORS:
            raise ValueError(
                f"aggregator must be one of {', '.join(AGGREGATORS)}, got {aggregator!r}"
            )
        sizes = widths(in_channels, hidden_channels, num_layers, hidden_channels)
        layers = [SAGELayer(before, after, aggregator) for before, after in pairwise(sizes)]
        super().__init__(
            [*layers, glorot_linear(hidden_channels, num_classes)], dropout, input_scale=input_scale
        )
        self.aggregator = aggregator

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        self_loops = self.aggregator == "gcn"
        index, _ = graph.edges(self_loops=self_loops)
        rowptr = graph.adjacency(self_loops=self_loops).rowptr
        *layers, classifier = self.layers
        if self.aggregator not in LINEAR:
            x = dense(x)
        x = self.drop_input(x)
        for number, rows in enumerate(rows_of_layers(graph, len(layers))):
            if number > 0:
                x = drop(self.activation(x), self.dropout, self.training)
            edges = index if rows == graph.num_nodes else index[:, : int(rowptr[rows])]
            x = layers[number](x, edges, rows)
        x = drop(F.normalize(x, dim=1), self.dropout, self.training)
        scores: Tensor = classifier(x)
        return scores


class SAGELayer(Module):
    """A linear map of the node beside one of its aggregated neighbours, see `GraphSAGE`.

    Args:
        in_channels: Features of a node.
        out_channels: Output features of a node. With ``"gcn"``, all come from the aggregate.
        aggregator: One of the four.
    """

    def __init__(self, in_channels: int, out_channels: int, aggregator: str) -> None:
        super().__init__()
        half = out_channels if aggregator == "gcn" else out_channels // 2
        self.own = (
            None
            if aggregator == "gcn"
            else glorot_linear(in_channels, out_channels - half, bias=False)
        )
        self.project = None
        if aggregator == "pool":
            self.project = glorot_linear(in_channels, POOL_CHANNELS)
            # The maximum. Its backward pass takes a fifth of the time of PyG's.
            largest = KLargestAggregation(1)
            self.neighbors = SAGEConv(POOL_CHANNELS, half, largest, root_weight=False, bias=False)
        elif aggregator == "lstm":
            last_state = LastState(in_channels, LSTM_CHANNELS)
            self.neighbors = SAGEConv(
                LSTM_CHANNELS, half, last_state, root_weight=False, bias=False
            )
        else:
            self.neighbors = SAGEConv(in_channels, half, "mean", root_weight=False, bias=False)

    def reset_parameters(self) -> None:
        for module in (self.own, self.project, self.neighbors):
            if module is not None:
                module.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor, rows: int) -> Tensor:
        """The output features of the first ``rows`` nodes, which the edges lead to.

        With sparse features, the linear maps come first: the mean is then over a few features
        instead of thousands.
        """
        if x.layout == torch.sparse_csr:
            return self._of_sparse(x, edge_index, rows)
        sources = x if self.project is None else F.relu(self.project(x))
        out: Tensor = self.neighbors((sources, None), edge_index, size=(len(x), rows))
        return out if self.own is None else torch.cat([self.own(x[:rows]), out], dim=1)

    def _of_sparse(self, x: Tensor, edge_index: Tensor, rows: int) -> Tensor:
        sources = apply_linear(self.neighbors.lin_l, x)
        size = (len(x), rows)
        out: Tensor = self.neighbors.propagate(edge_index, x=(sources, None), size=size)
        if self.own is None:
            return out
        return torch.cat([apply_linear(self.own, take_rows(x, slice(rows))), out], dim=1)


class LastState(LSTMAggregation):  # type: ignore[misc]
    r"""The state of an LSTM after the last neighbour of a node; zeros if it has none.

    PyG's own aggregation pads all rows with zeros to the length of the longest one and reads the
    padding, so the result for a node depends on the degrees of others. Here each row ends with its
    last neighbour, and no memory is spent on padding.

    Shapes:
        - **input:** features $(E, C)$ of neighbours, and the node that each belongs to, in
          ascending order
        - **output:** $(\mathrm{nodes}, D)$
    """

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        max_num_elements: int | None = None,
    ) -> Tensor:
        self.assert_index_present(index)
        self.assert_sorted_index(index)
        assert index is not None
        length = torch.bincount(index, minlength=dim_size or 0)
        longest_first = length.argsort(descending=True, stable=True)
        rank = longest_first.argsort()
        place = (
            torch.arange(index.numel(), device=index.device) - (length.cumsum(0) - length)[index]
        )
        # All first neighbours, then all second ones, and so on, those of long rows in front.
        order = (place * rank.numel() + rank[index]).argsort()
        state = memory = x.new_zeros(length.numel(), self.out_channels)
        ended = []
        for step in x[order].split_with_sizes(torch.bincount(place).tolist()):
            ended.append(state[len(step) :])
            state, memory = torch.lstm_cell(
                step, (state[: len(step)], memory[: len(step)]), *self.lstm.all_weights[0]
            )
        return torch.cat([state, *reversed(ended)])[rank]
