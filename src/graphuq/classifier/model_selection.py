"""Cross-validation and scores for partly labelled data: only labelled rows are held out."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from graphuq.classifier.labels import is_matrix, label_array, shape_of, split_labels
from graphuq.classifier.types import Labels, Table
from graphuq.errors import UnlabelledScoreWarning, require
from graphuq.utils.user_warnings import warn_user

MIN_NUMBERS = 20  # values that occur once, from which numbers of a float type are no classes
PROBABILITY_FLOOR = 1e-6  # as in `graphuq.scores.log_score`: one sure mistake costs at most 13.8
REMEDY = (
    "to cross-validate, pass cv=graphuq.LabelledKFold(), which holds out labelled rows only and "
    "leaves every other row in the graph"
)


def hiding(
    y: Labels, folds: Iterable[Int[np.ndarray, " H"]]
) -> Iterator[tuple[np.ndarray, Int[np.ndarray, " H"]]]:
    """Yield labels with None at the rows of each fold, and these rows."""
    values = label_array(y).astype(object)
    for rows in folds:
        hidden = values.copy()
        hidden[rows] = None
        yield hidden, rows


class LabelledKFold(BaseCrossValidator):
    """Stratified K-fold splitter that holds out labelled rows only.

    Each labelled row is in one test fold. All other rows, unlabelled ones included, are in the
    corresponding training fold. Other splitters also hold out unlabelled rows, which have no label
    to compare with, and so remove them from the graph.

    Scikit-learn fits on ``X[train], y[train]``. The held-out rows are therefore not in the graph
    of that fit: their classes are predicted from the nodes that they would be connected to, as
    for new rows. They are few beside the unlabelled rows, all of which stay in the graph. `hide`
    keeps the held-out rows in the graph as well, for loops of your own.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds; at least 2, and at most the number of rows that can be held out.
    shuffle : bool, default True
        Whether to shuffle the labelled rows of each class before they are dealt to the folds.
    random_state : int, RandomState or None, default 0
        Seed of the shuffle.
    missing_label : object, default -1
        Value of ``y`` that means unlabelled, besides NaN, None, ``pd.NA`` and ""; the same as
        that of the classifier.
    stratify : bool or "auto", default "auto"
        Whether to deal the rows of each value of ``y`` to the folds in turn. False is for numbers,
        as of `GraphRegressor`. "auto" takes values for numbers if they are of a float type and
        most of them, at least 20, occur once.

    Notes
    -----
    The rows of each class are dealt to the folds in turn, so a class may have fewer labels than
    there are folds: with two labels a class, each class is tested in two of the folds. The single
    label of a class is never held out, because no training fold could predict the class without
    it. With so few labels, scores vary much between folds; `EvidenceSearch` chooses
    hyperparameters without holding out any label.

    ``cross_val_predict`` refuses this splitter, because unlabelled rows are in no test fold. Give
    it, as other tools that take −1 for a class, `WithUnlabelled` and labelled rows alone.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> from sklearn.model_selection import cross_val_score
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> [len(test) for _, test in gq.LabelledKFold().split(moons.features, y)]
    [4, 4, 4, 4, 4]
    >>> classifier = gq.GraphClassifier(n_neighbors=10, inference="expectation-propagation")
    >>> scores = cross_val_score(classifier, moons.features, y, cv=gq.LabelledKFold())
    >>> bool(scores.mean() > 0.9)
    True
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = True,
        random_state: Any = 0,
        missing_label: object = -1,
        stratify: Any = "auto",
    ) -> None:
        require(n_splits >= 2, "n_splits", f"{n_splits!r}", "use 2 or more")
        require(
            isinstance(stratify, bool) or (isinstance(stratify, str) and stratify == "auto"),
            "stratify",
            f"{stratify!r}",
            "use True, False or 'auto'",
        )
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.missing_label = missing_label
        self.stratify = stratify

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
            Only its number of rows is used.
        y : array_like, shape (N,)
            Class or number of each row, or a missing label.
        groups : object, optional
            Ignored.

        Yields
        ------
        train : numpy.ndarray
            All rows, labelled or not, that are not in the test fold.
        test : numpy.ndarray
            Labelled rows.

        Raises
        ------
        InvalidInput
            If no label is given, or fewer rows than ``n_splits`` can be held out.
        """
        yield from super().split(X, y, groups)

    def hide(self, y: Labels) -> Iterator[tuple[np.ndarray, Int[np.ndarray, " H"]]]:
        """Yield y with the labels of one test fold hidden, and the row numbers of that fold.

        All rows stay in the graph of each fit. This also serves a ready-made `Graph` and
        ``metric="precomputed"``, from which rows cannot be taken.

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

        Examples
        --------
        >>> import numpy as np, graphuq as gq
        >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
        >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
        >>> graph = gq.graphs.knn_graph(moons.features, 12)
        >>> classifier = gq.GraphClassifier(graph, inference="expectation-propagation")
        >>> accuracy = [
        ...     (classifier.fit(None, y_train).transduction_[test] == y[test]).mean()
        ...     for y_train, test in gq.LabelledKFold().hide(y)
        ... ]
        >>> bool(np.mean(accuracy) > 0.9)
        True
        """
        yield from hiding(y, self._iter_test_indices(y=y))

    def _iter_test_indices(
        self, X: Table | None = None, y: Labels = None, groups: object = None
    ) -> Iterator[Int[np.ndarray, " H"]]:
        require_certain(y)
        values, given = split_labels(y, self.missing_label)
        rows = np.flatnonzero(given)
        names, codes = np.unique(values[given], return_inverse=True)
        counts = np.bincount(codes)
        if not self._stratifies(values, counts):
            names, codes, counts = names[:1], np.zeros_like(codes), np.array([len(codes)])
        rng = check_random_state(self.random_state)
        dealt = []
        for code in np.flatnonzero(counts > 1):
            own = rows[codes == code]
            dealt.append(rng.permutation(own) if self.shuffle else own)
        order = np.concatenate(dealt) if dealt else rows[:0]
        require(
            len(order) >= self.n_splits,
            "n_splits",
            f"{self.n_splits} folds for {len(order)} labelled rows that can be held out",
            (f"use at most {len(order)}, " if len(order) > 1 else "label more rows, ")
            + "use stratify=False for numbers, "
            + "or choose hyperparameters by graphuq.EvidenceSearch, which holds out no label",
        )
        if (counts == 1).any():
            warn_user(
                f"y: one label only of the classes {names[counts == 1].tolist()}; these labels "
                "are never held out, so the classes are not tested",
                UnlabelledScoreWarning,
            )
        for k in range(self.n_splits):
            yield np.sort(order[k :: self.n_splits])

    def _stratifies(self, values: np.ndarray, counts: Int[np.ndarray, " K"]) -> bool:
        """Return whether values are classes; ``counts`` says how often each occurs."""
        if isinstance(self.stratify, bool):
            return self.stratify
        n_once = int((counts == 1).sum())
        return values.dtype.kind != "f" or n_once < max(MIN_NUMBERS, len(counts) / 2)


def require_certain(y: Any) -> None:
    """Refuse soft labels, which are not held out, nor compared with predictions."""
    require(
        not is_matrix(y),
        "y",
        f"shape {shape_of(y)}",
        "give one label a row: soft labels serve a fit, and neither scores nor folds",
    )


class LabelledScorer:
    """Scorer for ``scoring=`` that compares predictions with the given labels only.

    Parameters
    ----------
    score : str or callable, default "accuracy"
        "accuracy"; "log_score": mean logarithm of the probability of the given class, at least
        log(10⁻⁶), 0 at best and −log K by chance; another scorer of scikit-learn by name; or a
        callable ``score(estimator, X, y)``, which is passed labelled rows only. Higher is better.
    missing_label : object, default -1
        Value of ``y`` that means unlabelled, besides NaN, None, ``pd.NA`` and ""; the same as
        that of the classifier.

    Examples
    --------
    >>> import graphuq as gq
    >>> from sklearn.model_selection import GridSearchCV
    >>> search = GridSearchCV(
    ...     gq.GraphClassifier(inference="expectation-propagation"),
    ...     {"n_neighbors": [8, 15, 30]},
    ...     cv=gq.LabelledKFold(),
    ...     scoring=gq.LabelledScorer("log_score"),
    ... )
    """

    def __init__(self, score: Any = "accuracy", *, missing_label: object = -1) -> None:
        self.score = score
        self.missing_label = missing_label
        if score == "log_score":
            self._scorer: Any = _log_score
        else:
            self._scorer = get_scorer(score) if isinstance(score, str) else score

    def __call__(self, estimator: Any, X: Table, y: Labels) -> float:
        """Return the score at the labelled rows; NaN, with a warning, if there is none."""
        X, values, _ = labelled_rows(X, y, self.missing_label)
        return float("nan") if values is None else float(self._scorer(estimator, X, values))

    def __repr__(self) -> str:
        return f"LabelledScorer({self.score!r}, missing_label={self.missing_label!r})"


def labelled_rows(
    X: Table, y: Labels, missing_label: object
) -> tuple[Any, np.ndarray | None, np.ndarray]:
    """Return features, labels and row numbers of the labelled rows.

    If there is none, the labels are None and a warning is given.
    """
    require_certain(y)
    values, given = split_labels(y, missing_label, needed=False)
    n_rows = _num_samples(X)
    require(len(values) == n_rows, "y", f"{len(values)} values", f"X has {n_rows} rows")
    rows = np.flatnonzero(given)
    if len(rows) == 0:
        warn_user(
            f"y: none of the {len(values)} rows has a label, so the score is NaN; {REMEDY}",
            UnlabelledScoreWarning,
        )
        return X, None, rows
    return (X if given.all() else _safe_indexing(X, rows)), values[given], rows


def labelled_accuracy(
    estimator: Any, X: Table, y: Labels, missing_label: object, sample_weight: ArrayLike | None
) -> float:
    """Return the accuracy at the labelled rows; warn if there are others."""
    X, values, rows = labelled_rows(X, y, missing_label)
    if values is None:
        return float("nan")
    n_rows = len(np.asarray(y, dtype=object))
    if len(rows) < n_rows:
        warn_user(
            f"y: {n_rows - len(rows)} of {n_rows} rows have no label and are left out of the "
            f"score; {REMEDY}",
            UnlabelledScoreWarning,
        )
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight)[rows]
    return float(accuracy_score(values, estimator.predict(X), sample_weight=sample_weight))


def _log_score(estimator: Any, X: Table, y: np.ndarray) -> float:
    """Return the mean log probability of the given classes; unknown ones have the floor."""
    probability = estimator.predict_proba(X)
    is_own = np.asarray(y)[:, None] == np.asarray(estimator.classes_)[None, :]
    own = (probability * is_own).sum(axis=1)
    return float(np.log(np.maximum(own, PROBABILITY_FLOOR)).mean())
