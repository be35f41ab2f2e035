"""An explanation as a picture: the node in the middle, the neighbours that mattered around it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from lgcn.explain.explanation import Explanation

NODES = 16  # nodes around the middle, at most
COLUMNS = 8
LAYERS = 3  # LGCLs whose selections are drawn
WIDTH, HEIGHT = 960, 640
CENTRE = (300, 320)
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
    nodes = _drawn_nodes(found)
    places = _places(nodes, found)
    title = f"Why {_text(found.node)} is predicted as {_text(_short(found.predicted, 40))}"
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
        for radius in sorted({_radius(entry["hops"]) for entry in nodes if entry["hops"]})
    ]
    parts += _edges(found, places)
    parts += _circles(nodes, places, found)
    parts += _columns(found)
    parts += _layers(found)
    parts += _legend()
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
                if one["hops"] == 0
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
    for layer in found.selected[:LAYERS]:
        places = layer["k"] * layer["features"]
        head = f"LGCL {layer['layer']}: who has the largest value of {layer['features']} features"
        parts.append(f'<text class="ink" x="{left}" y="{top}">{_text(head)}</text>')
        x = float(left)
        names = []
        ranked = sorted(layer["neighbours"], key=lambda one: -one["first"])
        for number, one in enumerate(ranked):
            length = width * one["first"] / layer["features"]
            tip = f"{one['node']}: {one['count']} of {places} places, {one['first']} at rank 1"
            shade = 0.95 - 0.6 * (number % 4) / 3
            parts.append(
                f'<rect class="plus" fill-opacity="{shade:.2f}" x="{x:.1f}" y="{top + 8}" '
                f'width="{max(length - 1, 0.5):.1f}" height="16"><title>{_text(tip)}</title></rect>'
            )
            if number < 3:
                names.append(f"{_short(one['node'], 12)} {one['first'] / layer['features']:.0%}")
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


def _legend() -> list[str]:
    y = HEIGHT - 22
    return [
        f'<circle class="plus" cx="30" cy="{y}" r="8"/><text class="on" x="30" y="{y + 5}" '
        f'text-anchor="middle">+</text><text class="ink small" x="44" y="{y + 4}">speaks for it'
        f'</text><circle class="minus" cx="140" cy="{y}" r="8"/><text class="on" x="140" '
        f'y="{y + 5}" text-anchor="middle">\u2212</text><text class="ink small" x="154" '
        f'y="{y + 4}">speaks against it</text><text class="soft small" x="270" y="{y + 4}">'
        "Larger circles and thicker lines contribute more. Rings: 1, 2, 3 or more hops.</text>"
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
    named = ", ".join(f"{one['node']} ({one['contribution']:+.3g})" for one in nodes if one["hops"])
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
