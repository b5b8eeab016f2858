"""Search for graph, prior and likelihood parameters by the evidence of the labels."""

import itertools
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.class_order import refuse_order
from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.given_graph import graph_of, labels_of_names
from graphuq.classifier.options import graph_from
from graphuq.classifier.search.checkpoint import SearchCheckpoint
from graphuq.classifier.search.objective import PARTS, SearchProblem
from graphuq.classifier.search.optimizer import ContinuousParameter, Optimizer
from graphuq.classifier.types import Labels, Table
from graphuq.distributions import Distribution
from graphuq.errors import GraphuqError, require
from graphuq.graphs import Graph
from graphuq.utils.progress import Progress, progress_bar

STEPPED = ("n_neighbors", "graph__radius")  # the evidence is not a smooth function of these
COARSE, FINE = 16, 8  # numbers of values: in a stepped range, then around its best value


class EvidenceSearch(ClassifierMixin, BaseEstimator):
    """Search over parameters of a `GraphClassifier` for the largest evidence.

    The search is used like `GridSearchCV`, but holds out no label, which suits few labels.
    Continuous numbers are optimised by gradients, through the graph and the solver, from several
    starts. Other parameters are tried one by one (Zhu, Lafferty & Ghahramani 2003, §3, §4 and
    appendix B).

    Parameters
    ----------
    estimator : GraphClassifier, optional
        Start of the search, and parameters that are not searched; by default
        ``GraphClassifier()``. A part that is "auto" has its default value during the search.
    parameters : dict
        Names are parameters of the classifier, or numbers of its graph, weights, prior, likelihood:
        "n_neighbors", "weights__cutoff", "prior__sigma", "likelihood__steepness". A **list** is
        tried value by value, in every combination of lists. A **pair** (low, high) is optimised
        over the logarithm; for "n_neighbors" and "graph__radius", 16 values and then 8 around the
        best are tried. A **distribution**, such as ``gq.LogNormal(1, 0.5)``, is optimised as well,
        and the log density of the logarithm is added to the log evidence.
    criterion : {"auto", "laplace", "expectation-propagation", "alignment"}, default "auto"
        What the search maximises. See `graphuq.evidence.criteria.evaluate`. "auto": Laplace's
        evidence where ``estimator.inference`` is "laplace", else that of expectation propagation.
    n_starts : int, default 3
        Number of starts of each optimisation: the estimator's own values, then quasi-random ones.
    refit : bool, default True
        Whether to fit the best classifier.
    random_state : int, default 0
        Seed of the starts.
    progress : bool or callable, default False
        Called with "searching", combinations tried, their number, and the best value.
    checkpoint : path, optional
        File of results, from which an interrupted search continues.

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Best value of the criterion: log evidence, or alignment.
    best_estimator_ : GraphClassifier
        The best classifier, fitted if ``refit``.
    results_ : list of dict
        One row for each start or combination: parameters, "score", "objective" (with the log
        density of distributions), "start", "n_evaluations", "seconds", and "error" (or None).
    classes_ : numpy.ndarray

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> classifier = gq.GraphClassifier(
    ...     laplacian="unnormalized", inference="laplace", weights="unweighted",
    ...     model=gq.models.Fixed("regularized-laplacian", "logistic"))
    >>> search = gq.EvidenceSearch(classifier, {"n_neighbors": [12, 24, 48]}).fit(moons.features, y)
    >>> len(search.results_), sorted(search.best_params_)
    (3, ['n_neighbors'])
    """

    def __init__(
        self,
        estimator: Any = None,
        parameters: Any = None,
        *,
        criterion: Any = "auto",
        n_starts: Any = 3,
        refit: Any = True,
        random_state: Any = 0,
        progress: Any = False,
        checkpoint: Any = None,
    ) -> None:
        self.estimator = estimator
        self.parameters = parameters
        self.criterion = criterion
        self.n_starts = n_starts
        self.refit = refit
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint

    def fit(self, X: Table | None, y: Labels) -> "EvidenceSearch":
        """Search, and fit the best classifier.

        Parameters
        ----------
        X, y : array_like
            As for `GraphClassifier.fit`.

        Raises
        ------
        InvalidInput
            If ``estimator`` is no `GraphClassifier`, such as a pipeline; if a parameter is
            unknown or has no values, or no combination has an evidence.
        """
        estimator = GraphClassifier() if self.estimator is None else self.estimator
        require(
            isinstance(estimator, GraphClassifier),
            "estimator",
            f"a {type(estimator).__name__}",
            "give a GraphClassifier, and transform X before",
        )
        refuse_order(estimator.ordered, "beside a search, whose evidence knows no order")
        require(
            estimator.store is None,
            "estimator",
            "has a store, and a search makes its graphs in memory",
            "leave store out, search on fewer rows, and fit all with what was found",
        )
        word = estimator.graph
        made = graph_of(X) if isinstance(word, str) and word == "precomputed" else None
        if made is not None:
            estimator, X = clone(estimator).set_params(graph=made), None
        word = graph_from(estimator.graph)
        if isinstance(word, Graph):
            require(
                X is None or (word.feature_space is not None and not word.others),
                "X",
                f"features beside {word!r}, of which the search chooses nothing",
                "give None; GraphClassifier itself weighs graphs and features of the nodes",
            )
            estimator = clone(estimator).set_params(graph=word)
        y = labels_of_names(y, estimator.graph)
        self._problem = SearchProblem(estimator, self.criterion, X, y)
        lists, stepped, optimized = _split_by_kind(self.parameters, self._problem.estimator)
        require(self.n_starts >= 1, "n_starts", f"{self.n_starts}", "use 1 or more")
        self.results_: list[dict[str, Any]] = []
        asked = (self.parameters, self.criterion, self.n_starts, self.random_state)
        self._checkpoint = SearchCheckpoint(
            self.checkpoint, f"{asked!r} {self._problem.fingerprint()}"
        )
        tried = [lists | {k: _coarse(k, v) for k, v in stepped.items()}]
        with _reporting(self.progress) as report:
            self._try_all(tried[0], optimized, report)
            if stepped and np.isfinite(self._best()["objective"]):
                finer = {k: _fine(k, tried[0][k], self._best()[k]) for k in stepped}
                if any(finer.values()):
                    values = {k: [self._best()[k], *more] for k, more in finer.items()}
                    alone = {k: [self._best()[k]] for k in lists}
                    self._try_all(alone | values, optimized, report)
        best = self._best()
        require(
            np.isfinite(best["objective"]),
            "parameters",
            f"no combination has an evidence; the first error is: {best.get('error')}",
            "search other values, or use another criterion",
        )
        names = [*lists, *stepped, *optimized]
        self.best_params_ = {name: best[name] for name in names}
        self.best_score_ = best["score"]
        self.classes_ = self._problem.classes
        self.best_estimator_ = self._problem.with_parameters(self.best_params_)
        if self.refit:
            self.best_estimator_.fit(X, y)
        return self

    def surface(self, grids: Mapping[str, Any]) -> Float[np.ndarray, "..."]:
        """Return the criterion on a grid of parameters, with all others at their best values.

        A point without a value of the criterion has NaN.

        Parameters
        ----------
        grids : dict
            Values of each parameter, one axis for each. `graphuq.plots.plot_evidence` plots it.
        """
        check_is_fitted(self, "best_params_")
        shape = tuple(len(grid) for grid in grids.values())
        found = np.empty(shape)
        for place in np.ndindex(shape):
            at = {k: grid[i] for (k, grid), i in zip(grids.items(), place, strict=True)}
            model = self._problem.model(self.best_params_ | at)
            try:
                found[place] = model.value({})
            except GraphuqError:
                found[place] = np.nan
        return found

    def predict(self, X: Table) -> np.ndarray:
        """Predict classes by the best classifier."""
        check_is_fitted(self, "best_estimator_")
        labels: np.ndarray = self.best_estimator_.predict(X)
        return labels

    def predict_proba(self, X: Table) -> Float[np.ndarray, "M K"]:
        """Predict class probabilities by the best classifier."""
        check_is_fitted(self, "best_estimator_")
        probability: np.ndarray = self.best_estimator_.predict_proba(X)
        return probability

    def score(self, X: Table, y: Labels, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of the best classifier; see `GraphClassifier.score`."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y, sample_weight))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the X of `fit`."""
        return int(self._problem.X.shape[1])

    def _best(self) -> dict[str, Any]:
        return max(self.results_, key=lambda row: row["objective"])

    def _try_all(self, lists: Any, optimized: Any, report: Progress | None) -> None:
        """Evaluate every combination of lists that was not evaluated before."""
        combinations = [
            dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())
        ]
        self._problem.expect(combinations)
        for k, plain in enumerate(combinations):
            if any(all(row[n] == v for n, v in plain.items()) for row in self.results_ if plain):
                continue
            rows = self._checkpoint.rows(plain)
            if rows is None:
                rows = self._optimize(plain, optimized)
                self._checkpoint.add(plain, rows)
            self.results_ += rows
            if report is not None:
                report("searching", k + 1, len(combinations), float(self._best()["objective"]))

    def _optimize(
        self, plain: dict[str, Any], optimized: dict[str, ContinuousParameter]
    ) -> list[dict]:
        """Return a row for each start of one combination."""
        began = time.perf_counter()
        try:
            model = self._problem.model(plain)
            own = {name: self._problem.value_of(name, plain) for name in optimized}
        except GraphuqError as error:
            return [plain | _row(None, str(error), 0, 0, began) | dict.fromkeys(optimized, np.nan)]
        if not optimized:
            return [plain | self._evaluate(plain, 0, 1, began)]
        optimizer = Optimizer(model, optimized, own)
        rows = []
        for start, at in enumerate(optimizer.starts(self.n_starts, self.random_state)):
            began = time.perf_counter()
            values, log_density, n_evaluations = optimizer.run(at)
            row = self._evaluate(plain | values, start, n_evaluations + 1, began)
            row["objective"] += log_density
            rows.append(plain | values | row)
        return rows

    def _evaluate(self, values: dict[str, Any], start: int, n: int, began: float) -> dict:
        """Return a row of results; neighbours are found again, as feature scales may differ."""
        try:
            return _row(self._problem.model(values).value({}), None, start, n, began)
        except GraphuqError as error:
            return _row(None, str(error), start, n, began)


