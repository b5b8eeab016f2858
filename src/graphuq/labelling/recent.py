"""The latest posteriors, by the labels that they know, so that undo restores the same numbers."""

from collections.abc import Mapping

from graphuq.labelling.model import Snapshot

KEPT = 8


class RecentSnapshots:
    """The latest posteriors. The caller holds a lock."""

    def __init__(self) -> None:
        self._by_labels: dict[frozenset, Snapshot] = {}

    def of(self, labels: Mapping[int, str]) -> Snapshot | None:
        """Return the posterior that knows some labels, if it is kept."""
        return self._by_labels.get(frozenset(labels.items()))

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a posterior as the latest one."""
        key = frozenset(snapshot.labels.items())
        self._by_labels.pop(key, None)
        self._by_labels[key] = snapshot
        while len(self._by_labels) > KEPT:
            del self._by_labels[next(iter(self._by_labels))]
