"""Several classes an item: tags, which of them are known, and which of them a model can learn."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.classifier.multilabel.tags import tags_of
from graphuq.errors import InvalidInput, require
from graphuq.labelling.classes import PageClasses
from graphuq.labelling.names import check_name
from graphuq.labelling.standing import Standing
from graphuq.labelling.tag_text import names_in, text_of

TAGS = "tags"
RESERVED = re.compile("[;|]")  # which separate names in files
MAX_TAGS = 200  # of one item


class PageTags(PageClasses):
    """Several classes an item: tags, each of which an item has or not."""

    def __init__(self) -> None:
        super().__init__()
        self.order = TAGS

    def label_of(self, value: Any, argument: str = "label") -> str:
        """Return the text of a list of names.

        Raises
        ------
        InvalidInput
            If it is no list of names that can be used.
        """
        if not isinstance(value, list | tuple | set | frozenset) or len(value) > MAX_TAGS:
            what = "too many" if isinstance(value, list) else type(value).__name__
            raise InvalidInput(argument, what, f"give a list of at most {MAX_TAGS} names of tags")
        names = {check_name(name, argument) for name in value}
        self.check(names, argument)
        return text_of(names)

    def check(self, names: Iterable[str], argument: str = "label") -> None:
        """Refuse names that hold a separator."""
        for name in names:
            fits = RESERVED.search(name) is None
            require(fits, argument, f"{name!r} as a tag", "use a name without ; and |")

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return the tags in some texts, each once."""
        return list(dict.fromkeys(name for text in names for name in names_in(text)))

    def classes_in(self, label: str) -> list[str]:
        """Return the tags of a label."""
        return names_in(label)

    def counts(self, labels: Mapping[int, str]) -> Counter[str]:
        """Return how many items have each tag."""
        return Counter(name for text in labels.values() for name in names_in(text))


def known_tags(y: Any, n_items: int) -> dict[int, str]:
    """Return the tags that are known already, by row.

    Parameters
    ----------
    y : array_like, shape (N, T), or sequence of N sets, or None
        As for `graphuq.MultilabelClassifier`. Of a row all tags are known, or none.
    n_items : int

    Raises
    ------
    InvalidInput
        If there is not one row for each item, or some tags of a row are unknown.
    """
    if y is None:
        return {}
    if isinstance(y, list | tuple) and all(row is None for row in y):
        require(len(y) == n_items, "y", f"{len(y)} rows", f"give {n_items}, one an item")
        return {}
    tags, classes = tags_of(y, "y"), PageTags()
    n_rows = len(tags.codes)
    require(n_rows == n_items, "y", f"{n_rows} rows", f"give {n_items}, one an item")
    is_known = tags.codes >= 0
    partly = np.flatnonzero(is_known.any(axis=1) & ~is_known.all(axis=1))
    remedy = "give all tags of a row, or none"
    require(len(partly) == 0, "y", f"unknown tags in row {partly[:1].tolist()}", remedy)
    names = np.array([str(name) for name in tags.names], dtype=object)
    return {
        int(row): classes.label_of(names[tags.codes[row] == 1].tolist(), "y")
        for row in np.flatnonzero(is_known.all(axis=1))
    }


def unknown_tags(standing: Standing, declared: Collection[str]) -> dict[int, set[str]]:
    """Return by row the tags that were first given after the row was labelled.

    Nobody was asked for them then. Tags that the page offered from the beginning are known.

    Parameters
    ----------
    standing : Standing
    declared : collection of str
        Tags that the page offered from the beginning.
    """
    since = dict.fromkeys(declared, -1)
    for text, number in standing.classes.items():
        for name in names_in(text):
            since.setdefault(name, number)
    rows = standing.latest_numbers
    late = {row: {name for name in since if since[name] > number} for row, number in rows.items()}
    return {row: names for row, names in late.items() if names}


def codes_of(
    labels: Mapping[int, str], unknown: Mapping[int, Collection[str]], n_items: int
) -> tuple[tuple[str, ...], Int[np.ndarray, "N T"]]:
    """Return the tags that some items have and others have not, and which items do.

    Parameters
    ----------
    labels : mapping of int to str
        Text of each labelled row.
    unknown : mapping of int to collection of str
        Tags of which nothing is known, by row.
    n_items : int

    Returns
    -------
    tuple of tuple of str, length T, and numpy.ndarray of int, shape (N, T)
        1 for an item with the tag, 0 for one without, −1 where it is unknown.
    """
    names = sorted({name for text in labels.values() for name in names_in(text)})
    at = {name: column for column, name in enumerate(names)}
    codes = np.full((n_items, len(names)), -1)
    for row, text in labels.items():
        codes[row] = 0
        codes[row, [at[name] for name in unknown.get(row, ()) if name in at]] = -1
        codes[row, [at[name] for name in names_in(text)]] = 1
    has_both = (codes == 1).any(axis=0) & (codes == 0).any(axis=0)
    kept: Sequence[str] = [name for name, both in zip(names, has_both, strict=True) if both]
    return tuple(kept), codes[:, has_both]
