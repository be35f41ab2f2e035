"""The picture is well-formed, names what it shows, and lets no text out of its place."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

import lgcn
from lgcn.explain import Explanation

from .networks import build, random_graph

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def found() -> Explanation:
    return lgcn.explain_nodes(build("lgcn", {"activation": "relu"}), random_graph(20, 60), [5])[0]


def test_it_has_a_title_a_description_and_the_neighbours(found: Explanation):
    picture = ElementTree.fromstring(found.svg())
    assert picture.get("role") == "img"
    assert "5" in (picture.findtext(f"{SVG}title") or "")
    assert "feature" in (picture.findtext(f"{SVG}desc") or "")
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    near = [str(one["node"]) for one in found.by_node if one["hops"] <= 1]
    assert set(near[:10]) <= set(texts)
    tips = [tip.text or "" for tip in picture.iter(f"{SVG}title")]
    assert any("LGCL 1 selects it" in tip for tip in tips)
    assert any(tip.startswith("edge ") for tip in tips)


def test_the_sign_is_in_the_colour_and_in_the_text(found: Explanation):
    picture = ElementTree.fromstring(found.svg())
    for group in picture.iter(f"{SVG}g"):
        circle, sign = group.find(f"{SVG}circle"), group.findtext(f"{SVG}text")
        assert circle is not None
        assert (circle.get("class"), sign) in [("plus", "+"), ("minus", "\u2212")]


def test_hostile_names_stay_text(found: Explanation):
    evil = '</title><script>alert("x")</script>&\x00\ud800'
    columns = [{**one, "column": evil} for one in found.by_column]
    nodes = [{**one, "node": f"{evil}{i}"} for i, one in enumerate(found.by_node)]
    picture = replace(found, node=evil, predicted=evil, by_column=columns, by_node=nodes).svg()
    parsed = ElementTree.fromstring(picture)
    assert not list(parsed.iter(f"{SVG}script"))
    assert "<script" not in picture
    picture.encode("utf-8")


def test_it_needs_nothing_from_elsewhere(found: Explanation):
    picture = found.svg().replace("http://www.w3.org/2000/svg", "")
    for word in ("http", "url(", "href", "@import"):
        assert word not in picture
    assert "prefers-color-scheme:dark" in picture
