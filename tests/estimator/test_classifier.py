"""The scikit-learn estimator: scikit-learn's own checks, predictions, searches, settings."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lgcn import Graph, load_dataset
from lgcn.datasets import synthetic
from lgcn.errors import UsageError
from lgcn.estimator import LGCNClassifier
from lgcn.inference import predict
from lgcn.training import Settings

from .small import REPEATED, adjacency, parts, small

# The checks of scikit-learn 1.9 that cannot apply, with the reason. The docs quote this.
ESTIMATOR_CHECKS_THAT_CANNOT_APPLY = {
    "check_classifiers_classes": (
        "it trains on the classes -1 and 1, and -1 marks nodes without a label here, as in "
        "scikit-learn's semi-supervised models, which the check leaves out by name"
    ),
    "check_sample_weight_equivalence_on_dense_data": REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED,
}


def cannot_apply(estimator: Any) -> dict[str, str]:
    return ESTIMATOR_CHECKS_THAT_CANNOT_APPLY


@parametrize_with_checks(
    [LGCNClassifier(max_epochs=30, lr=0.03)], expected_failed_checks=cannot_apply
)
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_it_learns_the_classes(graph: Graph) -> None:
    x, y, edges = parts(graph)
    hidden = np.arange(200) % 2 == 0
    classifier = small(max_epochs=40).fit(x, np.where(hidden, -1, y), edges)
    assert accuracy_score(y[hidden], classifier.predict()[hidden]) > 0.8
    assert classifier.score(None, np.where(hidden, y, -1)) > 0.8
    assert classifier.score(np.flatnonzero(hidden), y[hidden]) > 0.8
    alone = small(max_epochs=40).fit(x, np.where(hidden, -1, y))
    assert alone.graph_.num_edges == 0
    assert classifier.score(None, y) > alone.score(None, y)


def test_prediction_of_another_graph(graph: Graph, fitted: LGCNClassifier) -> None:
    other = synthetic(num_nodes=90, num_classes=3, num_features=8, noise=1.0, seed=1)
    x, _, edges = parts(other)
    expected = fitted.predict_proba(other)
    assert expected.shape == (90, 3)
    for arguments in ((x, edges), (other.to_pyg(), None), (pd.DataFrame(x), adjacency(other))):
        np.testing.assert_allclose(fitted.predict_proba(*arguments), expected, atol=1e-6)
    grown = np.concatenate([edges, [[90, 0], [0, 90]]], axis=1)
    new = fitted.predict_proba(np.concatenate([x, x[:1]]), grown)
    assert new.shape == (91, 3)
    assert not np.allclose(new[0], expected[0])
    assert fitted.predictions(other)["node"].to_pylist() == list(range(90))
    np.testing.assert_array_equal(fitted.predict(graph), fitted.predict())


def test_embeddings(graph: Graph, fitted: LGCNClassifier) -> None:
    found = fitted.transform()
    assert found.shape == (200, 8 + 8)
    np.testing.assert_array_equal(fitted.transform([5, 3]), found[[5, 3]])
    x, y, edges = parts(graph)
    np.testing.assert_array_equal(small().fit_transform(x, y, edges), found)
    nodes = np.arange(0, 200, 2)
    some = small().fit_transform(nodes, y[nodes], graph=graph)
    assert some.shape == (100, 16)


def test_node_numbers_and_masks(fitted: LGCNClassifier) -> None:
    everything = fitted.predict()
    for nodes in ([4, 2], np.array([4, 2], np.int32), torch.tensor([4, 2]), pd.Series([4, 2])):
        np.testing.assert_array_equal(fitted.predict(nodes), everything[[4, 2]])
    mask = np.arange(200) < 10
    np.testing.assert_array_equal(fitted.predict(mask), everything[:10])
    np.testing.assert_array_equal(fitted.predict(torch.from_numpy(mask)), everything[:10])


@pytest.mark.parametrize("split", ["cv=3", "PredefinedSplit"])
def test_a_grid_search_over_nodes(graph: Graph, split: str) -> None:
    y = graph.y.numpy()
    nodes = np.arange(0, 150)
    cv = 3 if split == "cv=3" else PredefinedSplit(np.where(nodes < 100, -1, 0))
    grid = {"dropout": [0.0, 0.5], "k": np.array([2, 4])}
    search = GridSearchCV(small(max_epochs=5), grid, cv=cv, error_score="raise")
    search.fit(nodes, y[nodes], graph=graph)
    assert search.cv_results_["mean_test_score"].min() > 0.3
    best = search.best_estimator_
    assert (best.dropout, best.k) == tuple(search.best_params_.values())
    held = torch.arange(150, 200)
    assert not bool((best.graph_.train_mask | best.graph_.val_mask)[held].any())
    assert search.score(held.numpy(), y[held]) == best.score(held, y[held])
    assert search.predict(nodes).shape == (150,)


def test_cross_validation_trains_on_the_other_folds_alone(graph: Graph) -> None:
    y = graph.y.numpy()
    nodes = np.arange(200)
    scores = cross_val_score(small(), nodes, y, cv=4, params={"graph": graph})
    assert scores.min() > 0.5
    # Labels of the held-out nodes have no part in the fit.
    wrong = replace(graph, y=torch.zeros(200, dtype=torch.long))
    again = cross_val_score(small(), nodes, y, cv=4, params={"graph": wrong})
    np.testing.assert_array_equal(scores, again)


def test_in_a_pipeline(graph: Graph) -> None:
    x, y, edges = parts(graph)
    pipeline = make_pipeline(StandardScaler(), small())
    pipeline.fit(x, y, lgcnclassifier__edges=edges)
    assert accuracy_score(y, pipeline[-1].predict()) > 0.6


def test_parameters() -> None:
    classifier = small(settings={"cnn": "single"})
    assert clone(classifier).get_params() == classifier.get_params()
    classifier.set_params(k=7, lr=0.5)
    assert (classifier.k, classifier.lr) == (7, 0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'kk'"):
        classifier.set_params(kk=1)
    assert repr(LGCNClassifier(k=3)) == "LGCNClassifier(k=3)"


def test_defaults_are_those_of_config(graph: Graph) -> None:
    config = LGCNClassifier(max_epochs=1, random_state=5).fit(graph).settings_
    expected = Settings.create(dataset="tables", max_epochs=1, seed=5).resolve(graph)
    assert config == expected
    assert config.model.k == 8
    assert config.model.input_scale not in (None, 1.0)
    assert config.sampling.training == "whole"


def test_further_settings(graph: Graph) -> None:
    config = small(settings={"cnn": "single", "k": 6}, max_epochs=1).fit(graph).settings_
    assert config.model.cnn == "single"
    assert config.model.k == 4  # the argument wins
    with pytest.raises(UsageError, match=r"settings must not have seed.*random_state"):
        small(settings={"seed": 3}).fit(graph)
    with pytest.raises(UsageError, match=r"unknown setting 'cnnn'; did you mean 'cnn'\?"):
        small(settings={"cnnn": "single"}).fit(graph)


def test_the_same_random_state_gives_the_same(graph: Graph, fitted: LGCNClassifier) -> None:
    np.testing.assert_array_equal(small().fit(graph).predict_proba(), fitted.predict_proba())
    other = small(random_state=1).fit(graph)
    assert not np.array_equal(other.predict_proba(), fitted.predict_proba())
    np.random.seed(3)  # noqa: NPY002
    first = small(random_state=None).fit(graph)
    second = small(random_state=None).fit(graph)
    np.random.seed(3)  # noqa: NPY002
    again = small(random_state=None).fit(graph)
    assert first.settings_.seed == again.settings_.seed != second.settings_.seed
    np.testing.assert_array_equal(first.predict_proba(), again.predict_proba())
    seeds = [small(random_state=np.random.RandomState(2)).fit(graph).settings_.seed for _ in "ab"]
    assert seeds[0] == seeds[1]


def test_warm_start(graph: Graph) -> None:
    x, y, edges = parts(graph)
    classifier = small(warm_start=True, max_epochs=1, lr=0.0).fit(graph)
    before = classifier.model_
    classifier.fit(np.arange(60), y[:60], graph=graph)
    assert classifier.model_ is not before
    for key, value in classifier.model_.state_dict().items():
        assert torch.equal(value, before.state_dict()[key])
    # A fit without some of the classes keeps them; one with new ones is refused.
    some = np.flatnonzero(y < 2)
    assert classifier.fit(some, y[some], graph=graph).classes_.tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match=r"y has the class 3, .*: 0, 1, 2"):
        classifier.fit(x, y + 1, edges)
    with pytest.raises(ValueError, match="X has 7 features, but LGCNClassifier is expecting 8"):
        classifier.fit(x[:, :7], y, edges)
    with pytest.raises(UsageError, match=r"weights must .*model .*settings"):
        classifier.set_params(hidden_channels=9).fit(graph)
    cold = small(max_epochs=1, lr=0.0).fit(graph)
    assert cold.fit(x, y + 1, edges).classes_.tolist() == [1, 2, 3]


def test_what_the_graph_decided_stays_in_a_warm_start(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, _ = parts(graph)
    classifier = small(k=None, settings={"k": None}, warm_start=True, max_epochs=1).fit(graph)
    first = classifier.settings_
    assert first.model.k > 8
    second = classifier.fit(3 * x, y).settings_  # alone, k would be 8
    assert second.model.k == first.model.k
    assert second.model.input_scale == first.model.input_scale
    monkeypatch.setattr("lgcn.training.choose.MANY_LABELS", 2)
    assert classifier.fit(x, y).settings_.optimisation.views == 2
    assert small(max_epochs=1).fit(x, y).settings_.optimisation.views == 1


def test_a_deep_network_that_validation_chose_stays_in_a_warm_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(0)
    y = generator.integers(2, size=120)
    edges = generator.integers(120, size=(2, 1200))
    edges = edges[:, y[edges[0]] != y[edges[1]]]  # neighbours never agree
    deep = {"preset": "residual", "num_layers": 1, "hidden_channels": 8, "max_epochs": 30}
    monkeypatch.setattr("lgcn.training.portfolio.choice.DEEP", deep)
    monkeypatch.setattr("lgcn.estimator.base.DEEP", deep)
    x = np.zeros((120, 2)) + y[:, None] * [1.0, -1.0]

    def members(asked: Settings, whole: Graph) -> list[tuple[str, Settings]]:
        return [("deep", Settings.create(seed=asked.seed, dataset=asked.dataset, **deep))]

    for place in ("estimator.base", "training.portfolio.trainer"):
        monkeypatch.setattr(f"lgcn.{place}.label_members", members)
    classifier = LGCNClassifier(random_state=0, positions="none").fit(x, y, edges)
    assert classifier.settings_.model.name == "residual"
    classifier.set_params(warm_start=True, max_epochs=1, lr=0.0)
    for _ in range(2):
        before = classifier.model_.state_dict()
        after = classifier.fit(x, y, edges).model_.state_dict()
        assert torch.equal(before["classifier.weight"], after["classifier.weight"])


def test_what_is_learned(graph: Graph, fitted: LGCNClassifier) -> None:
    assert fitted.n_features_in_ == 8
    assert fitted.n_iter_ == 12
    assert fitted.result_["val_score"] > 0.5
    assert fitted.temperature_ == fitted.result_["temperature"]
    scores = predict(fitted.model_, graph)
    expected = torch.softmax(scores / fitted.temperature_, dim=1)
    np.testing.assert_allclose(fitted.predict_proba(), expected.numpy(), rtol=1e-6)
    x, y, edges = parts(graph)
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(8)])
    named = small(max_epochs=1).fit(frame, y, edges)
    assert named.feature_names_in_.tolist() == list(frame.columns)
    assert not hasattr(named.fit(graph), "feature_names_in_")
    with pytest.raises(ValueError, match="feature names should match"):
        small(max_epochs=1).fit(frame, y).predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be .*at least 1.* got 0"),
        ({"dropout": "much"}, "dropout must be a number .*got 'much'"),
        ({"activation": "tanh"}, "activation must be one of none, relu"),
        ({"training": "some"}, r"training must .*subgraph, whole, auto, got 'some'"),
        ({"random_state": -1}, "Seed must be between 0 and"),
    ],
)
def test_wrong_settings_are_named_by_fit(
    graph: Graph, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        small(**options).fit(graph)


def test_nodes_that_are_not_there(graph: Graph, fitted: LGCNClassifier) -> None:
    for nodes in ([200], [-1]):
        with pytest.raises(UsageError, match=r"X must hold node numbers from 0 to 199, got"):
            fitted.predict(nodes)
        with pytest.raises(UsageError, match=r"X must hold node numbers from 0 to 199, got"):
            small().fit(nodes, [1], graph=graph)
    with pytest.raises(UsageError, match="X must name each node once"):
        small().fit([1, 1], [0, 1], graph=graph)
    with pytest.raises(UsageError, match="edges must come with X"):
        fitted.predict(None, [[0], [1]])


def test_a_wrong_number_of_features(fitted: LGCNClassifier) -> None:
    message = "X has 3 features, but LGCNClassifier is expecting 8 features as input"
    with pytest.raises(ValueError, match=message):
        fitted.predict(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=message):
        fitted.predict(Graph.as_given(torch.empty(2, 0).long(), x=torch.zeros(4, 3)))


def test_scores_need_labels(graph: Graph, fitted: LGCNClassifier) -> None:
    with pytest.raises(UsageError, match="pass the true labels as y="):
        fitted.score()
    with pytest.raises(UsageError, match=r"has no labels \(y\); pass them as y="):
        fitted.score(replace(graph, y=None))
    with pytest.raises(UsageError, match=r"y has the class 9, .*: 0, 1, 2"):
        fitted.score([0, 1], [0, 9])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.score([0, 1], [0, 1, 2])
    y = graph.y.numpy()
    weighted = fitted.score(None, y, sample_weight=fitted.predict() == y)
    assert weighted == 1.0


def test_nothing_before_fit(tmp_path: Path) -> None:
    for method in ("predict", "predict_proba", "transform", "score", "predictions"):
        with pytest.raises(NotFittedError):
            getattr(LGCNClassifier(), method)([0])
    with pytest.raises(NotFittedError):
        LGCNClassifier().save(tmp_path)


def test_progress_is_shown_where_asked(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    small(max_epochs=2).fit(graph)
    assert capsys.readouterr() == ("", "")
    small(max_epochs=2, verbose=True).fit(graph)
    assert "epoch 2/2" in capsys.readouterr().err


# Features without edges, after a fit with edges: the fitted graph or an error, never a guess


FORMS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "copy": lambda x: x.copy(),
    "float64": lambda x: x.astype(np.float64),
    "list": lambda x: x.tolist(),
    "Fortran order": np.asfortranarray,
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "tensor": torch.from_numpy,
    "DataFrame": pd.DataFrame,
    "SciPy": scipy.sparse.coo_array,
    "sparse tensor": lambda x: torch.from_numpy(x).to_sparse_csr(),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_features_of_the_fit_mean_the_fitted_graph(
    graph: Graph, by_features: LGCNClassifier, form: str
) -> None:
    x, y, _ = parts(graph)
    same = FORMS[form](x)
    np.testing.assert_array_equal(by_features.predict(same), by_features.predict())
    np.testing.assert_array_equal(by_features.predict_proba(same), by_features.predict_proba())
    np.testing.assert_array_equal(by_features.transform(same), by_features.transform())
    assert by_features.score(same, y) == by_features.score(None, y)
    assert by_features.predictions(same).equals(by_features.predictions())


def test_so_do_those_of_a_graph_that_was_fitted(graph: Graph, fitted: LGCNClassifier) -> None:
    x, y, _ = parts(graph)
    np.testing.assert_array_equal(fitted.predict_proba(x), fitted.predict_proba())
    some = np.arange(0, 200, 2)
    by_numbers = small().fit(some, y[some], graph=graph)
    np.testing.assert_array_equal(by_numbers.predict_proba(x), by_numbers.predict_proba())


def test_sparse_features_are_recognised(graph: Graph) -> None:
    x, y, edges = parts(graph)
    sparse = scipy.sparse.csr_matrix(np.where(x > 0.5, x, 0))
    classifier = small(max_epochs=2).fit(sparse, y, edges)
    for same in (sparse, sparse.copy(), sparse.tocsc(), sparse.toarray()):
        np.testing.assert_array_equal(classifier.predict_proba(same), classifier.predict_proba())
    with pytest.raises(UsageError, match="edges must be given for X of 200 rows"):
        classifier.predict(2 * sparse)


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "transform", "predictions", "score"]
)
def test_other_features_without_edges_are_refused(
    graph: Graph, by_features: LGCNClassifier, method: str
) -> None:
    x, y, _ = parts(graph)
    call = getattr(by_features, method)
    labels = (y[:50],) if method == "score" else ()
    with pytest.raises(UsageError, match=r"edges .* X of 50 rows.* 2000 edges") as refused:
        call(x[:50], *labels)
    assert "edges=np.empty((2, 0), int)" in str(refused.value)
    assert "node numbers" in str(refused.value)
    assert "fitted'" not in str(refused.value)  # it has 200 rows
    labels = (y,) if method == "score" else ()
    with pytest.raises(UsageError, match="edges='fitted'"):
        call(x + 1, *labels)


def test_each_way_that_the_error_names(graph: Graph, by_features: LGCNClassifier) -> None:
    x, y, edges = parts(graph)
    changed = x.copy()
    changed[:, 0] = 0
    expected = by_features.predict_proba(changed, edges)
    found = by_features.predict_proba(changed, edges="fitted")
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, by_features.predict_proba())
    assert by_features.score(changed, y, edges="fitted") == by_features.score(
        changed, y, None, edges
    )
    np.testing.assert_array_equal(by_features.predict([3, 1]), by_features.predict()[[3, 1]])
    alone = by_features.predict_proba(x, edges=np.empty((2, 0), int))
    assert alone.shape == (200, 3)
    assert not np.array_equal(alone, by_features.predict_proba())
    assert by_features.predict(x[:5], edges=np.empty((2, 0), int)).shape == (5,)


def test_edges_of_the_fit_are_for_all_its_nodes(graph: Graph, by_features: LGCNClassifier) -> None:
    x, _, _ = parts(graph)
    np.testing.assert_array_equal(by_features.predict(edges="fitted"), by_features.predict())
    with pytest.raises(UsageError, match=r"\(200\) with edges='fitted', got 5"):
        by_features.predict(x[:5], edges="fitted")
    with pytest.raises(UsageError, match=r"edges must be None .*X is a graph"):
        by_features.predict(graph, edges="fitted")
    with pytest.raises(UsageError, match="edges must hold node numbers"):
        by_features.predict(x, edges="fited")
    with pytest.raises(UsageError, match="edges must hold node numbers"):
        small().fit(*parts(graph)[:2], edges="fitted")


def test_a_fit_without_edges_predicts_without_edges(graph: Graph) -> None:
    x, y, _ = parts(graph)
    alone = small(max_epochs=2).fit(x, y)
    assert not alone.has_edges_
    np.testing.assert_array_equal(alone.predict_proba(x), alone.predict_proba())
    assert alone.predict(x[:7] + 1).shape == (7,)


def test_a_pipeline_predicts_with_the_edges_of_its_fit(graph: Graph) -> None:
    x, y, edges = parts(graph)
    pipeline = make_pipeline(StandardScaler(), small())
    pipeline.fit(x, y, lgcnclassifier__edges=edges)
    np.testing.assert_array_equal(pipeline.predict(x), pipeline[-1].predict())
    assert pipeline.score(x, y) == pipeline[-1].score(None, y)
    with pytest.raises(UsageError, match="edges must be given for X of 9 rows"):
        pipeline.predict(x[:9])


def test_permutation_importance_says_what_it_needs(
    graph: Graph, by_features: LGCNClassifier
) -> None:
    x, y, edges = parts(graph)
    with pytest.raises(UsageError, match="edges='fitted'"):
        permutation_importance(by_features, x, y, n_repeats=1)
    options: dict[str, Any] = {"n_repeats": 2, "random_state": 0}
    found = permutation_importance(
        by_features, x, y, scoring=lambda m, X, y: m.score(X, y, edges="fitted"), **options
    )
    expected = permutation_importance(
        by_features, x, y, scoring=lambda m, X, y: m.score(X, y, edges=edges), **options
    )
    np.testing.assert_array_equal(found.importances, expected.importances)


def test_cora_is_predicted_by_its_features_as_by_its_graph(data_root: Path) -> None:
    graph = load_dataset("cora", root=data_root)
    assert graph.x is not None
    x, y = graph.x.to_dense().numpy(), graph.y.numpy()
    classifier = LGCNClassifier(max_epochs=2, random_state=0, verbose=False)
    classifier.fit(x, y, graph.edge_index.numpy())
    np.testing.assert_array_equal(classifier.predict(x), classifier.predict())
    assert classifier.score(x, y) == classifier.score(None, y)
