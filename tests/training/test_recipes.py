"""Recipes are files of settings; each sets what it must."""

import tomllib
from pathlib import Path

import pytest
import torch

from lgcn import LGCN, Graph, LGConv
from lgcn.errors import UsageError
from lgcn.nn import Diffusion
from lgcn.paper.baselines import GAT, GCN, GCNII, MLP, ChebNet, GraphSAGE
from lgcn.training import Config, ModelSpec, recipes
from lgcn.training.recipes import recipe_names, recipe_settings

DATASETS = (
    *("cora", "citeseer", "pubmed", "ppi", "ppi-rederived"),
    *("coauthor_cs", "wordnet31-half", "digits", "tables"),
)

# What the text of the paper says, and what its released program does: docs/fidelity.md by number.
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


@pytest.mark.parametrize(("name", "wanted"), [("paper", PAPER), ("released", RELEASED)])
@pytest.mark.parametrize(("dataset", "layers"), [("cora", 2), ("citeseer", 1), ("pubmed", 1)])
def test_the_two_recipes_set_every_difference(
    name: str, wanted: dict[str, object], dataset: str, layers: int
) -> None:
    config = Config.create(dataset=dataset, recipe=name)
    settings = config.to_dict()
    assert {key: settings[key] for key in wanted} == wanted
    assert config.num_layers == layers
    model = ModelSpec(10, 3, False).build(config)
    assert isinstance(model, LGCN)
    assert len(model.layers) == layers
    lgcl = model.layers[0]
    assert (lgcl.rank, lgcl.zeros, lgcl.k) == (wanted["rank"], wanted["zeros"], 8)
    assert model.classifier.aggregate == wanted["classifier"]


def test_the_paper_starts_from_all_training_nodes() -> None:
    starts = [
        Config.create(dataset=d, recipe="paper").n_init for d in ("cora", "citeseer", "pubmed")
    ]
    assert starts == [140, 120, 60]


@pytest.mark.parametrize("name", recipe_names())
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_recipe_builds_a_model_that_runs(name: str, dataset: str) -> None:
    graph = Graph.as_given(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 0]]), 3, x=torch.rand(3, 4))
    config = Config.create(dataset=dataset, recipe=name).resolve(graph)
    assert config.recipe == name
    model = ModelSpec(4, 3, False).build(config).eval()
    kinds = {"gcn": GCN, "gcnii": GCNII, "chebyshev": ChebNet, "gat": GAT, "sage": GraphSAGE}
    assert type(model) is {**kinds, "mlp": MLP}.get(name, LGCN)
    assert model(graph.x, graph).shape == (3, 3)


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed"])
def test_the_best_recipe_has_an_lgcl_and_views_that_agree(dataset: str) -> None:
    config = Config.create(dataset=dataset, recipe="best")
    assert (config.views, config.agreement > 0) == (2, True)
    model = ModelSpec(10, 3, False).build(config)
    assert isinstance(model, LGCN)
    [lgcl] = model.layers
    assert isinstance(lgcl, LGConv)
    assert config.k is not None
    assert sum(p.numel() for p in lgcl.parameters()) == config.k + 1
    assert isinstance(model.classifier, Diffusion)
    assert model.classifier.hops == config.hops


def test_given_settings_win_over_the_recipe() -> None:
    config = Config.create(dataset="citeseer", recipe="paper", dropout=0.3, num_layers=3)
    assert (config.dropout, config.num_layers, config.rank) == (0.3, 3, "raw")


def test_a_model_brings_its_own_recipe() -> None:
    assert Config.create(dataset="cora", model="gcn") == Config.create(dataset="cora", recipe="gcn")
    assert Config.create(dataset="cora").recipe == "default"


def test_settings_survive_the_way_through_a_file() -> None:
    config = Config.create(dataset="pubmed", recipe="gat", seed=3)
    assert Config.create(**config.to_dict()) == config


def test_a_data_set_may_be_like_another() -> None:
    assert recipe_settings("paper", "ppi-rederived") == recipe_settings("paper", "ppi")
    assert "like" not in recipe_settings("paper", "ppi-rederived")


def test_the_defaults_know_no_settings_that_were_searched_for_a_graph() -> None:
    own, any_graph = (recipe_settings("best", name) for name in ("amazon_computers", "tables"))
    assert own["hops"] != any_graph["hops"]
    assert recipe_settings("default", "amazon_computers") == any_graph
    assert recipe_settings("default", "amazon_computers", "many")["mean"]


def test_a_recipe_may_start_from_another() -> None:
    own, base = recipe_settings("best-without", "ppi"), recipe_settings("best", "ppi")
    assert own == base | {"num_layers": 0}


def test_files_have_settings_and_data_sets_alone() -> None:
    for path in Path(recipes.__file__).parent.glob("*.toml"):
        assert tomllib.loads(path.read_text()).keys() <= {"base", "settings", "datasets"}


@pytest.mark.parametrize(
    ("name", "message"),
    [("papr", r"unknown recipe 'papr'; did you mean 'paper'\?"), ("x", "there are .*released")],
)
def test_unknown_recipes_are_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Config.create(recipe=name)
