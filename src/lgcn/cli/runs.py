"""A trained run and the graph that it is used on, for the commands that take one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from lgcn.cli.tables import both_tables
from lgcn.errors import DataError, UsageError

Labels = Literal["needed", "if there", "not read"]
# What options of a run say of its training alone.
_OF_TRAINING = ("split_column", "labels_per_class", "val", "test", "split_seed")


def one_source(dataset: str | None, graph: Path | None, tables: bool) -> None:
    """There is one graph to work on."""
    given = {"--dataset": dataset is not None, "--graph": graph is not None}
    given["your own --edges and --nodes"] = tables
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"give one of {' and '.join(named)}, not both")


class TrainedRun:
    """A finished run and the graph to use it on; all that can be checked without torch is.

    Args:
        run: Its folder.
        dataset, root, store, tables: The graph, where it is not the one of the training; ``tables``
            are the flags of tables that were given.
        labels: What new tables must have.

    Attributes:
        folder: The run's folder.
        spec: What the model was built for.
    """

    def __init__(
        self,
        run: Path,
        dataset: str | None,
        root: Path | None,
        store: Path | None,
        tables: dict[str, Any],
        *,
        labels: Labels,
    ) -> None:
        from lgcn.datasets import DATASETS, check_dataset
        from lgcn.store.format import is_store
        from lgcn.training import Run

        self.folder, self._root = Run(run), root
        config, self.spec = self.folder.read_finished()
        new_tables = "edges" in tables or "nodes" in tables
        one_source(dataset, store, new_tables)
        self._name = dataset or config.dataset
        self._options = dict(config.dataset_options) if self._name == config.dataset else {}
        if store is None and self._name not in DATASETS and is_store(self._name):
            store = Path(self._name)
        if store is not None:
            self._name, self._options = "store", {"path": str(store.absolute())}
        if new_tables:
            tables = both_tables(tables)
            if self._name != "tables":  # the options of a store say nothing of tables
                self._name, self._options = "tables", {}
        if self._name == "tables":
            self._options = self._of_tables(self._options | tables, labels if new_tables else None)
        elif tables:
            flag = "--" + next(iter(tables)).replace("_", "-")
            raise UsageError(f"{flag} is for tables, and needs --edges and --nodes")
        try:
            check_dataset(self._name, root, **self._options)
        except (DataError, UsageError) as error:
            own = dataset is None and store is None and not new_tables
            if own and moved_from(self._name, self._options) is not None:
                flags = {"tables": "--edges and --nodes", "store": "--graph"}
                flag = flags.get(self._name, "--dataset")
                error.args = (f"{error}. {run} was trained on it; if it has moved, give {flag}",)
            raise
        self._all_scored = new_tables and labels == "needed"

    def model(self) -> Any:
        """The trained model."""
        return self.folder.load_model()[0]

    def graph(self) -> Any:
        """The graph, which fits the model."""
        from lgcn.datasets import load_dataset

        options = self._options
        if self._name == "tables":
            options = options | {
                "encoder": self.folder.encoder(),
                "label_names": self.spec.label_names,
            }
        graph = load_dataset(self._name, self._root, **options)
        self.spec.check(graph)
        if self._all_scored:
            known = ~graph.unlabelled()
            graph = replace(graph, train_mask=None, val_mask=None, test_mask=known, _derived={})
        self._ids = graph.node_ids
        return graph

    def node_ids(self) -> Callable[[int, int], Any] | None:
        """Gives the ids of a range of nodes: from the store, or of the graph in memory."""
        ids, store = self._ids, self._options.get("path")
        if store is not None:
            from lgcn.store.open_store import open_store

            return open_store(store, verify=False).node_ids  # it was verified when it was loaded
        return None if ids is None else lambda start, stop: ids[start:stop]

    def _of_tables(self, options: dict[str, Any], labels: Labels | None) -> dict[str, Any]:
        """The options of tables for a trained model; ``labels`` is of tables new to it."""
        from lgcn.tables.early_checks import OF_FEATURES

        if not self.folder.has_encoder:
            raise UsageError(
                f"{self.folder.folder} was not trained on tables, so it cannot read any. Give a "
                "graph with the same features: a data set or an .npz file by --dataset, or a store "
                "by --graph"
            )
        if "nodes" not in options:
            raise UsageError(
                f"{self.folder.folder} does not name its tables; give --edges and --nodes"
            )
        dropped = list(OF_FEATURES)  # the encoder knows
        if labels is not None:
            dropped += _OF_TRAINING
        if labels == "if there" and not _has_labels(options):
            labels = "not read"
        if labels == "not read":
            dropped += ["label_column", "label_separator"]
        return {key: value for key, value in options.items() if key not in dropped}


def moved_from(name: str, options: Mapping[str, Any]) -> Path | None:
    """Where a graph was that is not there any more."""
    named = {
        "tables": [options.get("nodes"), options.get("edges")],
        "store": [options.get("path")],
    }.get(name, [name] if name.endswith(".npz") else [])
    return next((Path(path) for path in named if path and not Path(path).exists()), None)


def _has_labels(options: dict[str, Any]) -> bool:
    """Whether the node table has the label columns."""
    from lgcn.tables.open_table import open_table

    format_ = {key: options[key] for key in ("delimiter", "encoding") if key in options}
    columns = open_table(options["nodes"], "nodes", **format_).columns
    wanted = options.get("label_column", [])
    return set([wanted] if isinstance(wanted, str) else wanted) <= set(columns)
