"""An explanation: what it holds, as a dictionary, as a table, as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from lgcn.utils.choices import Unit

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Explanation:
    """Why a network predicts what it predicts for one node, or for one whole graph.

    The score of a class or label is the logarithm of its odds, log(p / (1 - p)), where p is its
    probability; that of a regression is the predicted number. Contributions of the columns, and
    those of the nodes, each add up to `score - baseline`; those of the edges to `score -
    without_edges`. `baseline` is the score if all features are zero, `without_edges` the score if
    no node hears of another one, in both cases with the neighbours that the LGCLs selected as they
    are.

    For a whole graph, nodes and edges are those of the graph, named within it, and have no `hops`.
    In `selected`, an LGCL's places are those of all nodes together: `k` ranks times `features` for
    each.

    Args:
        node: The user's id of the node or the graph, or its number.
        predicted: The predicted class, the labels as `"a;b"`, or the number.
        confidence: Probability of the prediction; `None` for a regression.
        explained: The class or label whose score is explained; `"value"` for a regression.
        against: The class that it is compared with, so that the score is the logarithm of the
            ratio of both probabilities; `None` for all other classes.
        score: The score.
        baseline: The score without features.
        without_edges: The score without messages between nodes.
        by_node: One entry per node with a contribution, largest first: `node`, `contribution`,
            `hops`, `columns` (its strongest columns).
        by_edge: One entry per edge: `source`, `target`, `contribution`, `hops` of the nearer end.
            An edge that counts both ways is one entry.
        by_column: One entry per column of the table: `column`, `contribution`, `features`.
        selected: One entry per LGCL: `layer`, `k`, `features`, `filled` and `neighbours`; these
            have `node`, `count` (the places it fills of `k` ranks times `features`),
            `contribution` and `places` (the strongest, each with feature, rank and value).
        units: For each hidden unit in `selected`, the columns that drive it most.
        nodes_read: Nodes whose features were read.
        counterfactual: What would change the prediction; `None` if it was not asked for. `edges`
            has the edges to `remove`, `features` the `changes`, both with the prediction then.
            Either is `None`, with a `reason`, if nothing was found.
        notes: What else to know, such as parts of an ensemble that are not explained.
        unit: What is explained, `"node"` or `"graph"`. (default: `"node"`)
        readouts: For a graph, one entry per read-out that selects nodes: `readout` (its name),
            `level` (0 for the embedding, else the LGCL that it reads), and as in `selected` `k`,
            `features`, `filled` and `neighbours`.
    """

    node: Any
    predicted: Any
    confidence: float | None
    explained: str
    against: str | None
    score: float
    baseline: float
    without_edges: float
    by_node: list[dict[str, Any]]
    by_edge: list[dict[str, Any]]
    by_column: list[dict[str, Any]]
    selected: list[dict[str, Any]]
    units: dict[str, list[str]]
    nodes_read: int
    counterfactual: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    unit: Unit = "node"
    readouts: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """The fields as a dictionary that JSON can hold.

        Args:
            top: Entries that each list keeps, largest first. (default: all)
        """
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        found["notes"] = list(self.notes)
        for name in ("by_node", "by_edge", "by_column"):
            found[name] = found[name][:top]
        for name in ("selected", "readouts"):
            found[name] = [{**one, "neighbours": one["neighbours"][:top]} for one in found[name]]
        if found.pop("unit") == "graph":
            return {"graph": found.pop("node"), **found}
        del found["readouts"]
        return found

    def table(self) -> pa.Table:
        """All contributions and selections as one table.

        | column | content |
        |---|---|
        | `node` | the explained node; for a whole graph, `graph` |
        | `kind` | `column`, `feature`, `node`, `edge`, `selected`, or `readout` with its name |
        | `name` | the column, feature or neighbour; of an edge its source |
        | `target` | of an edge its target |
        | `layer` | of a selection its LGCL; of a read-out's the LGCL it reads, 0 for none |
        | `count` | of a selection how many places the neighbour fills |
        | `contribution` | to the score |
        """
        import pyarrow as pa

        rows: list[dict[str, Any]] = []
        for entry in self.by_column:
            rows.append({"kind": "column", "name": entry["column"], **_only(entry)})
            rows += [
                {"kind": "feature", "name": feature["feature"], **_only(feature)}
                for feature in entry["features"]
            ]
        for entry in self.by_node:
            rows.append({"kind": "node", "name": str(entry["node"]), **_only(entry)})
        for entry in self.by_edge:
            ends = {"name": str(entry["source"]), "target": str(entry["target"])}
            rows.append({"kind": "edge", **ends, **_only(entry)})
        selections = [("selected", layer["layer"], layer) for layer in self.selected]
        selections += [(f"readout {one['readout']}", one["level"], one) for one in self.readouts]
        for kind, number, layer in selections:
            for entry in layer["neighbours"]:
                named = {"name": str(entry["node"]), "layer": number}
                rows.append({"kind": kind, **named, "count": entry["count"], **_only(entry)})
        schema = pa.schema(
            [
                (self.unit, pa.string()),
                ("kind", pa.string()),
                ("name", pa.string()),
                ("target", pa.string()),
                ("layer", pa.int64()),
                ("count", pa.int64()),
                ("contribution", pa.float64()),
            ]
        )
        return pa.Table.from_pylist([{self.unit: str(self.node), **row} for row in rows], schema)

    def svg(self) -> str:
        """A picture of the neighbourhood or the graph, as the text of an SVG file."""
        from lgcn.explain.picture import draw

        return draw(self)


def _only(entry: dict[str, Any]) -> dict[str, Any]:
    return {"contribution": entry["contribution"]}
