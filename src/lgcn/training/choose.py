"""Choices that the settings leave to the graph: ``training``, ``evaluate_on`` and ``labels``.

They depend on counts, never on a clock: one seed gives one model, whatever else the machine does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lgcn.graph import Graph
from lgcn.graph.statistics import (
    Agreement,
    labels_per_class,
    neighbour_agreement,
    suggest_k,
)
from lgcn.training.groups import LGCNSettings

if TYPE_CHECKING:
    from lgcn.training.settings import Settings

# training=auto takes the whole graph up to this many selected values per feature,
# nodes x (k + 1). Each LGCL and view keeps that many numbers per feature until the backward pass:
# at the limit, the defaults for own data take 5 GB with few labels and 10 GB with many
# (benchmarks/fit_memory.py). Sub-graphs can cost accuracy: four points of 54 on wordnet31, which is
# half as large.
WHOLE_GRAPH_VALUES = 2_000_000
# ... and up to this much work in all epochs (ModelSettings.work), by the kind of device. A CPU core
# does about 770 million per second, so that two cores take forty minutes; a GPU is a hundred times
# as fast. Sub-graphs of 2000 nodes come close to their best score with a third of it
# (docs/evidence/performance.md).
WORK = {"cpu": 35 * 10**11, "cuda": 35 * 10**13}
SUBGRAPH_SHARE = 3
# evaluate_on=auto takes it up to this many values: no backward pass needs them, but an epoch should
# not wait seconds for its scores.
EVALUATED_VALUES = 4_000_000
# An epoch has at least so many sub-graphs.
FEWEST_SUBGRAPHS = 2
# Nodes of a sub-graph for networks that average over several steps of propagation, of which small
# sub-graphs cut most off; and of several clusters, so that sub-graphs are alike.
LARGE_NODES, CLUSTERS = 20_000, 20
# Bytes that METIS may need to find the clusters.
CLUSTER_MEMORY = 8 * 10**9
# Nodes of a sub-graph per start node. With a quarter of the nodes as start nodes, sub-graphs of
# large graphs hold few of a node's neighbours, and prediction, which sees all, is worse for it.
ROOM = 40
# The same for networks that average over several steps. Only start nodes are scored then, which
# have their surroundings, and with few labels all of them fit (docs/evidence/scaling.md).
DIFFUSION_ROOM = 10
# labels=auto calls labels many from this number of training nodes per class on.
MANY_LABELS = 400
# Neighbours agree if they are of one class more often than by chance, by at least this share of the
# possible difference. With fewer known entries of the adjacency than this, they count as agreeing.
AGREEMENT, AGREEMENT_ENTRIES = 0.1, 20


@dataclass(frozen=True)
class Known:
    """What choices depend on. Functions are called only if a choice needs them."""

    num_nodes: int
    num_edges: int  # entries of the adjacency
    largest: int  # nodes of the largest of several separate graphs
    num_graphs: int
    num_features: int
    wants_many: Callable[[], bool]
    suggested_k: Callable[[], int]
    feature_length: Callable[["Settings"], float]
    in_parts: bool = False

    @classmethod
    def of(cls, graph: Graph) -> "Known":
        """What is known of a graph."""
        from lgcn.training.structure import prepared_length

        return cls(
            graph.num_nodes,
            graph.num_edges,
            graph.num_nodes if graph.ptr is None else int(graph.ptr.diff().max()),
            graph.num_graphs,
            graph.num_features,
            lambda: wants_many(graph),
            lambda: suggest_k(graph),
            lambda settings: prepared_length(graph, settings),
        )

    @classmethod
    def of_statistics(cls, found: Mapping[str, Any]) -> "Known":
        """What a partition knows of the whole graph, see `lgcn.partition`."""
        stored = found["neighbour_agreement"]
        agree = _agree(None if stored is None else Agreement(**stored))
        return cls(
            found["num_nodes"],
            found["num_edges"],
            found["num_nodes"],
            1,
            found["num_features"],
            lambda: found["labels_per_class"] >= MANY_LABELS or not agree,
            lambda: int(found["suggested_k"]),
            lambda settings: float(found["feature_length"]),
            in_parts=True,
        )


def wants_many(graph: Graph) -> bool:
    """Whether the settings for many labels suit a graph.

    They do if a class has 400 training nodes on average, or if neighbours are seldom of one class,
    so that their agreement is no guide.
    """
    return labels_per_class(graph) >= MANY_LABELS or not neighbours_agree(graph)


def neighbours_agree(graph: Graph) -> bool:
    """Whether neighbours are of one class clearly more often than by chance.

    Only edges between training nodes count. With hardly any of them, or if nodes can have several
    labels, the answer is yes.
    """
    return _agree(neighbour_agreement(graph))


def _agree(found: Agreement | None) -> bool:
    if found is None or found.entries < AGREEMENT_ENTRIES:
        return True
    return found.alike - found.by_chance >= AGREEMENT * (1 - found.by_chance)


def device_kind(name: str) -> str:
    """The kind of a device: ``"cpu"`` or ``"cuda"``. ``"auto"`` is a GPU if there is one."""
    if name == "auto":
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"
    return "cuda" if name.startswith("cuda") else "cpu"


def whole_graph_work(known: Known, settings: "Settings") -> int:
    """Work of all epochs on the whole graph."""
    chosen = settings.optimisation
    epochs = chosen.max_epochs if chosen.max_steps is None else _epochs(known, settings)
    return epochs * chosen.views * _work(known, settings, known.num_nodes, known.num_edges)


def _work(known: Known, settings: "Settings", nodes: int, entries: int) -> int:
    """Work of a pass over so many nodes and entries of the adjacency."""
    model = settings.model
    return model.work(nodes, entries) + model.input_work(entries, known.num_features)


def _values(known: Known, settings: "Settings") -> int:
    """Values per feature that training on the largest graph keeps."""
    model = settings.model
    return known.largest * (model.values_per_feature + model.input_values(known.num_features))


def _epochs(known: Known, settings: "Settings") -> int:
    """Epochs on whole graphs; a step is one of the separate graphs."""
    chosen = settings.optimisation
    assert chosen.max_steps is not None
    return min(chosen.max_epochs, -(-chosen.max_steps // known.num_graphs))


def training_choice(
    known: Known, settings: "Settings", *, may_be_whole: bool = True
) -> dict[str, Any]:
    """What ``training=auto`` means for a graph: settings by flat name.

    Whole graphs train best. Sub-graphs replace them if the whole graph would need too much memory
    or work. Their number per epoch is then limited, so that all epochs together stay within a part
    of that work, and scores of all nodes are computed after every few epochs.

    Args:
        known: What is known of the graph.
        settings: The settings, in which k is chosen.
        may_be_whole: Whether one process can train on the whole graph. (default: `True`)
    """
    values = _values(known, settings)
    budget = WORK[device_kind(settings.hardware.device)]
    if (
        may_be_whole
        and values <= WHOLE_GRAPH_VALUES
        and whole_graph_work(known, settings) <= budget
    ):
        return {"training": "whole"}
    found: dict[str, Any] = {"training": "subgraph"}
    model = settings.model
    diffuses = isinstance(model, LGCNSettings) and model.averages
    clusters = not diffuses and _clusters_fit(known, settings)
    if (diffuses or clusters) and "max_nodes" not in settings.given:
        found["max_nodes"] = LARGE_NODES
        settings = settings._with(max_nodes=LARGE_NODES)
    max_nodes = settings.sampling.max_nodes
    if clusters:
        found |= {"sampler": "clusters", "clusters": CLUSTERS, "halo": 1}
    elif settings.sampling.sampler == "bfs" and max_nodes is not None:
        if settings.sampling.n_init is None:
            found["n_init"] = max(1, max_nodes // (DIFFUSION_ROOM if diffuses else ROOM))
        if diffuses and "scored_nodes" not in settings.given:
            found["scored_nodes"] = "start"
    subgraphs = settings.sampling.subgraphs_per_epoch
    if subgraphs is None:
        work = settings.optimisation.max_epochs * _subgraph_work(known, settings)
        subgraphs = max(FEWEST_SUBGRAPHS, budget // SUBGRAPH_SHARE // max(1, work))
        found["subgraphs_per_epoch"] = subgraphs
    if "evaluate_every" not in settings.given:
        found["evaluate_every"] = _epochs_per_evaluation(known, settings, subgraphs)
    return found


def _clusters_fit(known: Known, settings: "Settings") -> bool:
    """Whether sub-graphs are clusters: on a GPU, if METIS is there and has the memory it needs."""
    from lgcn.graph.metis import has_metis, metis_memory

    given = {"sampler", "n_init", "start_nodes", "max_expand", "max_hops", "scored_nodes"}
    if known.in_parts or given & settings.given or settings.sampling.sampler != "bfs":
        return False
    if device_kind(settings.hardware.device) != "cuda" or not has_metis():
        return False
    needed = metis_memory(known.num_nodes, known.num_edges, directed=True)
    return needed <= CLUSTER_MEMORY


def _subgraph_work(known: Known, settings: "Settings") -> int:
    """Work of a step on a sub-graph that is as dense as the graph itself."""
    nodes = min(settings.sampling.max_nodes or known.num_nodes, known.num_nodes)
    entries = known.num_edges * nodes // max(known.num_nodes, 1)
    return settings.optimisation.views * _work(known, settings, nodes, entries)


def _epochs_per_evaluation(known: Known, settings: "Settings", subgraphs: int) -> int:
    """Epochs whose steps are at least twice the work of scoring all nodes.

    A forward pass is a third of a step, and graphs that are too large are scored on a sample.
    """
    values = known.largest * settings.model.values_per_feature
    if settings.evaluation.evaluate_on != "graph" and values > EVALUATED_VALUES:
        return 1
    scoring = settings.model.work(known.num_nodes, known.num_edges) // 3
    return max(1, -(-2 * scoring // max(1, subgraphs * _subgraph_work(known, settings))))


def why_subgraphs(known: Known, settings: "Settings") -> str:
    """Why ``training=auto`` takes sub-graphs, in a few words."""
    if _values(known, settings) > WHOLE_GRAPH_VALUES:
        return "the whole graph would need much memory"
    place = "GPU" if device_kind(settings.hardware.device) == "cuda" else "CPU"
    return f"the whole graph would be slow on a {place}"


def describe(graph: Graph, settings: "Settings", given: "Settings") -> str:
    """What is trained on, in one line: the graph, and how steps see it.

    Args:
        graph: The graph.
        settings: The settings, with all choices made.
        given: The settings as they were given.
    """
    neighbours = graph.num_edges / max(graph.num_nodes, 1)
    train = 0 if graph.train_mask is None else int(graph.train_mask.sum())
    line = (
        f"training {settings.model.name.upper()} on {graph.num_nodes:,} nodes with "
        f"{neighbours:.1f} neighbours on average, {graph.num_features:,} features, "
    )
    if graph.y is not None and not graph.y.is_floating_point():
        line += f"{graph.num_classes:,} {'labels' if graph.multi_label else 'classes'}, "
    line += f"{train:,} training nodes"
    if settings.sampling.training == "whole":
        return f"{line}; on the whole graph"
    size = settings.sampling.max_nodes
    line += "; on sub-graphs" if size is None else f"; on sub-graphs of up to {size:,} nodes"
    if given.sampling.training == "auto":
        line += f", because {why_subgraphs(Known.of(graph), settings)} (training=auto)"
    return line
