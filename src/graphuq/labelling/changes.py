"""What people change on the page, as decoded JSON."""

from typing import Any

from graphuq.errors import InvalidInput, require
from graphuq.labelling.audits import Audits
from graphuq.labelling.cards import remarks_of
from graphuq.labelling.names import check_name
from graphuq.labelling.people import Accuracies
from graphuq.labelling.records import BLIND, DECISION, FLAG, LABEL, NOTE
from graphuq.labelling.session import Session
from graphuq.utils.checks import describe, is_integer, is_number

MAX_VERSION = 1_000_000_000
MAX_NOTE = 2_000  # characters
GIVEN = (LABEL, BLIND, DECISION)  # kinds of a label that the page may name


class Changes:
    """What the page changes. Each method gets decoded JSON and returns values for JSON."""

    def __init__(self, session: Session, audits: Audits, accuracies: Accuracies, user: str) -> None:
        self._session, self._audits, self._accuracies = session, audits, accuracies
        self._user = user

    def label(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Store one class for some items."""
        rows = _rows_of(body)
        shown, version = body.get("probabilities", []), body.get("version")
        fits = isinstance(shown, list) and all(v is None or _is_share(v) for v in shown)
        require(fits, "probabilities", describe(shown), "give numbers in [0, 1] or null")
        require(len(shown) in (0, len(rows)), "probabilities", f"{len(shown)} numbers",
                f"give {len(rows)}, one a row, or none")  # fmt: skip
        fits = version is None or (is_integer(version) and 0 <= version <= MAX_VERSION)
        require(fits, "version", describe(version), "give a version of the page, or null")
        kind = body.get("kind", LABEL)
        require(kind in GIVEN, "kind", describe(kind), f"use {', '.join(GIVEN)}")
        pairs = zip(rows, shown, strict=False)
        self._session.label(
            self._user_of(body, user),
            rows,
            body.get("label", ""),
            {row: float(value) for row, value in pairs if value is not None},
            version,
            kind,
        )
        return {"saved": rows, "revision": self._session.revision}

    def undo(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Take back the latest act, and return the first of its items to be shown again."""
        rows = self._session.undo(self._user_of(body, user))
        return {"cards": [self._session.card(row) for row in rows[:1]], "rows": rows}

    def skip(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Put some items off."""
        self._session.skip(self._user_of(body, user), _rows_of(body))
        return {}

    def wish(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Put some items at the head of the queue."""
        self._session.wish(_rows_of(body))
        return {}

    def note(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Keep a remark about an item; an empty one is taken away."""
        text = body.get("text")
        fits = isinstance(text, str) and len(text) <= MAX_NOTE and _is_writable(text)
        require(fits, "text", describe(text), f"give at most {MAX_NOTE} characters of text")
        return self._remark(body, user, NOTE, str(text).strip())

    def flag(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Mark an item, or take the mark away."""
        on = body.get("on")
        require(isinstance(on, bool), "on", describe(on), "give true or false")
        return self._remark(body, user, FLAG, "flag" if on else "")

    def _remark(
        self, body: dict[str, Any], user: str | None, kind: str, text: str
    ) -> dict[str, Any]:
        rows = _rows_of(body)
        require(len(rows) == 1, "rows", f"{len(rows)} rows", "give one")
        self._session.write(
            self._user_of(body, user), {rows[0]: None}, kind=kind, texts={rows[0]: text}
        )
        return remarks_of(self._session.store.standing, rows[0])

    def audit(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Draw items for an audit."""
        n = body.get("n")
        require(is_integer(n), "n", describe(n), "give a number of items")
        return {"n": len(self._audits.draw(self._user_of(body, user), int(n or 0)))}

    def end_audit(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """End an audit before all of its items have an answer."""
        return {"n": self._audits.end(self._user_of(body, user))}

    def accuracies(self, body: dict[str, Any], user: str | None) -> dict[str, Any]:
        """Begin to compute how often each person is right."""
        self._user_of(body, user)
        self._accuracies.start()
        return self._accuracies.state

    def _user_of(self, body: dict[str, Any], user: str | None) -> str:
        return user_of(body.get("user"), user, self._user)


def user_of(given: Any, logged_in: str | None, default: str) -> str:
    """Return who acts: who logged in, or else the name that the page gives.

    Raises
    ------
    InvalidInput
        If the name cannot be used, or is not that of the login.
    """
    name = check_name(given or logged_in or default, "user")
    fits = logged_in is None or name == logged_in
    require(fits, "user", f"{name!r}", f"log in as {name[:40]}, or leave it out")
    return name


def _is_writable(text: str) -> bool:
    return all(part.isprintable() for part in text.splitlines())


def _rows_of(body: dict[str, Any]) -> list[int]:
    rows = body.get("rows")
    if not isinstance(rows, list) or not all(is_integer(row) for row in rows):
        raise InvalidInput("rows", describe(rows), "give a list of row numbers")
    return rows


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1
