"""Presets are plain files of settings; each says all that it sets."""

import tomllib
from importlib import resources
from typing import Any

import pytest
import torch

import lgcn.paper  # noqa: F401 (registers its presets)
from lgcn import LGCN, Graph, LGConv
from lgcn.errors import UsageError
from lgcn.nn import Diffusion, PropagatedEmbedding
from lgcn.nn.mapped_lg_conv import MappedLGConv
from lgcn.nn.residual import ResidualLGCN
from lgcn.training import ModelSpec, Settings
from lgcn.training.models import find_model, network_class
from lgcn.training.presets import depends_on_labels, preset_names, preset_values
from lgcn.training.settings import GROUPS, groups_of

DATASETS = (
    *("cora", "citeseer", "pubmed", "ppi", "ppi-rederived"),
    *("coauthor_cs", "wordnet31-half", "digits", "tables", "store"),
)
PACKAGES = ("lgcn.training.presets", "lgcn.paper.presets")
FILES = {
    f"{package.split('.')[1]} {file.name.removesuffix('.toml')}": file
    for package in PACKAGES
    for file in resources.files(package).iterdir()
    if file.name.endswith(".toml")
}
NAMES = sorted({name.split()[1] for name in FILES})
# Left out of a section where they have their neutral default.
NEUTRAL = {
    *("layer", "n_init", "max_expand", "max_hops", "resample", "subgraphs_per_batch"),
    *("subgraphs_per_epoch", "subgraphs_per_step", "sampler", "clusters", "halo"),
    *("scored_nodes", "graphs_per_batch", "nodes_per_batch"),
    *("fanout", "with_replacement", "start_nodes", "optimizer", "decay_biases", "decay_layers"),
    *("max_steps", "evaluate_every", "class_weight", "metric", "threshold"),
    *("input_hops", "input_norm", "lgcl_dropout", "agreement_epochs", "recompute"),
    *("edge_features", "directions", "lr_schedule", "views_from", "early_stop"),
    "baselines",
}

# What the text of the paper says, and what its released program does, by the numbers in
# docs/evidence/fidelity.md.
PAPER = {
    "max_hops": None,  # 1
    "max_nodes": 2000,
    "resample": True,  # 2
    "dropout": 0.16,  # 3
    "adj_dropout": 0.999,
    "rank": "raw",  # 4
    "self_loops": False,
    "zeros": "pad",  # 5
    "batch_norm": "none",  # 6
    "optimizer": "adam",  # 7
    "lr": 0.1,
    "cnn": "double",  # 8
    "weight_decay": 0.0005,  # 9
    "classifier": "sum",  # 10
    "max_epochs": 1000,  # 11
    "evaluate_on": "graph",  # 13
    "activation": "none",
    "k": 8,
    "hidden_channels": 32,
    "lgcl_channels": 8,
}
RELEASED = {
    **PAPER,
    "max_hops": 1,  # 1
    "max_nodes": None,
    "resample": False,  # 2
    "dropout": 0.84,  # 3
    "adj_dropout": 0.001,
    "rank": "normalized",  # 4
    "self_loops": True,
    "zeros": "compete",  # 5
    "batch_norm": "batch",  # 6
    "optimizer": "nadam",  # 7
    "decay_biases": True,  # 9
    "classifier": "normalized",  # 10
    "max_epochs": 10000,  # 11
    "patience": 150,
    "evaluate_on": "subgraph",  # 13
}


