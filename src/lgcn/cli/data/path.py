"""`lgcn data path`: where the files of a data set are."""

import sys

from rich.markup import escape

from lgcn.cli.options import DatasetName, Json, Root
from lgcn.cli.output import err, print_json, print_line


def path(dataset: DatasetName, root: Root = None, as_json: Json = False) -> None:
    """Print where the files of a data set are."""
    from lgcn.datasets import dataset_files

    files = [str(file) for file in dataset_files(dataset, root)]
    if as_json:
        print_json({"name": dataset, "files": files})
    elif files and sys.stdout.isatty():
        print_line("\n".join(files))
    elif files:
        print("\n".join(files))  # for a program: without escapes
    else:
        err.print(escape(f"{dataset} needs no files"))
