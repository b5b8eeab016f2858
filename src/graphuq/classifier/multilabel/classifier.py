"""Estimator of rows with several labels: one graph for all tags, and an answer for each."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.labels import require_same_order
from graphuq.classifier.multilabel.tags import check_both, codes_among, tags_of
from graphuq.classifier.types import Groups, Table
from graphuq.errors import UnlabelledScoreWarning, require
from graphuq.utils.concurrency import one_at_a_time, require_no_fork
from graphuq.utils.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

UNUSED = {"store": None, "max_classes": None, "class_proportions": None, "ordered": False}
"""Parameters of `GraphClassifier` without a meaning for tags, and their defaults."""


class MultilabelClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Semi-supervised classifier of rows with several labels, each with its probability.

    A row may have several tags at once: genres of a film, topics of a text, functions of a gene.
    Each tag is a question with the answers yes and no, which some rows are labelled for. There is
    one graph and one basis for all tags, and a posterior for each; see docs/tags.md and
    docs/theory/tags.md.

    Parameters
    ----------
    estimator : GraphClassifier, optional
        Graph, model and method, which all tags have; by default ``GraphClassifier()``. Its
        ``store``, ``max_classes``, ``class_proportions`` and ``ordered`` have their defaults. Its
        ``missing_label`` is not used.

    Attributes
    ----------
    classes_ : numpy.ndarray, shape (T,)
        Names of the tags; their numbers from 0 if ``Y`` has no names.
    estimators_ : list of GraphClassifier, length T
        The fit of each tag. Its classes are 0 and 1.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> Y = [{name for name, value in zip(["right", "high"], row) if value > 0} for row in x]
    >>> Y = [tags if number < 30 else None for number, tags in enumerate(Y)]
    >>> fast = gq.GraphClassifier(inference="expectation-propagation")
    >>> classifier = gq.MultilabelClassifier(fast).fit(x, Y)
    >>> classifier.classes_.tolist()
    ['high', 'right']
    >>> classifier.predict([[1.0, 1.0], [-1.0, 1.0]]).tolist()
    [[1, 1], [1, 0]]
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    @one_at_a_time
    def fit(
        self, X: Table | None, Y: Any, sample_weight: ArrayLike | None = None
    ) -> "MultilabelClassifier":
        """Infer for every row which tags it has.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (N, d), or None
            As for `GraphClassifier.fit`.
        Y : array_like or sparse matrix, shape (N, T), or sequence of N sets
            1 for a row with the tag, 0 for one without; −1, NaN, None or ``pd.NA`` where it is
            unknown, which may be so for some tags of a row. Booleans are 1 and 0. Names of columns
            are the names of the tags. Or for each row the set of names of all its tags, and None
            for an unlabelled row.
        sample_weight : array_like, shape (N,), optional
            Weight of the labels of each row; see `GraphClassifier.fit`.

        Returns
        -------
        MultilabelClassifier
            The classifier itself.

        Raises
        ------
        InvalidInput
            If a value of ``Y`` is none of these, or a tag has no labelled row with it, or none
            without it; and as `GraphClassifier.fit`.
        IncompatibleParts
            As `GraphClassifier.fit`.
        """
        require_no_fork()
        template = template_of(self.estimator)
        require_same_order(X, Y, "Y")
        tags = tags_of(Y)
        check_both(tags)
        fits = [clone(template).set_params(missing_label=-1) for _ in tags.names]
        from graphuq.classifier.fitting import fit_together  # imports Numba

        fit_together(fits, X, list(tags.codes.T), Y, sample_weight, rows_were_chosen=True)
        self.classes_, self.estimators_ = tags.names, fits
        self._describe()
        return self

    def of(self, tag: Any) -> GraphClassifier:
        """Return the fit of one tag, with its ``result_``, verdict and all other answers.

        Raises
        ------
        InvalidInput
            If there is no such tag.
        """
        check_is_fitted(self)
        names = self.classes_.tolist()
        require(tag in names, "tag", f"{tag!r} is none of them", f"use one of {names}")
        return self.estimators_[names.index(tag)]

    @property
    def tag_probabilities_(self) -> Float[np.ndarray, "N T"]:
        """Probability of each tag for each row of the fit."""
        check_is_fitted(self)
        return np.column_stack([one.label_distributions_[:, 1] for one in self.estimators_])

    @property
    def transduction_(self) -> Int[np.ndarray, "N T"]:
        """Return 1 for each tag that a row of the fit has, with a probability above 1/2, or 0."""
        return (self.tag_probabilities_ > 0.5).astype(np.int64)

    def predict(self, X: Table) -> Int[np.ndarray, "M T"]:
        """Predict 1 for each tag that a row has, with a probability above 1/2, and 0 for others.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `GraphClassifier.predict`.

        Returns
        -------
        numpy.ndarray of int, shape (M, T)
            Columns in the order of ``classes_``.
        """
        return (self.predict_proba(X) > 0.5).astype(np.int64)

    def predict_proba(self, X: Table) -> Float[np.ndarray, "M T"]:
        """Predict the probability of each tag for each row, in the graph or not.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `GraphClassifier.predict`.

        Returns
        -------
        numpy.ndarray, shape (M, T)
            One number a tag, as of ``OneVsRestClassifier`` and ``MLPClassifier``; rows do not add
            up to 1.
        """
        check_is_fitted(self)
        from graphuq.classifier.new_rows import connected_rows, in_basis

        first = self.estimators_[0]
        joined = connected_rows(first, X, "each tag has probability 1/2")
        found = []
        for one in self.estimators_:
            rows = in_basis(one, joined, one.result_.posterior.spectrum)
            found.append(one._known_and_novel(*one._summaries_of(*rows, joined.nodes))[0][:, 1])
        return np.column_stack(found)

    def query(self, n: int = 10, rule: Any = "auto", candidates: Any = None) -> np.ndarray:
        """Return rows whose tags to label next, the most useful first.

        Parameters
        ----------
        n : int, default 10
        rule : str or Rule, default "auto"
            See `graphuq.acquisition.query`; the scores of all tags are added.
        candidates : array_like of int, optional
            Rows to choose from, by default all. Rows without any label come first.

        Returns
        -------
        numpy.ndarray of int, shape (n,)

        Raises
        ------
        InvalidInput
            If ``n`` is not positive, the rule is unknown, or a candidate does not exist.
        IncompatibleParts
            If the results are points, which have no uncertainty.
        """
        check_is_fitted(self)
        from graphuq.acquisition.several_tags import query_tags

        return query_tags([one.result_ for one in self.estimators_], n, rule, candidates)

    def score(self, X: Table, Y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose tags are all predicted right.

        It is the subset accuracy of scikit-learn. Rows in which a tag is unknown are left out, with
        a warning.

        Parameters
        ----------
        X : array_like, shape (M, d)
        Y : array_like or sparse matrix, shape (M, T), or sequence of M sets
            As for `fit`.
        sample_weight : array_like, shape (M,), optional

        Returns
        -------
        float
            In [0, 1].
        """
        check_is_fitted(self)
        require_same_order(X, Y, "Y")
        codes = codes_among(Y, self.classes_)
        whole = np.asarray((codes >= 0).all(axis=1))
        require(bool(whole.any()), "Y", "no row in which all tags are known", "give one or more")
        if not whole.all():
            warn_user(
                f"Y: {(~whole).sum()} of {len(whole)} rows have unknown tags and are left out of "
                "the score",
                UnlabelledScoreWarning,
            )
        right = (self.predict(X) == codes).all(axis=1)
        weights = None if sample_weight is None else np.asarray(sample_weight)[whole]
        return float(np.average(right[whole], weights=weights))

    def to_dataframe(self, ids: Sequence[Any] | np.ndarray | None = None) -> "pd.DataFrame":
        """Return a table with one row for each row of the fit, which docs/tags.md describes.

        Parameters
        ----------
        ids : sequence of length N, optional
            Values of the column ``id``; by default row numbers from 0.
        """
        check_is_fitted(self)
        from graphuq.classifier.multilabel.table import table_of_tags

        return table_of_tags(self, ids)

    def predict_table(
        self, X: Table, ids: Sequence[Any] | np.ndarray | None = None
    ) -> "pd.DataFrame":
        """Predict a table with one row for each row of X: the first columns of `to_dataframe`.

        ``X`` and ``ids`` are as for `GraphClassifier.predict_table`.
        """
        from graphuq.classifier.multilabel.table import frame_of_tags

        return frame_of_tags(self.predict_proba(X), self.classes_.tolist(), ids)

    @property
    def tags_(self) -> "pd.DataFrame":
        """Return a table with one row for each tag, which docs/tags.md describes."""
        check_is_fitted(self)
        from graphuq.classifier.multilabel.table import summary_of_tags

        return summary_of_tags(self)

    def save(self, path: str | Path, extra: Groups = None) -> None:
        """Write all that prediction needs to one NetCDF file, which `graphuq.load` reads.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        check_is_fitted(self)
        from graphuq.classifier.multilabel.saving import save_tags

        save_tags(self, path, extra)

    def _describe(self) -> None:
        """Set what scikit-learn asks of the features."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = GraphClassifier() if self.estimator is None else self.estimator
        tags.input_tags = own.__sklearn_tags__().input_tags
        tags.target_tags.two_d_labels = tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_label = True
        return tags


def template_of(estimator: Any) -> GraphClassifier:
    """Return the classifier of which each tag has a copy.

    Raises
    ------
    InvalidInput
        If it is no `GraphClassifier`, or has a parameter without a meaning for tags.
    """
    given = GraphClassifier() if estimator is None else estimator
    require(
        type(given) is GraphClassifier,
        "estimator",
        f"a {type(given).__name__}",
        "give a GraphClassifier with the graph and the model, or leave it out",
    )
    for name, default in UNUSED.items():
        value = getattr(given, name)
        require(
            value is None or value is default,
            f"estimator__{name}",
            f"{value!r} beside several tags",
            "leave it out",
        )
    return given
