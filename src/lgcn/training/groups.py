"""The settings in groups, with their types, limits, choices, descriptions and defaults.

The defaults are those for your own tables with few labels. `lgcn.training.presets` has other
values for other graphs. This module does not import torch, so that a mistake is reported at once.
"""

import sys
from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from lgcn.errors import UsageError
from lgcn.training.metric_names import FACTS, known_metric
from lgcn.utils.choices import READOUTS, Activation, ScoredNodes, StartNodes, readout_names
from lgcn.utils.limits import MAX_PARTS
from lgcn.utils.sizes import parse_memory

# Dense matrices of the size of the input that embedding=propagated keeps per view, and one more
# while it is computed.
PROPAGATED_MATRICES = 4
LARGEST_INT = 2**63 - 1  # the largest that torch takes

Int = Annotated[int, Field(le=LARGEST_INT)]
Rate = Annotated[float, Field(ge=0, lt=1)]


def _check_memory(text: str) -> str:
    parse_memory(text)
    return text


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def _yes_or_no(value: Any) -> Any:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _known_readout(text: str) -> str:
    readout_names(text)
    return text


StructuralFeatures = Annotated[Literal["auto", "yes", "no", "degree"], BeforeValidator(_yes_or_no)]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


class Group(BaseModel):
    """Settings that belong together. Each field has a type, limits, a default and a description."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _read_none(cls, value: Any, info: ValidationInfo) -> Any:
        """TOML has no null: the string "none" means None, or the choice "none" if there is one."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        # Also the choices of a Literal that is one of several types.
        allowed = [one for kind in get_args(annotation) for one in (kind, *_choices(kind))]
        if isinstance(value, str) and value.lower() == "none" and NoneType in allowed:
            return None
        return "none" if value is None and "none" in allowed else value

    @classmethod
    def build(cls, values: Mapping[str, Any]) -> Self:
        """The group with these values; raises UsageError, in one line, if one is wrong."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise UsageError(_in_words(cls, values, error)) from error

    @classmethod
    def wants(cls, name: str) -> str:
        """What a setting takes, such as ``a whole number of at least 1, or none``."""
        return _wants(cls.model_json_schema()["properties"][name])


def _in_words(group: type[Group], values: Mapping[str, Any], error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "value_error":  # raised by one of our own checks
        return str(first["ctx"]["error"])
    name = str(first["loc"][0])
    value = values[name]
    if isinstance(value, int) and value > LARGEST_INT:
        return f"{name} is too large, got {_shown(value)}"
    return f"{name} must be {group.wants(name)}, got {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > sys.float_info.max:  # too long for repr
        return "a number of hundreds of digits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _wants(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        kinds = [kind for kind in schema["anyOf"] if kind.get("type") != "null"]
        no_value = ", or none" if len(kinds) < len(schema["anyOf"]) else ""
        return f"{' or '.join(map(_wants, kinds))}{no_value}"
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _bounds(schema)
    if kind == "array":
        return f"a list whose items are each {_wants(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"a table whose values are each {_wants(schema['additionalProperties'])}"
    return {"boolean": "true or false", "string": "a string"}.get(str(kind), "a table of options")


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high, below = (schema.get(key) for key in ("minimum", "maximum", "exclusiveMaximum"))
    if below is not None:
        return f" from {low:g} to below {below:g}"
    if high not in (None, LARGEST_INT):
        return f" from {low:g} to {high:g}"
    return "" if low is None else f" of at least {low:g}"


class ModelSettings(Group):
    """The network: settings that all models share. Each model adds its own."""

    name: str = Field(description="the model")
    hidden_channels: Int = Field(128, ge=1, description="width of the hidden layers")
    num_layers: int = Field(2, ge=1, le=MAX_PARTS, description="number of layers")
    dropout: Rate = Field(0.5, description="dropout rate of each layer's input")
    input_scale: float | None = Field(
        1.0,
        ge=1e-9,
        description="factor of the input features (none: chosen so that a node's feature vector "
        "has length one)",
    )

    if TYPE_CHECKING:  # models have more fields

        def __getattr__(self, name: str) -> Any: ...

    @property
    def values_per_feature(self) -> int:
        """Values that training keeps per node and feature; ``training=auto`` depends on it."""
        return 9

    def work(self, nodes: int, entries: int) -> int:
        """Work of a training step; ``training=auto`` depends on it.

        The unit is a comparison of one feature along one entry of the adjacency. A value of a layer
        for a node, kept for the backward pass, costs about 15 of these
        (docs/evidence/performance.md).

        Args:
            nodes: Nodes of the graph.
            entries: Entries of its adjacency.
        """
        return self.num_layers * self.hidden_channels * (entries + 15 * nodes)

    @property
    def reads_edge_features(self) -> bool:
        """Whether the network learns from edge features, if the graph has them."""
        return False

    @property
    def takes_signed_weights(self) -> bool:
        """Whether edge weights may be negative: nothing divides by the root of their sum."""
        return False

    def input_values(self, features: int) -> int:
        """What `values_per_feature` leaves out, since it depends on the number of features."""
        return 0

    def input_work(self, entries: int, features: int) -> int:
        """What `work` leaves out, since it depends on the number of features."""
        return 0

    def options(self) -> dict[str, Any]:
        """The arguments of the network's class."""
        if self.input_scale is None:
            raise _unresolved("input_scale")
        return self.model_dump(exclude={"name"})


