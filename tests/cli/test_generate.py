"""What `lgcn generate` writes."""

from pathlib import Path

from .small import SIZE, contents


def test_generate_is_fixed_by_its_seed(lgcn_, store: Path):
    record = lgcn_("generate", "again", *SIZE, "--json").json
    assert record["nodes"] == 400
    assert 1400 < record["edges"] <= 1500
    assert contents(store) == contents(store.parent / "again")
    lgcn_("generate", "other", *SIZE, "--seed", "1")
    assert contents(store) != contents(store.parent / "other")
