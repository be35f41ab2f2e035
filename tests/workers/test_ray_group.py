"""Groups of workers on a Ray cluster of two raylets: restarts, errors, elastic size, tasks.

Ray needs seconds to start every process. So one test is in `make test`, the others are slow.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from lgcn.datasets import load_dataset
from lgcn.errors import DataError
from lgcn.paper.pool import Failure
from lgcn.paper.ray_pool import run_tasks_on_ray
from lgcn.training import Run, Settings, train
from lgcn.workers.group import WorkerError
from lgcn.workers.ray_cluster import ClusterError
from lgcn.workers.ray_group import GroupSize, run_group
from tests.paper.fakes import wait_for

from . import fakes

MEMORY = 80 * 2**20  # bytes of the object store
TWO = GroupSize(2, 2)
NODES = {
    **{"num_nodes": 200, "num_classes": 3, "num_features": 8, "noise": 1.0},
    **{"labels_per_class": 10, "num_val": 60},
}
TRAINING = {
    **{"hidden_channels": 8, "lgcl_channels": 4, "cnn": "double", "num_layers": 1, "k": 4},
    **{"training": "subgraph", "max_nodes": 60, "subgraphs_per_step": 2},
    **{"lr": 0.05, "max_epochs": 6, "baselines": False},
}
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two raylets with one core each."""
    pytest.importorskip("ray")
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.5")
    from ray.cluster_utils import Cluster

    found = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "object_store_memory": MEMORY,
            "include_dashboard": False,
        },
    )
    found.add_node(num_cpus=1, object_store_memory=MEMORY)
    yield found
    found.shutdown()


