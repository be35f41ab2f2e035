"""Writes that fail, each one of a command in turn: one line says so, and nothing is lost."""

import errno
from collections.abc import Iterable

import pytest

from .checks import Broken, Laboratory
from .scenarios import SCENARIOS, Scenario
from .trials import Disturbance

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
# Some calls each, so that no test takes long.
PARTS = [
    ("predict", 0, 1),
    *(("train", i, 3) for i in range(3)),
    *(("import", i, 3) for i in range(3)),
]


def check(laboratory: Laboratory, scenario: Scenario, trials: Iterable[Disturbance]) -> None:
    """Runs all, and then tells of those that broke something."""
    broken = []
    for disturbance in trials:
        try:
            laboratory.trial(scenario, disturbance)
        except Broken as error:
            broken.append(str(error))
    assert not broken, "\n".join([f"{len(broken)} trials:", *broken[:20]])


@pytest.mark.parametrize(("name", "part", "parts"), PARTS)
def test_an_error_at_every_single_write(laboratory: Laboratory, name: str, part: int, parts: int):
    scenario = SCENARIOS[name]
    calls = laboratory.undisturbed(scenario).ended.calls[part::parts]
    # All three at each call are for `python -m tests.crash --errors`.
    check(laboratory, scenario, [Disturbance(c.n, "fail", ERRORS[c.n % 3]) for c in calls])


@pytest.mark.parametrize("name", ["predict", "import", "train"])
def test_a_disk_that_becomes_full(laboratory: Laboratory, name: str):
    # Half of a write is done, and nothing that needs space works from then on.
    scenario = SCENARIOS[name]
    writes = [call for call in laboratory.undisturbed(scenario).ended.calls if call.size]
    some = writes[:: max(1, len(writes) // 3)]
    check(laboratory, scenario, [Disturbance(call.n, "full") for call in some])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["train", "train --overwrite", "import", "predict"])
def test_a_full_disk_and_short_writes_at_every_single_write(laboratory: Laboratory, name: str):
    scenario = SCENARIOS[name]
    calls = laboratory.undisturbed(scenario).ended.calls
    trials = [Disturbance(call.n, "full") for call in calls]
    trials += [Disturbance(call.n, "short") for call in calls if call.size > 1]
    check(laboratory, scenario, trials)
