"""Explanations of a trained run, for nodes or whole graphs by the user's ids."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.inference.output_file import check_output
from lgcn.utils.choices import Unit
from lgcn.utils.files import atomic
from lgcn.utils.row_blocks import row_blocks

if TYPE_CHECKING:
    from torch.nn import Module

    from lgcn.explain.explainer import NodeExplainer
    from lgcn.explain.explanation import Explanation
    from lgcn.explain.selection import LayerSelection
    from lgcn.graph import Graph, GraphSet
    from lgcn.utils.progress import OnProgress

TABLES = (".csv", ".tsv", ".parquet")
PICTURES = (".svg", ".html")
SUFFIXES = (*TABLES, ".json", *PICTURES)
PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
    'content="width=device-width"><title>Explanation</title><style>body{{margin:0}}'
    "svg{{max-width:100%;height:auto}}</style>{}</html>\n"
)
BLOCK = 2**18  # ids that are compared at a time
COMPARED = 100_000  # ids among which one that is close to a wrong one is looked for

IdRange = Callable[[int, int], Any]


class NodeIds:
    """Finds nodes, or whole graphs, by the user's ids, and ids by node numbers.

    Args:
        num_nodes: How many nodes there are.
        ids: Gives the ids of a range of nodes. (default: ids are node numbers)
        name: The graph, for messages. (default: `"the graph"`)
        unit: `"node"`, or `"graph"` for whole graphs. (default: `"node"`)
    """

    def __init__(
        self,
        num_nodes: int,
        ids: IdRange | None = None,
        name: str = "the graph",
        unit: Unit = "node",
    ) -> None:
        self.num_nodes = num_nodes
        self.name = name
        self.unit = unit
        self._ids = ids
        self._numbers: dict[str, int] = {}

    def __getitem__(self, number: int) -> Any:
        """The id of a node."""
        if self._ids is None:
            return int(number)
        return _plain(self._ids(number, number + 1)[0])

    def numbers(self, ids: Iterable[Any]) -> list[int]:
        """The numbers of the nodes with these ids; an unknown id raises UsageError.

        Args:
            ids: The ids. Numbers and strings that are written alike are the same id.
        """
        wanted = [str(_plain(one)) for one in ids]
        if self._ids is None:
            return [self._number(one) for one in wanted]
        missing = {one for one in wanted if one not in self._numbers}
        for start, block in self._blocks():
            if not missing:
                break
            for place, one in _found_in(block, missing):
                missing.discard(one)
                self._numbers.setdefault(one, start + place)
        for one in wanted:
            if one not in self._numbers:
                raise self._unknown(one)
        return [self._numbers[one] for one in wanted]

    def _number(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = -1
        if 0 <= number < self.num_nodes:
            return number
        raise UsageError(
            f"{self.name} has no {self.unit} {text!r}: its {self.unit}s have no ids, and are "
            f"numbered from 0 to {self.num_nodes - 1}"
        )

    def _blocks(self) -> Iterator[tuple[int, Any]]:
        """The ids as they are, with the number of the first."""
        assert self._ids is not None
        for start, stop in row_blocks(self.num_nodes, BLOCK):
            yield start, self._ids(start, stop)

    def _unknown(self, text: str) -> UsageError:
        known: list[str] = []
        for _, block in self._blocks():
            known += [str(_plain(one)) for one in block[: COMPARED - len(known)]]
            if len(known) >= COMPARED:
                break
        close = difflib.get_close_matches(text, known, n=3)
        hint = f"did you mean {', '.join(map(repr, close))}?" if close else ""
        first = f"ids look like {', '.join(map(repr, known[:3]))}" if known else "it is empty"
        return UsageError(f"{self.name} has no {self.unit} {text!r}; {hint or first}")


def _found_in(block: Any, wanted: set[str]) -> list[tuple[int, str]]:
    """Which of the wanted ids are in a block of ids, and where. Millions take a moment."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        ids = block if isinstance(block, pa.Array) else pa.array(block)
        text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
        if not text and not pa.types.is_integer(ids.type):
            raise pa.ArrowInvalid("Arrow would write these ids in its own way")
        ids = ids.cast(pa.large_string())
        places = pc.indices_nonzero(pc.is_in(ids, pa.array(sorted(wanted), ids.type)))
        return [(place, ids[place].as_py()) for place in places.to_pylist()]
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = (str(_plain(one)) for one in block)
        return [(place, one) for place, one in enumerate(texts) if one in wanted]


