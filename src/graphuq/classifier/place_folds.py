"""Cross-validation by places: folds of whole blocks, since neighbours are nearly copies."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import check_random_state

from graphuq.classifier.labels import split_labels
from graphuq.classifier.model_selection import hiding, require_certain
from graphuq.classifier.types import Labels, Table
from graphuq.errors import UnlabelledScoreWarning, require
from graphuq.utils.user_warnings import warn_user


class PlaceKFold:
    """K-fold splitter that holds out the labelled rows of whole blocks of places.

    Places are divided into squares, and these are dealt to the folds at random (block
    cross-validation, Roberts et al. 2017). A test fold has the labelled rows of its squares. A row
    near a labelled one is nearly its copy, so that folds of single rows promise too much for places
    without any label.

    Scikit-learn fits on ``X[train], y[train]``. Training folds have no row of the held-out squares,
    labelled or not. `hide` keeps them in the graph, for loops of your own.

    Parameters
    ----------
    places : array_like, shape (N, 2)
        Coordinates of each row, such as row and column of a pixel.
    block_size : float
        Side of a square, in units of the places: a few times the distance over which rows are
        alike, such as the width of a field.
    n_splits : int, default 5
        Number of folds; at least 2, and at most the number of squares with labelled rows.
    random_state : int, RandomState or None, default 0
        Seed of the squares of each fold.
    missing_label : object, default -1
        Value of ``y`` that means unlabelled, besides NaN, None, ``pd.NA`` and "".

    Raises
    ------
    InvalidInput
        If places are not finite numbers of two columns, or a number is out of range.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> places = np.argwhere(np.ones((20, 20)))
    >>> y = np.where(np.arange(400) % 7, -1, places[:, 1] // 10)
    >>> folds = gq.PlaceKFold(places, block_size=5)
    >>> train, test = next(folds.split(places, y))
    >>> blocks = places // 5
    >>> bool({tuple(b) for b in blocks[train]} & {tuple(b) for b in blocks[test]})
    False
    """

    def __init__(
        self,
        places: Any,
        block_size: float,
        n_splits: int = 5,
        *,
        random_state: Any = 0,
        missing_label: object = -1,
    ) -> None:
        array = np.asarray(places)
        require(
            array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iuf",
            "places",
            f"shape {array.shape} of type {array.dtype}",
            "give two coordinates a row",
        )
        require(bool(np.isfinite(array).all()), "places", "NaN or infinite", "give finite numbers")
        require(n_splits >= 2, "n_splits", f"{n_splits!r}", "use 2 or more")
        require(0 < block_size < np.inf, "block_size", f"{block_size!r}", "use a positive number")
        self.places = array
        self.block_size = block_size
        self.n_splits = n_splits
        self.random_state = random_state
        self.missing_label = missing_label

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds; the arguments are ignored."""
        return self.n_splits

    def split(
        self, X: Table, y: Labels = None, groups: object = None
    ) -> Iterator[tuple[Int[np.ndarray, " T"], Int[np.ndarray, " H"]]]:
        """Yield the row numbers of each training fold and of each test fold.

        Parameters
        ----------
        X : array_like, shape (N, d)
            Unused: the places tell the number of rows.
        y : array_like, shape (N,)
            Class of each row, or a missing label.
        groups : object, optional
            Ignored.

        Yields
        ------
        train : numpy.ndarray
            Rows outside of the held-out squares.
        test : numpy.ndarray
            Labelled rows of the held-out squares.

        Raises
        ------
        InvalidInput
            If y has another number of rows, or fewer squares than folds have labelled rows.

        Warns
        -----
        UnlabelledScoreWarning
            If all labels of a class are in one test fold, which cannot predict it.
        """
        given, fold = self._folds(y)
        for k in range(self.n_splits):
            held_out = fold == k
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out & given)

    def hide(self, y: Labels) -> Iterator[tuple[np.ndarray, Int[np.ndarray, " H"]]]:
        """Yield y with the labels of one test fold hidden, and the row numbers of that fold.

        All rows stay in the graph of each fit; see `LabelledKFold.hide`.

        Parameters
        ----------
        y : array_like, shape (N,)
            Class of each row, or a missing label.

        Yields
        ------
        y_train : numpy.ndarray of object, shape (N,)
            None at the rows of the test fold; other rows as in ``y``.
        test : numpy.ndarray
            Labelled rows.
        """
        yield from hiding(y, (test for _, test in self.split(self.places, y)))

    def _folds(self, y: Labels) -> tuple[np.ndarray, Int[np.ndarray, " N"]]:
        """Return which rows are labelled, and the fold of each row; −1 if its square has none."""
        require_certain(y)
        values, given = split_labels(y, self.missing_label)
        require(
            len(given) == len(self.places),
            "y",
            f"{len(given)} rows beside {len(self.places)} places",
            "give one place a row",
        )
        squares = _squares(self.places, self.block_size)
        known = np.unique(squares[given])
        require(
            len(known) >= self.n_splits,
            "n_splits",
            f"{self.n_splits} folds for {len(known)} squares with labelled rows",
            f"use at most {len(known)}, or a smaller block_size",
        )
        of_square = np.full(int(squares.max()) + 1, -1)
        dealt = check_random_state(self.random_state).permutation(known)
        of_square[dealt] = np.arange(len(known)) % self.n_splits
        fold = of_square[squares]
        self._warn_of_classes_of_one_fold(values, given, fold)
        return given, fold

    def _warn_of_classes_of_one_fold(
        self, values: np.ndarray, given: np.ndarray, fold: Int[np.ndarray, " N"]
    ) -> None:
        classes, codes = np.unique(values[given].astype(str), return_inverse=True)
        lone = [
            str(name)
            for k, name in enumerate(classes)
            if len(np.unique(fold[given][codes == k])) == 1
        ]
        if lone:
            warn_user(
                f"y: all labels of the classes {lone} are in one fold, which cannot predict them; "
                "use a smaller block_size or another random_state",
                UnlabelledScoreWarning,
            )


def _squares(places: Float[np.ndarray, "N 2"], size: float) -> Int[np.ndarray, " N"]:
    """Return the number of the square of each place."""
    corners = np.floor((places - places.min(axis=0)) / size).astype(np.int64)
    return np.unique(corners, axis=0, return_inverse=True)[1].ravel()
