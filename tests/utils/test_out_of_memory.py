"""What is said where memory runs out."""

from typing import Any

import numpy as np
import pytest
import torch

from lgcn.errors import LGCNError
from lgcn.utils.out_of_memory import OutOfMemory, empty, needs_memory


def full(*_: Any, **__: Any) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 6 GiB.\nOf the memory ...")


def test_a_tensor_like_another() -> None:
    like = torch.ones(1, dtype=torch.float16)
    tensor = empty("the values", (2, 3), like)
    assert (tensor.shape, tensor.dtype, tensor.device) == ((2, 3), torch.float16, like.device)
    assert empty("the values", (2,), like, torch.int64).dtype == torch.int64
    assert empty("the values", (2,), torch.ones(1, device="meta")).is_meta


def test_the_message_names_the_tensor_and_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(OutOfMemory) as raised:
        empty("the selected values [nodes, k]", (1_000_000, 250), torch.ones(1), torch.int64)
    message = str(raised.value)
    assert "memory for the selected values [nodes, k] = [1000000, 250], 2.00 GB" in message
    for remedy in ("training=subgraph", "max_nodes", "subgraphs_per_batch", "smaller k", "cpu"):
        assert remedy in message
    assert message.endswith("CUDA out of memory. Tried to allocate 6 GiB")
    assert isinstance(raised.value.__cause__, torch.OutOfMemoryError)


@pytest.mark.parametrize("kind", [LGCNError, torch.OutOfMemoryError])
def test_is_caught_as_an_error_of_lgcn_and_of_torch(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="not enough GPU memory for a step"), needs_memory("a step"):
        full()


def test_the_inner_message_is_kept() -> None:
    with pytest.raises(OutOfMemory, match="for the inner thing") as raised:  # noqa: SIM117
        with needs_memory("the outer thing"), needs_memory("the inner thing"):
            full()
    assert "outer" not in str(raised.value)


def too_large(module: Any) -> None:
    module.empty(2**50)


@pytest.mark.parametrize("module", [torch, np])
def test_too_little_memory_of_the_machine_is_named_too(module: Any) -> None:
    with pytest.raises(OutOfMemory, match="not enough memory for a step") as raised:  # noqa: SIM117
        with needs_memory("a step"):
            too_large(module)
    assert "smaller k" in str(raised.value)
    assert "device=cpu" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError, match="other"), needs_memory("a step"):
        raise KeyError("other")
