"""Scikit-learn's handwritten digits as a graph: real data without a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lgcn.graph.splits import random_split
from lgcn.utils.numbers import whole_number

if TYPE_CHECKING:
    from lgcn.graph import Graph

NUM_IMAGES = 1797


def load_digits(
    *,
    n_neighbors: int = 10,
    labels_per_class: int = 20,
    num_val: int = 500,
    split_seed: int = 0,
) -> Graph:
    """1797 images of 8 x 8 pixels, each joined with the images nearest to it.

    Args:
        n_neighbors: Two images are joined if either is among the other's `n_neighbors` nearest
            ones by Euclidean distance. (default: 10)
        labels_per_class, num_val, split_seed: See `lgcn.graph.splits.random_split`.
    """
    n_neighbors = whole_number("n_neighbors", n_neighbors, 1, NUM_IMAGES - 1)
    # These take seconds to import.
    import torch
    from sklearn import datasets, neighbors

    from lgcn.graph import Graph

    images, classes = datasets.load_digits(return_X_y=True)
    images = images / 16  # pixels are 0 to 16
    nearest = neighbors.kneighbors_graph(images, n_neighbors, include_self=False).tocoo()
    y = torch.from_numpy(classes.astype(np.int64))
    train_mask, val_mask, test_mask = random_split(y, labels_per_class, num_val, split_seed)
    return Graph.from_edge_index(
        torch.from_numpy(np.stack([nearest.row, nearest.col]).astype(np.int64)),
        x=torch.from_numpy(images.astype(np.float32)),
        y=y,
        train_mask=train_mask,
        val_mask=val_mask,
        test_mask=test_mask,
        name="digits",
    )
