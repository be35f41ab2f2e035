"""Which room of the package may import which: ``[tool.importlinter]`` in pyproject.toml."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import lgcn

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
