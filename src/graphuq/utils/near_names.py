"""The name that somebody may have meant, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

MAX_NAMES = 10_000  # that are compared, which takes a tenth of a second


def did_you_mean(name: object, names: Iterable[object], remedy: str) -> str:
    """Return the nearest of some names as a question, or a remedy if none is near.

    A near name has the same digits: 17 is no slip for 170, nor is V-17 for V-18.

    Parameters
    ----------
    name : object
        Name that is not among ``names``.
    names : iterable
    remedy : str
        What to say otherwise.
    """
    texts, digits = map(str, islice(names, MAX_NAMES)), _digits(str(name))
    same = [text for text in texts if _digits(text) == digits]
    near = get_close_matches(str(name), same, n=1)
    return f"did you mean {near[0]!r}?" if near else remedy


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))
