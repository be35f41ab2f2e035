"""DeepWalk: skip-gram embeddings of random walks, and a logistic regression on them."""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import SPLITS, Graph
from lgcn.paper.baselines.random_walks import walk_passes
from lgcn.training.metric_names import default_metric
from lgcn.training.metrics import label_accuracy, score

# Candidates for C, the inverse of the regularisation. The validation score decides.
INVERSE_REGULARISATION = (0.01, 0.1, 1.0, 10.0, 100.0)
LONGEST_WALK = 10_000  # gensim ignores the rest of longer sentences


def train_deepwalk(
    graph: Graph,
    *,
    seed: int = 0,
    max_epochs: int | None = None,
    walks_per_node: int = 80,
    length: int = 40,
    window: int = 10,
    dimensions: int = 128,
    workers: int = 1,
) -> dict[str, Any]:
    r"""Trains and scores ["DeepWalk: Online Learning of Social
    Representations"](https://arxiv.org/abs/1403.6652), which uses the edges of a graph and no
    features.

    Embeddings of all nodes are learned without labels (`deepwalk_embeddings`). One logistic
    regression per class or label is then fitted on the embeddings of the training nodes. Its
    regularisation is chosen by the score of the validation nodes.

    Args:
        graph: The graph, with classes or labels and with training and validation nodes.
        seed: Seed of the walks and embeddings. (default: 0)
        max_epochs: Maximum walks per node, for a quick run. In an epoch, each node starts one walk.
             (default: ``walks_per_node``)
        walks_per_node, length, window, dimensions, workers: See `deepwalk_embeddings`.

    Returns:
        The record of the run. No epoch is selected, so the released program's rule gives the same
        scores. ``parameters`` are those of the embeddings and of the regression.
    """
    _check(graph)
    if max_epochs is not None and max_epochs < 1:
        raise ValueError(f"max_epochs must be at least 1, got {max_epochs}")
    epochs = walks_per_node if max_epochs is None else min(walks_per_node, max_epochs)
    began = time.perf_counter()
    embeddings = deepwalk_embeddings(
        graph,
        seed=seed,
        walks_per_node=epochs,
        length=length,
        window=window,
        dimensions=dimensions,
        workers=workers,
    )
    val_score, inverse, classifier = _best_classifier(graph, embeddings)
    seconds = time.perf_counter() - began
    record = {
        "metric": default_metric(graph.task),
        "seed": seed,
        "val_score": val_score,
        "test_score": None,
        "best_epoch": epochs,
        "epochs": epochs,
        "seconds": seconds,
        "parameters": embeddings.size + graph.num_classes * (dimensions + 1),
        "inverse_regularisation": inverse,
    }
    if graph.multi_label:
        record["test_label_accuracy"] = None
    if graph.test_mask is not None and bool(graph.test_mask.any()):
        test, y = _rows(graph, embeddings, graph.test_mask)
        predicted = _predict(classifier, test, graph)
        record["test_score"] = score(predicted, y)
        if graph.multi_label:
            record["test_label_accuracy"] = label_accuracy(predicted, y)
    record["test_score_released_rule"] = record["test_score"]
    return record


