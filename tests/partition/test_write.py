"""What is written is what `cut_shard` cuts in memory, array by array."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lgcn import Graph
from lgcn.partition import open_partition, write, write_partition
from lgcn.partition.manifest import METHODS
from lgcn.store import new_folder, writer
from lgcn.utils.memory import anonymous_memory

from .graphs import assert_cut, graphs, stored

ROOMY = anonymous_memory() + 2 * 10**9  # the tests' process may be large already


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((writer, "sync"), (new_folder, "sync_folder"), (write, "sync")):
        monkeypatch.setattr(module, name, lambda path: None)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    made=graphs(), parts=st.integers(1, 6), method=st.sampled_from(METHODS), pieces=st.booleans()
)
def test_every_shard_is_that_of_the_plain_way(
    made: tuple[Graph, dict[str, Any]],
    parts: int,
    method: str,
    pieces: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    graph, options = made
    path = tmp_path_factory.mktemp("cut")
    store = stored(path / "store", graph, **options)
    parts = min(parts, graph.num_nodes)

    with pytest.MonkeyPatch.context() as patch:
        if pieces:  # few parts at a time, and few rows
            patch.setattr(write, "_AT_ONCE", 2)
            patch.setattr(write, "_LARGEST_BLOCK", 500)
        write_partition(path / "store", path / "out", parts, method=method, memory=ROOMY)

    partition = open_partition(path / "out")
    assert partition.num_parts == parts
    assert_cut(partition, store)
