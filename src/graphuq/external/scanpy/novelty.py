"""How unusual the uncertainty of a cell is, compared with cells of known types."""

import numpy as np
from jaxtyping import Float
from scipy.special import entr

from graphuq.errors import IncompatibleParts
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.label_numbers import entropy
from graphuq.results.result import Result


def novelty(result: Result) -> Float[np.ndarray, " N"]:
    """Return the share of known cells that are less uncertain than each cell.

    Each known cell is predicted from all other known cells (leave-one-out), so that it is
    uncertain as a cell of a known type is. If known cells are a random sample, values of other
    cells of known types are uniform in [0, 1]. A value of 1 means more uncertain than every known
    cell: the cell is of a type that nobody labelled, or between types.

    Parameters
    ----------
    result : Result

    Returns
    -------
    numpy.ndarray, shape (N,)
        In steps of 1/J for J known cells. NaN if the result has no leave-one-out probabilities.
    """
    try:
        withheld = kept_leave_one_out(result).of_class
    except IncompatibleParts:
        return np.full(len(result.has_evidence), np.nan)
    known = np.sort(entr(withheld).sum(axis=1))
    return np.asarray(np.searchsorted(known, entropy(result), side="left") / len(known))
