"""Each page in both themes and on a phone: legible, within its width, without a serious fault by axe-core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.browser.conftest import PHONE, WIDE
from tests.browser.sample import put_sample
from tests.support.programs import Api, Programs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
LOOKS = (("light", WIDE), ("dark", WIDE), ("light", PHONE))
GRAVE = ("serious", "critical")


@pytest.fixture
def api(programs: Programs, database_url: str) -> Api:
    return programs.api(database_url)


def test_every_page_is_legible_in_both_themes_and_on_a_phone(
    api: Api, database_url: str, browser_page: Callable[..., Any], shoot: Callable[[Any, str], None]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with psycopg.connect(database_url, autocommit=True) as connection:
        sample = put_sample(connection)
        paths = {
            "overview": "/dashboard",
            "shards": "/dashboard/shards",
            "spikes": "/dashboard/spikes",
            "jobs": "/dashboard/jobs",
            "job": f"/dashboard/jobs/{sample['recurring']}",
            "job-dead": f"/dashboard/jobs/{sample['dead']}",
            "dead": "/dashboard/dead",
            "alerts": "/dashboard/alerts",
            "workers": "/dashboard/workers",
            "login": "/dashboard/login",
        }
        faults: list[str] = []
        for theme, size in LOOKS:
            page = browser_page(theme=theme, size=size)
            look = "phone" if size == PHONE else theme
            for name, path in paths.items():
                put_sample(connection, only_reports=True)
                page.goto(api.url + path)
                if name != "login":
                    page.wait_for_selector("#age.live")
                shoot(page, f"{name}-{look}")
                width = page.evaluate("document.documentElement.scrollWidth")
                if width > size[0]:
                    faults.append(f"{name} in {look} is {width} wide, more than {size[0]}")
                # What a theme or a width can change is the contrast; the rest is looked for once.
                options = None if look == "light" else {"runOnly": ["color-contrast"]}
                found = axe.run(page, options=options).response["violations"]
                faults += [
                    f"{name} in {look}: {one['id']}, {one['help']}: {one['nodes'][0]['html'][:200]}"
                    for one in found
                    if one["impact"] in GRAVE
                ]
    assert not faults, "\n".join(faults)


def test_it_works_from_keys_and_without_a_script(api: Api, database_url: str, browser_page: Callable[..., Any]) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        sample = put_sample(connection)
    page = browser_page()
    page.goto(f"{api.url}/dashboard")
    page.wait_for_selector("#age.live")
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url("**/dashboard/workers")
    page.keyboard.press("/")
    page.keyboard.type("nightly-report")
    page.keyboard.press("Enter")
    page.wait_for_url("**/dashboard/jobs?q=nightly-report")
    page.click("tbody >> text=nightly-report")
    page.wait_for_url(f"**/dashboard/jobs/{sample['recurring']}")
    page.goto(f"{api.url}/dashboard/shards")
    page.hover("#heat .strip >> nth=1")
    assert page.inner_text("#tip").startswith("slots ")
    plain = browser_page(script=False)
    plain.goto(f"{api.url}/dashboard")
    plain.click("text=Dead")
    plain.click("text=Redrive … >> nth=0")
    plain.fill("#redrive input[name=confirm]", plain.input_value("#redrive input[name=counted]"))
    plain.fill("#redrive input[name=reason]", "the target is back")
    plain.click("#redrive button")
    assert "redriven" in plain.inner_text(".said")


def test_the_stream_stops_while_hidden_and_says_how_old_it_is(
    api: Api, database_url: str, browser_page: Callable[..., Any]
) -> None:
    page = browser_page()
    page.goto(f"{api.url}/dashboard")
    page.wait_for_selector("#age.live")
    hide = (
        "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    page.evaluate(hide, True)
    page.wait_for_selector("#age:has-text('data is ')")
    page.evaluate(hide, False)
    page.wait_for_selector("#age.live")
