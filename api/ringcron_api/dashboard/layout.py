"""The frame around every page, and how pages are answered.

Invariant: nothing on a page runs, loads or sends but what comes from this server: there is no script and no style in
the HTML itself, and the policy forbids both. A page is whole without the script.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from ringcron import __version__
from ringcron_api.dashboard.assets import url_of
from ringcron_api.dashboard.markup import Child, Markup, join, tag
from ringcron_api.dashboard.phrases import clock
from ringcron_api.dashboard.picture import Picture
from ringcron_api.dashboard.session import TOKEN_FIELD, Session, session_of, set_cookie
from ringcron_api.dashboard.verdict import Finding, Verdict

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_VIEWS: Final = (
    ("overview", "Overview", "/dashboard", "o"),
    ("shards", "Shards", "/dashboard/shards", "s"),
    ("spikes", "Spikes", "/dashboard/spikes", "p"),
    ("jobs", "Jobs", "/dashboard/jobs", "j"),
    ("dead", "Dead", "/dashboard/dead", "d"),
    ("alerts", "Alerts", "/dashboard/alerts", "a"),
    ("workers", "Workers", "/dashboard/workers", "w"),
)
_MARKS: Final = {"good": "●", "warn": "▲", "bad": "■"}


def page(
    request: web.Request,
    title: str,
    *main: Child,
    view: str,
    picture: Picture | None = None,
    status: int = 200,
    follow: bool = False,
) -> web.Response:
    """A page. `view`: which one of the navigation, and of the stream, it belongs to. `follow`: its middle is loaded
    again every few seconds while the script runs."""
    session = session_of(request)
    banner: Child = None
    if picture is not None:
        banner = tag("div", verdict_line(picture.verdict) if view != "overview" else None, id="verdict-line")
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        _header(view, session, picture),
        banner,
        tag("main", *main, id="main", tabindex="-1", data_follow=follow),
        _footer(),
        data_view=view if picture is not None else None,
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · ringcron"),
        tag("link", rel="icon", href=url_of("favicon.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=url_of("dashboard.css")),
        tag("script", type="module", src=url_of("dashboard.js")),
    )
    return answer(request, join(Markup("<!doctype html>\n"), tag("html", head, body, lang="en")), status=status)


def answer(request: web.Request, html: Markup, *, status: int = 200) -> web.Response:
    """HTML as a response, with the headers that every page has."""
    response = web.Response(
        text=str(html), status=status, content_type="text/html", charset="utf-8", headers=dict(_HEADERS)
    )
    response.enable_compression()
    session = session_of(request)
    if session is not None:
        set_cookie(request, response, session)
    return response


def see_other(request: web.Request, path: str) -> web.Response:
    """Send the browser to another page of ours."""
    response = web.Response(status=303, headers={"Location": path, **_HEADERS})
    session = session_of(request)
    if session is not None:
        set_cookie(request, response, session)
    return response


def _header(view: str, session: Session | None, picture: Picture | None) -> Markup:
    links = [
        tag(
            "a",
            name,
            _count(picture, key),
            href=path,
            aria_current="page" if key == view else None,
            data_key=letter,
        )
        for key, name, path, letter in _VIEWS
    ]
    search = tag(
        "form",
        tag(
            "input", type="search", name="q", placeholder="Job id, run id, key or name", aria_label="Find a job", id="q"
        ),
        action="/dashboard/jobs",
        method="get",
        role="search",
    )
    return tag(
        "header",
        tag("a", "ringcron", href="/dashboard", class_="mark"),
        tag("nav", *links, aria_label="Views") if session is not None else None,
        search if session is not None else None,
        tag("span", _age(picture), id="age", class_="age", role="status") if picture is not None else None,
        _person(session),
    )


def _count(picture: Picture | None, view: str) -> Markup | None:
    """How many there are of what should be none."""
    counts = {} if picture is None else {"dead": picture.snapshot.dead, "alerts": len(picture.alarms.found)}
    return join(" ", tag("b", f"{counts[view]:,}", class_="count")) if counts.get(view) else None


def _age(picture: Picture) -> str:
    return f"as of {clock(picture.snapshot.taken_at)} UTC"


def _person(session: Session | None) -> Markup | None:
    if session is None:
        return None
    if session.key is None:
        return tag("span", "no keys", class_="who", title="No API key exists: anyone on this machine may do anything")
    return tag(
        "form",
        tag("span", session.who, class_="who"),
        token(session),
        tag("button", "Log out", class_="quiet"),
        method="post",
        action="/dashboard/logout",
        class_="person",
    )


def _footer() -> Markup:
    keys = [("/", "find a job"), *((f"g {letter}", name.lower()) for _, name, _, letter in _VIEWS), ("?", "this list")]
    shown = [join(tag("dt", tag("kbd", key)), tag("dd", what)) for key, what in keys]
    return tag(
        "footer",
        tag("details", tag("summary", "Keys"), tag("dl", *shown, class_="keys"), id="keys"),
        tag("a", "API", href="/docs"),
        tag("span", f"ringcron {__version__}"),
    )


def token(session: Session | None) -> Markup | None:
    """The hidden field without which no form counts."""
    return None if session is None else tag("input", type="hidden", name=TOKEN_FIELD, value=session.token)


def verdict_line(verdict: Verdict) -> Markup:
    """The verdict in one line, above every page but the overview."""
    return tag(
        "p",
        _mark(verdict.first),
        tag("a", verdict.first.sentence, href="/dashboard"),
        class_=f"line {verdict.level}",
    )


def verdict_card(verdict: Verdict) -> Markup:
    """The verdict with its reason and its end, and what else there is to know."""
    first = verdict.first
    return tag(
        "section",
        tag("h1", _mark(first), tag("a", first.sentence, href=first.link)),
        tag("p", first.reason, " ", tag("span", first.over, class_="over")),
        tag("ul", [tag("li", _mark(one), tag("a", one.sentence, href=one.link)) for one in verdict.others])
        if verdict.others
        else None,
        class_=f"verdict {first.level}",
        aria_label="Verdict",
    )


def _mark(finding: Finding) -> Markup:
    """A shape beside the colour."""
    return tag("span", _MARKS[finding.level], class_="shape", role="img", aria_label=finding.level.value)


def table(
    head: Sequence[Child], rows: Sequence[Child], *, class_: str = "", empty: str = "", id_: str | None = None
) -> Markup:
    """A table that scrolls by itself where it is too wide. `rows` are whole rows."""
    heads = [cell if isinstance(cell, Markup) else tag("th", cell, scope="col") for cell in head]
    body = rows or [tag("tr", tag("td", empty, colspan=len(heads), class_="none"))]
    return tag(
        "div",
        tag("table", tag("thead", tag("tr", heads)), tag("tbody", body, id=id_), class_=class_ or None),
        class_="scroll",
        tabindex="0",
        role="group",
    )


def row(*cells: Child, **attributes: str | None) -> Markup:
    """A row of cells; those that are `td` or `th` already stay."""
    made = [cell if isinstance(cell, Markup) and cell.startswith(("<td", "<th")) else tag("td", cell) for cell in cells]
    return tag("tr", made, **attributes)


def panel(title: Child, *content: Child, note: Child = None, id_: str | None = None, class_: str = "") -> Markup:
    """A titled part of a page."""
    return tag(
        "section",
        tag("h2", title),
        tag("p", note, class_="note") if note is not None else None,
        tag("div", *content, id=id_) if id_ is not None else join(*content),
        class_=f"panel {class_}".strip(),
    )
