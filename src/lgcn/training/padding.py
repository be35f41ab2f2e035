"""Steps on sub-graphs that change: all in the same arrays, so that one CUDA graph is enough.

Threads of the loader pad each sub-graph and write it into a block of pinned memory. A step copies
the block to the device, in one piece, and does the same work for every sub-graph.
"""

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.graph import Graph
from lgcn.graph.padded import Form, Sizes, assemble, forms_read, shapes_of, sizes_of, write
from lgcn.nn.lg_conv import LGConv
from lgcn.sampling.batches import BatchLoader
from lgcn.training.cuda_graphs import CopyStream, can_capture
from lgcn.training.settings import Settings
from lgcn.training.step import loss_weights
from lgcn.utils.flat import FlatArrays
from lgcn.utils.limits import MAX_INT32

HEADROOM = 1.25  # room for sub-graphs that are larger than the first ones
LOOKED_AT = 4  # sub-graphs whose sizes the first arrays are made for
# What sizes are rounded up to. A graph is captured anew when one grows.
MULTIPLES = Sizes(nodes=64, entries=1024, degree=128, values=1024, column=1)
# Beyond these, operators on a GPU would read what depends on the sub-graph: in the slow path for a
# larger k, and to split longer columns of sparse features (`lgcn.ops.gpu.launch`).
LARGEST_K = 128
LONGEST_COLUMN = 2048


class Padded(NamedTuple):
    """A sub-graph on the CPU, and its arrays padded to some sizes in a block of memory."""

    graph: Graph
    sizes: Sizes
    block: Tensor
    has_loss: bool  # whether it has training nodes


class Padding:
    """Pads sub-graphs to sizes that grow when one does not fit.

    A size at least doubles when it grows, so that this happens a few times in a training. The sizes
    depend on the sub-graphs that came before and on their order, not on how fast threads are.
    A training that is resumed starts with the first sizes again. If they had grown, its dropout
    draws other numbers from there on.

    Args:
        forms: The forms of the adjacency that the network reads.
        samples: Some sub-graphs, which tell types and first sizes.
        most_nodes: The nodes of a sub-graph, at most. (default: not known)
        pinned: Whether blocks are pinned, so that a GPU copies them while the CPU goes on.
            (default: `False`)
    """

    def __init__(
        self,
        forms: Sequence[Form],
        samples: Sequence[Graph],
        *,
        most_nodes: int | None = None,
        pinned: bool = False,
    ) -> None:
        self.forms = forms
        self.pinned = pinned
        self.num_features = samples[0].num_features
        self.sample = samples[0]  # all sub-graphs have such fields
        found = [sizes_of(sample, forms) for sample in samples]
        self.needed = Sizes(*map(max, *found, found[0]))
        room = Sizes(*map(_with_room, self.needed, MULTIPLES))
        nodes = room.nodes
        if most_nodes is not None:
            nodes = min(nodes, _rounded(most_nodes + 1, MULTIPLES.nodes))
        self._now = self._arrays(room._replace(nodes=nodes, column=LONGEST_COLUMN))

    @property
    def sizes(self) -> Sizes:
        """The sizes that sub-graphs are padded to now."""
        return self._now[0]

    @property
    def layout(self) -> FlatArrays:
        """The arrays in a block of these sizes."""
        return self._now[1]

    def prepare(self, graph: Graph) -> Graph | Padded:
        """Pads a sub-graph, in any thread; gives it back if it does not fit."""
        if why_not_padded(graph) is not None:
            return graph
        padded, needed = self._pad(graph, *self._now)
        return padded if needed.fit_into(padded.sizes) else graph

    def fit(self, prepared: Graph | Padded) -> Graph | Padded:
        """The sub-graph of the next step, in arrays of the present sizes, which may grow for it.

        To be called for all sub-graphs in the order of the steps. One that cannot be padded is
        given back as it is.
        """
        if isinstance(prepared, Padded):
            if prepared.sizes == self.sizes:
                return prepared
            prepared = prepared.graph  # padded before the sizes grew
        if why_not_padded(prepared) is not None:
            return prepared
        padded, needed = self._pad(prepared, *self._now)
        while not needed.fit_into(self.sizes):
            if needed.column > LONGEST_COLUMN or 2 * max(needed) > MAX_INT32:
                return prepared  # positions in the arrays have 32 bits
            self._now = self._arrays(Sizes(*map(_grown, self.sizes, needed, MULTIPLES)))
            padded, needed = self._pad(prepared, *self._now)
        return padded

    def _arrays(self, sizes: Sizes) -> tuple[Sizes, FlatArrays]:
        y = self.sample.y
        assert y is not None
        of_nodes = (sizes.nodes,)
        shapes = shapes_of(self.sample, self.forms, sizes)
        shapes |= {
            "y": ((*of_nodes, *y.shape[1:]), y.dtype),
            "loss_weight": (of_nodes, torch.float32),
            "share": (of_nodes, torch.float32),
        }
        return sizes, FlatArrays(shapes)

    def _pad(self, graph: Graph, sizes: Sizes, layout: FlatArrays) -> tuple[Padded, Sizes]:
        """The padded sub-graph, which is incomplete if the sizes that it needs do not fit."""
        block = layout.empty(pinned=self.pinned)
        arrays = layout.arrays(block)
        needed = write(graph, self.forms, sizes, arrays)
        has_loss = needed.fit_into(sizes) and _write_targets(graph, arrays)
        return Padded(graph, sizes, block, has_loss), needed


