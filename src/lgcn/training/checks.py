"""Checks before a training: does the graph have what it needs, and is ``k`` reasonable?"""

import math
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.graph.csr import CSR, row_sums
from lgcn.nn.lg_conv import MAX_GRID, LGConv
from lgcn.nn.propagated_embedding import PropagatedEmbedding
from lgcn.training.edge_advice import check_reads_edges, needs_directed, refuse_several
from lgcn.training.groups import PROPAGATED_MATRICES
from lgcn.training.metric_names import FACTS
from lgcn.training.metrics import METRICS
from lgcn.training.settings import Settings
from lgcn.training.structure import added
from lgcn.utils.choices import Unit
from lgcn.utils.memory import available_memory
from lgcn.utils.out_of_memory import OutOfMemory
from lgcn.utils.row_blocks import row_blocks
from lgcn.utils.sizes import format_memory

# Larger features are not read beforehand. NaN among them shows in the loss.
CHECKED_VALUES = 2**27
CHECKED_AT_ONCE = 2**20  # values per block: little of a mapped file is in memory at a time
LISTED = 5  # names that a message lists
USUAL_K = 32  # a k up to this is not checked
SMALLEST = torch.finfo(torch.float32).tiny  # smaller numbers lose digits, and 1 / x overflows
SUMMED = 1e25  # weights below it have finite sums


def check_trainable(graph: Graph, settings: Settings | None = None) -> None:
    """Raises UsageError if the graph lacks something that training needs.

    Args:
        graph: The graph as the user gave it.
        settings: Their ``structural_features`` and ``positions`` can replace features.
            (default: features are needed)
    """
    if graph.num_features == 0 and (settings is None or added(graph, settings) == (False, "none")):
        raise UsageError(
            f"{graph.name} has no features (x) to learn from"
            + (
                ", and no edges to make some from"
                if graph.num_edges == 0
                else "; structural_features=yes makes some from its edges"
            )
        )
    if graph.num_features and is_read(graph):
        _check_features(graph)
    _check_weights(graph, settings)
    if settings is not None:
        _check_edge_features(graph, settings)
        _check_directions(graph, settings)
    check_labelled(graph)


def check_trainable_graphs(graphs: GraphSet, settings: Settings) -> None:
    """Raises UsageError if whole graphs lack something that training needs.

    Args:
        graphs: The graphs as the user gave them.
        settings: Their ``structural_features`` can replace features.
    """
    graph = graphs.graph
    if settings.positions not in ("auto", "none"):
        raise UsageError(
            f"positions={settings.positions} is for one graph: coordinates do not mean the same in "
            "several. Use positions=none"
        )
    check_labelled(graphs.targets, "graph")
    if graph.num_nodes == 0:
        raise UsageError(f"the graphs of {graphs.name} have no nodes to learn from")
    if graphs.num_features == 0 and not added(graph, settings)[0]:
        raise UsageError(
            f"the nodes of {graphs.name} have no features (x) to learn from"
            + (
                ", and no edges to make some from"
                if graph.num_edges == 0
                else "; structural_features=yes makes some from the edges"
            )
        )
    if graphs.num_features and is_read(graph):
        _check_features(graph)
    _check_weights(graph, settings)
    _check_edge_features(graph, settings)


def check_labelled(graph: Graph, unit: Unit = "node") -> None:
    """Raises UsageError if labels, splits or weights do not allow training.

    Args:
        graph: The nodes; or a graph without edges whose nodes stand for whole graphs.
        unit: What its nodes are. (default: ``"node"``)
    """
    if graph.y is None:
        raise UsageError(f"{graph.name} has no labels (y) to learn from")
    for split in ("train", "val", "test"):
        mask = graph.mask(split)
        if mask is None or not _any(mask):
            if split == "test":
                continue
            raise UsageError(
                f"{graph.name} has no {split} {unit}s: {split}_mask is empty. Label more {unit}s, "
                f"put {split!r} into the split column of some labelled rows, or raise the share of "
                f"validation {unit}s, for example val=0.2"
            )
        if not graph.multi_label and _has_unlabelled(graph.y, mask):
            unknown = "NaN" if graph.task == "regression" else "y < 0"
            raise UsageError(
                f"{split}_mask of {graph.name} has {unit}s without a label ({unknown})"
            )
    if graph.task == "regression":
        _check_targets(graph)
    _check_sample_weight(graph)


