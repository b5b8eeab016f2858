"""Tags of an item as one text, such as ``comedy;drama``; ``;`` alone is an item without tags."""

from collections.abc import Iterable

from graphuq.classifier.multilabel.table import SEPARATOR


def text_of(names: Iterable[str]) -> str:
    """Return tags as one text, in the order of their names.

    It ends with a separator if it would have none and a comma might be taken as one.
    """
    text = SEPARATOR.join(sorted(names))
    return text if text and ("," not in text or SEPARATOR in text) else text + SEPARATOR


def names_in(text: str) -> list[str]:
    """Return the tags in a text."""
    return [name for name in text.split(SEPARATOR) if name]
