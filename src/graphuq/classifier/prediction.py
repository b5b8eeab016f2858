"""What a fitted classifier predicts, for rows in the graph and for other rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.types import Labels, Table
from graphuq.errors import IncompatibleParts

if TYPE_CHECKING:
    import pandas as pd

    from graphuq.classifier.new_rows import Located
    from graphuq.graphs import FeatureSpace
    from graphuq.results.class_proportions import ClassThreshold
    from graphuq.results.result import Result
    from graphuq.results.summaries import NodeSummaries


class Prediction:
    """Methods of `GraphClassifier` that need a fitted posterior and change nothing."""

    classes_: np.ndarray
    graph: Any
    label_distributions_: Float[np.ndarray, "N K"]
    missing_label: Any
    out_of_sample: Any
    result_: "Result"
    _feature_space: "FeatureSpace | None"
    _stored: Any = None  # what is kept of a fit in a store
    _tuning: "ClassThreshold | None"

    def predict(self, X: Table) -> np.ndarray:
        """Predict the most probable class of each row, in the graph or not.

        Parameters
        ----------
        X : array_like, shape (M, d)
            For a graph that was not made from features (``graph="precomputed"``, or a `Graph`
            from weights): weights from each row to the N nodes, shape (M, N), or a graph of
            these nodes, each of which then counts as a row of its weights.

        Returns
        -------
        numpy.ndarray, shape (M,)
        """
        summaries, nodes = self._summaries(X)
        return self._labels(summaries, nodes, self._known_and_novel(summaries, nodes)[0])

    def predict_proba(self, X: Table) -> Float[np.ndarray, "M K"]:
        """Predict the probability of each class for each row, in the graph or not.

        A row of the graph has the posterior of its node. Any other row has the posterior of the
        weighted mean of its neighbours, or of what ``out_of_sample`` names. A row without
        neighbours has the prior's 1/K, with a `FarRowsWarning`. The same warning
        names columns with values far outside those of the fit, as in other units.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `predict`.

        Returns
        -------
        numpy.ndarray, shape (M, K)
            Columns in the order of ``classes_``, given that the class is one of these.
        """
        return self._known_and_novel(*self._summaries(X))[0]

    def predict_proba_interval(
        self, X: Table, probability: float = 0.9
    ) -> Float[np.ndarray, "M K 2"]:
        """Predict an interval of each probability of `predict_proba`, which holds it.

        A wide interval says that no label is near, a narrow one at 1/2 that the row lies between
        classes; see `graphuq.results.probability_interval`.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `predict`.
        probability : float, default 0.9
            Of each interval, in (0, 1).

        Returns
        -------
        numpy.ndarray, shape (M, K, 2)
            Lower and upper ends; classes are in the order of ``classes_``.
        """
        from graphuq.results.probability_intervals import ProbabilityIntervals

        check_is_fitted(self)
        rows = self._rows(X)
        p = self._known_and_novel(*self._summaries_of(*rows))[0]
        return ProbabilityIntervals(self.result_).of_prediction(*rows, p, probability)

    def predict_unseen_class(self, X: Table) -> Float[np.ndarray, " M"]:
        """Predict the probability that the class of each row is one without any label.

        It is a posterior probability under the prior on the number of classes, and no test of
        whether a row is new: the number hardly moves from its prior, and where no label reaches,
        all classes are equally probable. It is 0 without ``max_classes``.
        ``result_.has_evidence`` is False for rows that no label informs.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `predict`.

        Returns
        -------
        numpy.ndarray, shape (M,)
        """
        return self._known_and_novel(*self._summaries(X))[1]

    def predict_set(
        self, X: Table, coverage: float = 0.9, method: str = "posterior"
    ) -> Bool[np.ndarray, "M K"]:
        """Predict a set of classes for each row that should contain its class.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `predict`.
        coverage : float, default 0.9
            Share of the unlabelled rows of the graph whose set should hold the class, in (0, 1).
            It is more where the most probable classes alone are right more often, because no set
            is empty.
        method : {"posterior", "conformal"}, default "posterior"
            "posterior": the smallest sets with this share under the posterior, which are all
            classes above one probability; see `graphuq.results.class_sets.posterior_sets`.
            "conformal": classes at least as probable as most given labels were, each
            given all others; see `graphuq.results.class_sets.conformal_sets`.

        Returns
        -------
        numpy.ndarray of bool, shape (M, K)
            Columns in the order of ``classes_``.

        Raises
        ------
        InvalidInput
            If an argument is out of range, or there are too few labels for "conformal".
        IncompatibleParts
            With "conformal" and ``class_proportions``, or without leave-one-out probabilities; see
            `graphuq.results.leave_one_out`.

        Examples
        --------
        >>> import numpy as np, graphuq as gq
        >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
        >>> y = np.full(200, -1)
        >>> y[:20] = moons.classes[:20]
        >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
        >>> sets = classifier.fit(moons.features, y).predict_set(moons.features, coverage=0.9)
        >>> sets.shape
        (200, 2)
        """
        from graphuq.results import label_checks

        probabilities = self.predict_proba(X)
        if method == "conformal" and self._tuning is not None:
            raise IncompatibleParts(
                "conformal sets need probabilities without class_proportions, since leave-one-out "
                "probabilities do not have them; use method='posterior'"
            )
        of_nodes = self.label_distributions_
        return label_checks.sets_of(self.result_, probabilities, of_nodes, coverage, method)

    def suspect_labels(self, n: int | None = None) -> "pd.DataFrame":
        """Return the given labels from the least to the most probable given all others.

        Parameters
        ----------
        n : int, optional
            Number of labels; all by default.

        Returns
        -------
        pandas.DataFrame
            Columns ``node`` (the row of X), ``given``, ``probability``, ``other``,
            ``other_probability`` and ``pareto_shape``; see `graphuq.results.suspect_labels`.

        Raises
        ------
        IncompatibleParts
            See `graphuq.results.leave_one_out`.
        """
        from graphuq.results import label_checks

        check_is_fitted(self)
        found = label_checks.suspect_labels(self.result_, n)
        if self._stored is not None:
            found["node"] = self._stored.sample[found["node"]]
        return found

    def predict_latent(self, X: Table) -> "NodeSummaries":
        """Predict label mean, Monte-Carlo error, latent mean and deviation; see `Result`."""
        return self._summaries(X)[0]

    def predict_interval(self, X: Table, probability: float = 0.95) -> Float[np.ndarray, "M *K 2"]:
        """Predict the equal-tailed credible interval of u, or of each of its fields, per row."""
        check_is_fitted(self)
        return self._intervals_of(*self._rows(X), probability)

    def _intervals_of(
        self,
        eigenvectors: Float[np.ndarray, "M L"],
        scale: Float[np.ndarray, " M"],
        nodes: Int[np.ndarray, " M"],
        probability: float,
    ) -> Float[np.ndarray, "M *K 2"]:
        """Return the intervals of rows of eigenvectors."""
        from graphuq.results.latent_numbers import credible_interval, interval_at_rows

        interval = interval_at_rows(self.result_, eigenvectors, scale, probability)
        inside = nodes >= 0
        if inside.any():
            interval[inside] = credible_interval(self.result_, probability)[nodes[inside]]
        return interval

    def predict_table(
        self, X: Table, ids: Sequence[Any] | np.ndarray | None = None
    ) -> "pd.DataFrame":
        """Predict a table with one row for each row of X, whose columns docs/files.md describes.

        A row of the graph has the numbers of its node. Class proportions are imposed.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `predict`.
        ids : sequence of length M, optional
            Values of the column ``id``; by default row numbers from 0.

        Returns
        -------
        pandas.DataFrame
            `graphuq.results.write_table` writes it to a CSV or Parquet file.

        Examples
        --------
        >>> import numpy as np, graphuq as gq
        >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
        >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
        >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
        >>> table = classifier.fit(moons.features, y).predict_table([[0.0, 1.0], [1.0, -0.5]])
        >>> table["label"].tolist()
        [0, 1]
        """
        from graphuq.classifier.answers import table_of_rows

        check_is_fitted(self)
        return table_of_rows(self, X, ids)

    def score(self, X: Table, y: Labels, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of `predict` at the labelled rows.

        Rows without a label are left out, with a warning. Cross-validate partly labelled data
        with ``cv=graphuq.LabelledKFold()``.

        Parameters
        ----------
        X : array_like, shape (M, d)
        y : array_like, shape (M,)
            Class of each row, or a missing label.
        sample_weight : array_like, shape (M,), optional

        Returns
        -------
        float
            In [0, 1]; NaN, with a warning, if no row is labelled.
        """
        from graphuq.classifier.given_graph import graph_of, labels_of_names, rows_to_predict
        from graphuq.classifier.labels import require_same_order
        from graphuq.classifier.model_selection import labelled_accuracy

        check_is_fitted(self)
        require_same_order(X, y)
        X, y = rows_to_predict(self, X), labels_of_names(y, graph_of(X))
        return labelled_accuracy(self, X, y, self.missing_label, sample_weight)

    def _summaries(self, X: Table) -> tuple["NodeSummaries", Int[np.ndarray, " M"]]:
        """Return the posterior of each row, and its node in the graph or −1."""
        check_is_fitted(self)
        return self._summaries_of(*self._rows(X))

    def _summaries_of(
        self,
        eigenvectors: Float[np.ndarray, "M L"],
        scale: Float[np.ndarray, " M"],
        nodes: Int[np.ndarray, " M"],
    ) -> tuple["NodeSummaries", Int[np.ndarray, " M"]]:
        """Return the posterior of rows of eigenvectors, and their nodes."""
        from graphuq.results.latent_numbers import at_nodes, at_rows

        summaries = at_rows(self.result_, eigenvectors, scale)
        inside = nodes >= 0
        known = at_nodes(self.result_)
        for name, values in vars(summaries).items():
            values[inside] = getattr(known, name)[nodes[inside]]
        return summaries, nodes

    def _labels(
        self,
        summaries: "NodeSummaries | Result",
        nodes: Int[np.ndarray, " M"],
        probability: Float[np.ndarray, "M K"],
    ) -> np.ndarray:
        """Return the class of each row; with class proportions, given labels stay."""
        classes: np.ndarray = self.classes_[self._codes(summaries, nodes, probability)]
        return classes

    def _codes(
        self,
        summaries: "NodeSummaries | Result",
        nodes: Int[np.ndarray, " M"],
        probability: Float[np.ndarray, "M K"],
    ) -> Int[np.ndarray, " M"]:
        """Return the class of each row as an index."""
        codes = probability.argmax(axis=1)
        if self._tuning is not None:
            given = self._given_codes(nodes)
            codes = np.where(given >= 0, given, self._tuning.codes(summaries))
        return np.asarray(codes)

    def _probabilities(
        self, summaries: "NodeSummaries | Result", nodes: Int[np.ndarray, " M"]
    ) -> Float[np.ndarray, "M K"]:
        """Return probabilities without class proportions; nodes have those of the result."""
        probability = summaries.probabilities.copy()
        inside = nodes >= 0
        probability[inside] = self.result_.probabilities[nodes[inside]]
        return probability

    def _known_and_novel(
        self, summaries: "NodeSummaries | Result", nodes: Int[np.ndarray, " M"]
    ) -> tuple[Float[np.ndarray, "M K"], Float[np.ndarray, " M"]]:
        """Return probabilities of the classes with labels, and of all others together."""
        probability, n_known = self._probabilities(summaries, nodes), len(self.classes_)
        if self._tuning is not None:
            link = self.result_.posterior.likelihood.link
            from graphuq.results.class_proportions import keep_given

            moved = self._tuning.probabilities(summaries, link)
            probability = keep_given(moved, probability, self._given_codes(nodes))
        known, novel = probability[:, :n_known], probability[:, n_known:].sum(axis=1)
        if n_known == probability.shape[1]:
            return known, novel
        total = known.sum(axis=1)[:, None]
        even = np.full_like(known, 1 / n_known)
        return np.divide(known, total, out=even, where=total > 0), novel

    def _given_codes(self, nodes: Int[np.ndarray, " M"]) -> Int[np.ndarray, " M"]:
        """Return the code of the label that each node was given, or −1."""
        from graphuq.results.table import given_codes

        return np.where(nodes >= 0, given_codes(self.result_)[nodes], -1)

    def _rows(
        self, X: Table
    ) -> tuple[Float[np.ndarray, "M L"], Float[np.ndarray, " M"], Int[np.ndarray, " M"]]:
        """Return eigenvector rows, scales, and nodes (−1 outside the graph) of the rows of X."""
        return self._located(X)[:3]

    def _located(self, X: Table) -> "Located":
        """Return the rows of X in the basis, wherever their neighbours are."""
        if self._stored is not None:
            from graphuq.classifier.stored.new_rows import located_in_store

            return located_in_store(self, X)
        from graphuq.classifier.new_rows import located

        return located(self, X)
