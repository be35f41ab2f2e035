"""Features without edges after a fit with edges: the fitted graph, or an error, never a guess."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lgcn import Graph, load_dataset
from lgcn.errors import CheckpointError, UsageError
from lgcn.estimator import LGCNClassifier
from lgcn.estimator.inputs import as_tensor, same_features

from .small import parts, small


@pytest.fixture(scope="module")
def by_features(graph: Graph) -> LGCNClassifier:
    """Fitted with features and edges apart."""
    return small().fit(*parts(graph))


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


@pytest.mark.parametrize("with_edges", [True, False])
def test_a_loaded_estimator_knows_whether_there_were_edges(
    graph: Graph, tmp_path: Path, with_edges: bool
) -> None:
    x, y, edges = parts(graph)
    classifier = small(max_epochs=2).fit(x, y, edges if with_edges else None)
    classifier.save(tmp_path)
    loaded = LGCNClassifier.load(tmp_path)
    assert loaded.has_edges_ is with_edges
    if with_edges:
        with pytest.raises(UsageError, match="edges must be given for X of 200 rows") as refused:
            loaded.predict(x)
        assert "node numbers" not in str(refused.value)  # it has no graph
        with pytest.raises(UsageError, match=r"edges='fitted' .* a loaded estimator"):
            loaded.predict(x, edges="fitted")
        np.testing.assert_array_equal(loaded.predict(x, edges), classifier.predict())
    else:
        np.testing.assert_array_equal(loaded.predict(x), classifier.predict())


def test_folders_that_do_not_say_had_edges(by_features: LGCNClassifier, tmp_path: Path) -> None:
    by_features.save(tmp_path)
    path = tmp_path / "estimator.json"
    record = json.loads(path.read_text())
    del record["has_edges"]
    path.write_text(json.dumps(record))
    assert LGCNClassifier.load(tmp_path).has_edges_
    path.write_text(json.dumps({**record, "has_edges": "no"}))
    with pytest.raises(CheckpointError, match="has_edges must be true or false, got 'no'"):
        LGCNClassifier.load(tmp_path)
    path.unlink()  # a folder of lgcn train
    assert LGCNClassifier.load(tmp_path).has_edges_


def test_which_features_are_the_same() -> None:
    dense = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    for one in (dense, dense.to_sparse_csr()):
        for other in (dense.clone(), dense.to_sparse_csr()):
            assert same_features(one, other)
            assert not same_features(one, 2 * other)
        assert not same_features(one, torch.ones(2, 3))
        assert not same_features(one, dense.t() * torch.tensor([1.0, 3.0]))


@pytest.mark.filterwarnings("error")
def test_read_only_arrays_are_shared_without_a_warning() -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    shared = as_tensor(array)
    assert shared.data_ptr() == array.ctypes.data
    assert not array.flags.writeable
    expected = array.tolist()
    del array
    assert shared.tolist() == expected
    for shape in ((0, 3), (3, 0)):
        empty = np.zeros(shape)
        empty.flags.writeable = False
        assert tuple(as_tensor(empty).shape) == shape


def test_cora_is_predicted_by_its_features_as_by_its_graph(data_root: Path) -> None:
    graph = load_dataset("cora", root=data_root)
    assert graph.x is not None
    x, y = graph.x.to_dense().numpy(), graph.y.numpy()
    classifier = LGCNClassifier(max_epochs=5, random_state=0, verbose=False)
    classifier.fit(x, y, graph.edge_index.numpy())
    np.testing.assert_array_equal(classifier.predict(x), classifier.predict())
    assert classifier.score(x, y) == classifier.score(None, y)
