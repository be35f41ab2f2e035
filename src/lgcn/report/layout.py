"""Two-dimensional maps of embeddings: principal components, and t-SNE where it is cheap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lgcn.utils.choices import Unit

Array = np.ndarray[Any, Any]
TSNE_NODES = 5000  # of more, t-SNE takes longer than the rest of a report
TSNE_LEAST = 30
TSNE_DIMENSIONS = 50
TSNE_STEPS = 500
SEED = 0
GRID = 10_000  # coordinates are whole numbers from 0 to this


class Layout(NamedTuple):
    """Coordinates of nodes.

    Args:
        name: `"t-SNE"` or `"PCA"`.
        about: What the picture shows, in a sentence.
        points: Whole numbers from 0 to `GRID`, [nodes, 2].
    """

    name: str
    about: str
    points: Array


def layouts(embeddings: Array, unit: Unit = "node") -> list[Layout]:
    """The maps of the embeddings, the best first.

    Args:
        embeddings: One row per node, finite, [nodes, width].
        unit: What they are of: nodes or whole graphs. (default: `"node"`)
    """
    values = np.asarray(embeddings, dtype=np.float64)
    values = values - values.mean(axis=0, keepdims=True)
    # Rounding differs between machines by less than this; it must not become a picture.
    scale = np.abs(values).max(initial=0.0)
    if len(values) < 3 or not scale > 0:
        flat = np.zeros((len(values), 2))
        return [Layout("PCA", "All embeddings are equal, or there are too few.", _grid(flat))]
    values /= scale
    components, shares = principal(values)
    share = 100 * float(shares[:2].sum())
    about = f"The two directions in which embeddings differ most; they hold {share:.0f} % of it."
    found = [Layout("PCA", about, _grid(components[:, :2]))]
    if TSNE_LEAST <= len(values) <= TSNE_NODES:
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(values) - 1) / 3)
        method = TSNE(
            init=components[:, :2] / (components[:, 0].std() or 1.0) * 1e-4,
            perplexity=perplexity,
            max_iter=TSNE_STEPS,
            random_state=SEED,
            n_jobs=1,
        )
        points = method.fit_transform(components[:, :TSNE_DIMENSIONS].astype(np.float32))
        if np.isfinite(points).all():
            about = (
                f"t-SNE (scikit-learn, perplexity {perplexity:.0f}, seed {SEED}): near {unit}s "
                "have similar embeddings; distances between groups mean little."
            )
            found.insert(0, Layout("t-SNE", about, _grid(points)))
    return found


def principal(values: Array) -> tuple[Array, Array]:
    """The nodes in the directions of largest variance, and the share of each direction."""
    left, sizes, directions = np.linalg.svd(values, full_matrices=False)
    # The sign of a direction is arbitrary; the largest entry is made positive.
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    points = left * sizes * signs
    if points.shape[1] == 1:
        points = np.column_stack([points, np.zeros(len(points))])
    return points, sizes**2 / (sizes**2).sum()


def _grid(points: Array) -> Array:
    """The points as whole numbers, with one scale for both axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    middle = (low + high) / 2
    return np.asarray(np.rint((points - middle) / size * GRID + GRID / 2), dtype=np.int64)
