"""Explanations of a trained run, for nodes by the user's ids."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.utils.row_blocks import row_blocks

if TYPE_CHECKING:
    from lgcn.explain.explanation import Explanation
    from lgcn.explain.selection import LayerSelection
    from lgcn.graph import Graph
    from lgcn.inference.trained_run import TrainedRun
    from lgcn.utils.progress import OnProgress

BLOCK = 2**18  # ids that are compared at a time
COMPARED = 100_000  # ids among which one that is close to a wrong one is looked for

IdRange = Callable[[int, int], Any]


class NodeIds:
    """Finds nodes by the user's ids, and ids by node numbers.

    Args:
        num_nodes: How many nodes there are.
        ids: Gives the ids of a range of nodes. (default: ids are node numbers)
        name: The graph, for messages. (default: `"the graph"`)
    """

    def __init__(self, num_nodes: int, ids: IdRange | None = None, name: str = "the graph") -> None:
        self.num_nodes = num_nodes
        self.name = name
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
            for place, one in enumerate(block):
                if one in missing:
                    missing.discard(one)
                    self._numbers[one] = start + place
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
            f"{self.name} has no node {text!r}: its nodes have no ids, and are numbered from 0 to "
            f"{self.num_nodes - 1}"
        )

    def _blocks(self) -> Iterator[tuple[int, list[str]]]:
        assert self._ids is not None
        for start, stop in row_blocks(self.num_nodes, BLOCK):
            yield start, [str(_plain(one)) for one in self._ids(start, stop)]

    def _unknown(self, text: str) -> UsageError:
        known: list[str] = []
        for _, block in self._blocks():
            known += block
            if len(known) >= COMPARED:
                break
        close = difflib.get_close_matches(text, known[:COMPARED], n=3)
        hint = f"did you mean {', '.join(map(repr, close))}?" if close else ""
        first = f"ids look like {', '.join(map(repr, known[:3]))}" if known else "it is empty"
        return UsageError(f"{self.name} has no node {text!r}; {hint or first}")


class RunExplainer:
    """Explains nodes of one graph by a trained run. It keeps what the nodes share.

    Args:
        run: The run.
        graph: The graph, with features as the model takes them.
        ids: Gives the ids of a range of nodes. (default: ids are node numbers)

    Attributes:
        ids: Finds nodes by id.
    """

    def __init__(self, run: TrainedRun, graph: Graph, ids: IdRange | None = None) -> None:
        from lgcn.explain.columns import Columns
        from lgcn.explain.explainer import NodeExplainer

        self.ids = NodeIds(graph.num_nodes, ids, graph.name)
        spec = run.spec
        self._explainer = NodeExplainer(
            run.model(),
            graph,
            spec=spec,
            columns=Columns.of(spec.num_features, run.encoder(), spec.structure),
            node_id=self.ids.__getitem__,
            temperature=run.temperature,
            threshold=run.threshold,
        )

    def explain(
        self,
        nodes: Any,
        *,
        target: Any = None,
        against: Any = None,
        counterfactual: bool = False,
        on_progress: OnProgress | None = None,
    ) -> list[Explanation]:
        """Explains nodes, see `TrainedRun.explain`."""
        numbers = self.ids.numbers(as_list(nodes))
        found = []
        for done, number in enumerate(numbers, 1):
            found += self._explainer.explain(
                [number], target=target, against=against, counterfactual=counterfactual
            )
            if on_progress is not None:
                on_progress("explanations", done, len(numbers))
        return found

    def selected_neighbours(self, numbers: Any) -> list[LayerSelection]:
        """See `lgcn.selected_neighbours`; takes node numbers."""
        from lgcn.explain.selection import selected_neighbours

        return selected_neighbours(self._explainer.model, self._explainer.graph, numbers)


def as_list(nodes: Any) -> list[Any]:
    """One id or several as a list."""
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        return [nodes]
    found = list(nodes)
    if not found:
        raise UsageError("nodes must name at least one node, got none")
    return found


def _plain(value: Any) -> Any:
    """An id as a plain value: Arrow's, NumPy's and torch's become Python's."""
    for name in ("as_py", "item"):
        convert = getattr(value, name, None)
        if convert is not None:
            value = convert()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
