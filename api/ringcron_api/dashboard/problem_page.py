"""What went wrong, as a page of the dashboard."""

from __future__ import annotations

from aiohttp import web

from ringcron.redaction import redact
from ringcron_api.dashboard.layout import page
from ringcron_api.dashboard.login_page import send_to_login
from ringcron_api.dashboard.markup import tag
from ringcron_api.dashboard.session import PATH
from ringcron_api.problems import PROBLEMS, REQUEST_ID_HEADER, Problem


def is_of_dashboard(request: web.BaseRequest) -> bool:
    return request.path == PATH or request.path.startswith(f"{PATH}/")


def problem_page(request: web.Request, problem: Problem, request_id: str) -> web.Response:
    """The page for a problem. Who is not logged in is sent to do that."""
    if problem.code == "unauthorized" and request.path != f"{PATH}/login":
        return send_to_login(request)
    sentence = PROBLEMS[problem.code].title
    if problem.code == "store-unavailable":
        sentence = "The database cannot be reached: nothing starts, and nothing is lost."
    hints = {
        "store-unavailable": "Jobs run late while it is away. This page loads itself again until the database is back.",
        "job-claimed": "The worker was first. Cancel its run instead, or cancel the job after the run.",
    }
    hint = hints.get(problem.code, "")
    box = tag(
        "section",
        tag("h1", sentence),
        tag("p", redact(problem.detail)),
        tag("p", hint) if hint else None,
        tag("p", tag("a", "Back", href=_back(request), class_="button")),
        tag("p", f"request {request_id}", class_="note"),
        class_="panel narrow problem",
        role="alert",
    )
    response = page(request, sentence, box, view="", status=problem.status)
    response.headers.update({**problem.headers, REQUEST_ID_HEADER: request_id})
    if problem.code == "store-unavailable" and request.method == "GET":
        response.headers["Refresh"] = "5"
    return response


def _back(request: web.Request) -> str:
    """The page that a form was on; for anything else the overview."""
    parts = request.path.split("/")
    if request.method == "POST" and len(parts) == 5 and parts[2] == "jobs":
        return "/".join(parts[:4])
    if request.method == "POST" and len(parts) == 5 and parts[2] == "runs":
        return f"/dashboard/jobs/{parts[3].partition('.')[0]}"
    if request.method == "POST" and len(parts) == 4 and parts[2] in ("dead", "workers"):
        return "/".join(parts[:3])
    return PATH
