"""The pages in a real browser: no errors, usable by keyboard, on phones and in the dark."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lgcn.service import report_page
from lgcn.service.app import make_app
from lgcn.service.served_run import ServedRun
from lgcn.service.server import address, bound_socket
from tests.browser import DESKTOP, PHONE, Browser

READY = "return document.body && document.body.dataset.ready === 'true'"
SHOWN = """
const shown = document.querySelector('#answer p')?.textContent;
return shown && !shown.startsWith('Computing')
"""


class Live:
    """A service at a port of this machine, in a thread of this process."""

    def __init__(self, served: ServedRun, token: str | None = None) -> None:
        import uvicorn

        self.sock = bound_socket("127.0.0.1", 0)
        self.address = address(self.sock)
        app = make_app(served, token=token, hosts=("127.0.0.1",))
        self.server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        task = self.server.serve(sockets=[self.sock])
        self.thread = threading.Thread(target=asyncio.run, args=(task,), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture
def live(served_run: Callable[..., ServedRun]) -> Iterator[Callable[..., str]]:
    """Starts services at real addresses."""
    started: list[Live] = []

    def start(name: str = "classes", token: str | None = None) -> str:
        started.append(Live(served_run(name), token))
        return started[-1].address

    yield start
    for one in started:
        one.stop()


def check(browser: Browser, where: str) -> None:
    """Nothing went wrong, nothing came from elsewhere, and everyone can use it."""
    assert browser.errors() == []
    assert [url for url in browser.requests() if not url.startswith(where)] == []
    assert browser.overflow() == 0
    assert browser.violations() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_a_prediction_by_keyboard_on_every_screen(
    browser: Browser, live: Callable[..., str], size: tuple[int, int], dark: bool, tmp_path: Path
) -> None:
    where = live()
    browser.open(where, size=size, dark=dark, wait=READY)
    assert browser.find("h1").text == "mine"
    # From the top of the page, with keys alone: skip link, three links, the field.
    browser.press(*["TAB"] * 5)
    assert browser.run("return document.activeElement.id") == "node"
    browser.press("p7", "ENTER")
    browser.wait(SHOWN)
    assert browser.find("#answer .predicted").text in ("art", "law")
    assert "Confidence" in browser.find("#answer").text
    assert len(browser.driver.find_elements("css selector", "#answer tbody tr")) == 2
    assert "/predict" in browser.run("return document.getElementById('curl').textContent")
    check(browser, where)


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_an_explanation_is_shown(
    browser: Browser, live: Callable[..., str], size: tuple[int, int]
) -> None:
    where = live()
    browser.open(where, size=size, wait=READY)
    browser.find("#node").send_keys("p7")
    browser.find("#explain").click()
    browser.wait(SHOWN)
    text = browser.find("#answer").text
    assert "What each node contributes" in text
    assert "What each column contributes" in text
    assert browser.run("return document.querySelector('#answer img').naturalWidth") > 50
    # The picture is as wide as there is room, and not distorted.
    widths = browser.run("""
        const picture = document.querySelector('#answer img');
        const height = picture.height * picture.naturalWidth / picture.naturalHeight;
        return [picture.width, document.querySelector('#answer').clientWidth, height]
    """)
    assert 50 < widths[0] <= widths[1]
    assert widths[0] == pytest.approx(widths[2], rel=0.02)
    check(browser, where)


def test_a_new_node_has_a_form_with_its_columns(browser: Browser, live: Callable[..., str]) -> None:
    where = live()
    browser.open(where, wait=READY)
    labels = [one.text for one in browser.driver.find_elements("css selector", "#columns label")]
    assert [label.split()[0] for label in labels] == [
        *("size", "width", "color", "says", "since", "tags")
    ]
    browser.find("#cell-0").send_keys("1.014")
    browser.find("#cell-1").send_keys("0.5")
    browser.find("#cell-2").send_keys("red")
    browser.find("#neighbours").send_keys("p3\np4")
    browser.find("#new-form button").click()
    browser.wait(SHOWN)
    assert browser.find("#answer .predicted").text in ("art", "law")
    # The service reads the cells as text, and the answer stands below the form.
    curl = browser.run("return document.getElementById('curl').textContent")
    assert '"size":"1.014","width":"0.5","color":"red"' in curl
    below = "return document.querySelector('.new').nextElementSibling.id"
    assert browser.run(below) == "result"
    browser.find("#neighbours").send_keys("\nnobody")
    browser.find("#new-form button").click()
    browser.wait("return document.querySelector('#answer .problem')")
    assert "edges[2].source" in browser.find("#answer .problem").text
    # The browser itself logs a refused request.
    assert all("422" in text for text in browser.errors())


@pytest.mark.parametrize("name", ["regression", "several labels", "directed with weights"])
def test_other_tasks_are_shown(browser: Browser, live: Callable[..., str], name: str) -> None:
    where = live(name)
    browser.open(where, wait=READY)
    browser.find("#node").send_keys("1007" if name == "directed with weights" else "p7")
    browser.press("ENTER")
    browser.wait(SHOWN)
    text = browser.find("#answer").text
    assert ("between" in text) == (name == "regression")
    browser.find("#neighbours").send_keys("1003 0.5" if name == "directed with weights" else "p3")
    browser.find("#new-form button").click()
    browser.wait("return document.querySelector('#answer').textContent.includes('Node new')")
    check(browser, where)


def test_a_token_is_asked_for_and_opens_the_report(
    browser: Browser, live: Callable[..., str], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    report = run_of("classes") / "report.html"
    report.write_text(
        "<!doctype html><title>R</title><h1>Report</h1><script>document.title='x'</script>"
    )
    try:
        where = live(token="s3cret")
        browser.open(where, wait=READY)
        browser.find("#token").send_keys("wrong")
        browser.press("ENTER")
        browser.wait("return !document.querySelector('#token-problem').hidden")
        browser.find("#token").clear()
        browser.find("#token").send_keys("s3cret")
        browser.press("ENTER")
        browser.wait("return !document.querySelector('#work').hidden")
        browser.wait("return performance.getEntriesByName(location.origin + '/session').length")
        time.sleep(0.2)
        browser.find("#report-link").click()
        browser.wait("return document.querySelector('h1')?.textContent === 'Report'")
        # Its scripts run, but in a sandbox that cannot reach the service.
        assert browser.run("return document.title") == "x"
        assert browser.run("return self.origin") == "null"
    finally:
        report.unlink()


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_the_page_of_the_api_needs_no_network(
    browser: Browser, live: Callable[..., str], size: tuple[int, int]
) -> None:
    where = live()
    browser.open(f"{where}/docs", size=size, wait=READY)
    text = browser.find("main").text
    for path in ("/predict", "/explain", "/v2/models/{name}/infer", "/metrics"):
        assert path in text
    for one in browser.driver.find_elements("css selector", "summary"):
        one.click()
    assert "new_nodes" in browser.find("main").text
    check(browser, where)


def test_the_report_of_the_run_opens(
    browser: Browser, live: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made at the first request; until it is there, a page says so."""
    monkeypatch.setattr(report_page, "SAMPLE", 20)
    where = live()
    browser.open(where + "/report")
    browser.wait("return document.querySelectorAll('h2').length > 3", seconds=60)
    assert browser.errors() == []
    assert [url for url in browser.requests() if not url.startswith(where)] == []


