"""All settings of a run with their defaults: the one place where defaults live.

Configuration files, ``--set`` flags and keyword arguments all come through :meth:`Config.create`.
"""

import difflib
import inspect
import sys
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.training.recipes import default_recipe, recipe_settings
from lgcn.utils.choices import ACTIVATIONS, AGGREGATORS, MODELS, START_NODES
from lgcn.utils.sizes import parse_memory

if TYPE_CHECKING:
    from lgcn.graph import Graph

# training=auto takes the whole graph up to so many selected values a feature, nodes x (k + 1). Each
# LGCL and view keeps that many numbers for every feature until the backward pass: at the limit, the
# defaults for own data take 5 GB with few labels and 10 GB with many (benchmarks/fit_memory.py).
# Sub-graphs can cost accuracy, on wordnet31, which is half as large, four points of 54.
WHOLE_GRAPH_VALUES = 2_000_000
# evaluate_on=auto takes it up to so many: no backward pass needs them, but an epoch should not wait
# seconds for its scores.
EVALUATED_VALUES = 4_000_000
# labels=auto calls them many from so many training nodes a class on.
MANY_LABELS = 400
LARGEST_INT = 2**63 - 1  # that torch takes


def _choice(default: str, *choices: str, doc: str) -> Any:
    return field(default=default, metadata={"choices": choices, "doc": doc})


def _number(default: Any, low: float, high: float | None = None, *, doc: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "doc": doc})


