"""Addresses of the page: what it asks of a session, as JSON."""

import asyncio
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from graphuq.errors import GraphuqError, InvalidInput, StorageError, require
from graphuq.labelling.cards import labels_of, predictions_of
from graphuq.labelling.guard import Guard
from graphuq.labelling.session import Session
from graphuq.labelling.store import check_name
from graphuq.utils.checks import is_integer, is_number

MAX_CARDS = 100  # cards of one request
MAX_QUERY = 200  # characters
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


def application(session: Session, token: str, port: int, user: str, title: str) -> Starlette:
    """Return the application of a labelling page.

    Parameters
    ----------
    session : Session
    token : str
        Secret that the address must hold.
    port : int
        Port of the page, for the name of its cookie.
    user : str
        Name under which labels are stored unless the page gives another one.
    title : str
    """
    questions, changes = Questions(session, user, title), Changes(session, user)
    routes = [
        Route("/", questions.page),
        Route("/static/{name}", _static),
        Route("/item/{row:int}/picture", questions.picture),
        Route("/labels.csv", questions.labels),
        Route("/predictions.csv", questions.predictions),
        Route("/api/state", questions.state),
        Route("/api/queue", questions.queue),
        Route("/api/card/{row:int}", questions.card),
        Route("/api/alike/{row:int}", questions.alike),
        Route("/api/search", questions.search),
        Route("/api/map", questions.map),
        *(
            Route(f"/api/{act.__name__}", _endpoint(act), methods=["POST"])
            for act in (changes.label, changes.undo, changes.skip, changes.wish)
        ),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token, cookie=f"graphuq-{port}")],
        exception_handlers={GraphuqError: _error},
    )


class Questions:
    """What the page reads. Methods run in threads, apart from the one that waits for news."""

    def __init__(self, session: Session, user: str, title: str) -> None:
        self._session, self._user = session, user
        pages = Environment(loader=PackageLoader("graphuq.labelling", "static"), autoescape=True)
        self._page = pages.get_template("label.html").render(title=title, user=user)

    def page(self, request: Request) -> Response:
        """Return the page, which holds nothing of the items."""
        return HTMLResponse(self._page)

    async def state(self, request: Request) -> Response:
        """Return the state: at once, or when it differs from the revision that the page knows."""
        known, until = _number_of(request, "after", -1), time.monotonic() + WAIT_S
        session = self._session
        while session.revision == known and not session.is_closed and time.monotonic() < until:
            await asyncio.sleep(TICK_S)
        user = self._user_of(request)
        return JSONResponse(await run_in_threadpool(self._session.state, user))

    def queue(self, request: Request) -> Response:
        """Return cards of the next items, without those that the page holds."""
        n = _number_of(request, "n", 8)
        require(0 <= n <= MAX_CARDS, "n", f"{n}", f"use 0 to {MAX_CARDS}")
        held = request.query_params.get("held", "").split(",")
        rows = [int(part) for part in held if part.isdecimal()]
        tab = request.query_params.get("tab", "")[:MAX_QUERY]
        return JSONResponse(self._session.queue(self._user_of(request), n, rows, tab))

    def card(self, request: Request) -> Response:
        """Return all about one item."""
        return JSONResponse(self._session.card(request.path_params["row"]))

    def picture(self, request: Request) -> Response:
        """Return the picture of an item. Only its number is asked for, never a path."""
        row, items = request.path_params["row"], self._session.items
        require(row < len(items), "row", f"{row}", f"use 0 to {len(items) - 1}")
        content, media_type = items.picture(row)
        return Response(content, media_type=media_type)

    def alike(self, request: Request) -> Response:
        """Return small views of similar items."""
        label = request.query_params.get("label")
        return JSONResponse(self._session.alike(request.path_params["row"], label))

    def search(self, request: Request) -> Response:
        """Return small views of items that contain some text."""
        return JSONResponse(self._session.search(request.query_params.get("q", "")[:MAX_QUERY]))

    def map(self, request: Request) -> Response:
        """Return the places of all items in the plane."""
        return JSONResponse(self._session.map())

    def labels(self, request: Request) -> Response:
        """Return all labels, for ``graphuq classify --labels``."""
        _, labels = self._session.latest
        return _table(labels_of(self._session.items, labels), "labels.csv")

    def predictions(self, request: Request) -> Response:
        """Return the table of answers of all items."""
        session = self._session
        return _table(predictions_of(session.items, *session.latest), "predictions.csv")

    def _user_of(self, request: Request) -> str:
        return check_name(request.query_params.get("user") or self._user, "user")


class Changes:
    """What the page changes. Each method gets decoded JSON and returns values for JSON."""

    def __init__(self, session: Session, user: str) -> None:
        self._session, self._user = session, user

    def label(self, body: dict[str, Any]) -> dict[str, Any]:
        """Store one class for some items."""
        rows = _rows_of(body)
        shown, version = body.get("probabilities", []), body.get("version")
        fits = isinstance(shown, list) and all(v is None or _is_share(v) for v in shown)
        require(fits, "probabilities", repr(shown)[:40], "give numbers in [0, 1] or null")
        fits = version is None or is_integer(version)
        require(fits, "version", repr(version)[:40], "give an integer or null")
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
        for row in _rows_of(body):
            self._session.skip(self._user_of(body), row)
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
        try:
            body = await request.json()
        except ValueError:
            raise InvalidInput("body", "not JSON", "send an object") from None
        require(isinstance(body, dict), "body", "not an object", "send an object")
        return JSONResponse(await run_in_threadpool(act, body))

    return endpoint


def _static(request: Request) -> Response:
    """Return a script or style of the page; no other file can be asked for."""
    name = request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse("There is no such file.", 404)
    folder, media_type = STATIC[name]
    content = files("graphuq").joinpath(*folder.split("/"), name).read_bytes()
    return Response(content, media_type=media_type)


def _error(request: Request, error: Exception) -> Response:
    """Answer with the sentence of an error."""
    return JSONResponse({"error": str(error)}, 500 if isinstance(error, StorageError) else 400)


def _table(table: pd.DataFrame, name: str) -> Response:
    """Return a table as a file to be downloaded."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    text = table.to_csv(index=False, float_format="%.6g")
    return Response(text, media_type="text/csv", headers=headers)


def _number_of(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    require(text.lstrip("-").isdecimal(), name, repr(text[:20]), "give an integer")
    return int(text)


def _rows_of(body: dict[str, Any]) -> list[int]:
    rows = body.get("rows")
    if not isinstance(rows, list) or not all(is_integer(row) for row in rows):
        raise InvalidInput("rows", repr(rows)[:40], "give a list of row numbers")
    return rows


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1
