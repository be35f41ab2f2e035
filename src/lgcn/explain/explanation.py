"""An explanation: what it holds, as a dictionary, as a table, as a picture."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Explanation:
    """Why a network predicts what it predicts for one node.

    The score of a class or label is the logarithm of its odds, log(p / (1 - p)), where p is its
    probability; that of a regression is the predicted number. Contributions of the columns, and
    those of the nodes, each add up to `score - baseline`; those of the edges to `score -
    without_edges`. `baseline` is the score if all features are zero, `without_edges` the score if
    no node hears of another one, in both cases with the neighbours that the LGCLs selected as they
    are.

    Args:
        node: The user's id of the node, or its number.
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
        counterfactual: What would change the prediction; `None` if it was not asked for.
        notes: What else to know, such as parts of an ensemble that are not explained.
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

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """The fields as a dictionary that JSON can hold.

        Args:
            top: Entries that each list keeps, largest first. (default: all)
        """
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["notes"] = list(self.notes)
        for name in ("by_node", "by_edge", "by_column"):
            found[name] = found[name][:top]
        found["selected"] = [
            {**layer, "neighbours": layer["neighbours"][:top]} for layer in self.selected
        ]
        return found

    def table(self) -> pa.Table:
        """All contributions and selections as one table.

        | column | content |
        |---|---|
        | `node` | the explained node |
        | `kind` | `column`, `feature`, `node`, `edge` or `selected` |
        | `name` | the column, feature or neighbour; of an edge its source |
        | `target` | of an edge its target |
        | `layer` | of a selection its LGCL |
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
        for layer in self.selected:
            for entry in layer["neighbours"]:
                named = {"name": str(entry["node"]), "layer": layer["layer"]}
                rows.append({"kind": "selected", **named, "count": entry["count"], **_only(entry)})
        schema = pa.schema(
            [
                ("node", pa.string()),
                ("kind", pa.string()),
                ("name", pa.string()),
                ("target", pa.string()),
                ("layer", pa.int64()),
                ("count", pa.int64()),
                ("contribution", pa.float64()),
            ]
        )
        return pa.Table.from_pylist([{"node": str(self.node), **row} for row in rows], schema)

    def svg(self) -> str:
        """A picture of the neighbourhood, as the text of an SVG file."""
        from lgcn.explain.picture import draw

        return draw(self)


def _only(entry: dict[str, Any]) -> dict[str, Any]:
    return {"contribution": entry["contribution"]}
