"""An LGCL block of rows by block of rows: the grid of a large graph never exists as a whole.

Without gradients, a block is selected, convolved and forgotten. With them, `recomputed` does the
same and makes each block again in the backward pass. What it keeps in between is its input.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils._python_dispatch import TorchDispatchMode

from lgcn.graph.csr import CSR
from lgcn.ops.blocks import RowBlock
from lgcn.ops.cpu.launch import Overwritten
from lgcn.ops.k_largest import add_grad_x, grad_weight
from lgcn.ops.reference import compute_dtype

if TYPE_CHECKING:
    from lgcn.nn.lg_conv import LGConv

# Modules whose output on a row depends on the other rows or on random numbers, while they train.
_NOT_BY_ROWS = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.modules.dropout._DropoutNd,
    torch.nn.RReLU,
    torch.nn.RNNBase,
    torch.nn.MultiheadAttention,
)


def repeats(cnn: Module) -> bool:
    """Whether a CNN gives the same for a block of rows when it is called again.

    As far as its modules tell. `recomputed` refuses a CNN of your own that draws random numbers all
    the same; that it treats each row on its own is left to you.
    """
    return not any(_varies(module) for module in cnn.modules())


def _varies(module: Module) -> bool:
    if isinstance(module, torch.nn.modules.batchnorm._NormBase):
        # In evaluation too, those without running averages use those of the rows they get.
        return module.training or module.running_mean is None
    if not module.training or not isinstance(module, _NOT_BY_ROWS):
        return False
    return not isinstance(module, torch.nn.modules.dropout._DropoutNd) or module.p > 0


def by_blocks(
    conv: LGConv,
    blocks: Sequence[RowBlock],
    source: Tensor,
    own: Tensor | None,
    adjacency: CSR,
) -> Tensor:
    """The output of a layer, block by block.

    Args:
        conv: The layer.
        blocks: All rows of the adjacency.
        source: Features of the neighbours.
        own: Features of the nodes themselves; `None` for zeros.
        adjacency: The rows of the nodes; its columns number the rows of `source`.
    """
    if len(blocks) == 1:
        return conv.convolve(conv.select(source, own, adjacency))
    out: Tensor | None = None
    cnn = conv.prepared()
    memory = Overwritten() if source.is_cpu and cnn is not conv.cnn else None
    for block in blocks:
        own_rows = None if own is None else block.rows(own)
        rows = CSR(block.rowptr, block.col, block.entries(adjacency.weight))
        part = conv.convolve(conv.select(source, own_rows, rows, memory=memory), cnn=cnn)
        if out is None:  # in one piece from the start: to join the parts would take as much again
            out = part.new_empty(blocks[-1].stop, part.size(1))
        block.rows(out).copy_(part)
        del part  # before the next grid is made
    assert out is not None
    return out


def recomputed(
    conv: LGConv,
    blocks: Sequence[RowBlock],
    source: Tensor,
    own: Tensor | None,
    adjacency: CSR,
) -> Tensor:
    """The output of a layer that keeps its input for the backward pass, and nothing else.

    Arguments are as those of `by_blocks`. The layer must not drop anything, and its CNN must
    satisfy `repeats`.
    """
    kind = source.device.type
    if torch.is_autocast_enabled(kind):  # cast once here, rather than block by block
        cast = source.to(torch.get_autocast_dtype(kind))
        source, own = cast, cast if own is source else own
    weight = None if adjacency.weight is None else adjacency.weight.to(source.dtype)
    names, parameters = [], []
    for name, parameter in conv.cnn.named_parameters():
        names.append(name)
        parameters.append(parameter)
    out: Tensor = _Recomputed.apply(  # type: ignore[no-untyped-call]
        conv, blocks, names, source, own, weight, adjacency.rowptr, adjacency.col, *parameters
    )
    return out


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        conv: LGConv,
        blocks: Sequence[RowBlock],
        names: Sequence[str],
        source: Tensor,
        own: Tensor | None,
        weight: Tensor | None,
        rowptr: Tensor,
        col: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        ctx.conv, ctx.blocks, ctx.names = conv, blocks, names
        ctx.training = _training(conv)
        ctx.own_is_source = own is source
        ctx.autocast = _autocast(source.device.type)
        # All are inputs, so this keeps no memory; a change in place before the backward is noticed.
        ctx.save_for_backward(
            source, None if own is source else own, weight, rowptr, col, *parameters
        )
        before = _versions(conv.cnn)
        with torch.autocast(**ctx.autocast), conv.no_random_numbers():
            out = by_blocks(conv, blocks, source, own, CSR(rowptr, col, weight))
        if _versions(conv.cnn) != before:
            raise RuntimeError(
                "cnn must not change its buffers with recompute=True, since the backward pass "
                "would start from others. Set recompute=False"
            )
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        source, own, weight, rowptr, col, *parameters = ctx.saved_tensors
        own = source if ctx.own_is_source else own
        needs = ctx.needs_input_grad[3:6]
        with _as_before(ctx.conv, ctx.training), torch.autocast(**ctx.autocast):
            if torch.is_grad_enabled():  # this pass is differentiated in turn, so it is kept
                adjacency = CSR(rowptr, col, weight)
                out = ctx.conv.convolve(
                    ctx.conv.select(source, own, adjacency),
                    dict(zip(ctx.names, parameters, strict=True)),
                )
                found = _differentiable(out, grad, [source, own, weight, *parameters], ctx)
                return None, None, None, *found[:3], None, None, *found[3:]
            sums = _Gradients(ctx.conv, source, own, weight, needs, ctx.needs_input_grad[8:])
            sums.set_parameters(ctx.names, parameters)
            for block in ctx.blocks:
                sums.add(block, block.rows(grad))
        return None, None, None, *sums.of_inputs(), None, None, *sums.of_parameters()


def _differentiable(
    out: Tensor, grad: Tensor, inputs: Sequence[Tensor | None], ctx: Any
) -> list[Tensor | None]:
    needed = (*ctx.needs_input_grad[3:6], *ctx.needs_input_grad[8:])
    wanted = [i for i, need in enumerate(needed) if need]
    if ctx.own_is_source:  # one gradient for both
        wanted = [i for i in wanted if i != 1]
    tensors: Any = [inputs[i] for i in wanted]
    got = torch.autograd.grad(out, tensors, grad, create_graph=True, allow_unused=True)
    found: list[Tensor | None] = [None] * len(needed)
    for i, gradient in zip(wanted, got, strict=True):
        found[i] = gradient
    return found


class _Gradients:
    """The gradients of a layer, to which blocks of rows are added.

    Sums over blocks are in float32 at least: a sum of all rows at once is rounded only once.

    Args:
        conv: The layer.
        source, own, weight: As in `by_blocks`.
        needs: Which of the three have gradients.
        needs_parameters: Which of the CNN's parameters have gradients.
    """

    def __init__(
        self,
        conv: LGConv,
        source: Tensor,
        own: Tensor | None,
        weight: Tensor | None,
        needs: Sequence[bool],
        needs_parameters: Sequence[bool],
    ) -> None:
        self.conv, self.source, self.own, self.weight = conv, source, own, weight
        self.needs_source, needs_own, self.needs_weight = needs
        self.needs_parameters = needs_parameters
        sums = compute_dtype(source.dtype)
        self.of_source = torch.zeros_like(source, dtype=sums) if self.needs_source else None
        self.own_is_source = own is source
        self.of_own: Tensor | None = None
        if needs_own and own is not None and not self.own_is_source:
            self.of_own = torch.empty_like(own)
        self.of_weight: Tensor | None = None
        if self.needs_weight and weight is not None:
            self.of_weight = torch.empty_like(weight)
        self.leaves: dict[str, Tensor] = {}
        self.sums: dict[str, Tensor | None] = {}
        self.checked = False

    def set_parameters(self, names: Sequence[str], parameters: Sequence[Tensor]) -> None:
        """Takes the parameters as they were in the forward pass, apart from its autograd graph."""
        for name, parameter, needs in zip(names, parameters, self.needs_parameters, strict=True):
            self.leaves[name] = parameter.detach().requires_grad_(needs)
            self.sums[name] = None

    def of_inputs(self) -> tuple[Tensor | None, ...]:
        source = self.of_source
        return None if source is None else source.to(self.source.dtype), self.of_own, self.of_weight

    def of_parameters(self) -> list[Tensor | None]:
        return [
            None if total is None else total.to(self.leaves[name].dtype)
            for name, total in self.sums.items()
        ]

    def add(self, block: RowBlock, grad: Tensor) -> None:
        """Makes a block again and adds its gradients, given that of its output."""
        weight = block.entries(self.weight)
        own = None if self.own is None else block.rows(self.own)
        adjacency = CSR(block.rowptr, block.col, weight)
        chosen: Tensor | None = None
        if self.needs_source or self.needs_weight:
            grid, chosen = self.conv.select_chosen(self.source, own, adjacency)
        else:
            grid = self.conv.select_values(self.source, own, adjacency)
        grad_grid = self._of_grid(grid, grad)
        del grid
        if grad_grid is not None:
            self._add_selection(block, adjacency, chosen, grad_grid)

    def _of_grid(self, grid: Tensor, grad: Tensor) -> Tensor | None:
        """Adds the gradients of the parameters; gives that of the grid if an input needs it."""
        reads_grid = any((self.of_source is not None, self.of_own is not None, self.needs_weight))
        names = [name for name, leaf in self.leaves.items() if leaf.requires_grad]
        with torch.enable_grad():
            leaf = grid.detach().requires_grad_(reads_grid)
            out = self.conv.convolve(leaf, self.leaves)
        wanted = [*([leaf] if reads_grid else []), *(self.leaves[name] for name in names)]
        if not out.requires_grad:
            return None
        if not self.checked:
            _check_leaves(out, wanted)
            self.checked = True
        found = list(torch.autograd.grad(out, wanted, grad, allow_unused=True))
        of_grid = found.pop(0) if reads_grid else None
        for name, part in zip(names, found, strict=True):
            total = self.sums[name]
            if part is not None and total is None:
                self.sums[name] = part.to(compute_dtype(part.dtype))
            elif part is not None and total is not None:
                total += part
        return of_grid

    def _add_selection(
        self, block: RowBlock, adjacency: CSR, chosen: Tensor | None, grad: Tensor
    ) -> None:
        conv, (rowptr, col, weight) = self.conv, adjacency
        grad = grad.contiguous()
        of_own = self.of_source if self.own_is_source else self.of_own
        if of_own is not None and self.own_is_source:
            block.rows(of_own).add_(grad[:, 0])
        elif of_own is not None:
            block.rows(of_own).copy_(grad[:, 0])
        if chosen is None:
            return
        last = grad[:, -1] if conv.mean or conv.sum else None
        if self.of_source is not None:
            every = last
            if last is not None:
                sums = conv.weight_sums(adjacency, self.source)
                every = last if sums is None else last / sums
            columns, near_rowptr, near_col = block.near
            add_grad_x(self.of_source, columns, grad, chosen, near_rowptr, near_col, weight, every)
        if self.of_weight is not None and weight is not None:
            part = grad_weight(grad, chosen, self.source, rowptr, col)
            if last is not None:
                with torch.enable_grad():
                    leaf = weight.detach().requires_grad_()
                    mean = conv.neighbour_mean(self.source.detach(), CSR(rowptr, col, leaf))
                part = part + torch.autograd.grad(mean, leaf, last)[0]
            self.of_weight[block.first : block.last] = part


def _check_leaves(out: Tensor, leaves: Sequence[Tensor]) -> None:
    """Raises RuntimeError if a gradient would be lost: that of what is no input of the layer."""
    known = {id(leaf) for leaf in leaves}
    seen: set[Any] = set()
    waiting: list[Any] = [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in known:
            raise RuntimeError(
                "cnn must not read tensors that require gradients and are not among its "
                f"parameters, with recompute=True: got one of shape {list(variable.shape)}. "
                "Make it a parameter of a module, or set recompute=False"
            )
        waiting += [before for before, _ in node.next_functions]


class NoRandomNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within this context, operators that draw random numbers raise an error."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise RuntimeError(
                f"cnn must not draw random numbers with recompute=True, got a call of {func}: they "
                "would be others in the backward pass. Use torch.nn.Dropout, for which the grid "
                "is kept, or set recompute=False"
            )
        return func(*args, **(kwargs or {}))


def _autocast(kind: str) -> dict[str, Any]:
    """The arguments of `torch.autocast` for what holds now.

    Without its cache, where the casts of this pass, which have no gradient, would be found later.
    """
    return {
        "device_type": kind,
        "enabled": torch.is_autocast_enabled(kind),
        "dtype": torch.get_autocast_dtype(kind),
        "cache_enabled": False,
    }


def _versions(cnn: Module) -> list[int]:
    """Numbers that change with the buffers."""
    return [0 if buffer.is_inference() else buffer._version for buffer in cnn.buffers()]


def _training(conv: LGConv) -> list[bool]:
    return [module.training for module in conv.modules()]


@contextlib.contextmanager
def _as_before(conv: LGConv, training: Sequence[bool]) -> Iterator[None]:
    """With the modules in the mode of the forward pass; `eval()` may have been called since."""
    now = _training(conv)
    if now == list(training):
        yield
        return
    modules = list(conv.modules())
    try:
        for module, mode in zip(modules, training, strict=True):
            module.training = mode
        yield
    finally:
        for module, mode in zip(modules, now, strict=True):
            module.training = mode
