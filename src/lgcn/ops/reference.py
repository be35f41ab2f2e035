"""What the operators compute, in plain torch, on any device; and Algorithm 1 in plain Python.

These are the definitions that the fast kernels are tested against. Devices without kernels of their
own use the operators as they are here.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

# The smallest of these that fits the largest degree is kept for the backward.
POSITION_DTYPES = {8: torch.int8, 16: torch.int16, 32: torch.int32}


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Half precision values are multiplied, ranked and summed in float32, then rounded once."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def row_of_entry(rowptr: Tensor) -> Tensor:
    """The row that each CSR entry belongs to."""
    rows = torch.arange(rowptr.numel() - 1, device=rowptr.device)
    return rows.repeat_interleave(rowptr.diff())


def k_largest(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    position_bits: int = 32,
    own: Tensor | None = None,
    last: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Sorts every row's products and keeps the first k, a block of features at a time.

    The block is as wide as the result allows, so that memory stays O(E + N k C). What was chosen
    is returned as positions in the row, of `position_bits` bits, or with 0 as node numbers.
    The values are [N, k, C]; with `own`, [N, C], they are [N, k + 1, C] with own in front; with
    `last` as well, [N, C], they are [N, k + 2, C] and end with it.
    """
    num_rows, channels = rowptr.numel() - 1, x.size(1)
    position = torch.full((num_rows, k, channels), -1, dtype=torch.int32, device=x.device)
    first = 0 if own is None else 1
    values = x.new_zeros(num_rows, first + k + (0 if last is None else 1), channels)
    if own is not None:
        values[:, 0] = own
    if last is not None:
        values[:, -1] = last
    if col.numel() == 0 or channels == 0:
        return values, position.to(POSITION_DTYPES.get(position_bits, col.dtype))

    row = row_of_entry(rowptr)
    start = rowptr.long()[row]
    rank = torch.arange(col.numel(), device=col.device) - start
    kept = rank < k
    block = min(channels, max(1, num_rows * k * channels // col.numel()))
    for c in range(0, channels, block):
        products = x[:, c : c + block].to(compute_dtype(x.dtype))[col]
        if edge_weight is not None:
            products = products * edge_weight.to(products.dtype).unsqueeze(1)
        # Two stable sorts leave the entries by row, within a row by value, at ties by position.
        order = products.sort(dim=0, descending=True, stable=True).indices
        order = order.gather(0, row[order].sort(dim=0, stable=True).indices)
        products = products.gather(0, order)
        chosen = (order - start.unsqueeze(1)).int()
        if compete:
            below_zero = products < 0
            products = products.masked_fill(below_zero, 0)
            chosen = chosen.masked_fill(below_zero, -1)
        values[row[kept], first + rank[kept], c : c + block] = products[kept].to(x.dtype)
        position[row[kept], rank[kept], c : c + block] = chosen[kept]
    if position_bits == 0:
        return values, neighbor_at(position, rowptr, col)
    return values, position.to(POSITION_DTYPES[position_bits])


def k_largest_values(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    own: Tensor | None,
    last: Tensor | None,
    with_sum: bool = False,
    divisor: Tensor | None = None,
    select: Callable[..., tuple[Tensor, Tensor]] | None = None,
    select_and_sum: Callable[..., tuple[Tensor, Tensor]] | None = None,
) -> Tensor:
    """The values of `k_largest`, or with `with_sum` those of `k_largest_and_sum`.

    `select` and `select_and_sum` are these two, or faster functions.
    """
    bits = 32  # of positions, which are not used
    if not with_sum:
        found = (select or k_largest)(x, rowptr, col, k, edge_weight, compete, bits, own, last)
        return found[0]
    assert own is not None
    both = select_and_sum or k_largest_and_sum
    return both(x, rowptr, col, k, edge_weight, compete, bits, own, divisor)[0]


def k_largest_and_sum(
    x: Tensor,
    rowptr: Tensor,
    col: Tensor,
    k: int,
    edge_weight: Tensor | None,
    compete: bool,
    position_bits: int,
    own: Tensor,
    divisor: Tensor | None,
    select: Callable[..., tuple[Tensor, Tensor]] | None = None,
    product: Callable[..., Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """As `k_largest`, with the sum of all of a row's products at the end of the values.

    It is divided by the row's `divisor`, [N, 1], if there is one. `select` and `product` are
    `k_largest` and `spmm`, or faster functions.
    """
    weight = x.new_ones(col.numel()) if edge_weight is None else edge_weight
    last = (product or spmm)(rowptr, col, weight, x)
    last = last if divisor is None else last / divisor
    return (select or k_largest)(x, rowptr, col, k, edge_weight, compete, position_bits, own, last)


def neighbor_at(position: Tensor, rowptr: Tensor, col: Tensor) -> Tensor:
    """The node ids at positions in the rows, -1 if the position is -1."""
    if col.numel() == 0:
        return position.to(col.dtype, copy=True)  # an operator must not return its input
    entry = rowptr[:-1].view(-1, 1, 1) + position.clamp(min=0)
    # An empty last row starts at E; all its positions are -1, so any entry will do.
    return torch.where(position < 0, -1, col[entry.clamp(max=col.numel() - 1)])


def first_slot(grad: Tensor, chosen: Tensor) -> int:
    """Where the selected values begin in a gradient: at 0, or at 1, behind own features."""
    return min(1, grad.size(1) - chosen.size(1))


def k_largest_grad_x(
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    num_sources: int,
    node_ids: bool = False,
) -> Tensor:
    """Sends the gradient of every selected value to the feature that it was made of.

    With `node_ids`, which weights exclude, `chosen` names that node, else its position. Where
    `grad` has more slots than `chosen`, the first belongs to the node's own features.
    """
    dtype = compute_dtype(grad.dtype)
    channels = grad.size(2)
    grad_x = grad.new_zeros(num_sources * channels, dtype=dtype)
    row, slot, channel = torch.nonzero(chosen >= 0, as_tuple=True)
    first = first_slot(grad, chosen)
    grad_product = grad[row, first + slot, channel].to(dtype)
    node = chosen[row, slot, channel].long()
    if not node_ids:
        entry = rowptr.long()[row] + node
        node = col.long()[entry]
        if edge_weight is not None:
            grad_product = grad_product * edge_weight.to(dtype)[entry]
    grad_x.index_add_(0, node * channels + channel, grad_product)
    return grad_x.view(num_sources, channels).to(grad.dtype)


def add_grad_x(
    total: Tensor,
    columns: Tensor | None,
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    every: Tensor | None = None,
) -> None:
    """Adds to `total` what `k_largest_grad_x` gives for the positions `chosen`.

    Column j adds to row columns[j], each of which is there once, or to row j. `every`, [N, C], is
    added to the gradient of each of a row's products, selected or not, as that of a sum is.
    """
    add_by_columns(
        total, columns, grad, chosen, rowptr, col, edge_weight, every,
        k_largest_grad_x, spmm_grad_dense,
    )  # fmt: skip


def add_by_columns(
    total: Tensor,
    columns: Tensor | None,
    grad: Tensor,
    chosen: Tensor,
    rowptr: Tensor,
    col: Tensor,
    edge_weight: Tensor | None,
    every: Tensor | None,
    grad_x: Callable[..., Tensor],
    grad_dense: Callable[..., Tensor],
) -> None:
    """`add_grad_x` by the gradients of a selection and of a product."""
    num_columns = total.size(0) if columns is None else columns.numel()

    def add(part: Tensor) -> None:
        if columns is None:
            total.add_(part)
        else:
            total.index_add_(0, columns, part.to(total.dtype))

    add(grad_x(grad, chosen, rowptr, col, edge_weight, num_columns))
    if every is not None:
        weight = every.new_ones(col.numel()) if edge_weight is None else edge_weight
        add(grad_dense(every, rowptr, col, weight, num_columns))


def k_largest_grad_weight(
    grad: Tensor, position: Tensor, x: Tensor, rowptr: Tensor, col: Tensor
) -> Tensor:
    """Sends the gradient of every selected value to the weight that it was multiplied with."""
    dtype = compute_dtype(grad.dtype)
    row, slot, channel = torch.nonzero(position >= 0, as_tuple=True)
    entry = rowptr.long()[row] + position[row, slot, channel]
    first = first_slot(grad, position)
    grad_product = grad[row, first + slot, channel].to(dtype)
    grad_product = grad_product * x[col.long()[entry], channel].to(dtype)
    grad_weight = grad.new_zeros(col.numel(), dtype=dtype).index_add_(0, entry, grad_product)
    return grad_weight.to(grad.dtype)


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    """Sparse (CSR) times dense."""
    dtype = compute_dtype(dense.dtype)
    products = dense.to(dtype)[col] * value.to(dtype).unsqueeze(1)
    out = products.new_zeros(rowptr.numel() - 1, dense.size(1))
    return out.index_add_(0, row_of_entry(rowptr), products).to(dense.dtype)


def spmm_grad_value(grad: Tensor, rowptr: Tensor, col: Tensor, dense: Tensor) -> Tensor:
    """The gradient of the sparse factor's entries."""
    dtype = compute_dtype(dense.dtype)
    grad_rows = grad.to(dtype)[row_of_entry(rowptr)]
    return (grad_rows * dense.to(dtype)[col]).sum(dim=1).to(dense.dtype)


def spmm_grad_dense(
    grad: Tensor, rowptr: Tensor, col: Tensor, value: Tensor, num_sources: int
) -> Tensor:
    """The gradient of the dense factor: the transposed sparse factor times the gradient."""
    dtype = compute_dtype(grad.dtype)
    products = grad.to(dtype)[row_of_entry(rowptr)] * value.to(dtype).unsqueeze(1)
    grad_dense = products.new_zeros(num_sources, grad.size(1))
    return grad_dense.index_add_(0, col, products).to(grad.dtype)


def select_subgraph(
    rowptr: Tensor,
    col: Tensor,
    roots: Iterable[int],
    n_init: int,
    *,
    max_nodes: float = math.inf,
    max_expand: float = math.inf,
    max_hops: float = math.inf,
    seed: int = 0,
) -> set[int]:
    """Algorithm 1 of the paper, line by line: a sub-graph grown breadth first.

    `lgcn.select_subgraph` selects by the same rules, with other random numbers.

    Args:
        rowptr, col: CSR adjacency.
        roots: The nodes from which the start nodes are drawn; in the paper, all nodes.
        n_init: Number of start nodes.
        max_nodes: Nodes of the sub-graph. (default: no limit)
        max_expand: Nodes added per iteration. (default: no limit)
        max_hops: Iterations, which the paper does not limit. (default: no limit)
        seed: Seed of the random numbers. (default: 0)
    """
    neighbours = [set(col[a:b].tolist()) for a, b in itertools.pairwise(rowptr.tolist())]
    generator = random.Random(seed)

    def sample(nodes: Iterable[int], count: float) -> set[int]:
        return set(generator.sample(sorted(nodes), int(count)))

    new = sample(set(roots), n_init)
    selected = set(new)
    hop = 0
    while len(selected) < max_nodes and new and hop < max_hops:
        candidates = set().union(*(neighbours[node] for node in new))
        new = candidates - selected
        if len(new) > max_expand:
            new = sample(new, max_expand)
        if len(new) + len(selected) > max_nodes:
            new = sample(new, max_nodes - len(selected))
        selected |= new
        hop += 1
    return selected
