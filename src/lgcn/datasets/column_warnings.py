"""What looks wrong with the feature columns of a graph: leaks, ids among numbers, repetitions.

Everything is measured on a sample of nodes, so that it takes about a second at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import Graph

ROWS = 4000  # nodes that columns are compared on
MOST_COLUMNS = 300  # graphs with more columns are checked for these
MOST_FEATURES = 200_000  # graphs with more features are not checked
MOST_LABELS = 50  # of several labels per node, each column is compared with these
FEWEST_LABELLED = 100  # with fewer training nodes, a good column may fit all of them
FEWEST_VALUES = 20  # different numbers that an id has at least

# A column gives the label away if it alone is right for this share of nodes it was not fitted to,
# and if guessing the most frequent class is clearly worse.
LEAK, ABOVE_GUESSING = 0.99, 0.5
LEAK_RANKS = 0.999  # of a number to be predicted: the rank correlation
SAME = 0.9999  # correlation of two columns that say the same
EVEN_STEPS = 0.9  # share of equal steps between sorted values that numbered rows have

_ID_NAME = re.compile(r"(^|[_\s-])(id|ids|uid|uuid|guid|key|index|idx|nr|no|number)$", re.I)


class Column(NamedTuple):
    """A column of the user's table, or one feature: its name, kind and values [rows, width]."""

    name: str
    kind: str
    values: Any


def column_warnings(graph: Graph) -> list[str]:
    """What looks wrong with the columns, one sentence each; the worst first.

    Args:
        graph: A graph on the CPU.
    """
    if graph.x is None or not 0 < graph.num_features <= MOST_FEATURES:
        return []
    every = _sampled(torch.arange(graph.num_nodes))
    if not _is_finite(graph.features(every)):
        return []
    found = []
    if graph.y is not None and graph.train_mask is not None:
        nodes = _sampled(graph.train_mask.nonzero().squeeze(1))
        if len(nodes) >= FEWEST_LABELLED:
            y = graph.y[nodes].numpy()
            leaks = [c.name for c in _columns(graph, nodes) if _gives_away(c.values, y)]
            found += _leak_warning(leaks, regression=graph.y.is_floating_point() and y.ndim == 1)
    columns = list(_columns(graph, every))
    found += _id_warning([c.name for c in columns if _is_id(c)])
    return found + _repetition_warning(list(_repetitions(columns)))


def _sampled(nodes: Tensor) -> Tensor:
    """At most `ROWS` nodes, drawn by a fixed seed, in ascending order."""
    if len(nodes) <= ROWS:
        return nodes
    chosen = np.random.default_rng(0).choice(len(nodes), ROWS, replace=False)
    return nodes[torch.from_numpy(np.sort(chosen))]


def _is_finite(x: Tensor) -> bool:
    return bool((x.values() if x.layout == torch.sparse_csr else x).isfinite().all())


def _columns(graph: Graph, nodes: Tensor) -> Iterator[Column]:
    """The columns of the user's table; without an encoder, the features."""
    x = graph.features(nodes)
    if x.layout == torch.sparse_csr:
        from scipy.sparse import csr_matrix

        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        values: Any = csr_matrix(parts, shape=tuple(x.shape)).tocsc()
    else:
        values = x.numpy()
    if graph.encoder is None:
        for place in range(min(graph.num_features, MOST_COLUMNS)):
            yield Column(f"feature {place}", "number", values[:, place : place + 1])
        return
    start = 0
    for info in graph.encoder.columns[:MOST_COLUMNS]:
        yield Column(info.name, info.kind, values[:, start : start + info.width])
        start += info.width


def _dense(values: Any) -> Any:
    return values.toarray() if hasattr(values, "toarray") else values


def _gives_away(values: Any, y: Any) -> bool:
    """Whether a column alone says the label of nearly every node.

    It is fitted to one half of the nodes and scored on the other. So a column of different values,
    such as an id, does not count.
    """
    if y.ndim == 2:
        return values.shape[1] == 1 and _is_a_label(_dense(values)[:, 0], y[:, :MOST_LABELS])
    if y.dtype.kind == "f":
        return values.shape[1] == 1 and _rank_correlation(_dense(values)[:, 0], y) >= LEAK_RANKS
    from sklearn.tree import DecisionTreeClassifier

    order = np.random.default_rng(0).permutation(len(y))
    fitted, scored = order[::2], order[1::2]
    classes, counts = np.unique(y[scored], return_counts=True)
    guessed = counts.max() / len(scored)
    wanted = max(LEAK, guessed + ABOVE_GUESSING * (1 - guessed))
    tree = DecisionTreeClassifier(max_leaf_nodes=4 * max(2, len(classes)), random_state=0)
    tree.fit(values[fitted], y[fitted])
    return bool(tree.score(values[scored], y[scored]) >= wanted)


