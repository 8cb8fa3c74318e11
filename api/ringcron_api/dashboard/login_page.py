"""Logging in and out: a key is shown once, in the body of a form, and becomes a cookie."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from aiohttp import web

from ringcron_api.dashboard.forms import field_in
from ringcron_api.dashboard.layout import answer, page, see_other
from ringcron_api.dashboard.markup import Markup, join, tag
from ringcron_api.dashboard.session import COOKIE, PATH, set_cookie
from ringcron_api.keys import ACCESS
from ringcron_api.problems import Problem


async def show_login(request: web.Request) -> web.Response:
    """GET /dashboard/login."""
    return login_page(request, _inside(request.query.get("next", "")))


async def log_in(request: web.Request) -> web.Response:
    """POST /dashboard/login."""
    to = _inside(await field_in(request, "next"))
    try:
        session = await request.app[ACCESS].log_in(request, await field_in(request, "key"))
    except Problem as problem:
        if problem.code == "store-unavailable":
            raise
        return login_page(request, to, problem.detail, status=problem.status)
    response = see_other(request, to)
    set_cookie(request, response, session)
    return response


async def log_out(request: web.Request) -> web.Response:
    """POST /dashboard/logout."""
    response = web.Response(status=303, headers={"Location": "/dashboard/login"})
    response.del_cookie(COOKIE, path=PATH)
    return response


def login_page(request: web.Request, to: str, fault: str = "", *, status: int = 200) -> web.Response:
    """The form; `to` is where it leads."""
    form = tag(
        "form",
        tag("input", type="hidden", name="next", value=to),
        tag(
            "label",
            "API key",
            tag(
                "input",
                name="key",
                type="password",
                required=True,
                autofocus=True,
                autocomplete="current-password",
                placeholder="rc_…",
                spellcheck="false",
            ),
        ),
        tag("button", "Log in"),
        method="post",
        action="/dashboard/login",
    )
    note = join(
        "A key with the scope ", tag("code", "read"), " looks, ", tag("code", "write"), " acts on one job, ",
        tag("code", "admin"), " on many. ", tag("code", "ringcron key add"), " makes one. The session ends an hour "
        "after its last use, and with the key.",
    )  # fmt: skip
    box = tag(
        "section",
        tag("h1", "Log in"),
        tag("p", fault, class_="error", role="alert") if fault else None,
        form,
        tag("p", note, class_="note"),
        class_="panel login",
    )
    return page(request, "Log in", box, view="", status=status)


def send_to_login(request: web.Request) -> web.Response:
    """For a caller without a session: the way to one, and back to where it wanted to go."""
    where = request.rel_url.raw_path_qs if request.method == "GET" else PATH
    if (
        request.headers.get("Sec-Fetch-Site") == "cross-site"
        and request.method == "GET"
        and COOKIE not in request.cookies
    ):
        return _once_more(request, where)
    return see_other(request, f"/dashboard/login?{urlencode({'next': _inside(where)})}")


def _once_more(request: web.Request, where: str) -> web.Response:
    """A link from another site comes without the cookie, which is `SameSite=Strict`: the page asks again by itself."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="refresh", content=f"0;url={_inside(where)}"),
        tag("title", "ringcron"),
    )
    body = tag("body", tag("p", tag("a", "Go on", href=_inside(where))))
    return answer(request, join(Markup("<!doctype html>\n"), tag("html", head, body, lang="en")))


def _inside(text: str) -> str:
    """The path where it is one of the dashboard, else the dashboard itself: nobody is sent anywhere else."""
    parts = urlsplit(text)
    inside = (parts.path == PATH or parts.path.startswith(f"{PATH}/")) and not parts.scheme and not parts.netloc
    if not inside or "\\" in text or parts.path.startswith(f"{PATH}/login") or any(ord(sign) < 33 for sign in text):
        return PATH
    return text
