"""Who is shown which item next."""

import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

AWAY_S = 300.0  # after which a page without requests, or a person without acts, counts as away


@dataclasses.dataclass
class _Person:
    """What one person was shown."""

    offered: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # by tab
    seen: dict[str, float] = dataclasses.field(default_factory=dict)  # time of each tab
    acted: float = dataclasses.field(default_factory=time.monotonic)


class Turns:
    """What was offered to each person, and wished for. The caller holds a lock.

    No item is offered to two people, or in two tabs of one, unless no other one is left. A tab
    that was closed gives its items back after a while. Of somebody who does nothing while a tab is
    open, others get the rows that are due.
    """

    def __init__(self) -> None:
        self._people: dict[str, _Person] = {}
        self._wishes: dict[int, set[str]] = {}  # rows that come first, and who skipped them since

    def next_rows(
        self,
        user: str,
        tab: str,
        n: int,
        before: Collection[int],
        labelled: Collection[int],
        ranked: Iterable[int],
        due: Iterable[int] = (),
        skipped: Sequence[int] = (),
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
        skipped : sequence of int, optional
            Rows that come after all others, unless somebody has wished for them since.
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
        waiting = {
            row
            for name, other in self._people.items()
            for row in chain.from_iterable(other.offered.values())
            if name != user and other.acted <= until
        }
        wished = [row for row, since in self._wishes.items() if user not in since]
        put_off = others.union(set(skipped).difference(wished))
        due = list(due)
        ranked = (row for row in chain(wished, ranked) if row not in put_off)
        later = chain(ranked, skipped, others)
        free = (row for row in due if row not in put_off)
        first = chain(free, (row for row in due if row in waiting))
        again = set(due)
        rest = (row for row in later if row in again or row not in labelled)
        rows = list(islice(_new(chain(first, rest), before), n))
        person.offered[tab] = [*rows, *before]
        return rows

    def see(self, user: str, tab: str) -> None:
        """Note that a tab is still open."""
        self._person(user).seen[tab] = time.monotonic()

    def skip(self, user: str, rows: Iterable[int]) -> None:
        """Let wishes wait that a user skips."""
        self._person(user).acted = time.monotonic()
        for row in rows:
            if row in self._wishes:
                self._wishes[row].add(user)

    def note_label(self, user: str, rows: Collection[int]) -> None:
        """Let others have the rows that a user labelled."""
        person = self._person(user)
        person.acted = time.monotonic()
        for tab, offered in person.offered.items():
            person.offered[tab] = [row for row in offered if row not in rows]

    def wish(self, rows: Iterable[int]) -> None:
        """Put some items first, also those that were skipped."""
        chosen: dict[int, set[str]] = {row: set() for row in rows}
        before = {row: since for row, since in self._wishes.items() if row not in chosen}
        self._wishes = chosen | before

    def forget_wishes(self, labelled: Collection[int]) -> None:
        """Leave out wishes that came true."""
        self._wishes = {row: by for row, by in self._wishes.items() if row not in labelled}

    def _person(self, user: str) -> _Person:
        return self._people.setdefault(user, _Person())


def _new(rows: Iterable[int], *known: Collection[int]) -> Iterator[int]:
    """Yield each row once, without those that are known."""
    seen = set(chain(*known))
    for row in rows:
        if row not in seen:
            seen.add(row)
            yield row
