"""MkDocs hook: the API reference from the package's public names, and notebooks as pages.

The reference is right by construction. Every name in ``lgcn.__all__`` is on the page of the room
that it lives in, and every public name of a room that is not in ``lgcn`` itself comes after these.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "lgcn"

# The page of each room, in this order: its title and one sentence.
ROOMS = {
    "estimator": ("Estimator", "Fit and predict as in scikit-learn."),
    "tables": ("Tables", "Your tables, NetworkX and SciPy graphs as a graph."),
    "datasets": ("Data sets", "Data sets by name."),
    "graph": ("Graph", "The one data structure."),
    "nn": ("Layers and networks", "Layers for PyG models, and the whole network."),
    "ops": ("Operators", "The selection alone."),
    "sampling": ("Sampling", "Sub-graphs to train on."),
    "training": ("Training", "Settings, the training loop and run folders."),
    "inference": ("Inference", "Predictions and embeddings of a trained model."),
    "store": ("Stores", "Graphs on disk that may be larger than memory."),
    "errors": ("Errors", "What you may want to catch. Wrong arguments raise a plain `ValueError`."),
}
API = "API reference"
# The estimators share a base class, which has no entry of its own.
OPTIONS = {"estimator": "\n    options:\n      inherited_members: true"}


def exported(package: Path) -> dict[str, str]:
    """The names in ``__all__`` of a package, each with the module that it is imported from."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    homes: dict[str, str] = {}
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lgcn"):
            homes |= {alias.asname or alias.name: str(node.module) for alias in node.names}
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            names = ast.literal_eval(node.value)
    here = ".".join(["lgcn", *package.relative_to(PACKAGE).parts])
    return {name: homes.get(name, here) for name in names}


def reference() -> dict[str, list[str]]:
    """Each room with the full names on its page."""
    pages: dict[str, list[str]] = {room: [] for room in ROOMS}
    top = exported(PACKAGE)
    for name, module in sorted(top.items(), key=lambda item: item[0].lower()):
        pages.setdefault(_room(module), []).append(f"lgcn.{name}")
    pages["errors"] = [f"lgcn.errors.{name}" for name in _classes(PACKAGE / "errors.py")]
    for room in (room for room in list(pages) if (PACKAGE / room).is_dir()):
        for name, module in exported(PACKAGE / room).items():
            home = _room(module)  # where it is documented, if that room exports it, too
            elsewhere = home != room and name in exported(PACKAGE / home)
            if name not in top and not elsewhere:
                pages[room].append(f"lgcn.{room}.{name}")
    return {room: names for room, names in pages.items() if names}


def _classes(path: Path) -> list[str]:
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    return [node.name for node in nodes if isinstance(node, ast.ClassDef)]


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else "graph"


def on_config(config: Any) -> Any:
    """Puts the pages of the reference into the navigation."""
    for entry in config.nav:
        if API in entry:
            entry[API] = ["api/index.md", *(f"api/{room}.md" for room in reference())]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages of the reference, and a page for each notebook."""
    for name, text in api_pages().items():
        files.append(File.generated(config, name, content=text))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text = notebook_page(Path(file.abs_src_path))
            page = file.src_uri.removesuffix(".ipynb") + ".md"
            files.append(File.generated(config, page, content=text))
    return files


def api_pages() -> dict[str, str]:
    """Path and Markdown of each page of the reference."""
    pages = {}
    rows = []
    for room, names in reference().items():
        title, sentence = ROOMS.get(room, (room.capitalize(), ""))
        body = "\n\n".join(f"::: {name}{OPTIONS.get(room, '')}" for name in names)
        pages[f"api/{room}.md"] = f"# {title}\n\n{sentence}\n\n{body}\n"
        short = [name for name in names if name.count(".") == 1]
        links = ", ".join(f"[`{name}`][{name}]" for name in short or names)
        rows.append(f"| [{title}]({room}.md) | {sentence} | {links} |")
    table = "\n".join(["| page | what | names |", "|---|---|---|", *rows])
    text = "All public names. What is not listed here may change without notice."
    pages["api/index.md"] = f"# API reference\n\n{text}\n\n{table}\n"
    return pages


def notebook_page(path: Path) -> str:
    """A notebook with its stored outputs as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source:
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    link = f"[Download this notebook]({path.name}){{ .md-button download }}"
    return "\n\n".join([*parts, link, ""])


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _printed("".join(output["text"]))
    data = output.get("data", {})
    if "image/svg+xml" in data:
        svg = "".join(data["image/svg+xml"])
        return f'<div class="cell-output">{svg[svg.index("<svg") :]}</div>'
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        lines = "".join(line.strip() for line in html.splitlines())
        return f'<div class="cell-output">{lines}</div>'
    return _printed("".join(data.get("text/plain", output.get("traceback", ""))))


def _printed(text: str) -> str:
    return f"```{{.text .cell-output}}\n{text.rstrip()}\n```"
