"""Commands that are killed while they write.

Nothing half-written is ever read as whole, everything finished is still there, and the next command
ends as if nothing had happened. `make crash` does the same at many more moments.
"""

import random
import signal

import pytest

from .checks import Laboratory
from .scenarios import SCENARIOS
from .trials import KILLS, Disturbance

# 20 kills: one of each, two of those that write most.
OFTEN = ("train", "train --resume", "import")
MOMENTS = [(name, i) for name in SCENARIOS for i in range(2 if name in OFTEN else 1)]


@pytest.mark.parametrize(("name", "number"), MOMENTS)
def test_a_kill_while_it_writes(laboratory: Laboratory, name: str, number: int):
    scenario = SCENARIOS[name]
    rng = random.Random(f"{name} {number}")  # the same moments in each run of the tests
    calls = len(laboratory.undisturbed(scenario).ended.calls)
    outcome = laboratory.trial(scenario, Disturbance(rng.randint(1, calls), rng.choice(KILLS)))
    assert outcome.ended.status == -signal.SIGKILL
    assert outcome.state in ("old", "new", "absent")


@pytest.mark.parametrize("name", ["import --overwrite", "generate --overwrite"])
@pytest.mark.parametrize("mode", ["kill before", "kill after", "fail"])
def test_a_store_is_replaced_in_one_step(laboratory: Laboratory, name: str, mode: str):
    scenario = SCENARIOS[name]
    calls = laboratory.undisturbed(scenario).ended.calls
    for call in calls:
        if call.kind == "rename":
            laboratory.trial(scenario, Disturbance(call.n, mode))


def test_there_are_enough_kills():
    assert len(MOMENTS) >= 20


@pytest.mark.slow
def test_a_kill_of_a_new_process(laboratory: Laboratory):
    # The others are forks of one process, which is faster.
    scenario = SCENARIOS["train"]
    calls = laboratory.undisturbed(scenario).ended.calls
    n = next(call.n for call in calls if call.kind == "rename" and "model" in call.path)
    outcome = laboratory.trial(scenario, Disturbance(n, "kill before"), anew=True)
    assert outcome.ended.status == -signal.SIGKILL
    assert outcome.state == "absent"
