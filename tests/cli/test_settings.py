"""What `lgcn settings` lists."""

from lgcn.training import Config


def test_settings_lists_every_setting_with_its_default(lgcn_):
    listed = lgcn_("settings", "--json").json
    assert {key: row["default"] for key, row in listed.items()} == Config().to_dict()
    text = lgcn_("settings").out
    assert all(key in text for key in listed)
    assert "lgcn settings --dataset tables" in text


def test_settings_of_a_recipe_on_a_data_set(lgcn_):
    for flags, given in (
        (["--dataset", "tables"], {"dataset": "tables"}),
        (["--dataset", "tables", "--set", "labels=many"], {"dataset": "tables", "labels": "many"}),
        (["--recipe", "gat", "--set", "k=none"], {"recipe": "gat", "k": None}),
    ):
        listed = lgcn_("settings", "--json", *flags).json
        config = Config.create(**given).to_dict()
        assert {key: row["default"] for key, row in listed.items()} == config
    output = lgcn_("settings", "--recipe", "gta")
    assert output.code == 2
    assert "unknown recipe 'gta'; did you mean 'gat'?" in output.err
    output = lgcn_("settings", "--dataset", "coar")
    assert output.code == 2
    assert "there is no data set 'coar'; did you mean 'cora'?" in output.err