def _flag(default: bool, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Config:
    """The settings of a run. See :class:`lgcn.LGCN` and :class:`lgcn.SubgraphLoader` for most."""

    dataset: str = field(default="digits", metadata={"doc": "data set, by name or path"})
    dataset_options: Mapping[str, Any] = field(
        default_factory=dict, metadata={"doc": "options of the data set's loader"}
    )
    recipe: str = field(
        default="default", metadata={"doc": "settings below those that are given, see docs"}
    )
    labels: str = _choice(
        "auto",
        "auto",
        "few",
        "many",
        doc=f"which settings of the recipe, for few or many labels (auto: many are {MANY_LABELS} "
        "training nodes a class; and where neighbours are seldom of one class)",
    )
    seed: int = _number(0, 0, doc="of weights, dropout and sub-graphs")
    device: str = field(default="auto", metadata={"doc": "auto, cpu or cuda"})

    # The network: paper section 4.2, with the readings that train (docs/fidelity.md).
    model: str = _choice("lgcn", *MODELS, doc="the LGCN, or a system that it is compared with")
    hidden_channels: int = _number(32, 1, doc="width of the embedding")
    lgcl_channels: int = _number(8, 1, doc="features that each LGCL adds")
    num_layers: int = _number(2, 0, doc="number of LGCLs, or of all layers of another model")
    k: int | None = _number(
        8, 1, doc="values that an LGCL selects for each feature (none: chosen by the degrees)"
    )
    embedding: str = _choice("gcn", "gcn", "linear", doc="kind of the embedding layer")
    layer: str = _choice("lgcl", "lgcl", "gcn", doc="gcn is the paper's ablation")
    cnn: str = _choice("double", "double", "single", "shared", doc="convolutions of an LGCL")
    rank: str = _choice("normalized", "normalized", "raw", doc="values that are ranked")
    self_loops: bool = _flag(True, "LGCLs select among a node's neighbours and itself")
    zeros: str = _choice("compete", "compete", "pad", doc="how zeros enter the ranking")
    mean: bool = _flag(False, "LGCLs have the neighbours' mean beside the k largest")
    classifier: str = _choice(
        "normalized",
        "normalized",
        "sum",
        "none",
        "diffusion",
        doc="sum over neighbours before the classifier",
    )
    hops: int = _number(8, 0, doc="steps of propagation that classifier=diffusion averages")
    dropout: float = _number(0.84, 0, 1, doc="dropout RATE of features (the paper prints 0.16)")
    input_dropout: float | None = _number(
        None, 0, 1, doc="dropout RATE of input features (none: as dropout)"
    )
    input_scale: float | None = _number(
        1.0, 1e-9, doc="factor of input features (none: such that a node's have length one)"
    )
    node_dropout: float = _number(0.0, 0, 1, doc="dropout RATE of whole nodes' embeddings")
    layer_dropout: float = _number(0.0, 0, 1, doc="dropout RATE of all that an LGCL appends")
    adj_dropout: float = _number(0.001, 0, 1, doc="dropout RATE of edges (the paper prints 0.999)")
    activation: str = _choice("none", *ACTIVATIONS, doc="non-linearity")
    batch_norm: str = _choice("none", "none", "running", "batch", doc="after each LGCL")
    order: int = _number(2, 0, doc="of the polynomials, in model=chebyshev")
    heads: int = _number(8, 1, doc="of attention, in model=gat")
    out_heads: int = _number(1, 1, doc="of attention in the last layer, in model=gat")
    alpha: float = _number(0.5, 0, 1, doc="share of the first layer in each, in model=gcnii")
    theta: float = _number(1.0, 0, doc="strength of the layers' maps, in model=gcnii")
    aggregator: str = _choice("mean", *AGGREGATORS, doc="in model=sage")

    # Sub-graph training: section 3.4.
    training: str = _choice(
        "subgraph",
        "subgraph",
        "whole",
        "auto",
        doc="sub-graphs or whole graphs (auto: whole while nodes x (k + 1) is at most 2 million)",
    )
    max_nodes: int | None = _number(2000, 1, doc="N_s, nodes of a sub-graph")
    n_init: int | None = _number(None, 1, doc="N_init, start nodes (none: all labelled, as fits)")
    max_expand: int | None = _number(None, 1, doc="N_m, new nodes an iteration")
    max_hops: int | None = _number(None, 0, doc="iterations of growth (released program: 1)")
    resample: bool = _flag(True, "select new sub-graphs in each epoch")
    subgraphs_per_batch: int = _number(1, 1, doc="sub-graphs in a mini-batch")
    sampler: str = _choice(
        "bfs",
        "bfs",
        "clusters",
        "walks",
        "neighbors",
        doc="sub-graphs of Algorithm 1, METIS, random walks, or GraphSAGE's sampled neighbours",
    )
    fanout: tuple[int, ...] = field(
        default=(25, 10),
        metadata={"doc": "neighbours sampled in each hop from the roots, in sampler=neighbors"},
    )
    with_replacement: bool = _flag(
        False, "sample neighbours with replacement, in sampler=neighbors"
    )
    start_nodes: str = _choice(
        "uniform", *START_NODES, doc="how often a node starts a sub-graph; the loss makes up for it"
    )
    keep_degree: bool = _flag(True, "normalise with the degrees of the whole graph")
    num_workers: int = _number(1, 0, doc="threads that prepare sub-graphs")

    # Optimisation: section 4.2.
    optimizer: str = _choice("adam", "adam", "nadam", doc="nadam is the released program's")
    lr: float = _number(0.1, 0, doc="learning rate")
    weight_decay: float = _number(0.0005, 0, doc="L2 factor lambda, on half the squared norm")
    decay_biases: bool = _flag(True, "apply L2 to biases too")
    decay_layers: str = _choice("all", "all", "first", doc="layers that L2 is applied to")
    views: int = _number(1, 1, doc="passes over a batch in a step, each with its own dropout")
    agreement: float = _number(
        0.0, 0, doc="weight of the views' agreement on all nodes, reached after 100 epochs"
    )
    sharpen: float = _number(0.5, 0.1, doc="temperature of what the views are to agree on")
    max_epochs: int = _number(1000, 1, doc="epochs at most")
    max_steps: int | None = _number(None, 1, doc="steps of the optimiser at most")
    patience: int = _number(150, 1, doc="epochs without a better validation score before stopping")
    evaluate_on: str = _choice(
        "auto",
        "auto",
        "graph",
        "subgraph",
        "sampled",
        "neighbors",
        doc="what nodes are scored on in training (auto: sampled sub-graphs if the graph is large)",
    )
    evaluate_every: int = _number(1, 1, doc="epochs between evaluations")

    # Speed and memory.
    memory: str = field(
        default="1GB", metadata={"doc": "for the scores of all nodes of a large graph"}
    )
    precision: str = _choice(
        "float32", "float32", "bfloat16", doc="of training on a GPU (autocast)"
    )
    compile: bool = _flag(False, "compile the model for training with torch.compile")
    capture: bool = _flag(True, "on a GPU, replay steps on fixed batches as CUDA graphs")

    # Not a setting: the names of those that were given, over which no recipe has a say.
    given: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @classmethod
    def create(cls, **given: Any) -> "Config":
        """The defaults, the recipe's settings for the data set, and the given values, checked.

        Where no ``recipe`` is given, it is the model's own: ``"default"`` for the LGCN, and
        ``"gcn"`` for ``model="gcn"``.
        """
        known = {f.name: f for f in _settings()}
        for key in given:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
                raise UsageError(f"unknown setting {key!r}; {hint}")
        dataset = given.get("dataset", cls.dataset)
        recipe = given.get("recipe") or default_recipe(given.get("model", cls.model))
        labels = given.get("labels", cls.labels)
        settings = {**recipe_settings(recipe, str(dataset), labels), **given, "recipe": recipe}
        for key, value in settings.items():
            settings[key] = _checked(known[key], value)
        config = cls(**settings, given=frozenset(given))
        if config.model != "lgcn" and config.num_layers < 1:
            raise UsageError(
                f"num_layers must be at least 1 for model={config.model}, got {config.num_layers}"
            )
        if config.n_init and config.max_nodes and config.n_init > config.max_nodes:
            raise UsageError(
                f"n_init must be at most max_nodes ({config.max_nodes}), got {config.n_init}"
            )
        if config.sampler != "bfs" and config.start_nodes != "uniform":
            raise UsageError(
                f"start_nodes={config.start_nodes} goes with sampler=bfs alone, "
                f"got sampler={config.sampler}"
            )
        if config.sampler in ("clusters", "walks") and config.max_nodes is None:
            raise UsageError(f"sampler={config.sampler} needs max_nodes, got none")
        if config.agreement and config.views == 1:
            raise UsageError(f"agreement={config.agreement} needs at least 2 views, got views=1")
        parse_memory(config.memory)
        return config

    @classmethod
    def from_toml(cls, path: str | Path) -> dict[str, Any]:
        """The settings in a TOML file, to be passed to :meth:`create`."""
        try:
            with Path(path).open("rb") as file:
                return tomllib.load(file)
        except OSError as error:
            raise UsageError(f"cannot read the config file {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"the config file {path} is not valid TOML: {error}") from error

    @classmethod
    def describe(cls) -> list[tuple[str, str]]:
        """The name of every setting and what it is; choices are named."""
        rows = []
        for spec in _settings():
            doc = spec.metadata["doc"]
            if "choices" in spec.metadata:
                doc = f"{doc}: {', '.join(spec.metadata['choices'])}"
            rows.append((spec.name, doc))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """As in JSON, which has no tuples."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if key != "given"
        }

    def resolve(self, graph: "Graph") -> "Config":
        """These settings with what depends on the graph put in.

        Where ``labels`` is ``"auto"``, the recipe's settings for many labels take the place of
        those for few where a class has 400 training nodes on average, or where neighbours are
        seldom of one class, so that their agreement is no guide; what was given stays.
        Where ``k`` is none, :func:`lgcn.datasets.check.suggest_k` chooses it; where ``input_scale``
        is none, it becomes one over :func:`lgcn.datasets.check.feature_length`. Where ``training``
        is ``"auto"``, it becomes ``"whole"`` while the nodes of the largest graph, times k + 1,
        are at most two million, and ``"subgraph"`` above. Where ``evaluate_on`` is ``"auto"``, it
        becomes ``"graph"`` while they are at most four million, and ``"sampled"`` above.
        """
        config = self._for_labels(graph) if self.labels == "auto" else self
        if config.cnn == "shared" and "lgcl_channels" in config.given:
            warnings.warn(
                f"lgcl_channels={config.lgcl_channels} has no effect with cnn=shared, whose LGCLs "
                "add as many features as they are given; cnn=single or double has it",
                stacklevel=3,
            )
        if config.k is None:
            from lgcn.datasets.check import suggest_k

            config = replace(config, k=suggest_k(graph))
        if config.input_scale is None:
            from lgcn.datasets.check import feature_length

            config = replace(config, input_scale=1 / feature_length(graph))
        assert config.k is not None
        largest = graph.num_nodes if graph.ptr is None else int(graph.ptr.diff().max())
        values = largest * (config.k + 1)
        if config.training == "auto":
            whole = values <= WHOLE_GRAPH_VALUES
            config = replace(config, training="whole" if whole else "subgraph")
        if config.evaluate_on == "auto":
            whole = values <= EVALUATED_VALUES
            config = replace(config, evaluate_on="graph" if whole else "sampled")
        return config

    def _for_labels(self, graph: "Graph") -> "Config":
        from lgcn.datasets.check import labels_per_class, neighbours_agree

        few, many = (
            type(self).create(dataset=self.dataset, recipe=self.recipe, labels=labels)
            for labels in ("few", "many")
        )
        if replace(few, labels="many") == many:
            return self
        if labels_per_class(graph) < MANY_LABELS and neighbours_agree(graph):
            return self
        changed = {
            spec.name: getattr(many, spec.name)
            for spec in _settings()
            if spec.name not in self.given
            and getattr(self, spec.name) == getattr(few, spec.name) != getattr(many, spec.name)
        }
        return replace(self, **{**changed, "labels": "many"})

    def model_options(self) -> dict[str, Any]:
        """The settings that the model's class takes."""
        for name in ("k", "input_scale"):
            if getattr(self, name) is None:
                raise UsageError(
                    f"{name} must be a number to build a model, got none: resolve(graph)"
                )
        from lgcn.nn.models import model_class

        names = inspect.signature(model_class(self.model)).parameters
        return {key: value for key, value in asdict(self).items() if key in names}


def _settings() -> list[Any]:
    return [f for f in fields(Config) if f.name != "given"]


def parse_setting(text: str) -> tuple[str, Any]:
    """``key=value`` from the command line, with the meaning it has in a TOML file.

    ``none`` is no value, and text that is no TOML value is a string. ``table.key=value`` sets one
    key of a table.
    """
    key, separator, value = text.partition("=")
    key = key.strip()
    if not separator or not key:
        raise UsageError(f"--set wants key=value, got {text!r}")
    parsed: Any = value.strip()
    if parsed.lower() in ("none", "null"):
        parsed = None
    else:
        try:
            parsed = tomllib.loads(f"value = {parsed}")["value"]
        except tomllib.TOMLDecodeError:
            parsed = {"True": True, "False": False}.get(parsed, parsed)
    return key, parsed


def merge_settings(texts: list[str]) -> dict[str, Any]:
    """The settings of several ``key=value``; a later one wins."""
    settings: dict[str, Any] = {}
    for text in texts:
        key, value = parse_setting(text)
        table, dot, inner = key.partition(".")
        if dot:
            if not isinstance(settings.setdefault(table, {}), dict):
                raise UsageError(f"--set {text}: {table} is {settings[table]!r}, not a table")
            settings[table][inner] = value
        else:
            settings[key] = value
    return settings


def _checked(spec: Any, value: Any) -> Any:
    name, wanted = spec.name, str(spec.type)
    optional = "None" in wanted
    if isinstance(value, str) and optional and value.lower() == "none":
        value = None  # TOML has no null
    if value is None and optional:
        return None
    if "choices" in spec.metadata:
        if value is None:  # what --set makes of the choice "none"
            value = "none"
        if value not in spec.metadata["choices"]:
            choices = ", ".join(spec.metadata["choices"])
            raise UsageError(f"{name} must be one of {choices}, got {value!r}")
        return value
    if "low" in spec.metadata:
        whole = "int" in wanted
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            kind = "a whole number" if whole else "a number"
            raise UsageError(
                f"{name} must be {kind}{' or none' if optional else ''}, got {value!r}"
            )
        low, high = spec.metadata["low"], spec.metadata["high"]
        if not value >= low or (high is not None and value >= high):
            bounds = f"at least {low}" + (f" and below {high}" if high is not None else "")
            raise UsageError(f"{name} must be {bounds}, got {value!r}")
        if value > (LARGEST_INT if whole else sys.float_info.max):
            raise UsageError(f"{name} is too large, got {value!s:.40}")
        return value if whole else float(value)
    if wanted.startswith("tuple"):
        numbers = list(value) if isinstance(value, list | tuple) else [value]
        if not numbers or not all(type(n) is int and n > 0 for n in numbers):
            raise UsageError(f"{name} must be a list of positive whole numbers, got {value!r}")
        return tuple(numbers)
    kinds = {"bool": bool, "str": str}
    kind_wanted = kinds.get(wanted.removeprefix("<class '").removesuffix("'>"), Mapping)
    if not isinstance(value, kind_wanted):
        words = {bool: "true or false", str: "a text"}.get(kind_wanted, "a table of options")
        raise UsageError(f"{name} must be {words}, got {value!r}")
    return dict(value) if isinstance(value, Mapping) else value
