import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lgcn.datasets import dataset_files, load_dataset, planetoid
from lgcn.datasets.download import download
from lgcn.errors import DataError

from .planetoid_files import TEST_NODES, write_planetoid

CONTENT = b"some bytes" * 20_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        if self.path != "/cut":
            return super().do_GET()
        self.send_response(200)  # promises more than it sends
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:100])
        return None


@pytest.fixture
def served(tmp_path: Path) -> Path:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "file").write_bytes(CONTENT)
    return folder


@pytest.fixture
def url(served: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("LGCN_OFFLINE")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(served)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_download(url: str, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "file"
    assert download(url + "file", SHA256, target) == target
    assert target.read_bytes() == CONTENT
    assert files_in(target.parent) == [target]


@pytest.mark.parametrize(
    ("file", "sha256", "message"),
    [("file", "0" * 64, "SHA-256"), ("absent", SHA256, "404"), ("cut", SHA256, "cut")],
)
def test_failure_leaves_nothing(
    file: str, sha256: str, message: str, url: str, tmp_path: Path
) -> None:
    target = tmp_path / "target" / "name"
    with pytest.raises(DataError, match=message) as caught:
        download(url + file, sha256, target)
    assert url + file in str(caught.value)
    assert files_in(target.parent) == []


def test_failure_keeps_what_was_there(url: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    with pytest.raises(DataError, match="SHA-256"):
        download(url + "file", "0" * 64, target)
    assert target.read_bytes() == b"old"


def test_no_server(url: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot download"):
        download("http://127.0.0.1:1/file", SHA256, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_offline(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LGCN_OFFLINE", "1")
    with pytest.raises(DataError, match="LGCN_OFFLINE"):
        download(url + "file", SHA256, tmp_path / "target")
    monkeypatch.setenv("LGCN_OFFLINE", "0")
    assert download(url + "file", SHA256, tmp_path / "target").is_file()


@pytest.mark.parametrize("scheme", ["http://example.org/", "ftp://example.org/", "file://"])
def test_only_https(scheme: str, url: str, served: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="https"):
        download(f"{scheme}{served / 'file'}", SHA256, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_planetoid_is_downloaded_into_the_cache(
    url: str, served: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_planetoid(served)
    monkeypatch.setattr(planetoid, "URL", url)
    with pytest.raises(DataError, match="SHA-256"):  # the pinned sums are those of the real files
        load_dataset("cora")
    assert files_in(cache) == []

    for file in served.glob("ind.cora.*"):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        monkeypatch.setitem(planetoid.SHA256, file.name, digest)
    assert load_dataset("cora").num_nodes == max(TEST_NODES) + 1
    assert {file.parent for file in dataset_files("cora")} == {cache / "planetoid"}
    monkeypatch.setenv("LGCN_OFFLINE", "1")
    assert load_dataset("cora").num_nodes == max(TEST_NODES) + 1
