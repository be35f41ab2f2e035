"""The command `lgcn settings`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import Json
from lgcn.cli.output import out, print_json
from lgcn.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from lgcn.training.settings import Settings

# What people change most, shown first.
COMMON = (
    "preset",
    "k",
    "hidden_channels",
    "lgcl_channels",
    "num_layers",
    "dropout",
    "lr",
    "weight_decay",
    "max_epochs",
    "patience",
    "training",
    "max_nodes",
    "device",
)


def settings(
    dataset: Annotated[
        str | None, typer.Option(help="Those of this data set; `tables` is any graph of your own.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Those of this preset.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With this one, e.g. --set labels=many."),
    ] = None,
    as_json: Json = False,
) -> None:
    """The settings that --set and config files take, with their defaults."""
    from lgcn.training.settings import Settings, merge_settings

    if dataset is not None:
        _check_dataset(dataset)
    flags = {"dataset": dataset, "preset": preset}
    given = merge_settings(set_ or [])
    given |= {key: value for key, value in flags.items() if value is not None}
    chosen = Settings.create(**given)
    if as_json:
        print_json({row["name"]: row for row in _rows(chosen)})
        return
    if given:
        _show_groups(chosen, "value")
        return
    few, many = (Settings.create(dataset="tables", labels=labels) for labels in ("few", "many"))
    _show_common(few, many)
    _show_groups(chosen, "default")
    out.print(
        "Defaults are those for your own tables with few labels. Other values: "
        "lgcn settings --set labels=many, --dataset cora, --preset NAME",
        soft_wrap=True,
    )


def _check_dataset(name: str) -> None:
    """Reports a wrong name. Here, a user's own tables and stores have names too."""
    from lgcn.datasets import describe

    try:
        describe(name)
    except UsageError:
        hint = did_you_mean(name, ("tables", "store"))
        if hint.startswith("known"):
            raise
        raise UsageError(f"there is no data set {name!r}; {hint}") from None


def _rows(chosen: "Settings") -> list[dict[str, Any]]:
    """One row per setting: its flat name, group, value, description, and what it takes."""
    from lgcn.training.models import model_names
    from lgcn.training.presets import preset_names
    from lgcn.training.settings import TOP, Settings, flat_names, groups_of

    values = chosen.flat()
    groups = groups_of(chosen.model.name)
    places = {**{name: ("", name) for name in TOP}, **flat_names(chosen.model.name)}
    choices = {"model": model_names(), "preset": preset_names()}
    rows = []
    for name, (group, field) in places.items():
        cls = groups[group] if group else Settings
        wants = f"one of {', '.join(choices[name])}" if name in choices else cls.wants(field)
        what = cls.model_fields[field].description
        rows.append(
            {"name": name, "group": group, "default": values[name], "what": what, "wants": wants}
        )
    return rows


def _show_common(few: "Settings", many: "Settings") -> None:
    table = Table(title="Most used, for your own tables", title_justify="left")
    for column in ("setting", "few labels", "many labels", "what"):
        table.add_column(column)
    rows = {row["name"]: row for row in _rows(few)}
    for name in COMMON:
        values = (_text(values.flat()[name]) for values in (few, many))
        table.add_row(name, *values, escape(rows[name]["what"]))
    out.print(table)


def _show_groups(chosen: "Settings", column: str) -> None:
    rows = _rows(chosen)
    for group in dict.fromkeys(row["group"] for row in rows):
        title = f"{group or 'general'}: --set {group + '.' if group else ''}NAME=VALUE"
        table = Table(title=title, title_justify="left")
        for name in ("setting", column, "what", "takes"):
            table.add_column(name)
        for row in rows:
            if row["group"] == group:
                text = (row["name"], _text(row["default"]), row["what"], row["wants"])
                table.add_row(*map(escape, text))
        out.print(table)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)
