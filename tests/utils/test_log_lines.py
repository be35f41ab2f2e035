"""Progress without a terminal: which lines are written and when, by a clock that the tests turn."""

import pytest

from lgcn.training import State
from lgcn.utils import log_lines
from lgcn.utils.log_lines import EpochLines, Estimate, Lines, StepLines, duration


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def state(epoch: int, steps: int | None = None) -> State:
    entry = {"epoch": epoch, "train_loss": 1.5, "val_score": 0.25}
    found = State(epoch=epoch, steps=epoch if steps is None else steps, history=[entry])
    found.best_epoch, found.best_val_score = epoch, 0.75
    return found


def epochs(clock: Clock, seconds: list[float], **options: object) -> list[str]:
    """The lines about a training whose epochs take so many seconds."""
    written: list[str] = []
    estimate = Estimate(300, clock=clock, **options)  # type: ignore[arg-type]
    lines = EpochLines(written.append, 300, 100, estimate, clock)
    clock.now += 20  # reading the data
    lines.start("training on much", whole=True)
    for epoch, took in enumerate(seconds, start=1):
        clock.now += took
        lines(state(epoch))
    lines.finish()
    return written


def test_a_short_training_has_a_first_and_a_last_line() -> None:
    lines = epochs(Clock(), [0.1])
    assert lines[0] == "training on much"
    assert lines[1].startswith("epoch 1/101  loss 1.500  validation 0.250 (best 0.750)")
    assert len(lines) == 2


def test_the_estimate_comes_after_the_first_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "peak_memory", lambda: 1_200_000_000)
    lines = epochs(Clock(), [36.0, 30.0])
    assert lines[1].startswith(
        "about 3.0 hours left for up to 300 epochs (36 s per epoch; may stop earlier), "
        "peak memory 1.2 GB so far"
    )
    assert lines[2].startswith("epoch 1/")
    assert sum("about" in line for line in lines) == 1


def test_a_first_epoch_that_compiles_is_not_extrapolated() -> None:
    lines = epochs(Clock(), [25.0, 0.5, 0.4])
    assert sum("about" in line for line in lines) == 1
    assert "about 2 min left for up to 300 epochs (0.5 s per epoch" in "\n".join(lines)
    corrected = [line for line in epochs(Clock(), [40.0, 0.5, 0.4]) if "about" in line]
    assert len(corrected) == 2
    assert "0.5 s per epoch" in corrected[1]


@pytest.mark.parametrize(
    ("words", "advice"),
    [("shell", "--set training=subgraph"), ("python", 'training="subgraph"')],
)
def test_a_long_training_comes_with_advice(words: str, advice: str) -> None:
    assert advice in epochs(Clock(), [50.0], words=words)[1]
    assert "to limit it" not in epochs(Clock(), [1.0, 1.0], words=words)[1]


def test_advice_for_sub_graphs_does_not_name_them() -> None:
    clock = Clock()
    estimate = Estimate(300, clock=clock)
    assert estimate.after(state(1)) is None  # several trainings have their own limit
    estimate = Estimate(300, clock=clock)
    estimate.begin()
    clock.now += 50
    text = estimate.after(state(1))
    assert text is not None
    assert "time_limit" in text
    assert "subgraph" not in text


def test_steps_limit_the_estimate() -> None:
    clock = Clock()
    estimate = Estimate(300, max_steps=50, clock=clock)
    estimate.begin()
    clock.now += 1
    assert estimate.after(state(1, steps=10)) is None
    clock.now += 20
    text = estimate.after(state(2, steps=20))
    assert text is not None
    assert "60 s left for up to 5 epochs" in text


def test_a_short_rest_needs_no_estimate() -> None:
    assert not any("about" in line for line in epochs(Clock(), [0.03, 0.03, 0.03]))


def test_lines_come_more_and_more_seldom() -> None:
    clock = Clock()
    lines = Lines(clock)
    gaps, last = [], clock.now
    for _ in range(5000):
        clock.now += 1
        if lines.due():
            gaps.append(clock.now - last)
            last = clock.now
            lines.written()
    assert gaps[0] == 10
    assert gaps == sorted(gaps)
    assert gaps[-1] == 60


def test_the_last_epoch_is_written_once() -> None:
    lines = epochs(Clock(), [1.0] * 40)
    shown = [line.split()[1].split("/")[0] for line in lines if line.startswith("epoch")]
    assert shown[-1] == "40"
    assert len(shown) == len(set(shown))
    assert len(shown) < 8


def test_steps_of_short_work_are_silent() -> None:
    clock, written = Clock(), list[str]()
    report = StepLines(written.append, clock)
    for step in ("read", "sort", "write"):
        clock.now += 0.5
        report(step, 1, 2)
    assert written == []


def test_a_step_that_is_done_at_once_gets_no_line() -> None:
    clock, written = Clock(), list[str]()
    report = StepLines(written.append, clock)
    clock.now += 8  # loading
    report("predictions", 300, 300)
    assert written == []


def test_each_step_of_long_work_gets_a_line() -> None:
    clock, written = Clock(), list[str]()
    report = StepLines(written.append, clock)
    for step in ("read", "sort"):
        for done in range(4):
            clock.now += 4
            report(step, done, 4 if step == "read" else 0)
    assert [line.split("  ")[0] for line in written] == ["read 0 %", "read 75 %", "sort", "sort"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.024, "24 ms"), (0.62, "0.6 s"), (45, "45 s"), (180, "3 min"), (9360, "2.6 hours")],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text
