"""Items that people label without help: second readings, and items of an audit."""

from collections.abc import Sequence

import numpy as np

from graphuq.errors import require
from graphuq.labelling.records import AUDIT, BLIND, DECISION, LABEL
from graphuq.labelling.store import LabelStore


class UnaidedRows:
    """Which items are shown without labels and probabilities, to whom, and how labels are kept.

    Parameters
    ----------
    store : LabelStore
    n_items : int
    overlap : float
        Share of the items that two people label, chosen at random.

    Raises
    ------
    InvalidInput
        If the share is not in [0, 1].
    """

    def __init__(self, store: LabelStore, n_items: int, overlap: float) -> None:
        require(0 <= overlap <= 1, "overlap", f"{overlap!r}", "give a share in [0, 1]")
        self._store, self.overlap = store, float(overlap)
        # The same rows whenever the page runs, and if items are added at the end.
        self._is_read_twice = np.random.default_rng(0).random(n_items) < overlap

    def due(self, user: str) -> list[int]:
        """Return rows that a user is to read before all others: of an audit, then second ones.

        An item of an audit that the user skipped comes after its other items.
        """
        audit = self._store.standing.open_audit
        skipped = set(self._store.standing.skipped_by(user))
        first = [] if audit is None else sorted(audit.open_rows, key=skipped.__contains__)
        if self.overlap == 0:
            return first
        single = list(self._store.standing.single)
        return [*first, *(row for row in single if self._is_second(row, user))]

    def put_off(self, user: str) -> list[int]:
        """Return rows that a user skipped and reads after all others: all but those of an audit."""
        audit, rows = self._store.standing.open_audit, self._store.standing.skipped_by(user)
        return rows if audit is None else [row for row in rows if not audit.is_open(row)]

    def reason(self, row: int, user: str | None) -> str | None:
        """Return why a user reads a row without help, "audit" or "second", or None."""
        audit = self._store.standing.open_audit
        if audit is not None and audit.is_open(row):
            return "audit"
        return "second" if user is not None and self._is_second(row, user) else None

    def kind_of(self, user: str, rows: Sequence[int], kind: str) -> tuple[str, str | None]:
        """Return the kind of record of a label, and the name of its audit."""
        row, standing = int(rows[0]), self._store.standing
        if len(rows) > 1:
            return LABEL, None
        if kind == BLIND:
            reason, audit = self.reason(row, user), standing.open_audit
            if reason == "audit" and audit is not None:
                return AUDIT, audit.name
            return (LABEL if reason is None else BLIND), None
        decides = kind == DECISION and standing.is_disputed(row)
        return (DECISION if decides else LABEL), None

    def _is_second(self, row: int, user: str) -> bool:
        by = self._store.standing.single.get(row)
        return by not in (None, user) and bool(self._is_read_twice[row])
