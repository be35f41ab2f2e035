"""`lgcn partition`: what it prints, and one line for every mistake."""

import re
import sys
from pathlib import Path

import pytest

from lgcn.partition import check_partition


def test_it_says_what_it_did_and_what_is_next(lgcn_, store: Path) -> None:
    output = lgcn_("partition", "store", "my parts", "--parts", 2, "--method", "ldg")

    assert output.code == 0, output.err
    header = check_partition("my parts")
    assert header["num_parts"] == 2
    for text in ("ldg", "400", f"{header['halo']:,}", "times the average", " s and "):
        assert text in output.out
    assert "torchrun --nproc-per-node 2 -m lgcn train --graph 'my parts'" in output.out
    assert output.out.splitlines()[-1] == "next: lgcn train --graph 'my parts'"


def test_the_record_has_the_same_numbers(lgcn_, store: Path) -> None:
    record = lgcn_("partition", "store", "parts", "--parts", 4, "--method", "hash", "--json").json

    header = check_partition("parts")
    assert (record["method"], record["parts"], record["nodes"]) == ("hash", 4, 400)
    assert record["edges"] == header["num_edges"] // 2
    assert record["cut_edges"] == header["cut"] // 2
    assert record["cut_share"] == pytest.approx(header["cut"] / header["num_edges"])
    assert record["halo_share"] == pytest.approx(header["halo"] / 400)
    assert sum(shard["owned"] for shard in record["shards"]) == 400
    assert record["seconds"] > 0
    assert record["peak_memory"] > 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("store out --parts 0", "--parts .* 1 .* got 0"),
        ("store out --parts 401", "--parts .* 400, got 401"),
        ("store out --parts 2 --method metsi", "--method .*'metsi'.*'metis'"),
        ("store out --parts 2 --memory much", "--memory .*'much'"),
        ("store out --parts 2 --memory 1MB", "--memory .* got 1 MB"),
        ("store out --parts 2 --seed -1", "--seed .* got -1"),
        ("nowhere out --parts 2", "no graph store at nowhere.*lgcn import"),
        ("small.toml out --parts 2", "no graph store at small.toml"),
        ("store store --parts 2", "exists.*--overwrite"),
        ("store store --parts 2 --overwrite", "not a partition"),
        ("store store/parts --parts 2", "not be inside of the store"),
    ],
)
def test_a_mistake_is_one_line(lgcn_, store: Path, line: str, said: str) -> None:
    before = sorted(Path().rglob("*"))
    output = lgcn_("partition", *line.split())
    assert output.code in (1, 2)
    assert re.search(said, output.message)
    assert sorted(Path().rglob("*")) == before


def test_without_metis_it_says_what_to_install(
    lgcn_, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    output = lgcn_("partition", "store", "out", "--parts", 2, "--method", "metis")
    assert output.code == 2
    assert "lgcn[metis]" in output.message
    assert lgcn_("partition", "store", "out", "--parts", 2, "--json").json["method"] == "ldg"


def test_a_partition_is_replaced_and_described(lgcn_, store: Path) -> None:
    lgcn_("partition", "store", "parts", "--parts", 3)
    assert lgcn_("partition", "store", "parts", "--parts", 2).code == 2
    assert lgcn_("partition", "store", "parts", "--parts", 2, "--overwrite").code == 0
    assert lgcn_("data", "info", "parts", "--json").json["parts"] == 2
    assert "graph in parts" in lgcn_("data", "check", "--dataset", "parts").message
    again = lgcn_("partition", "parts", "more", "--parts", 2)
    assert "is a partition already" in again.message
