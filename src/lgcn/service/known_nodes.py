"""The nodes of the graph by the user's ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lgcn.errors import did_you_mean
from lgcn.service.problems import RequestError, shown
from lgcn.tables.ids import NodeIndex, to_ids

_WHOLE = re.compile(r"-?[0-9]{1,19}")
EXAMPLES = 5  # ids that the model information names
SIMILAR = 2000  # ids among which a similar one is searched


class KnownNodes:
    """Finds nodes by their ids, or by their numbers if they have none.

    Args:
        num_nodes: Number of nodes.
        node_ids: Gives the ids of the nodes from `start` up to `stop`. (default: numbers)
    """

    def __init__(self, num_nodes: int, node_ids: Callable[[int, int], Any] | None) -> None:
        self.num_nodes = num_nodes
        self.has_ids = node_ids is not None
        self._ids: Any = None
        self._index: NodeIndex | None = None
        if node_ids is not None:
            ids = node_ids(0, num_nodes)
            ids = ids if isinstance(ids, pa.Array) else pa.array(np.asarray(ids))
            self._ids = to_ids(ids, lambda row: f"node {row}")
            self._index = NodeIndex(self._ids)

    @property
    def integer(self) -> bool:
        """Whether the ids are whole numbers."""
        return self._index is None or self._index.integer

    @property
    def examples(self) -> list[Any]:
        """The first ids."""
        found: list[Any] = self.ids(np.arange(min(EXAMPLES, self.num_nodes))).to_pylist()
        return found

    def key(self, given: Any) -> str:
        """One string per id, however it is written: 7 and "7" are the same where ids are numbers.

        Args:
            given: An id of a request.
        """
        number = _whole(given) if self.integer else None
        return str(given) if number is None else str(number)

    def ids(self, numbers: Any) -> Any:
        """The ids of nodes as an Arrow array.

        Args:
            numbers: Their numbers.
        """
        return pa.array(numbers) if self._ids is None else self._ids.take(pa.array(numbers))

    def search(self, given: Sequence[Any]) -> Any:
        """The numbers of nodes, -1 for ids that no node has.

        Args:
            given: Ids of a request: strings or whole numbers of 64 bits.
        """
        if not given:
            return np.empty(0, np.int64)
        if not self.integer:
            assert self._index is not None
            return self._index.find(pa.array([str(one) for one in given], pa.string())).astype("i8")
        whole = [_whole(one) for one in given]
        numbers = np.array([0 if one is None else one for one in whole], np.int64)
        if self._index is None:
            found = np.where((numbers >= 0) & (numbers < self.num_nodes), numbers, -1)
        else:
            found = self._index.find(pa.array(numbers)).astype("i8")
        return np.where([one is None for one in whole], -1, found)

    def find(self, given: Sequence[Any], field: str) -> Any:
        """The numbers of nodes; an unknown id is a `RequestError` that names it.

        Args:
            given: Ids of a request.
            field: The part of the request that they are in.
        """
        found = self.search(given)
        if len(found) and found.min() < 0:
            place = int(found.argmin())
            raise self.unknown(given[place], f"{field}[{place}]")
        return found

    def unknown(self, given: Any, field: str) -> RequestError:
        """The error about an id that no node has."""
        if not self.has_ids:
            hint = f"nodes have the numbers 0 to {self.num_nodes - 1}"
        else:
            some = self.ids(np.arange(min(SIMILAR, self.num_nodes))).to_pylist()
            hint = did_you_mean(given, some)
            if hint.startswith("known"):  # nothing similar
                hint = f"ids look like {shown(some[0])}" if some else "the graph has no nodes"
        return RequestError(f"no node has the id {shown(given)}; {hint}", field, 404)


def _whole(given: Any) -> int | None:
    """An id as a whole number of 64 bits, `None` if it is none."""
    text = str(given)
    number = int(text) if _WHOLE.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None
