"""`lgcn data`: what data sets there are, and what a graph looks like."""

import typer

from lgcn.cli.data.check import check
from lgcn.cli.data.info import info
from lgcn.cli.data.list_ import list_
from lgcn.cli.data.path import path
from lgcn.cli.words import Command

data_app = typer.Typer(
    help="List data sets, and inspect them or your own tables.", no_args_is_help=True
)
for _name, _command in (("list", list_), ("info", info), ("check", check), ("path", path)):
    data_app.command(_name, cls=Command)(_command)
