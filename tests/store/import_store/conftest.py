"""Imports in small pieces."""

from typing import Any

import pytest

from lgcn.store import edge_buckets, edge_stream


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Any:
    """Many buckets and batches, though the tables are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_buckets, "BUCKET", 7)
        patch.setattr(edge_buckets, "CHUNK", 11)
        patch.setattr(edge_stream, "ROWS", 13)
        yield
