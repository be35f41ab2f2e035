"""A folder for Triton's compiled kernels, if the default one cannot be written to."""

import atexit
import os
import shutil
import tempfile
import warnings
from pathlib import Path


def ensure_triton_cache() -> None:
    """Gives Triton a temporary folder, with a warning, if it cannot write to its own."""
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~/")  # noqa: PTH111 (as Triton)
    folder = Path(os.environ.get("TRITON_CACHE_DIR") or Path(home, ".triton", "cache"))
    if _can_be_written_to(folder):
        return
    temporary = tempfile.mkdtemp(prefix="lgcn-triton-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    os.environ["TRITON_CACHE_DIR"] = temporary
    warnings.warn(
        f"Triton's cache {folder} cannot be written to: GPU kernels are compiled again in every "
        "process. Set TRITON_CACHE_DIR to a folder that can be written to",
        stacklevel=2,
    )


def _can_be_written_to(folder: Path) -> bool:
    """Whether it is a folder that can be written to or created."""
    for place in (folder, *folder.absolute().parents):
        if place.exists():
            return place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return False
