"""Forms by which a person acts, and what is said when it is done.

Invariant: every form has a reason, which goes into the audit log, and the session's token. Where the session lacks the
scope, the button is there and does nothing, and says why.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ringcron.api_keys import Scope
from ringcron_api.dashboard.layout import token
from ringcron_api.dashboard.markup import Child, Markup, join, tag
from ringcron_api.dashboard.session import Session
from ringcron_api.problems import Problem

REASON_LENGTH: Final = 500
_SAID: Final = {
    "trigger": "Triggered: it runs now, beside its ticks.",
    "pause": "Paused. A run in progress is not stopped; nothing starts after it.",
    "resume": "Resumed.",
    "cancel": "Cancelled: nothing will start any more.",
    "cancel-later": "Nothing follows the run in progress.",
    "redrive": "Redriven: it is due again, with all its attempts.",
    "cancel-run": "Its worker was asked to stop the run.",
    "drain": "Asked to drain; the worker hears of it with its next report.",
    "login": "Logged in.",
}


def act_form(
    session: Session | None,
    action: str,
    label: str,
    *fields: Child,
    needs: Scope = Scope.WRITE,
    explained: str = "",
    danger: bool = False,
    placeholder: str = "Why?",
) -> Markup:
    """A form with a reason. `needs`: the scope without which its button is dead."""
    may = session is not None and session.may(needs)
    lacking = None if may else f"needs the scope {needs}"
    return tag(
        "form",
        token(session) if may else None,
        tag("p", explained) if explained else None,
        *fields,
        tag(
            "label",
            "Reason",
            tag(
                "input",
                name="reason",
                required=True,
                maxlength=REASON_LENGTH,
                placeholder=placeholder,
                autocomplete="off",
                disabled=not may,
            ),
        ),
        tag("button", label, class_="danger" if danger else None, disabled=not may, title=lacking),
        tag("small", f"This key {lacking}.", class_="none") if lacking else None,
        method="post",
        action=action,
        class_="act",
    )


def confirm_field(count: int) -> Markup:
    """Where a person types how many jobs are meant; `told_count` reads it."""
    return join(
        tag("input", type="hidden", name="counted", value=count),
        tag(
            "label",
            f"Type {count} to confirm",
            tag("input", name="confirm", required=True, inputmode="numeric", size=8, autocomplete="off"),
        ),
    )


async def told_count(request: web.Request, most: int) -> int:
    """The number of jobs that was shown and typed. Raises Problem where they are not the same."""
    typed, seen = await field_in(request, "confirm"), await field_in(request, "counted")
    is_number = seen.isascii() and seen.isdecimal() and len(seen) <= 9
    if not is_number or typed.replace(",", "") != seen or not 0 < int(seen) <= most:
        raise Problem("bad-request", f"the number typed is not the number of jobs: nothing was done. Type {seen[:6]}")
    return int(seen)


async def reason_in(request: web.Request) -> str:
    """Why the person acts. Raises Problem where there is no reason."""
    text = await field_in(request, "reason")
    if not text or len(text) > REASON_LENGTH:
        raise Problem("bad-request", f"say why, in at most {REASON_LENGTH} characters: the audit log keeps it")
    return text


async def field_in(request: web.Request, name: str) -> str:
    """A field of the form, without space around it; the empty text where it is not there. Raises Problem."""
    text = (await request.post()).get(name, "")
    if not isinstance(text, str) or "\0" in text:
        raise Problem("bad-request", f"the field {name} is no text that can be stored")
    return text.strip()


def said(request: web.Request) -> Markup | None:
    """What was done just before this page was asked for."""
    words = _SAID.get(request.query.get("said", ""))
    return None if words is None else tag("p", words, class_="said", role="status")
