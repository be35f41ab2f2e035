"""Reports and comparisons in a browser: they work, need no network, and everybody can use them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lgcn.report import write_comparison
from lgcn.report.write import WrittenReport
from tests.browser import DESKTOP, PHONE, Browser
from tests.report.conftest import READY
from tests.report.runs import HOSTILE

SIZES = {"desktop": DESKTOP, "phone": PHONE}
Written = Callable[..., WrittenReport]


@pytest.fixture(scope="session")
def comparison(trained: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    return write_comparison([trained(), trained("classes", "k=2", "seed=1")], path).path


@pytest.fixture
def page(browser: Browser, written: Written) -> Iterator[Browser]:
    """The report at desktop size; at the end, nothing may have gone wrong."""
    browser.open(written().path, wait=READY)
    yield browser
    assert browser.errors() == []
    assert browser.requests() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "kind", ["classes", "labels", "numbers", "graphs", "graph_numbers", "comparison"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # some graphs have no nodes
def test_a_page_opens_without_errors_and_can_be_used_by_all(
    kind: str, size: str, dark: bool, browser: Browser, written: Written, comparison: Path
) -> None:
    path = comparison if kind == "comparison" else written(kind).path
    browser.open(path, size=SIZES[size], dark=dark, wait=READY)
    assert browser.errors() == []
    assert browser.requests() == []
    assert browser.overflow() == 0
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark
    charts = browser.run(
        "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg').length)"
    )
    assert charts == [1] * len(charts) != []
    if kind in ("classes", "graphs", "comparison"):  # the others have the same parts
        assert browser.violations() == []


@pytest.mark.parametrize("size", SIZES)
def test_a_click_on_a_node_of_the_map_shows_its_neighbourhood(
    size: str, browser: Browser, written: Written
) -> None:
    browser.open(written().path, size=SIZES[size], wait=READY)
    browser.run(
        "document.getElementById('map-canvas')"
        ".scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    # Some point of the map has a node: the pixel that is painted.
    x, y = browser.wait(
        "const c = document.getElementById('map-canvas'), b = c.getContext('2d');"
        "const p = b.getImageData(0, 0, c.width, c.height).data;"
        "for (let i = 3; i < p.length; i += 4) if (p[i] > 200) {"
        "  const r = c.getBoundingClientRect(), n = (i - 3) / 4;"
        "  return [r.left + n % c.width, r.top + Math.floor(n / c.width)]; }"
    )
    for kind in ("mousePressed", "mouseReleased"):
        options = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", options)
    browser.wait("return document.getElementById('node').open")
    title = browser.find("#node-title").text
    facts = written().facts
    ids = {name.as_py() for name in facts.run.predictions()["node"]}
    assert title.removeprefix("Node ") in ids | {"\\u202eright to left\\u2066"}
    dots = browser.run("return document.querySelectorAll('#picture circle').length")
    rows = browser.run(
        "return [...document.querySelectorAll('#neighbours tbody th')].map(h => h.textContent)"
    )
    neighbours = [text for text in rows if text not in ("the node itself", "zeros")]
    assert len(neighbours) == dots - 1
    assert browser.violations() == []
    assert browser.errors() == []
    assert browser.overflow() == 0
    browser.press("ESCAPE")
    assert not browser.run("return document.getElementById('node').open")


def test_a_node_is_found_by_its_id_and_neighbours_lead_on(page: Browser) -> None:
    page.find("#search").send_keys("n7")
    assert "nodes found" in page.find("#found").text
    page.find("#search").send_keys("7")
    assert page.find("#found").text == "1 node found"
    page.press("BACKSPACE")
    page.press("ENTER")
    assert page.find("#node-title").text == "Node n7"
    assert page.run("return document.activeElement.id") == "node-title"
    page.run("document.querySelector('#neighbours button.node').click()")
    second = page.find("#node-title").text
    assert second != "Node n7"
    page.run("document.getElementById('node-back').click()")
    assert page.find("#node-title").text == "Node n7"
    page.run("document.getElementById('layer-1').click()")
    assert page.find("#layer-1").get_attribute("aria-pressed") == "true"
    pressed = hovered_colours(page, "layer-1")
    assert pressed != hovered_colours(page, "layer-0")
    assert pressed == ["rgb(26, 33, 41)", "rgb(255, 255, 255)"]  # dark, with white text
    page.run("document.getElementById('node-close').click()")
    assert page.run("return document.activeElement.id") == "search"


def hovered_colours(page: Browser, key: str) -> list[str]:
    """The colours of a button and its text while the pointer is on it."""
    x, y = page.run(
        "const b = document.getElementById(arguments[0]).getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2]",
        key,
    )
    options = {"type": "mouseMoved", "x": x, "y": y}
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", options)
    assert page.wait("return document.querySelector('button:hover')?.id") == key
    found: list[str] = page.run(
        "const s = getComputedStyle(document.getElementById(arguments[0]));"
        "return [s.backgroundColor, s.color]",
        key,
    )
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_shown_as_they_are(name: str, page: Browser) -> None:
    shown = name.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066")
    page.run("document.getElementById('search').value = arguments[0]", shown)
    page.run("document.getElementById('search-form').requestSubmit()")
    assert page.run("return document.getElementById('node-title').textContent") == f"Node {shown}"
    assert page.run("return document.querySelectorAll('main img, main b, dialog img').length") == 0


def test_names_of_neighbours_have_room_and_whole_names_are_told(page: Browser) -> None:
    name = HOSTILE[0]
    found = page.run(
        "const d = JSON.parse(document.getElementById('data').textContent);"
        "const place = d.nodes.id.indexOf(arguments[0]);"
        "for (let i = 0; i < d.sampled; i++) {"
        "  const near = d.near.node.slice(d.near.ptr[i] + 1, d.near.ptr[i + 1]);"
        "  if (near.includes(place) && near.length <= 12) return d.nodes.id[i]; }",
        name,
    )
    page.run("document.getElementById('search').value = arguments[0]", found)
    page.run("document.getElementById('search-form').requestSubmit()")
    texts = page.run(
        "return [...document.querySelectorAll('#picture > text')].map(t => "
        "[t.firstChild.data, t.querySelector('title').textContent, t.getBBox().x,"
        " t.getBBox().x + t.getBBox().width])"
    )
    [shown] = [text for text, whole, *_ in texts if whole == name]
    assert shown == name[:17] + "…"
    left, _, width, _ = map(float, page.run("return picture.getAttribute('viewBox')").split())
    assert all(left <= start and end <= left + width for _, _, start, end in texts)


def test_tooltips_of_charts_show_names_as_text(page: Browser) -> None:
    page.run("document.getElementById('confusion').scrollIntoView({behavior: 'instant'})")
    x, y = page.run(
        "const b = document.querySelector('#confusion .mark-rect path').getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + 4]"
    )
    options = {"type": "mouseMoved", "x": x, "y": y}
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", options)
    text = page.wait("return document.getElementById('vg-tooltip-element')?.textContent")
    assert "<b>blue</b>" in text
    assert page.run("return document.querySelectorAll('#vg-tooltip-element b').length") == 0


def test_the_map_works_by_keyboard_and_can_be_coloured(page: Browser) -> None:
    page.run("document.getElementById('map-canvas').focus()")
    page.press("ARROW_RIGHT", "ARROW_RIGHT", "+", "0", "ENTER")
    assert page.run("return document.getElementById('node').open")
    status = page.run("return document.getElementById('map-status').textContent")
    assert page.find("#node-title").text.removeprefix("Node ") in status
    page.press("ESCAPE")
    assert page.run("return document.activeElement.id") == "map-canvas"
    legends = set()
    modes = page.run("return [...document.getElementById('map-colour').options].map(o => o.value)")
    assert modes == ["true", "predicted", "confidence", "error", "split"]
    for mode in modes:
        script = (
            "const s = document.getElementById('map-colour'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'));"
            "return document.getElementById('legend').textContent"
        )
        legends.add(page.run(script, mode))
    assert len(legends) == 5
    assert any("test (27)" in text for text in legends)


def test_the_keyboard_reaches_links_tables_and_nodes_with_a_visible_focus(page: Browser) -> None:
    page.press("TAB")
    assert page.run("return document.activeElement.className") == "skip"
    page.press("ENTER")
    page.press("TAB")
    assert page.run("return document.getElementById('content').contains(document.activeElement)")
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.run(outline) != "none"
    page.run("document.querySelector('#nodes button.node').focus()")
    page.press("ENTER")
    assert page.run("return document.getElementById('node').open")


def test_a_click_on_a_head_sorts_and_a_second_one_reverses(page: Browser) -> None:
    def column() -> list[float]:
        texts = page.run(
            "return [...document.querySelectorAll('#classes tbody tr')].slice(0, 3)"
            ".map(r => r.cells[5].dataset.sort)"
        )
        return [float(text) for text in texts]

    heads = page.driver.find_elements("css selector", "#classes table.sortable th button")
    for reverse in (True, False):
        page.run("arguments[0].click()", heads[5])
        assert column() == sorted(column(), reverse=reverse)
    sort = "return document.querySelector('#classes th[aria-sort]').getAttribute('aria-sort')"
    assert page.run(sort) == "ascending"


def test_the_button_changes_the_colours(page: Browser) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = page.run(colour)
    page.run("document.getElementById('theme').click()")
    assert page.run(colour) != before
    assert page.violations() == []


@pytest.fixture
def graphs_page(browser: Browser, written: Written) -> Iterator[Browser]:
    """The report of a run on whole graphs; at the end, nothing may have gone wrong."""
    browser.open(written("graphs").path, wait=READY)
    yield browser
    assert browser.errors() == []
    assert browser.requests() == []


def show_graph(page: Browser, name: str) -> str:
    """Searches a graph by its id; gives the text of the drawer."""
    page.run("document.getElementById('search').value = arguments[0]", name)
    page.run("document.getElementById('search-form').requestSubmit()")
    return str(page.find("#node").text)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_graph_is_drawn_with_its_nodes_edges_and_labels(
    size: str, browser: Browser, written: Written
) -> None:
    browser.open(written("graphs").path, size=SIZES[size], wait=READY)
    text = show_graph(browser, "g12")
    found = written("graphs").facts.drawings
    assert found is not None
    assert text.startswith("Graph g12")
    nodes, edges = found.sizes[12], found.edges[12]
    assert f"nodes\n{nodes}" in text
    assert f"edges\n{edges}" in text
    for name, count in (("circle", nodes), ("line", edges)):
        drawn = f"return document.querySelectorAll('#picture {name}').length"
        assert browser.run(drawn) == count
    labels = browser.find("#labels").text
    assert "<i>N</i>" in labels
    assert "the node's letter" in text
    box = "return ['x', 'y', 'width', 'height'].map(k => picture.getBBox()[k])"
    left, top, width, height = browser.run(box)
    _, _, wide, high = map(float, browser.run("return picture.getAttribute('viewBox')").split())
    assert 0 <= left <= left + width <= wide
    assert 0 <= top <= top + height <= high
    assert browser.violations() == []
    assert browser.overflow() == 0
    assert browser.errors() == []
    browser.press("ESCAPE")
    assert not browser.run("return document.getElementById('node').open")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_odd_graphs_say_what_their_picture_lacks(graphs_page: Browser) -> None:
    assert "The graph has no nodes." in show_graph(graphs_page, "g6")
    assert graphs_page.driver.find_elements("css selector", "#picture") == []
    assert "150 of 200 nodes are drawn" in show_graph(graphs_page, "g7")
    assert "edges\n0" in show_graph(graphs_page, "g5")
    shown = show_graph(graphs_page, HOSTILE[0])
    assert shown.startswith(f"Graph {HOSTILE[0]}")
    assert graphs_page.run("return document.querySelectorAll('main img, dialog img').length") == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_map_and_the_tables_of_graphs_open_them(graphs_page: Browser) -> None:
    graphs_page.run("document.getElementById('map-canvas').focus()")
    graphs_page.press("ARROW_RIGHT", "ARROW_RIGHT", "ENTER")
    title = graphs_page.find("#node-title").text
    assert title.startswith("Graph ")
    status = graphs_page.run("return document.getElementById('map-status').textContent")
    assert status.startswith(f"{title}, predicted ")
    graphs_page.press("ESCAPE")
    name = graphs_page.run(
        "const b = document.querySelector('#nodes button.node'); b.click(); return b.textContent"
    )
    assert graphs_page.run("return document.getElementById('node-title').textContent") == (
        f"Graph {name}"
    )
    graphs_page.find("#search").send_keys("g1")
    assert "graphs found" in graphs_page.find("#found").text


def test_a_comparison_shows_where_two_runs_disagree(browser: Browser, comparison: Path) -> None:
    browser.open(comparison, wait=READY)
    text = browser.find("main").text
    assert "same test nodes of the same graph" in text
    assert "model.k" in text
    assert "run.seed" in text
    assert "✓" in text
