"""What is known of each node equals the predictions of the run, and scikit-learn's counts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from lgcn.inference import load_run
from lgcn.report.bins import calibration_bins
from lgcn.report.node_results import SPLITS, node_results
from lgcn.training.calibration import expected_calibration_error, probabilities


@pytest.mark.parametrize("kind", ["classes", "labels", "numbers"])
def test_results_are_those_of_the_predictions(kind: str, trained: Callable[..., Path]) -> None:
    run = load_run(trained(kind))
    found = node_results(run, run.scored_graph())
    table = run.predictions()
    assert np.array_equal(found.known, np.array(table["true"].is_valid()))
    splits = [None if number < 0 else SPLITS[number] for number in found.split]
    assert splits == table["split"].to_pylist()
    predicted, true = table["predicted"].to_pylist(), table["true"].to_pylist()
    for node in range(len(table)):
        if kind == "numbers":
            assert found.predicted[node] == pytest.approx(predicted[node])
            assert found.wrong[node] == pytest.approx(predicted[node] - true[node], abs=1e-6)
            continue
        assert found.confidence[node] == pytest.approx(table["confidence"][node].as_py())
        if true[node] is None:
            assert np.isnan(found.wrong[node])
        elif kind == "classes":
            assert run.class_names[found.predicted[node]] == predicted[node]
            assert found.wrong[node] == (predicted[node] != true[node])
        else:
            ours, theirs = (set(text.split(";")) - {""} for text in (predicted[node], true[node]))
            assert found.wrong[node] == len(ours ^ theirs)
            assert found.hits is not None
            assert found.hits[node] == len(ours & theirs)


@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_the_calibration_error_is_that_of_the_training(
    kind: str, trained: Callable[..., Path]
) -> None:
    run = load_run(trained(kind))
    scored = run.scored_graph()
    found = node_results(run, scored)
    assert found.calibration is not None
    assert found.main == "test"
    chosen = torch.from_numpy(found.scored)
    assert scored.graph.y is not None
    chances = probabilities(scored.scores[chosen], kind == "labels", run.temperature)
    error = expected_calibration_error(chances, scored.graph.y[chosen])
    assert found.calibration.error == pytest.approx(error)
    assert run.result()["calibration"]["test_after"] == pytest.approx(error)
    bins = calibration_bins(found)
    count = sum(row["predictions"] for row in bins)
    assert count == (scored.scores[chosen].numel() if kind == "labels" else int(chosen.sum()))
    gaps = sum(abs(row["accuracy"] - row["confidence"]) * row["predictions"] for row in bins)
    assert gaps / count == pytest.approx(error)
