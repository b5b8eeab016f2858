"""Tags of an item as one text, such as ``comedy;drama``; ``;`` alone is an item without tags."""

from collections.abc import Iterable

from graphuq.classifier.multilabel.table import SEPARATOR


def text_of(names: Iterable[str]) -> str:
    """Return tags as one text, in the order of their names."""
    return SEPARATOR.join(sorted(names)) or SEPARATOR


def names_in(text: str) -> list[str]:
    """Return the tags in a text."""
    return [name for name in text.split(SEPARATOR) if name]
