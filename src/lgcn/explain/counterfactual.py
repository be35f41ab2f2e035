"""What would change a prediction: the fewest edges to remove, the smallest change of features.

Whatever is returned was tried: the network was computed with these edges removed, degrees and
normalisation included, or with these features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lgcn.explain.contributions import Contributions, Share, joined_scores
from lgcn.explain.feature_change import find_feature_change
from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.explain.secant import ONE_WORLD, Differences
from lgcn.explain.worlds import Worlds, embed
from lgcn.graph import Graph

if TYPE_CHECKING:
    from lgcn.explain.explainer import NodeExplainer

Pair = tuple[int, int]  # node numbers, the smaller one first

CANDIDATES = 32  # edges that are tried, those that count most for the prediction first
ALONE = 4  # of these, those that are tried alone if all together are not enough


def find_changes(explainer: NodeExplainer, node: int, found: Contributions) -> dict[str, Any]:
    """The changes as plain values: `edges` and `features`, each with a `reason` if none is found.

    Args:
        explainer: Of the model.
        node: The node.
        found: The contributions to its prediction.
    """
    if explainer.spec.task == "regression":
        reason = "the model predicts a number, which has no other class"
        return {
            "edges": {"remove": None, "reason": reason},
            "features": {"changes": None, "reason": reason},
        }
    trial = Trial(explainer, node, found)
    if explainer.unit == "graph":
        reason = "columns are changed for models of nodes only"
        return {"edges": _edges(trial), "features": {"changes": None, "reason": reason}}
    return {"edges": _edges(trial), "features": find_feature_change(trial)}


class Trial:
    """Computes what the model predicts for a node if something is changed.

    Args:
        explainer: Of the model.
        node: The node, or the whole graph.
        found: The contributions to its prediction, whose neighbourhoods are used.

    Attributes:
        label: The output that should change: the predicted class, or the label that is explained.
    """

    def __init__(self, explainer: NodeExplainer, node: int, found: Contributions) -> None:
        self.explainer = explainer
        self.node = node
        self.shares = found.shares
        scores = found.scores[0]
        self.label = explainer.decided(scores)
        self._has_label = self._holds(scores)

    def changed(self, scores: Tensor) -> bool:
        """Whether the prediction is another one, by the scores [outputs]."""
        return self._holds(scores) != self._has_label

    def _holds(self, scores: Tensor) -> bool:
        if self.explainer.spec.multi_label:
            return bool(scores[self.label] > 0)
        return self.explainer.decided(scores) == self.label

    def margin(self, scores: Tensor) -> Tensor:
        """How far the prediction is from changing, [worlds]; the outputs are [worlds, outputs]."""
        if self.explainer.spec.multi_label:
            return scores[:, self.label] * (1 if self._has_label else -1)
        others = scores.clone()
        others[:, self.label] = -torch.inf
        return scores[:, self.label] - others.amax(1)

    def without_edges(self, pairs: Sequence[Pair]) -> Tensor:
        """The scores if edges are removed, [outputs]."""
        outputs = []
        with torch.no_grad():
            for share in self.shares:
                field = self.explainer.with_made_features(_without(share, pairs))
                statistics = share.part.statistics(int(field.nodes[0]))
                worlds = Worlds(field, ONE_WORLD, statistics=statistics)
                made, _ = embed(share.part.model, field.graph.features())
                outputs.append(worlds.scores(share.part.model, made[None])[:, 0])
        return self._join(outputs, ONE_WORLD)[0]

    def with_features(self, rows: Tensor) -> Tensor:
        """The scores if the node has other features, [worlds, outputs].

        Args:
            rows: The features that the user gives, without those that edges give,
                [worlds, features]. They may require a gradient if there is one world.
        """
        outputs = []
        ordinary = Differences(torch.arange(len(rows)))  # no world is compared with another
        for share in self.shares:
            model, graph = share.part.model, share.field.graph
            with torch.no_grad():
                made, _ = embed(model, graph.features())
            own = self.own_features(share).expand(len(rows), -1)
            full = torch.cat([rows.to(own), own[:, rows.size(1) :]], dim=1)
            root = model.first_layer.transform(full)[:, None]
            z = torch.cat([root, made[1:].expand(len(rows), -1, -1)], dim=1)
            statistics = share.part.statistics(self.node)
            worlds = Worlds(share.field, ordinary, None, statistics, reselect=True)
            outputs.append(worlds.scores(model, z)[:, 0])
        return self._join(outputs, ordinary)

    def own_features(self, share: Share) -> Tensor:
        """The features of the node, as a network takes them, [1, features]."""
        x = share.field.graph.features()
        return x.to_dense()[:1] if x.layout == torch.sparse_csr else x[:1]

    def outcome(self, scores: Tensor) -> dict[str, Any]:
        """The prediction by the scores [outputs], for the report."""
        predicted, sure = self.explainer.prediction(scores)
        return {"predicted": predicted, "confidence": sure}

    def _join(self, outputs: list[Tensor], differences: Differences) -> Tensor:
        explainer = self.explainer
        return joined_scores(
            outputs,
            explainer.parts,
            explainer.fixed,
            self.node,
            differences,
            task=explainer.spec.task,
            averaged=explainer.averaged,
            temperature=explainer.temperature,
        )


def _edges(trial: Trial) -> dict[str, Any]:
    """The fewest edges whose removal changes the prediction, of those tried."""
    ranked = _candidates(trial.shares)
    candidates = ranked[:CANDIDATES]
    if not candidates:
        has_none = {"node": "the node has no neighbours", "graph": "the graph has no edges"}
        return {"remove": None, "reason": has_none[trial.explainer.unit]}
    together = trial.changed(trial.without_edges(candidates))
    singles = []
    # If all of them together are not enough, hardly one of them is.
    for pair in candidates if together else candidates[:ALONE]:
        singles.append(trial.without_edges([pair]))
        if trial.changed(singles[-1]):
            found = [pair]
            break
    else:
        if not together:
            tried = f"the {len(candidates)} edges that count most"
            if len(candidates) == len(ranked):
                whole = {"node": "its neighbourhood", "graph": "the graph"}
                tried = f"all edges of {whole[trial.explainer.unit]}"
            return {"remove": None, "reason": f"removing {tried} is not enough"}
        order = trial.margin(torch.stack(singles)).argsort(stable=True).tolist()
        ordered = [candidates[place] for place in order]
        found = _irreducible(trial, _shortest_start(trial, ordered))
    name = trial.explainer.node_id
    return {
        "remove": [{"source": name(source), "target": name(target)} for source, target in found],
        **trial.outcome(trial.without_edges(found)),
    }


def _shortest_start(trial: Trial, pairs: list[Pair]) -> list[Pair]:
    """The first edges of a list whose removal is enough, by halving; that of all is enough."""
    enough, not_enough = len(pairs), 1
    while enough - not_enough > 1:
        middle = (enough + not_enough) // 2
        if trial.changed(trial.without_edges(pairs[:middle])):
            enough = middle
        else:
            not_enough = middle
    return pairs[:enough]


def _irreducible(trial: Trial, pairs: list[Pair]) -> list[Pair]:
    """A subset that still changes the prediction, and of which no edge can be left out."""
    for pair in reversed(list(pairs)):  # what does least alone comes last
        fewer = [one for one in pairs if one != pair]
        if fewer and trial.changed(trial.without_edges(fewer)):
            pairs = fewer
    return pairs


def _candidates(shares: Sequence[Share]) -> list[Pair]:
    """The edges of the neighbourhoods, those with the largest contributions first."""
    total: dict[Pair, float] = {}
    for share in shares:
        graph, nodes = share.field.graph, share.field.nodes.tolist()
        row = torch.arange(graph.num_nodes).repeat_interleave(graph.rowptr.diff().long())
        for source, target, value in zip(
            graph.col.tolist(), row.tolist(), share.by_edge.tolist(), strict=True
        ):
            if source != target:
                pair = tuple(sorted((nodes[source], nodes[target])))
                total[pair] = total.get(pair, 0.0) + value
    return sorted(total, key=lambda pair: (-total[pair], pair))


def _without(share: Share, pairs: Sequence[Pair]) -> Neighbourhood:
    """The neighbourhood without some edges, in both directions."""
    field, whole = share.field, share.part.graph
    graph, nodes = field.graph, field.nodes
    row = torch.arange(graph.num_nodes).repeat_interleave(graph.rowptr.diff().long())
    low = torch.minimum(nodes[row], nodes[graph.col.long()])
    high = torch.maximum(nodes[row], nodes[graph.col.long()])
    gone = torch.zeros(graph.num_edges, dtype=torch.bool)
    degree = graph.row_degree().clone()
    for first, second in pairs:
        gone |= (low == first) & (high == second)
        for node, other in ((first, second), (second, first)):
            local = (nodes == node).nonzero().flatten()
            if len(local):  # all rows count for the degrees, also those of the outermost nodes
                degree[local] -= _weight_of(whole, node, other)
    kept = ~gone
    counts = torch.zeros(graph.num_nodes, dtype=torch.long).index_add_(
        0, row[kept], kept[kept].long()
    )
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(graph.rowptr.dtype)
    weight = None if graph.edge_weight is None else graph.edge_weight[kept]
    cut = Graph(rowptr, graph.col[kept], x=graph.x, edge_weight=weight, degree=degree)
    return Neighbourhood(cut, nodes, field.entry[kept], field.reach)


def _weight_of(graph: Graph, node: int, other: int) -> float:
    """The sum of the weights of the entries of a row that lead to another node."""
    start, stop = int(graph.rowptr[node]), int(graph.rowptr[node + 1])
    here = graph.col[start:stop] == other
    if graph.edge_weight is None:
        return float(here.sum())
    return float(graph.edge_weight[start:stop][here].sum())
