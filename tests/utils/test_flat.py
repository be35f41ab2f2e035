"""Arrays in one block: they do not overlap, and a copy of the block has them all."""

import torch

from lgcn.utils.flat import ALIGNMENT, FlatArrays


def test_arrays_share_the_block() -> None:
    flat = FlatArrays(
        {
            "number": ((), torch.int64),
            "empty": ((0, 3), torch.float32),
            "matrix": ((5, 3), torch.float32),
            "mask": ((7,), torch.bool),
        }
    )
    block = flat.empty()
    assert block.numel() == flat.num_bytes == 3 * ALIGNMENT
    arrays = flat.views(block)
    for value, array in enumerate(arrays.values(), start=5):
        array.fill_(value)
    for name, array in flat.arrays(block).items():
        assert torch.equal(torch.from_numpy(array), arrays[name])
    copied = flat.views(block.clone())
    assert int(copied["number"]) == 5
    assert torch.equal(copied["matrix"], torch.full((5, 3), 7.0))
    assert torch.equal(copied["mask"], torch.ones(7, dtype=torch.bool))
    assert copied["empty"].shape == (0, 3)
    for array in arrays.values():
        assert array.storage_offset() * array.element_size() % ALIGNMENT == 0