def _is_a_label(column: Any, y: Any) -> bool:
    correlations = [_correlation(column, y[:, label]) for label in range(y.shape[1])]
    return max(correlations, default=0.0) >= LEAK


def _correlation(one: Any, other: Any) -> float:
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return abs(float(np.corrcoef(one, other)[0, 1]))


def _rank_correlation(one: Any, other: Any) -> float:
    from scipy.stats import rankdata

    return _correlation(rankdata(one), rankdata(other))


def _is_id(column: Column) -> bool:
    """Whether a column of numbers is named like an id, or numbers the rows."""
    if column.kind != "number" or column.values.shape[1] != 1:
        return False
    values = np.unique(_dense(column.values)[:, 0])
    if len(values) < FEWEST_VALUES:
        return False
    if _ID_NAME.search(column.name):
        return True
    if len(values) < 0.999 * column.values.shape[0]:
        return False
    # Numbered rows have equal steps. In a sample of them, steps are small multiples of one.
    steps = np.diff(values)
    multiples = steps / steps.min()
    near = np.abs(multiples - np.round(multiples)) < 0.02
    return bool(near.mean() >= EVEN_STEPS and np.median(multiples) < 100)


def _repetitions(columns: list[Column]) -> Iterator[tuple[str, str]]:
    """Pairs of columns that say the same, each with the first column it repeats."""
    numbers = [c for c in columns if c.values.shape[1] == 1]
    if len(numbers) > 1:
        matrix = np.hstack([_dense(c.values) for c in numbers]).astype(np.float64)
        matrix -= matrix.mean(axis=0)
        length = np.sqrt((matrix**2).sum(axis=0))
        matrix /= np.where(length > 0, length, 1)
        alike = np.abs(matrix.T @ matrix) >= SAME
        for place, column in enumerate(numbers):
            first = int(alike[place, : place + 1].argmax())
            if alike[place, first] and first < place:
                yield column.name, numbers[first].name
    seen: dict[bytes, str] = {}
    for column in columns:
        if column.kind != "category" or column.values.shape[1] == 1:
            continue
        categories = np.asarray(column.values.argmax(axis=1)).reshape(-1)
        _, first_rows, codes = np.unique(categories, return_index=True, return_inverse=True)
        by_appearance = np.argsort(np.argsort(first_rows))[codes].astype(np.int64)
        if by_appearance.max() == 0:
            continue
        before = seen.setdefault(by_appearance.tobytes(), column.name)
        if before != column.name:
            yield column.name, before


def _leak_warning(names: list[str], *, regression: bool) -> list[str]:
    if not names:
        return []
    what = "orders the nodes as the target does" if regression else "gives the label away"
    return [
        f"{_subject(names)} alone {what} in training nodes. Is it known before the label is? If it "
        "is a copy or a consequence of the label, scores are too good to be true: name it in "
        "ignore_columns"
    ]


def _id_warning(names: list[str]) -> list[str]:
    if not names:
        return []
    return [
        f"{_subject(names)} looks like an id but is read as a number. If the number means nothing, "
        "name it in ignore_columns; if it is a code that repeats, in categorical_columns"
    ]


def _repetition_warning(pairs: list[tuple[str, str]]) -> list[str]:
    if not pairs:
        return []
    shown = ", ".join(f"{one!r} (as {other!r})" for one, other in pairs[:3])
    more = f" and {len(pairs) - 3:,} more" if len(pairs) > 3 else ""
    one = len(pairs) == 1
    return [
        f"{'a column repeats another' if one else f'{len(pairs):,} columns repeat others'}: "
        f"{shown}{more}. They count twice; ignore_columns leaves one out"
    ]


def _subject(names: list[str]) -> str:
    if len(names) == 1:
        return f"column {names[0]!r}"
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return f"each of {len(names):,} columns ({shown})"
