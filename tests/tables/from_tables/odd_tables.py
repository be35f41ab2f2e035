"""What the property tests of damaged and odd tables share: settings and odd options."""

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st


def examples(usual: int) -> Any:
    return settings(
        max_examples=int(os.environ.get("LGCN_FUZZ_EXAMPLES", usual)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


ENCODINGS = st.sampled_from(["utf-8", "latin-1", "cp1252", "utf-16", "utf-32", "utf-7", "ascii"])
ENCODINGS |= st.sampled_from(["shift_jis", "idna", "rot13", "hex", "undefined", "unicode_escape"])
ENCODINGS |= st.sampled_from(["nonsense", "", "\0"])
COLUMN_NAMES = st.one_of(
    st.sampled_from(["id", "ID", "node", "source", "target", "src", "dst", "weight", "topic", "y"]),
    st.sampled_from(["", " ", "a", "A", "a ", "ü", '"', "\n", ",", "nan", "1", "x" * 300, "\0"]),
    st.text(max_size=4),
)


def rarely(draw: st.DrawFn) -> bool:
    return draw(st.integers(0, 15)) == 7  # ends of a range are drawn more often


@st.composite
def some_options(draw: st.DrawFn, node_names: list[str], edge_names: list[str]) -> dict[str, Any]:
    """Options of an import, a few of them odd."""
    column = st.sampled_from([*node_names, *node_names, "missing", ""])
    end = st.sampled_from([*edge_names, *edge_names, "missing"])
    several = st.lists(column, max_size=2)
    odd: dict[str, st.SearchStrategy[Any]] = {
        "label_column": st.one_of(column, several),
        "id_column": column,
        "weight_column": end,
        "source_column": end,
        "target_column": end,
        "split_column": column,
        "labels_per_class": st.integers(-1, 3),
        "val": st.sampled_from([0, 0.0, 0.5, 1, -1, float("nan"), float("inf"), "0.2"]),
        "test": st.sampled_from([0, 0.1, 0.5, 1, 2]),
        "split_seed": st.sampled_from([1, -1, 2**70, 0.5]),
        "label_separator": st.sampled_from([";", ",", "", " ", "\0"]),
        "numeric_columns": several,
        "categorical_columns": column,
        "text_columns": several,
        "ignore_columns": several,
        "unknown_nodes": st.sampled_from(["error", "nonsense"]),
        "delimiter": st.sampled_from([",", ";", "\t", "\\t", "|", " ", "", "ab", "ü", "\0", "\n"]),
        "encoding": ENCODINGS,
        "directed": st.just(True),
    }
    label = [name for name in ("topic", "topic", "topic", "c1", "c2") if name in node_names]
    options: dict[str, Any] = {"unknown_nodes": "drop"}
    if label and not rarely(draw):
        options["label_column"] = draw(st.sampled_from(label))
    number = draw(st.sampled_from([0, 0, 1, 1, 2, 3]))
    chosen = draw(st.lists(st.sampled_from(list(odd)), min_size=number, max_size=number))
    return options | {name: draw(odd[name]) for name in chosen}
