"""``lgcn settings``: list the settings and their defaults."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import Json
from lgcn.cli.output import out, print_json


def settings(
    dataset: Annotated[
        str | None, typer.Option(help="Those of this data set; `tables` is any graph of your own.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="Those of this recipe.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With this one, e.g. --set labels=many."),
    ] = None,
    as_json: Json = False,
) -> None:
    """The settings that --set and config files take, with their defaults."""
    from lgcn.datasets import describe
    from lgcn.training import Config
    from lgcn.training.settings import merge_settings

    if dataset is not None:
        describe(dataset)  # a name that is wrong has no settings
    flags = {"dataset": dataset, "recipe": recipe}
    given = merge_settings(set_ or [])
    given |= {key: value for key, value in flags.items() if value is not None}
    values = (Config.create(**given) if given else Config()).to_dict()
    if as_json:
        print_json({key: {"default": values[key], "what": doc} for key, doc in Config.describe()})
        return
    table = Table("setting", "default", "what")
    for key, doc in Config.describe():
        value = values[key]
        table.add_row(key, "none" if value is None else escape(str(value)), escape(doc))
    out.print(table)
    if not given:
        out.print("Recipes and data sets change some: lgcn settings --dataset tables")
