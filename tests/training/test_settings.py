"""Settings: one way in for files, flags and keyword arguments, and every mistake named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn import LGCN, Graph
from lgcn.datasets.check import suggest_k
from lgcn.errors import UsageError
from lgcn.training import Config
from lgcn.training.settings import (
    EVALUATED_VALUES,
    MANY_LABELS,
    WHOLE_GRAPH_VALUES,
    merge_settings,
    parse_setting,
)
from lgcn.utils.choices import MODELS


def test_defaults_are_the_papers_numbers():
    paper = {
        "lr": 0.1,
        "weight_decay": 0.0005,
        "k": 8,
        "hidden_channels": 32,
        "lgcl_channels": 8,
        "num_layers": 2,
        "dropout": 0.84,
        "adj_dropout": 0.001,
        "max_epochs": 1000,
        "max_nodes": 2000,
        "optimizer": "adam",
    }
    config = Config.create(dataset="cora")
    assert {key: getattr(config, key) for key in paper} == paper
    assert config == Config(dataset="cora")


def test_unknown_key_suggests_a_close_one():
    with pytest.raises(UsageError, match=r"unknown setting 'droput'; did you mean 'dropout'\?"):
        Config.create(droput=0.5)


def test_unknown_key_lists_all_where_none_is_close():
    with pytest.raises(UsageError, match=r"unknown setting 'zzz'; known: dataset, .*max_epochs"):
        Config.create(zzz=1)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("k", "eight", "k must be a whole number or none, got 'eight'"),
        ("k", 8.0, "k must be a whole number or none, got 8.0"),
        ("k", True, "k must be a whole number or none, got True"),
        ("k", 0, "k must be at least 1, got 0"),
        ("num_layers", None, "num_layers must be a whole number, got None"),
        ("max_nodes", "many", "max_nodes must be a whole number or none, got 'many'"),
        ("lr", "fast", "lr must be a number, got 'fast'"),
        ("lr", float("nan"), "lr must be at least 0, got nan"),
        ("lr", -0.1, "lr must be at least 0, got -0.1"),
        ("dropout", 1, "dropout must be at least 0 and below 1, got 1"),
        ("seed", -1, "seed must be at least 0, got -1"),
        ("lr", 10**400, f"lr is too large, got 1{39 * '0'}"),
        ("k", 2**63, "k is too large, got 9223372036854775808"),
        ("rank", "sorted", "rank must be one of normalized, raw, got 'sorted'"),
        ("rank", ["raw"], "rank must be one of normalized, raw, got ['raw']"),
        ("self_loops", 1, "self_loops must be true or false, got 1"),
        ("device", 0, "device must be a text, got 0"),
        ("dataset_options", 3, "dataset_options must be a table of options, got 3"),
    ],
)
def test_wrong_value_is_named_with_its_key(key: str, value: Any, message: str):
    with pytest.raises(UsageError) as caught:
        Config.create(**{key: value})
    assert str(caught.value) == message


def test_more_start_nodes_than_nodes_are_refused():
    with pytest.raises(UsageError, match=r"n_init must be at most max_nodes \(10\), got 20"):
        Config.create(n_init=20, max_nodes=10)
    assert Config.create(n_init=20, max_nodes=None).n_init == 20


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"sampler": "walks", "start_nodes": "degree"},
            "start_nodes=degree goes with sampler=bfs alone, got sampler=walks",
        ),
        ({"sampler": "clusters", "max_nodes": None}, "sampler=clusters needs max_nodes, got none"),
        ({"memory": "much"}, "memory must be a size such as '2GB'"),
        ({"memory": 3}, "memory must be a text, got 3"),
        ({"max_steps": 0}, "max_steps must be at least 1, got 0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        Config.create(**given)


@pytest.mark.parametrize("key", ["k", "max_nodes", "n_init", "max_expand", "max_hops", "max_steps"])
@pytest.mark.parametrize("value", [None, "none", "None"])
def test_optional_keys_take_none(key: str, value: str | None):
    assert getattr(Config.create(**{key: value}), key) is None


@pytest.mark.parametrize("key", ["activation", "batch_norm", "classifier"])
def test_the_choice_none_can_be_set_by_flag(key: str):
    assert getattr(Config.create(**merge_settings([f"{key}=none"])), key) == "none"


def test_whole_numbers_serve_as_numbers():
    value = Config.create(lr=1).lr
    assert isinstance(value, float)
    assert value == 1.0


def test_file_flags_and_arguments_give_equal_settings(tmp_path: Path):
    given = {
        "dataset": "synthetic",
        "k": 4,
        "lr": 0.02,
        "self_loops": False,
        "max_nodes": None,
        "rank": "raw",
        "dataset_options": {"num_nodes": 200},
    }
    path = tmp_path / "a.toml"
    path.write_text(
        'dataset = "synthetic"\nk = 4\nlr = 0.02\nself_loops = false\nmax_nodes = "none"\n'
        'rank = "raw"\n[dataset_options]\nnum_nodes = 200\n'
    )
    flags = [
        "dataset=synthetic",
        "k=4",
        "lr=2e-2",
        "self_loops=false",
        "max_nodes=none",
        "rank=raw",
        "dataset_options.num_nodes=200",
    ]
    config = Config.create(**given)
    assert config.k == 4
    assert Config.create(**Config.from_toml(path)) == config
    assert Config.create(**merge_settings(flags)) == config


def test_a_config_survives_its_dictionary():
    config = Config.create(dataset="ppi", seed=3, max_hops=1)
    assert Config.create(**config.to_dict()) == config


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("cora", {"num_layers": 2, "k": 8}),
        ("citeseer", {"num_layers": 1, "k": 8}),
        ("pubmed", {"num_layers": 1, "k": 8}),
        ("ppi", {"num_layers": 2, "k": 64, "hidden_channels": 128}),
        ("ppi-rederived", {"k": 64, "hidden_channels": 128}),
    ],
)
def test_the_papers_settings_for_a_data_set(dataset: str, expected: dict[str, Any]):
    config = Config.create(dataset=dataset).to_dict()
    assert {key: config[key] for key in expected} == expected


def test_given_values_win_over_those_of_the_data_set():
    config = Config.create(dataset="ppi", k=7)
    assert (config.k, config.hidden_channels) == (7, 128)


def ring(num_nodes: int) -> Graph:
    nodes = torch.arange(num_nodes)
    return Graph.from_edge_index(torch.stack([nodes, nodes.roll(1)]))


def test_own_data_leave_training_and_scale_to_the_graph():
    config = Config.create(dataset="tables")
    assert (config.input_scale, config.training) == (None, "auto")
    resolved = config.resolve(ring(100))
    assert (resolved.input_scale, resolved.training) == (1.0, "whole")
    assert resolved == replace(config, input_scale=1.0, training="whole", evaluate_on="graph")
    assert resolved.resolve(ring(100)) is resolved


def test_k_is_chosen_by_the_degrees_where_none_is_given():
    assert Config.create(dataset="tables", k=None).resolve(ring(100)).k == suggest_k(ring(100))


def labelled(nodes_a_class: int) -> Graph:
    y = torch.arange(3).repeat(nodes_a_class + 10)
    return replace(
        ring(len(y)),
        x=torch.ones(len(y), 2),
        y=y,
        train_mask=torch.arange(len(y)) < 3 * nodes_a_class,
    )


def alike(graph: Graph) -> Graph:
    """The same with neighbours of one class."""
    assert graph.y is not None
    return replace(graph, y=graph.y.sort().values)


def test_many_labels_ask_for_other_settings_of_the_recipe():
    config = Config.create(dataset="tables")
    few = config.resolve(alike(labelled(MANY_LABELS - 1)))
    many = config.resolve(labelled(MANY_LABELS))
    assert (few.labels, few.views, few.cnn, few.layer_dropout) == ("auto", 2, "shared", 0.5)
    assert (many.labels, many.views, many.cnn, many.layer_dropout) == ("many", 1, "single", 0.0)
    given = Config.create(dataset="tables", labels="many").resolve(labelled(5))
    assert replace(many, input_scale=given.input_scale) == given
    forced = Config.create(dataset="tables", labels="few").resolve(labelled(MANY_LABELS))
    assert forced.views == 2
    assert many.resolve(labelled(5)) == many


def test_what_is_given_or_replaced_stays_where_labels_are_many():
    graph = labelled(MANY_LABELS)
    config = Config.create(dataset="tables", views=2, agreement=0.5).resolve(graph)
    assert (config.views, config.agreement, config.cnn) == (2, 0.5, "single")
    config = replace(Config.create(dataset="tables"), lr=0.3).resolve(graph)
    assert (config.lr, config.cnn) == (0.3, "single")


def test_the_papers_graphs_have_one_set_of_settings():
    config = Config.create(dataset="cora", evaluate_on="graph")
    assert config.resolve(labelled(MANY_LABELS)) is config


def test_neighbours_of_other_classes_ask_for_the_settings_for_many_labels():
    config = Config.create(dataset="tables")
    graph = labelled(20)  # a ring in which no neighbour is of the same class
    assert config.resolve(graph).labels == "many"
    assert config.resolve(replace(graph, y=torch.arange(len(graph.y)) // 30)).labels == "auto"
    assert config.resolve(labelled(3)).labels == "auto"  # too few edges to tell


def test_a_width_without_effect_is_said():
    config = Config.create(dataset="tables", lgcl_channels=16)
    with pytest.warns(UserWarning, match="lgcl_channels=16 has no effect with cnn=shared"):
        config.resolve(labelled(3))
    assert config.resolve(labelled(MANY_LABELS)).lgcl_channels == 16


def test_given_names_are_no_setting():
    config = Config.create(k=3)
    assert "given" not in config.to_dict()
    assert "given" not in [name for name, _ in Config.describe()]
    with pytest.raises(UsageError, match="unknown setting 'given'"):
        Config.create(given=["k"])


def test_features_are_scaled_to_length_one_where_no_factor_is_given():
    graph = replace(ring(4), x=torch.full((4, 4), 2.0))
    assert Config.create(dataset="cora").resolve(graph).input_scale == 1
    config = Config.create(input_scale=None)
    with pytest.raises(UsageError, match="input_scale must be a number to build a model"):
        config.model_options()
    assert config.resolve(graph).input_scale == pytest.approx(0.25)
    assert config.resolve(graph).model_options()["input_scale"] == pytest.approx(0.25)


@pytest.mark.parametrize("model", [name for name in MODELS if name != "lgcn"])
def test_other_models_need_a_layer(model: str):
    with pytest.raises(UsageError, match=f"num_layers must be at least 1 for model={model}, got 0"):
        Config.create(model=model, num_layers=0)
    assert Config.create(model="lgcn", num_layers=0).num_layers == 0


def test_what_is_given_stays():
    given = {"input_scale": 1.0, "training": "subgraph", "evaluate_on": "sampled"}
    config = Config.create(dataset="tables", **given)
    assert config.resolve(ring(100)) is config
    cora = Config.create(dataset="cora", evaluate_on="graph")
    assert cora.resolve(ring(100)) is cora


def test_the_whole_graph_is_taken_up_to_a_size():
    config = Config.create(training="auto", k=9)
    assert config.resolve(ring(WHOLE_GRAPH_VALUES // 10)).training == "whole"
    assert config.resolve(ring(WHOLE_GRAPH_VALUES // 10 + 1)).training == "subgraph"
    # Of separate graphs, which come one after the other, the largest counts.
    many = Graph.concat([ring(WHOLE_GRAPH_VALUES // 10) for _ in range(3)])
    assert config.resolve(many).training == "whole"


def test_large_graphs_are_evaluated_on_a_sample():
    config = Config.create(k=9)
    assert config.resolve(ring(EVALUATED_VALUES // 10)).evaluate_on == "graph"
    assert config.resolve(ring(EVALUATED_VALUES // 10 + 1)).evaluate_on == "sampled"


def test_a_model_needs_k():
    with pytest.raises(UsageError, match="k must be a number to build a model, got none"):
        Config.create(k=None).model_options()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k=16", ("k", 16)),
        (" lr = 1e-2 ", ("lr", 0.01)),
        ("resample=false", ("resample", False)),
        ("resample=True", ("resample", True)),
        ("n_init=None", ("n_init", None)),
        ("dataset=cora", ("dataset", "cora")),
        ('dataset="a b"', ("dataset", "a b")),
        ("dataset=a=b.npz", ("dataset", "a=b.npz")),
        ("dataset_options={seed = 1}", ("dataset_options", {"seed": 1})),
    ],
)
def test_parse_setting(text: str, expected: tuple[str, Any]):
    key, value = parse_setting(text)
    assert (key, value) == expected
    assert type(value) is type(expected[1])


@pytest.mark.parametrize("text", ["k", "=3", ""])
def test_a_setting_without_key_or_value_is_refused(text: str):
    with pytest.raises(UsageError, match="--set wants key=value, got"):
        parse_setting(text)


def test_later_settings_win_and_tables_grow():
    merged = merge_settings(["k=1", "dataset_options.a=1", "dataset_options.b=2", "k=2"])
    assert merged == {"k": 2, "dataset_options": {"a": 1, "b": 2}}


def test_a_number_is_no_table():
    with pytest.raises(UsageError, match=r"k\.x=2: k is 1, not a table"):
        merge_settings(["k=1", "k.x=2"])


def test_missing_config_file_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match=r"cannot read the config file .*no\.toml: No such file"):
        Config.from_toml(tmp_path / "no.toml")


@pytest.mark.parametrize("content", [b"k = \n", b"\xff\xfe"])
def test_broken_config_file_is_named(tmp_path: Path, content: bytes):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"broken\.toml is not valid TOML"):
        Config.from_toml(path)


def test_model_options_build_the_model():
    model = LGCN(
        5, 3, **Config.create(dataset="cora", hidden_channels=6, num_layers=3).model_options()
    )
    assert len(model.layers) == 3
    assert model(torch.rand(4, 5), torch.tensor([[0, 1], [1, 0]])).shape == (4, 3)
    assert sum(p.numel() for p in model.embedding.parameters()) == 5 * 6 + 6
