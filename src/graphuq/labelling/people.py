"""What several people's labels say of each other: agreement, and how often each one is right."""

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.classifier.annotators import AnnotatorClassifier
from graphuq.errors import GraphuqError, InvalidInput, require
from graphuq.inference import MCMC
from graphuq.labelling.agreement import Agreement, krippendorff_alpha
from graphuq.labelling.items import Items
from graphuq.labelling.session import Session
from graphuq.labelling.standing import Standing
from graphuq.labelling.tag_text import names_in
from graphuq.labelling.tags import TAGS
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

SAMPLING = MCMC(n_samples=500)  # of accuracies, whose Monte-Carlo error is then below .01


def agreement_of(standing: Standing) -> Agreement | None:
    """Return the agreement about items that two people read unaided; None if there are none."""
    try:
        return krippendorff_alpha(standing.pairs().values())
    except InvalidInput:
        return None


def agreement_by_tag(standing: Standing) -> dict[str, Agreement]:
    """Return the agreement about each tag, of those about which it is known."""
    pairs = list(standing.pairs().values())
    names = sorted({name for by in pairs for text in by.values() for name in names_in(text)})
    found = {}
    for name in names:
        said = [{user: str(name in names_in(text)) for user, text in by.items()} for by in pairs]
        with contextlib.suppress(InvalidInput):
            found[name] = krippendorff_alpha(said)
    return found


def readings_table(items: Items, standing: Standing) -> "pd.DataFrame":
    """Return a table with ``id`` and a column for each person, a row for each labelled item.

    Labels that two people gave unaided are as they were given first. ``graphuq classify
    --annotator-columns`` reads the table.
    """
    require_extra("label")
    import pandas as pd

    readings = {**standing.readings(), **standing.pairs()}
    people = sorted({user for by in readings.values() for user in by})
    rows = sorted(readings)
    table: dict[str, list[Any]] = {"id": [items.ids[row] for row in rows]}
    for number, user in enumerate(people):
        name = user if user not in table else f"{user} {number}"  # a person whose name is id
        table[name] = [readings[row].get(user) for row in rows]
    return pd.DataFrame(table, dtype=object)


class Accuracies:
    """How often each person is right, by the model of annotators, in a thread of its own.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        self._session, self._lock = session, threading.Lock()
        self._thread: threading.Thread | None = None
        self._found: dict[str, Any] = {"people": [], "n_labels": 0, "failure": None}

    @property
    def state(self) -> dict[str, Any]:
        """What was computed last: ``people``, ``n_labels``, ``failure``, and ``busy``."""
        busy = self._thread is not None and self._thread.is_alive()
        return {**self._found, "busy": busy}

    def start(self) -> None:
        """Begin to compute, unless that is going on.

        Raises
        ------
        InvalidInput
            If items have tags, for which there is no model of people.
        """
        has_tags, remedy = self._session.classes.order == TAGS, "see the agreement in the report"
        require(not has_tags, "labels", "of tags, whose people have no model", remedy)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            self._found = {**self.compute(), "failure": None}
        except GraphuqError as error:
            self._found = {**self._found, "failure": str(error)}

    def compute(self) -> dict[str, Any]:
        """Return the accuracy of each person with its 90 % interval.

        The true classes, which nobody knows, are inferred from the labels of all people and from
        the graph; see `graphuq.AnnotatorClassifier`.

        Raises
        ------
        InvalidInput
            If there are fewer than two people, or labels of one class only.
        """
        session = self._session
        if session.model is None:
            raise InvalidInput("labels", "no graph yet", "wait until it is built")
        standing = session.store.standing
        readings = {**standing.readings(), **standing.pairs()}
        people = sorted({user for by in readings.values() for user in by})
        require(len(people) > 1, "labels", f"{len(people)} person", "let another one label, too")
        y = np.full((len(session.items), len(people)), "", dtype=object)
        for row, by in readings.items():
            for user, label in by.items():
                y[row, people.index(user)] = label
        fitted = AnnotatorClassifier(graph=session.model.settings.graph, inference=SAMPLING).fit(
            None, y
        )
        table = fitted.annotators_.assign(annotator=people)
        return {"people": table.to_dict("records"), "n_labels": int((y != "").sum())}
