"""Classifier of rows that several annotators have labelled, each with errors of their own."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.annotator_rounds import (
    Rounds,
    check_classes_found,
    first_classes,
    run_rounds,
)
from graphuq.classifier.class_names import warn_of_class_names
from graphuq.classifier.class_order import refuse_order
from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.labels import check_classes, shape_of, split_labels, unmasked
from graphuq.classifier.options import seed_of
from graphuq.classifier.types import Labels, Table
from graphuq.errors import require
from graphuq.graphs import Graph, from_adjacency
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.inference import MCMC, AnnotatorGibbs, ExpectationPropagation
from graphuq.inference.collapsed_gibbs.annotators import (
    ACCURACY,
    CONFUSION,
    TRUE_CLASS,
    Readings,
)
from graphuq.likelihoods import Probit, SoftProbit
from graphuq.models import Fixed
from graphuq.priors import Matern
from graphuq.results.label_numbers import with_classes
from graphuq.results.result import Result
from graphuq.run.words import inference_from
from graphuq.utils.checks import refuse_zero_bytes
from graphuq.utils.concurrency import one_at_a_time
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

INTERVAL = (0.05, 0.95)  # of accuracies
MAX_SAMPLED_ROWS = 500  # annotated rows of two classes, up to which all is sampled together
SAME_FIELD = Matern(tau=1e-6, alpha=3.0, include_constant=True)  # all but constant on a ring
OF_PEOPLE = (
    "accuracy", "accuracy_interval", "share_right", "share_right_interval", "confusion",
)  # fmt: skip
N_BATCHES = 32  # of draws, over which Monte-Carlo errors of true classes are estimated
REMEDY = "give one row for each row of X, and one column for each annotator"


class AnnotatorClassifier(GraphClassifier):
    """`GraphClassifier` of labels by several annotators, whose errors are learnt.

    Each annotator has a confusion matrix: the probability of each label given the true class
    (Dawid & Skene 1979). The graph is the prior of the true classes, in place of independent rows.
    There are two methods.

    - Few rows: true classes, confusion matrices and the field are sampled together; see
      `graphuq.inference.AnnotatorGibbs`. Hyperparameters "auto" are chosen by the evidence of the
      labels that annotators give together without the graph.
    - A crowd, which is more than 500 labelled rows of two classes, or
      ``inference="expectation-propagation"``: accuracies are learnt for people and for classes, and
      rows differ in how easy they are. Expectation propagation of the field and chains of people
      and rows take turns. ``model="auto"`` is the likeliest component of the default average, on
      graph or features. See docs/theory/labels.md, "Crowds".

    Without features, ``fit(None, y)`` takes rows as independent, given the shares of the classes.

    The parameters are those of `GraphClassifier`. The likelihood is a probit. At annotated rows,
    class probabilities are those of the true class of that row.

    Attributes
    ----------
    accuracy_ : numpy.ndarray, shape (A,)
        Posterior mean of the probability that each annotator is right at a row like these.
    accuracy_interval_ : numpy.ndarray, shape (A, 2)
        Ends of its 90 % interval.
    annotators_ : pandas.DataFrame
        Columns ``annotator``, ``n_labels``, ``accuracy``, ``lower`` and ``upper``.
    confusion_ : numpy.ndarray, shape (A, K, K)
        Posterior mean of the probability that annotator a says l where the class is k.
    share_right_, share_right_interval_ : numpy.ndarray, shape (A,) and (A, 2)
        Posterior mean and 90 % interval of the share of right ones among the labels that each
        annotator gave.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(100, n_features=2, noise_std=0.05)
    >>> rng = np.random.default_rng(0)
    >>> labels = np.full((100, 2), -1)
    >>> for a, accuracy in enumerate([0.95, 0.6]):
    ...     right = rng.uniform(size=30) < accuracy
    ...     labels[:30, a] = np.where(right, moons.codes()[:30], 1 - moons.codes()[:30])
    >>> sampling = gq.inference.MCMC(n_samples=500)
    >>> classifier = gq.AnnotatorClassifier(inference=sampling).fit(moons.features, labels)
    >>> bool(classifier.accuracy_[0] > classifier.accuracy_[1])
    True
    """

    @one_at_a_time
    def fit(
        self, X: Table | None, y: Labels, sample_weight: ArrayLike | None = None
    ) -> "AnnotatorClassifier":
        """Infer the class of every row, and how often each annotator is right.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (N, d), or None
            As for `GraphClassifier.fit`. None without a graph: rows are independent.
        y : array_like, shape (N, A)
            Label of each row by each annotator; ``missing_label``, NaN, None, ``pd.NA`` or "" where
            there is none. Names of columns are the names of the annotators.
        sample_weight : None
            Not used; a weight of a row has no meaning for several annotators.

        Returns
        -------
        AnnotatorClassifier
            The classifier itself.

        Raises
        ------
        InvalidInput
            As `GraphClassifier.fit`; if ``y`` is no matrix of labels, or a parameter has no
            meaning here.

        Warns
        -----
        NotConvergedWarning
            If the rounds or the chains of a crowd do not settle.
        """
        require(sample_weight is None, "sample_weight", "given beside annotators", "leave it out")
        refuse_order(self.ordered, "beside annotators, whose classes have no order here")
        inference = inference_from(self.inference)
        is_known = isinstance(inference, ExpectationPropagation)
        if isinstance(inference, MCMC):
            is_known = inference.is_auto and not inference.on_first_result
        require(
            is_known,
            "inference",
            f"{self.inference!r} beside annotators, who have methods of their own",
            "leave it out, give MCMC with settings alone, such as MCMC(n_samples=500), or "
            "'expectation-propagation'",
        )
        classes, readings, names = readings_of(y, self.missing_label)
        rows = np.flatnonzero((readings >= 0).any(axis=1))
        self._readings, self._names = readings[rows], names
        is_alone = X is None and isinstance(self.graph, str) and self.graph == "knn"
        is_default = is_sampled_by_default(inference)
        are_many = len(classes) == 2 and len(rows) > MAX_SAMPLED_ROWS and is_default
        self._is_crowd = is_alone or are_many or isinstance(inference, ExpectationPropagation)
        require(
            not self._is_crowd or len(classes) == 2,
            "X" if is_alone else "inference",
            f"{len(classes)} classes of a crowd",
            "give features, and leave inference out: a crowd has two classes",
        )
        if self._is_crowd:
            self._fit_crowd(X, rows, len(readings), is_alone)
        else:
            q = np.full((len(readings), len(classes)), np.nan)
            q[rows] = self._table(len(classes)).without_graph()
            super().fit(X, q)
        self.classes_ = classes
        self.result_ = with_classes(self.result_, classes)
        self._describe()
        return self

    def _fit_crowd(self, X: Table | None, rows: np.ndarray, n_rows: int, is_alone: bool) -> None:
        """Fit the most probable classes, whose posterior `_explore` replaces by that of rounds."""
        seed = seed_of(self.random_state)
        self._seed = seed if isinstance(seed, int) else int(seed.integers(2**63))
        _, said = first_classes(self._readings, 2, self._seed)
        y = np.full(n_rows, -1)
        y[rows] = said.argmax(axis=1)
        check_classes_found(y[rows], 2)
        given = self.get_params(deep=False)
        changed: dict[str, Any] = {"missing_label": -1, "inference": "expectation-propagation"}
        if is_alone:
            shares = Fixed(SAME_FIELD, Probit(1.0, random_labels=True))
            changed |= {"graph": ring(n_rows), "n_eigenpairs": 3, "model": shares}
        try:
            self.set_params(**changed)
            super().fit(X, y)
        finally:
            self.set_params(**given)

    def _table(self, n_classes: int) -> Readings:
        sampler = AnnotatorGibbs(readings=self._readings)
        return Readings(self._readings, n_classes, sampler.right, sampler.wrong)

    def _explore(self, posterior: Any, inference: Any, shares: Any = None, **more: Any) -> None:
        if self._is_crowd:
            model: Any = self.model_
            rounds = run_rounds(posterior, model, self._basis, self._readings, self._seed)
            self.model_: Any = model.used(rounds.posterior)
            super()._explore(rounds.posterior, inference, shares, **more)
            self._take_draws(rounds)
        else:
            sampler = AnnotatorGibbs(readings=self._readings)
            super()._explore(posterior, inference.of_sampler(sampler), shares, **more)
            self.result_ = _with_true_classes(self.result_, self._readings)
            self._take_chains()

    def _take_draws(self, rounds: Rounds) -> None:
        """Set what the rounds of a crowd found, at the annotated rows and of the people."""
        draws, nodes = rounds.draws, rounds.posterior.labelled
        probabilities, mcse = self.result_.probabilities.copy(), self.result_.mcse.copy()
        probabilities[nodes], mcse[nodes] = draws.members, draws.errors
        how = {"rounds": rounds.n_rounds, "change": rounds.change, "rhat": rounds.rhat}
        settings = {**self.result_.settings, "crowd": how}
        self.result_ = dataclasses.replace(
            self.result_, probabilities=probabilities, mcse=mcse, settings=settings
        )
        self._describe_people(draws.accuracy, draws.share_right, draws.confusion)

    def _take_chains(self) -> None:
        """Set what the chains of `AnnotatorGibbs` drew of the people."""
        drawn, n_people = self.result_.answer.hyperparameters, self._readings.shape[1]
        n_classes = self.result_.posterior.n_classes
        confusion = drawn[CONFUSION].mean(axis=(0, 1)).reshape(n_people, n_classes, n_classes)
        accuracy = np.stack([drawn[ACCURACY.format(a)] for a in range(n_people)], axis=-1)
        is_right = drawn[TRUE_CLASS][..., None] == self._readings
        share_right = is_right.sum(axis=2) / (self._readings >= 0).sum(axis=0)
        self._describe_people(accuracy, share_right, confusion)

    def _describe_people(self, accuracy: Any, share_right: Any, confusion: Any) -> None:
        self.confusion_ = confusion
        self.accuracy_, self.share_right_ = (
            draws.mean(axis=(0, 1)) for draws in (accuracy, share_right)
        )
        self.accuracy_interval_, self.share_right_interval_ = (
            np.quantile(draws, INTERVAL, axis=(0, 1)).T for draws in (accuracy, share_right)
        )

    def _more_to_store(self) -> dict[str, Any]:
        axes, people = ("annotated_row", "annotator"), ("annotator",)
        stored = {"readings": (axes, self._readings), "annotator": (people, np.array(self._names))}
        for name in OF_PEOPLE:
            value = getattr(self, f"{name}_")
            stored[name] = ((*people, *(f"{name}_{i}" for i in range(1, value.ndim))), value)
        return stored

    def _take_stored(self, stored: Any) -> None:
        self._readings = stored["readings"].to_numpy()
        self._names = list(map(str, stored["annotator"].to_numpy()))
        for name in OF_PEOPLE:
            setattr(self, f"{name}_", stored[name].to_numpy())

    @property
    def annotators_(self) -> "pd.DataFrame":
        """Return one row for each annotator.

        Raises
        ------
        MissingPackage
            If pandas is not installed (extra ``graphuq[tables]``).
        """
        check_is_fitted(self, "accuracy_")
        require_extra("tables")
        import pandas as pd

        columns: dict[str, Any] = {"annotator": self._names}
        columns["n_labels"] = (self._readings >= 0).sum(axis=0)
        columns |= {"accuracy": self.accuracy_, "lower": self.accuracy_interval_[:, 0]}
        return pd.DataFrame(columns | {"upper": self.accuracy_interval_[:, 1]})


def is_sampled_by_default(inference: Any) -> bool:
    """Return whether no setting of sampling is given that changes the answer."""
    return isinstance(inference, MCMC) and dataclasses.replace(inference, checkpoint=None) == MCMC()


def ring(n_rows: int) -> Graph:
    """Return a ring: `SAME_FIELD` on it is constant, so that rows are independent given it."""
    require(n_rows > 2, "y", f"{n_rows} rows", "give at least 3 rows")
    rows = np.arange(n_rows)
    edges = sparse.coo_array((np.ones(n_rows), (rows, (rows + 1) % n_rows)), (n_rows, n_rows))
    return from_adjacency(edges + edges.T)


def readings_of(y: Any, missing_label: object) -> tuple[np.ndarray, Int[np.ndarray, "N A"], list]:
    """Return the classes, the readings as codes (−1 for none), and the names of the annotators.

    Raises
    ------
    InvalidInput
        If ``y`` is no matrix with a column for each annotator, or its labels cannot be used.
    """
    y = plain_table(y, "y")
    named = is_frame(y) or is_polars(y)
    if named:
        names = [str(name) for name in y.columns]
        refuse_zero_bytes(names, "y")
        values = np.array([[*row] for row in y.to_numpy()], dtype=object)
    else:
        require(len(shape_of(y)) == 2, "y", f"shape {shape_of(y)}", REMEDY)
        values = np.array([[*row] for row in unmasked(y)], dtype=object)
        names = [str(a) for a in range(values.shape[-1])]
    flat, given = split_labels(values.ravel(), missing_label)
    classes, codes = np.unique(flat[given], return_inverse=True)
    check_classes(classes, missing_label)
    warn_of_class_names(flat, given)
    flat_readings = np.full(values.size, -1)
    flat_readings[given] = codes
    readings = flat_readings.reshape(values.shape)
    silent = np.flatnonzero((readings < 0).all(axis=0))
    require(
        len(silent) == 0,
        "y",
        f"annotator {names[silent[0]] if len(silent) else ''!r} has no label",
        "leave the column out",
    )
    return classes, readings, names


def _with_true_classes(result: Result, readings: Int[np.ndarray, "J A"]) -> Result:
    """Return the result with probabilities of the true class of each annotated row.

    Its soft labels become those of the annotators with their posterior mean confusion.
    """
    posterior, drawn = result.posterior, result.answer.hyperparameters
    likelihood: Any = posterior.likelihood
    n_classes, nodes = likelihood.n_classes, posterior.labelled
    classes = drawn[TRUE_CLASS]
    members = np.eye(n_classes)[classes]
    means, errors = members.mean(axis=(0, 1)), _batch_errors(members)
    probabilities, mcse = result.probabilities.copy(), result.mcse.copy()
    probabilities[nodes], mcse[nodes] = means, errors
    sampler = AnnotatorGibbs(readings=readings)
    table = Readings(readings, n_classes, sampler.right, sampler.wrong)
    confusion = drawn[CONFUSION].mean(axis=(0, 1)).reshape(-1, n_classes, n_classes)
    q = np.exp(table.log_weights(confusion))
    soft = SoftProbit(
        likelihood.noise_std, q / q.sum(axis=1, keepdims=True), likelihood.random_labels
    )
    changed = dataclasses.replace(posterior, likelihood=soft, labels=soft.most_probable)
    return dataclasses.replace(result, posterior=changed, probabilities=probabilities, mcse=mcse)


def _batch_errors(members: Float[np.ndarray, "C S J K"]) -> Float[np.ndarray, "J K"]:
    """Return Monte-Carlo errors of means, by means of batches of each chain."""
    n_chains, n_draws = members.shape[:2]
    n_each = max(1, min(N_BATCHES // n_chains, n_draws))
    batches = np.array_split(members, n_each, axis=1)
    means = np.concatenate([batch.mean(axis=1) for batch in batches])
    return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(len(means)))
