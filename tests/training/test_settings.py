"""Settings: one way in for files, flags and keyword arguments, and every mistake named."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn import LGCN, Graph
from lgcn.errors import UsageError
from lgcn.graph.statistics import suggest_k
from lgcn.training import Settings
from lgcn.training.choose import EVALUATED_VALUES, MANY_LABELS, WHOLE_GRAPH_VALUES
from lgcn.training.settings import GROUPS, TOP, flat_names, flatten, merge_settings, parse_setting


def flat(**given: Any) -> dict[str, Any]:
    return Settings.create(**given).flat()


def test_every_flat_name_is_of_one_group():
    fields = [name for group in GROUPS for name in type(getattr(Settings(), group)).model_fields]
    names = [*TOP, *("model" if name == "name" else name for name in fields)]
    assert len(set(names)) == len(names)
    assert names == [*TOP, *flat_names()] == list(flat())


def test_the_papers_numbers_on_cora():
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
    settings = flat(dataset="cora")
    assert {key: settings[key] for key in paper} == paper


def test_the_defaults_are_those_for_own_tables_with_few_labels():
    assert Settings() == Settings.create()
    assert Settings().replace(dataset="tables") == Settings.create(dataset="tables")
    few = Settings.create(dataset="tables", labels="few")
    assert (few.optimisation.lr, few.model.hidden_channels, few.model.cnn) == (0.02, 128, "shared")


def test_grouped_and_flat_names_are_the_same_settings():
    grouped = Settings.create(
        dataset="cora", model={"name": "lgcn", "k": 3}, optimisation={"lr": 0.3}, sampling={}
    )
    assert grouped == Settings.create(dataset="cora", model="lgcn", k=3, lr=0.3)
    assert grouped == Settings.create(**grouped.to_dict()) == Settings.create(**grouped.flat())
    assert grouped.given == {"dataset", "model", "k", "lr"}
    assert (grouped.model.k, grouped.optimisation.lr) == (3, 0.3)


def test_a_group_knows_its_own_settings_alone():
    with pytest.raises(
        UsageError, match=r"unknown setting 'optimisation\.k'; known: optimizer, lr"
    ):
        Settings.create(optimisation={"k": 3})
    with pytest.raises(UsageError, match="unknown setting 'lrr'; did you mean 'lr'"):
        Settings.create(model={"lrr": 3})
    with pytest.raises(UsageError, match=r"sampling is a group .* got 3"):
        Settings.create(sampling=3)
    with pytest.raises(UsageError, match="'k' is given twice"):
        Settings.create(k=3, model={"k": 4})


def test_settings_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Settings().model.k = 3
    with pytest.raises(ValueError, match="frozen"):
        Settings().seed = 3


def test_unknown_key_suggests_a_close_one():
    with pytest.raises(UsageError, match=r"unknown setting 'droput'; did you mean 'dropout'\?"):
        Settings.create(droput=0.5)


def test_a_setting_of_another_model_names_that_model():
    with pytest.raises(UsageError, match=r"'recompute'; it is one of model=residual"):
        Settings.create(recompute=True)
    with pytest.raises(UsageError, match=r"'hops' of model=residual; it is one of model=lgcn"):
        Settings.create(model="residual", hops=3)


def test_unknown_key_lists_all_where_none_is_close():
    with pytest.raises(UsageError, match=r"unknown setting 'zzz'; known: dataset, .*max_epochs"):
        Settings.create(zzz=1)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("k", "eight", "1, or none, got 'eight'"),
        ("k", 8.0, "1, or none, got 8.0"),
        ("k", True, "1, or none, got True"),
        ("k", 0, "1, or none, got 0"),
        ("num_layers", None, "0 to 1000, got None"),
        ("max_nodes", "many", "1, or none, got 'many'"),
        ("lr", "fast", "0, got 'fast'"),
        ("lr", True, "0, got True"),
        ("lr", float("nan"), "0, got nan"),
        ("lr", float("inf"), "0, got inf"),
        ("lr", -0.1, "0, got -0.1"),
        ("dropout", 1, "below 1, got 1"),
        ("seed", -1, "0, got -1"),
        ("lr", 10**400, "hundreds of digits"),
        ("k", 2**63, "got 9223372036854775808"),
        ("rank", "sorted", "normalized, raw, got 'sorted'"),
        ("rank", ["raw"], "normalized, raw, got ['raw']"),
        ("fanout", [0], "1, got [0]"),
        ("self_loops", 1, "true or false, got 1"),
        ("device", 0, "string, got 0"),
        ("labels", "some", "auto, few, many, got 'some'"),
        ("dataset_options", 3, "got 3"),
    ],
)
def test_wrong_value_is_named_with_its_key(key: str, value: Any, message: str):
    with pytest.raises(UsageError, match=rf"^{key} .*\b{re.escape(message)}$"):
        Settings.create(**{key: value})


def test_more_start_nodes_than_nodes_are_refused():
    with pytest.raises(UsageError, match=r"n_init must .*max_nodes \(10\), got 20"):
        Settings.create(n_init=20, max_nodes=10)
    assert Settings.create(n_init=20, max_nodes=None).sampling.n_init == 20


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"sampler": "walks", "start_nodes": "degree"},
            "start_nodes=degree needs sampler=bfs, got sampler=walks",
        ),
        ({"sampler": "clusters", "max_nodes": None}, "sampler=clusters needs max_nodes, got none"),
        ({"memory": "much"}, "memory must be a size such as '2GB'"),
        ({"memory": 3}, "memory must be a string, got 3"),
        ({"max_steps": 0}, r"max_steps must .*1, or none, got 0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        Settings.create(**given)


@pytest.mark.parametrize("key", ["k", "max_nodes", "n_init", "max_expand", "max_hops", "max_steps"])
@pytest.mark.parametrize("value", [None, "none", "None"])
def test_optional_keys_take_none(key: str, value: str | None):
    assert flat(**{key: value})[key] is None


@pytest.mark.parametrize("key", ["activation", "batch_norm", "classifier"])
def test_the_choice_none_can_be_set_by_flag(key: str):
    assert flat(**merge_settings([f"{key}=none"]))[key] == "none"


def test_whole_numbers_serve_as_numbers():
    value = Settings.create(lr=1).optimisation.lr
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
    grouped = tmp_path / "b.toml"
    grouped.write_text(
        'dataset = "synthetic"\n[model]\nk = 4\nself_loops = false\nrank = "raw"\n'
        '[optimisation]\nlr = 0.02\n[sampling]\nmax_nodes = "none"\n'
        "[dataset_options]\nnum_nodes = 200\n"
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
    in_groups = [
        *("dataset=synthetic", "model.k=4", "optimisation.lr=2e-2", "model.self_loops=false"),
        *("sampling.max_nodes=none", "model.rank=raw", "dataset_options.num_nodes=200"),
    ]
    settings = Settings.create(**given)
    assert settings.model.k == 4
    assert Settings.create(**Settings.from_toml(path)) == settings
    assert Settings.create(**Settings.from_toml(grouped)) == settings
    assert Settings.create(**merge_settings(flags)) == settings
    assert Settings.create(**merge_settings(in_groups)) == settings


def test_settings_survive_their_dictionaries():
    settings = Settings.create(dataset="ppi", seed=3, max_hops=1)
    assert Settings.create(**settings.to_dict()) == settings == Settings.create(**settings.flat())


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
    settings = flat(dataset=dataset)
    assert {key: settings[key] for key in expected} == expected


def test_given_values_win_over_those_of_the_data_set():
    settings = Settings.create(dataset="ppi", k=7)
    assert (settings.model.k, settings.model.hidden_channels) == (7, 128)


def ring(num_nodes: int) -> Graph:
    nodes = torch.arange(num_nodes)
    return Graph.from_edge_index(torch.stack([nodes, nodes.roll(1)]), x=torch.ones(num_nodes, 1))


def test_own_data_leave_training_and_scale_to_the_graph():
    settings = Settings.create(dataset="tables")
    assert (settings.model.input_scale, settings.sampling.training) == (None, "auto")
    resolved = settings.resolve(ring(100))
    assert (resolved.model.input_scale, resolved.sampling.training) == (1.0, "whole")
    assert resolved == settings.replace(input_scale=1.0, training="whole", evaluate_on="graph")
    assert resolved.resolve(ring(100)) is resolved


def test_k_is_chosen_by_the_degrees_where_none_is_given():
    assert Settings.create(dataset="tables", k=None).resolve(ring(100)).model.k == suggest_k(
        ring(100)
    )


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


def test_many_labels_ask_for_other_settings_of_the_preset():
    settings = Settings.create(dataset="tables")
    few = settings.resolve(alike(labelled(MANY_LABELS - 1)))
    many = settings.resolve(labelled(MANY_LABELS))
    names = ("labels", "views", "cnn", "layer_dropout")
    assert [few.flat()[name] for name in names] == ["auto", 2, "shared", 0.5]
    assert [many.flat()[name] for name in names] == ["many", 1, "single", 0.0]
    given = Settings.create(dataset="tables", labels="many").resolve(labelled(5))
    assert many.replace(input_scale=given.model.input_scale) == given
    forced = Settings.create(dataset="tables", labels="few").resolve(labelled(MANY_LABELS))
    assert forced.optimisation.views == 2
    assert many.resolve(labelled(5)) == many


def test_what_is_given_or_replaced_stays_where_labels_are_many():
    graph = labelled(MANY_LABELS)
    settings = Settings.create(dataset="tables", views=2, agreement=0.5).resolve(graph)
    chosen = settings.optimisation
    assert (chosen.views, chosen.agreement, settings.model.cnn) == (2, 0.5, "single")
    settings = Settings.create(dataset="tables").replace(lr=0.3).resolve(graph)
    assert (settings.optimisation.lr, settings.model.cnn) == (0.3, "single")


def test_the_papers_graphs_have_one_set_of_settings():
    settings = Settings.create(dataset="cora", evaluate_on="graph")
    assert settings.resolve(labelled(MANY_LABELS)) is settings


def test_neighbours_of_other_classes_ask_for_the_settings_for_many_labels():
    settings = Settings.create(dataset="tables")
    graph = labelled(20)  # a ring in which no neighbour is of the same class
    assert settings.resolve(graph).labels == "many"
    assert settings.resolve(replace(graph, y=torch.arange(len(graph.y)) // 30)).labels == "auto"
    assert settings.resolve(labelled(3)).labels == "auto"  # too few edges to tell


def test_a_width_without_effect_is_said():
    settings = Settings.create(dataset="tables", lgcl_channels=16)
    with pytest.warns(UserWarning, match="lgcl_channels=16 has no effect with cnn=shared"):
        settings.resolve(labelled(3))
    assert settings.resolve(labelled(MANY_LABELS)).model.lgcl_channels == 16


def test_a_resumed_run_gives_all_settings_and_hears_nothing():
    stored = Settings.create(dataset="tables").resolve(labelled(3)).to_dict()
    assert Settings.create(**stored).resolve(labelled(3)).to_dict() == stored


def test_given_names_are_no_setting():
    settings = Settings.create(k=3)
    assert "given" not in settings.to_dict()
    assert settings.given == {"k"}
    assert settings == Settings().replace(k=3)
    assert "given" not in settings.flat()
    with pytest.raises(UsageError, match="unknown setting 'given'"):
        Settings.create(given=["k"])


def test_features_are_scaled_to_length_one_where_no_factor_is_given():
    graph = replace(ring(4), x=torch.full((4, 4), 2.0))
    assert Settings.create(dataset="cora").resolve(graph).model.input_scale == 1
    settings = Settings.create(input_scale=None)
    with pytest.raises(UsageError, match=r"input_scale must .*build a model"):
        settings.model.options()
    assert settings.resolve(graph).model.input_scale == pytest.approx(0.25)
    assert settings.resolve(graph).model.options()["input_scale"] == pytest.approx(0.25)


def test_what_is_given_stays():
    given = {"input_scale": 1.0, "training": "subgraph", "evaluate_on": "sampled"}
    settings = Settings.create(dataset="tables", **given)
    assert settings.resolve(ring(100)) is settings
    cora = Settings.create(dataset="cora", evaluate_on="graph")
    assert cora.resolve(ring(100)) is cora


def test_the_whole_graph_is_taken_up_to_a_size():
    settings = Settings.create(training="auto", k=9, max_epochs=1)
    assert settings.resolve(ring(WHOLE_GRAPH_VALUES // 10)).sampling.training == "whole"
    assert settings.resolve(ring(WHOLE_GRAPH_VALUES // 10 + 1)).sampling.training == "subgraph"
    # Of separate graphs, which come one after the other, the largest counts.
    many = Graph.concat([ring(WHOLE_GRAPH_VALUES // 10) for _ in range(3)])
    assert settings.resolve(many).sampling.training == "whole"


def test_large_graphs_are_evaluated_on_a_sample():
    settings = Settings.create(k=9, training="subgraph")
    assert settings.resolve(ring(EVALUATED_VALUES // 10)).evaluation.evaluate_on == "graph"
    assert settings.resolve(ring(EVALUATED_VALUES // 10 + 1)).evaluation.evaluate_on == "sampled"


def test_a_model_needs_k():
    with pytest.raises(UsageError, match=r"k must .*build a model, got none"):
        Settings.create(k=None).model.options()


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
    merged = merge_settings(["dataset_options.b=2", "model.k=3", "k=2"], merged)
    assert merged == {"k": 2, "dataset_options": {"a": 1, "b": 2}}
    assert merge_settings(["model=gcn", "model.k=3", "model.name=lgcn"]) == {
        "model": "lgcn",
        "k": 3,
    }
    assert flatten({"model": {"name": "gcn"}}) == {"model": "gcn"}


def test_a_number_is_no_table():
    with pytest.raises(
        UsageError, match=r"dataset_options\.x=2: dataset_options is 1, not a table"
    ):
        merge_settings(["dataset_options=1", "dataset_options.x=2"])
    with pytest.raises(UsageError, match=r"unknown setting 'k\.x'; known: model, sampling"):
        merge_settings(["k=1", "k.x=2"])


def test_missing_config_file_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match=r"cannot read the config file .*no\.toml: No such file"):
        Settings.from_toml(tmp_path / "no.toml")


@pytest.mark.parametrize("content", [b"k = \n", b"\xff\xfe"])
def test_broken_config_file_is_named(tmp_path: Path, content: bytes):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"broken\.toml is not valid TOML"):
        Settings.from_toml(path)


def test_model_options_build_the_model():
    model = LGCN(
        5, 3, **Settings.create(dataset="cora", hidden_channels=6, num_layers=3).model.options()
    )
    assert len(model.layers) == 3
    assert model(torch.rand(4, 5), torch.tensor([[0, 1], [1, 0]])).shape == (4, 3)
    assert sum(p.numel() for p in model.embedding.parameters()) == 5 * 6 + 6


def test_a_setting_in_the_wrong_group_is_refused_and_the_right_one_named() -> None:
    with pytest.raises(UsageError, match=r"model\.lr.*optimisation\.lr"):
        Settings.create(model={"lr": 0.1})
    with pytest.raises(UsageError, match=r"model\.lr.*optimisation\.lr"):
        merge_settings(["model.lr=0.1"])
