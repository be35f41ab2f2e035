"""A folder for the files of cases, in shared memory if the system has it."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
VARIABLE = "LGCN_FUZZ_SCRATCH"  # set by the driver, which removes what killed processes leave

_folders: dict[int, Path] = {}


def make_scratch() -> Path:
    usable = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    return Path(tempfile.mkdtemp(prefix="lgcn-fuzz-", dir=SHARED_MEMORY if usable else None))


def scratch(name: str) -> Path:
    """A folder of this process; forked processes have their own."""
    if os.getpid() not in _folders:
        parent = os.environ.get(VARIABLE)
        if parent:
            folder = Path(parent) / str(os.getpid())
            folder.mkdir(exist_ok=True)
        else:
            folder = make_scratch()
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _folders[os.getpid()] = folder
    found = _folders[os.getpid()] / name
    found.mkdir(exist_ok=True)
    return found
