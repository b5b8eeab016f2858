"""Words of files that stand for "unlabelled" in a column of classes."""

import numpy as np

from graphuq.classifier.labels import PLACEHOLDERS
from graphuq.errors import MissingLabelWarning
from graphuq.utils.user_warnings import warn_user

AMBIGUOUS = {
    "-1", "-1.0", "none", "nil", "undefined", "unspecified", "no answer", "not applicable"
}  # classes in many files  # fmt: skip
UNLABELLED = PLACEHOLDERS - AMBIGUOUS


def without_words(labels: np.ndarray, argument: str, remedy: str) -> np.ndarray:
    """Return labels with "" in place of words that stand for "unlabelled", which a warning names.

    Parameters
    ----------
    labels : numpy.ndarray of str
    argument : str
        What the labels are, for the warning.
    remedy : str
        What makes the words classes.

    Warns
    -----
    MissingLabelWarning
        If there are such words.
    """
    names, counts = np.unique(labels, return_counts=True)
    is_word = np.array([name.strip().casefold() in UNLABELLED for name in names], dtype=bool)
    if not is_word.any():
        return labels
    words = zip(names[is_word].tolist(), counts[is_word], strict=True)
    found = [f"{name!r} ({count} row{'' if count == 1 else 's'})" for name, count in words]
    warn_user(
        f"{argument}: {', '.join(found)} {'is' if len(found) == 1 else 'are'} taken as unlabelled; "
        f"{remedy}",
        MissingLabelWarning,
    )
    return np.where(np.isin(labels, names[is_word]), "", labels)
