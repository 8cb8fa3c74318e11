"""A browser without a script engine: pages as text and their forms, over HTTP.

async with browsing(url) as browser:
    page = await browser.get("/dashboard/jobs")
    page = await browser.submit(page.form("/trigger"), reason="a test")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser

import aiohttp


@dataclass
class Form:
    """A form: where it goes, and what its fields hold."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[bool] = field(default_factory=list)
    """Of each button, whether it can be pressed."""


class Page(HTMLParser):
    """A page. `text` is what a person reads; `tags` every element that the HTML has, by name."""

    def __init__(self, status: int, headers: Mapping[str, str], path: str, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.status = status
        self.headers = headers
        self.path = path
        self.html = html
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self._words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.tags.append((tag, told))
        if tag == "form":
            self.forms.append(Form(told.get("action", ""), told.get("method", "get")))
        elif tag in ("input", "select") and self.forms and "name" in told:
            self.forms[-1].fields[told["name"]] = told.get("value", "")
        elif tag == "option" and self.forms and "value" in told:
            name = next(reversed(self.forms[-1].fields))
            self.forms[-1].fields[name] = self.forms[-1].fields[name] or told["value"]
        elif tag == "button" and self.forms:
            self.forms[-1].buttons.append("disabled" not in told)
        elif tag == "a" and "href" in told:
            self.links.append(told["href"])

    def handle_data(self, data: str) -> None:
        self._words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._words).split())

    def form(self, action: str) -> Form:
        """The form whose action ends so."""
        return next(form for form in self.forms if form.action.endswith(action))


class Browser:
    """Cookies and redirects, as a browser has them; it says where its forms come from."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session

    async def get(self, path: str, **headers: str) -> Page:
        return await self._go("GET", path, {}, headers)

    async def submit(self, form: Form, *, headers: Mapping[str, str] | None = None, **fields: str) -> Page:
        told = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"} if headers is None else headers
        return await self._go("POST", form.action, {**form.fields, **fields}, told)

    async def _go(self, method: str, path: str, fields: Mapping[str, str], headers: Mapping[str, str]) -> Page:
        data = fields if method == "POST" else None
        async with self.session.request(method, self.url + path, data=data, headers=headers) as answer:
            return Page(answer.status, answer.headers, answer.url.path_qs, await answer.text())


@asynccontextmanager
async def browsing(url: str) -> AsyncIterator[Browser]:
    """A browser with no cookies yet."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(url, session)
