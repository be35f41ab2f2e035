"""`lgcn data list`: the data sets that are known by name."""

from rich.table import Table

from lgcn.cli.options import Json
from lgcn.cli.output import out, print_json


def list_(as_json: Json = False) -> None:
    """List the data sets that are known by name."""
    from lgcn.datasets import dataset_names, describe

    rows = {name: describe(name) for name in dataset_names()}
    if as_json:
        print_json(rows)
        return
    table = Table("name", "description")
    for name, text in rows.items():
        table.add_row(name, text)
    out.print(table)
