"""Features that a graph's edges give, as a run stores them: which, how scaled, for which graph.

Structural features (`lgcn.graph.structural`) have a meaning on every graph. Positions
(`lgcn.graph.positions`) are coordinates within one graph: a model that uses them can predict the
nodes of the graph of its training, and no others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.utils.memory import check_memory

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.graph import Graph
    from lgcn.training.settings import Settings

POSITIONS = 32  # coordinates
MAX_POSITIONS = 1024
# positions=auto gives none to larger graphs: they take 128 bytes per node, and minutes.
MAX_NODES = 2_000_000
KINDS = ("none", "spectral", "learnt")
# Largest difference of recomputed positions, as a share of the graph's size.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Structure:
    """How features are made from edges.

    Args:
        features: Names of the structural features.
        mean: Of each of them, over the nodes of the training.
        factor: By which each is multiplied after the mean is subtracted.
        positions: `"none"`, `"spectral"` or `"learnt"`. (default: `"none"`)
        dimensions: Number of coordinates. (default: 0)
        position_factor: By which positions are multiplied. (default: 1)
        seed: Of positions. (default: 0)
        graph: Digest of the adjacency that positions belong to. (default: none)
        check: One number per coordinate, to see whether positions were recomputed alike.
            (default: none)
    """

    features: tuple[str, ...]
    mean: tuple[float, ...]
    factor: tuple[float, ...]
    positions: str = "none"
    dimensions: int = 0
    position_factor: float = 1.0
    seed: int = 0
    graph: str | None = None
    check: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """Number of features that are added."""
        return len(self.features) + self.dimensions

    @classmethod
    def fit(cls, graph: Graph, settings: Settings) -> Structure | None:
        """What the settings add to a graph, scaled by its nodes; `None` if they add nothing.

        If the splits are separate graphs, the training graphs alone decide. Beside other features,
        the added ones are as long as those, so that neither drowns the other.

        Args:
            graph: The graph to be trained on, as the user gave it.
            settings: With `structural_features` and `positions`.
        """
        wanted, kind = added(graph, settings)
        if not wanted and kind == "none":
            return None
        from lgcn.graph.statistics import feature_length

        length = feature_length(graph)
        found = cls((), (), ())
        if wanted:
            degree = settings.structural_features == "degree"
            found = _features(graph, length, ("log_degree",) if degree else None)
        return found if kind == "none" else found._with_positions(graph, kind, settings, length)

    def _with_positions(
        self, graph: Graph, kind: str, settings: Settings, length: float
    ) -> Structure:
        from lgcn.graph.positions import checksums, digest, positions

        if graph.inductive:
            raise UsageError(
                f"positions={kind} needs one graph, but the splits of {graph.name} are separate "
                "graphs, in which coordinates do not mean the same. Use positions=none"
            )
        size = min(POSITIONS, max(1, graph.num_nodes - 2))
        found = positions(graph, kind, size, settings.seed)
        typical = math.sqrt(float((found.astype("float64") ** 2).sum()) / max(1, len(found)))
        return replace(
            self,
            positions=kind,
            dimensions=size,
            position_factor=length / (typical or 1.0),
            seed=settings.seed,
            graph=digest(graph),
            check=tuple(checksums(found)),
        )

    def add_to(self, graph: Graph) -> Graph:
        """The graph with these features after its own.

        Args:
            graph: A graph as the user gave it: that of the training, or, without positions, any.
        """
        import numpy as np
        import torch

        if self.positions != "none":
            self._check_graph(graph)
        rows = graph.num_nodes
        check_memory(12 * rows * self.width, f"{self.width} features from the edges")
        block = np.empty((rows, self.width), np.float32)
        if self.features:
            from lgcn.graph.structural import structural_features

            values = structural_features(graph, self.features)
            block[:, : len(self.features)] = (values - np.array(self.mean)) * np.array(self.factor)
        if self.positions != "none":
            block[:, len(self.features) :] = self._positions(graph)
        x = _beside(graph, torch.from_numpy(block).to(graph.rowptr.device))
        return replace(graph, x=x, feature_scale=None)

    def _check_graph(self, graph: Graph) -> None:
        from lgcn.graph.positions import digest

        if digest(graph) != self.graph:
            raise UsageError(
                f"the model uses positions ({self.positions}), which exist only in the graph of "
                f"its training, and the edges of {graph.name} differ from it. To predict other "
                "graphs, train with positions=none"
            )

    def _positions(self, graph: Graph) -> Any:
        import numpy as np

        from lgcn.graph.positions import checksums, positions

        found = positions(graph, self.positions, self.dimensions, self.seed)
        if not np.allclose(checksums(found), self.check, rtol=0, atol=TOLERANCE):
            raise UsageError(
                f"the positions ({self.positions}) of {graph.name} come out differently on this "
                "machine than in the training, as rounding can turn them where parts of a graph "
                "are alike. Predict on the machine of the training, or train with positions=none"
            )
        return found * self.position_factor

    @classmethod
    def from_dict(cls, stored: Any) -> Structure:
        """The stored structure, checked; raises ValueError or TypeError."""
        from lgcn.graph.structural_names import NAMES

        if not isinstance(stored, Mapping):
            raise ValueError("structure must be a table or null")
        lists = ("features", "mean", "factor", "check")
        if any(not isinstance(stored.get(key), list) for key in lists):
            raise ValueError(f"structure must have the lists {', '.join(lists)}")
        values: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in stored.items()}
        found = cls(**values)
        if not set(found.features) <= set(NAMES) or len(set(found.features)) < len(found.features):
            raise ValueError(f"structure.features must be some of {', '.join(NAMES)}")
        for key, size in (
            ("mean", len(found.features)),
            ("factor", len(found.features)),
            ("check", found.dimensions),
        ):
            numbers = getattr(found, key)
            if len(numbers) != size or not all(map(_is_number, numbers)):
                raise ValueError(f"structure.{key} must have {size} finite numbers")
        if found.positions not in KINDS or not _is_number(found.position_factor):
            raise ValueError("structure.positions or structure.position_factor is wrong")
        has = found.positions != "none"
        for key in ("dimensions", "seed"):
            if type(getattr(found, key)) is not int or getattr(found, key) < 0:
                raise ValueError(f"structure.{key} must be a whole number")
        if found.dimensions > MAX_POSITIONS or (found.dimensions > 0) != has:
            raise ValueError(f"structure.dimensions must not be {found.dimensions}")
        if not isinstance(found.graph, str if has else type(None)):
            raise ValueError("structure.graph must be a digest with positions, else null")
        return found


def added(graph: Graph, settings: Settings) -> tuple[bool, str]:
    """Whether structural features are added to a graph, and which positions.

    Args:
        graph: The graph as the user gave it.
        settings: With `structural_features` and `positions`.
    """
    bare = graph.num_features == 0 and graph.num_edges > 0
    wanted = settings.structural_features == "yes" or (
        settings.structural_features in ("auto", "degree") and bare
    )
    kind: str = settings.positions
    if kind == "auto":
        from lgcn.graph.structural import LARGE

        small = graph.num_nodes <= MAX_NODES and graph.num_edges <= LARGE
        kind = "learnt" if bare and wanted and small and not graph.inductive else "none"
    return wanted, kind


def prepared_length(graph: Graph, settings: Settings) -> float:
    """The typical length of a node's features, with those that the settings add.

    Args:
        graph: The graph as the user gave it.
        settings: With `structural_features` and `positions`.
    """
    from lgcn.graph.statistics import feature_length

    wanted, kind = added(graph, settings)
    parts = (graph.num_features > 0) + wanted + (kind != "none")  # each is as long
    return feature_length(graph) * math.sqrt(max(1, parts))


def _features(graph: Graph, length: float, names: tuple[str, ...] | None = None) -> Structure:
    """Structural features, scaled over the nodes of the training; constant ones are left out.

    Without `names`, they are all that the graph can have at a reasonable cost.
    """
    import numpy as np

    from lgcn.graph.structural import structural_features, suitable_names

    names = suitable_names(graph) if names is None else names
    values = structural_features(graph, names).astype(np.float64)
    if graph.inductive:
        assert graph.train_mask is not None
        values = values[graph.train_mask.cpu().numpy()]
    mean, deviation = values.mean(0), values.std(0)
    kept = [place for place in range(len(names)) if deviation[place] > 1e-6]
    if not kept:  # all nodes look alike
        return Structure((names[0],), (float(mean[0]),), (1.0,))
    factor = length / (deviation[kept] * math.sqrt(len(kept)))
    return Structure(
        tuple(names[place] for place in kept), tuple(mean[kept].tolist()), tuple(factor.tolist())
    )


def _beside(graph: Graph, block: Tensor) -> Tensor:
    """The graph's features with further columns; sparse ones stay sparse."""
    import torch

    if graph.num_features == 0:
        return block
    x = graph.features()
    if x.layout != torch.sparse_csr:
        check_memory(4 * graph.num_nodes * (x.size(1) + block.size(1)), "the features")
        return torch.cat([x, block.to(x.dtype)], dim=1)
    from lgcn.graph.csr import sparse_features

    rowptr, col = x.crow_indices(), x.col_indices()
    width, extra = x.size(1), block.size(1)
    # Each row of x, then its entries of the block.
    rows = torch.arange(len(rowptr), device=rowptr.device, dtype=rowptr.dtype)
    offsets = rowptr + rows * extra
    is_new = torch.zeros(col.numel() + block.numel(), dtype=torch.bool, device=col.device)
    first = offsets[1:] - extra
    is_new[(first[:, None] + torch.arange(extra, device=col.device)).reshape(-1)] = True
    columns = col.new_empty(len(is_new))
    values = x.values().new_empty(len(is_new))
    columns[~is_new], values[~is_new] = col, x.values()
    numbers = torch.arange(width, width + extra, device=col.device, dtype=col.dtype)
    columns[is_new] = numbers.repeat(len(block))
    values[is_new] = block.reshape(-1).to(values.dtype)
    return sparse_features(offsets, columns, values, width + extra)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
