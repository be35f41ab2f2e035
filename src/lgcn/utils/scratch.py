"""Matrices that are computed by blocks of rows and kept, in memory or in temporary files."""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.utils.row_blocks import row_blocks

ZEROS_BYTES = 2**22


class Scratch:
    """Keeps matrices, all of them in memory or all of them in files.

    The files have no name, so that nothing is left behind, not even if the process is killed. A
    file is deleted with the last tensor that maps it.

    Args:
        size: Bytes that all matrices together take at any time, at most.
        dtype: Type of their values.
        memory: Bytes up to which they are kept in memory.
        folder: Folder for the files. (default: the system's folder for temporary files)
    """

    def __init__(
        self, size: int, dtype: torch.dtype, memory: int, folder: str | Path | None = None
    ) -> None:
        self.size = size
        self.dtype = dtype
        self.in_memory = size <= memory
        self.folder = Path(tempfile.gettempdir() if folder is None else folder)
        if self.in_memory:
            return
        if not self.folder.is_dir():
            raise UsageError(f"scratch must be an existing folder, got {self.folder}")
        if shutil.disk_usage(self.folder).free < size:
            raise self._full()

    def keep(self, shape: tuple[int, int], blocks: Iterator[Tensor]) -> Tensor:
        """Stacks the blocks to a matrix of this shape on the CPU.

        If the blocks have fewer rows, the caller may write the others later: their place is taken.
        """
        if self.in_memory:
            matrix = torch.empty(shape, dtype=self.dtype)
            start = 0
            for block in blocks:
                matrix[start : start + len(block)] = block
                start += len(block)
            return matrix
        # Written as a file, and mapped for reading: writing to a map kills the process if the disk
        # is full.
        try:
            scratch = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
        except OSError as error:
            raise DataError(
                f"cannot write scratch files in {self.folder}: {error.strerror}. Choose another "
                "folder (scratch), or allow more memory (memory)"
            ) from error
        with scratch as file:
            for block in chain(blocks, self._zeros(shape, file)):
                values = block.cpu().contiguous().view(torch.uint8).numpy()
                try:
                    file.write(values.data)
                    file.flush()
                except OSError as error:
                    raise self._full() from error
            array = np.memmap(file, np.uint8, "r+")
        return torch.from_numpy(array).view(self.dtype).view(shape)

    def _zeros(self, shape: tuple[int, int], file: IO[bytes]) -> Iterator[Tensor]:
        """What a file lacks once its blocks are written, so that the disk cannot be full later."""
        row_bytes = shape[1] * self.dtype.itemsize
        missing = shape[0] - (file.tell() // row_bytes if row_bytes else shape[0])
        for start, stop in row_blocks(missing, ZEROS_BYTES // max(1, row_bytes)):
            yield torch.zeros(stop - start, shape[1], dtype=self.dtype)

    def _full(self) -> DataError:
        return DataError(
            f"{self.folder} has too little space for {self.size / 1e9:.2f} GB of layers that do "
            "not fit in memory: choose another folder (scratch), or allow more memory (memory)"
        )