def check_metric(
    graph: Graph, evaluated: Sequence[Graph], metric: str, unit: Unit = "node"
) -> None:
    """Raises UsageError if the validation nodes cannot be scored; warns of classes without any.

    Args:
        graph: The graph of the training.
        evaluated: The graphs that are scored after an epoch.
        metric: Name of the metric.
        unit: What its nodes stand for. (default: ``"node"``)
    """
    masks = [(part, part.val_mask) for part in evaluated if part.val_mask is not None]
    parts = [part.y[mask].cpu() for part, mask in masks if part.y is not None]
    assert graph.y is not None
    assert graph.train_mask is not None
    names: Sequence[str] = ()
    if graph.task != "regression":
        names = graph.label_names or [str(number) for number in range(graph.num_classes)]
    wanted: Sequence[int] = range(len(names))
    if graph.task == "classification":
        wanted = torch.unique(graph.y[graph.train_mask]).tolist()
    check_labels(torch.cat(parts), wanted, names, metric, unit)


def check_labels(
    y: Tensor, wanted: Sequence[int], names: Sequence[str], metric: str, unit: Unit = "node"
) -> None:
    """Raises UsageError if nodes with these labels cannot be scored; warns of absent classes.

    Args:
        y: The labels of the validation nodes.
        wanted: The classes that training nodes have.
        names: The names of all classes or labels.
        metric: Name of the metric.
        unit: What has labels. (default: ``"node"``)
    """
    remedy = (
        f"Label more {unit}s, raise val or put 'val' into the split column of some, or choose "
        "another metric"
    )
    if metric == "r2" and len(torch.unique(y)) < 2:
        raise UsageError(
            f"metric=r2 needs validation {unit}s with different targets, got {len(y)} with one "
            f"target. {remedy}, such as metric=rmse"
        )
    if not FACTS[metric].needs_classes:
        return
    if y.dim() == 2:
        there = [j for j in range(y.size(1)) if bool((y[:, j] > 0.5).any())]
    else:
        there = torch.unique(y).tolist()
    absent = [str(names[j]) for j in wanted if j not in there]
    noun = "label" if y.dim() == 2 else "class"
    no_scores = torch.zeros(len(y), len(names))
    one_class = y.dim() == 1 and len(there) < 2
    if one_class or math.isnan(METRICS[metric](no_scores, y)):
        which = f"the {noun} {listed(absent)}" if absent else f"a second {noun}"
        raise UsageError(
            f"metric={metric} cannot be computed: there is no validation {unit} of {which}. "
            f"{remedy}"
        )
    if absent:
        warnings.warn(
            f"metric={metric} says nothing about the {noun} {listed(absent)}, of which there is no "
            f"validation {unit}. {remedy}",
            stacklevel=3,
        )


def check_k(graph: Graph, settings: Settings, model: Module, device: torch.device) -> None:
    """Warns if ``k`` is far larger than all degrees; raises OutOfMemory if it does not fit.

    Args:
        graph, settings, device: Those of the training.
        model: The model. Its weights need shapes, but no values.
    """
    _check_propagated(graph, settings, model, device)
    layers = [layer for layer in model.modules() if isinstance(layer, LGConv)]
    if not layers:
        return
    first, k = layers[0], layers[0].k
    keeps = [
        name
        for name, holds in (
            ("lgcl_dropout", first.dropout > 0),
            ("adj_dropout", first.adj_dropout > 0),
            ("edge features", first.edge_factor is not None),
        )
        if holds
    ]
    if first.recompute and keeps:
        warnings.warn(
            f"recompute=True has no effect with {' and '.join(keeps)}: LGCLs keep what they "
            "selected all the same",
            stacklevel=3,
        )
    if k <= USUAL_K:
        return
    largest = int(graph.rowptr.diff().max()) + first.self_loops if graph.num_nodes else 0
    nodes, sampling = _nodes_of_a_step(graph, settings), settings.sampling
    # A lower bound: at least the grid of the first LGCL is kept for the backward pass, or some of
    # it at a time.
    needed = 4 * first.grid_values(nodes) * settings.optimisation.views
    if first.recompute and not keeps:
        needed = 4 * min(MAX_GRID, first.grid_values(nodes))
    available = available_memory() if device.type == "cpu" else None
    padding = f"no node of {graph.name} has more than {largest} values to select from"
    if available is not None and needed > available:
        less = "a smaller max_nodes" if sampling.training == "subgraph" else "training=subgraph"
        raise OutOfMemory(
            f"not enough memory for k={k}: the values selected for {nodes} nodes take at least "
            f"{format_memory(needed)}, and {format_memory(available)} are available. "
            + (f"Use a smaller k: {padding}" if k > largest else f"Use a smaller k, or {less}")
        )
    if k > 2 * largest:
        warnings.warn(
            f"k={k} is far too large: {padding}, the rest is filled with zeros. "
            f"k={max(largest, 1)} selects the same values in less time and memory",
            stacklevel=3,
        )


