"""`lgcn serve` as a process: it starts, tells mistakes at once, and stops when it is told to."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lgcn.errors import UsageError
from lgcn.service.server import address, bound_socket, is_loopback


class Server:
    """A service in a process of its own.

    Args:
        arguments: Those of `lgcn serve`.
        **environment: Further variables.
    """

    def __init__(self, *arguments: object, **environment: str) -> None:
        command = [sys.executable, "-m", "lgcn", "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        for _ in range(1200):
            found = re.search(r"http://127\.0\.0\.1:\d+", "".join(self.lines))
            if found or self.process.poll() is not None:
                break
            time.sleep(0.05)
        assert found, self.lines
        self.address = found[0]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return httpx.get(self.address + path, timeout=20, **more)

    def stop(self, number: int) -> float:
        """Sends a signal; gives the seconds that it took to end."""
        start = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(30)
        self.reader.join(5)
        return time.monotonic() - start

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def start(run_of: Callable[[str], Path]) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def run(*arguments: object, **environment: str) -> Server:
        started.append(Server(run_of("classes"), *arguments, **environment))
        return started[-1]

    yield run
    for one in started:
        one.kill()


def test_it_answers_logs_and_stops_at_a_signal(start: Callable[..., Server]) -> None:
    server = start("--name", "mine", LGCN_TOKEN="s3cret")
    assert server.get("/v2/health/ready").json() == {"ready": True}
    assert server.get("/predict/p1").status_code == 401
    token = {"Authorization": "Bearer s3cret"}
    found = server.get("/predict/p1", headers=token).json()
    assert found["model"] == "mine"
    assert found["predictions"][0]["node"] == "p1"
    with socket.create_connection(("127.0.0.1", int(server.address.rsplit(":", 1)[1]))) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\n")  # a request that never ends does not delay the end
        seconds = server.stop(signal.SIGTERM)
    assert seconds < 10  # about one on an idle machine
    assert server.process.returncode == 0
    log = "".join(server.lines)
    assert re.search(r"127\.0\.0\.1 GET /predict/p1 200 [\d.]+ ms", log)
    assert "s3cret" not in log
    assert "Traceback" not in log
    assert log.endswith("stopped\n")


@pytest.mark.slow  # another process
def test_ctrl_c_ends_it_as_well_and_quiet_prints_no_lines(start: Callable[..., Server]) -> None:
    server = start("--quiet")
    assert server.get("/predict/p1").status_code == 200
    assert server.stop(signal.SIGINT) < 10
    assert server.process.returncode == 0
    assert "GET" not in "".join(server.lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--port", "70000"), "--port must be from 0 to 65535, got 70000"),
        (("--max-body", "much"), "--max-body"),
        (("--queue", "0"), "--queue"),
        (("--host", "no such host"), "'no such host'"),
        (("--host", "192.0.2.1"), "192.0.2.1"),
        (("--host", "0.0.0.0", "--port", "0"), "--no-token"),
        (("--token-file", "missing"), "missing"),
    ],
)
def test_mistakes_are_told_before_the_graph_is_loaded(
    lgcn_: Any,
    run_of: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    from lgcn.inference.trained_run import TrainedRun

    monkeypatch.delenv("LGCN_TOKEN", raising=False)
    monkeypatch.setattr(TrainedRun, "load", lambda *_, **__: pytest.fail("too late"))
    assert message in lgcn_("serve", run_of("classes"), *arguments).message


def test_a_port_in_use_is_told(lgcn_: Any, run_of: Callable[[str], Path]) -> None:
    with bound_socket("127.0.0.1", 0) as sock:
        sock.listen()
        port = sock.getsockname()[1]
        message = lgcn_("serve", run_of("classes"), "--port", port).message
    assert f"port {port} of 127.0.0.1 is in use" in message
    assert "--port" in message


def test_the_extra_may_be_missing(
    lgcn_: Any, run_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lgcn.cli import serve

    monkeypatch.setattr(serve, "_there", lambda module: module != "uvicorn")
    message = lgcn_("serve", run_of("classes")).message
    assert "uvicorn" in message
    assert 'pip install "lgcn[serve]"' in message
    assert "fastapi" not in message


@pytest.mark.parametrize("token", ["", "two words", "ünicode", "a\x00b"])
def test_a_token_must_be_one_that_a_header_can_hold(
    lgcn_: Any, run_of: Callable[[str], Path], tmp_path: Path, token: str
) -> None:
    (tmp_path / "token").write_text(token)
    message = lgcn_("serve", run_of("classes"), "--token-file", tmp_path / "token").message
    assert "token" in message
    assert "two words" not in message


def test_addresses() -> None:
    with bound_socket("localhost", 0) as sock:
        assert is_loopback(sock)
        assert address(sock).startswith("http://")
    with bound_socket("0.0.0.0", 0) as sock:
        assert not is_loopback(sock)
    with pytest.raises(UsageError, match=r"name or address.*nobody\.invalid"):
        bound_socket("nobody.invalid", 0)
