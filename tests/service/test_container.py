"""The image for a service: what its Dockerfile says, and that the service needs no rights."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import lgcn
from tests.utils.test_jit import drop_capabilities

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "docker"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, lines joined."""
    text = (FOLDER / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_image_runs_as_an_ordinary_user_without_build_tools() -> None:
    found = instructions()
    starts = [i for i, (name, _) in enumerate(found) if name == "FROM"]
    assert len(starts) == 2
    final = found[starts[1] :]
    users = [argument for name, argument in final if name == "USER"]
    assert users == ["10001:10001"]
    assert [name for name, _ in final if name == "RUN"] == []  # nothing is installed there
    after = [name for name, _ in final[[n for n, _ in final].index("USER") :]]
    assert "COPY" not in after  # nothing belongs to that user, so it can change nothing
    for name, argument in found:
        assert name in (
            *("FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE"),
            *("HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"),
        )
        if name == "FROM":
            assert re.match(r"python:\d+\.\d+\.\d+-slim-\w+( AS \w+)?$", argument)
        if "pip install" in argument:
            assert argument.count("--constraint constraints.txt") == argument.count("pip install")
        assert not re.search(r"(?i)(token|password|secret)\s*=\s*\S", argument)
        assert "http://127.0.0.1" in argument or "://" not in argument


def test_the_files_and_flags_that_it_names_exist(lgcn_: Callable[..., object]) -> None:
    for name, argument in instructions():
        if name == "COPY" and "--from" not in argument:
            for path in argument.split()[:-1]:
                assert (ROOT / path).exists(), path
    help_ = lgcn_("serve", "--help").out  # type: ignore[attr-defined]
    texts = [(FOLDER / name).read_text() for name in ("start.sh", "README.md")]
    served = [line for text in texts for line in text.splitlines() if "lgcn" in line]
    flags = set(re.findall(r"--[a-z-]+", " ".join(line for line in served if "serve " in line)))
    flags -= {"--rm", "--build-arg"}
    assert {"--host", "--port", "--edges", "--nodes", "--token-file"} <= flags
    for flag in flags:
        assert flag in help_
    subprocess.run(["sh", "-n", FOLDER / "start.sh"], check=True)


@pytest.mark.slow  # kernels are compiled anew
@pytest.mark.timeout(900)
def test_the_service_runs_without_rights_where_nothing_can_be_written(
    run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    """Package, home, run and tables are read-only, and no right of root helps."""
    if sys.platform != "linux":
        pytest.skip("drops capabilities of Linux")
    run = Path(shutil.copytree(run_of("classes"), tmp_path / "run"))
    data = Path(shutil.copytree(run_of("classes").parent / "data", tmp_path / "data"))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(lgcn.__file__).parent, tmp_path / "package" / "lgcn", ignore=ignored)
    scratch, home = tmp_path / "tmp", tmp_path / "home"
    scratch.mkdir()
    home.mkdir()
    frozen = [path for path in (tmp_path, *tmp_path.rglob("*")) if path != scratch]
    for path in frozen:
        path.chmod(path.stat().st_mode & 0o555)
    env = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(tmp_path / "package"), "HOME": str(home), "TMPDIR": str(scratch)}
    tables = ("--edges", data / "edges.csv", "--nodes", data / "nodes.csv")
    log = scratch / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "lgcn", "serve", run, *tables, "--port", "0"],
            env=env,
            cwd=home,
            stderr=file,
            preexec_fn=drop_capabilities,
        )
    try:
        found = None
        for _ in range(6000):
            found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.1)
        assert found, log.read_text()
        address = found[0]
        answer = httpx.get(f"{address}/predict/p7", timeout=60)
        assert answer.json()["predictions"][0]["node"] == "p7"
        new = {"new_nodes": [{"id": "x"}], "edges": [{"source": "x", "target": "p3"}]}
        assert httpx.post(f"{address}/predict", json=new, timeout=60).status_code == 200
        for _ in range(300):  # the report is made in the folder for writing
            answer = httpx.get(f"{address}/report", timeout=60)
            if answer.status_code != 202:
                break
        assert answer.status_code == 200, answer.text
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        for path in frozen:
            path.chmod(path.stat().st_mode | 0o200)
    assert "Traceback" not in log.read_text()
    outside = [path for path in tmp_path.rglob("*") if scratch not in path.parents]
    assert sorted(outside) == sorted([*frozen[1:], scratch])
