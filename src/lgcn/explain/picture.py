"""An explanation as a picture: the node in the middle, the neighbours that mattered around it.

A whole graph is drawn by its edges instead, see `lgcn.explain.layout`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from lgcn.explain.layout import spring_layout

if TYPE_CHECKING:
    from lgcn.explain.explanation import Explanation

NODES = 16  # nodes around the middle, at most
GRAPH_NODES = 40  # nodes of a whole graph, at most
COLUMNS = 8
LAYERS = 3  # LGCLs whose selections are drawn
SELECTIONS = 4  # LGCLs and read-outs of a graph whose selections are drawn
WIDTH, HEIGHT = 960, 640
CENTRE = (300, 320)
FRAME = (50, 90, 530, 555)  # left, top, right and bottom of a whole graph
RINGS = (0, 135, 210, 255)  # distance from the middle by hops

# Blue and orange differ for all common kinds of colour vision; + and - say the same.
STYLE = """
.page{fill:#fff}.ink{fill:#1b1b1b}.soft{fill:#555}.line{stroke:#8a8a8a}
.plus{fill:#0b66b2}.minus{fill:#b45309}.plus-line{stroke:#0b66b2}.minus-line{stroke:#b45309}
.own{fill:#fff;stroke:#1b1b1b}.ring{fill:none;stroke:#d0d0d0}.on{fill:#fff}
text{font-family:system-ui,sans-serif;font-size:13px}.small{font-size:11px}.big{font-size:17px}
@media (prefers-color-scheme:dark){
.page{fill:#16181c}.ink{fill:#f0f0f0}.soft{fill:#b8b8b8}.line{stroke:#888}
.plus{fill:#5aaef2}.minus{fill:#f0a04b}.plus-line{stroke:#5aaef2}.minus-line{stroke:#f0a04b}
.own{fill:#16181c;stroke:#f0f0f0}.ring{stroke:#3a3d44}.on{fill:#101010}}
"""
# Characters that XML cannot hold.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def draw(found: Explanation) -> str:
    """The text of an SVG file, which needs no other file."""
    whole = found.unit == "graph"
    nodes = found.by_node[:GRAPH_NODES] if whole else _drawn_nodes(found)
    places = _graph_places(nodes, found) if whole else _places(nodes, found)
    what = f"{'graph ' if whole else ''}{found.node}"
    title = f"Why {_text(what)} is predicted as {_text(_short(found.predicted, 40))}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'width="{WIDTH}" height="{HEIGHT}" aria-labelledby="title desc">',
        f'<title id="title">{title}</title>',
        f'<desc id="desc">{_text(_description(found, nodes))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text x="20" y="32" class="ink big">{title}</text>',
        f'<text x="20" y="52" class="soft">{_text(_subtitle(found))}</text>',
    ]
    parts += [
        f'<circle class="ring" cx="{CENTRE[0]}" cy="{CENTRE[1]}" r="{radius}"/>'
        for radius in sorted({_radius(entry["hops"]) for entry in nodes if entry.get("hops")})
    ]
    parts += _edges(found, places)
    parts += _circles(nodes, places, found)
    parts += _columns(found)
    parts += _layers(found)
    parts += _legend(_hint(found))
    return "\n".join([*parts, "</svg>\n"])


def _drawn_nodes(found: Explanation) -> list[dict[str, Any]]:
    """The node itself, its neighbours first, and others with large contributions."""
    own = [entry for entry in found.by_node if entry["hops"] == 0][:1]
    others = [entry for entry in found.by_node if entry["hops"] > 0]
    near = sorted(others, key=lambda entry: (entry["hops"] > 1, -abs(entry["contribution"])))
    return own + near[:NODES]


def _places(nodes: list[dict[str, Any]], found: Explanation) -> dict[Any, tuple[float, float]]:
    """Where each node is drawn: on the ring of its distance, near the node it is joined to."""
    places: dict[Any, tuple[float, float]] = {}
    turns: dict[Any, float] = {}
    for hops in sorted({entry["hops"] for entry in nodes}):
        ring = [entry for entry in nodes if entry["hops"] == hops]
        parents = {
            one["source"]: turns[one["target"]]
            for one in found.by_edge[::-1]
            if one["target"] in turns
        }
        ring.sort(key=lambda entry: parents.get(entry["node"], 0.0))
        first = parents.get(ring[0]["node"], 0.0)
        for number, entry in enumerate(ring):
            turn = first + 2 * math.pi * number / len(ring)
            turns[entry["node"]] = turn % (2 * math.pi)
            radius = _radius(hops)
            places[entry["node"]] = (
                CENTRE[0] + radius * math.sin(turn),
                CENTRE[1] - radius * math.cos(turn),
            )
    return places


def _graph_places(
    nodes: list[dict[str, Any]], found: Explanation
) -> dict[Any, tuple[float, float]]:
    """Where each node of a graph is drawn: near those that it is joined to."""
    # In the order of the graph and not of the contributions, so that only the edges matter.
    names = sorted((one["node"] for one in nodes), key=lambda name: (len(str(name)), str(name)))
    number = {name: place for place, name in enumerate(names)}
    edges = [
        (number[one["source"]], number[one["target"]])
        for one in found.by_edge
        if one["source"] in number and one["target"] in number
    ]
    left, top, right, bottom = FRAME
    return {
        name: (left + (right - left) * x, top + (bottom - top) * y)
        for name, (x, y) in zip(names, spring_layout(len(names), sorted(edges)), strict=True)
    }


def _radius(hops: int) -> int:
    return RINGS[min(hops, len(RINGS) - 1)]


def _edges(found: Explanation, places: dict[Any, tuple[float, float]]) -> list[str]:
    drawn = [one for one in found.by_edge if one["source"] in places and one["target"] in places]
    largest = max((abs(one["contribution"]) for one in drawn), default=0.0) or 1.0
    parts = []
    for one in reversed(drawn):
        (x1, y1), (x2, y2) = places[one["source"]], places[one["target"]]
        kind = "plus" if one["contribution"] >= 0 else "minus"
        thick = 0.8 + 6 * abs(one["contribution"]) / largest
        tip = f"edge {one['source']} - {one['target']}: {one['contribution']:+.3g}"
        parts.append(
            f'<line class="{kind}-line" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke-width="{thick:.1f}" stroke-opacity="0.6"><title>{_text(tip)}</title></line>'
        )
    return parts


def _circles(
    nodes: list[dict[str, Any]], places: dict[Any, tuple[float, float]], found: Explanation
) -> list[str]:
    largest = max((abs(one["contribution"]) for one in nodes), default=0.0) or 1.0
    counts = _counts(found)
    parts = []
    for one in nodes:
        x, y = places[one["node"]]
        kind = "plus" if one["contribution"] >= 0 else "minus"
        size = 9 + 15 * math.sqrt(abs(one["contribution"]) / largest)
        tip = f"{one['node']}: {one['contribution']:+.3g}"
        for number, count in counts.get(one["node"], {}).items():
            tip += f", LGCL {number} selects it for {count} places"
        sign = _sign(one["contribution"])
        parts.append(
            f'<g><title>{_text(tip)}</title><circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" '
            f'r="{size:.1f}"/>'
            + (
                f'<circle class="own" style="fill:none" stroke-width="2.5" cx="{x:.1f}" '
                f'cy="{y:.1f}" r="{size + 4:.1f}"/>'
                if one.get("hops") == 0
                else ""
            )
            + f'<text class="on" x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">{sign}</text>'
            f'<text class="ink small" x="{x:.1f}" y="{y + size + 16:.1f}" text-anchor="middle">'
            f"{_text(_short(one['node'], 14))}</text></g>"
        )
    return parts


def _columns(found: Explanation) -> list[str]:
    """Bars of the columns that contribute most."""
    left, middle, top, step = 600, 765, 96, 24
    entries = found.by_column[:COLUMNS]
    largest = max((abs(one["contribution"]) for one in entries), default=0.0) or 1.0
    parts = [f'<text class="ink" x="{left}" y="{top - 16}">Columns, over all nodes</text>']
    for number, one in enumerate(entries):
        y = top + step * number
        kind = "plus" if one["contribution"] >= 0 else "minus"
        length = 110 * abs(one["contribution"]) / largest
        parts += [
            f'<text class="ink small" x="{middle - 8}" y="{y + 11}" text-anchor="end">'
            f"{_text(_short(one['column'], 24))}</text>",
            f'<rect class="{kind}" x="{middle}" y="{y}" width="{length:.1f}" height="14"/>',
            f'<text class="soft small" x="{middle + length + 6:.1f}" y="{y + 11}">'
            f"{_text(_signed(one['contribution']))}</text>",
        ]
    return parts


def _layers(found: Explanation) -> list[str]:
    """For each LGCL, of how many features each neighbour has the largest value."""
    left, top, width = 600, 330, 330
    parts = []
    layers = found.selected[:LAYERS] if found.unit == "node" else _all_selections(found)
    for layer in layers:
        places, features = layer["k"] * layer["features"], layer["features"]
        head = f"LGCL {layer.get('layer')}: who has the largest value of {features} features"
        if found.unit == "graph":  # of an LGCL, the places are those of all nodes
            head = layer["title"]
            places = layer["filled"]
            features = max(sum(one["first"] for one in layer["neighbours"]), 1)
        parts.append(f'<text class="ink" x="{left}" y="{top}">{_text(head)}</text>')
        x = float(left)
        names = []
        ranked = sorted(layer["neighbours"], key=lambda one: -one["first"])
        for number, one in enumerate(ranked):
            length = width * one["first"] / features
            tip = f"{one['node']}: {one['count']} of {places} places, {one['first']} at rank 1"
            shade = 0.95 - 0.6 * (number % 4) / 3
            parts.append(
                f'<rect class="plus" fill-opacity="{shade:.2f}" x="{x:.1f}" y="{top + 8}" '
                f'width="{max(length - 1, 0.5):.1f}" height="16"><title>{_text(tip)}</title></rect>'
            )
            if number < 3:
                names.append(f"{_short(one['node'], 12)} {one['first'] / features:.0%}")
            x += length
        if x < left + width - 1:
            parts.append(
                f'<rect class="ring" x="{x:.1f}" y="{top + 8}" width="{left + width - x:.1f}" '
                f'height="16"><title>features without a neighbour</title></rect>'
            )
        more = len(layer["neighbours"]) - len(names)
        text = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        parts.append(
            f'<text class="soft small" x="{left}" y="{top + 40}">'
            f"{_text(text or 'selects no neighbour')}</text>"
        )
        top += 66
    return parts


def _all_selections(found: Explanation) -> list[dict[str, Any]]:
    """The LGCLs of a graph, then its read-outs: the last ones, which read what was made of all."""
    layers = [
        {**one, "title": f"LGCL {one['layer']}: whose values come first, over all nodes"}
        for one in found.selected[:LAYERS]
    ]
    read = [
        {**one, "title": f"Read-out {one['readout']} of {_reads(one)}: whose values come first"}
        for one in found.readouts
    ]
    return layers + read[len(read) - max(0, SELECTIONS - len(layers)) :]


def _reads(readout: dict[str, Any]) -> str:
    return "the embedding" if readout["level"] == 0 else f"LGCL {readout['level']}"


def _hint(found: Explanation) -> str:
    """How the picture is to be read."""
    text = "Larger circles and thicker lines contribute more."
    if found.unit == "node":
        return f"{text} Rings: 1, 2, 3 or more hops."
    if len(found.by_node) > GRAPH_NODES:
        text += f" Drawn: the {GRAPH_NODES} of {len(found.by_node)} nodes that contribute most."
    return text


def _legend(hint: str) -> list[str]:
    y = HEIGHT - 22
    return [
        f'<circle class="plus" cx="30" cy="{y}" r="8"/><text class="on" x="30" y="{y + 5}" '
        f'text-anchor="middle">+</text><text class="ink small" x="44" y="{y + 4}">speaks for it'
        f'</text><circle class="minus" cx="140" cy="{y}" r="8"/><text class="on" x="140" '
        f'y="{y + 5}" text-anchor="middle">\u2212</text><text class="ink small" x="154" '
        f'y="{y + 4}">speaks against it</text><text class="soft small" x="270" y="{y + 4}">'
        f"{_text(hint)}</text>"
    ]


def _counts(found: Explanation) -> dict[Any, dict[int, int]]:
    """For each neighbour, how many places it fills in which LGCL."""
    counts: dict[Any, dict[int, int]] = {}
    for layer in found.selected:
        for one in layer["neighbours"]:
            counts.setdefault(one["node"], {})[layer["layer"]] = one["count"]
    return counts


def _subtitle(found: Explanation) -> str:
    text = f"explains {_short(found.explained, 40)}"
    if found.against is not None:
        text += f" against {_short(found.against, 40)}"
    if found.confidence is not None:
        text = f"confidence {found.confidence:.1%}; {text}"
    return f"{text}: score {found.score:.3g}, without features {found.baseline:.3g}"


def _description(found: Explanation, nodes: list[dict[str, Any]]) -> str:
    # A node itself is named in the title.
    others = [one for one in nodes if one.get("hops") != 0]
    named = ", ".join(f"{one['node']} ({one['contribution']:+.3g})" for one in others)
    columns = ", ".join(
        f"{one['column']} ({one['contribution']:+.3g})" for one in found.by_column[:3]
    )
    return (
        f"{_subtitle(found)}. Nodes that contribute most: {named or 'none but itself'}. "
        f"Columns that contribute most: {columns or 'none'}."
    )


def _signed(value: float) -> str:
    return f"{_sign(value)}{abs(value):.3g}"


def _sign(value: float) -> str:
    return "+" if value >= 0 else "\u2212"


def _short(value: Any, length: int) -> str:
    text = str(value)
    return text if len(text) <= length else text[: length - 1] + "\u2026"


def _text(value: Any) -> str:
    """Text for XML, with what is markup escaped and what XML cannot hold replaced."""
    return escape(_FORBIDDEN.sub("\ufffd", str(value)))