def _check_propagated(
    graph: Graph, settings: Settings, model: Module, device: torch.device
) -> None:
    """Raises OutOfMemory if the dense copies of propagated features do not fit."""
    first = getattr(model, "embedding", None)
    available = available_memory() if device.type == "cpu" else None
    if not isinstance(first, PropagatedEmbedding) or available is None:
        return
    nodes, views = _nodes_of_a_step(graph, settings), settings.optimisation.views
    # A lower bound: the last view also has the copy that it propagates.
    needed = 4 * nodes * first.in_channels * (1 + (PROPAGATED_MATRICES - 1) * views)
    if needed > available:
        less = "fewer views"
        less += "" if settings.sampling.training == "subgraph" else ", training=subgraph"
        raise OutOfMemory(
            f"not enough memory for embedding=propagated: {first.in_channels} features of {nodes} "
            f"nodes, dense and in {views} views, take at least {format_memory(needed)}, and "
            f"{format_memory(available)} are available. Use {less}, or embedding=linear"
        )


def _nodes_of_a_step(graph: Graph, settings: Settings) -> int:
    """The most nodes that a training step computes."""
    nodes = graph.num_nodes if graph.ptr is None else int(graph.ptr.diff().max())
    sampling = settings.sampling
    if sampling.training == "subgraph" and sampling.max_nodes is not None:
        nodes = min(nodes, sampling.max_nodes * sampling.subgraphs_per_batch)
    return nodes


def is_read(graph: Graph) -> bool:
    """Whether all features are checked beforehand."""
    assert graph.x is not None
    values = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
    return values.numel() <= CHECKED_VALUES