@pytest.mark.parametrize(
    ("preset", "dataset", "labels", "wanted"),
    [
        ("default", "tables", "few", {"lr": 0.02, "weight_decay": 0.002, "k": 8, "views": 2}),
        ("default", "tables", "many", {"lr": 0.01, "weight_decay": 1e-5, "num_layers": 3}),
        ("default", "my.npz", "many", {"lr": 0.01, "lgcl_channels": 64, "mean": True}),
        ("default", "store", "auto", {"lr": 0.02, "k": 8, "classifier": "diffusion"}),
        ("default", "cora", "many", {"lr": 0.1, "dropout": 0.84, "evaluate_on": "auto"}),
        ("default", "ppi-rederived", "auto", {"k": 64, "lr": 0.005, "training": "whole"}),
        ("best", "cora", "auto", {"k": 4, "hops": 7, "agreement": 1.5, "patience": 200}),
        ("best", "coauthor_cs", "auto", {"dropout": 0.2, "hops": 2, "input_scale": None}),
        ("best", "debian_bookworm-half", "auto", {"hidden_channels": 256, "batch_norm": "running"}),
        ("best-without", "debian_bookworm", "auto", {"num_layers": 0, "hops": 9, "dropout": 0.7}),
        ("paper", "ppi", "auto", {"n_init": 500, "max_expand": 200, "dropout": 0.9}),
        ("released", "pubmed", "auto", {"optimizer": "nadam", "max_hops": 1, "num_layers": 1}),
        ("gcn", "cora", "auto", {"decay_layers": "first", "hidden_channels": 16, "views": 1}),
        ("gat", "ppi", "auto", {"heads": 4, "out_heads": 6, "hidden_channels": 256}),
        ("sage", "tables", "auto", {"fanout": [10, 25], "n_init": 512, "sampler": "neighbors"}),
        ("chebyshev", "cora", "auto", {"order": 2}),
        ("chebyshev", "pubmed", "auto", {"order": 3}),
        ("gcnii", "ppi", "auto", {"hidden_channels": 2048, "alpha": 0.5}),
        ("mlp", "wordnet31", "auto", {"dropout": 0.6, "lr": 0.02}),
        ("structure_blind", "NCI1", "auto", {"variant": "fingerprint"}),
        ("structure_blind", "COLLAB", "auto", {"variant": "multiset"}),
        ("structure_blind", "COLLAB", "auto", {"structural_features": "degree"}),
    ],
)
def test_values(preset: str, dataset: str, labels: str, wanted: dict[str, Any]) -> None:
    flat = Settings.create(preset=preset, dataset=dataset, labels=labels).flat()
    assert {name: flat[name] for name in wanted} == wanted


@pytest.mark.parametrize("name", FILES)
def test_every_section_is_complete_and_valid(name: str) -> None:
    content = tomllib.loads(FILES[name].read_text("utf-8"))
    assert content.keys() == {"settings"}
    for entry in content["settings"]:
        top = {"datasets", "labels", "time_limit", "structural_features"}
        assert entry.keys() - top <= GROUPS.keys() - {"hardware"}
        for group, cls in groups_of(entry["model"]["name"]).items():
            if group != "hardware":
                values = entry.get(group, {})
                cls.build(values)
                assert cls.model_fields.keys() - NEUTRAL <= values.keys() <= cls.model_fields.keys()
    others = [entry.get("labels") for entry in content["settings"] if "datasets" not in entry]
    # The other presets of the paper's best one are in the core.
    assert others in ([None], ["few", "many"], *([[]] if name == "paper best" else []))
    named = [dataset for entry in content["settings"] for dataset in entry.get("datasets", ())]
    assert len(set(named)) == len(named)


def test_the_files_are_all_presets() -> None:
    assert preset_names() == NAMES


def test_the_section_for_own_tables_with_few_labels_is_the_defaults() -> None:
    values = preset_values("default", "tables")
    default = Settings().flat()
    assert {
        name: None if v == "none" and default[name] is None else v for name, v in values.items()
    }.items() <= default.items()


def test_labels_matter_where_no_section_is_made_for_the_data_set() -> None:
    assert depends_on_labels("default", "tables")
    assert depends_on_labels("best", "my.npz")
    assert not depends_on_labels("default", "cora")
    assert not depends_on_labels("gcn", "tables")


@pytest.mark.parametrize(("name", "wanted"), [("paper", PAPER), ("released", RELEASED)])
@pytest.mark.parametrize(("dataset", "layers"), [("cora", 2), ("citeseer", 1), ("pubmed", 1)])
def test_the_two_presets_set_every_difference(
    name: str, wanted: dict[str, object], dataset: str, layers: int
) -> None:
    settings = Settings.create(dataset=dataset, preset=name)
    flat = settings.flat()
    assert {key: flat[key] for key in wanted} == wanted
    assert settings.model.num_layers == layers
    model = ModelSpec(10, 3).build(settings)
    assert isinstance(model, LGCN)
    assert len(model.layers) == layers
    lgcl = model.layers[0]
    assert (lgcl.rank, lgcl.zeros, lgcl.k) == (wanted["rank"], wanted["zeros"], 8)
    assert model.classifier.aggregate == wanted["classifier"]