class RunExplainer:
    """Explains nodes of one graph, or whole graphs of a set, by their ids.

    It keeps what they share.

    Args:
        model: The model.
        graph: The graph, or the set of graphs, with features as the model takes them.
        ids: Gives the ids of a range of nodes or graphs. (default: ids are numbers)
        **options: See `lgcn.explain.NodeExplainer`.

    Attributes:
        ids: Finds nodes or graphs by id.
    """

    def __init__(
        self, model: Module, graph: Graph | GraphSet, ids: IdRange | None = None, **options: Any
    ) -> None:
        from lgcn.explain.explainer import NodeExplainer
        from lgcn.explain.graph_explainer import GraphExplainer
        from lgcn.graph import GraphSet

        if isinstance(graph, GraphSet):
            self.ids = NodeIds(graph.num_graphs, ids, f"the set {graph.name!r}", "graph")
            name = self.ids.__getitem__
            self._explainer: NodeExplainer = GraphExplainer(model, graph, graph_id=name, **options)
        else:
            self.ids = NodeIds(graph.num_nodes, ids, f"the graph {graph.name!r}")
            self._explainer = NodeExplainer(model, graph, node_id=self.ids.__getitem__, **options)

    def explain(
        self,
        nodes: Any,
        *,
        target: Any = None,
        against: Any = None,
        counterfactual: bool = False,
        on_progress: OnProgress | None = None,
    ) -> list[Explanation]:
        """Explains nodes or graphs, see `TrainedRun.explain`."""
        numbers = self.ids.numbers(as_list(nodes, self.ids.unit))
        found = []
        for done, number in enumerate(numbers, 1):
            found += self._explainer.explain(
                [number], target=target, against=against, counterfactual=counterfactual
            )
            if on_progress is not None:
                on_progress("explanations", done, len(numbers))
        return found

    def column_contributions(self, number: int) -> tuple[dict[str, float], int]:
        """What each column adds to the prediction of a node, and how many nodes were read for it.

        It is `by_column` of the node's explanation, without the cost of the other lists.

        Args:
            number: The node number.
        """
        from lgcn.explain.report_lists import by_column

        found = self._explainer.contributions(number)
        spec = self._explainer.spec
        scale = spec.target_scale if spec.task == "regression" else 1.0
        added = {one["column"]: one["contribution"] for one in by_column(found, scale)}
        return added, sum(len(share.field.nodes) for share in found.shares)

    def selected_neighbours(self, numbers: Any) -> list[LayerSelection]:
        """See `lgcn.selected_neighbours`; takes node numbers."""
        from lgcn.explain.selection import selected_neighbours

        return selected_neighbours(self._explainer.model, self._explainer.graph, numbers)


def explanations_format(path: str | Path, nodes: int) -> str:
    """The format of a file of explanations, if it can hold that many.

    Args:
        path: The file.
        nodes: The number of explained nodes.
    """
    suffix = check_output(path, "explanations", SUFFIXES)
    if suffix in PICTURES and nodes > 1:
        endings = f"{', '.join(TABLES)} or .json"
        raise UsageError(f"path must end in {endings} for {nodes} nodes, got {path}")
    return suffix


def write_explanations(found: Sequence[Explanation], path: str | Path) -> int:
    """Writes explanations: a table, JSON, or one picture, by the ending of the path.

    Gives the number of strings of a table that got a quote in front, see
    `lgcn.inference.predictions.write_predictions`.

    Args:
        found: The explanations.
        path: The file: `.csv`, `.tsv`, `.parquet`, `.json`, `.svg` or `.html`.
    """
    suffix = explanations_format(path, len(found))
    if suffix in TABLES:
        import pyarrow as pa

        from lgcn.inference.predictions import write_table

        return write_table(pa.concat_tables(one.table() for one in found), path, suffix)
    if suffix == ".json":
        text = json.dumps({"explanations": [one.to_dict() for one in found]})
    elif suffix == ".svg":
        text = found[0].svg()
    else:
        text = PAGE.format(found[0].svg())
    with atomic(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return 0


def as_list(nodes: Any, unit: Unit = "node") -> list[Any]:
    """One id or several as a list."""
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        return [nodes]
    found = list(nodes)
    if not found:
        raise UsageError(f"{unit}s must name at least one {unit}, got none")
    return found


def _plain(value: Any) -> Any:
    """An id as a plain value: Arrow's, NumPy's and torch's become Python's."""
    for name in ("as_py", "item"):
        convert = getattr(value, name, None)
        if convert is not None:
            value = convert()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