@pytest.fixture
def run(cluster: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs `fakes.count` on the cluster; gives its result and the lines that were posted."""

    def run_one(
        size: GroupSize = TWO,
        *,
        on_line: Callable[[str], None] = lambda text: None,
        options: Mapping[str, Any] = MappingProxyType({}),
        **settings: Any,
    ) -> Any:
        lines: list[tuple[str, str]] = []

        def one(kind: str, text: str) -> None:
            lines.append((kind, text))
            on_line(text)

        result = run_group(
            fakes.count,
            {"out": str(tmp_path), "steps": 4, **settings},
            size,
            shared=tmp_path,
            address=cluster.address,
            on_line=one,
            **options,
        )
        assert not list(tmp_path.glob(".*"))  # nothing of Ray Train is left
        return result, lines

    return run_one


@pytest.mark.timeout(300)  # Ray starts 14 processes, which takes long on a machine that is busy
def test_a_training_on_two_raylets_survives_a_killed_worker_and_so_do_tasks(
    cluster: Any, tmp_path: Path
) -> None:
    job = {"settings": TRAINING, "dataset": "synthetic", "options": NODES, "root": None}
    job |= {"out": str(tmp_path / "there"), "resume": False, "overwrite": False, "quiet": False}
    lines: list[tuple[str, str]] = []
    record = run_group(
        fakes.train_and_die_once,
        job,
        TWO,
        shared=tmp_path,
        address=cluster.address,
        on_line=lambda kind, text: lines.append((kind, text)),
    )
    notes = [text for kind, text in lines if kind == "note"]
    assert any("rank 0 stopped" in text for text in notes)
    assert "restart 1, with 2 workers" in notes
    assert any(text.startswith("epoch 6/6") for _, text in lines)
    assert not list(tmp_path.glob(".*"))

    # The same losses as one process that nothing happened to.
    settings = Settings.create(dataset="synthetic", dataset_options=NODES, **TRAINING)
    graph = load_dataset("synthetic", **NODES)
    here = train(graph, settings, out=tmp_path / "here")
    there = Run(tmp_path / "there").result()["history"]
    assert [one["epoch"] for one in there] == [1, 2, 3, 4, 5, 6]
    for name in ("train_loss", "val_loss"):
        losses = [one[name] for one in here.history]
        assert [one[name] for one in there] == pytest.approx(losses, abs=1e-5)
    assert record["test_score"] == pytest.approx(here.test_score, abs=0.02)

    # Tasks, of which some are killed.
    tasks = [
        {"ends": ends, "tries": str(tmp_path / ends)}
        for ends in ("well", "killed once", "killed", "error")
    ]
    found: dict[str, Any] = {}
    run_tasks_on_ray(
        tasks,
        fakes.task,
        lambda task, result: found.update({task["ends"]: result}),
        address=cluster.address,
        retries=1,
    )
    assert found["well"] == found["killed once"] == {"threads": "1"}
    assert isinstance(found["killed"], Failure)
    assert "died" in found["killed"].message
    assert found["error"] == Failure("there is no such file")
    assert len((tmp_path / "killed").read_text()) == 2


@slow
def test_a_group_whose_worker_is_killed_starts_again(run: Callable[..., Any]) -> None:
    result, lines = run(kill=2)
    assert result["steps"] == 4
    assert result["size"] == 2
    assert result["restart"]
    assert result["first"] >= 1  # it went on
    notes = [text for kind, text in lines if kind == "note"]
    assert any("rank 1 stopped" in text for text in notes)
    assert ("line", "step 4: 2, threads 1") in lines


@slow
def test_a_group_goes_on_with_fewer_workers_when_a_node_is_lost(
    run: Callable[..., Any], cluster: Any
) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)

    cluster.wait_for_nodes()
    sizes: list[str] = []

    def on_line(text: str) -> None:
        if text.startswith("step"):
            sizes.append(text.split()[2])
        if text.startswith("step 3: 3"):
            cluster.remove_node(node, allow_graceful=False)

    result, lines = run(GroupSize(1, 3), on_line=on_line, steps=60, pause=0.2)
    assert result["steps"] == 60
    assert result["restart"]
    assert sizes[0] == "3,"
    assert sizes[-1] in ("1,", "2,")
    assert any("restart 1, with" in text for _, text in lines)


@slow
def test_an_error_of_the_library_ends_the_group_with_its_rank(run: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match=r"^rank 1: part 7 is missing") as error:
        run(fail=2)
    assert "\n" not in str(error.value)


@slow
def test_an_error_that_stays_ends_the_group_when_restarts_are_used_up(
    run: Callable[..., Any],
) -> None:
    with pytest.raises(
        WorkerError, match=r"rank 1.*ArithmeticError.*started again 0 times"
    ) as error:
        run(bug=2, options={"max_failures": 0})
    assert "\n" not in str(error.value)


@slow
def test_a_group_without_room_is_an_error_within_the_time_limit(run: Callable[..., Any]) -> None:
    with pytest.raises(
        ClusterError, match=r"no room for 3 workers with 1 CPU each for 3 s.*2 CPUs"
    ):
        run(GroupSize(3, 3), options={"room_seconds": 3})


@slow
def test_tasks_that_no_node_has_the_cores_for_are_an_error(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no node of the cluster had 8 cores for 2 s; 1 task"):
        run_tasks_on_ray(
            [{"ends": "well", "tries": str(tmp_path / "tries")}],
            fakes.task,
            lambda task, result: None,
            address=cluster.address,
            threads=8,
            idle_seconds=2,
        )


STOPPED = """
import sys
from pathlib import Path
from lgcn.workers.ray_group import GroupSize, run_group
from tests.workers import fakes
out = Path(sys.argv[1])
show = lambda kind, text: print(text, flush=True)
settings = {"out": str(out), "steps": 9999, "pause": 0.1}
try:
    run_group(fakes.count, settings, GroupSize(2, 2), shared=out, on_line=show)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@slow
def test_ctrl_c_stops_all_processes(tmp_path: Path) -> None:
    mark = f"LGCN_TEST_MARK={tmp_path}"
    child = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LGCN_TEST_MARK": str(tmp_path)},
    )
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("step 2"):
            break
    assert len(marked(mark)) > 3
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    assert "stopped" in rest
    assert not list(tmp_path.glob(".*"))
    wait_for(lambda: not marked(mark))


def marked(mark: str) -> list[Path]:
    """The processes that have a variable in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(path)
    return found
