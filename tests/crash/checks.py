"""What must hold after a command was killed, or one of its writes failed."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lgcn.errors import LGCNError

from .scenarios import (
    BYSTANDERS,
    GRAPH,
    OLD,
    OLD_FILES,
    SCENARIOS,
    TABLE,
    TRAIN,
    Scenario,
    snapshot,
    write_inputs,
)
from .trials import Command, Disturbance, Ended, Machine

ABSENT = "absent"
NO_ERROR = re.compile(r"Note: |\d+/\d+ ")  # notes, and the progress of `lgcn reproduce`


class Broken(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True)
class Undisturbed:
    """A scenario without a disturbance."""

    before: dict[str, Any]
    old: Any
    after: dict[str, Any]
    new: Any
    size: int  # bytes in new and changed files
    ended: Ended


@dataclass(frozen=True)
class Outcome:
    """What a trial left: ``"old"``, ``"new"`` or ``"absent"``; and the call that it hit."""

    state: str
    call: str
    ended: Ended


class Laboratory:
    """A folder that is reset before every trial, and what each scenario should leave in it.

    Args:
        machine: Runs the commands.
        base: An empty folder.
    """

    def __init__(self, machine: Machine, base: Path) -> None:
        self.machine = machine
        self.folder = base.resolve() / "folder"  # one path, since run folders hold paths
        self._template = base / "template"
        self._undisturbed: dict[str, Undisturbed] = {}
        self.folder.mkdir()
        self._fill()
        self.folder.rename(self._template)

    def _fill(self) -> None:
        write_inputs(self.folder)
        for name in OLD_FILES:
            (self.folder / name).write_bytes(OLD)
        self._make(*TRAIN, "--out", "trained")
        shutil.copytree(self.folder / "trained", self.folder / "old-run")
        self._make("generate", "old-store", *GRAPH, "--seed", "7")
        self._make(*TABLE, "--seeds", "2", "--out", "tables", "--processes", "1")
        self._run(Command(("7", "old-model"), "save"))
        # Killed when its first checkpoint is complete.
        train = Command((*TRAIN, "--out", "stopped"))
        calls = self._run(train).calls
        shutil.rmtree(self.folder / "stopped")
        second = next(call.n for call in calls if "checkpoint-2" in Path(call.path).name)
        first = [call for call in calls if "checkpoint-1" in call.path and call.kind == "rename"]
        assert first
        assert first[0].n < second
        assert self.machine.run(train, self.folder, Disturbance(second, "kill before")).killed
        for name in BYSTANDERS:
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(OLD)

    def _make(self, *arguments: str) -> None:
        self._run(Command(arguments))

    def _run(self, command: Command) -> Ended:
        ended = self.machine.run(command, self.folder)
        if ended.status:
            raise Broken(f"{command} ended with {ended.status}: {ended.err or ended.out}")
        return ended

    def reset(self) -> None:
        """Resets the folder to its state before every trial."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._template, self.folder)

    def undisturbed(self, scenario: Scenario) -> Undisturbed:
        """The outcome without a disturbance; computed once."""
        if scenario.name not in self._undisturbed:
            self.reset()
            before, old = snapshot(self.folder), self._read(scenario)
            ended = self._run(scenario.command)
            after, new = snapshot(self.folder), self._read(scenario)
            files = [name for name in after if after[name] and after[name] != before.get(name)]
            size = sum((self.folder / name).stat().st_size for name in files)
            self._undisturbed[scenario.name] = Undisturbed(before, old, after, new, size, ended)
        return self._undisturbed[scenario.name]

    def trial(
        self, scenario: Scenario, disturbance: Disturbance, *, new_process: bool = False
    ) -> Outcome:
        """Disturbs a command and checks everything; raises :class:`Broken`."""
        expected = self.undisturbed(scenario)
        self.reset()
        run = self.machine.run_in_new_process if new_process else self.machine.run
        ended = run(scenario.command, self.folder, disturbance)
        hit = next((call for call in ended.calls if call.n == disturbance.n), None)
        name = "nothing" if hit is None else f"{hit.kind} {self._name(hit.path)}"
        try:
            self._check_end(scenario, disturbance, ended)
            state = self._check_contents(scenario, expected)
            if ended.status == 0 and state != "new":
                raise Broken(f"it ended with 0, but its result is {state}")
            self._check_next(scenario, expected, ended.err)
        except Broken as error:
            raise Broken(f"{scenario.name}, {disturbance} ({name}): {error}") from None
        return Outcome(state, name, ended)

    def _name(self, path: str | Path) -> str:
        """A path as reports show it: without the random part of a temporary name."""
        name = str(Path(path).relative_to(self.folder))
        name = re.sub(r"\.partial-\w+", ".partial-*", name)
        return re.sub(r"\.\w{8}(\.lgcn-tmp)?$", ".*", name)

    def _check_end(self, scenario: Scenario, disturbance: Disturbance, ended: Ended) -> None:
        """The command was killed, succeeded, or printed one line that names the file."""
        if disturbance.mode.startswith("kill"):
            if not ended.killed:
                raise Broken(f"it was not killed but ended with {ended.status}: {ended.err}")
            return
        if ended.status == 0:
            return
        lines = [line for line in ended.err.splitlines() if not NO_ERROR.match(line)]
        if ended.status != 1 or len(lines) != 1 or not lines[0].startswith("Error: "):
            text = ended.err if len(ended.err) < 1000 else f"...{ended.err[-1000:]}"
            raise Broken(f"exit code 1 and one line were wanted, got {ended.status} and {text!r}")
        if scenario.target not in lines[0]:
            raise Broken(f"the message does not name {scenario.target}: {lines[0]!r}")
        if disturbance.mode == "short":
            raise Broken(f"a short write is no error, got {lines[0]!r}")

    def _check_contents(self, scenario: Scenario, expected: Undisturbed) -> str:
        """Nothing half-written is read as complete; everything finished is still there."""
        now = snapshot(self.folder)
        target = Path(scenario.target)
        for name, content in expected.before.items():
            inside = Path(name).is_relative_to(target) and name not in BYSTANDERS
            if not inside and (name not in now or now[name] != content):
                raise Broken(f"{name} was changed or removed")
        for name in now:
            if name in expected.before or name in expected.after:
                continue
            parts = Path(name).parts
            if not any(
                part.startswith((".", "checkpoint")) or ".partial-" in part for part in parts
            ):
                raise Broken(f"{name} is left and looks like a result")
        found = self._read(scenario)
        if scenario.separate:
            return self._check_files(found, expected)
        if found == expected.new:
            return "new"
        if found == expected.old:
            return "old" if found != ABSENT else ABSENT
        if found != ABSENT:
            raise Broken(f"{target} is read as complete, but is neither the old nor the new one")
        if expected.old != ABSENT and scenario.keeps_old:
            raise Broken(f"{target} was finished before and is gone")
        return ABSENT

    def _check_files(self, found: Any, expected: Undisturbed) -> str:
        """Each file of a folder is the old or the new one."""
        old, new = ({} if value == ABSENT else value for value in (expected.old, expected.new))
        for name, content in ({} if found == ABSENT else found).items():
            allowed = [files[name] for files in (old, new) if name in files]
            if name.endswith(".jsonl"):  # grows line by line
                _check_lines(name, content, old.get(name, b""), new[name])
            elif allowed and content not in allowed:
                raise Broken(f"{name} is neither the old nor the new one")
        if missing := [name for name in old if found == ABSENT or name not in found]:
            raise Broken(f"{missing[0]} was finished before and is gone")
        if all(found.get(name) == content for name, content in new.items()):
            return "new"
        return "old"

    def _check_next(self, scenario: Scenario, expected: Undisturbed, said: str) -> None:
        """Repeating the command, or following its advice, gives the undisturbed result."""
        command = scenario.command.plus("--resume") if "--resume" in said else scenario.command
        ended = self.machine.run(command, self.folder)
        if ended.status == 2:  # the disturbed command left a result
            advised = [flag for flag in ("--resume", "--overwrite") if flag in ended.err]
            if not advised:
                raise Broken(f"the next command was refused without advice: {ended.err}")
            ended = self.machine.run(scenario.command.plus(advised[0]), self.folder)
        if ended.status:
            raise Broken(f"the next command ended with {ended.status}: {ended.err}")
        now = snapshot(self.folder)
        for name, content in expected.after.items():
            if name not in now or now[name] != content:
                raise Broken(f"after the next command, {name} is not as it would have been")
        if left := sorted(self._name(self.folder / name) for name in now.keys() - expected.after):
            raise Broken(f"the next command leaves {', '.join(left)}")

    def _read(self, scenario: Scenario) -> Any:
        """The result, or ``ABSENT`` if there is none or reading it ends in a message."""
        try:
            return scenario.read(self.folder / scenario.target)
        except FileNotFoundError:
            return ABSENT
        except LGCNError as error:
            if "\n" in str(error):
                raise Broken(f"it is refused in several lines: {error}") from None
            return ABSENT


def _check_lines(name: str, found: bytes, old: bytes, new: bytes) -> None:
    """All lines of the old file are there, and only lines of the new one."""
    lines, before, after = (text.splitlines(keepends=True) for text in (found, old, new))
    if not set(before) <= set(lines):
        raise Broken(f"{name} lost a line")
    if lines != [line for line in after if line in lines]:
        raise Broken(f"{name} has a line that is not one of the new file, or another order")


__all__ = ["SCENARIOS", "Broken", "Laboratory", "Outcome"]
