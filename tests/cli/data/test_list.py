"""What `lgcn data list` prints."""

import lgcn.datasets


def test_data_list_names_every_data_set(lgcn_):
    listed = lgcn_("data", "list", "--json").json
    assert list(listed) == lgcn.datasets.dataset_names()
    text = lgcn_("data", "list").out
    assert all(name in text for name in listed)
