"""Progress: what it says on a terminal, in a notebook, and as lines elsewhere."""

import io
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any

import pytest
from rich.console import Console

from lgcn.training import State
from lgcn.utils.progress import epoch_progress, step_progress


def state(epoch: int, best_epoch: int = 1) -> State:
    entry = {"epoch": epoch, "train_loss": 1.5, "val_score": 0.25}
    return State(epoch=epoch, best_epoch=best_epoch, best_val_score=0.75, history=[entry])


def terminal(file: io.StringIO) -> Console:
    return Console(file=file, force_terminal=True, force_jupyter=False, width=120)


def test_a_terminal_shows_epochs_and_scores() -> None:
    file = io.StringIO()
    with epoch_progress(50, 20, console=terminal(file)) as on_epoch:
        assert on_epoch is not None
        on_epoch(state(3))
    text = file.getvalue()
    assert "epoch 3/21" in text  # patience ends it there, unless validation gets better
    assert "loss 1.500  validation 0.250 (best 0.750)" in text


def test_epochs_without_a_score_have_no_text() -> None:
    file = io.StringIO()
    with epoch_progress(5, 20, console=terminal(file)) as on_epoch:
        assert on_epoch is not None
        on_epoch(State(epoch=2))
    assert "epoch 2/5" in file.getvalue()
    assert "loss" not in file.getvalue()


def test_no_terminal_no_word() -> None:
    file = io.StringIO()
    with epoch_progress(5, 2, console=Console(file=file, force_jupyter=False)) as on_epoch:
        assert on_epoch is None
    assert file.getvalue() == ""


def test_lines_without_a_terminal_are_plain_and_whole() -> None:
    file = io.StringIO()
    console = Console(file=file, force_jupyter=False, width=20)
    with epoch_progress(50, 20, show=True, console=console) as progress:
        assert progress is not None
        progress.start("training on [b]much[/b], and more than fits into a line", True)
        progress(state(1))
        progress(state(3))
    first, *_, last = file.getvalue().splitlines()
    assert first == "training on [b]much[/b], and more than fits into a line"
    assert last.startswith("epoch 3/21  loss 1.500  validation 0.250 (best 0.750)")


def test_an_interrupted_training_leaves_its_last_epoch() -> None:
    file = io.StringIO()
    console = Console(file=file, force_jupyter=False)

    def train() -> None:
        with epoch_progress(50, 20, show=True, console=console) as progress:
            assert progress is not None
            progress(state(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert file.getvalue().startswith("epoch 1/21")


def test_a_terminal_shows_what_is_trained_on_and_a_long_estimate() -> None:
    file, seconds = io.StringIO(), iter(range(0, 10**6, 100))
    console = Console(file=file, force_terminal=True, force_jupyter=False, width=300)
    with epoch_progress(50, 20, console=console, clock=lambda: next(seconds)) as progress:
        assert progress is not None
        progress.start("training on much", True)
        progress.bar.refresh()  # type: ignore[attr-defined]
        progress(state(1))
    assert "training on much" in file.getvalue()
    assert "about 82 min left for up to 50 epochs" in file.getvalue()


@pytest.mark.parametrize(("show", "shown"), [(True, True), (False, False)])
def test_it_can_be_forced_and_forbidden(show: bool, shown: bool) -> None:
    file = io.StringIO()
    console = Console(file=file, force_jupyter=False) if show else terminal(file)
    with epoch_progress(5, 2, show=show, console=console) as on_epoch:
        assert (on_epoch is not None) is shown


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_gets_a_line_and_no_widget(
    monkeypatch: pytest.MonkeyPatch, widgets: bool
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: Any, **options: Any) -> Handle:
        assert isinstance(data, dict), "a widget, which stays in the cell"
        shown.append(data["text/plain"])
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    modules = {"IPython.display": {"display": display}}
    if widgets:
        modules["ipywidgets"] = {"Output": io.StringIO, "__spec__": ModuleSpec("ipywidgets", None)}
    for name, contents in modules.items():
        module = types.ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    console = Console(file=io.StringIO(), force_jupyter=True)
    with epoch_progress(50, 20, console=console) as on_epoch:
        assert on_epoch is not None
        on_epoch(state(1))
        on_epoch(state(30, best_epoch=30))
    assert shown == [
        "epoch 0",
        "epoch 1/21  loss 1.500  validation 0.250 (best 0.750)",
        "epoch 30/50  loss 1.500  validation 0.250 (best 0.750)",
    ]


def test_the_bar_never_says_that_more_is_done_than_there_is() -> None:
    file = io.StringIO()
    with epoch_progress(50, 3, console=terminal(file)) as on_epoch:
        assert on_epoch is not None
        on_epoch(state(9, best_epoch=2))  # evaluations are rare: patience is over before the next
    assert "epoch 9/9" in file.getvalue()


def test_steps_are_a_bar_on_a_terminal_and_lines_elsewhere() -> None:
    file = io.StringIO()
    with step_progress(terminal(file)) as on_progress:
        on_progress("read edges", 3, 8)
    assert "38 %" in file.getvalue()
    assert "read edges" in file.getvalue()
    file, seconds = io.StringIO(), iter(range(100))
    console = Console(file=file, force_jupyter=False)
    with step_progress(console, clock=lambda: 10 * next(seconds)) as on_progress:
        on_progress("read edges", 3, 8)
    assert file.getvalue().startswith("read edges 37 %")
