"""The part of a report about how the run was made: data, settings, versions, and its command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lgcn.report.facts import Facts
from lgcn.report.figures import absent, section
from lgcn.report.html import Html, name, tag
from lgcn.report.names import shown_name
from lgcn.report.repeat_command import repeat_command, shown_settings
from lgcn.report.score_sections import edges_text
from lgcn.utils.machine import hardware_and_versions
from lgcn.utils.visible_text import visible

TEXTS = {"cpu": "processor", "torch_geometric": "PyG"}


def settings(facts: Facts) -> Html:
    """Settings, versions, machine, data, and the command that repeats the run."""
    from lgcn import __version__

    run, graph = facts.run, facts.graph
    data = {"graph": shown_name(graph.name)}
    if facts.graphs is not None:
        data = {"set": shown_name(graph.name), "graphs": f"{graph.num_nodes:,}"}
        graph = facts.graphs.graph
    data |= {
        "nodes": f"{graph.num_nodes:,}",
        "edges": edges_text(graph),
        "features": f"{graph.num_features:,}",
        "trained on it": "yes" if facts.is_own else "no",
    }
    machine = {
        TEXTS.get(key, key): visible(str(value)) for key, value in hardware_and_versions().items()
    }
    result = facts.result
    training = {
        "seconds": f"{result['seconds']:.1f}",
        "parameters": f"{result['parameters']:,}",
        "epochs": f"{result['epochs']:,}",
    }
    command = repeat_command(run.settings)
    groups = [
        tag(
            "div",
            tag("h4", shown_name(group)),
            facts_list({k: visible(v) for k, v in values.items()}),
        )
        for group, values in shown_settings(run.settings).items()
    ]
    return section(
        "settings",
        "Settings",
        tag("h3", "Repeat the run"),
        absent(f"The run was trained in Python, on {_unnamed(facts)} that it does not name.")
        if command is None
        else tag("pre", tag("code", visible(command)), tabindex="0"),
        tag(
            "div",
            tag("div", tag("h4", "data"), facts_list(data)),
            tag("div", tag("h4", "training"), facts_list(training)),
            tag(
                "div",
                tag("h4", "this report was made with"),
                facts_list({"lgcn": __version__, **machine}),
            ),
            class_="settings",
        ),
        tag("details", tag("summary", "All settings"), tag("div", groups, class_="settings")),
    )


def _unnamed(facts: Facts) -> str:
    return "a graph" if facts.graphs is None else "graphs"


def facts_list(values: Mapping[str, Any]) -> Html:
    """Names and values."""
    inside = [[tag("dt", name(key)), tag("dd", name(str(value)))] for key, value in values.items()]
    return tag("dl", inside, class_="facts")