def value_range(x: Tensor) -> tuple[float, float]:
    """The smallest and the largest of all values and 0; NaN if there is one."""
    values = (x.values() if x.layout == torch.sparse_csr else x).detach()
    width = max(1, values[:1].numel())
    low = high = 0.0
    for start, stop in row_blocks(len(values), CHECKED_AT_ONCE // width):
        block = values[start:stop]
        if block.numel() == 0:
            continue
        smallest, largest = (float(number) for number in torch.aminmax(block))
        if math.isnan(smallest):
            return smallest, largest
        low, high = min(low, smallest), max(high, largest)
    return low, high


def _check_features(graph: Graph) -> None:
    assert graph.x is not None
    if not graph.x.is_floating_point():
        return
    low, high = value_range(graph.x)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError(f"the features (x) of {graph.name} must be finite, some are NaN or inf")
    if 0 < max(-low, high) < SMALLEST and graph.feature_scale is None:
        raise UsageError(
            f"the features (x) of {graph.name} are too small for float32, at most "
            f"{max(-low, high):.2g}: multiply them so that they are about 1"
        )


def check_several(graph: Graph, settings: Settings) -> None:
    """Raises UsageError if a graph has what few of the networks of a portfolio read."""
    what = ""
    if graph.edge_attr is not None:
        what = f"the edge features (edge_attr) of {graph.name}"
    elif graph.edge_weight is not None and value_range(graph.edge_weight)[0] < 0:
        what = f"the negative edge weights of {graph.name}"
    elif getattr(settings.model, "directions", "in") == "both":
        what = "directions=both"
    if what:
        raise refuse_several(what)


def check_one_direction(settings: Settings) -> None:
    """Raises UsageError if a network reads both directions, of which a graph in parts has one."""
    if getattr(settings.model, "directions", "in") == "both":
        raise UsageError(
            "directions=both needs the graph in one piece, got a graph in parts, which hold the "
            "edges into their nodes alone: use the graph store, or train with directions=in"
        )


def _check_edge_features(graph: Graph, settings: Settings) -> None:
    attr, model = graph.edge_attr, settings.model
    if attr is None or getattr(model, "edge_features", None) == "none":
        return
    what = f"the edge features (edge_attr) of {graph.name}"
    check_reads_edges(model, what)
    if attr.size(1) == 0:
        raise UsageError(f"{what} must have at least one column, got none: use edge_attr=None")
    if attr.numel() <= CHECKED_VALUES and not all(map(math.isfinite, value_range(attr))):
        raise UsageError(f"{what} must be finite, some are NaN or inf")


def _check_directions(graph: Graph, settings: Settings) -> None:
    if getattr(settings.model, "directions", "in") != "both":
        return
    for name, value in (
        ("sampler", settings.sampling.sampler),
        ("evaluate_on", settings.evaluation.evaluate_on),
    ):
        if value == "neighbors":
            raise UsageError(
                f"directions=both cannot go with {name}=neighbors, which samples the edges into a "
                f"node alone: use another {name}"
            )
    if settings.sampling.keep_degree and settings.model.aggregate == "gcn":
        raise UsageError(
            "directions=both cannot go with keep_degree=true and aggregate=gcn: a sub-graph keeps "
            "the degrees of one direction alone. Use keep_degree=false"
        )
    turned = graph.reversed()
    again = turned.reversed()  # the graph itself, with sorted rows
    parts = ("rowptr", "col", "edge_weight", "edge_attr")
    pairs = [(getattr(turned, part), getattr(again, part)) for part in parts]
    if all(one is None or torch.equal(one, other) for one, other in pairs):
        raise needs_directed(graph.name)


def _check_weights(graph: Graph, settings: Settings | None) -> None:
    """The normalisation divides by square roots of sums of weights."""
    weight = graph.edge_weight
    if weight is None or weight.numel() == 0 or weight.numel() > CHECKED_VALUES:
        return
    low, high = value_range(weight)
    what = f"the edge weights (edge_weight) of {graph.name}"
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError(f"{what} must be finite, some are NaN or inf")
    if low < 0 and (settings is None or not settings.model.takes_signed_weights):
        raise UsageError(
            f"{what} must not be negative, the smallest is {low:.2g}: the normalisation divides by "
            "the square root of their sum. Take absolute values, omit weight_column, or use "
            "model=residual with an aggregate other than gcn"
        )
    if 0 < high < SMALLEST:
        raise UsageError(
            f"{what} are too small for float32, at most {high:.2g}: multiply them so that they "
            "are about 1"
        )
    if high > SUMMED and bool(
        row_sums(CSR(graph.rowptr, graph.col, weight.detach())).isinf().any()
    ):
        raise UsageError(
            f"{what} are too large for float32, up to {high:.2g}: their sum over the neighbours of "
            "a node is infinite; divide them so that they are about 1"
        )


def _check_targets(graph: Graph) -> None:
    """Of a regression."""
    assert graph.y is not None
    assert graph.train_mask is not None
    y = graph.y.detach()
    if bool(y.isinf().any()):
        raise UsageError(f"the targets (y) of {graph.name} must be finite, some are inf")
    targets = y[graph.train_mask].double()
    low, high = float(targets.min()), float(targets.max())
    if low == high:
        raise UsageError(
            f"all training nodes of {graph.name} have the target {low:g}: there is nothing to "
            "learn. Choose another label column, or label nodes with other targets"
        )
    if not math.isfinite(float(targets.var())) or float(targets.std()) == 0:
        raise UsageError(
            f"the targets (y) of {graph.name} range from {low:g} to {high:g}, which is beyond what "
            "can be computed with. Divide them so that they are about 1"
        )


def _check_sample_weight(graph: Graph) -> None:
    weight = graph.sample_weight
    if weight is None:
        return
    assert graph.train_mask is not None
    what = f"the sample weights (sample_weight) of {graph.name}"
    weight = weight.detach()[graph.train_mask]
    if not bool(torch.isfinite(weight).all()):
        raise UsageError(f"{what} must be finite for all training nodes, some are NaN or inf")
    if bool((weight < 0).any()):
        raise UsageError(f"{what} must not be negative, the smallest is {float(weight.min()):g}")
    if not float(weight.double().sum()) > 0:
        raise UsageError(
            f"{what} must not sum to zero: all training nodes have weight 0. Give some a weight "
            "above 0"
        )


def _has_unlabelled(y: Tensor, mask: Tensor) -> bool:
    def unknown(part: Tensor) -> Tensor:
        return part.isnan() if part.is_floating_point() else part < 0

    blocks = row_blocks(len(y), CHECKED_AT_ONCE)
    return any(bool((unknown(y[start:stop]) & mask[start:stop]).any()) for start, stop in blocks)


def _any(mask: Tensor | None) -> bool:
    return mask is not None and bool(mask.any())


def listed(names: Sequence[str]) -> str:
    """Some names for a message."""
    more = len(names) - LISTED
    text = ", ".join(repr(name) for name in names[:LISTED])
    return f"{text} and {more} more" if more > 0 else text