def test_the_paper_starts_from_all_training_nodes() -> None:
    starts = [
        Settings.create(dataset=d, preset="paper").sampling.n_init
        for d in ("cora", "citeseer", "pubmed")
    ]
    assert starts == [140, 120, 60]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_preset_builds_a_model_that_runs(name: str, dataset: str) -> None:
    graph = Graph.as_given(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 0]]), 3, x=torch.rand(3, 4))
    settings = Settings.create(dataset=dataset, preset=name).resolve(graph)
    assert settings.preset == name
    assert find_model(settings.model.name).preset in (name, "default")
    model = ModelSpec(4, 3).build(settings).eval()
    assert type(model) is network_class(settings.model.name)
    rows = 1 if find_model(settings.model.name).for_graphs else 3
    assert model(graph.x, graph).shape == (rows, 3)


@pytest.mark.parametrize("dataset", ["cora", "citeseer"])
def test_the_best_preset_has_an_lgcl_and_views_that_agree(dataset: str) -> None:
    settings = Settings.create(dataset=dataset, preset="best")
    assert settings.optimisation.views == 2
    assert settings.optimisation.agreement > 0
    model = ModelSpec(10, 3).build(settings)
    assert isinstance(model, LGCN)
    [lgcl] = model.layers
    assert isinstance(lgcl, LGConv)
    assert sum(p.numel() for p in lgcl.parameters()) == settings.model.k + 1
    assert isinstance(model.classifier, Diffusion)
    assert model.classifier.hops == settings.model.hops


def test_the_best_preset_of_pubmed_propagates_its_input_and_appends_an_lgcl() -> None:
    settings = Settings.create(dataset="pubmed", preset="best", input_scale=1.0)
    assert settings.optimisation.views == 4
    assert settings.optimisation.agreement_epochs == 1
    model = ModelSpec(10, 3).build(settings)
    assert isinstance(model, LGCN)
    assert isinstance(model.embedding, PropagatedEmbedding)
    assert model.embedding.hops == settings.model.input_hops
    [lgcl] = model.layers
    assert (lgcl.out_channels, lgcl.dropout) == (16, 0.5)


@pytest.mark.parametrize("dataset", ["minesweeper", "tolokers"])
def test_where_neighbours_disagree_the_best_preset_is_deep(dataset: str) -> None:
    settings = Settings.create(dataset=dataset, preset="best", input_scale=1.0)
    assert settings.evaluation.metric == "roc_auc"
    model = ModelSpec(10, 2).build(settings)
    assert isinstance(model, ResidualLGCN)
    assert len(model.layers) >= 8
    assert {type(layer.conv) for layer in model.layers} == {MappedLGConv}
    plain = Settings.create(dataset=dataset, preset="best-without")
    assert plain.model.aggregate == "mean"


def test_given_settings_override_the_preset() -> None:
    model = Settings.create(dataset="citeseer", preset="paper", dropout=0.3, num_layers=3).model
    assert (model.dropout, model.num_layers, model.rank) == (0.3, 3, "raw")


def test_a_model_has_its_own_preset() -> None:
    gcn = Settings.create(dataset="cora", model="gcn")
    assert gcn == Settings.create(dataset="cora", preset="gcn")
    assert (gcn.preset, Settings.create(dataset="cora").preset) == ("gcn", "default")


def test_of_a_preset_of_another_model_the_shared_settings_count() -> None:
    settings = Settings.create(dataset="cora", model="gcn", preset="best")
    assert type(settings.model) is find_model("gcn").settings
    assert (settings.model.dropout, settings.optimisation.lr) == (0.6, 0.05)


def test_settings_of_the_presets_own_network_are_not_for_another() -> None:
    """Some have the same name and other choices, such as cnn=shared."""
    settings = Settings.create(dataset="tables", preset="quick", model="residual")
    quick = Settings.create(dataset="tables", preset="quick")
    assert settings.model.cnn == "single"
    assert settings.model.dropout == quick.model.dropout
    assert settings.optimisation == quick.optimisation


def test_settings_survive_the_way_through_a_file() -> None:
    settings = Settings.create(dataset="pubmed", preset="gat", seed=3)
    assert Settings.create(**settings.to_dict()) == settings


def test_the_defaults_know_no_settings_that_were_searched_for_a_graph() -> None:
    own, any_graph = (preset_values("best", name) for name in ("amazon_computers", "tables"))
    assert own["hops"] != any_graph["hops"]
    assert any_graph.pop("time_limit") == "10m"
    assert preset_values("default", "amazon_computers") == any_graph
    assert preset_values("default", "amazon_computers", "many")["mean"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("papr", r"unknown preset 'papr'; did you mean 'paper'\?"),
        ("x", "unknown preset 'x'; known: best, .*released"),
        (["best"], "unknown preset"),
    ],
)
def test_unknown_presets_are_named(name: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Settings.create(preset=name)
