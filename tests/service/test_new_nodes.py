"""Cells of new nodes become features."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("fastapi", reason="the service needs the extra serve")

from lgcn.service.new_nodes import read_columns
from lgcn.service.problems import RequestError
from lgcn.service.schemas import NewNode
from lgcn.tables.encoder import FeatureEncoder


def test_a_list_of_numbers_may_be_text() -> None:
    table = pa.table({"place": [[1.0, 2.0], [3.0, 5.0], [-2.0, 0.5]]})
    encoder = FeatureEncoder.fit(table, np.ones(3, bool))

    def features(cell: object) -> list[list[float]]:
        found: list[list[float]] = read_columns(
            [NewNode(id="x", columns={"place": cell})], encoder
        )[0].tolist()
        return found

    for text in ("1.5, -2", "1.5 -2", "[1.5; -2.0]"):
        assert features(text) == features([1.5, -2.0])
    assert features(" ") == features(None)
    with pytest.raises(RequestError, match="want numbers") as caught:
        features("1.5 and 2")
    assert caught.value.field == "new_nodes[0].columns.place"
