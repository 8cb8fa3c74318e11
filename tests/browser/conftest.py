"""A real browser before a real API: Debian's Chromium, driven by Playwright. Started by `./dev test-browser`.

    browser_page(...)   a page in a theme and a size; what its console complains about fails the test
    shoot(page, name)   a screenshot in test-output/dashboard

Skipped, and says so, where there is no Chromium (RINGCRON_CHROMIUM names one) or no Playwright.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

OUTPUT = Path(__file__).parents[2] / "test-output" / "dashboard"
NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDE, PHONE = (1280, 900), (390, 844)
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
"""Chromium has no sandbox as root, and containers give it little shared memory."""


def chromium() -> str:
    """The browser to drive; the test is skipped where there is none."""
    named = os.environ.get("RINGCRON_CHROMIUM")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium here: apt-get install chromium, or name one by RINGCRON_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def chromium_browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: ./dev test-browser")
    path = chromium()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def browser_page(chromium_browser: Any) -> Iterator[Callable[..., Any]]:
    contexts: list[Any] = []
    complaints: list[str] = []

    def make(*, theme: str = "light", size: tuple[int, int] = WIDE, script: bool = True) -> Any:
        context = chromium_browser.new_context(
            color_scheme=theme,
            viewport={"width": size[0], "height": size[1]},
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        return page

    yield make
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture(scope="session")
def shoot() -> Callable[[Any, str], None]:
    OUTPUT.mkdir(parents=True, exist_ok=True)

    def take(page: Any, name: str) -> None:
        page.screenshot(path=str(OUTPUT / f"{name}.png"), full_page=True)

    return take
