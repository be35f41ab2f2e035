"""Ten faults in a training on two workers. `python -m tests.workers.faults` has many more.

No run hangs, nothing is lost beyond one checkpoint, and a run that was started again ends with the
weights of an undisturbed one, bit for bit.
"""

import re
import signal
from pathlib import Path

import pytest

from .checks import check_restarts, undisturbed
from .data import Data, parts_of, small_graph
from .trainings import Fault, Outcome, run_training


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def parts(folder: Path) -> Data:
    return parts_of(small_graph(), folder / "data")


@pytest.mark.parametrize(
    "fault",
    [
        Fault("kill", rank=0, what="sizes of the sub-graphs", number=8),
        Fault("kill", rank=1, what="gradients", number=8),
        Fault("kill", rank=0, place="write", what="os.rename", number=4),
        Fault("kill", rank=1, what="scores", number=9),
    ],
    ids=["rank 0", "rank 1", "during a checkpoint", "during the evaluation"],
)
def test_after_a_kill_the_run_goes_on(parts: Data, folder: Path, tmp_path: Path, fault: Fault):
    outcome = check_restarts(parts, folder, tmp_path / "run", fault)
    first, second = outcome.attempts
    assert first[fault.rank].status == -signal.SIGKILL
    assert first[1 - fault.rank].status != 0
    assert [one.status for one in second] == [0, 0]
    assert min(outcome.epochs(1)) > 1  # it did not start anew


def test_a_slow_worker_is_waited_for(parts: Data, folder: Path, tmp_path: Path):
    fault = Fault("sleep", rank=1, number=10, seconds=2.0)
    outcome = check_restarts(parts, folder, tmp_path / "run", fault)
    assert len(outcome.attempts) == 1


def test_a_worker_that_is_too_slow_is_named(parts: Data, folder: Path, tmp_path: Path):
    fault = Fault("sleep", rank=1, what="gradients", number=3, seconds=60.0)
    outcome = check_restarts(parts, folder, tmp_path / "run", fault, limit=4.0)
    assert re.search("rank 0 of 2 waited .* rank 1 is missing", outcome.text)
    assert "4 s" in outcome.text


def test_a_full_disk_of_rank_0_is_told_to_the_others(parts: Data, folder: Path, tmp_path: Path):
    fault = Fault("full", rank=0, what="checkpoint", number=3)
    outcome = check_restarts(parts, folder, tmp_path / "run", fault)
    assert outcome.attempts[0][0].status == 1
    assert "not enough room" in outcome.attempts[0][0].output
    assert "rank 0 stopped: there is not enough room" in outcome.attempts[0][1].output


def test_a_part_without_training_nodes_is_no_error(folder: Path, tmp_path: Path):
    uneven = parts_of(small_graph(), tmp_path / "data", without=3)
    outcomes = [run_training(uneven, tmp_path / f"run{size}", size) for size in (1, 2)]
    assert all(outcome.finished for outcome in outcomes)
    assert outcomes[1].losses() == pytest.approx(outcomes[0].losses(), abs=1e-5)


def failing(outcome: Outcome, *words: str) -> None:
    assert not outcome.finished
    assert "Traceback" not in outcome.text
    assert any(all(word in line for word in words) for line in outcome.text.splitlines())


def test_a_missing_shard_is_named(tmp_path: Path):
    data = parts_of(small_graph(), tmp_path / "data")
    fault = Fault("lose", rank=1)
    failing(run_training(data, tmp_path / "run", 2, fault, max_restarts=0), "part-0001")


def test_a_rank_with_another_seed_is_named(parts: Data, tmp_path: Path):
    flags = {1: ("--seed", "7")}
    failing(run_training(parts, tmp_path / "run", flags=flags, max_restarts=0), "rank 1", "seed 7")


def test_a_rank_with_another_partition_is_named(parts: Data, tmp_path: Path):
    other = parts_of(small_graph(), tmp_path / "data", seed=1)
    flags = {1: ("--graph", other.path)}
    failing(
        run_training(parts, tmp_path / "run", flags=flags, max_restarts=0), "rank 1", "partition"
    )


def test_a_run_of_somebody_else_is_not_resumed_after_a_restart(
    parts: Data, folder: Path, tmp_path: Path
):
    undisturbed(parts, folder, 2, ())
    out = folder / "undisturbed-2" / "run"
    before = (out / "model.safetensors").read_bytes()
    flags = {rank: ("--seed", "5") for rank in range(2)}
    failing(run_training(parts, out, flags=flags, max_restarts=1), str(out), "overwrite")
    assert (out / "model.safetensors").read_bytes() == before
