"""What a record says of the machine."""

import numba
import pytest
import torch

from lgcn.utils.machine import hardware_and_versions


def test_the_processor_the_threads_and_the_versions() -> None:
    found = hardware_and_versions()
    assert list(found) == [
        *("cpu", "cores", "threads", "python", "torch", "torch_geometric", "numba"),
    ]
    assert (found["torch"], found["numba"]) == (torch.__version__, numba.__version__)
    assert found["threads"] == torch.get_num_threads()


def test_a_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    found = hardware_and_versions("cuda")
    assert (found["gpu"], found["cuda"]) == ("a GPU", torch.version.cuda)