def _reporting(progress: bool | Progress | None) -> Any:
    if progress is True:
        return progress_bar("objective")
    return nullcontext(progress or None)


def _row(
    score: float | None, error: str | None, start: int, n_evaluations: int, began: float
) -> dict[str, Any]:
    """Return the stored results of a combination."""
    return {
        "score": np.nan if score is None else score,
        "objective": -np.inf if score is None else score,
        "start": start,
        "n_evaluations": n_evaluations,
        "seconds": time.perf_counter() - began,
        "error": error,
    }


def _split_by_kind(
    parameters: Any, estimator: GraphClassifier
) -> tuple[dict[str, list[Any]], dict[str, tuple[Any, Any]], dict[str, ContinuousParameter]]:
    """Return lists, ranges to step through, and numbers to optimise."""
    require(
        isinstance(parameters, Mapping) and len(parameters) > 0,
        "parameters",
        f"{parameters!r}",
        "give a dict of lists, (low, high) pairs or distributions",
    )
    lists: dict[str, list[Any]] = {}
    stepped: dict[str, tuple[Any, Any]] = {}
    optimized: dict[str, ContinuousParameter] = {}
    for name, spec in parameters.items():
        part, _, own = name.partition("__")
        known = part in PARTS if own else part in estimator.get_params()
        require(
            known,
            "parameters",
            f"{name!r} is unknown",
            "use a parameter of GraphClassifier, or graph__, weights__, prior__ or likelihood__ "
            "and a name",
        )
        if isinstance(spec, tuple) and len(spec) == 2 and name in STEPPED:
            require(0 < spec[0] < spec[1], "parameters", f"{name}: {spec}", "use 0 < low < high")
            stepped[name] = spec
        elif own and part != "graph" and isinstance(spec, Distribution | tuple):
            optimized[name] = ContinuousParameter(name, spec)
        else:
            require(
                isinstance(spec, list | range | np.ndarray) and len(spec) > 0,
                "parameters",
                f"{name}: {spec!r}",
                "give a list of values" + ("" if own else ", because it has no gradient"),
            )
            lists[name] = list(spec)
    return lists, stepped, optimized


def _coarse(name: str, ends: tuple[Any, Any]) -> list[Any]:
    """Return values of a range, evenly spaced in the logarithm."""
    return _rounded(name, np.geomspace(*ends, COARSE))


def _fine(name: str, coarse: list[Any], best: Any) -> list[Any]:
    """Return further values on both sides of the best."""
    at = coarse.index(best)
    low, high = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
    return [v for v in _rounded(name, np.geomspace(low, high, FINE + 2)) if v not in coarse]


def _rounded(name: str, values: np.ndarray) -> list[Any]:
    if name == "n_neighbors":
        return sorted({round(float(v)) for v in values})
    return [float(v) for v in values]
