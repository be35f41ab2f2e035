"""The tensors of a run in safetensors files: written atomically, checked when read."""

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from lgcn.errors import START_AGAIN, CheckpointError, one_line
from lgcn.utils.files import atomic, open_plain
from lgcn.utils.memory import check_memory

# The names of types in safetensors files, in the order in which their tensors are written.
DTYPES = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Writes tensors in the safetensors format, the same bytes as ``safetensors.torch.save_file``.

    That function writes to its own temporary file, which would stay in the folder after a kill.
    """
    order = list(DTYPES)
    names = sorted(tensors, key=lambda name: (order.index(tensors[name].dtype), name))
    header, stop = {}, 0
    for name in names:
        start, stop = stop, stop + tensors[name].numel() * tensors[name].element_size()
        header[name] = {
            "dtype": DTYPES[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [start, stop],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with atomic(path, follow=False) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            values = tensors[name].detach().cpu().contiguous().reshape(-1)
            file.write(values.view(torch.uint8).numpy().data)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Reads the tensors in a safetensors file; raises CheckpointError if it is damaged."""
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
        check_memory(size, f"{path} with its {size} bytes", CheckpointError)
        return load_file(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing. {START_AGAIN}") from error
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise CheckpointError(f"{path} is damaged: {one_line(error)}. {START_AGAIN}") from error
