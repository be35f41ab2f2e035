"""The machine and the versions that a recorded result belongs to."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

# OpenMP (torch, BLAS) and Numba read these when they are imported.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


def hardware_and_versions(device: str = "cpu") -> dict[str, Any]:
    """The processor, the number of torch's threads and the versions of what computes.

    Args:
        device: With `"cuda"`, also the GPU and the version of CUDA. (default: `"cpu"`)
    """
    import numba
    import torch
    import torch_geometric

    found = {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numba": numba.__version__,
    }
    if device == "cuda":
        found |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return found


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
