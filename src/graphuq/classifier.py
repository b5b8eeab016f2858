"""The scikit-learn face: composes graph, spectrum, posterior and inference; computes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import graphuq.graphs
from graphuq.errors import InvalidInput, StorageError, require
from graphuq.graphs import FeatureSpace, Graph, complete_graph, from_adjacency, knn_graph
from graphuq.inference import (
    PCN,
    Approximation,
    ExpectationPropagation,
    Gaussian,
    Hamiltonian,
    Kernel,
)
from graphuq.labels import check_two_classes, split_labels
from graphuq.likelihoods import LevelSet, Likelihood, Probit
from graphuq.posterior import Posterior
from graphuq.priors import InverseLaplacian, Prior
from graphuq.result import result_from_tree
from graphuq.run import infer
from graphuq.spectrum import laplacian_spectrum
from graphuq.stopping import Converged
from graphuq.storage import part_from_json, part_to_json, read_tree, write_tree
from graphuq.summaries import NodeSummaries

GRAPHS = ("knn", "complete", "precomputed")
LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {"probit": Probit, "level-set": LevelSet}
PRIORS: dict[str, Callable[[], Prior]] = {"inverse-laplacian": InverseLaplacian}
METHODS: dict[str, Callable[[], Kernel | Approximation]] = {
    "pcn": PCN,
    "hamiltonian": lambda: Hamiltonian(reference=ExpectationPropagation()),
    "expectation-propagation": ExpectationPropagation,
}


class GraphClassifier(ClassifierMixin, BaseEstimator):
    """Label everything from a few labels, with the probability of each.

    Builds a similarity graph on all rows, labelled or not, puts a Gaussian prior on its
    Laplacian spectrum and samples the posterior of the field whose sign is the label.

    Parameters
    ----------
    graph : {"knn", "complete", "precomputed"}, default "knn"
        ``"precomputed"``: ``X`` is an (N, N) matrix of weights, dense or sparse.
    n_neighbors : int or "auto", default "auto"
        K of the graph, or of the complete graph's local scales: 20 (10 for the complete
        graph), or N − 1 where there are fewer rows.
    weights : str or WeightFunction, default "self-tuning"
        See `graphuq.graphs.knn_graph`.
    scale : float, optional
        Length of ``weights="gaussian"``.
    laplacian : {"symmetric", "unnormalized", "random-walk"}, default "symmetric"
    n_eigenpairs : int, optional
        ℓ; by default 150, or N if that is less.
    tail : bool, float or "mean", default False
        What stands for the other eigenvalues; see `graphuq.laplacian_spectrum`.
    prior : {"inverse-laplacian"} or Prior, default "inverse-laplacian"
    likelihood : {"probit", "level-set"} or Likelihood, default "probit"
        By name with noise γ = 0.1; ``gq.likelihoods.Probit(noise_std=0.5)`` for another.
    inference : {"pcn", "hamiltonian", "expectation-propagation"}, Kernel or Approximation
        Default "pcn". Hamiltonian, about expectation propagation, is the fastest for probit;
        expectation propagation answers at once, without a bound on its error.
    n_samples : int, default 4000
        Most kept draws a chain: sampling stops once R-hat < 1.01 and ESS > 400.
    n_chains, n_warmup, thin : int, default 8, 2000 and 50
        See `graphuq.infer`.
    until_converged : bool, default True
        False: always draw ``n_samples``.
    precision : {"float64", "float32"}, default "float64"
    missing_label : object, default -1
        Value of ``y`` that means unlabelled, besides NaN, None and "". None: those alone, so
        that −1 can be a class.
    random_state : int, Generator, RandomState or None, default 0
    progress : bool or callable, default False
        See `graphuq.infer`.
    checkpoint : path, optional
        See `graphuq.infer`.

    Attributes
    ----------
    classes_ : numpy.ndarray, shape (2,)
    transduction_ : numpy.ndarray, shape (N,)
        Class of each row of ``X``.
    label_distributions_ : numpy.ndarray, shape (N, 2)
        Their probabilities.
    result_ : Result
        The whole posterior, with its diagnostics.
    graph_ : Graph
    n_features_in_ : int
    n_iter_ : int
        Kept draws a chain, or sweeps of an approximation.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.full(200, -1)
    >>> y[:20] = moons.classes[:20]
    >>> classifier = gq.GraphClassifier(n_neighbors=10).fit(moons.features, y)
    >>> float((classifier.transduction_ == moons.classes).mean()) > 0.95
    True
    >>> classifier.predict_proba([[0.0, 1.0]]).shape
    (1, 2)
    """

    def __init__(
        self,  # scikit-learn wants any value accepted here, and judged by fit
        graph: Any = "knn",
        *,
        n_neighbors: Any = "auto",
        weights: Any = "self-tuning",
        scale: Any = None,
        laplacian: Any = "symmetric",
        n_eigenpairs: Any = None,
        tail: Any = False,
        prior: Any = "inverse-laplacian",
        likelihood: Any = "probit",
        inference: Any = "pcn",
        n_samples: Any = 4000,
        n_chains: Any = 8,
        n_warmup: Any = 2000,
        thin: Any = 50,
        until_converged: Any = True,
        precision: Any = "float64",
        missing_label: Any = -1,
        random_state: Any = 0,
        progress: Any = False,
        checkpoint: Any = None,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.scale = scale
        self.laplacian = laplacian
        self.n_eigenpairs = n_eigenpairs
        self.tail = tail
        self.prior = prior
        self.likelihood = likelihood
        self.inference = inference
        self.n_samples = n_samples
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.thin = thin
        self.until_converged = until_converged
        self.precision = precision
        self.missing_label = missing_label
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any) -> "GraphClassifier":
        """Infer the class of every row.

        Parameters
        ----------
        X : array_like, shape (N, d), or weights of shape (N, N) with ``graph="precomputed"``
        y : array_like, shape (N,)
            Class of each row, or ``missing_label``, NaN, None or "" where it is unknown.
            Exactly two classes.

        Returns
        -------
        GraphClassifier
            Itself.

        Raises
        ------
        InvalidInput
            If features, weights, labels or options cannot be used.
        """
        precomputed = self._check_options()
        prior = _resolve(self.prior, PRIORS, Prior, "prior")
        likelihood = _resolve(self.likelihood, LIKELIHOODS, Likelihood, "likelihood")
        method = _resolve(self.inference, METHODS, (Kernel, Approximation), "inference")
        X = validate_data(
            self,
            X,
            accept_sparse="csr" if precomputed else False,
            dtype=np.float64,
            ensure_min_samples=2,
            ensure_all_finite=not precomputed,  # of weights, the graph speaks itself
        )
        values, given = split_labels(y, self.missing_label)
        require(len(values) == X.shape[0], "y", f"{len(values)} values", f"X has {X.shape[0]} rows")
        check_classification_targets(values[given])
        self.classes_, codes = np.unique(values[given], return_inverse=True)
        check_two_classes(self.classes_, self.missing_label)

        self.graph_ = self._build_graph(X)
        spectrum = laplacian_spectrum(
            self.graph_, self.laplacian, self.n_eigenpairs, tail=self.tail
        )
        labelled = np.flatnonzero(given)
        posterior = Posterior(spectrum, prior, likelihood, labelled, 2.0 * codes - 1.0)
        self.result_ = infer(
            posterior,
            method,
            n_samples=self.n_samples,
            n_chains=self.n_chains,
            n_warmup=self.n_warmup,
            thin=self.thin,
            seed=_seed(self.random_state),
            precision=self.precision,
            stop=Converged() if self.until_converged else None,
            progress=self.progress,
            checkpoint=self.checkpoint,
        )
        self._feature_space = self.graph_.feature_space
        self._describe()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row, in the graph or not.

        Parameters
        ----------
        X : array_like, shape (M, d)
            With ``graph="precomputed"``: weights from each row to the N nodes, shape (M, N).

        Returns
        -------
        numpy.ndarray, shape (M,)
        """
        check_is_fitted(self)
        classes: np.ndarray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return classes

    def predict_proba(self, X: Any) -> Float[np.ndarray, "M 2"]:
        """Probability of each class for each row, in the graph or not.

        A row that is in the graph has its own posterior; another has that of the weighted mean
        of its neighbours (`Spectrum.extend`); one without neighbours has the prior's 1/2.

        Parameters
        ----------
        X : array_like, shape (M, d)
            With ``graph="precomputed"``: weights from each row to the N nodes, shape (M, N).

        Returns
        -------
        numpy.ndarray, shape (M, 2)
            Columns in the order of ``classes_``.
        """
        mean = self.predict_summaries(X).label_mean
        return np.stack([1 - mean, 1 + mean], axis=1) / 2

    def predict_summaries(self, X: Any) -> NodeSummaries:
        """Label mean, Monte-Carlo error, latent mean and deviation of each row."""
        check_is_fitted(self)
        eigenvectors, scale, known = self._rows(X)
        summaries = self.result_.at_rows(eigenvectors, scale)
        inside = known >= 0
        for name, values in vars(summaries).items():
            values[inside] = getattr(self.result_, name)[known[inside]]
        return summaries

    def predict_interval(self, X: Any, probability: float = 0.95) -> Float[np.ndarray, "M 2"]:
        """Equal-tailed credible interval of the latent u of each row."""
        check_is_fitted(self)
        eigenvectors, scale, known = self._rows(X)
        interval = self.result_.interval_at_rows(eigenvectors, scale, probability)
        inside = known >= 0
        if inside.any():
            interval[inside] = self.result_.credible_interval(probability)[known[inside]]
        return interval

    def save(self, path: str | Path, extra: dict[str, xr.Dataset] | None = None) -> None:
        """Write to one NetCDF file all that prediction needs; `graphuq.load` reads it as well.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        check_is_fitted(self)
        tree = self.result_.to_tree()
        for name, dataset in (extra or {}).items():
            tree[name] = xr.DataTree(dataset)
        space = self._feature_space
        arrays = {}
        attrs = {
            "classes": json.dumps(self.classes_.tolist()),
            "n_features": self.n_features_in_,
            "graph": self.graph,
        }
        if space is not None:
            arrays = {
                "features": (("node", "feature"), space.features),
                "local_scales": ("node", space.local_scales),
            }
            attrs |= {
                "weight": part_to_json(space.weight),
                "n_neighbors": space.n_neighbors,
                "complete": int(space.complete),
            }
        tree["classifier"] = xr.DataTree(xr.Dataset(arrays, attrs=attrs))
        write_tree(tree, path)

    @classmethod
    def load(cls, path: str | Path) -> "GraphClassifier":
        """Read a fitted classifier that `save` wrote; it predicts, and need not be fitted.

        Raises
        ------
        StorageError
            If the file is missing, truncated, without a classifier, or of another version.
        """
        tree = read_tree(path)
        if "classifier" not in tree.children:
            raise StorageError(f"'{path}' holds a result but no classifier; use graphuq.load")
        stored = tree["classifier"].to_dataset()
        classifier = cls(graph=stored.attrs["graph"])
        classifier.result_ = result_from_tree(tree, path)
        classifier.classes_ = np.array(json.loads(stored.attrs["classes"]))
        classifier.n_features_in_ = int(stored.attrs["n_features"])
        classifier._feature_space = None
        if "features" in stored:
            classifier._feature_space = FeatureSpace(
                features=stored["features"].to_numpy(),
                weight=part_from_json(stored.attrs["weight"], graphuq.graphs),
                local_scales=stored["local_scales"].to_numpy(),
                n_neighbors=int(stored.attrs["n_neighbors"]),
                complete=bool(stored.attrs["complete"]),
            )
        classifier._describe()
        return classifier

    def _describe(self) -> None:
        self.label_distributions_ = self.result_.class_probabilities
        self.transduction_ = self.classes_[(self.result_.labels > 0).astype(int)]
        answer = self.result_.answer
        self.n_iter_ = answer.n_iterations if isinstance(answer, Gaussian) else answer.n_samples

    def _check_options(self) -> bool:
        require(
            self.graph in GRAPHS,
            "graph",
            f"{self.graph!r} is unknown",
            f"use one of {', '.join(GRAPHS)}",
        )
        if isinstance(self.n_neighbors, str):
            require(
                self.n_neighbors == "auto",
                "n_neighbors",
                f"{self.n_neighbors!r} is unknown",
                "give a number, or 'auto'",
            )
        return self.graph == "precomputed"

    def _build_graph(self, X: Any) -> Graph:
        if self.graph == "precomputed":
            return from_adjacency(X)
        usual = 20 if self.graph == "knn" else 10
        n_neighbors = (
            min(usual, len(X) - 1) if isinstance(self.n_neighbors, str) else self.n_neighbors
        )
        build = knn_graph if self.graph == "knn" else complete_graph
        return build(X, n_neighbors=n_neighbors, weights=self.weights, scale=self.scale)

    def _rows(
        self, X: Any
    ) -> tuple[Float[np.ndarray, "M L"], Float[np.ndarray, " M"], Int[np.ndarray, " M"]]:
        precomputed = self.graph == "precomputed"
        X = validate_data(
            self, X, reset=False, accept_sparse="csr" if precomputed else False, dtype=np.float64
        )
        space = self._feature_space
        if space is None:
            weights, known = sparse.csr_array(X), np.full(X.shape[0], -1)
            require(
                weights.nnz == 0 or bool(weights.data.min() >= 0),
                "X",
                "negative weights to the nodes",
                "give similarities >= 0",
            )
        else:
            weights, known = space.connect(X), space.find(X)
        spectrum = self.result_.posterior.spectrum
        return spectrum.extend(weights), spectrum.extend_scale(weights), known

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = self.graph == "precomputed"
        tags.input_tags.pairwise = self.graph == "precomputed"
        return tags


def _resolve(part: Any, table: dict[str, Callable[[], Any]], kinds: Any, argument: str) -> Any:
    if isinstance(part, str) and part in table:
        return table[part]()
    if isinstance(part, kinds):
        return part
    raise InvalidInput(
        argument,
        f"{part!r} is unknown",
        f"use one of {', '.join(table)}, or an object of that kind",
    )


def _seed(random_state: Any) -> int | np.random.Generator:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    require(random_state is None, "random_state", f"{random_state!r}", "give an integer")
    return np.random.default_rng()
