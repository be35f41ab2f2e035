"""Puts a page together: one HTML file with its style, scripts, data and charts inside."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from lgcn.report.html import Html, escape, json_text, tag
from lgcn.utils.choices import Unit

# What the scripts draw of each.
PICTURES: dict[Unit, str] = {"node": "neighbourhoods", "graph": "pictures of graphs"}


def page(
    *,
    kind: str,
    heading: str,
    contents: Mapping[str, str],
    sections: Sequence[Html | None],
    data: Mapping[str, Any],
    scripts: Sequence[str],
    unit: Unit = "node",
) -> str:
    """The page as text.

    Args:
        kind: What it is, above the heading.
        heading: The heading, which is also the title.
        contents: The titles of the sections by their ids.
        sections: The sections.
        data: What the scripts need.
        scripts: The scripts of this room, in order, without the library.
        unit: What the page is about, of which the scripts speak. (default: `"node"`)
    """
    from lgcn import __version__

    inside = "\n".join(_file(name) for name in scripts)
    inside = inside.replace("{{unit}}", unit).replace("{{Unit}}", unit.capitalize())
    code = f'(() => {{\n"use strict";\n{inside}\n}})();'
    library = chart_library()
    links = [tag("li", tag("a", text, href=f"#{key}")) for key, text in contents.items()]
    return Template(_file("page.html")).substitute(
        hashes=" ".join(_hash(text) for text in (library, code)),
        version=__version__,
        title=f"{escape(heading)} - lgcn",
        style=_file("page.css"),
        kind=escape(kind),
        heading=tag("bdi", heading),
        contents="".join(links),
        pictures=PICTURES[unit],
        sections="\n".join(part for part in sections if part is not None),
        footer=f"Written by lgcn {__version__}. This file needs no network and sends nothing.",
        data=json_text(data),
        library=library,
        script=code,
    )


@functools.cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in a scope of its own."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    assert "</script" not in bundle.lower()
    return f"(() => {{{bundle}}})();"


def _file(name: str) -> str:
    return (resources.files("lgcn.report") / name).read_text("utf-8")


def _hash(text: str) -> str:
    """The hash by which the page's Content-Security-Policy allows a script."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
