"""Graphs of different sizes in arrays of fixed sizes, so that one CUDA graph works on all of them.

Nodes without neighbours are added up to a fixed number. The arrays of entries are longer than
needed, and the entries at their end belong to no row. What layers would derive from a graph, such
as its normalised adjacency and the transposed one, is computed beforehand, so that nothing of it
has to be computed, or read, where the arrays are.

Threads of a loader do that, hence kernels that release Python's lock, and few calls.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgcn.graph.adjacency import Adjacency, inverse_root
from lgcn.graph.csr import CSR, sparse_features
from lgcn.graph.graph import Graph
from lgcn.ops.structure import Transpose, csr_parts, trust_within
from lgcn.utils.flat import FlatArrays
from lgcn.utils.jit import jit


class Form(NamedTuple):
    """A form of the adjacency: that of `Graph.adjacency`, or with `edges` that of `Graph.edges`."""

    edges: bool
    normalize: bool
    self_loops: bool


class Sizes(NamedTuple):
    """Sizes of a graph as a network reads it, or the sizes that its arrays are padded to."""

    nodes: int  # padded, one more than the graph has at least
    entries: int  # of the adjacency in the longest of its forms
    degree: int  # the most entries of a row or column in any of the forms
    values: int  # of sparse features
    column: int  # the most values of a row or column of sparse features

    def fit_into(self, other: Sizes) -> bool:
        """Whether arrays of the other sizes have room for these."""
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))


# A structure and the transposed one.
STRUCTURE = ("rowptr", "col", "colptr", "row", "entry")
X_NAMES = [f"x.{name}" for name in STRUCTURE]

Shapes = dict[str, tuple[tuple[int, ...], torch.dtype]]


def forms_read(read: Callable[[Graph], Any], graph: Graph) -> list[Form] | None:
    """The forms of the adjacency that a function reads; `None` if it reads anything else of it.

    Args:
        read: Is called with the graph.
        graph: The graph.
    """
    watched = _Watched(graph)
    read(replace(graph, _adjacency=watched))
    return None if watched.reads_more else sorted(watched.forms)


def shapes_of(graph: Graph, forms: Sequence[Form], sizes: Sizes) -> Shapes:
    """Shapes and types of the arrays of graphs of these sizes.

    Args:
        graph: One of the graphs, which all have the same fields and as many features.
        forms: The forms of the adjacency that are read.
        sizes: The sizes.
    """
    index, value = torch.int32, torch.float32  # numbers of 32 bits are less to copy and to read
    nodes, entries, values = sizes.nodes, sizes.entries, sizes.values
    found: Shapes = {}
    for self_loops in _structures(forms):
        lengths = (nodes + 1, entries, nodes + 1, entries, entries)
        names = _names(self_loops)
        found |= {name: ((n,), index) for name, n in zip(names, lengths, strict=True)}
    for form in forms:
        if form.edges:
            found[_name("edges", form)] = (2, entries), torch.int64
        if form.normalize or graph.edge_weight is not None:
            found[_name("weight", form)] = (entries,), value
    x, width = graph.features(), graph.num_features
    if x.layout == torch.sparse_csr:
        lengths = (nodes + 1, values, width + 1, values, values)
        found |= {name: ((n,), index) for name, n in zip(X_NAMES, lengths, strict=True)}
        return found | {"x.value": ((values,), x.dtype)}
    return found | {"x": ((nodes, width), x.dtype)}


def write(graph: Graph, forms: Sequence[Form], sizes: Sizes, arrays: dict[str, Any]) -> Sizes:
    """Writes a graph to padded arrays, as a network reads it.

    Args:
        graph: The graph, on the CPU, with features.
        forms: The forms of its adjacency that are read.
        sizes: The sizes of the arrays.
        arrays: NumPy arrays of the shapes of `shapes_of`.

    Returns:
        The sizes that the graph needs. If they do not fit into `sizes`, the arrays are incomplete,
        and with too many nodes the other sizes are not counted.
    """
    needed = Sizes(graph.num_nodes + 1, 0, 0, 0, 0)
    if needed.nodes > sizes.nodes:
        return needed
    entries = degree = 0
    rowptr, col = graph.rowptr.numpy(), graph.col.numpy()
    for self_loops in _structures(forms):
        targets = [arrays[name] for name in _names(self_loops)]
        found = _write_structure(rowptr, col, graph.num_nodes, self_loops, *targets)
        entries, degree = max(entries, found[0]), max(degree, found[1])
    if entries <= sizes.entries:
        for form in forms:
            if form.edges:
                entries = max(entries, _write_edges(graph, form, sizes, arrays))
            elif _name("weight", form) in arrays:
                _write_weights(graph, form, arrays)
    needed = needed._replace(entries=entries, degree=degree)
    x = graph.features()
    if x.layout != torch.sparse_csr:
        arrays["x"][: graph.num_nodes] = x.numpy()
        arrays["x"][graph.num_nodes :] = 0
        return needed
    rowptr, col, value = (part.numpy() for part in csr_parts(x))
    targets = [arrays[name] for name in X_NAMES]
    values, column = _write_structure(rowptr, col, x.size(1), False, *targets)
    if values <= sizes.values:
        arrays["x.value"][:values] = value
        arrays["x.value"][values:] = 0
    return needed._replace(values=values, column=column)


def sizes_of(graph: Graph, forms: Sequence[Form]) -> Sizes:
    """The sizes that a graph needs."""
    nodes, entries = graph.num_nodes, graph.num_edges
    x = graph.features()
    values = csr_parts(x)[1].numel() if x.layout == torch.sparse_csr else 0
    enough = Sizes(nodes + 1, nodes + entries, 0, values, 0)
    flat = FlatArrays(shapes_of(graph, forms, enough))
    return write(graph, forms, enough, flat.arrays(flat.empty()))


def assemble(
    arrays: dict[str, Tensor], forms: Iterable[Form], sizes: Sizes, num_features: int
) -> Graph:
    """The graph of padded arrays, whose contents may be replaced in a way that torch does not see.

    Args:
        arrays: The arrays, of the shapes of `shapes_of`.
        forms: The forms of the adjacency that are read.
        sizes: The sizes that they were padded to.
        num_features: Features per node.
    """
    nodes, matrices, edges = sizes.nodes, {}, {}
    structures: dict[bool, tuple[Tensor, Tensor]] = {}
    for form in forms:
        weight = arrays.get(_name("weight", form))
        if form.edges:
            edges[form] = arrays[_name("edges", form)], weight
            continue
        if form.self_loops not in structures:
            rowptr, col, *turned = (arrays[name] for name in _names(form.self_loops))
            structures[form.self_loops] = rowptr, col
            longest = sizes.degree
            trust_within(
                rowptr, col, nodes, longest, Transpose(*turned), longest, spare_column=True
            )
        matrices[form] = CSR(*structures[form.self_loops], weight)
    x = arrays.get("x")
    if x is None:
        rowptr, col, *turned = (arrays[name] for name in X_NAMES)
        x = sparse_features(rowptr, col, arrays["x.value"], num_features)
        rowptr, col, _ = csr_parts(x)
        longest = sizes.column
        trust_within(
            rowptr, col, num_features, longest, Transpose(*turned), longest, spare_column=False
        )
    if structures:
        rowptr, col = next(iter(structures.values()))
    else:  # the number of nodes is all that is read of it
        rowptr = torch.zeros(nodes + 1, dtype=torch.long, device=x.device)
        col = rowptr.new_empty(0)
    return Graph(rowptr, col, x=x, _adjacency=_Given(rowptr, col, matrices, edges))


def _structures(forms: Iterable[Form]) -> list[bool]:
    """Whether there are self-loops: normalising changes the weights alone."""
    return sorted({form.self_loops for form in forms if not form.edges})


def _names(self_loops: bool) -> list[str]:
    """The names of the arrays of a structure and of the transposed one."""
    return [f"{name} self_loops={self_loops}" for name in STRUCTURE]


def _name(array: str, form: Form) -> str:
    return f"{array} {' '.join(f'{key}={value}' for key, value in form._asdict().items())}"


def _write_edges(graph: Graph, form: Form, sizes: Sizes, arrays: dict[str, Any]) -> int:
    """Writes the edges; those that are added go from the last node to itself. Their number."""
    edge_index, weight = graph.edges(normalize=form.normalize, self_loops=form.self_loops)
    count = edge_index.size(1)
    if count <= sizes.entries:
        target = arrays[_name("edges", form)]
        target[:, :count] = edge_index.numpy()
        target[:, count:] = sizes.nodes - 1
        if weight is not None:
            target = arrays[_name("weight", form)]
            target[:count] = weight.numpy()
            target[count:] = 0
    return count


def _write_weights(graph: Graph, form: Form, arrays: dict[str, Any]) -> None:
    """Writes the weights of the entries, as `Graph.adjacency` computes them."""
    starts, numbers = (arrays[name] for name in _names(form.self_loops)[:2])
    nodes = graph.num_nodes
    scale = np.empty(0, np.float32)
    if form.normalize:
        more = np.diff(starts[: nodes + 1]) - graph.rowptr.diff().numpy()
        scale = inverse_root(graph.row_degree() + torch.from_numpy(more)).numpy()
    weight = graph.edge_weight
    given = np.empty(0, np.float32) if weight is None else weight.float().numpy()
    target = arrays[_name("weight", form)]
    _write_products(graph.rowptr.numpy(), given, scale, starts, numbers, target)


@jit
def _write_structure(
    rowptr: Any, col: Any, num_cols: Any, self_loops: Any,
    starts: Any, numbers: Any, colptr: Any, row: Any, entry: Any,
) -> Any:  # fmt: skip
    """Writes a structure and the transposed one; the number of entries, and of the longest row.

    A missing self-loop comes first in its row. Entries that do not fit are counted alone.
    """
    room = numbers.shape[0]
    colptr[:] = 0
    starts[0] = 0
    at = longest = 0
    rows = rowptr.shape[0] - 1
    for i in range(rows):
        first = at
        lacks_loop = self_loops
        if self_loops:
            for e in range(rowptr[i], rowptr[i + 1]):
                lacks_loop &= col[e] != i
        if lacks_loop:
            if at < room:
                numbers[at] = i
            colptr[i + 1] += 1
            at += 1
        for e in range(rowptr[i], rowptr[i + 1]):
            if at < room:
                numbers[at] = col[e]
            colptr[col[e] + 1] += 1
            at += 1
        starts[i + 1] = at
        longest = max(longest, at - first)
    starts[rows + 1 :] = at
    for j in range(num_cols):
        longest = max(longest, colptr[j + 1])
        colptr[j + 1] += colptr[j]
    colptr[num_cols + 1 :] = at
    if at <= room:
        free = colptr[:num_cols].copy()
        for i in range(rows):
            for e in range(starts[i], starts[i + 1]):
                place = free[numbers[e]]
                row[place], entry[place] = i, e
                free[numbers[e]] = place + 1
        numbers[at:] = 0
        row[at:] = 0
        entry[at:] = 0
    return at, longest


@jit
def _write_products(
    rowptr: Any, given: Any, scale: Any, starts: Any, numbers: Any, target: Any
) -> None:
    """Writes the products of scales and given weights, if there are any; of new loops, 1."""
    rows = rowptr.shape[0] - 1
    for i in range(rows):
        added = (starts[i + 1] - starts[i]) - (rowptr[i + 1] - rowptr[i])
        for e in range(starts[i], starts[i + 1]):
            product = target.dtype.type(1)
            if scale.shape[0] > 0:
                product = scale[i] * scale[numbers[e]]
            if given.shape[0] > 0:
                before = rowptr[i] + (e - starts[i]) - added
                product = product * (given[before] if before >= rowptr[i] else 1)
            target[e] = product
    target[starts[rows] :] = 0


class _Watched(Adjacency):
    """Notes what is read of a graph's adjacency."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.rowptr, graph.col, graph.edge_weight, graph.degree, trusted=True)
        self.watched = graph._adjacency
        self.forms: set[Form] = set()
        self.reads_more = False

    def matrix(self, *, normalize: bool, self_loops: bool) -> CSR:
        self.forms.add(Form(False, normalize, self_loops))
        return self.watched.matrix(normalize=normalize, self_loops=self_loops)

    def edges(self, *, normalize: bool, self_loops: bool) -> tuple[Tensor, Tensor | None]:
        self.forms.add(Form(True, normalize, self_loops))
        return self.watched.edges(normalize=normalize, self_loops=self_loops)

    def row_degree(self) -> Tensor:
        self.reads_more = True
        return self.watched.row_degree()

    def rows(self, *args: Any, **options: Any) -> CSR:
        self.reads_more = True
        return self.watched.rows(*args, **options)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        self.reads_more = True
        return self.watched.once(key, make)


class _Given(Adjacency):
    """An adjacency whose forms are given; others cannot be computed."""

    def __init__(
        self,
        rowptr: Tensor,
        col: Tensor,
        matrices: dict[Form, CSR],
        edges: dict[Form, tuple[Tensor, Tensor | None]],
    ) -> None:
        super().__init__(rowptr, col, trusted=True)
        self.given: dict[Form, Any] = {**matrices, **edges}

    def matrix(self, *, normalize: bool, self_loops: bool) -> CSR:
        found: CSR = self._find(Form(False, normalize, self_loops))
        return found

    def edges(self, *, normalize: bool, self_loops: bool) -> tuple[Tensor, Tensor | None]:
        found: tuple[Tensor, Tensor | None] = self._find(Form(True, normalize, self_loops))
        return found

    def rows(self, *args: Any, **options: Any) -> CSR:
        raise RuntimeError("blocks of rows cannot be read from a padded graph")

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        raise RuntimeError(f"nothing can be derived from a padded graph, got {key}")

    def _find(self, form: Form) -> Any:
        if form not in self.given:
            raise RuntimeError(f"a padded graph has the forms {list(self.given)}, got {form}")
        return self.given[form]
