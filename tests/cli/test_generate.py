"""What `lgcn generate` writes."""

import inspect
from pathlib import Path

import pytest

from lgcn.cli.generate import generate
from lgcn.store.new_store_checks import DEFAULT_KIND
from lgcn.store.open_store import open_store

from .small import SIZE, contents


def test_generate_is_fixed_by_its_seed(lgcn_, store: Path):
    record = lgcn_("generate", "again", *SIZE, "--json").json
    assert record["nodes"] == 400
    assert 1400 < record["edges"] <= 1500
    assert contents(store) == contents(store.parent / "again")
    lgcn_("generate", "other", *SIZE, "--seed", "1")
    assert contents(store) != contents(store.parent / "other")


def test_generate_says_how_good_a_model_can_be(lgcn_, place: Path):
    assert "91.8%" not in lgcn_("generate", "clean", *SIZE, "--label-noise", "0").out
    output = lgcn_("generate", "noisy", *SIZE, "--label-noise", "0.5", "--imbalance", "0")
    assert "66.7%" in output.out
    record = lgcn_("generate", "same", *SIZE, "--label-noise", "0.5", "--imbalance", "0", "--json")
    assert record.json["accuracy_ceiling"] == pytest.approx(2 / 3, abs=0.001)


def test_every_flag_reaches_the_graph(lgcn_, place: Path):
    given = {"homophily": 0.25, "imbalance": 0.5, "label_noise": 0.3, "noise": 2.0}
    given |= {"locality": 0.1, "skew": 0.9}
    flags = [
        part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)
    ]
    assert lgcn_("generate", "g", *SIZE, *flags).code == 0
    source = open_store(place / "g").header["source"]
    assert {name: source[name] for name in given} == given
    defaults = inspect.signature(generate).parameters
    assert {name: defaults[name].default for name in given} == DEFAULT_KIND._asdict()
