"""Graphs of different sizes in arrays of fixed sizes, so that one CUDA graph works on all of them.

Nodes without neighbours are added up to a fixed number. The arrays of entries are longer than
needed, and the entries at their end belong to no row. What layers would derive from a graph, such
as its normalised adjacency and the transposed one, is computed for the graph itself and padded, so
that nothing of it has to be computed, or read, where the arrays are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lgcn.graph.adjacency import Adjacency
from lgcn.graph.csr import CSR, sparse_features
from lgcn.graph.graph import Graph
from lgcn.ops.structure import Transpose, csr_parts, transpose, trust_within


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


class Piece(NamedTuple):
    """An array of a graph, and how it is padded along one of its axes."""

    values: Tensor
    size: int  # which of `Sizes` its length depends on; -1 if it is not padded
    fill: str = "zero"  # or "last", the last value, or "spare", the last node
    more: int = 0  # how much longer it is than that size
    axis: int = 0
    dtype: torch.dtype | None = None  # of the padded array, if it is another one

    def length(self, sizes: Sizes) -> int:
        """Its padded length."""
        return self.values.size(self.axis) if self.size < 0 else sizes[self.size] + self.more

    def array(self, sizes: Sizes) -> tuple[tuple[int, ...], torch.dtype]:
        """Shape and type of the padded array."""
        shape = list(self.values.shape)
        shape[self.axis] = self.length(sizes)
        return tuple(shape), self.values.dtype if self.dtype is None else self.dtype

    def write(self, target: Tensor, sizes: Sizes) -> None:
        """Writes it to an array of its padded shape."""
        count, total = self.values.size(self.axis), self.length(sizes)
        target.narrow(self.axis, 0, count).copy_(self.values)
        if count < total:
            rest = target.narrow(self.axis, count, total - count)
            if self.fill == "last":
                rest.copy_(self.values[-1])
            else:
                rest.fill_(sizes.nodes - 1 if self.fill == "spare" else 0)


NODES, ENTRIES, VALUES = (Sizes._fields.index(name) for name in ("nodes", "entries", "values"))


def forms_read(read: Callable[[Graph], Any], graph: Graph) -> list[Form] | None:
    """The forms of the adjacency that a function reads; `None` if it reads anything else of it.

    Args:
        read: Is called with the graph.
        graph: The graph.
    """
    watched = _Watched(graph)
    read(replace(graph, _adjacency=watched))
    return None if watched.reads_more else sorted(watched.forms)


def pieces_of(graph: Graph, forms: Iterable[Form]) -> tuple[dict[str, Piece], Sizes]:
    """The arrays of a graph as a network reads it, and their sizes.

    Args:
        graph: The graph, on the CPU, with features.
        forms: The forms of its adjacency that are read.
    """
    pieces: dict[str, Piece] = {}
    entries, degree = 0, 0
    for form in forms:
        options = {"normalize": form.normalize, "self_loops": form.self_loops}
        if form.edges:
            edge_index, weight = graph.edges(**options)
            pieces[_name("edges", form)] = Piece(edge_index, ENTRIES, "spare", axis=1)
            entries = max(entries, edge_index.size(1))
        else:
            rowptr, col, weight = graph.adjacency(**options)
            if _name("rowptr", form) not in pieces:
                found, longest = _structure(rowptr, col, graph.num_nodes, ENTRIES)
                names = ("rowptr", "col", "colptr", "row", "entry")
                pieces |= {_name(n, form): p for n, p in zip(names, found, strict=True)}
                entries, degree = max(entries, col.numel()), max(degree, longest)
        if weight is not None:
            pieces[_name("weight", form)] = Piece(weight, ENTRIES)
    values, column = 0, 0
    x = graph.features()
    if x.layout == torch.sparse_csr:
        rowptr, col, value = csr_parts(x)
        found, column = _structure(rowptr, col, x.size(1), VALUES)
        found[2] = found[2]._replace(size=-1)  # there are always as many features
        names = ("x.rowptr", "x.col", "x.colptr", "x.row", "x.entry")
        pieces |= dict(zip(names, found, strict=True))
        pieces["x.value"] = Piece(value, VALUES)
        values = value.numel()
    else:
        pieces["x"] = Piece(x, NODES)
    return pieces, Sizes(graph.num_nodes + 1, entries, degree, values, column)


def assemble(
    arrays: dict[str, Tensor], forms: Iterable[Form], sizes: Sizes, num_features: int
) -> Graph:
    """The graph of padded arrays, whose contents may be replaced in a way that torch does not see.

    Args:
        arrays: The padded pieces.
        forms: The forms of the adjacency that are read.
        sizes: The sizes that they were padded to.
        num_features: Features per node.
    """
    nodes, matrices, edges = sizes.nodes, {}, {}
    structures: dict[str, tuple[Tensor, Tensor]] = {}
    for form in forms:
        weight = arrays.get(_name("weight", form))
        if form.edges:
            edges[form] = arrays[_name("edges", form)], weight
            continue
        name = _name("rowptr", form)
        if name not in structures:
            parts = [arrays[_name(n, form)] for n in ("rowptr", "col", "colptr", "row", "entry")]
            structures[name] = rowptr, col = parts[0], parts[1]
            longest = sizes.degree
            turned = Transpose(*parts[2:])
            trust_within(rowptr, col, nodes, longest, turned, longest, spare_column=True)
        matrices[form] = CSR(*structures[name], weight)
    x = arrays.get("x")
    if x is None:
        x = sparse_features(arrays["x.rowptr"], arrays["x.col"], arrays["x.value"], num_features)
        rowptr, col, _ = csr_parts(x)
        turned = Transpose(*(arrays[f"x.{name}"] for name in ("colptr", "row", "entry")))
        longest = sizes.column
        trust_within(rowptr, col, num_features, longest, turned, longest, spare_column=False)
    if structures:
        rowptr, col = next(iter(structures.values()))
    else:  # the number of nodes is all that is read of it
        rowptr = torch.zeros(nodes + 1, dtype=torch.long, device=x.device)
        col = rowptr.new_empty(0)
    return Graph(rowptr, col, x=x, _adjacency=_Given(rowptr, col, matrices, edges))


def _structure(rowptr: Tensor, col: Tensor, num_cols: int, size: int) -> tuple[list[Piece], int]:
    """The arrays of a structure and of its transpose; the most entries of a row or column."""
    turned = transpose(rowptr, col, num_cols)
    longest = max(_longest(rowptr), _longest(turned.colptr))
    small = torch.int32  # half as much to copy and to read
    offsets = [Piece(ptr, NODES, "last", 1, dtype=small) for ptr in (rowptr, turned.colptr)]
    numbers = [Piece(number, size, dtype=small) for number in (col, turned.row, turned.entry)]
    return [offsets[0], numbers[0], offsets[1], *numbers[1:]], longest


def _longest(ptr: Tensor) -> int:
    return int(ptr.diff().max()) if ptr.numel() > 1 else 0


def _name(array: str, form: Form) -> str:
    """Normalising changes the weights alone, so both forms share the other arrays."""
    of_weight = f" normalize={form.normalize} edges={form.edges}" if array == "weight" else ""
    if array == "edges":
        of_weight = f" normalize={form.normalize}"
    return f"{array} self_loops={form.self_loops}{of_weight}"


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
