"""Audits on the page: a random sample that people label unaided, and when to stop."""

import math
import os
from typing import Any, NamedTuple

import numpy as np

from graphuq.acquisition.audit import audited_errors
from graphuq.errors import InvalidInput, require
from graphuq.labelling.forecast import ErrorsLeft
from graphuq.labelling.records import DRAW
from graphuq.labelling.session import Session
from graphuq.labelling.standing import Audit
from graphuq.labelling.tags import TAGS

COVERAGE = 0.9  # of the interval of an accuracy
MAX_SAMPLE = 1_000


class AuditResult(NamedTuple):
    """Accuracy of predictions by an audit.

    Attributes
    ----------
    n_answers, n_right : int
    accuracy : float
        Share of right predictions among the answers.
    lower, upper : float
        Ends of its 90 % interval by Clopper and Pearson (1934).
    """

    n_answers: int
    n_right: int
    accuracy: float
    lower: float
    upper: float


def result_of(audit: Audit) -> AuditResult | None:
    """Return the accuracy by the answers of an audit; None without an answer."""
    wrong = [audit.predicted[row] != label for row, label in audit.answers.items()]
    if not wrong:
        return None
    share = audited_errors(wrong, 1, COVERAGE)
    accuracy, lower, upper = (1 - v for v in (share.expected, share.upper, share.lower))
    return AuditResult(len(wrong), len(wrong) - sum(wrong), accuracy, lower, upper)


def sample_size(goal: float) -> int:
    """Return how many right answers without a wrong one show that the goal is reached.

    The interval of n right answers begins at ``((1 − .9) / 2)^(1 / n)``.

    Parameters
    ----------
    goal : float
        Accuracy in (0, 1).
    """
    tail = (1 - COVERAGE) / 2
    return max(1, math.ceil(math.log(tail) / math.log(goal) - 1e-9))


class Audits:
    """Audits of a session.

    Parameters
    ----------
    session : Session
    goal : float, default 0.95
        Accuracy of the predictions at which people want to stop, in (0, 1).

    Raises
    ------
    InvalidInput
        If the goal is out of range.
    """

    def __init__(self, session: Session, goal: float = 0.95) -> None:
        require(0 < goal < 1, "goal", f"{goal!r}", "give an accuracy in (0, 1), such as 0.95")
        self._session, self.goal = session, goal

    def draw(self, user: str, n: int) -> list[int]:
        """Draw unlabelled items at random, and keep what is predicted of them now.

        Each one comes next, without label and probabilities, until it has an answer.

        Parameters
        ----------
        user : str
            Who asks for the audit.
        n : int
            Number of items; fewer if fewer are left.

        Raises
        ------
        InvalidInput
            If there are no predictions, no item is left, or an audit is open.
        """
        require(1 <= n <= MAX_SAMPLE, "n", f"{n}", f"use 1 to {MAX_SAMPLE}")
        session = self._session
        has_tags = session.classes.order == TAGS
        require(not has_tags, "n", "an audit of tags", "see the expected wrong tags")
        (snapshot, labels), result = session.latest, session.result
        standing = session.store.standing
        require(standing.open_audit is None, "n", "an audit is open", "answer it, or end it")
        if result is None:
            raise InvalidInput("n", "no prediction yet", "label items of two classes first")
        predicted = [str(name) for name in result.classes[result.probabilities.argmax(axis=1)]]
        free = np.ones(len(session.items), dtype=bool)
        free[list(labels)] = False
        rows = np.flatnonzero(free)
        require(len(rows) > 0, "n", "no item without a label", "there is nothing to audit")
        errors = session.answer.errors
        drawn = np.random.default_rng().choice(rows, min(n, len(rows)), replace=False).tolist()
        session.write(
            user,
            dict.fromkeys(drawn),
            kind=DRAW,
            texts={row: predicted[row] for row in drawn},
            model=snapshot.version,
            expected_errors=None if errors is None else (1 - errors.accuracy[0]) * len(rows),
            batch=os.urandom(6).hex(),
            drawn_from=len(rows),
        )
        return drawn

    def end(self, user: str) -> int:
        """End the open audit; return how many items of it have no answer.

        The answers before count. If items were left because they are hard, the accuracy is too
        high.
        """
        audit = self._session.store.standing.open_audit
        if audit is None:
            return 0
        rows = audit.open_rows
        self._session.write(user, dict.fromkeys(rows), kind=DRAW, batch=audit.name, is_undo=True)
        return len(rows)

    def state(self) -> dict[str, Any]:
        """Return all audits, the advice, and the size of the next sample."""
        standing = self._session.store.standing
        open_audit = standing.open_audit
        return {
            "goal": self.goal,
            "size": sample_size(self.goal),
            "open": None if open_audit is None else len(open_audit.open_rows),
            "audits": [summary_of(a) for a in list(standing.audits.values()) if a.predicted],
            "advice": self._advice(),
        }

    def _advice(self) -> str:
        goal, (snapshot, labels) = _percent(self.goal), self._session.latest
        if len(labels) == len(self._session.items):
            return "All items have a label."
        audits = list(self._session.store.standing.audits.values())
        known = [found for found in map(result_of, audits) if found is not None]
        open_audit = self._session.store.standing.open_audit
        if open_audit is not None:
            return f"{len(open_audit.open_rows)} items of the audit are to be labelled."
        if not known:
            if snapshot.probabilities is None:
                return "Label items of two classes first."
            return self._advice_of_model(self._session.answer.errors)
        found = known[-1]
        if found.lower >= self.goal:
            return f"Enough: the interval of the latest audit is above {goal}. You can stop."
        if found.upper < self.goal:
            return f"Not enough: the interval of the latest audit is below {goal}. Label more."
        return f"Not clear: the interval of the latest audit holds {goal}. Label or audit more."

    def _advice_of_model(self, errors: ErrorsLeft | None) -> str:
        """Return what the interval of the model says, where there was no audit."""
        goal, size = _percent(self.goal), sample_size(self.goal)
        if errors is None:
            return f"The errors that are left are not counted yet. An audit takes {size} items."
        lower = errors.accuracy[1]
        says = f"By the model at least {_percent(lower)} of its predictions are right."
        if errors.by_tag:
            said = "Enough, if you trust it" if lower >= self.goal else f"That is below {goal}"
            return f"{says} {said}. The page has no audit of tags."
        if lower >= self.goal:
            return f"{says} Enough, if you trust it; an audit of {size} items does not need to."
        return f"{says} That is below {goal}: label more, or audit {size} items."


def _percent(share: float) -> str:
    return f"{math.floor(1000 * share + 1e-9) / 10:g}\u00a0%"


def summary_of(audit: Audit) -> dict[str, Any]:
    """Return an audit as values for JSON."""
    found, expected = result_of(audit), None
    if audit.expected_errors is not None and audit.drawn_from > 0:
        expected = 1 - audit.expected_errors / audit.drawn_from
    return {
        "time": audit.time,
        "user": audit.user,
        "model": audit.model,
        "n_drawn": len(audit.predicted),
        "n_left": len(audit.open_rows),
        "drawn_from": audit.drawn_from,
        "expected": expected,
        "result": None if found is None else found._asdict(),
    }
