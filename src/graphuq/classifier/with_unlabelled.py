"""An estimator that brings its unlabelled rows, for tools that take every value of y as a class."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.labels import label_array, shape_of, weights_of_rows
from graphuq.classifier.model_selection import require_certain
from graphuq.classifier.types import Labels, Table
from graphuq.errors import InvalidInput, require
from graphuq.graphs.containers import is_frame


def _predicts_probabilities(estimator: "WithUnlabelled") -> bool:
    return hasattr(estimator.estimator, "predict_proba")


class WithUnlabelled(MetaEstimatorMixin, BaseEstimator):
    """Estimator that adds the same unlabelled rows to every fit.

    ``CalibratedClassifierCV``, ``VotingClassifier``, ``StackingClassifier``, ``cross_val_predict``
    and other tools of scikit-learn take a value that means unlabelled, such as −1, for one more
    class, and want each row in one test fold. Give them this estimator, and labelled rows alone.

    Parameters
    ----------
    estimator : GraphClassifier or GraphRegressor
        It must make its graph of features.
    rows : array_like or sparse matrix, shape (M, d)
        Rows without labels, which are in the graph of every fit.

    Attributes
    ----------
    estimator_ : GraphClassifier or GraphRegressor
        Fitted to the rows of ``X``, followed by ``rows``.
    classes_ : numpy.ndarray, shape (K,)
        Of a classifier.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> from sklearn.model_selection import cross_val_predict
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> both = gq.WithUnlabelled(classifier, moons.features[20:])
    >>> found = cross_val_predict(both, moons.features[:20], moons.classes[:20], cv=4)
    >>> bool((found == moons.classes[:20]).mean() > 0.8)
    True
    """

    def __init__(self, estimator: Any, rows: Any) -> None:
        self.estimator = estimator
        self.rows = rows

    def fit(self, X: Table, y: Labels, sample_weight: ArrayLike | None = None) -> "WithUnlabelled":
        """Fit the estimator to labelled rows and to the unlabelled ones.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (N, d)
        y : array_like, shape (N,)
            Class or number of each row.
        sample_weight : array_like, shape (N,), optional

        Returns
        -------
        WithUnlabelled
            The estimator itself.

        Raises
        ------
        InvalidInput
            If ``rows`` are no rows with the columns of ``X``, or the estimator refuses its data.
        """
        require_certain(y)
        values = label_array(y).astype(object)
        rows = _stacked(X, self.rows)
        n_added = rows.shape[0] - len(values)
        more = {}
        if sample_weight is not None:
            weights = weights_of_rows(sample_weight, len(values))
            more["sample_weight"] = np.concatenate([weights, np.ones(n_added)])
        labels = np.concatenate([values, np.full(max(n_added, 0), None)])
        self.estimator_ = clone(self.estimator).fit(rows, labels, **more)
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Table) -> np.ndarray:
        """Return the class or the number of each row, as the estimator predicts it."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    @available_if(_predicts_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> np.ndarray:
        """Return the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    def score(self, X: Table, y: Labels, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of the estimator."""
        check_is_fitted(self, "estimator_")
        return float(self.estimator_.score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


def _stacked(X: Any, rows: Any) -> Any:
    """Return labelled rows, followed by unlabelled ones."""
    widths = []
    for argument, part in (("X", X), ("rows", rows)):
        shape = shape_of(part)
        require(len(shape) == 2, argument, f"shape {shape}", "give one row of features a node")
        widths.append(shape[1])
    require(
        widths[0] == widths[1],
        "rows",
        f"{widths[1]} columns, and X has {widths[0]}",
        "give unlabelled rows of the same features",
    )
    if sparse.issparse(X) or sparse.issparse(rows):
        return sparse.vstack([sparse.csr_array(X), sparse.csr_array(rows)])
    if is_frame(X) and is_frame(rows):
        import pandas as pd

        if list(X.columns) != list(rows.columns):
            raise InvalidInput("rows", "columns of other names than X", "give rows[X.columns]")
        return pd.concat([X, rows], ignore_index=True)
    return np.concatenate([np.asarray(X), np.asarray(rows)])
