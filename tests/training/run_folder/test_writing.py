"""One writer at a time, a disk that is full, and what killed writers left."""

import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import safetensors.torch
import torch

from lgcn.errors import CheckpointError, UsageError, WriteError
from lgcn.training import Run, folder_lock, tensor_files, train

from ..graphs import digest, settings, small_graph
from .runs import FINISHED, STOPPED, Killed, at_epoch, die, go_on, names


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file can be written that is larger: the disk is full for them."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": False}])
def test_a_second_training_in_one_folder_is_refused(tmp_path: Path, options: dict[str, bool]):
    def another() -> None:
        with pytest.raises(UsageError, match=f"another process is writing to the run in {folder}"):
            train(small_graph(), settings(), out=folder, **options)

    folder = tmp_path / "run"
    result = train(small_graph(), settings(), out=folder, on_epoch=at_epoch(3, another))
    assert digest(Run(folder).load_model()[0]) == digest(result.model)
    assert names(folder) == FINISHED


@pytest.mark.parametrize("way", ["kill", "exit"])
def test_the_lock_goes_with_its_process(tmp_path: Path, way: str):
    ready, told = os.pipe()
    if (child := os.fork()) == 0:
        with Run(tmp_path).locked():
            os.write(told, b"x")
            signal.pause()
        os._exit(1)
    os.read(ready, 1)
    with pytest.raises(UsageError, match=str(tmp_path)), Run(tmp_path).locked():
        pass
    os.kill(child, signal.SIGKILL if way == "kill" else signal.SIGTERM)
    os.waitpid(child, 0)
    with Run(tmp_path).locked():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_appeared_meanwhile_is_not_replaced(finished: Path):
    before = (finished / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match=f"{finished} already holds a run"):
        train(small_graph(), settings(seed=1), out=finished, overwrite=False)
    assert (finished / "model.safetensors").read_bytes() == before


def test_a_folder_stays_only_if_something_is_in_it(tmp_path: Path):
    with Run(tmp_path / "a" / "run").locked():
        pass
    assert not (tmp_path / "a" / "run").exists()
    (tmp_path / "mine").mkdir()
    with Run(tmp_path / "mine").locked():
        pass
    assert (tmp_path / "mine").is_dir()


def test_a_folder_behind_a_link_can_be_locked(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with (
        Run(tmp_path / "link").locked(),
        pytest.raises(UsageError),
        Run(tmp_path / "real").locked(),
    ):
        pass


def test_a_file_system_without_locks_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folder_lock, "lock", lambda handle: None)
    with pytest.warns(UserWarning, match=rf"{tmp_path} .*file system without locks"):
        train(small_graph(), settings(max_epochs=1), out=tmp_path)
    assert Run(tmp_path).finished


def test_a_path_that_cannot_be_a_folder_is_an_error_with_the_path(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WriteError, match=str(tmp_path / "file")):
        train(small_graph(), settings(), out=tmp_path / "file")


@pytest.mark.usefixtures("checkpoints")
def test_a_full_disk_at_a_checkpoint_leaves_the_one_before(
    tmp_path: Path, finished_run: tuple[Path, object]
):
    full = largest_file(3000)
    with pytest.raises(WriteError) as caught, largest_file(resource.RLIM_INFINITY):
        train(
            small_graph(),
            settings(),
            out=tmp_path,
            on_epoch=at_epoch(4, full.__enter__),
        )
    full.__exit__(None, None, None)
    message = str(caught.value)
    assert str(tmp_path / "checkpoint-4.safetensors") in message
    assert f"lgcn train --resume --out {tmp_path}" in message
    assert "\n" not in message
    assert names(tmp_path) == {*STOPPED, "checkpoint-3.safetensors"}
    go_on(tmp_path)
    weights = [Path(p, "model.safetensors").read_bytes() for p in (tmp_path, finished_run[0])]
    assert weights[0] == weights[1]


def test_a_full_disk_at_the_end_can_be_gone_on_from(stopped: Path):
    with pytest.raises(WriteError, match=rf"{stopped}/model.*--resume"), largest_file(500):
        go_on(stopped)
    assert not Run(stopped).finished
    go_on(stopped)
    assert names(stopped) == FINISHED


def test_what_a_killed_run_left_is_removed_by_the_next(stopped: Path):
    for name in ("checkpoint-2.safetensors", "run.json"):
        (stopped / f".{name}.0123abcd.lgcn-tmp").write_text("half")
    go_on(stopped)
    assert names(stopped) == FINISHED


@pytest.mark.usefixtures("checkpoints")
def test_links_in_a_run_folder_lead_to_no_other_file(stopped: Path, tmp_path: Path):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name in ("checkpoint-4.safetensors", "model.safetensors", "result.json"):
        (stopped / name).symlink_to(mine)
    (stopped / "result.json").unlink()
    (stopped / "result.json").symlink_to(tmp_path / "new")  # dangling: the run is not finished
    go_on(stopped)
    assert mine.read_text() == "mine"
    assert not (tmp_path / "new").exists()
    assert not any(path.is_symlink() for path in stopped.iterdir())


def test_a_run_that_is_replaced_while_it_is_read_is_noticed(finished: Path):
    reader = Run(finished)
    reader.load_model()
    reader.temperature()
    train(small_graph(), settings(seed=1), out=finished)
    with pytest.raises(CheckpointError, match=f"{finished} was replaced while it was read"):
        reader.temperature()


def test_a_run_that_is_replaced_between_settings_and_weights_is_noticed(
    finished: Path, monkeypatch: pytest.MonkeyPatch
):
    plain: Callable[..., dict[str, torch.Tensor]] = tensor_files.load_tensors

    def replaced(path: Path) -> dict[str, torch.Tensor]:
        monkeypatch.setattr(tensor_files, "load_tensors", plain)
        train(small_graph(), settings(seed=1), out=finished)
        return plain(path)

    monkeypatch.setattr(tensor_files, "load_tensors", replaced)
    with pytest.raises(CheckpointError, match="was replaced while it was read"):
        Run(finished).load_model()


def test_files_of_tensors_are_those_of_safetensors(tmp_path: Path):
    tensors = {
        "b": torch.randn(3, 4),
        "a": torch.randn(4, 3).t(),
        "step": torch.zeros(()),
        "count": torch.tensor(7),
        "empty": torch.empty(0, 2),
        "half": torch.randn(5).bfloat16(),
        "flags": torch.tensor([True, False]),
        "é": torch.randn(2).double(),
    }
    tensor_files.save_tensors(tmp_path / "a", tensors)
    plain = {key: value.contiguous() for key, value in tensors.items()}
    assert (tmp_path / "a").read_bytes() == safetensors.torch.save(plain)


def test_warnings_are_not_raised_where_there_are_locks(tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Killed):
            train(small_graph(), settings(), out=tmp_path, on_epoch=at_epoch(1, die))


def test_a_reader_can_try_again_after_a_run_was_replaced(finished: Path):
    reader = Run(finished)
    reader.load_model()
    train(small_graph(), settings(seed=1), out=finished)
    with pytest.raises(CheckpointError, match="Try again"):
        reader.temperature()
    assert reader.load_model()[1].seed == 1


def test_a_pipe_or_a_file_is_no_run_folder(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for name in ("pipe", "file"):
        with pytest.raises(WriteError, match=str(tmp_path / name)):
            train(small_graph(), settings(), out=tmp_path / name)
