"""Who is shown which item next."""

import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice

AWAY_S = 300.0  # after which a page that asks for nothing gives its items back


@dataclasses.dataclass
class _Person:
    """What one person was shown, and did."""

    offered: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # by tab
    seen: dict[str, float] = dataclasses.field(default_factory=dict)  # time of each tab
    skipped: list[int] = dataclasses.field(default_factory=list)
    acts: list[int | None] = dataclasses.field(default_factory=list)  # row of a skip, or a label


class Turns:
    """What was offered to each person, skipped and wished for. The caller holds a lock.

    No item is offered to two people, or in two tabs of one, unless no other one is left. A tab
    that was closed gives its items back after a while.
    """

    def __init__(self) -> None:
        self._people: dict[str, _Person] = {}
        self._wishes: dict[int, None] = {}  # rows that come first, in order

    def next_rows(
        self,
        user: str,
        tab: str,
        n: int,
        before: Collection[int],
        labelled: Collection[int],
        ranked: Iterable[int],
        due: Iterable[int] = (),
    ) -> list[int]:
        """Return the next rows of a tab, and remember them.

        Parameters
        ----------
        user, tab : str
        n : int
        before : collection of int
            Rows that the tab has already.
        labelled : collection of int
        ranked : iterable of int
            All rows without a label, the best first; rows may repeat.
        due : iterable of int, optional
            Rows that come before all others, also if they have a label of another person.
        """
        self.see(user, tab)
        person, until = self._person(user), time.monotonic() - AWAY_S
        others = {
            row
            for name, other in self._people.items()
            for at, rows in other.offered.items()
            for row in rows
            if (name, at) != (user, tab) and other.seen[at] > until
        }
        put_off = others.union(person.skipped)
        due = list(due)
        ranked = (row for row in chain(self._wishes, ranked) if row not in put_off)
        later = chain(ranked, person.skipped, others)
        first = (row for row in due if row not in put_off)
        again = set(due)
        rest = (row for row in later if row in again or row not in labelled)
        rows = list(islice(_new(chain(first, rest), before), n))
        person.offered[tab] = [*rows, *before]
        return rows

    def see(self, user: str, tab: str) -> None:
        """Note that a tab is still open."""
        self._person(user).seen[tab] = time.monotonic()

    def skip(self, user: str, row: int) -> None:
        """Put an item off for a user."""
        person = self._person(user)
        if row not in person.skipped:
            person.skipped.append(row)
            person.acts.append(row)

    def note_label(self, user: str, rows: Collection[int]) -> None:
        """Remember that the latest act of a user is a label, and that others may have its rows."""
        person = self._person(user)
        person.acts.append(None)
        for tab, offered in person.offered.items():
            person.offered[tab] = [row for row in offered if row not in rows]

    def undo(self, user: str) -> int | None:
        """Take back the latest act of a user; return its row, or None if it was a label."""
        person = self._person(user)
        while person.acts:
            row = person.acts.pop()
            if row is None:
                return None
            if row in person.skipped:
                person.skipped.remove(row)
                return row
        return None

    def wish(self, rows: Iterable[int]) -> None:
        """Put some items first, also those that were skipped."""
        chosen = dict.fromkeys(rows)
        self._wishes = chosen | self._wishes
        for person in self._people.values():
            person.skipped = [row for row in person.skipped if row not in chosen]

    def forget_wishes(self, labelled: Collection[int]) -> None:
        """Leave out wishes that came true."""
        self._wishes = {row: None for row in self._wishes if row not in labelled}

    @property
    def skipped(self) -> list[int]:
        """Items that anybody put off."""
        return [row for person in self._people.values() for row in person.skipped]

    def _person(self, user: str) -> _Person:
        return self._people.setdefault(user, _Person())


def _new(rows: Iterable[int], *known: Collection[int]) -> Iterator[int]:
    """Yield each row once, without those that are known."""
    seen = set(chain(*known))
    for row in rows:
        if row not in seen:
            seen.add(row)
            yield row
