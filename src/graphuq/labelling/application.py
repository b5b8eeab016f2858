"""Addresses of the page: which question or change each one is, and who may ask."""

import dataclasses
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from graphuq.errors import GraphuqError
from graphuq.labelling.accounts import Accounts
from graphuq.labelling.address import path_of
from graphuq.labelling.audits import Audits
from graphuq.labelling.changes import Changes
from graphuq.labelling.forecast import Forecasts
from graphuq.labelling.guard import Guard
from graphuq.labelling.hosting import Hosting
from graphuq.labelling.json_requests import error_answer, json_answer, object_of
from graphuq.labelling.logins import LoginDoor, Logins, name_of
from graphuq.labelling.people import Accuracies
from graphuq.labelling.questions import Questions
from graphuq.labelling.session import Session

STATIC = {
    "icon.svg": ("labelling/static", "image/svg+xml"),
    "label.css": ("labelling/static", "text/css"),
    "login.js": ("labelling/static", "text/javascript"),
    "map.js": ("web", "text/javascript"),
    "points.js": ("web", "text/javascript"),
} | {
    f"{name}.js": ("labelling/static", "text/javascript")
    for name in ("label", "elements", "panels", "finding", "audit", "guidelines", "tags")
}


@dataclasses.dataclass(frozen=True)
class PageOptions:
    """What the page shows and offers besides items.

    Parameters
    ----------
    title : str
    user : str
        Name under which labels are stored unless the page gives another one.
    goal : float, default 0.95
        Accuracy at which people want to stop, in (0, 1).
    guidelines : path, optional
        Text or Markdown file, which the page shows beside the item.
    """

    title: str
    user: str
    goal: float = 0.95
    guidelines: Path | None = None


def application(
    session: Session, token: str, options: PageOptions, forecasts: Forecasts
) -> ASGIApp:
    """Return the application of a labelling page of one machine.

    Parameters
    ----------
    session : Session
    token : str
        Secret that the address must hold.
    options : PageOptions
    forecasts : Forecasts
    """
    return Guard(_routes(session, options, forecasts, path_of(token)), token)


def hosted_application(
    session: Session, hosting: Hosting, options: PageOptions, forecasts: Forecasts
) -> ASGIApp:
    """Return the application of a page whose people log in.

    Parameters
    ----------
    session : Session
    hosting : Hosting
    options : PageOptions
    forecasts : Forecasts
    """
    logins = Logins(Accounts(hosting.users), hosting.origin)
    pages = Environment(loader=PackageLoader("graphuq.labelling", "static"), autoescape=True)
    welcome = pages.get_template("login.html").render(title=options.title)
    more = [
        Route("/login", logins.log_in, methods=["POST"]),
        Route("/logout", logins.log_out, methods=["POST"]),
    ]
    return LoginDoor(_routes(session, options, forecasts, "", more), logins, welcome)


def _routes(
    session: Session,
    options: PageOptions,
    forecasts: Forecasts,
    base: str,
    more: list[Route] | None = None,
) -> Starlette:
    audits, accuracies = Audits(session, options.goal), Accuracies(session)
    beside = audits, accuracies, forecasts
    questions = Questions(session, *beside, options, base, is_hosted=more is not None)
    changes = Changes(session, audits, accuracies, options.user)
    answers: dict[str, Callable[[Request], Any]] = {
        "/": questions.page,
        "/static/{name}": _static,
        "/item/{row}/picture": questions.picture,
        "/labels.csv": questions.labels,
        "/predictions.csv": questions.predictions,
        "/readings.csv": questions.readings,
        "/log.csv": questions.log,
        "/export/{layout}": questions.export,
        "/report": questions.report,
        "/api/state": questions.state,
        "/api/queue": questions.queue,
        "/api/card/{row}": questions.card,
        "/api/alike/{row}": questions.alike,
        "/api/search": questions.search,
        "/api/views": questions.views,
        "/api/map": questions.map,
        "/api/guidelines": questions.guidelines,
    }
    acts = (changes.label, changes.undo, changes.skip, changes.wish, changes.note, changes.flag,
            changes.audit, changes.end_audit, changes.accuracies)  # fmt: skip
    routes = [
        *([] if more is not None else [Route("/", questions.page)]),
        *(Route(f"{base}{path}", answer) for path, answer in answers.items()),
        *(Route(f"{base}/api/{a.__name__}", _endpoint(a), methods=["POST"]) for a in acts),
        *(more or []),
    ]
    app = Starlette(routes=routes, exception_handlers={GraphuqError: error_answer})
    app.router.redirect_slashes = False
    return app


def _endpoint(act: Callable[[dict[str, Any], str | None], Any]) -> Callable[[Request], Any]:
    """Return the endpoint of a function of decoded JSON and of who logged in."""

    async def endpoint(request: Request) -> Response:
        body, user = await object_of(request), name_of(request.scope)
        return json_answer(await run_in_threadpool(act, body, user))

    return endpoint


def _static(request: Request) -> Response:
    """Return a script or style of the page; no other file can be asked for."""
    name = request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse("There is no such file.", 404)
    folder, media_type = STATIC[name]
    content = files("graphuq").joinpath(*folder.split("/"), name).read_bytes()
    return Response(content, media_type=media_type)