class LGCNSettings(ModelSettings):
    """The LGCN, see `lgcn.LGCN`."""

    name: str = Field("lgcn", description="the model")
    hidden_channels: Int = Field(128, ge=1, description="width of the embedding")
    lgcl_channels: Int = Field(
        32,
        ge=1,
        description="features that each LGCL adds (no effect with cnn=shared or depthwise)",
    )
    num_layers: int = Field(1, ge=0, le=MAX_PARTS, description="number of LGCLs")
    k: Int | None = Field(
        8,
        ge=1,
        description="values that an LGCL selects per feature (none: chosen by the degrees)",
    )
    embedding: Literal["gcn", "linear", "propagated"] = Field(
        "linear",
        description="kind of the embedding layer; propagated averages the input over neighbours "
        "first",
    )
    input_hops: int = Field(
        5, ge=0, le=MAX_PARTS, description="steps of propagation of embedding=propagated"
    )
    input_norm: Literal["batch", "none"] = Field(
        "batch", description="norms before and after embedding=propagated"
    )
    layer: Literal["lgcl", "gcn"] = Field(
        "lgcl", description="kind of the layers; gcn is the paper's ablation"
    )
    cnn: Literal["double", "single", "shared", "depthwise"] = Field(
        "shared", description="convolutions of an LGCL"
    )
    rank: Literal["normalized", "raw"] = Field("normalized", description="values that are ranked")
    self_loops: bool = Field(
        True, description="LGCLs select among a node's neighbours and the node itself"
    )
    zeros: Literal["compete", "pad"] = Field("pad", description="how zeros enter the ranking")
    mean: bool = Field(False, description="add the neighbours' mean to the k largest values")
    classifier: Literal["normalized", "sum", "none", "diffusion"] = Field(
        "diffusion", description="sum over neighbours before the classifier"
    )
    hops: int = Field(
        5,
        ge=0,
        le=MAX_PARTS,
        description="steps of propagation that classifier=diffusion averages",
    )
    dropout: Rate = Field(
        0.2, description="dropout rate of features (the paper prints keep rates instead)"
    )
    input_dropout: Rate | None = Field(
        0.0, description="dropout rate of input features (none: the same as dropout)"
    )
    input_scale: float | None = Field(
        None,
        ge=1e-9,
        description="factor of the input features (none: chosen so that a node's feature vector "
        "has length one)",
    )
    lgcl_dropout: Rate | None = Field(
        None, description="dropout rate of the values that LGCLs select (none: the same as dropout)"
    )
    node_dropout: Rate = Field(
        0.5,
        description="dropout rate of whole nodes' embeddings, or of whole nodes in the input with "
        "embedding=propagated",
    )
    layer_dropout: Rate = Field(0.5, description="dropout rate of all that an LGCL appends")
    adj_dropout: Rate = Field(0.0, description="dropout rate of edges")
    activation: Activation = Field("relu", description="non-linearity")
    batch_norm: Literal["none", "running", "batch"] = Field(
        "none", description="batch norm after each LGCL"
    )

    @property
    def values_per_feature(self) -> int:
        if self.k is None:
            raise _unresolved("k")
        return self.k + 1

    def work(self, nodes: int, entries: int) -> int:
        if self.k is None:
            raise _unresolved("k")
        width, total = self.hidden_channels, 0
        for _ in range(self.num_layers):
            # Sums over neighbours, such as the mean, cost half as much as a selection.
            total += width * (entries + self.mean * entries // 2)
            total += width * 15 * nodes * (self.k + 1 + self.mean)
            width += width if self.cnn in ("shared", "depthwise") else self.lgcl_channels
        sums = {"diffusion": self.hops, "none": 0}.get(self.classifier, 1)
        return total + sums * width * entries // 2

    def input_values(self, features: int) -> int:
        if self.embedding != "propagated":
            return 0
        return -(-PROPAGATED_MATRICES * features // self.hidden_channels)

    def input_work(self, entries: int, features: int) -> int:
        if self.embedding != "propagated":
            return 0
        return self.input_hops * features * entries // 2

    @property
    def averages(self) -> bool:
        """Whether it averages over several steps of propagation."""
        if self.embedding == "propagated" and self.input_hops > 0:
            return True
        return self.classifier == "diffusion" and self.hops > 0

    def options(self) -> dict[str, Any]:
        if self.k is None:
            raise _unresolved("k")
        return super().options()


class ResidualSettings(ModelSettings):
    """The deep residual network, see `lgcn.nn.residual.ResidualLGCN`."""

    name: str = Field("residual", description="the model")
    hidden_channels: Int = Field(64, ge=1, description="width of all layers")
    num_layers: int = Field(8, ge=0, le=MAX_PARTS, description="number of residual layers")
    aggregate: Literal["lgcl", "mean", "max", "sum", "gcn", "attention", "none"] = Field(
        "lgcl",
        description="what a layer makes of the neighbours: an LGCL, their mean (GraphSAGE), "
        "maximum or sum, their normalised sum (GCN), attention (GAT), or nothing (a multilayer "
        "perceptron)",
    )
    k: Int = Field(8, ge=1, description="values that an LGCL selects per feature")
    cnn: Literal["single", "depthwise"] = Field(
        "single",
        description="convolutions of an LGCL; depthwise is a linear map before it and one kernel "
        "per feature",
    )
    mean: bool = Field(True, description="add the neighbours' mean to the k largest values")
    lgcl_dropout: Rate = Field(0.0, description="dropout rate of the values that LGCLs select")
    heads: Int = Field(4, ge=1, description="heads of aggregate=attention")
    residual: bool = Field(True, description="add a linear map of a layer's input to its output")
    norm: Literal["batch", "layer", "none"] = Field("batch", description="norm in each layer")
    dropout: Rate = Field(0.2, description="dropout rate after each layer")
    input_dropout: Rate = Field(0.0, description="dropout rate of input features")
    input_scale: float | None = Field(
        None,
        ge=1e-9,
        description="factor of the input features (none: chosen so that a node's feature vector "
        "has length one)",
    )
    adj_dropout: Rate = Field(0.0, description="dropout rate of edges, or of the attention")
    recompute: bool = Field(
        False,
        description="LGCLs select again in the backward pass in place of keeping what they "
        "selected: less memory, and more time; no effect with adj_dropout, lgcl_dropout or edge "
        "features",
    )
    edge_features: Literal["auto", "none"] = Field(
        "auto",
        description="whether each layer learns a signed weight of every edge from its features "
        "(auto: if the graph has them)",
    )
    directions: Literal["in", "both"] = Field(
        "in",
        description="edges that a layer reads: those into a node, or, in a directed graph, also "
        "those out of it, by a second convolution",
    )

    @property
    def reads_edge_features(self) -> bool:
        return self.edge_features == "auto" and self.aggregate not in ("attention", "none")

    @property
    def takes_signed_weights(self) -> bool:
        return self.aggregate != "gcn"

    def options(self) -> dict[str, Any]:
        options = super().options()
        del options["edge_features"]  # the graph says how many there are
        return options

    @property
    def values_per_feature(self) -> int:
        # Layers are half as wide as those of the LGCN's defaults, which have at most three.
        drops = self.adj_dropout > 0 or self.lgcl_dropout > 0  # the grid is then kept all the same
        keeps_grid = self.aggregate == "lgcl" and (drops or not self.recompute)
        per_layer = self.k + 1 if keeps_grid else 4
        return self._convolutions * per_layer * max(1, self.num_layers // 4)

    @property
    def _convolutions(self) -> int:
        return 2 if self.directions == "both" else 1

    def work(self, nodes: int, entries: int) -> int:
        lgcl = self.aggregate == "lgcl"
        mean = lgcl and self.mean
        of_entry = 0 if self.aggregate == "none" else entries + mean * entries // 2
        of_node = 15 * nodes * (self.k + 1 + mean if lgcl else 1)
        return self.num_layers * self.hidden_channels * self._convolutions * (of_entry + of_node)


class GraphLGCNSettings(ModelSettings):
    """The LGCN for whole graphs, see `lgcn.GraphLGCN`."""

    name: str = Field("graph_lgcn", description="the model")
    hidden_channels: Int = Field(
        32, ge=1, description="width of the embedding and of the classifier's hidden layer"
    )
    lgcl_channels: Int = Field(32, ge=1, description="features that each LGCL adds")
    num_layers: int = Field(3, ge=0, le=MAX_PARTS, description="number of LGCLs")
    k: Int = Field(8, ge=1, description="values that an LGCL selects per feature")
    cnn: Literal["single", "double"] = Field("single", description="convolutions of an LGCL")
    rank: Literal["raw", "normalized"] = Field("raw", description="values that are ranked")
    self_loops: bool = Field(
        False, description="LGCLs select among a node's neighbours and the node itself"
    )
    zeros: Literal["pad", "compete"] = Field("pad", description="how zeros enter the ranking")
    append: Literal["none", "mean", "sum"] = Field(
        "sum", description="mean or sum over all neighbours, beside the k largest values"
    )
    activation: Activation = Field("relu", description="non-linearity")
    norm: Literal["batch", "layer", "none"] = Field(
        "batch", description="norm after each layer and in the classifier"
    )
    readout: Annotated[str, AfterValidator(_known_readout)] = Field(
        "sum+max",
        description=f"from nodes to the graph: {', '.join(READOUTS)}, or several joined with +",
    )
    readout_k: Int = Field(
        16, ge=1, description="values that readout=k_largest takes, or nodes that readout=sort does"
    )
    pooling: Literal["none", "topk", "sag", "cluster"] = Field(
        "none",
        description="what makes graphs smaller between LGCLs: Graph U-Nets' top-k pooling, SAGPool "
        "or pairs of neighbours",
    )
    ratio: float = Field(
        0.5, ge=0.001, le=1, description="share of nodes that pooling=topk and pooling=sag keep"
    )
    dropout: Rate = Field(0.5, description="dropout rate in the classifier")
    input_dropout: Rate = Field(0.0, description="dropout rate of input features")
    lgcl_dropout: Rate = Field(0.0, description="dropout rate of the values that LGCLs select")
    adj_dropout: Rate = Field(0.0, description="dropout rate of edges")

    @property
    def values_per_feature(self) -> int:
        return self.k + 1 + (self.append != "none")

    def work(self, nodes: int, entries: int) -> int:
        width, total = self.hidden_channels, 0
        appends = self.append != "none"
        for _ in range(self.num_layers):  # as those of the LGCN; pooling is not counted
            total += width * (entries + appends * entries // 2)
            total += width * 15 * nodes * (self.k + 1 + appends)
            width += self.lgcl_channels
        return total


class BoostingSettings(ModelSettings):
    """Gradient-boosted trees, see `lgcn.nn.boosted_trees.BoostedTrees`.

    Of the optimisation, ``lr`` is the factor of each tree, ``weight_decay`` the L2 factor of the
    leaves, and ``patience`` counts trees.
    """

    name: str = Field("boosting", description="the model")
    hidden_channels: Int = Field(
        128, ge=1, description="columns that more than 256 features are projected to"
    )
    raw_features: int = Field(
        256, ge=0, le=4096, description="up to this many own features are read unprojected"
    )
    num_layers: int = Field(
        2, ge=0, le=MAX_PARTS, description="hops over which neighbours are averaged"
    )
    trees: int = Field(200, ge=1, le=2000, description="trees per class, at most")
    leaves: int = Field(31, ge=2, le=255, description="leaves per tree, at most")
    dropout: Rate = Field(0.0, description="share of the features that a split does not consider")


def _unresolved(name: str) -> UsageError:
    return UsageError(
        f"{name} must be a number to build a model, got none: call settings.resolve(graph) first"
    )


class SamplingSettings(Group):
    """What a training step sees of the graph: section 3.4 of the paper."""

    training: Literal["subgraph", "whole", "auto"] = Field(
        "auto",
        description="train on sub-graphs or whole graphs (auto: whole, unless that needs much time "
        "or memory)",
    )
    max_nodes: Int | None = Field(2000, ge=1, description="nodes of a sub-graph, N_s")
    n_init: Int | None = Field(
        None, ge=1, description="start nodes, N_init (none: all labelled nodes, as far as they fit)"
    )
    max_expand: Int | None = Field(None, ge=1, description="new nodes per iteration, N_m")
    max_hops: Int | None = Field(
        None, ge=0, description="iterations of growth (the released program has 1)"
    )
    resample: bool = Field(True, description="select new sub-graphs in each epoch")
    subgraphs_per_epoch: Int | None = Field(
        None,
        ge=1,
        description="sub-graphs per epoch at most (none: until each training node has started one; "
        "training=auto limits them)",
    )
    subgraphs_per_batch: Int = Field(1, ge=1, description="sub-graphs in a mini-batch")
    graphs_per_batch: Int = Field(
        32, ge=1, description="graphs in a mini-batch, at most, where whole graphs are predicted"
    )
    nodes_per_batch: Int | None = Field(
        None,
        ge=1,
        description="nodes in a mini-batch of whole graphs, at most; a larger graph is a batch of "
        "its own (none: no limit)",
    )
    subgraphs_per_step: Int | None = Field(
        None,
        ge=1,
        description="mini-batches whose gradients are added up in a step; several workers share "
        "them (none: one per worker, or one per part of a partition)",
    )
    sampler: Literal["bfs", "clusters", "walks", "neighbors"] = Field(
        "bfs",
        description="sub-graphs by Algorithm 1, METIS, random walks, or sampled neighbours",
    )
    clusters: Int = Field(
        4, ge=1, description="clusters that form a sub-graph, with sampler=clusters"
    )
    halo: int = Field(
        0,
        ge=0,
        le=MAX_PARTS,
        description="hops of neighbours around clusters that are computed but not scored, with "
        "sampler=clusters",
    )
    fanout: Annotated[tuple[Annotated[Int, Field(ge=1)], ...], BeforeValidator(_as_tuple)] = Field(
        (25, 10),
        min_length=1,
        description="neighbours sampled in each hop from the roots, with sampler=neighbors",
    )
    with_replacement: bool = Field(
        False, description="sample neighbours with replacement, with sampler=neighbors"
    )
    start_nodes: StartNodes = Field(
        "uniform",
        description="how often a node starts a sub-graph; the loss is weighted to correct for it",
    )
    scored_nodes: ScoredNodes = Field(
        "all",
        description="training nodes of a sub-graph that count in the loss: all, its start nodes, "
        "or those whose neighbours are all in it",
    )
    keep_degree: bool = Field(
        False, description="normalise sub-graphs with the degrees of the whole graph"
    )


class OptimisationSettings(Group):
    """How the weights are learned: section 4.2 of the paper."""

    optimizer: Literal["adam", "nadam"] = Field(
        "adam", description="the optimiser; nadam is the released program's"
    )
    lr: float = Field(0.02, ge=0, description="learning rate")
    lr_schedule: Literal["constant", "cosine", "one_cycle"] = Field(
        "constant",
        description="the learning rate over max_epochs: constant; falling to zero (cosine); or "
        "rising to lr in the first fifth, then falling to zero (one_cycle)",
    )
    weight_decay: float = Field(
        0.002, ge=0, description="L2 factor lambda, on half the squared norm"
    )
    decay_biases: bool = Field(True, description="apply L2 to biases too")
    decay_layers: Literal["all", "first"] = Field("all", description="layers that L2 is applied to")
    views: int = Field(
        2, ge=1, le=MAX_PARTS, description="passes per step, each with its own dropout"
    )
    views_from: Int = Field(
        1, ge=1, description="epoch from which on steps have all views; before it, they have one"
    )
    agreement: float = Field(1.0, ge=0, description="weight of the views' agreement on all nodes")
    agreement_epochs: Int = Field(
        100, ge=1, description="epochs over which that weight grows from zero"
    )
    sharpen: float = Field(
        0.3, ge=0.1, description="temperature of the target that the views agree on"
    )
    class_weight: Literal["none", "balanced"] | dict[str, Annotated[float, Field(ge=0)]] = Field(
        "none",
        description="weight of each class in the loss: balanced (inverse to its number of training "
        "nodes), or a table of class names with numbers; others have 1",
    )
    max_epochs: Int = Field(300, ge=1, description="epochs at most")
    max_steps: Int | None = Field(None, ge=1, description="optimiser steps at most")
    patience: Int = Field(
        100, ge=1, description="epochs without progress on validation nodes before stopping"
    )
    early_stop: Literal["patience", "trend"] = Field(
        "patience",
        description="what progress is: a better validation score (patience); or a better smoothed "
        "score or loss, so that one lucky epoch does not count (trend)",
    )


class EvaluationSettings(Group):
    """How the model is scored during training."""

    evaluate_on: Literal["auto", "graph", "subgraph", "sampled", "neighbors"] = Field(
        "auto",
        description="what nodes are scored on (auto: the whole graph, or sampled sub-graphs if it "
        "is large)",
    )
    evaluate_every: Int = Field(1, ge=1, description="epochs between evaluations")
    baselines: bool = Field(
        True,
        description="compare the finished model with the majority class and with models of the "
        "features without the graph",
    )
    metric: Annotated[str, AfterValidator(known_metric)] = Field(
        "auto",
        description="what chooses the epoch and is reported: "
        f"{', '.join(FACTS)} (auto: accuracy, micro_f1 or r2, by the task)",
    )
    threshold: Literal["auto", "tuned"] | Annotated[float, Field(ge=0, le=1)] = Field(
        "auto",
        description="probability from which on the second of two classes is predicted, or tuned on "
        "validation nodes by the metric (auto: tuned if you name a metric that depends on it, "
        "else 0.5)",
    )


class HardwareSettings(Group):
    """Where and how fast it runs. Results stay the same, up to rounding."""

    device: str = Field("auto", description="auto, cpu or cuda")
    memory: Annotated[str, AfterValidator(_check_memory)] = Field(
        "1GB", description="memory for the scores of all nodes of a large graph"
    )
    num_workers: Int = Field(1, ge=0, description="threads that prepare sub-graphs")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="precision of training on a GPU (autocast)"
    )
    compile: bool = Field(False, description="compile the model with torch.compile")
    capture: bool = Field(
        True,
        description="on a GPU, replay training steps as CUDA graphs, where the model allows it",
    )
