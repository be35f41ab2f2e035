"""The documentation is executed, and its numbers are those of the committed records."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FIDELITY = (ROOT / "docs" / "fidelity.md").read_text()


def test_the_readmes_python_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["values"].shape == names["index"].shape == (4, 2, 16)  # type: ignore[attr-defined]
    assert len(names["classes"]) == 1797  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["train.py", "layer_in_pyg.py"])
def test_the_examples_run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    last = re.findall(r"validation(?: accuracy)? (0\.\d+)", capsys.readouterr().out)[-1]
    assert float(last) > 0.9


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed"])
def test_the_accuracies_are_those_of_the_records(dataset: str) -> None:
    record = json.loads((ROOT / f"benchmarks/results/accuracy-{dataset}.json").read_text())
    for result in record["results"]:
        score = result["test_score"]
        cell = f"{score['mean']:.1f} ± {score['std']:.1f}"
        assert cell in FIDELITY, (result["variant"], cell)
        if result["variant"] == "default":
            assert cell in README
