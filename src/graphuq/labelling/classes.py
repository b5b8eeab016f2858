"""The order of the classes of a page, and which names are classes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from graphuq.classifier.class_order import is_ordered
from graphuq.errors import require
from graphuq.labelling.names import check_name

NONE, NUMBERS, LISTED = "", "numbers", "list"


class PageClasses:
    """Classes without an order, or with one: grades.

    Parameters
    ----------
    ordered : bool or list of str, default False
        As of `GraphClassifier`. A list is all grades, from the lowest to the highest. True: each
        class is a number, and others can be added on the page.

    Attributes
    ----------
    order : str
        "" without an order, "numbers" or "list"; "tags" of `PageTags`.

    Raises
    ------
    InvalidInput
        If it is no such list.
    """

    def __init__(self, ordered: Any = False) -> None:
        self.order, self._listed = NONE, list[str]()
        if not is_ordered(ordered):
            return
        self.order = NUMBERS
        if not isinstance(ordered, bool):
            self.order, self._listed = LISTED, [check_name(str(n), "ordered") for n in ordered]
            remedy = "give each grade once, from the lowest to the highest"
            fits = 1 < len(set(self._listed)) == len(self._listed)
            require(fits, "ordered", f"{self._listed[:9]}", remedy)

    def label_of(self, value: Any) -> str:
        """Return a label that the page gave, as it is kept.

        Raises
        ------
        InvalidInput
            If it is no name that can be used, or has no place in the order.
        """
        name = check_name(value, "label")
        self.check([name])
        return name

    def classes_in(self, label: str) -> list[str]:
        """Return the classes of a label: itself."""
        return [label]

    def counts(self, labels: Mapping[int, str]) -> Counter[str]:
        """Return how many items have each class."""
        return Counter(labels.values())

    def check(self, names: Iterable[str], argument: str = "label") -> None:
        """Refuse names that have no place in the order.

        Raises
        ------
        InvalidInput
            If one is not in the list, or no number.
        """
        shown = ", ".join(self._listed[:12])
        for name in names:
            if self.order == LISTED:
                require(name in self._listed, argument, f"{name!r} is no grade", f"use {shown}")
            elif self.order == NUMBERS:
                require(_is_number(name), argument, f"{name!r} is no number", "use a number")

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return all grades of a list, numbers from the lowest on, or the names as they are."""
        if self.order == LISTED:
            return list(self._listed)
        found = list(dict.fromkeys(names))
        return sorted(found, key=float) if self.order == NUMBERS else found

    def for_fit(self, labels: Iterable[str]) -> list[str] | bool:
        """Return the parameter ``ordered`` of a fit to some labels."""
        return self.in_order(labels) if self.order else False


def _is_number(name: str) -> bool:
    try:
        return abs(float(name)) < float("inf")
    except ValueError:
        return False