def _write_targets(graph: Graph, arrays: dict[str, Any]) -> bool:
    """Writes what the loss needs; whether there are training nodes."""
    nodes, weight = loss_weights(graph)
    assert graph.y is not None
    places = nodes.numpy()
    for name in ("y", "loss_weight", "share"):  # any class that there is, where it does not count
        arrays[name][:] = 0
    arrays["y"][places] = graph.y[nodes].numpy()
    arrays["loss_weight"][places] = 1 / max(len(places), 1) if weight is None else weight.numpy()
    arrays["share"][: graph.num_nodes] = 1 / graph.num_nodes
    return len(places) > 0


class PaddedBatch:
    """The arrays on the device that all padded sub-graphs are copied to, as a graph with targets.

    Args:
        padding: The padding.
        device: The device.

    Attributes:
        graph: The graph: features and the forms of the adjacency.
        y: The target of each node; any one for those without.
        weight: The weight of each node in the sum of the losses; 0 for those without target.
        share: One over the number of nodes; 0 for those that were added.
    """

    def __init__(self, padding: Padding, device: torch.device) -> None:
        self.sizes = padding.sizes
        self.block = padding.layout.empty(device)
        self.copies: CopyStream | None = None
        if device.type == "cuda":
            self.copies = CopyStream(device, self.block.numel())
        arrays = padding.layout.views(self.block)
        self.y, self.weight, self.share = (arrays[n] for n in ("y", "loss_weight", "share"))
        self.graph = assemble(arrays, padding.forms, padding.sizes, padding.num_features)

    def load(self, block: Tensor) -> None:
        """Takes over a padded sub-graph."""
        # `data` has a version counter of its own. That of the arrays stays the same, and so what is
        # known of them: it holds for all sub-graphs.
        if self.copies is None:
            self.block.data.copy_(block)
        else:
            self.copies.copy(block, self.block.data)


def padding_for(
    model: Module, loader: BatchLoader, settings: Settings, device: torch.device
) -> Padding | str:
    """The padding of a loader's sub-graphs for a model; or, if they cannot be padded, the reason.

    Args:
        model: The model, on the device.
        loader: The loader.
        settings: The settings.
        device: The device.
    """
    # Those of the first epoch, so that a training that is resumed starts with the same sizes.
    with closing(loader.epoch(1)) as batches:
        samples = list(islice(batches, LOOKED_AT))
    reasons = [_why_not(model, settings), *map(why_not_padded, samples)]
    found = next((reason for reason in reasons if reason is not None), None)
    if found is not None:
        return found

    def read(graph: Graph) -> None:
        with torch.no_grad():
            model(graph.features(), graph)

    was_training = model.training
    model.eval()  # draws no random numbers
    forms = forms_read(read, samples[0].to(device))
    model.train(was_training)
    if forms is None:
        return f"model={settings.model.name} reads more than the adjacency of a graph"
    pinned = device.type == "cuda"
    padding = Padding(forms, samples, most_nodes=loader.most_nodes, pinned=pinned)
    if padding.needed.column > LONGEST_COLUMN:
        return f"a sub-graph has more than {LONGEST_COLUMN} values of one feature or node"
    return padding


def _why_not(model: Module, settings: Settings) -> str | None:
    if not settings.hardware.capture:
        return "capture=false"
    if settings.hardware.compile:
        return "compile=true"
    if not can_capture(model, settings):
        return "the work of a step depends on random numbers or on the CPU"
    if not getattr(model, "can_pad", False):
        return f"model={settings.model.name} would see the nodes that are added"
    if any(isinstance(part, LGConv) and part.k > LARGEST_K for part in model.modules()):
        return f"k is larger than {LARGEST_K}"
    return None


def why_not_padded(graph: Graph) -> str | None:
    """Why a sub-graph cannot be padded; `None` if it can."""
    if graph.num_nodes < 2:
        return "a sub-graph has one node, whose features have no variance"
    x = graph.features()
    if x.dtype != torch.float32:
        return f"features are {x.dtype}, for which there are no GPU kernels"
    return None


def _with_room(most: int, multiple: int) -> int:
    return _rounded(int(HEADROOM * most), multiple)


def _grown(size: int, needed: int, multiple: int) -> int:
    return size if needed <= size else max(2 * size, _rounded(needed, multiple))


def _rounded(size: int, multiple: int) -> int:
    return max(1, -(-size // multiple)) * multiple
