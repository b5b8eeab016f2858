"""Scikit-learn estimator of numbers and counts: graph, spectrum, and the posterior of a field."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.given_graph import checked_rows, graph_of, labels_of_names, rows_to_predict
from graphuq.classifier.labels import require_same_order, weights_of_rows
from graphuq.classifier.nested_parameters import NestedParameters
from graphuq.classifier.new_rows import connected_rows
from graphuq.classifier.options import check_words, graph_from, value_of
from graphuq.classifier.regressor.exposures import (
    exposure_by_name,
    exposure_of_rows,
    exposure_to_predict,
    refuse_weights,
)
from graphuq.classifier.regressor.rows import basis_of, chosen_weights, predictive_of
from graphuq.classifier.regressor.saving import load_regressor, save_regressor
from graphuq.classifier.regressor.values import numbers_of, numbers_to_learn
from graphuq.classifier.types import Groups, Labels, Table
from graphuq.errors import UnlabelledScoreWarning, require
from graphuq.graphs import FeatureSpace
from graphuq.models import Counts, Regression
from graphuq.models.numbers import DEVIATIONS, GivenNumbers, NumbersModel, NumbersPosterior
from graphuq.models.predictive import Predictive
from graphuq.run.words import part_from
from graphuq.utils.concurrency import one_at_a_time
from graphuq.utils.user_warnings import warn_user


class GraphRegressor(NestedParameters, RegressorMixin, BaseEstimator):
    """Semi-supervised regression with an interval for each row.

    A similarity graph on all rows, with or without a number, has a Laplacian whose spectrum defines
    a Gaussian prior on a field over the nodes. A number is the field at its row, plus a linear
    function of the features, plus noise. The posterior is exact for given hyperparameters, over
    which answers are averaged. With ``model="counts"``, numbers are counts 0, 1, 2, …, and all this
    is of their log rates; see `graphuq.models.Counts`.

    Parameters
    ----------
    graph : {"knn", "complete", "precomputed"}, GraphBuilder or Graph, default "knn"
        Graph of all rows; "precomputed" takes the data as weights of edges. It is that of
        `GraphClassifier`, and so are ``n_neighbors``, ``metric``, ``tail_eigenvalue`` and
        ``out_of_sample``. A builder may be text such as ``"Epsilon(radius=0.4)"``.
    n_neighbors : int or "auto", default "auto"
        Neighbours of each node, by default 15; in the complete graph, those that give its local
        scale, by default 10.
    weights : str or WeightFunction, default "auto"
        Weights of the edges. "self-tuning", "unweighted" and "cosine" are names. "auto": for the
        nearest-neighbour graph self-tuning with sharpness 1; otherwise as for `GraphClassifier`.
        Also text such as ``"GaussianWeights(scale=1.25)"``.
    metric : {"euclidean", "cosine", "precomputed"}, optional
        Distance of two rows, by default that of the weights; "precomputed" takes the data as
        distances.
    laplacian : {"random-walk", "symmetric", "unnormalized"}, default "random-walk"
        Laplacian of the graph. The smoothest fields of "random-walk" are constant. Those of
        "symmetric" grow with the degree of a node, which suits signs better than numbers.
    n_eigenpairs : int, "all" or "auto", default "auto"
        Number of eigenpairs ℓ of the Laplacian. "auto": min(150, N), or some more or
        fewer, so that no copy of a multiple eigenvalue is cut off.
    tail_eigenvalue : bool, float or "mean", default False
        Value of the eigenvalues that are not computed: none of them is used (false), the largest
        computed one (true), their mean, or a number.
    model : "auto", "counts", Regression or Counts, default "auto"
        Sizes of all parts. See `graphuq.models.Regression`. Also text such as
        ``"Regression(noise_std=0.5)"``. "auto": all is learnt. "counts": `Counts`, the same.
    out_of_sample : {"mean", "nearest", "combination"}, default "mean"
        Prediction of rows outside the graph: from the weighted mean of their neighbours, from
        the nearest node, or from a combination of nodes.
    progress : bool or callable, default False

    Attributes
    ----------
    transduction_ : numpy.ndarray, shape (N,)
        Posterior mean of the field at each row of ``X``; of counts, of the mean count for an
        exposure of 1.
    transduction_std_ : numpy.ndarray, shape (N,)
        Posterior standard deviation of the same.
    field_std_, noise_std_, linear_std_ : float
        a, γ and g in units of ``y``, or of the log rate of counts: root mean squares.
    model_ : Regression or Counts
        The model with the hyperparameters that are likeliest. A fit with it takes them for known.
    prior_ : Prior
        The prior of ``model_``.
    log_evidence_ : float
        Log density of the given numbers by ``model_``, or log probability of the counts.
    exposure_ : numpy.ndarray, shape (N,), or None
        Exposure of each row, if it was given.
    posterior_ : NumbersPosterior
        Field, noise and units, from which all of these follow.
    has_evidence_ : numpy.ndarray of bool, shape (N,)
        Whether a row's component of the graph has a number.
    graph_ : Graph
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> x = np.linspace(0, 6, 120)[:, None]
    >>> y = np.full(120, np.nan)
    >>> y[::8] = np.sin(x[::8, 0])
    >>> regressor = gq.GraphRegressor().fit(x, y)
    >>> bool(abs(regressor.transduction_ - np.sin(x[:, 0])).mean() < 0.1)
    True
    >>> mean, std = regressor.predict([[1.55]], return_std=True)
    >>> mean.shape, std.shape
    ((1,), (1,))
    """

    _feature_space: FeatureSpace | None
    posterior_: NumbersPosterior

    def __init__(
        self,  # scikit-learn requires that any value is accepted here and checked by fit
        graph: Any = "knn",
        *,
        n_neighbors: Any = "auto",
        weights: Any = "auto",
        metric: Any = None,
        laplacian: Any = "random-walk",
        n_eigenpairs: Any = "auto",
        tail_eigenvalue: Any = False,
        model: Any = "auto",
        out_of_sample: Any = "mean",
        progress: Any = False,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.laplacian = laplacian
        self.n_eigenpairs = n_eigenpairs
        self.tail_eigenvalue = tail_eigenvalue
        self.model = model
        self.out_of_sample = out_of_sample
        self.progress = progress

    @one_at_a_time
    def fit(
        self,
        X: Table | None,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        exposure: Labels = None,
    ) -> "GraphRegressor":
        """Infer the field at every row.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (N, d)
            As for `GraphClassifier.fit`.
        y : array_like, shape (N,)
            Number of each row; NaN, None, ``pd.NA`` or "" where unknown. At least two different
            numbers, or two counts, of which one is above 0. For a graph, also a dict from names of
            nodes to numbers.
        sample_weight : array_like, shape (N,), optional
            Weight w ≥ 0 of each number, 1 by default: the variance of its noise is γ²/w. A number
            of weight 0 is not used. Weights of rows without a number have no meaning. Counts have
            none.
        exposure : array_like, shape (N,), optional
            Of counts: how much was seen of each row, such as people or years, 1 by default. It is
            above 0 in every row, also where the count is unknown. For a graph, also a dict.

        Returns
        -------
        GraphRegressor
            The regressor itself.

        Raises
        ------
        InvalidInput
            If features, weights, numbers, exposures or options cannot be used.

        Warns
        -----
        FeatureScaleWarning
            If scales of features differ by a factor of more than 100.
        GraphuqWarning
            If -999 or the like is far from all other ``y``.
        """
        model = self._checked_model()
        require_same_order(X, y)
        graph, X, n_rows = checked_rows(self, graph_from(self.graph), X, y)
        numbers = numbers_to_learn(labels_of_names(y, graph))
        require(len(numbers) == n_rows, "y", f"{len(numbers)} values", f"X has {n_rows} rows")
        model.check(numbers)
        refuse_weights(sample_weight, model)
        weights = weights_of_rows(sample_weight, n_rows)
        own = exposure_of_rows(labels_of_names(exposure, graph, "exposure"), n_rows, model)
        known = ~np.isnan(numbers) & (weights > 0)
        model.check_given(numbers, known)
        self.graph_, basis = basis_of(self, model, graph, X)
        self._feature_space, self.exposure_ = self.graph_.feature_space, own
        rows, seen = np.flatnonzero(known), np.ones(n_rows) if own is None else own
        given = GivenNumbers(rows, numbers[rows], weights[rows], seen[rows])
        self._describe(model.posterior(basis, given))
        return self

    def predict(
        self,
        X: Table,
        return_std: bool = False,
        quantity: str = "measurement",
        exposure: Labels = None,
    ) -> Float[np.ndarray, " M"] | tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Predict the number of each row, in the graph or not.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `GraphClassifier.predict`.
        return_std : bool, default False
            Whether to return standard deviations too.
        quantity : {"measurement", "field"}, default "measurement"
            Whether the deviation is that of a new measurement at the row, noise included, or that
            of the field. The mean is the same. Of counts, "field" is the mean count for an
            exposure of 1.
        exposure : array_like, shape (M,), dict or float, optional
            Of counts: exposure of each measurement. Needed if ``fit`` had exposures.

        Returns
        -------
        numpy.ndarray, shape (M,), or two of them
        """
        predictive = self._predicted(X, quantity, exposure)
        return (predictive.mean, predictive.std) if return_std else predictive.mean

    def predict_interval(
        self,
        X: Table,
        coverage: float = 0.9,
        quantity: str = "measurement",
        exposure: Labels = None,
    ) -> Float[np.ndarray, "M 2"]:
        """Predict an interval for each row that contains its number with a given probability.

        Parameters
        ----------
        X : array_like, shape (M, d)
            As for `GraphClassifier.predict`.
        coverage : float, default 0.9
            Probability in (0, 1). With 10 to 20 numbers real tables have somewhat fewer in their
            intervals; `docs/measurements/regression.md` has figures. Intervals of counts end in
            counts, and hold at least this probability.
        quantity : {"measurement", "field"}, default "measurement"
            "measurement": for a new measurement at the row, noise included. "field": for the
            field itself, which is narrower.
        exposure : array_like, shape (M,), or float, optional
            As for `predict`.

        Returns
        -------
        numpy.ndarray, shape (M, 2)
            Lower and upper ends.

        Raises
        ------
        InvalidInput
            If ``coverage``, ``quantity`` or ``exposure`` cannot be used.
        """
        return self._predicted(X, quantity, exposure).interval(coverage)

    def leave_one_out(self) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
        """Predict each given number from all others, without new fits.

        Returns
        -------
        mean, std : numpy.ndarray, shape (J,)
            Mean and standard deviation of each number, noise included, in the order of the rows.
            The graph is that of all rows, and hyperparameters are weighed by the other numbers.
            What the other counts say of log rates is kept.
        """
        check_is_fitted(self)
        found = self.posterior_.left_out
        return found.mean, found.std

    def score(
        self,
        X: Table,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        exposure: Labels = None,
    ) -> float:
        """Return R² of `predict`, or the mean log probability of counts, at rows with a number.

        Parameters
        ----------
        X : array_like, shape (M, d)
        y : array_like, shape (M,)
            Number of each row; rows without one are left out, with a warning.
        sample_weight : array_like, shape (M,), optional
            Weights of the rows in the mean.
        exposure : array_like, shape (M,), or float, optional
            As for `predict`.

        Returns
        -------
        float
            R² is at most 1, a log probability at most 0; NaN, with a warning, if no row has a
            number.
        """
        check_is_fitted(self)
        require_same_order(X, y)
        exposure = exposure_by_name(exposure, X)
        X, y = rows_to_predict(self, X), labels_of_names(y, graph_of(X))
        numbers = numbers_of(y)
        self.posterior_.model.check(numbers)
        known = ~np.isnan(numbers)
        if not known.all():
            words = "left out of the score" if known.any() else "all, so the score is NaN"
            warn_user(
                f"y: {int((~known).sum())} of {len(known)} rows have no number and are {words}",
                UnlabelledScoreWarning,
            )
        if not known.any():
            return float("nan")
        weights = weights_of_rows(sample_weight, len(numbers))[known]
        predictive = self._predicted(X, "measurement", exposure).at(known)
        return self.posterior_.score(predictive, numbers[known], weights)

    def save(self, path: str | Path, extra: Groups = None) -> None:
        """Write all that prediction needs to one NetCDF file, which `graphuq.load` reads.

        Raises
        ------
        StorageError
            If the file cannot be written, or a class of the user's own cannot be found by name.
        """
        check_is_fitted(self)
        save_regressor(self, path, extra)

    @classmethod
    def load(cls, path: str | Path) -> "GraphRegressor":
        """Read a fitted regressor that `save` wrote; it predicts without a new fit.

        Raises
        ------
        StorageError
            If the file is missing, truncated, without a regressor, or of another version.
        """
        return load_regressor(cls, path)

    def get_model(self) -> NumbersModel:
        """Return the parameter ``model`` as a value, also where it is a word or text."""
        words = {"auto": Regression, "counts": Counts}
        model: NumbersModel = part_from(self.model, words, NumbersModel, "model")
        return model

    def _html_repr(self) -> str:
        """Return what a notebook shows: the answer if there is one, and the parameters."""
        parameters = str(super()._html_repr())
        if not hasattr(self, "transduction_"):
            return parameters
        from graphuq.classifier.regressor.summary_html import regressor_html

        return regressor_html(self) + parameters

    def _checked_model(self) -> NumbersModel:
        """Return the model, after checks of all parameters that need no data."""
        word = graph_from(self.graph)
        check_words(word, self.n_neighbors, self.n_eigenpairs, self.out_of_sample)
        return self.get_model()

    def _value_of(self, name: str) -> Any:
        if name == "weights" and (own := chosen_weights(self)) is not None:
            return own
        return self.get_model() if name == "model" else value_of(self, name)

    def _describe(self, posterior: NumbersPosterior) -> None:
        """Set the attributes of every row."""
        self.posterior_, self.model_ = posterior, posterior.model
        self.prior_ = posterior.engine.prior
        field = posterior.predictive(posterior.latent("field"), "field")
        self.transduction_, self.transduction_std_ = field.mean, field.std
        for name in DEVIATIONS:
            setattr(self, f"{name}_", posterior.deviation(name))
        self.log_evidence_ = posterior.log_evidence
        components = posterior.engine.spectrum.components
        self.has_evidence_ = np.isin(components, components[posterior.engine.labelled])

    def _predicted(self, X: Table, quantity: str, exposure: Any) -> Predictive:
        """Return the distributions of measurements, or of the field, at rows."""
        check_is_fitted(self)
        exposure = exposure_by_name(exposure, X)
        rows = connected_rows(self, X, "the mean of all numbers is predicted")
        seen = exposure_to_predict(self, exposure, quantity, len(rows.nodes))
        return predictive_of(self, rows, quantity, seen)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = "precomputed" in (self.graph, self.metric)
        return tags
