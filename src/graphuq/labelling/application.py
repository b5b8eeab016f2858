"""Addresses of the page: what it asks of a session, as JSON."""

import asyncio
import re
import time
import warnings
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from graphuq.errors import GraphuqError, GraphuqWarning, InvalidInput, require
from graphuq.labelling.address import path_of
from graphuq.labelling.cards import labels_of, predictions_of
from graphuq.labelling.guard import Guard
from graphuq.labelling.json_requests import error_answer, json_answer, object_of
from graphuq.labelling.session import Session
from graphuq.labelling.store import check_name
from graphuq.utils.checks import describe, is_integer, is_number
from graphuq.utils.spreadsheets import without_formulas

MAX_CARDS = 100  # cards of one request
MAX_QUERY = 200  # characters
MAX_VERSION = 1_000_000_000
INTEGER = re.compile("-?[0-9]{1,9}")
WAIT_S = 15.0  # longest wait of the page for news
TICK_S = 0.03  # between looks at the session
STATIC = {
    "icon.svg": ("labelling/static", "image/svg+xml"),
    "label.css": ("labelling/static", "text/css"),
    "label.js": ("labelling/static", "text/javascript"),
    "elements.js": ("labelling/static", "text/javascript"),
    "panels.js": ("labelling/static", "text/javascript"),
    "map.js": ("web", "text/javascript"),
    "points.js": ("web", "text/javascript"),
}


def application(session: Session, token: str, user: str, title: str) -> ASGIApp:
    """Return the application of a labelling page.

    Parameters
    ----------
    session : Session
    token : str
        Secret that the address must hold.
    user : str
        Name under which labels are stored unless the page gives another one.
    title : str
    """
    base = path_of(token)
    questions, changes = Questions(session, user, title, base), Changes(session, user)
    answers = {
        "/": questions.page,
        "/static/{name}": _static,
        "/item/{row}/picture": questions.picture,
        "/labels.csv": questions.labels,
        "/predictions.csv": questions.predictions,
        "/api/state": questions.state,
        "/api/queue": questions.queue,
        "/api/card/{row}": questions.card,
        "/api/alike/{row}": questions.alike,
        "/api/search": questions.search,
        "/api/map": questions.map,
    }
    acts = (changes.label, changes.undo, changes.skip, changes.wish)
    routes = [
        Route("/", questions.page),
        *(Route(f"{base}{path}", answer) for path, answer in answers.items()),
        *(Route(f"{base}/api/{a.__name__}", _endpoint(a), methods=["POST"]) for a in acts),
    ]
    app = Starlette(routes=routes, exception_handlers={GraphuqError: error_answer})
    app.router.redirect_slashes = False
    return Guard(app, token)


class Questions:
    """What the page reads. Methods run in threads, apart from the one that waits for news."""

    def __init__(self, session: Session, user: str, title: str, base: str) -> None:
        self._session, self._user = session, user
        pages = Environment(loader=PackageLoader("graphuq.labelling", "static"), autoescape=True)
        self._page = pages.get_template("label.html").render(title=title, user=user, base=base)

    def page(self, request: Request) -> Response:
        """Return the page, which holds nothing of the items."""
        return HTMLResponse(self._page)

    async def state(self, request: Request) -> Response:
        """Return the state: at once, or when it differs from the revision that the page knows."""
        known, until = _number_of(request, "after", -1), time.monotonic() + WAIT_S
        session = self._session
        while session.revision == known and not session.is_closed and time.monotonic() < until:
            await asyncio.sleep(TICK_S)
        return json_answer(await run_in_threadpool(self._session.state, *self._user_of(request)))

    def queue(self, request: Request) -> Response:
        """Return cards of the next items, without those that the page holds."""
        n = _number_of(request, "n", 8)
        require(0 <= n <= MAX_CARDS, "n", f"{n}", f"use 0 to {MAX_CARDS}")
        held = request.query_params.get("held", "").split(",")
        rows = [int(part) for part in held if INTEGER.fullmatch(part)]
        user, tab = self._user_of(request)
        return json_answer(self._session.queue(user, n, rows, tab))

    def card(self, request: Request) -> Response:
        """Return all about one item."""
        return json_answer(self._session.card(_row_of(request)))

    def picture(self, request: Request) -> Response:
        """Return the picture of an item. Only its number is asked for, never a path."""
        row, items = _row_of(request), self._session.items
        require(0 <= row < len(items), "row", f"{row}", f"use 0 to {len(items) - 1}")
        content, media_type = items.picture(row)
        return Response(content, media_type=media_type)

    def alike(self, request: Request) -> Response:
        """Return small views of similar items."""
        label = request.query_params.get("label")
        return json_answer(self._session.alike(_row_of(request), label))

    def search(self, request: Request) -> Response:
        """Return small views of items that contain some text."""
        return json_answer(self._session.search(request.query_params.get("q", "")[:MAX_QUERY]))

    def map(self, request: Request) -> Response:
        """Return the places of all items in the plane."""
        return json_answer(self._session.map())

    def labels(self, request: Request) -> Response:
        """Return all labels, for ``graphuq classify --labels``."""
        _, labels = self._session.latest
        return _table(labels_of(self._session.items, labels), "labels.csv")

    def predictions(self, request: Request) -> Response:
        """Return the table of answers of all items."""
        session = self._session
        return _table(predictions_of(session.items, *session.latest), "predictions.csv")

    def _user_of(self, request: Request) -> tuple[str, str]:
        """Return who asks, and on which of several pages."""
        asked = request.query_params
        return check_name(asked.get("user") or self._user, "user"), asked.get("tab", "")[:20]


