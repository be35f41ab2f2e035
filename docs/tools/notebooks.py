"""Runs the notebooks and stores their outputs, which the site shows.

python docs/tools/notebooks.py [NAME ...]        (cora needs its files: LGCN_DATA)
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"


def execute(path: Path) -> Any:
    """The notebook with its outputs; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    # No times in the file: the same run gives the same file.
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False, coalesce_streams=True
    )
    return client.execute(cwd=str(path.parent))


def main() -> None:
    names = sys.argv[1:] or [path.stem for path in sorted(FOLDER.glob("*.ipynb"))]
    for path in (FOLDER / f"{name}.ipynb" for name in names):
        notebook = execute(path)
        notebook.metadata["language_info"] = {"name": "python"}  # not the version of this machine
        for cell in notebook.cells:  # warnings name files of this machine
            if cell.cell_type == "code":
                cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
