"""Tensors of any type reach all ranks as they are."""

import torch
from torch import Tensor

from lgcn.workers import Workers
from lgcn.workers.tensors import gather, share_tensors

from .processes import run_workers

TENSORS = {
    "weight": torch.arange(6.0).reshape(2, 3),
    "step": torch.tensor(3.0),
    "mask": torch.tensor([True, False, True]),
    "numbers": torch.tensor([2**40, -1]),
    "empty": torch.empty(0, 4),
    "double": torch.tensor([0.1], dtype=torch.float64),
}


def _share(workers: Workers) -> list[tuple[str, Tensor]]:
    return list(share_tensors(workers, TENSORS if workers.is_first else None, "weights").items())


def _gather(workers: Workers) -> list[list[float]]:
    mine = torch.full((workers.rank, 2), float(workers.rank))
    return [part.reshape(-1).tolist() for part in gather(workers, mine, "rows")]


def test_named_tensors_of_rank_0_reach_all() -> None:
    for found in (_share(Workers()), *run_workers(_share, 2)):
        assert [name for name, _ in found] == list(TENSORS)
        for name, value in found:
            torch.testing.assert_close(value, TENSORS[name], rtol=0, atol=0)


def test_tensors_of_different_lengths_are_gathered_in_order() -> None:
    assert run_workers(_gather, 3) == [[[], [1, 1], [2, 2, 2, 2]]] * 3