class Changes:
    """What the page changes. Each method gets decoded JSON and returns values for JSON."""

    def __init__(self, session: Session, user: str) -> None:
        self._session, self._user = session, user

    def label(self, body: dict[str, Any]) -> dict[str, Any]:
        """Store one class for some items."""
        rows = _rows_of(body)
        shown, version = body.get("probabilities", []), body.get("version")
        fits = isinstance(shown, list) and all(v is None or _is_share(v) for v in shown)
        require(fits, "probabilities", describe(shown), "give numbers in [0, 1] or null")
        require(len(shown) in (0, len(rows)), "probabilities", f"{len(shown)} numbers",
                f"give {len(rows)}, one a row, or none")  # fmt: skip
        fits = version is None or (is_integer(version) and 0 <= version <= MAX_VERSION)
        require(fits, "version", describe(version), "give a version of the page, or null")
        pairs = zip(rows, shown, strict=False)
        self._session.label(
            self._user_of(body),
            rows,
            check_name(body.get("label"), "label"),
            {row: float(value) for row, value in pairs if value is not None},
            version,
        )
        return {"saved": rows, "revision": self._session.revision}

    def undo(self, body: dict[str, Any]) -> dict[str, Any]:
        """Take back the latest act, and return the first of its items to be shown again."""
        rows = self._session.undo(self._user_of(body))
        return {"cards": [self._session.card(row) for row in rows[:1]], "rows": rows}

    def skip(self, body: dict[str, Any]) -> dict[str, Any]:
        """Put some items off."""
        self._session.skip(self._user_of(body), _rows_of(body))
        return {}

    def wish(self, body: dict[str, Any]) -> dict[str, Any]:
        """Put some items at the head of the queue."""
        self._session.wish(_rows_of(body))
        return {}

    def _user_of(self, body: dict[str, Any]) -> str:
        return check_name(body.get("user") or self._user, "user")


def _endpoint(act: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """Return the endpoint of a function that gets and returns JSON."""

    async def endpoint(request: Request) -> Response:
        return json_answer(await run_in_threadpool(act, await object_of(request)))

    return endpoint


def _static(request: Request) -> Response:
    """Return a script or style of the page; no other file can be asked for."""
    name = request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse("There is no such file.", 404)
    folder, media_type = STATIC[name]
    content = files("graphuq").joinpath(*folder.split("/"), name).read_bytes()
    return Response(content, media_type=media_type)


def _table(table: pd.DataFrame, name: str) -> Response:
    """Return a table as a file to be downloaded, without cells that a spreadsheet runs."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphuqWarning)
        text = without_formulas(table).to_csv(index=False, float_format="%.6g")
    content = text.encode("utf-8", "surrogateescape")  # names of files that are no valid text
    return Response(content, media_type="text/csv; charset=utf-8", headers=headers)


def _number_of(request: Request, name: str, default: int) -> int:
    return _integer(request.query_params.get(name, str(default)), name)


def _row_of(request: Request) -> int:
    return _integer(request.path_params["row"], "row")


def _integer(text: str, name: str) -> int:
    require(INTEGER.fullmatch(text) is not None, name, repr(text[:20]), "give an integer")
    return int(text)


def _rows_of(body: dict[str, Any]) -> list[int]:
    rows = body.get("rows")
    if not isinstance(rows, list) or not all(is_integer(row) for row in rows):
        raise InvalidInput("rows", describe(rows), "give a list of row numbers")
    return rows


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1
