"""What `lgcn settings` lists."""

from pathlib import Path

from lgcn.cli.settings import COMMON
from lgcn.training import Settings
from lgcn.training.settings import GROUPS


def test_settings_lists_every_setting_with_its_default(lgcn_):
    listed = lgcn_("settings", "--json").json
    assert {key: row["default"] for key, row in listed.items()} == Settings().flat()
    assert all(row["what"] and row["wants"] for row in listed.values())
    assert listed["lr"]["group"] == "optimisation"
    assert listed["rank"]["wants"] == "one of normalized, raw"
    text = lgcn_("settings").out
    assert all(key in text for key in listed)
    assert all(f"--set {group}.NAME=VALUE" in text for group in GROUPS)
    assert "--set labels=many" in text


def test_what_people_change_comes_first_for_few_and_many_labels(lgcn_):
    lines = lgcn_("settings").out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:4]] for line in lines if "│" in line]
    assert [row[0] for row in rows if row[0]][: len(COMMON)] == list(COMMON)
    assert ["lr", "0.02", "0.01"] in rows
    assert ["num_layers", "1", "3"] in rows


def test_settings_of_a_preset_on_a_data_set(lgcn_):
    for flags, given in (
        (["--dataset", "tables"], {"dataset": "tables"}),
        (["--dataset", "tables", "--set", "labels=many"], {"dataset": "tables", "labels": "many"}),
        (["--preset", "gat", "--set", "model.heads=3"], {"preset": "gat", "heads": 3}),
        (["--preset", "best", "--set", "k=none"], {"preset": "best", "k": None}),
    ):
        listed = lgcn_("settings", "--json", *flags).json
        wanted = Settings.create(**given).flat()
        assert {key: row["default"] for key, row in listed.items()} == wanted
        text = lgcn_("settings", *flags).out
        assert all(key in text for key in wanted)
    output = lgcn_("settings", "--preset", "gta")
    assert output.code == 2
    assert "'gta'" in output.err
    assert "'gat'" in output.err
    output = lgcn_("settings", "--preset", "gat", "--set", "k=3")
    assert output.code == 2
    assert "'k' of model=gat" in output.err
    output = lgcn_("settings", "--dataset", "coar")
    assert output.code == 2
    assert "'coar'" in output.err
    assert "'cora'" in output.err


def test_wrong_names_get_the_nearest_right_one(lgcn_, place: Path):
    assert "'tables'" in lgcn_("settings", "--dataset", "tabels").err
    assert "'model.k'" in lgcn_("settings", "--set", "modell.k=3").err
    (place / "mine.toml").write_text("kk = 3")
    output = lgcn_("train", "--config", "mine.toml")
    assert output.code == 2
    assert "mine.toml" in output.err
    assert "'kk'" in output.err
    (place / "mine.toml").write_text("[optimisation]\nlrr = 3")
    assert "mine.toml" in lgcn_("train", "--config", "mine.toml").err
