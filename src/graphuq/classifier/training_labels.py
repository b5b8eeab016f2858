"""Labels of a fit as posteriors take them: certain ones, or a distribution for each row."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from graphuq.classifier.labels import (
    check_classes,
    is_matrix,
    split_labels,
    warn_of_placeholder,
    weights_of_rows,
)
from graphuq.classifier.options import is_word, likelihood_of, method_of
from graphuq.classifier.types import Labels
from graphuq.errors import InvalidInput, require
from graphuq.graphs.inputs import is_frame, is_polars
from graphuq.inference import ModelAverage
from graphuq.likelihoods import Likelihood, Probit, SoftProbit
from graphuq.posterior.given_labels import check_weights

SUM_TOLERANCE = 1e-3  # of a row of probabilities, which is then divided by its sum
START_NOISE = 0.5  # of the search by evidence; sites of soft labels rarely converge at 0.1
REMEDY = "give one row for each row of X, and one column for each class"


class TrainingLabels(NamedTuple):
    """Classes, labelled rows, and what is known of each.

    Attributes
    ----------
    classes : numpy.ndarray, shape (K,)
    labelled : numpy.ndarray of int, shape (J,)
        Rows with a label.
    codes : numpy.ndarray of int, shape (J,)
        Class of each, as an index of ``classes``; of a soft label the most probable one.
    weights : numpy.ndarray, shape (J,)
    likelihood : Likelihood
    is_soft : bool
    """

    classes: np.ndarray
    labelled: Int[np.ndarray, " J"]
    codes: Int[np.ndarray, " J"]
    weights: Float[np.ndarray, " J"]
    likelihood: Likelihood
    is_soft: bool = False

    @property
    def values(self) -> Int[np.ndarray, " J"]:
        """Labels as the likelihood takes them: ±1, or codes."""
        return self.codes if self.likelihood.is_multiclass else 2 * self.codes - 1


def training_labels(
    classifier: Any, y: Labels, n_rows: int, sample_weight: ArrayLike | None
) -> TrainingLabels:
    """Return the labels of a fit, after all checks.

    Parameters
    ----------
    classifier : GraphClassifier
        Its parameters decide the likelihood.
    y : array_like, shape (N,) or (N, K)
        Classes, or probabilities of classes.
    n_rows : int
        N.
    sample_weight : array_like, shape (N,), optional

    Raises
    ------
    InvalidInput
        If labels or weights cannot be used.
    IncompatibleParts
        If labels have weights and the likelihood takes none.
    """
    weights = weights_of_rows(sample_weight, n_rows)
    if is_matrix(y):
        return _soft_labels(classifier, y, n_rows, weights)
    values, given = split_labels(y, classifier.missing_label)
    require(len(values) == n_rows, "y", f"{len(values)} values", f"X has {n_rows} rows")
    given &= weights > 0
    require(given.any(), "sample_weight", "zero at every label", "give weights > 0")
    check_classification_targets(values[given])
    classes, codes = np.unique(values[given], return_inverse=True)
    check_classes(classes, classifier.missing_label)
    warn_of_placeholder(values, given)
    likelihood = likelihood_of(classifier.likelihood, len(classes))
    check_weights(weights[given], len(codes), likelihood)
    return TrainingLabels(classes, np.flatnonzero(given), codes, weights[given], likelihood)


def _soft_labels(
    classifier: Any, y: Any, n_rows: int, weights: Float[np.ndarray, " N"]
) -> TrainingLabels:
    """Return soft labels; rows of NaN or zeros are unlabelled.

    If all rows are certain and each class has one, they are labels: the likelihood is the same,
    and all that serves labels serves them, such as the average over models.
    """
    named = is_frame(y) or is_polars(y)
    try:
        q = np.array(y.to_numpy() if named else y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("y", "two columns or more that are not numbers", REMEDY) from None
    classes = np.array([str(name) for name in y.columns] if named else range(q.shape[1]))
    require(q.shape[0] == n_rows, "y", f"{q.shape[0]} rows", f"X has {n_rows} rows")
    given = ~(np.isnan(q).all(axis=1) | (q == 0).all(axis=1)) & (weights > 0)
    require(
        given.any(),
        "y",
        f"shape {q.shape} without a row of probabilities",
        "give one label a row, or a probability of each class",
    )
    total = np.where(given, q.sum(axis=1), 1.0)
    wrong = np.flatnonzero(given & ~((q >= 0).all(axis=1) & (np.abs(total - 1) <= SUM_TOLERANCE)))
    row = int(wrong[0]) if len(wrong) else 0
    require(
        len(wrong) == 0,
        "y",
        f"{q[row].tolist()} in row {row}, which are no probabilities",
        "give numbers >= 0 that sum to 1, or NaN or 0 in all columns of an unlabelled row",
    )
    rows = np.flatnonzero(given)
    q = q[rows] / total[rows, None]
    codes = q.argmax(axis=1)
    if ((q == 0) | (q == 1)).all() and len(np.unique(codes)) == len(classes):
        hard = likelihood_of(classifier.likelihood, len(classes))
        check_weights(weights[rows], len(codes), hard)
        return TrainingLabels(classes, rows, codes, weights[rows], hard)
    _refuse_parameters(classifier)
    likelihood = _soft_likelihood(classifier.likelihood, q)
    return TrainingLabels(classes, rows, codes, weights[rows], likelihood, is_soft=True)


def _refuse_parameters(classifier: Any) -> None:
    """Refuse parameters that have no meaning beside soft labels."""
    for name in ("max_classes", "class_proportions"):
        value = getattr(classifier, name)
        require(value is None, name, f"{value!r} beside soft labels", "leave it out")
    require(
        not isinstance(method_of(classifier.inference), ModelAverage),
        "inference",
        f"{classifier.inference!r} beside soft labels",
        "leave it out: hyperparameters are chosen by the evidence of the soft labels",
    )


def _soft_likelihood(likelihood: Any, q: Float[np.ndarray, "J K"]) -> SoftProbit:
    """Return the probit of soft labels that stands for a word or a `Probit`."""
    if is_word(likelihood, "auto"):
        return SoftProbit(START_NOISE, q, random_labels=True)
    found = likelihood_of(likelihood, q.shape[1])
    require(
        isinstance(found, Probit),
        "likelihood",
        f"{found} beside soft labels",
        "use 'auto' or a Probit: the noise of other likelihoods has no such mixture here",
    )
    return SoftProbit(found.noise_std, q, found.random_labels)
