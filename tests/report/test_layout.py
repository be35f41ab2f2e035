"""Maps of embeddings."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from lgcn.report.layout import GRID, layouts


def groups(size: int = 120) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 8)) * 6
    return centres[np.arange(size) % 3] + rng.normal(size=(size, 8))


def test_pca_is_scikit_learns_up_to_scale_and_sign() -> None:
    values = groups()
    found = layouts(values)[-1]
    assert found.name == "PCA"
    expected = PCA(2).fit_transform(values)
    ours = found.points - found.points.mean(axis=0)
    for axis in range(2):
        assert abs(np.corrcoef(ours[:, axis], expected[:, axis])[0, 1]) > 0.9999
    ratio = ours.std(axis=0) / expected.std(axis=0)
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-3)  # one scale for both axes
    assert found.points.min() >= 0
    assert found.points.max() <= GRID


def test_neighbours_in_the_embedding_are_neighbours_on_the_map() -> None:
    best = layouts(groups())[0]
    assert best.name == "t-SNE"
    near = NearestNeighbors(n_neighbors=5).fit(best.points).kneighbors(return_distance=False)
    assert (near % 3 == (np.arange(120) % 3)[:, None]).mean() > 0.95


def test_the_same_embeddings_give_the_same_map() -> None:
    first, second = layouts(groups()), layouts(groups())
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a.points, b.points)


@pytest.mark.parametrize("values", [np.ones((50, 4)), np.zeros((2, 3)), np.ones((1, 1))])
def test_equal_or_few_embeddings_are_no_failure(values: np.ndarray) -> None:
    [found] = layouts(values)
    assert found.points.shape == (len(values), 2)


def test_embeddings_of_one_dimension_lie_on_a_line() -> None:
    found = layouts(np.arange(20.0).reshape(-1, 1))[-1]
    assert len(np.unique(found.points[:, 0])) == 20
    assert len(np.unique(found.points[:, 1])) == 1
