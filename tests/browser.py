"""A headless Chromium for tests of pages; skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> tuple[str, str]:
    """Where Chromium and its driver are, or a skip."""
    pytest.importorskip("selenium", reason="selenium is not installed (it comes with the extra 'dev')")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium with chromedriver on this machine; on Debian: apt install chromium chromium-driver")
    return browser, driver


@contextmanager
def opened(url: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """A page in a browser of this size; leaving it, the page must not have complained to the console."""
    browser, path = chromium()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(path))
    try:
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": theme})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(url)
        yield driver
        assert driver.get_log("browser") == []
    finally:
        driver.quit()
