"""What `lgcn data path` prints."""

from pathlib import Path

from ..small import write_npz


def test_data_path_tells_where_files_are(lgcn_, place: Path):
    write_npz(place / "ring.npz")
    assert lgcn_("data", "path", "ring", "--root", place, "--json").json == {
        "name": "ring",
        "files": [str(place / "ring.npz")],
    }
    assert lgcn_("data", "path", "ring", "--root", place).out == f"{place / 'ring.npz'}\n"


def test_data_path_of_what_needs_no_files(lgcn_):
    assert lgcn_("data", "path", "digits", "--json").json == {"name": "digits", "files": []}
    output = lgcn_("data", "path", "digits")
    assert (output.code, output.out, output.err) == (0, "", "digits needs no files\n")
