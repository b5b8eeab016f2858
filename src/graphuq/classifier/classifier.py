"""Scikit-learn estimator that composes graph, spectrum, posterior and inference."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.incremental import Incremental
from graphuq.classifier.nested_parameters import NestedParameters
from graphuq.classifier.prediction import Prediction
from graphuq.classifier.stored.methods import InStore
from graphuq.classifier.types import Groups, Labels, Table
from graphuq.errors import require
from graphuq.utils.concurrency import one_at_a_time
from graphuq.utils.lazy_imports import paused_collection

if TYPE_CHECKING:
    from graphuq.posterior.posterior import Posterior


OF_MEMORY = ("graph_", "_basis", "_feature_space")
OF_STORE = ("_stored", "sampled_rows_", "recall_", "n_components_", "estimate_")
"""Attributes that a fit of the other kind removes."""


class GraphClassifier(
    NestedParameters, Incremental, Prediction, InStore, ClassifierMixin, BaseEstimator
):
    """Semi-supervised classifier with the probability of each class for each row.

    The estimator builds a similarity graph on all rows, labelled or not. The Laplacian spectrum
    defines a Gaussian prior on a field u over the nodes. The estimator computes the posterior of u
    given the labels. The class of a node is the sign of u (two classes) or its largest field.

    Parameters
    ----------
    graph : {"knn", "complete", "precomputed"}, GraphBuilder, graph or graphs, default "knn"
        Graph of all rows; "precomputed" takes the data as weights of edges. Then ``X`` is an (N, N)
        matrix of weights, dense or sparse, a `Graph`, or a graph of NetworkX, igraph, PyTorch
        Geometric, DGL or AnnData; see `graphuq.graphs.from_adjacency`. Such a graph, or a sparse
        matrix of weights, may also be the parameter itself: the X of `fit` is then the features of
        its nodes, or None, and the evidence weighs graph and features (docs/nodes.md). Nodes whose
        names are the index of X, or of y without X, take its order. A `Graph` that was made from
        features takes these, or None. Parameters that build a graph are then refused.
        A list of graphs, or a dict of names and graphs, are several graphs on the same nodes.
        `graphuq.graphs.Epsilon` or another builder, or its text ``"Epsilon(radius=0.4)"``, makes
        its own graph of X.
    n_neighbors : int or "auto", default "auto"
        Neighbours of each node, by default 15; in the complete graph, those that give its local
        scale, by default 10. "auto": these numbers, but at most N − 1.
    weights : str or WeightFunction, default "auto"
        Weights of the edges. "self-tuning", "unweighted" and "cosine" are names; see
        `graphuq.graphs.knn_graph`. "auto": self-tuning with sharpness 4 for the
        nearest-neighbour graph and 1/2 for the complete graph; unweighted for `Epsilon`. Also text
        such as ``"GaussianWeights(scale=1.25)"``.
    metric : {"euclidean", "cosine", "precomputed"}, optional
        Distance of two rows, by default that of the weights; "precomputed" takes the data as
        distances. Then ``X`` holds the distances of all pairs or, sparse, of neighbours, or is the
        pair (indices, distances) of a search, and other rows cannot be predicted.
    laplacian : {"symmetric", "unnormalized", "random-walk"}, default "symmetric"
        Laplacian of the graph.
    n_eigenpairs : int, "all" or "auto", default "auto"
        Number of eigenpairs ℓ of the Laplacian. "auto": min(150, N), or some more or
        fewer, so that no copy of a multiple eigenvalue is cut off; as many as classes, if there
        are more than 150 (docs/archive/fit.md); none for `RegularizedLaplacian`, which is
        solved exactly.
    tail_eigenvalue : bool, float or "mean", default False
        Value of the eigenvalues that are not computed: none of them is used (false), the largest
        computed one (true), their mean, or a number. See `graphuq.laplacian_spectrum`.
    model : {"auto", "average", "likeliest", "largest-evidence", "fixed"} or Model, default "auto"
        Prior and likelihood of the labels, or the rule that finds them. See `graphuq.models`.
        "auto" is `graphuq.models.Auto`: an average over priors on graphs and functions of the
        features; with more than 1,500 labels the likeliest of them.
        ``gq.models.Fixed(prior, likelihood)`` is a model of your own parts. A model may also be
        text such as ``"Fixed(Matern(tau=0.3), Probit(0.1))"``. No other parameter changes it.
    max_classes : int, optional
        Largest possible number of classes, including classes without a label. The number is
        learnt; `unseen_class_probability_` is the probability of a class without a label.
    ordered : bool or list, default False
        Whether the classes are grades, which have an order: a list of them from the lowest to the
        highest, or true for numbers and for an ordered categorical of pandas. A grade may be
        without labels. See docs/ordered.md.
    inference : str, Sampler, Approximation or MCMC, default "auto"
        Method that computes the posterior. "auto": the method that `graphuq.infer` chooses; for
        the default model "expectation-propagation" with several classes, or many labels of two,
        else "model-average". "expectation-propagation" and "laplace" are quick, without a
        bound on their errors; "map" gives a point. "pcn", "hamiltonian" (about
        expectation propagation), "collapsed-gibbs", "exact-hamiltonian",
        "reflective-hamiltonian", "tempered-hamiltonian" and "elliptical-slice" are samplers. Each
        of them serves every component of an average; see `graphuq.inference.EachComponent`.
        Settings of sampling are those of `graphuq.inference.MCMC`, as in
        ``inference=gq.inference.MCMC("pcn", n_samples=500)``, and have nested names:
        ``set_params(inference__n_samples=500)``.
    missing_label : object, default -1
        Value of ``y`` that means unlabelled, besides NaN, None, ``pd.NA`` and blank text. With
        ``missing_label=None`` there is no further value, so that −1 can be a class.
    class_proportions : dict, array_like or "labels", optional
        Share of each class among the unlabelled rows, in the order of ``classes_`` or by name.
        The threshold between classes is moved to obtain these shares, for labels and for
        probabilities; see `graphuq.results.class_proportions`. Labels that were given are kept.
        "labels": shares of the given labels. By default no shares are imposed.
    out_of_sample : {"mean", "nearest", "combination"}, default "mean"
        Prediction of rows outside the graph: from the weighted mean of their neighbours, from
        the nearest node, or from a combination of nodes. `docs/zhu.md` compares them.
    store : path or Store, optional
        Folder in which the fit works part by part, so that a table of any length needs little
        memory; see `graphuq.Store` and docs/store.md. Then ``inference="auto"`` is expectation
        propagation, ``random_state`` is an integer, and parameters that need all rows at a time
        are refused.
    client : dask.distributed.Client, optional
        Cluster that works in the store, with the extra ``graphuq[dask]``. All workers must see the
        store and the files of the table under the same paths. By default tasks run on threads.
    random_state : int, Generator, RandomState or None, default 0
        Seed of all random numbers; the same seed gives the same result.
    progress : bool or callable, default False
        See `graphuq.infer`.

    Attributes
    ----------
    classes_ : numpy.ndarray, shape (K,)
    transduction_ : numpy.ndarray, shape (N,)
        Class of each row of ``X``.
    label_distributions_ : numpy.ndarray, shape (N, K)
        Probabilities of the classes, given that the class is one of ``classes_``.
    unseen_class_probability_ : numpy.ndarray, shape (N,)
        Posterior probability of a class without any label, see `predict_unseen_class`; 0 without
        ``max_classes``.
    result_ : Result
        Posterior of all rows, with diagnostics; as it is without ``class_proportions``, which
        the other attributes and the predictions follow.
    graph_ : Graph
    model_ : Model
        The model that was used, with everything that the labels chose as numbers.
    n_features_in_ : int
    n_iter_ : int
        Kept draws per chain, or iterations of an approximation.
    sampled_rows_ : numpy.ndarray of int, shape (n,)
        With a store: rows that are the nodes of ``result_`` and that attributes of rows are of. All
        of up to 20,000 rows; of more the labelled ones and 10,000 others. `to_parquet` writes all.
    recall_, n_components_, estimate_ : float, int, Estimate
        With a store: share of the true neighbours that were found, estimated from 400 rows;
        components of the graph; memory and disk that were estimated before the work.

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

    uses_node_features = True

    def __init__(
        self,  # scikit-learn requires that any value is accepted here and checked by fit
        graph: Any = "knn",
        *,
        n_neighbors: Any = "auto",
        weights: Any = "auto",
        metric: Any = None,
        laplacian: Any = "symmetric",
        n_eigenpairs: Any = "auto",
        tail_eigenvalue: Any = False,
        model: Any = "auto",
        max_classes: Any = None,
        ordered: Any = False,
        inference: Any = "auto",
        missing_label: Any = -1,
        class_proportions: Any = None,
        out_of_sample: Any = "mean",
        store: Any = None,
        client: Any = None,
        random_state: Any = 0,
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
        self.max_classes = max_classes
        self.ordered = ordered
        self.inference = inference
        self.missing_label = missing_label
        self.class_proportions = class_proportions
        self.out_of_sample = out_of_sample
        self.store = store
        self.client = client
        self.random_state = random_state
        self.progress = progress

    @one_at_a_time
    def fit(
        self, X: Table | None, y: Labels, sample_weight: ArrayLike | None = None
    ) -> "GraphClassifier":
        """Infer the class of every row.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (N, d)
            Features; with ``store`` also the path of a folder of Parquet files, of a Parquet or NPY
            file, or of a Zarr array, or a Dask collection; with ``graph="precomputed"`` weights or
            a graph, with ``metric="precomputed"`` distances, both of shape (N, N). With a graph as
            parameter, features of its nodes, in their order, or None.
        y : array_like, shape (N,) or (N, K)
            Class of each row; ``missing_label``, NaN, None, ``pd.NA`` or "" if it is unknown. At
            least two classes. For a graph, also a dict from names of nodes to classes. With
            ``store`` also a dict from row numbers to classes, or the name of a column. Soft labels
            have K columns, the probability of each class before graph and other labels are seen;
            NaN or zeros in all columns of an unlabelled row. Names of columns are the classes. If
            all rows are certain (0 and 1), and each class has one, they are labels.
        sample_weight : array_like, shape (N,), optional
            Weight w ≥ 0 of each label, 1 by default: the variance of its noise is γ²/w, so that a
            small weight is a doubtful label. A label of weight 0 is not used. Only for a probit;
            weights of unlabelled rows have no meaning. See docs/theory/labels.md, "Weights of
            labels".

        Returns
        -------
        GraphClassifier
            The classifier itself.

        Raises
        ------
        InvalidInput
            If features, weights, labels or options cannot be used.
        IncompatibleParts
            If labels have weights and the likelihood takes none.
        StorageError
            If a file cannot be read or written. What is complete in a store stays.

        Warns
        -----
        FeatureScaleWarning
            If scales of features differ by a factor of more than 100.
        MissingLabelWarning
            If most rows have a class such as "?" or "unknown".
        GraphuqWarning
            If X is None, and a graph of another library has features of its nodes; if rows with
            equal features have different labels.
        """
        with paused_collection():
            from graphuq.classifier.fitting import fit_classifier  # imports Numba

        if self.store is None:
            fit_classifier(self, X, y, sample_weight)
        else:
            from graphuq.classifier.stored.fit import fit_in_store

            fit_in_store(self, X, y, sample_weight)
        for name in OF_STORE if self.store is None else OF_MEMORY:
            self.__dict__.pop(name, None)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters that differ from their defaults, and once fitted the model used."""
        if not hasattr(self, "model_"):
            return super().__repr__(N_CHAR_MAX)
        shown = type(self)(**self.get_params(deep=False) | {"model": self.model_})
        return BaseEstimator.__repr__(shown, 10**6)

    def _html_repr(self) -> str:
        """Return what a notebook shows: the answer if there is one, and the parameters."""
        parameters = str(super()._html_repr())
        if not hasattr(self, "transduction_"):
            return parameters
        from graphuq.results.summary_html import result_html

        n_nodes, stored = len(self.transduction_), self._stored
        n_rows = n_nodes if stored is None else stored.stages.table.n_rows
        words = f"At {n_nodes:,} of {n_rows:,} rows, a sample; to_parquet writes all."
        codes = np.searchsorted(self.classes_, self.transduction_)
        shown = result_html(self.result_, codes)
        return (f"<p>{words}</p>" if n_nodes < n_rows else "") + shown + parameters

    def save(self, path: str | Path, extra: Groups = None) -> None:
        """Write all that prediction needs to one NetCDF file, which `graphuq.load` reads.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        from graphuq.classifier.saving import save_classifier

        check_is_fitted(self)
        require(
            self._stored is None,
            "store",
            "given beside a file of the fit",
            "keep the store, where the same call of fit finds all that is done",
        )
        save_classifier(self, path, extra)

    @classmethod
    def load(cls, path: str | Path) -> "GraphClassifier":
        """Read a fitted classifier that `save` wrote; it predicts without a new fit.

        Raises
        ------
        StorageError
            If the file is missing, truncated, without a classifier of this class, or of another
            version.
        """
        from graphuq.classifier.saving import load_classifier

        return load_classifier(cls, path)

    def _more_to_store(self) -> dict[str, Any]:
        """Return arrays that a subclass stores as well, each with the names of its axes."""
        return {}

    def _take_stored(self, stored: Any) -> None:
        """Set what a subclass stored, once all else is set."""

    def _explore(
        self, posterior: "Posterior", inference: Any, shares: Any = None, **more: Any
    ) -> None:
        from graphuq.classifier.fitting import explore

        explore(self, posterior, inference, shares, **more)

    def _value_of(self, name: str) -> Any:
        """Return the value of a parameter, also where it is given as a word or as text."""
        from graphuq.classifier.options import value_of

        return value_of(self, name)

    def _describe(self) -> None:
        nodes = np.arange(len(self.result_.has_evidence))
        known, self.unseen_class_probability_ = self._known_and_novel(self.result_, nodes)
        self.label_distributions_ = known
        self.transduction_ = self._labels(self.result_, nodes, known)
        self.n_iter_ = self.result_.answer.n_iterations

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        words = [word for word in (self.graph, self.metric) if isinstance(word, str)]
        tags.input_tags.pairwise = "precomputed" in words
        return tags
