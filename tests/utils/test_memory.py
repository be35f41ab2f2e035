"""Sizes as users write them, what is in memory, and what is said where it is too little."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn.errors import LGCNError, UsageError
from lgcn.utils.memory import PeakMemory, anonymous_memory, available_memory, trim_memory
from lgcn.utils.out_of_memory import OutOfMemory, empty, needs_memory
from lgcn.utils.sizes import format_memory, parse_memory


@pytest.mark.parametrize(("given", "found"), [({}, "1"), ({"THP_MEM_ALLOC_ENABLE": "0"}, "0")])
def test_torch_is_told_to_ask_for_huge_pages_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], found: str
) -> None:
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    code = (
        "import lgcn, os, sys; assert 'torch' not in sys.modules;"
        "print(os.environ['THP_MEM_ALLOC_ENABLE'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{found}\n", "")


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


def test_the_memory_that_is_available() -> None:
    found = available_memory()
    if not Path("/proc/meminfo").exists():
        assert found is None
        return
    assert found is not None
    total = int(Path("/proc/meminfo").read_text().split("MemTotal:")[1].split()[0]) * 1024
    assert 0 < found < total


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError, match="other"), needs_memory("a step"):
        raise KeyError("other")


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("2GB", 2 * 10**9),
        (" 1.5 gib ", 3 * 2**29),
        ("512MB", 512 * 10**6),
        ("100k", 10**5),
        ("64MiB", 2**26),
        (".5T", 5 * 10**11),
        ("4096", 4096),
        (4096, 4096),
    ],
)
def test_sizes(value: Any, size: int) -> None:
    assert parse_memory(value) == size


@pytest.mark.parametrize(
    "value", ["", "GB", "2 apples", "-1GB", "1,5GB", "nan", 0, -4, True, 2.5, None, "0GB", "1e3"]
)
def test_what_is_no_size(value: Any) -> None:
    with pytest.raises(UsageError, match=r"scratch must be a size such as '2GB'.* got"):
        parse_memory(value, "scratch")


@pytest.mark.parametrize(
    ("size", "text"),
    [(12, "12 bytes"), (1000, "1 kB"), (1_230_000, "1.3 MB"), (4 * 10**9, "4 GB")],
)
def test_sizes_in_messages_are_enough(size: int, text: str) -> None:
    assert format_memory(size) == text
    if "bytes" not in text:
        assert parse_memory(text) >= size


def test_anonymous_memory_and_its_peak() -> None:
    trim_memory()  # else freed memory, still resident, may be used unseen
    with PeakMemory(every=0.001) as peak:
        before = anonymous_memory()
        held = np.ones(200 * 10**6, np.uint8)
        assert anonymous_memory() - before > 100 * 10**6
        del held
    assert peak.peak - before > 100 * 10**6


def test_mapped_files_are_not_anonymous(tmp_path: Any) -> None:
    values = np.memmap(tmp_path / "values", np.uint8, "w+", shape=(40 * 10**6,))
    before = anonymous_memory()
    values[:] = 1
    assert anonymous_memory() - before < 10 * 10**6


def test_memory_that_was_freed_can_be_given_back() -> None:
    held = [np.ones(50_000, np.uint8) for _ in range(1000)]
    kept = held[::100]
    before = anonymous_memory()
    del held
    trim_memory()
    assert anonymous_memory() < before - 20 * 10**6
    assert len(kept) == 10
