"""Messages of the library, in the words of the command line."""

import pytest

from lgcn.cli.words import flag_names, in_flags
from lgcn.errors import DataError

FLAGS = {
    "label_column": "--label-column",
    "unknown_nodes": "--unknown-nodes",
    "edges": "--edges",
    "nodes": "--nodes",
    "val": "--val",
    "test": "--test",
    "memory": "--memory",
    "delimiter": "--delimiter",
    "overwrite": "--overwrite",
}


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("leave them out by unknown_nodes='drop'", "leave them out by --unknown-nodes drop"),
        ("Give delimiter=';'", "Give --delimiter ';'"),
        ("a graph without edges, give edges=None", "a graph without edges, give --edges none"),
        ("Give another path, or overwrite=True", "Give another path, or --overwrite"),
        ("val + test must be below 1", "--val + --test must be below 1"),
        ("Give val and test", "Give --val and --test"),
        ("memory must be a size", "--memory must be a size"),
        ("too little memory. Raise memory", "too little memory. Raise --memory"),
        ("nodes: no such file", "--nodes: no such file"),
        ("edges= needs nodes= too", "--edges needs --nodes too"),
        ("give another val=, or val=0.2", "give another --val, or --val 0.2"),
        # What is the user's stays, and what is English.
        ("n.csv: label_column must be, got 'label_column'", "n.csv: --label-column must be, got"
         " 'label_column'"),
        ("/data/label_column.csv is empty", "/data/label_column.csv is empty"),
        ("the nodes and edges of a test", "the nodes and edges of a test"),
        ("my_label_column", "my_label_column"),
        ("split_column", "split_column"),
    ],
)  # fmt: skip
def test_arguments_become_flags(text: str, translated: str) -> None:
    with flag_names(**FLAGS):
        assert in_flags(text) == translated
    assert in_flags(text) == text


def test_errors_are_translated_once_they_leave_the_block() -> None:
    with pytest.raises(DataError, match="give --nodes"), flag_names(nodes="--nodes"):
        raise DataError("give nodes")


def test_a_setting_keeps_its_name_where_there_is_set() -> None:
    with flag_names(set_="--set", max_steps="--max-steps", max_rows="--max-rows"):
        assert in_flags("max_steps and max_rows") == "max_steps and --max-rows"


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("metric=roc_auc or class_weight=balanced", "--metric roc_auc or --class-weight balanced"),
        ("structural_features=yes makes some", "--structural-features makes some"),
        ("use structural_features=no", "use --no-structural-features"),
        ("train with positions=none", "train with --positions none"),
        ("threshold must be 0 to 1", "--threshold must be 0 to 1"),
        ("class_weight names the class 'a'", "--class-weight names the class 'a'"),
        ("time_limit=1s is too short", "--time-limit 1s is too short"),
        ("known: class_weight, metric, k", "known: class_weight, metric, k"),
        ("training=subgraph, k=3", "training=subgraph, k=3"),
        ("a metric that needs a threshold", "a metric that needs a threshold"),
    ],
)  # fmt: skip
def test_settings_with_flags_of_their_own_become_flags(text: str, translated: str) -> None:
    names = (
        "metric",
        "class_weight",
        "structural_features",
        "positions",
        "threshold",
        "time_limit",
    )
    flags = {name: "--" + name.replace("_", "-") for name in names}
    with flag_names(set_="--set", **flags):
        assert in_flags(text) == translated