def test_a_report_that_cannot_be_made_is_told(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import lgcn.report.write

    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("/secret")

    monkeypatch.setattr(lgcn.report.write, "write_report", fail)
    answer = client.get("/report")
    assert answer.status_code == 500
    assert "secret" not in answer.text


def test_a_report_that_takes_long_says_so(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import lgcn.report.write

    go = threading.Event()

    def slow(run: Any, path: Path, **_: Any) -> None:
        go.wait(10)
        path.write_text("<h1>made</h1>")

    monkeypatch.setattr(lgcn.report.write, "write_report", slow)
    monkeypatch.setattr(report_page, "WAIT", 0.05)
    answer = client.get("/report")
    assert (answer.status_code, answer.headers["refresh"]) == (202, "1")
    go.set()
    for _ in range(100):
        answer = client.get("/report")
        if answer.status_code == 200:
            break
    assert answer.text == "<h1>made</h1>"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "allow-same-origin" not in answer.headers["content-security-policy"]


def test_a_link_in_the_run_folder_is_not_followed(
    client: Any, run_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lgcn.report.write

    (tmp_path / "other").write_text("private")
    link = run_of("classes") / "report.html"
    monkeypatch.setattr(
        lgcn.report.write, "write_report", lambda run, path, **_: path.write_text("made")
    )
    link.symlink_to(tmp_path / "other")
    try:
        assert client.get("/report").text == "made"
    finally:
        link.unlink()
