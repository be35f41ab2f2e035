import pytest
import torch

from lgcn.datasets import dataset_files, load_dataset
from lgcn.errors import UsageError


def test_digits() -> None:
    graph = load_dataset("digits")
    assert (graph.name, graph.num_nodes, graph.num_features, graph.num_classes) == (
        "digits", 1797, 64, 10,
    )  # fmt: skip
    counts = [int(graph.mask(split).sum()) for split in ("train", "val", "test")]  # type: ignore[union-attr]
    assert counts == [200, 500, 1097]
    assert graph.x is not None
    assert graph.x.min() == 0
    assert graph.x.max() == 1
    assert dataset_files("digits") == []


def test_neighbours_are_the_nearest_both_ways() -> None:
    graph = load_dataset("digits", n_neighbors=3)
    source, target = graph.edge_index
    adjacent = torch.zeros(1797, 1797, dtype=torch.bool)
    adjacent[target, source] = True
    assert torch.equal(adjacent, adjacent.T)
    assert not adjacent.diagonal().any()
    assert graph.x is not None
    distance = torch.cdist(graph.x.double(), graph.x.double())
    distance.fill_diagonal_(torch.inf)
    third = distance.kthvalue(3, dim=1).values
    # Nearer than the third nearest of either end: joined. Farther than that of both: not joined.
    nearest = distance < torch.maximum(third[:, None], third[None]) - 1e-9
    farther = distance > torch.maximum(third[:, None], third[None]) + 1e-9
    assert adjacent[nearest].all()
    assert not adjacent[farther].any()


def test_options() -> None:
    graph = load_dataset("digits", n_neighbors=2, labels_per_class=5, num_val=10, split_seed=3)
    counts = [int(graph.mask(split).sum()) for split in ("train", "val", "test")]  # type: ignore[union-attr]
    assert counts == [50, 10, 1737]
    for n_neighbors in (0, 1797, "x"):
        with pytest.raises(UsageError, match="n_neighbors"):
            load_dataset("digits", n_neighbors=n_neighbors)
