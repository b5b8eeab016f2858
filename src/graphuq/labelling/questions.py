"""What the page asks of a session, as JSON, tables and pictures."""

import asyncio
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from graphuq.errors import require
from graphuq.labelling.audits import Audits
from graphuq.labelling.campaign import campaign_of_session, log_table
from graphuq.labelling.campaign_page import campaign_page
from graphuq.labelling.cards import predictions_of
from graphuq.labelling.changes import user_of
from graphuq.labelling.finding import MAX_FOUND, Finder
from graphuq.labelling.forecast import Forecasts
from graphuq.labelling.guidelines import guidelines_of
from graphuq.labelling.json_requests import json_answer
from graphuq.labelling.layouts import labelled_by, layout_named, layouts_of, require_holds
from graphuq.labelling.logins import name_of
from graphuq.labelling.people import Accuracies, readings_table
from graphuq.labelling.session import Session
from graphuq.labelling.tags import TAGS
from graphuq.utils.spreadsheets import without_formulas
from graphuq.utils.user_warnings import held_warnings

MAX_CARDS = 100  # cards of one request
MAX_QUERY = 200  # characters
INTEGER = re.compile("-?[0-9]{1,9}")
SHARE = re.compile(r"[01](\.[0-9]{1,6})?")
WORDS, ENDS = ("text", "label", "by", "state", "order"), ("least", "most")
WAIT_S = 15.0  # longest wait of the page for news
TICK_S = 0.03  # between looks at the session


class Questions:
    """What the page reads. Methods run in threads, apart from the one that waits for news."""

    def __init__(
        self,
        session: Session,
        audits: Audits,
        accuracies: Accuracies,
        forecasts: Forecasts,
        options: Any,
        base: str,
        is_hosted: bool = False,
    ) -> None:
        self._session, self._audits, self._accuracies = session, audits, accuracies
        self._forecasts = forecasts
        self._finder, self._options = Finder(session), options
        self._base, self._is_hosted = base, is_hosted
        pages = Environment(loader=PackageLoader("graphuq.labelling", "static"), autoescape=True)
        self._page = pages.get_template("label.html")

    def page(self, request: Request) -> Response:
        """Return the page, which holds nothing of the items."""
        user = name_of(request.scope) or self._options.user
        return HTMLResponse(self._page.render(
            title=self._options.title, user=user, base=self._base, is_hosted=self._is_hosted,
            has_guidelines=self._options.guidelines is not None,
            is_picture=self._session.items.map_places is not None,
            has_tags=self._session.classes.order == TAGS,
            layouts=layouts_of(self._session.items, self._session.classes.order == TAGS),
        ))  # fmt: skip

    async def state(self, request: Request) -> Response:
        """Return the state: at once, or when it differs from the revision that the page knows."""
        known, until = _number_of(request, "after", -1), time.monotonic() + WAIT_S
        session = self._session
        while session.revision == known and not session.is_closed and time.monotonic() < until:
            await asyncio.sleep(TICK_S)
        return json_answer(await run_in_threadpool(self._state, *self._user_of(request)))

    def _state(self, user: str, tab: str) -> dict[str, Any]:
        state, audit = self._session.state(user, tab), self._audits.state()
        beside = {"audit": audit, "accuracies": self._accuracies.state}
        return {**state, **beside, **self._forecasts.state}

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
        return json_answer(self._session.card(_row_of(request), self._user_of(request)[0]))

    def picture(self, request: Request) -> Response:
        """Return the picture of an item. Only its number is asked for, never a path."""
        row, items = _row_of(request), self._session.items
        require(0 <= row < len(items), "row", f"{row}", f"use 0 to {len(items) - 1}")
        content, media_type = items.picture(row)
        return Response(content, media_type=media_type)

    def alike(self, request: Request) -> Response:
        """Return small views of similar items."""
        label = request.query_params.get("label")
        return json_answer(self._finder.alike(_row_of(request), label))

    def search(self, request: Request) -> Response:
        """Return small views of items that fit some filters."""
        asked = request.query_params
        filters: dict[str, Any] = {name: asked.get(name, "")[:MAX_QUERY] for name in WORDS}
        filters |= {name: _share_of(request, name) for name in ENDS if name in asked}
        return json_answer(self._finder.find(**filters))

    def views(self, request: Request) -> Response:
        """Return small views of some items."""
        given = request.query_params.get("rows", "").split(",")[: MAX_FOUND + 1]
        return json_answer(self._finder.views([_integer(row, "rows") for row in given]))

    def guidelines(self, request: Request) -> Response:
        """Return the guidelines as they are in their file now."""
        path = self._options.guidelines
        return json_answer({"text": "" if path is None else guidelines_of(path)})

    def report(self, request: Request) -> Response:
        """Return the report of the campaign, which changes nothing."""
        campaign = campaign_of_session(self._session, self._accuracies.state)
        return HTMLResponse(campaign_page(campaign, self._options.title, self._base))

    def readings(self, request: Request) -> Response:
        """Return the label of each person, for ``graphuq classify --annotator-columns``."""
        table = readings_table(self._session.items, self._session.store.standing)
        return _table(table, "readings.csv")

    def log(self, request: Request) -> Response:
        """Return all that people did, in order."""
        return _table(log_table(self._session.store.records), "log.csv")

    def map(self, request: Request) -> Response:
        """Return the places of all items in the plane."""
        return json_answer(self._session.map())

    def labels(self, request: Request) -> Response:
        """Return all labels, for ``graphuq classify --labels``."""
        _, labels = self._session.latest
        return _table(self._session.items.label_table(labels), "labels.csv")

    def predictions(self, request: Request) -> Response:
        """Return the table of answers of all items."""
        session = self._session
        has_tags = session.classes.order == TAGS
        table = predictions_of(session.items, session.result, session.latest[1], has_tags)
        return _table(table, "predictions.csv")

    def export(self, request: Request) -> Response:
        """Return items and labels in the layout of another tool."""
        layout = layout_named(request.path_params["layout"])
        require_holds(layout, self._session.items, self._session.classes.order == TAGS)
        with tempfile.TemporaryDirectory() as folder, held_warnings():
            path = Path(folder) / layout.file
            layout.write(labelled_by(self._session), path)
            headers = {"Content-Disposition": f'attachment; filename="{layout.file}"'}
            return Response(path.read_bytes(), headers=headers,
                            media_type="application/octet-stream")  # fmt: skip

    def _user_of(self, request: Request) -> tuple[str, str]:
        """Return who asks, and on which of several pages."""
        asked = request.query_params
        user = user_of(asked.get("user"), name_of(request.scope), self._options.user)
        return user, asked.get("tab", "")[:20]


def _table(table: pd.DataFrame, name: str) -> Response:
    """Return a table as a file to be downloaded, without cells that a spreadsheet runs."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    with held_warnings():
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


def _share_of(request: Request, name: str) -> float:
    text = request.query_params[name]
    fits = SHARE.fullmatch(text) is not None
    require(fits, name, repr(text[:20]), "give a number from 0 to 1, such as 0.5")
    return float(text)
