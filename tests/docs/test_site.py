"""The site builds strictly, needs no network, and its reference and pictures are up to date."""

import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pictures
import pytest
from mathml import to_mathml
from pages import exported, notebook_page, reference

import lgcn
from tests.browser import DESKTOP, PHONE, Browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    assert set(lgcn.__all__) == set(exported(ROOT / "src" / "lgcn"))
    training = exported(ROOT / "src" / "lgcn" / "training")
    names = [f"lgcn.{name}" for name in lgcn.__all__]
    names += [f"lgcn.training.{name}" for name in training if name not in lgcn.__all__]
    for name in names:
        assert f'id="{name}"' in pages, name
    for name in ("LGCNClassifier", "LGCNRegressor"):  # also what they inherit
        for method in ("fit", "predict", "transform", "save", "load"):
            assert f'id="lgcn.{name}.{method}"' in pages, method
    listed = [name for page in reference().values() for name in page]
    assert len(listed) == len(set(listed))


def test_no_page_loads_anything_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?([^\s\">]+)", text)
        loaded += re.findall(r"<link[^>]*\shref=\"?([^\s\">]+)", text)
        far = [url for url in loaded if re.match(r"(https?:)?//", url)]
        assert not far, f"{page.relative_to(site)}: {far}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", sheet.read_text()), sheet


def test_docstrings_leave_no_markup_of_another_language(site: Path) -> None:
    for page in (site / "api").glob("*.html"):
        text = re.sub(r"<[^>]+>", "", page.read_text())
        assert not re.search(r":(class|func|meth|math|mod):|\.\. math::|`_", text), page.name


def test_the_pictures_are_what_the_code_draws() -> None:
    drawn = pictures.pictures()
    stored = {path.name: path.read_text() for path in pictures.FOLDER.glob("*.svg")}
    assert stored == drawn, "run python docs/tools/pictures.py"


def test_algorithm_1_in_pictures_grows_by_its_rules() -> None:
    graph, _ = pictures.plane()
    sets = pictures.iterations()
    assert [len(nodes) for nodes in sets] == [3, 11, 19, 24]
    for before, after in pairwise(sets):
        near = {j for i, j in graph.edge_index.T.tolist() if i in before}
        assert before < after <= before | near
    text = (ROOT / "docs" / "how-it-works" / "algorithm1.md").read_text()
    shown = [f"algorithm1-{i}.svg" for i in range(len(sets))]
    assert re.findall(r"algorithm1-\d\.svg", text) == shown


def test_files_that_documents_and_comments_name_exist() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    documents += (ROOT / "docs").glob(
        "[!e]*/*.md"
    )  # the evidence also names files of other projects
    text = "".join(path.read_text() for path in documents)
    named = set(re.findall(r"`((?:src|tests|benchmarks|docs|examples)/[\w./-]*)`", text))
    assert len(named) > 20
    sources = (path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml"))
    named |= {
        page for path in sources for page in re.findall(r"docs/[\w/-]+\.md", path.read_text())
    }
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_to_files_of_the_repository_work(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / name).read_text()):
        assert "://" in target or (ROOT / target).exists(), target


def test_formulas_become_mathml() -> None:
    assert to_mathml("k + 1") == "<math><mrow><mi>k</mi><mo>+</mo><mn>1</mn></mrow></math>"
    assert "<msub><mi>N</mi>" in to_mathml("N_{init}")
    assert "<mfrac>" in to_mathml(r"\frac{1}{n} \sum_i x_i")
    assert to_mathml(r"a &= b \\ c &= d", block=True).count("<mtr>") == 2
    with pytest.raises(ValueError, match="nonsense"):
        to_mathml(r"\nonsense")


def test_a_notebook_becomes_a_page_with_its_outputs() -> None:
    page = notebook_page(ROOT / "docs" / "notebooks" / "pandas.ipynb")
    assert page.startswith("# ")
    assert "```python" in page
    assert "cell-output" in page


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_the_start_page_opens_in_a_browser(
    site: Path, size: tuple[int, int], browser: Browser
) -> None:
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        browser.open(f"{address}index.html", size=size)
        assert browser.find("h1").is_displayed()
        assert browser.errors() == []
        assert [url for url in browser.requests() if not url.startswith(address)] == []
        assert browser.overflow() == 0
        browser.open("about:blank")  # nothing asks the server any more
        server.shutdown()
