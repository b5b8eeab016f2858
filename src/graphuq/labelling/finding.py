"""Items by what they hold and what was said of them: look-alikes, search and filters."""

from typing import Any

import numpy as np

from graphuq.errors import InvalidInput, require
from graphuq.labelling.session import Session

ALIKE = 24  # items of the grid of look-alikes
MAX_FOUND = 200  # items that a search shows, so that all can be seen before they are labelled
STATES = ("", "unlabelled", "labelled", "disagreement", "flag", "note", "one person", "audit")
ORDERS = ("", "least certain", "most certain")


class Finder:
    """Small views of items that a person looks for.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def alike(self, row: int, label: str | None = None) -> list[dict[str, Any]]:
        """Return unlabelled items that are most similar to one, the closest first.

        Parameters
        ----------
        row : int
        label : str, optional
            Only items of which this class is the likeliest.
        """
        session = self._session
        session.check_rows([row])
        similarity = session.similarity
        if similarity is None:
            return []
        free = self._in_state("unlabelled")
        if label is not None and label in session.latest[0].classes:
            free &= self._of_class(label)
        return session.thumbs(similarity.closest(row, np.flatnonzero(free), ALIKE).tolist())

    def find(
        self,
        text: str = "",
        label: str = "",
        by: str = "",
        state: str = "",
        least: float = 0.0,
        most: float = 1.0,
        order: str = "",
    ) -> dict[str, Any]:
        """Return the first items that fit, and how many do.

        Parameters
        ----------
        text : str
            Part of the name or text of an item.
        label : str
            Class of an item, or its likeliest class if it has no label.
        by : str
            Who labelled it.
        state : str
            One of `STATES`.
        least, most : float
            Range of the probability of the likeliest class, in [0, 1].
        order : str
            One of `ORDERS`; by row if empty.

        Returns
        -------
        dict
            ``views`` and ``n``.

        Raises
        ------
        InvalidInput
            If a state or an order is unknown, or the range is none.
        """
        require(state in STATES, "state", f"{state[:20]!r}", f"use {', '.join(STATES[1:])}")
        require(order in ORDERS, "order", f"{order[:20]!r}", f"use {', '.join(ORDERS[1:])}")
        fits = 0 <= least <= most <= 1
        require(fits, "least", f"{least:g} to {most:g}", "give 0 ≤ least ≤ most ≤ 1")
        found = self._in_state(state)
        if label:
            found &= self._of_class(label)
        if by:
            found &= self._by(by)
        likeliest = self._session.latest[0].certainty
        if least > 0 or most < 1:
            found &= False if likeliest is None else (likeliest >= least) & (likeliest <= most)
        rows = np.flatnonzero(found)
        if text.strip():
            rows = self._session.items.containing(text.strip(), rows)
        if order and likeliest is not None:
            sign = 1 if order == "least certain" else -1
            rows = rows[np.argsort(sign * likeliest[rows], kind="stable")]
        return {"views": self._session.thumbs(rows[:MAX_FOUND].tolist()), "n": len(rows)}

    def views(self, rows: list[int]) -> list[dict[str, Any]]:
        """Return small views of some rows, to be looked at before they are labelled."""
        self._session.check_rows(rows)
        if len(rows) > MAX_FOUND:
            raise InvalidInput("rows", f"{len(rows)}", f"give at most {MAX_FOUND}")
        return self._session.thumbs(rows)

    def _in_state(self, state: str) -> np.ndarray:
        session = self._session
        standing, labelled = session.store.standing, list(session.latest[1])
        n = len(session.items)
        if state == "":
            return np.ones(n, dtype=bool)
        audits = list(standing.audits.values())
        rows: Any = {
            "unlabelled": lambda: labelled,
            "labelled": lambda: labelled,
            "disagreement": lambda: [d.row for d in session.store.disagreements()],
            "flag": lambda: list(standing.flags),
            "note": lambda: list(standing.notes),
            "one person": lambda: list(standing.single),
            "audit": lambda: [row for audit in audits for row in audit.predicted],
        }[state]()
        found = _mask(rows, n)
        return ~found if state == "unlabelled" else found

    def _of_class(self, label: str) -> np.ndarray:
        snapshot, labels = self._session.latest
        n = len(self._session.items)
        found = np.zeros(n, dtype=bool)
        if label in snapshot.classes and snapshot.probabilities is not None:
            found = snapshot.has_class(label)
        found[list(labels)] = False
        parts = self._session.classes.classes_in
        return found | _mask([row for row, name in labels.items() if label in parts(name)], n)

    def _by(self, user: str) -> np.ndarray:
        readings = self._session.store.readings()
        return _mask([row for row, by in readings.items() if user in by], len(self._session.items))


def _mask(rows: list[int], n: int) -> np.ndarray:
    found = np.zeros(n, dtype=bool)
    found[np.asarray(rows, dtype=np.int64)] = True
    return found
