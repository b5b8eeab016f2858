"""Classifier of rows that several annotators have labelled, each with errors of their own."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from graphuq.classifier.class_order import refuse_order
from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.labels import check_classes, shape_of, split_labels, unmasked
from graphuq.classifier.types import Labels, Table
from graphuq.errors import require
from graphuq.graphs.inputs import is_frame, is_polars
from graphuq.inference import MCMC, AnnotatorGibbs
from graphuq.inference.collapsed_gibbs.annotators import (
    ACCURACY,
    CONFUSION,
    TRUE_CLASS,
    Readings,
)
from graphuq.likelihoods import SoftProbit
from graphuq.results.label_numbers import with_classes
from graphuq.results.result import Result
from graphuq.run.words import inference_from
from graphuq.utils.checks import refuse_zero_bytes
from graphuq.utils.concurrency import one_at_a_time
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import pandas as pd

INTERVAL = (0.05, 0.95)  # of accuracies
N_BATCHES = 32  # of draws, over which Monte-Carlo errors of true classes are estimated
REMEDY = "give one row for each row of X, and one column for each annotator"


class AnnotatorClassifier(GraphClassifier):
    """`GraphClassifier` of labels by several annotators, whose errors are learnt.

    Each annotator has a confusion matrix: the probability of each label given the true class
    (Dawid & Skene 1979). The accuracy has a Beta prior with a mean of 4/5, and how alike those of
    the classes are is learnt. The graph is the prior of the true classes, in place of independent
    rows. True classes, confusion matrices and the field are sampled together; see
    `graphuq.inference.AnnotatorGibbs`.

    The parameters are those of `GraphClassifier`. The likelihood is a probit; hyperparameters
    "auto" are chosen by the evidence of the labels that annotators give together without the
    graph. At annotated rows, class probabilities are those of the true class of that row.

    Attributes
    ----------
    accuracy_ : numpy.ndarray, shape (A,)
        Posterior mean of the share of right labels of each annotator.
    accuracy_interval_ : numpy.ndarray, shape (A, 2)
        Ends of its 90 % interval.
    annotators_ : pandas.DataFrame
        Columns ``annotator``, ``n_labels``, ``accuracy``, ``lower`` and ``upper``.
    confusion_ : numpy.ndarray, shape (A, K, K)
        Posterior mean of the probability that annotator a says l where the class is k.

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
        X : array_like or sparse matrix, shape (N, d)
            As for `GraphClassifier.fit`.
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
        """
        require(sample_weight is None, "sample_weight", "given beside annotators", "leave it out")
        refuse_order(self.ordered, "beside annotators, whose classes have no order here")
        inference = inference_from(self.inference)
        require(
            isinstance(inference, MCMC) and inference.is_auto and not inference.on_first_result,
            "inference",
            f"{self.inference!r} beside annotators, who have a sampler of their own",
            "leave it out, or give MCMC with settings alone, such as MCMC(n_samples=500)",
        )
        classes, readings, names = readings_of(y, self.missing_label)
        rows = np.flatnonzero((readings >= 0).any(axis=1))
        self._readings = readings[rows]
        q = np.full((len(readings), len(classes)), np.nan)
        q[rows] = self._table(len(classes)).without_graph()
        super().fit(X, q)
        self.classes_ = classes
        self.result_ = with_classes(_with_true_classes(self.result_, self._readings), classes)
        self._describe()
        self._describe_annotators(names)
        return self

    def _table(self, n_classes: int) -> Readings:
        sampler = AnnotatorGibbs(readings=self._readings)
        return Readings(self._readings, n_classes, sampler.right, sampler.wrong)

    def _explore(self, posterior: Any, inference: Any, shares: Any = None, **more: Any) -> None:
        sampler = AnnotatorGibbs(readings=self._readings)
        super()._explore(posterior, inference.of_sampler(sampler), shares, **more)

    def _more_to_store(self) -> dict[str, Any]:
        axes = ("annotated_row", "annotator")
        return {"readings": (axes, self._readings), "annotator": (axes[1:], np.array(self._names))}

    def _take_stored(self, stored: Any) -> None:
        self._readings = stored["readings"].to_numpy()
        self._describe_annotators(list(map(str, stored["annotator"].to_numpy())))

    def _describe_annotators(self, names: list[str]) -> None:
        drawn, n_classes = self.result_.answer.hyperparameters, len(self.classes_)
        confusion = drawn[CONFUSION].mean(axis=(0, 1))
        self.confusion_ = confusion.reshape(len(names), n_classes, n_classes)
        draws = np.stack([drawn[ACCURACY.format(a)] for a in range(len(names))], axis=-1)
        self.accuracy_ = draws.mean(axis=(0, 1))
        self.accuracy_interval_ = np.quantile(draws, INTERVAL, axis=(0, 1)).T
        self._names = names

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

        columns = {"annotator": self._names, "n_labels": (self._readings >= 0).sum(axis=0)}
        columns |= {"accuracy": self.accuracy_, "lower": self.accuracy_interval_[:, 0]}
        return pd.DataFrame(columns | {"upper": self.accuracy_interval_[:, 1]})


def readings_of(y: Any, missing_label: object) -> tuple[np.ndarray, Int[np.ndarray, "N A"], list]:
    """Return the classes, the readings as codes (−1 for none), and the names of the annotators.

    Raises
    ------
    InvalidInput
        If ``y`` is no matrix with a column for each annotator, or its labels cannot be used.
    """
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
