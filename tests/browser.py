"""A headless browser for tests of pages: what they log, load and show, and who can use them.

Chromium and its driver come from the system (Debian: `chromium` and `chromium-driver`). Nothing is
downloaded. Tests that need them are skipped where they are missing, see `browser` in conftest.py.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PHONE, DESKTOP = (390, 844), (1280, 900)
# What a page may ask for without leaving the machine.
LOCAL = ("file:", "data:", "about:", "chrome:", "devtools:", "blob:")
# Chromium asks for an icon that no page has to have.
HARMLESS = ("favicon.ico",)


class Browser:
    """A page in headless Chromium.

    Args:
        driver: Selenium's driver.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._requested: list[str] = []

    def open(
        self,
        page: Path | str,
        *,
        size: tuple[int, int] = DESKTOP,
        dark: bool = False,
        wait: str = "return document.readyState === 'complete'",
    ) -> None:
        """Opens a page and waits until it is ready.

        Args:
            page: A file, or an address.
            size: Width and height of the window's inside, in CSS pixels.
            dark: Whether the system prefers dark pages.
            wait: JavaScript that returns true once the page is ready.
        """
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setDeviceMetricsOverride", metrics)
        self._command("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get_log("browser")  # forgets those of the page before
        self.driver.get_log("performance")
        self._requested = []
        self.driver.get(page.resolve().as_uri() if isinstance(page, Path) else page)
        self.wait(wait)

    def wait(self, script: str, seconds: float = 20) -> Any:
        """Waits until JavaScript returns something true, and gives it."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, 0.05).until(
            lambda driver: driver.execute_script(script), f"never true: {script}"
        )

    def run(self, script: str, *arguments: Any) -> Any:
        """Runs JavaScript in the page; gives what it returns."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        """The first element that a CSS selector matches."""
        return self.driver.find_element("css selector", selector)

    def press(self, *keys: str) -> None:
        """Presses keys, by the names in Selenium's `Keys` or as text."""
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()

    def errors(self) -> list[str]:
        """What the page logged as an error or warning since it was opened."""
        logged = [entry for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]
        texts = [str(entry["message"]) for entry in logged]
        return [text for text in texts if not any(word in text for word in HARMLESS)]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, apart from files and data inside it."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requested.append(message["params"]["request"]["url"])
        return [url for url in self._requested if not url.startswith(LOCAL)]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window; 0 if it fits."""
        script = "const e = document.documentElement; return e.scrollWidth - e.clientWidth"
        return max(0, int(self.run(script)))

    def violations(self) -> list[str]:
        """What axe-core finds that keeps people from using the page: serious and critical rules."""
        import axe_core_python

        source = Path(axe_core_python.__file__).with_name("axe.min.js").read_text("utf-8")
        self.run(source)
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations))"
        )
        return [
            f"{rule['id']} ({rule['impact']}): {rule['nodes'][0]['html'][:300]}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Writes a picture of the window, or of the whole page, as PNG."""
        import base64

        options = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            width, height = self.run(
                "const e = document.documentElement; return [e.clientWidth, e.scrollHeight]"
            )
            options["clip"] = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self._command("Page.captureScreenshot", options)["data"]
        path.write_bytes(base64.b64decode(data))

    def _command(self, name: str, options: dict[str, Any]) -> Any:
        return self.driver.execute_cdp_cmd(name, options)


def found_browser() -> tuple[str, str]:
    """The paths of Chromium and its driver; skips the test if one is missing."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no browser: install Debian's chromium and chromium-driver")
    pytest.importorskip("selenium")
    return chromium, driver


@contextmanager
def started() -> Iterator[Browser]:
    """Starts Chromium while the block runs."""
    chromium, driver_path = found_browser()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    arguments = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
    for argument in (*arguments, "--hide-scrollbars", "--force-color-profile=srgb"):
        options.add_argument(argument)
    # It must not look for updates, nor for anything else, while requests are recorded.
    for argument in ("--disable-background-networking", "--disable-component-update"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    environment = os.environ | {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    driver = webdriver.Chrome(options, Service(driver_path, env=environment))
    driver.set_script_timeout(60)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
