"""A scikit-learn estimator: fit, predict, predict_proba, transform, score."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.estimator import saved as estimator_files
from lgcn.estimator.inputs import (
    Array,
    as_features,
    as_graph,
    as_matrix,
    check_nodes,
    graph_of,
    node_numbers,
    nodes_of,
    same_features,
    which_edges,
    with_features,
)
from lgcn.estimator.targets import Targets, graph_targets, read_targets, split_masks
from lgcn.graph import Graph
from lgcn.inference import embed, predict
from lgcn.nn.lgcn import LGCN
from lgcn.training import Settings, train
from lgcn.training.calibration import probabilities
from lgcn.training.settings import flatten
from lgcn.utils.progress import epoch_progress

if TYPE_CHECKING:
    import pyarrow as pa

    from lgcn.tables.encoder import FeatureEncoder

# Constructor arguments that are not settings of the training.
OWN = ("settings", "validation_fraction", "random_state", "warm_start", "verbose")


class LGCNClassifier(  # type: ignore[call-arg]
    ClassifierMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    auto_wrap_output_keys=None,  # scikit-learn's wrapper does not allow X to be omitted
):
    r"""An LGCN that classifies the nodes of a graph, as a scikit-learn estimator.

    An argument that is `None` has the default for your own data, which `lgcn settings --dataset
    tables` shows. `lgcn.Settings` and `lgcn.LGCN` describe the settings.

    Args:
        k: Number of values that an LGCL selects per feature.
        hidden_channels: Width of the embedding.
        lgcl_channels: Number of features that each LGCL adds, unless `cnn` is `"shared"`.
        num_layers: Number of LGCLs.
        dropout: Dropout rate of the features of each layer.
        activation: `"none"`, `"relu"`, `"elu"` or `"gelu"`.
        lr: Learning rate.
        weight_decay: L2 factor.
        training: `"whole"`, `"subgraph"` or `"auto"`, which trains on the whole graph unless that
            would need much time or memory. (default: `"auto"`)
        max_nodes: Number of nodes of a sub-graph.
        max_epochs: Largest number of epochs.
        patience: Number of epochs without a better validation score before training stops.
        device: `"auto"`, `"cpu"` or `"cuda"`.
        settings: Further settings of `lgcn.Settings`, by name. (default: none)
        validation_fraction: Share of the labelled nodes that is held out to choose the best epoch
            and the temperature of the probabilities. It is ignored if the graph has a validation
            mask. With 0 the training nodes are used, and the probabilities are too confident.
            (default: 0.2)
        random_state: Seed of weights, dropout, sub-graphs and validation nodes. `None` draws one
            from NumPy's global generator. (default: `None`)
        warm_start: Start `fit` from the weights of the previous fit, with its classes.
            (default: `False`)
        verbose: Whether to show progress: a bar, or plain lines on standard error if there is no
            terminal. (default: in terminals and notebooks)

    Attributes:
        classes_: The classes; the numbers of the labels if a node can have several.
        label_names_: Their names, as strings; those of the graph if it has any.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if `X` was a table with column names.
        n_iter_: Number of epochs trained.
        graph_: The graph of the last fit; `None` in a loaded estimator.
        has_edges_: Whether that graph had edges.
        directed_: Whether an edge counts for its target only.
        encoder_: How the user's columns became features, for reading new tables the same way;
            `None` if the features were numbers.
        model_: The `lgcn.LGCN`, with its best weights.
        settings_: The settings of the training, with all automatic choices made.
        result_: What was measured: scores, best epoch, temperature, calibration errors.
        temperature_: Softmax temperature.
        multi_label_: Whether a node can have several labels.
    """

    classes_: Array
    directed_: bool
    encoder_: FeatureEncoder | None
    graph_: Graph | None
    has_edges_: bool
    model_: LGCN
    n_features_in_: int
    settings_: Settings
    temperature_: float

    def __init__(
        self,
        k: int | None = None,
        *,
        hidden_channels: int | None = None,
        lgcl_channels: int | None = None,
        num_layers: int | None = None,
        dropout: float | None = None,
        activation: str | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        training: str | None = None,
        max_nodes: int | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        device: str | None = None,
        settings: dict[str, Any] | None = None,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool | None = None,
    ) -> None:
        self.k = k
        self.hidden_channels = hidden_channels
        self.lgcl_channels = lgcl_channels
        self.num_layers = num_layers
        self.dropout = dropout
        self.activation = activation
        self.lr = lr
        self.weight_decay = weight_decay
        self.training = training
        self.max_nodes = max_nodes
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.settings = settings
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        graph: Any = None,
        *,
        directed: bool = False,
    ) -> LGCNClassifier:
        """Trains the network. Features and edges are not copied if their types allow it.

        Args:
            X: One of

                - a graph: `lgcn.Graph`, PyG's `Data`, or a NetworkX graph, whose node
                  attribute "y" is the label and whose other attributes are features
                  (`lgcn.from_networkx`),
                - features of **all** nodes, [nodes, features]: an array, a SciPy sparse matrix, a
                  tensor or a table of numbers,
                - numbers of the labelled nodes of `graph`, one-dimensional integers. Use this
                  form with `GridSearchCV`, which splits `X`.
            y: One label per row or number of `X`: integers, strings, booleans, or rows of zeros
                and ones if a node can have several labels. -1, NaN and `None` mark nodes without
                a label. (default: the labels of the graph, with its masks)
            edges: With features: PyG's `edge_index` of shape [2, edges]; a sparse
                [nodes, nodes] tensor, PyG's `adj_t`; or a SciPy sparse matrix, whose entry
                (i, j) is an edge from node i to node j. Values other than 1 are weights. Self-loops
                are left out and duplicates merged. (default: no edges, each node stands alone)
            graph: With node numbers: their graph. (default: `X` is the graph)
            directed: Whether only an edge's target aggregates from its source. It also holds for
                later edges and graphs, such as those of `predict`. An `lgcn.Graph`
                stays as it is. (default: `False`, every edge counts both ways)
        """
        warm = self.warm_start and hasattr(self, "model_")
        self.directed_ = directed
        seed = self._seed()
        chosen = self._chosen(seed, warm)
        whole, labels = self._read(X, y, edges, graph, warm)
        masks = split_masks(
            None if y is not None or graph is not None else whole,
            labels,
            self.validation_fraction,
            seed,
        )
        multi_label = labels.y.ndim == 2
        names = whole.label_names if multi_label else None
        if names is None or len(names) != len(labels.classes):
            names = tuple(str(label) for label in labels.classes.tolist())
        whole = replace(whole, y=torch.from_numpy(labels.y), label_names=names, **masks)
        chosen = chosen.resolve(whole)
        weights = self.model_.state_dict() if warm else None
        limits = chosen.optimisation
        with epoch_progress(
            limits.max_epochs, limits.patience, max_steps=limits.max_steps, show=self.verbose
        ) as progress:
            start = None if progress is None else progress.start
            result = train(whole, chosen, on_epoch=progress, on_start=start, weights=weights)
        self.classes_ = labels.classes
        self.multi_label_ = multi_label
        self.label_names_ = names
        self.encoder_ = whole.encoder
        self.graph_ = whole
        self.has_edges_ = whole.num_edges > 0
        self.settings_ = chosen
        assert isinstance(result.model, LGCN)
        self.model_ = result.model
        self.result_ = result.record
        self.temperature_ = result.record["temperature"]
        self.n_iter_ = result.record["epochs"]
        return self

    def predict(self, X: Any = None, edges: Any = None) -> Array:
        """The classes of nodes, or rows of zeros and ones if a node can have several labels.

        The features of the fit, or equal ones, stand for the fitted graph with its edges. Other
        features without `edges` are refused if the fitted graph had edges: nothing says which
        neighbours their nodes have. To change features of the fitted graph and keep its edges, as
        scikit-learn's `permutation_importance` does, pass
        `scoring=lambda model, X, y: model.score(X, y, edges="fitted")` to it.

        Args:
            X: Numbers of nodes of the fitted graph; or another graph, or its features, with as many
                features as the fitted one. (default: all nodes of the fitted graph)
            edges: With features: the edges of the other graph, see `fit`; an empty [2, 0]
                array if it has none; or `"fitted"`, the edges of the fitted graph for new
                features of all its nodes. (default: those of the fit for the features of the fit;
                none if the fit had none)
        """
        return self._classes_of(self.predict_proba(X, edges))

    def predict_proba(self, X: Any = None, edges: Any = None) -> Array:
        """The calibrated probabilities of the classes, in the order of `classes_`.

        Args:
            X, edges: See `predict`.
        """
        return self._chances(*self._other(X, edges))

    def transform(self, X: Any = None, edges: Any = None) -> Array:
        """The embeddings of nodes: what the classifier sees, see `lgcn.LGCN.embed`.

        Args:
            X, edges: See `predict`.
        """
        graph, nodes = self._other(X, edges)
        found: Array = _rows(embed(self.model_, graph), nodes).cpu().numpy()
        return found

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        graph: Any = None,
        *,
        directed: bool = False,
    ) -> Array:
        """`fit`, then the embeddings of the nodes in `X`."""
        self.fit(X, y, edges, graph, directed=directed)
        nodes = None if graph is None else node_numbers(X)
        return self.transform(nodes)

    def score(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, edges: Any = None
    ) -> float:
        """Accuracy; the exact-match ratio if a node can have several labels.

        Args:
            X, edges: See `predict`.
            y: The true labels; nodes without one (-1, NaN, `None`) do not count. (default: those
                of the graph; only of its test nodes if it has a test mask)
            sample_weight: One weight per node. (default: all one)
        """
        graph, nodes = self._other(X, edges)
        predicted = self._classes_of(self._chances(graph, nodes))
        if y is not None:
            labels = read_targets(y, self.classes_)
            check_consistent_length(predicted, labels.y)
        else:
            labels = self._test_targets(graph).take(nodes)
        known = labels.known
        if not known.any():
            raise UsageError("y must have labels to score, got none: pass the true labels as y=")
        truth = labels.y[known] if self.multi_label_ else self.classes_[labels.y[known]]
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(truth, predicted[known], sample_weight=weight))

    def predictions(
        self, X: Any = None, edges: Any = None, *, abstain_below: float | None = None
    ) -> pa.Table:
        """The predictions as an Arrow table, see `lgcn.inference.predictions.predictions`.

        Args:
            X, edges: See `predict`.
            abstain_below: Confidence below which nothing is predicted. (default: none)
        """
        from lgcn.inference.predictions import predictions

        graph, nodes = self._other(X, edges)
        ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
        return predictions(
            _rows(predict(self.model_, graph), nodes),
            self.label_names_ if self.multi_label_ else self.classes_.tolist(),
            multi_label=self.multi_label_,
            temperature=self.temperature_,
            node_ids=ids if nodes is None else ids[nodes.numpy()],
            abstain_below=abstain_below,
        )

    def save(self, folder: str | Path) -> None:
        """Writes the fitted estimator, without its graph, to a folder; replaces an earlier one.

        It is a run folder as `lgcn train` writes it, with one more file. It holds no pickles.
        """
        check_is_fitted(self)
        estimator_files.save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> LGCNClassifier:
        """The estimator that `save` or `lgcn train` wrote; every file is checked.

        Args:
            folder: The folder.
            device: Where to compute. (default: the `device` of the fit)
        """
        estimator: LGCNClassifier = estimator_files.load(cls, Path(folder), device)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.transformer_tags.preserves_dtype = []  # embeddings are float32
        return tags

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            check_random_state(self.random_state)  # refuses negative ones
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _chosen(self, seed: int, warm: bool) -> Settings:
        further = flatten(self.settings or {})
        for key, argument in (("seed", "random_state"), ("dataset", "X"), ("dataset_options", "X")):
            if key in further:
                raise UsageError(f"settings must not have {key}: pass it as {argument}")
        given = {key: getattr(self, key) for key in self.get_params() if key not in OWN}
        given = {key: value for key, value in given.items() if value is not None}
        for key, value in given.items():
            given[key] = value.item() if isinstance(value, np.generic) else value
        settings = {**further, **given, "dataset": "tables", "seed": seed}
        if warm:  # what depends on the first graph stays, or the weights would not fit
            before = self.settings_
            settings.setdefault("labels", "many" if before.labels == "many" else "few")
            for key in ("k", "input_scale"):
                if getattr(Settings.create(**settings).model, key) is None:
                    settings[key] = getattr(before.model, key)
        return Settings.create(**settings)

    def _read(self, X: Any, y: Any, edges: Any, graph: Any, warm: bool) -> tuple[Graph, Targets]:
        """The graph to train on, and the labels of all its nodes."""
        classes = self.classes_ if warm else None
        nodes = None
        if graph is None:
            whole = self._as_graph(X, edges, reset=not warm)
        else:
            whole, nodes = nodes_of(graph, X, edges, directed=self.directed_)
            self._check_width(whole, reset=not warm)
        if y is not None:
            labels = read_targets(y, classes)
            check_consistent_length(whole.rowptr[:-1] if nodes is None else nodes, labels.y)
        elif whole.y is not None:
            labels = graph_targets(whole, classes).take(nodes)
        else:
            raise UsageError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None: pass one label per node, -1 if it is unknown"
            )
        return whole, labels if nodes is None else labels.spread(nodes, whole.num_nodes)

    def _as_graph(self, X: Any, edges: Any, reset: bool) -> Graph:
        """X as a graph, or the graph that X and edges make."""
        graph = as_graph(X, None if reset else self.encoder_, directed=self.directed_)
        if graph is None:
            return graph_of(self._features(X, reset), edges, directed=self.directed_)
        if edges is not None:
            raise UsageError("edges must be None if X is a graph, which has its own edges")
        self._check_width(graph, reset)
        return graph

    def _features(self, X: Any, reset: bool) -> Tensor:
        """Features as a tensor, after scikit-learn's checks."""
        options = {"accept_sparse": "csr", "dtype": np.float32}
        return as_features(validate_data(self, as_matrix(X), reset=reset, **options))

    def _check_width(self, graph: Graph, reset: bool) -> None:
        if reset:
            self.n_features_in_ = graph.num_features
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif graph.num_features != self.n_features_in_:
            raise UsageError(
                f"X has {graph.num_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _chances(self, graph: Graph, nodes: Tensor | None) -> Array:
        scores = _rows(predict(self.model_, graph), nodes)
        chances: Array = probabilities(scores, self.multi_label_, self.temperature_).cpu().numpy()
        return chances

    def _classes_of(self, chances: Array) -> Array:
        if self.multi_label_:
            return (chances > 0.5).astype(np.int64)
        found: Array = self.classes_[chances.argmax(axis=1)]
        return found

    def _other(self, X: Any, edges: Any) -> tuple[Graph, Tensor | None]:
        """The graph to predict, and its nodes that are asked for."""
        check_is_fitted(self)
        of_fit = isinstance(edges, str) and edges == "fitted"
        if edges is not None and not of_fit:
            if X is None:
                raise UsageError("edges must come with X, the features of their nodes, got X=None")
            return self._as_graph(X, edges, reset=False), None
        numbers = None if X is None else node_numbers(X)
        if X is not None and numbers is None:
            return self._graph_of(X, edges), None
        if self.graph_ is None:
            raise UsageError(
                "X must be a graph, or features with edges: a loaded estimator has no graph"
            )
        if numbers is None:
            return self.graph_, None
        return self.graph_, check_nodes(numbers, self.graph_.num_nodes)

    def _graph_of(self, X: Any, edges: str | None) -> Graph:
        """X as a graph, or the graph that its features belong to."""
        graph = as_graph(X, self.encoder_, directed=self.directed_)
        if graph is not None:
            return self._as_graph(graph, edges, reset=False)
        x = self._features(X, reset=False)
        if edges is not None:
            return with_features(self.graph_, x)
        if not self.has_edges_:
            return graph_of(x, None)
        if self.graph_ is not None and same_features(self.graph_.features(), x):
            return self.graph_
        raise UsageError(which_edges(x.size(0), self.graph_))

    def _test_targets(self, graph: Graph) -> Targets:
        """The labels of a graph; only those of its test nodes if it has a test mask."""
        if self.graph_ is not None and graph.y is self.graph_.y:
            assert graph.y is not None
            assert graph.test_mask is not None
            return Targets(graph.y.numpy(), graph.test_mask.numpy(), self.classes_)
        labels = graph_targets(graph, self.classes_)
        if graph.test_mask is None:
            return labels
        return labels._replace(known=labels.known & graph.test_mask.numpy())


def _rows(values: Tensor, nodes: Tensor | None) -> Tensor:
    return values if nodes is None else values[nodes]
