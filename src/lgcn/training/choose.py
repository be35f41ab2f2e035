"""Choices that the settings leave to the graph: ``training``, ``evaluate_on`` and ``labels``."""

from lgcn.graph import Graph
from lgcn.graph.statistics import labels_per_class, neighbour_agreement

# training=auto takes the whole graph up to this many selected values per feature,
# nodes x (k + 1). Each LGCL and view keeps that many numbers per feature until the backward pass:
# at the limit, the defaults for own data take 5 GB with few labels and 10 GB with many
# (benchmarks/fit_memory.py). Sub-graphs can cost accuracy: four points of 54 on wordnet31, which is
# half as large.
WHOLE_GRAPH_VALUES = 2_000_000
# evaluate_on=auto takes it up to this many: no backward pass needs them, but an epoch should not
# wait seconds for its scores.
EVALUATED_VALUES = 4_000_000
# labels=auto calls labels many from this number of training nodes per class on.
MANY_LABELS = 400
# Neighbours agree if they are of one class more often than by chance, by at least this share of the
# possible difference. With fewer known entries of the adjacency than this, they count as agreeing.
AGREEMENT, AGREEMENT_ENTRIES = 0.1, 20


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
    found = neighbour_agreement(graph)
    if found is None or found.entries < AGREEMENT_ENTRIES:
        return True
    return found.alike - found.by_chance >= AGREEMENT * (1 - found.by_chance)


def largest_graph(graph: Graph) -> int:
    """Nodes of the graph, or of the largest one if there are several separate graphs."""
    return graph.num_nodes if graph.ptr is None else int(graph.ptr.diff().max())
