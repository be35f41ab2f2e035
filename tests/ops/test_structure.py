"""When the contents of a CSR structure are checked, and when not again."""

import gc
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcn.ops import structure as csr
from lgcn.ops.blocks import row_blocks_of

from .graphs import Case, cases

Count = Callable[[], int]


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How often the O(E) check has run."""
    checks = []
    check = csr._look_at
    monkeypatch.setattr(csr, "_look_at", lambda *args: checks.append(1) or check(*args))
    return lambda: len(checks)


def graph() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1])


def test_checked_once(count: Count) -> None:
    rowptr, col = graph()
    for _ in range(3):
        csr.check_range(rowptr, col, 2)
    assert count() == 1


def test_fewer_columns_are_noticed_without_another_pass(count: Count) -> None:
    rowptr, col = graph()
    csr.check_range(rowptr, col, 2)
    with pytest.raises(ValueError, match=r"col must be smaller .*\(1\), got col.max\(\) = 1"):
        csr.check_range(rowptr, col, 1)
    assert count() == 1


def test_a_change_in_place_is_checked_anew(count: Count) -> None:
    rowptr, col = graph()
    csr.check_range(rowptr, col, 2)
    col[0] = 1
    csr.check_range(rowptr, col, 2)
    assert count() == 2
    col[0] = -5
    with pytest.raises(ValueError, match=r"col must .* got col.min\(\) = -5"):
        csr.check_range(rowptr, col, 2)
    col[0] = 0
    rowptr[1] = 4
    with pytest.raises(ValueError, match="rowptr must not decrease"):
        csr.check_range(rowptr, col, 2)


BIG = 2**31 - 1


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    "offsets", [[0, BIG, -2, 4], [0, 2**62, -(2**62), 4], [0, 3, 2, 4], [0, -1, -1, 4]]
)
def test_offsets_whose_differences_overflow_are_refused(
    dtype: torch.dtype, offsets: list[int]
) -> None:
    if dtype == torch.int32:
        offsets = [max(-BIG - 1, min(number, BIG)) for number in offsets]
    rowptr, col = torch.tensor(offsets, dtype=dtype), torch.zeros(4, dtype=dtype)
    with pytest.raises(ValueError, match=r"rowptr must not decrease, got rowptr\[[01]\]"):
        csr.check_range(rowptr, col, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda rowptr, _: setattr(rowptr, "data", torch.tensor([0, 9, 3])),
        lambda rowptr, _: rowptr.set_(torch.tensor([0, 9, 3])),
        lambda rowptr, _: rowptr.resize_(5).fill_(7),
        lambda _, col: setattr(col, "data", torch.tensor([0, -1, 1])),
        lambda _, col: setattr(col, "data", torch.tensor([0, 1, 1, 1])),
    ],
)
def test_another_storage_is_checked_anew(
    change: Callable[[torch.Tensor, torch.Tensor], object],
) -> None:
    rowptr, col = graph()
    csr.check_range(rowptr, col, 2)
    change(rowptr, col)
    with pytest.raises(ValueError, match="must"):
        csr.check_range(rowptr, col, 2)


def test_a_storage_at_the_same_address_is_checked_anew() -> None:
    """Freed memory is what the next tensor of that size gets."""
    rowptr, col = graph()
    csr.check_range(rowptr, col, 2)
    for _ in range(20):
        rowptr.data = torch.tensor([0, 2, 3])
        rowptr.data = torch.tensor([0, 9, 3])
        with pytest.raises(ValueError, match="rowptr must not decrease"):
            csr.check_range(rowptr, col, 2)
        rowptr.data = torch.tensor([0, 2, 3])
        csr.check_range(rowptr, col, 2)


def test_a_trusted_structure_is_read_when_it_changed(count: Count) -> None:
    rowptr, col = graph()
    csr.trust(rowptr, col, 2)
    csr.check_range(rowptr, col, 2)
    assert count() == 0
    assert csr.max_degree(rowptr, col) == 2
    col[0] = 5
    with pytest.raises(ValueError, match=r"col must be smaller .*\(2\), got col.max\(\) = 5"):
        csr.check_range(rowptr, col, 2)
    assert count() == 1


def test_more_rows_than_int32_can_number_are_refused() -> None:
    rowptr = torch.zeros(1, dtype=torch.int32).expand(2**31 + 1)
    with pytest.raises(ValueError, match="int64 for more than 2147483647 rows"):
        csr.check_layout(rowptr, rowptr[:0])


def test_another_rowptr_with_the_same_col_is_checked(count: Count) -> None:
    rowptr, col = graph()
    csr.check_range(rowptr, col, 2)
    csr.check_range(torch.tensor([0, 1, 3]), col, 2)
    assert count() == 2
    with pytest.raises(ValueError, match=r"rowptr must end with .*\(3\), got rowptr\[-1\] = 2"):
        csr.check_range(torch.tensor([0, 1, 2]), col, 2)


def test_a_failed_check_is_not_remembered(count: Count) -> None:
    rowptr, col = torch.tensor([0, 1]), torch.tensor([-1])
    for _ in range(2):
        with pytest.raises(ValueError, match="col must not be negative"):
            csr.check_range(rowptr, col, 1)
    assert count() == 2


def test_graphs_are_forgotten_with_their_tensors() -> None:
    gc.collect()
    before = len(csr._known)
    rowptr, col = graph()
    csr.check_range(rowptr, col, 2)
    assert len(csr._known) == before + 1
    del rowptr, col
    gc.collect()
    assert len(csr._known) == before


def test_inference_tensors_are_checked_every_time(count: Count) -> None:
    with torch.inference_mode():
        rowptr, col = graph()
        csr.check_range(rowptr, col, 2)
        col[0] = -1
        with pytest.raises(ValueError, match="col must not be negative"):
            csr.check_range(rowptr, col, 2)
    assert count() == 2


def test_a_graph_without_entries() -> None:
    col = torch.empty(0, dtype=torch.int64)
    csr.check_range(torch.zeros(1, dtype=torch.int64), col, 0)
    with pytest.raises(ValueError, match=r"rowptr must end with .*\(0\), got rowptr\[-1\] = 1"):
        csr.check_range(torch.tensor([0, 1]), col, 0)


@pytest.mark.parametrize("learns", [False, True])
def test_parts_of_a_sparse_tensor(learns: bool) -> None:
    rowptr, col = graph()
    before = len(csr._parts)
    matrix = torch.sparse_csr_tensor(rowptr, col, torch.ones(3), (2, 2), requires_grad=learns)
    first, second = csr.csr_parts(matrix), csr.csr_parts(matrix)
    assert [part.tolist() for part in first] == [[0, 2, 3], [0, 1, 1], [1, 1, 1]]
    assert first[0] is second[0]
    assert first[1] is second[1]
    assert first[2].requires_grad == learns
    del matrix, first, second
    gc.collect()
    assert len(csr._parts) == before


def test_other_values_in_a_structure_that_is_not_checked_anew() -> None:
    rowptr, col = graph()
    matrix = torch.sparse_csr_tensor(rowptr, col, torch.ones(3), (2, 4))
    changed = csr.with_values(matrix, torch.tensor([1.0, 2.0, 3.0]))
    assert changed.to_dense().tolist() == [[1, 2, 0, 0], [0, 3, 0, 0]]
    assert matrix.to_dense().tolist() == [[1, 1, 0, 0], [0, 1, 0, 0]]
    for one, other in zip(csr.csr_parts(matrix)[:2], csr.csr_parts(changed)[:2], strict=True):
        assert one is other


def test_largest_degree() -> None:
    rowptr, col = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 1, 1, 0, 2])
    assert csr.max_degree(rowptr, col) == 3
    assert csr.max_degree(torch.tensor([0]), col[:0]) == 0


@given(case=cases())
def test_transpose_holds_every_entry_under_its_column(case: Case) -> None:
    num_cols = case.x.size(0)
    colptr, row, entry = csr.transpose(case.rowptr, case.col, num_cols)
    rows = torch.arange(case.rowptr.numel() - 1).repeat_interleave(case.rowptr.diff())
    for j in range(num_cols):
        places = entry[colptr[j] : colptr[j + 1]].tolist()
        assert places == torch.nonzero(case.col == j).flatten().tolist()
        assert row[colptr[j] : colptr[j + 1]].tolist() == rows[places].tolist()
    assert colptr.dtype == row.dtype == entry.dtype == case.col.dtype


def test_transpose_is_made_once() -> None:
    rowptr, col = graph()
    assert csr.transpose(rowptr, col, 2) is csr.transpose(rowptr, col, 2)
    assert csr.transpose(rowptr, col, 5).colptr.tolist() == [0, 1, 3, 3, 3, 3]


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_long_rows_are_cut(index_dtype: torch.dtype) -> None:
    # 3, 0, 7, 4, 3 and 9 entries; a row of just the size stays whole.
    rowptr = torch.tensor([0, 3, 3, 10, 14, 17, 26], dtype=index_dtype)
    parts = csr.long_rows(rowptr, 3)
    assert parts.long_row.tolist() == [2, 3, 5]
    assert parts.ptr.tolist() == [0, 3, 5, 8]
    assert parts.row.tolist() == [2, 2, 2, 3, 3, 5, 5, 5]
    assert parts.first.tolist() == [0, 3, 6, 0, 3, 0, 3, 6]


@pytest.mark.parametrize("rowptr", [[0], [0, 0, 3]])
def test_no_long_rows(rowptr: list[int]) -> None:
    parts = csr.long_rows(torch.tensor(rowptr), 3)
    assert [part.tolist() for part in parts] == [[], [], [], [0]]


def test_long_rows_are_cut_once_for_each_size() -> None:
    rowptr = torch.tensor([0, 2, 9])
    parts = csr.long_rows(rowptr, 4)
    assert csr.long_rows(rowptr, 4) is parts
    assert csr.long_rows(rowptr, 5).first.tolist() == [0, 5]
    assert csr.long_rows(rowptr, 4) is parts
    before = len(csr._parts_of_rows)
    del rowptr
    gc.collect()
    assert len(csr._parts_of_rows) == before - 1


def test_long_rows_are_cut_anew_in_another_storage() -> None:
    rowptr = torch.tensor([0, 2, 9])
    assert csr.long_rows(rowptr, 4).long_row.tolist() == [1]
    rowptr.data = torch.tensor([0, 7, 9])
    assert csr.long_rows(rowptr, 4).long_row.tolist() == [0]


def test_parts_of_a_row_of_nearly_two_to_the_31_entries() -> None:
    parts = csr.long_rows(torch.tensor([0, 2**31 - 1], dtype=torch.int32), 2**20)
    assert parts.row.numel() == 2**11
    assert int(parts.first[-1]) == 2**31 - 2**20


def test_the_transpose_of_more_columns_than_int32_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr, "MAX_INT32", 1)  # stands for 2**31 - 1
    rowptr, col = torch.tensor([0, 2, 3]).int(), torch.tensor([0, 1, 1]).int()
    colptr, row, entry = csr._sort(rowptr, col, 2)
    assert (colptr.tolist(), row.tolist(), entry.tolist()) == ([0, 1, 3], [0, 0, 1], [0, 1, 2])
    assert colptr.dtype == torch.int32


@pytest.mark.parametrize("inference", [False, True])
def test_long_rows_are_cut_anew_after_a_change_in_place(inference: bool) -> None:
    with torch.inference_mode(inference):
        rowptr = torch.tensor([0, 2, 9])
        assert csr.long_rows(rowptr, 4).long_row.tolist() == [1]
        rowptr[1] = 7
        assert csr.long_rows(rowptr, 4).long_row.tolist() == [0]


def within(
    degrees: list[int], entries: int, longest: int, *, spare_column: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """A structure of rows of these lengths, known by its bounds alone."""
    rowptr = torch.tensor([0, *np.cumsum(degrees)])
    col = torch.zeros(entries, dtype=torch.long)
    turned = csr.Transpose(torch.zeros(3, dtype=torch.long), col.clone(), col.clone())
    csr.trust_within(rowptr, col, 2, longest, turned, longest, spare_column=spare_column)
    return rowptr, col


@given(
    degrees=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    size=st.integers(1, 10),
    room=st.integers(0, 30),
)
def test_parts_within_bounds_are_those_of_the_rows(
    degrees: list[int], size: int, room: int
) -> None:
    """The same parts come first; the others are of the last row, which is empty."""
    degrees = [*degrees, 0]
    expected = csr._cut(torch.tensor([0, *np.cumsum(degrees)]), size)
    rowptr, _ = within(degrees, sum(degrees) + room, 9)
    found = csr.long_rows(rowptr, size)
    parts, rows = expected.row.numel(), expected.long_row.numel()
    assert torch.equal(found.row[:parts], expected.row)
    assert torch.equal(found.first[:parts], expected.first)
    assert torch.equal(found.long_row[:rows], expected.long_row)
    assert torch.equal(found.ptr[: rows + 1], expected.ptr)
    last = len(degrees) - 1
    assert bool((found.row[parts:] == last).all())
    assert bool((found.first[parts:] == 0).all())
    assert bool((found.long_row[rows:] == last).all())
    assert bool((found.ptr[rows:] == expected.ptr[-1]).all())
    if found.row.numel() > 0:  # they are rows of parts, and are bounded as well
        again = csr.long_rows(found.ptr, 2)
        assert torch.equal(
            again.long_row[again.long_row < rows], csr._cut(expected.ptr, 2).long_row
        )


def test_parts_follow_contents_that_torch_did_not_see_change() -> None:
    rowptr, _ = within([5, 1, 0], 6, 6)
    assert csr.long_rows(rowptr, 2).long_row[0] == 0
    rowptr.data.copy_(torch.tensor([0, 1, 6, 6]))
    assert csr.long_rows(rowptr, 2).long_row[0] == 1


def test_bounds_take_the_place_of_the_contents(count: Count) -> None:
    rowptr, col = within([5, 1, 0], 40, 7)
    csr.check_range(rowptr, col, 2)
    assert csr.max_degree(rowptr, col) == 7
    assert csr.transpose(rowptr, col, 2) is csr.transpose(rowptr, col, 2)
    assert csr.long_rows(rowptr, 7).row.numel() == 0
    assert count() == 0


def test_a_structure_of_which_bounds_are_known_is_one_block(count: Count) -> None:
    rowptr, col = within([5, 1, 0], 40, 7)
    (block,) = row_blocks_of(rowptr, col, 2, limit=1, row_cost=1)
    assert block.rowptr is rowptr
    assert (block.start, block.stop) == (0, 3)
    assert count() == 0


def test_long_columns_cannot_be_split_without_an_empty_one() -> None:
    rowptr, col = within([5, 1, 0], 40, 7, spare_column=False)
    colptr = csr.transpose(rowptr, col, 2).colptr
    assert csr.long_rows(colptr, 7).row.numel() == 0
    with pytest.raises(ValueError, match="up to 7 entries in a row and parts of 6"):
        csr.long_rows(colptr, 6)
