"""Warnings about names of classes: those that mean "no label", and those that are nearly alike."""

import re
import unicodedata
from itertools import groupby

import numpy as np
from jaxtyping import Bool

from graphuq.classifier.labels import PLACEHOLDERS
from graphuq.classifier.unlabelled_words import UNLABELLED
from graphuq.errors import GraphuqWarning, MissingLabelWarning
from graphuq.utils.user_warnings import warn_user

MOSTLY = 0.8  # share of rows; five-fold cross-validation of labels 0 and 1 stays below
CODES = (9, 99, 999, 9999, -9, -99, -999, -9999)  # that surveys use for "no answer"
SHOWN = 3  # groups of names in a warning


def warn_of_class_names(
    values: np.ndarray, given: Bool[np.ndarray, " N"], words_are_classes: bool = False
) -> None:
    """Warn if names of classes are likely mistakes.

    Parameters
    ----------
    values : numpy.ndarray, shape (N,)
        Label of each row.
    given : numpy.ndarray of bool, shape (N,)
        Which of them are labels.
    words_are_classes : bool, default False
        Whether words such as "unknown" were looked for before, and are names of classes here.

    Warns
    -----
    MissingLabelWarning
        If a class has a name that means "no label", or holds most rows and has one that often does.
    GraphuqWarning
        If classes differ in capitals, blanks, hyphens or the way of writing a number alone.
    """
    _warn_of_placeholder(values, given)
    if not words_are_classes:
        _warn_of_words(values[given], len(values))
    warn_of_alike(np.unique(values[given]), "y: the classes")


def _warn_of_words(labels: np.ndarray, n_rows: int) -> None:
    """Warn of classes such as "?" and "unknown" that do not hold most rows."""
    names, counts = np.unique(labels, return_counts=True)
    for name, count in zip(names.tolist(), counts.tolist(), strict=True):
        is_word = isinstance(name, str) and name.strip().casefold() in UNLABELLED
        if is_word and 2 * count <= n_rows:
            warn_user(
                f"y: {name!r} ({count} rows) is a class. Does it mean unlabelled? Then pass "
                f"missing_label={name!r}, or give None in its place.",
                MissingLabelWarning,
            )


def warn_of_alike(names: np.ndarray, what: str) -> None:
    """Warn if names are the same but for capitals, blanks, hyphens or the writing of a number.

    Single characters may differ in capitals.
    """
    texts = [name for name in names.tolist() if isinstance(name, str)]
    if all(len(text) < 2 for text in texts):
        return
    groups = [list(group) for _, group in groupby(sorted(texts, key=_plain), key=_plain)]
    alike = [" and ".join(map(repr, group)) for group in groups if len(group) > 1]
    if alike:
        more = f"; {len(alike) - SHOWN} more" if len(alike) > SHOWN else ""
        warn_user(
            f"{what} {'; '.join(alike[:SHOWN])}{more} differ in capitals, blanks, hyphens or the "
            "writing of a number alone; if they mean the same, write them alike",
            GraphuqWarning,
        )


def _plain(text: str) -> str:
    """Return a name without what people write in several ways."""
    seen = "".join(c for c in text if unicodedata.category(c) != "Cf")  # zero width, marks of order
    plain = re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", seen).casefold()).strip()
    try:
        return repr(float(text))
    except ValueError:
        return plain


def _warn_of_placeholder(values: np.ndarray, given: Bool[np.ndarray, " N"]) -> None:
    """Warn if a class that holds most rows has a name that often means "no label".

    0 is such a name beside -1 and +1, and where a tool of scikit-learn numbered the classes. So is
    the largest number of an unsigned type, to which -1 turns, and a code such as 99 or -9 that does
    not follow on the others.
    """
    names, counts = np.unique(values[given], return_counts=True)
    largest = names[counts.argmax()]
    is_placeholder = isinstance(largest, str) and largest.strip().casefold() in PLACEHOLDERS
    is_placeholder |= _is_code(largest, names)
    if values.dtype.kind == "u":
        is_placeholder = largest == np.iinfo(values.dtype).max
    if is_placeholder and 2 * counts.max() > len(values):
        warn_user(
            f"y: the class {largest.item()!r} holds {counts.max()} of {len(values)} rows. Does it "
            f"mean unlabelled? Then pass missing_label={largest.item()!r}.",
            MissingLabelWarning,
        )
    codes = list(range(len(names)))
    if (
        len(codes) > 2
        and given.all()
        and names.tolist() == codes
        and counts[0] > MOSTLY * len(given)
    ):
        warn_user(
            f"y: the class 0 holds {counts[0]} of {len(values)} rows, and all are labelled. Did a "
            "tool of scikit-learn number the classes, with -1 as the first? Then give it "
            "graphuq.WithUnlabelled(classifier, unlabelled rows), and labelled rows alone.",
            MissingLabelWarning,
        )
    if names.tolist() == [0, 1] and counts[0] > MOSTLY * len(values) and _has_minus_one(values):
        warn_user(
            f"y: the class 0 holds {counts[0]} of {len(values)} rows, and -1 means unlabelled. "
            "Are the classes -1 and +1? Then pass missing_label=0.",
            MissingLabelWarning,
        )


def _is_code(name: object, names: np.ndarray) -> bool:
    """Return whether a class is a code for "no answer", with a gap between it and the others."""
    numbers = []
    for one in names.tolist():
        try:
            numbers.append(float(one))
        except ValueError:
            return False
    number = float(name)  # type: ignore[arg-type]  # all of them are
    return number in CODES and not {number - 1, number + 1} & set(numbers)


def _has_minus_one(values: np.ndarray) -> bool:
    return values.dtype.kind in "if" and bool((values == -1).any())
