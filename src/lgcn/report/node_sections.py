"""The parts of a report about single nodes: the map, the tables of nodes, and the drawer."""

from __future__ import annotations

from typing import Any

from lgcn.report.facts import Facts
from lgcn.report.figures import absent, percent, section, side_by_side
from lgcn.report.html import Html, join, name, table, tag
from lgcn.report.names import plain_number
from lgcn.report.node_data import label_text
from lgcn.report.node_results import SPLITS
from lgcn.report.sample import SEED
from lgcn.report.score_sections import SPLIT_NAMES

COLOURS = {
    "true": "true label",
    "predicted": "prediction",
    "confidence": "confidence",
    "error": "error",
    "split": "split",
}


def sample_text(facts: Facts) -> str:
    """Which nodes are shown one by one."""
    sample = facts.sample
    if sample.complete:
        return f"All {sample.total:,} {facts.units} are on this page."
    scored = (
        f", {sample.scored:,} of them labelled {SPLIT_NAMES[facts.main]} {facts.units}"
        if facts.main
        else ""
    )
    return (
        f"A sample of {len(sample.nodes):,} of {sample.total:,} {facts.units} is on this page"
        f"{scored} (seed {SEED}). The {facts.units} of the tables below are always in it. Scores "
        f"and charts above are about all {facts.units}."
    )


def node_map(facts: Facts) -> Html:
    """The map of the embeddings, with its controls, and the search."""
    search = tag(
        "form",
        tag("label", f"Search a {facts.unit} by its id", for_="search"),
        tag("input", type="search", id="search", autocomplete="off", spellcheck="false"),
        tag(
            "ul",
            id="results",
            class_="results",
            aria_label=f"{facts.units.capitalize()} that were found",
        ),
        tag("span", id="found", class_="help", role="status"),
        id="search-form",
        role="search",
    )
    if isinstance(facts.maps, str):
        return section(
            "map",
            facts.units.capitalize(),
            absent(facts.maps),
            tag("div", search, class_="controls"),
            intro=sample_text(facts),
        )
    modes = dict(COLOURS)
    if facts.task == "regression":
        del modes["confidence"]
    if not facts.results.known[facts.sample.nodes].any():
        del modes["true"], modes["error"]
    colour = _select("map-colour", "Colour", modes)
    layout = None
    if len(facts.maps) > 1:
        options = {str(place): found.name for place, found in enumerate(facts.maps)}
        layout = _select("map-layout", "Layout", options)
    buttons = [
        ("zoom-in", "+", "Zoom in"),
        ("zoom-out", "-", "Zoom out"),
        ("zoom-reset", "○", "Show all"),
    ]
    keys = (
        "Drag to move. The wheel zooms after a click on the map; on a phone, two fingers do. Arrow "
        f"keys go from {facts.unit} to {facts.unit}, Enter shows one, + and - zoom, 0 shows all."
    )
    canvas = tag(
        "canvas",
        id="map-canvas",
        tabindex="0",
        role="application",
        aria_label=f"Map of {len(facts.sample.nodes)} {facts.units} by their embeddings",
        aria_describedby="map-help",
    )
    zoom = tag(
        "div",
        [
            tag("button", sign, type="button", class_="quiet", id=key, aria_label=text)
            for key, sign, text in buttons
        ],
        class_="zoom",
    )
    intro = join(
        f"{facts.units.capitalize()} with similar embeddings lie close to each other. "
        "Embeddings are what the last layer sees. ",
        sample_text(facts),
    )
    return section(
        "map",
        f"Map of the {facts.units}",
        tag("div", search, colour, layout, class_="controls"),
        tag("div", canvas, tag("div", id="tip", hidden=True), zoom, class_="map"),
        tag("ul", id="legend", class_="legend", aria_label="Legend; a click shows one group alone"),
        tag("p", facts.maps[0].about, id="map-about", class_="help"),
        tag("p", keys, id="map-help", class_="help"),
        tag("p", id="map-status", class_="hidden", role="status"),
        intro=intro,
    )


def _select(key: str, label: str, options: dict[str, str]) -> Html:
    inside = [tag("option", text, value=value) for value, text in options.items()]
    return tag("div", tag("label", label, for_=key), tag("select", inside, id=key))


def node_tables(facts: Facts, data: dict[str, Any]) -> Html:
    """The least certain and the wrong nodes."""
    place_of = {node: place for place, node in enumerate(facts.sample.nodes.tolist())}
    nodes = data["nodes"]

    def label(kind: str, place: int) -> Html:
        return name(label_text(nodes[kind][place], facts.task, data["classes"]))

    def row(node: int) -> list[Any]:
        place = place_of[node]
        wrong = nodes["wrong"][place]
        split = facts.results.split[node]
        button = tag(
            "button", name(nodes["id"][place]), type="button", class_="node", data_node=place
        )
        cells: list[Any] = [button]
        if facts.drawings is not None:
            size = int(facts.drawings.sizes[place])
            cells.append((f"{size:,}", size))
        cells += [label("true", place), label("predicted", place)]
        if facts.task == "regression":
            cells.append((plain_number(wrong, 5, sign=True), wrong))
        else:
            sure = float(facts.results.confidence[node])
            cells.append((percent(sure), f"{sure:.6f}"))
            if facts.task == "multilabel":
                cells.append(("-" if wrong is None else str(wrong), -1 if wrong is None else wrong))
        return [*cells, SPLIT_NAMES[SPLITS[split]] if split >= 0 else "none"]

    heads: list[str] = [facts.unit]
    heads += ["nodes"] if facts.drawings is not None else []
    heads += ["true", "predicted"]
    heads += ["error"] if facts.task == "regression" else ["confidence"]
    heads += ["wrong labels"] if facts.task == "multilabel" else []
    heads.append("split")
    numbers = [heads.index("predicted") + 1]
    numbers += [numbers[0] + 1] if facts.task == "multilabel" else []
    numbers += [1] if facts.drawings is not None else []
    split = SPLIT_NAMES[facts.main] if facts.main else "test"
    titles = {
        "classification": f"Wrong {split} {facts.units}, the most confident first",
        "multilabel": f"{split.capitalize()} {facts.units} with the most wrong labels",
        "regression": f"{split.capitalize()} {facts.units} with the largest errors",
    }
    options: dict[str, Any] = {"numbers": numbers, "sortable": True, "hide_caption": True}

    def listed(title: str, chosen: Any, none: str) -> Html:
        rows = [row(node) for node in chosen.tolist()]
        content = table(heads, rows, caption=title, **options) if rows else absent(none)
        return tag("div", tag("h3", title), content)

    none = "There is none." if facts.main else f"There are no labelled {facts.units}."
    if facts.task == "regression":
        sure = absent(f"The interval of a regression is equally wide for all {facts.units}.")
    else:
        title = f"Least certain {facts.units} outside the training set"
        sure = listed(title, facts.listed.uncertain, f"All {facts.units} were used for training.")
    wrong = listed(titles[facts.task], facts.listed.wrong, none)
    # Lists of labels take the whole width.
    parts = [wrong, sure] if facts.task == "multilabel" else side_by_side(wrong, sure)
    intro = "Click an id to see the node with its neighbourhood."
    if facts.drawings is not None:
        intro = "Click an id to see a picture of the graph."
    return section("nodes", f"{facts.units.capitalize()} to look at", parts, intro=intro)


def drawer() -> Html:
    """Where a node is shown; the page's scripts fill it."""
    return tag("dialog", id="node", aria_labelledby="node-title")
