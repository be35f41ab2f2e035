"""Commands that are killed while they write, and writes that fail.

Nothing half-written is ever read as whole, everything finished is still there, and the next command
ends as if nothing had happened. `make crash` does the same at many more moments.
"""

import errno
import random
import signal
from collections.abc import Iterable

import pytest

from .checks import Broken, Laboratory
from .scenarios import SCENARIOS, Scenario
from .trials import KILLS, Disturbance

# At least 20 kills: one per command, two for those that write most.
OFTEN = ("train", "train --resume", "import")
MOMENTS = [(name, i) for name in SCENARIOS for i in range(2 if name in OFTEN else 1)]
assert len(MOMENTS) >= 20


@pytest.mark.parametrize(("name", "number"), MOMENTS)
def test_a_kill_while_it_writes(laboratory: Laboratory, name: str, number: int):
    scenario = SCENARIOS[name]
    rng = random.Random(f"{name} {number}")  # the same moments in every run
    calls = len(laboratory.undisturbed(scenario).ended.calls)
    outcome = laboratory.trial(scenario, Disturbance(rng.randint(1, calls), rng.choice(KILLS)))
    assert outcome.ended.status == -signal.SIGKILL
    assert outcome.state in ("old", "new", "absent")


@pytest.mark.parametrize("name", ["import --overwrite", "generate --overwrite"])
@pytest.mark.parametrize("mode", ["kill before", "kill after", "fail"])
def test_a_store_is_replaced_in_one_step(laboratory: Laboratory, name: str, mode: str):
    scenario = SCENARIOS[name]
    calls = laboratory.undisturbed(scenario).ended.calls
    renames = [Disturbance(call.n, mode) for call in calls if call.kind == "rename"]
    assert renames
    for disturbance in renames:
        assert laboratory.trial(scenario, disturbance).state in ("old", "new")


@pytest.mark.slow
def test_a_kill_of_a_new_process(laboratory: Laboratory):
    # The other trials are forks of one process, which is faster.
    scenario = SCENARIOS["train"]
    calls = laboratory.undisturbed(scenario).ended.calls
    n = next(call.n for call in calls if call.kind == "rename" and "model" in call.path)
    outcome = laboratory.trial(scenario, Disturbance(n, "kill before"), new_process=True)
    assert outcome.ended.status == -signal.SIGKILL
    assert outcome.state == "absent"


ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
# (command, part, parts): the calls are divided, so that no test takes long.
PARTS = [
    ("predict", 0, 1),
    *(("train", i, 3) for i in range(3)),
    *(("import", i, 3) for i in range(3)),
]


def check(laboratory: Laboratory, scenario: Scenario, trials: Iterable[Disturbance]) -> None:
    """Runs all trials, then reports those that broke a promise."""
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
    # `python -m tests.crash --errors` tries all three at each call.
    check(laboratory, scenario, [Disturbance(c.n, "fail", ERRORS[c.n % 3]) for c in calls])


@pytest.mark.parametrize("name", ["predict", "import", "train"])
def test_a_disk_that_becomes_full(laboratory: Laboratory, name: str):
    # Half of a write succeeds; after that, nothing that needs space works.
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
