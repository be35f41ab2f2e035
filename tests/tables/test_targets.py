"""Targets of a regression and weights of rows."""

import numpy as np
import pyarrow as pa

from lgcn.tables.targets import read_targets


def test_targets_are_read_as_people_write_numbers() -> None:
    cells = ["€ 1.234,50", "7,25 €", "", "tbd", "-3,00", "n/a", *["2,5"] * 6]
    found = read_targets(pa.table({"price": cells}), ["price"])
    expected = [1234.5, 7.25, np.nan, np.nan, -3.0, np.nan, *[2.5] * 6]
    np.testing.assert_allclose(found.y.numpy(), expected)
    assert found.known.tolist() == (~np.isnan(expected)).tolist()
    assert any("'tbd'" in note for note in found.notes)
