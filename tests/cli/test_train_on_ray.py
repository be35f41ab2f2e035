"""The flags of `lgcn train --ray`, and what reaches the workers. Groups run in tests/workers."""

import json
from pathlib import Path
from typing import Any

import pytest

from lgcn.cli.train_on_ray import workers_range
from lgcn.errors import DataError, UsageError
from lgcn.training import Run
from lgcn.training.ray_worker import train_in_group
from lgcn.workers import Workers
from lgcn.workers.ray_group import GroupSize

from .small import SETTINGS, write_toml


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """In place of a group, this process alone; gives what the groups were asked for."""
    asked: list[dict[str, Any]] = []

    def run_group(work: Any, settings: Any, size: GroupSize, **options: Any) -> dict[str, Any]:
        settings = json.loads(json.dumps(settings))
        asked.append({"settings": settings, "size": size, **options})
        found = train_in_group(settings, workers=Workers(), post=options["on_line"])
        return dict(json.loads(json.dumps(found)))

    monkeypatch.setattr("lgcn.workers.ray_group.run_group", run_group)
    return asked


@pytest.mark.parametrize(
    ("text", "found"), [("4", (4, 4)), ("2-4", (2, 4)), (" 1 - 3 ", (1, 3)), ("2-2", (2, 2))]
)
def test_numbers_of_workers(text: str, found: tuple[int, int]) -> None:
    assert workers_range(text) == found


@pytest.mark.parametrize("text", ["", "0", "0-2", "4-2", "-1", "two", "1-2-3", "1.5", "9" * 30])
def test_wrong_numbers_of_workers(text: str) -> None:
    with pytest.raises(UsageError, match="--workers"):
        workers_range(text)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--workers", "2"), "--workers needs --ray"),
        (("--max-failures", "2"), "--max-failures needs --ray"),
        (("--ray", "--workers", "two"), "--workers wants"),
        (("--ray", "--threads", "0"), "--threads must be at least 1"),
        (("--ray", "--max-failures", "-1"), "--max-failures must be at least 0"),
        (("--ray", "--address", "head"), "--address must be HOST:PORT"),
    ],
)
def test_wrong_flags_are_one_line(lgcn_: Any, flags: tuple[str, ...], message: str) -> None:
    found = lgcn_("train", *flags, "--out", "run")
    assert found.code == 2
    assert message in " ".join(found.err.split())
    assert not Path("run").exists()


def test_the_training_is_that_of_one_machine(lgcn_: Any, group: list[dict[str, Any]]) -> None:
    write_toml(Path("settings.toml"), SETTINGS)
    common = ("--config", "settings.toml", "--seed", "3")
    flags = ("--ray", "--workers", "2-4", "--threads", "3", "--max-failures", "7")
    there = lgcn_("train", *common, *flags, "--address", "head:6379", "--out", "there")
    here = lgcn_("train", *common, "--out", "here")
    assert there.code == here.code == 0, there.err
    assert "epoch 5/5" in there.err
    [asked] = group
    assert asked["size"] == GroupSize(2, 4, 3)
    assert asked["address"] == "head:6379"
    assert asked["max_failures"] == 7
    assert asked["shared"] == Path.cwd()
    results = [Run(name).result() for name in ("there", "here")]
    assert results[0]["history"] == results[1]["history"]
    assert Run("there").read() == Run("here").read()
    assert "saved in" in there.out


def test_a_finished_run_is_read_without_a_group(lgcn_: Any, group: list[dict[str, Any]]) -> None:
    write_toml(Path("settings.toml"), SETTINGS)
    assert lgcn_("train", "--config", "settings.toml", "--ray", "--out", "run").code == 0
    again = lgcn_("train", "--ray", "--resume", "--out", "run", "--json")
    assert again.json["epochs"] == 5
    assert len(group) == 1


def test_an_error_of_a_worker_names_flags(
    lgcn_: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_group(*_: Any, **__: Any) -> None:
        raise DataError("rank 1: there is no part 7. Give overwrite=True")

    monkeypatch.setattr("lgcn.workers.ray_group.run_group", run_group)
    write_toml(Path("settings.toml"), SETTINGS)
    found = lgcn_("train", "--config", "settings.toml", "--ray", "--out", "run")
    assert found.code == 1
    assert "Error: rank 1: there is no part 7. Give --overwrite" in " ".join(found.err.split())
