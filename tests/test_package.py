"""The package as a whole: its public names, which room may import which, and one training step.

The order of the rooms is in ``[tool.importlinter]`` of pyproject.toml.
"""

import ast
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lgcn
from lgcn.__main__ import main
from lgcn.ops.cpu import select
from lgcn.training import metrics


@pytest.mark.parametrize("name", lgcn.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(lgcn, name)
    assert value.__name__ == name
    assert value.__doc__
    assert name in dir(lgcn)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="nope"):
        lgcn.nope  # noqa: B018


def test_names_are_imported_when_they_are_used() -> None:
    code = "import sys, lgcn; assert 'torch' not in sys.modules; lgcn.load_run"
    code += "; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


ROOT = Path(__file__).parents[1]
SOURCE = Path(lgcn.__file__).parent
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
# Rooms from the highest to the lowest; those of one line may not import each other.
LAYERS = [
    {name.strip().removeprefix("lgcn.") for name in layer.split("|")}
    for contract in CONTRACTS
    if contract["id"] == "order"
    for layer in contract["layers"]
]
MODULE = re.compile(r"lgcn\.(\w+)(\.\w+)*(:\w+)?")


def test_no_room_imports_one_above_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    linter = pytest.importorskip("importlinter.cli")
    monkeypatch.syspath_prepend(str(ROOT))  # restores what the linter changes
    failed = linter.lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert not failed, capsys.readouterr().out


def test_every_room_has_a_layer() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.name[0].isalpha()} - {"py"}
    assert rooms | {"__main__"} == set().union(*LAYERS)


def test_no_room_names_a_module_above_it() -> None:
    """Names in strings, of modules that are imported later, are not seen by the linter."""
    level = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        own = path.relative_to(SOURCE)
        room = own.parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = MODULE.fullmatch(node.value)
                if named and named[1] in level and level[named[1]] < level[room]:
                    wrong.append(f"{own}, line {node.lineno}: {node.value}")
    assert not wrong, wrong


def test_a_training_step_goes_through_the_files_that_the_guide_lists(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From the command line to the selection and to the loss: the files of all calls between."""
    passed: set[str] = set()

    def watch(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def watched(*args: Any, **options: Any) -> Any:
            frame = sys._getframe(1)
            files = [module.__file__]
            while frame.f_back is not None:
                files.append(frame.f_code.co_filename)
                frame = frame.f_back
            if str(SOURCE / "training" / "step.py") in files:
                passed.update(str(file) for file in files)
            return function(*args, **options)

        monkeypatch.setattr(module, name, watched)

    watch(metrics, "loss")
    watch(select, "k_largest")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which main replaces
    line = "lgcn train --dataset digits --set device=cpu --set max_epochs=1 --json"
    monkeypatch.setattr(sys, "argv", line.split())
    with pytest.raises(SystemExit, match="0"):
        main()

    found = {Path(file).relative_to(SOURCE) for file in passed if file.startswith(str(SOURCE))}
    found = {path for path in found if path.parts[0] != "utils"}
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = guide.partition("## One training step")[2].partition("\n## ")[0]
    listed = re.findall(r"^\d+\. `src/lgcn/([\w/]+\.py)`", section, flags=re.MULTILINE)
    assert found == {Path(path) for path in listed}
    assert len(listed) <= 15