def deepwalk_embeddings(
    graph: Graph,
    *,
    seed: int = 0,
    walks_per_node: int = 80,
    length: int = 40,
    window: int = 10,
    dimensions: int = 128,
    workers: int = 1,
) -> Any:
    r"""The embeddings of ["DeepWalk: Online Learning of Social
    Representations"](https://arxiv.org/abs/1403.6652): random walks are the sentences for
    gensim's skip-gram with hierarchical softmax, which reads them once. Needs
    ``pip install "lgcn[deepwalk]"``.

    The defaults are the paper's. A node without neighbours keeps its random initial vector. Only
    one walk per node is in memory at a time. All walks are generated twice: first to count how
    often each node is visited, which the softmax needs, then for learning.

    Args:
        graph: The graph.
        seed: Seed of the walks and initial vectors. (default: 0)
        walks_per_node: Walks per node, $\gamma$. (default: 80)
        length: Nodes per walk, $t$. (default: 40)
        window: Nodes on either side that a node predicts, $w$. (default: 10)
        dimensions: Width of the embeddings, $d$. (default: 128)
        workers: Threads of gensim. With one, equal seeds give equal embeddings. (default: 1)

    Shapes:
        - **output:** embeddings, float32, $(\mathrm{nodes}, d)$
    """
    if length > LONGEST_WALK:
        raise ValueError(f"length must be at most {LONGEST_WALK}, got {length}")
    for name, value in (("window", window), ("dimensions", dimensions), ("workers", workers)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise UsageError(
            'DeepWalk needs gensim, which is not installed: pip install "lgcn[deepwalk]"'
        ) from error
    visits = np.zeros(graph.num_nodes, np.int64)
    for walks in walk_passes(graph, walks_per_node, length, seed):
        visits += np.bincount(walks[walks >= 0], minlength=graph.num_nodes)
    model = Word2Vec(
        vector_size=dimensions,
        window=window,
        sg=1,
        hs=1,
        negative=0,
        min_count=0,
        sample=0,
        workers=workers,
        seed=seed % 2**32,
    )
    model.build_vocab_from_freq(dict(enumerate(visits.tolist())))
    model.train(
        _sentences(graph, walks_per_node, length, seed),
        total_examples=graph.num_nodes * walks_per_node,
        epochs=1,
    )
    order = [model.wv.key_to_index[node] for node in range(graph.num_nodes)]
    return model.wv.vectors[order]


def _sentences(graph: Graph, walks_per_node: int, length: int, seed: int) -> Iterator[list[int]]:
    """The walks as lists. gensim skips the -1 after the end of a walk, which is no known word."""
    for walks in walk_passes(graph, walks_per_node, length, seed):
        yield from walks.tolist()


def _check(graph: Graph) -> None:
    """Raises UsageError if labels or a split are missing. Features are not needed."""
    if graph.y is None:
        raise UsageError(f"{graph.name} has no labels (y) to learn from")
    for split in SPLITS:
        mask = graph.mask(split)
        if mask is None or not bool(mask.any()):
            if split != "test":
                raise UsageError(f"{graph.name} has no {split} nodes: {split}_mask is empty")
        elif not graph.multi_label and bool((graph.y[mask] < 0).any()):
            raise UsageError(f"{split}_mask of {graph.name} has nodes without a label (y < 0)")


def _best_classifier(graph: Graph, embeddings: Any) -> tuple[float, float, Any]:
    """Validation score, C and the fitted classifier; at ties the strongest regularisation."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    train, y_train = _rows(graph, embeddings, graph.train_mask)
    val, y_val = _rows(graph, embeddings, graph.val_mask)
    best: tuple[float, float, Any] = (-1.0, 0.0, None)
    for inverse in INVERSE_REGULARISATION:
        classifier = OneVsRestClassifier(LogisticRegression(C=inverse, solver="liblinear"))
        with warnings.catch_warnings():
            # If all or none of the training nodes have a label, that is predicted for all nodes.
            warnings.filterwarnings("ignore", "Label .* is present in all", UserWarning)
            classifier.fit(train, y_train.numpy())
        val_score = score(_predict(classifier, val, graph), y_val)
        if val_score > best[0]:
            best = (val_score, inverse, classifier)
    return best


def _rows(graph: Graph, embeddings: Any, mask: Tensor | None) -> tuple[Any, Tensor]:
    """Embeddings and labels of the nodes of a split."""
    assert graph.y is not None
    assert mask is not None
    return embeddings[mask.cpu().numpy()], graph.y[mask].cpu()


def _predict(classifier: Any, embeddings: Any, graph: Graph) -> Tensor:
    """Scores as metrics.score() takes them: positive for predicted labels, one-hot for classes."""
    if graph.multi_label:
        return torch.from_numpy(classifier.decision_function(embeddings))
    return F.one_hot(torch.from_numpy(classifier.predict(embeddings)), graph.num_classes)
