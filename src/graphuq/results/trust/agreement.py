"""Check that graph and labels agree: leave-one-out probabilities of the given labels."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr

from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import ExpectationPropagation
from graphuq.inference.model_average import EachComponent
from graphuq.inference.settings import RunSettings
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.leaving_out import MAX_SHAPE, LeaveOneOut, given_classes, leave_each_out
from graphuq.results.sampling import draws as draws_of
from graphuq.results.trust.base import Check, not_computed
from graphuq.results.trust.labels import counts_of_classes
from graphuq.results.trust.second_fit import with_median_draw

if TYPE_CHECKING:
    from graphuq.results.result import Result

# Probability of a false alarm of a true model; the usual level of a warning that asks for action.
MIN_P_VALUE = 0.01
MIN_LABELS = 4  # two labels of each of two classes, so that each has a companion
MANY_UNRELIABLE = 0.1  # share of unreliable importance weights from which the check says nothing
MAX_SURPLUS = 0.1  # nats a label, a tenth of its odds, up to which a disagreement is no red one
SIMULATIONS = 4_000  # the standard error of a p-value of 0.01 is then 0.0016
MAX_COORDINATES = 6_000  # labels × fields; expectation propagation then takes some two seconds
MANY_LABELS = 1_000  # above it, the central limit theorem replaces simulation
QUESTION = "Whether graph and labels agree"


def check_agreement(result: "Result") -> Check:
    """Check that given labels are as probable, given all other labels, as the model expects.

    The statistic is ``Σ_j log p(y_j | y_−j)``. Its p-value is the probability of a smaller value if
    labels follow these distributions. Labels that are the only one of their class are left out,
    because no other label could predict them. With very many labels a small disagreement is sure:
    below 0.1 nats a label it is amber.

    The distributions of the labels, those of `graphuq.results.leave_one_out`, are treated as
    independent. If the importance weights of many draws are unreliable, those of expectation
    propagation take their place. For more than two classes, these find fewer contradictions.
    """
    try:
        found = kept_leave_one_out(result)
    except IncompatibleParts as error:
        return not_computed(QUESTION, error)
    if (found.pareto_shape > MAX_SHAPE).mean() > MANY_UNRELIABLE:
        found = _of_gaussian(result) or found
    given = given_classes(result.posterior)
    kept = counts_of_classes(result)[given] > 1
    if kept.sum() < MIN_LABELS:
        return not_computed(
            QUESTION,
            f"only {kept.sum()} labels have another label of their class, and {MIN_LABELS} are "
            "needed; add labels in your file, or by add_labels(rows, classes)",
        )
    unreliable = float((found.pareto_shape[kept] > MAX_SHAPE).mean())
    if unreliable > MANY_UNRELIABLE:
        return not_computed(
            QUESTION,
            f"the importance weights of {unreliable:.0%} of the labels are unreliable; use a "
            "larger noise_std or ExpectationPropagation()",
        )
    probabilities, given = found.of_label[kept], given[kept]
    p_value = p_value_of(probabilities, given)
    wrong = int((probabilities.argmax(axis=1) != given).sum())
    expected = float((1 - probabilities.max(axis=1)).sum())
    numbers = (
        f"left out one at a time, {wrong} of {len(given)} labels are predicted wrongly, and "
        f"{expected:.1f} are expected (p-value {p_value:.2g})"
    )
    model = "Model" if result.posterior.spectrum.blocks else "Graph"
    if p_value >= MIN_P_VALUE:
        return Check(p_value, MIN_P_VALUE, "green", f"{model} and labels agree: {numbers}.")
    surplus = surplus_of(probabilities, given)
    if surplus <= MAX_SURPLUS:
        return Check(
            p_value,
            MIN_P_VALUE,
            "amber",
            f"{model} and labels nearly agree: {numbers}; the mean log probability of a label is "
            f"{surplus:.2f} below the expected one. Check the least probable labels by "
            "gq.suspect_labels(result).",
        )
    return Check(
        p_value,
        MIN_P_VALUE,
        "red",
        f"{model} and labels disagree: {numbers}. Check the labels by "
        "gq.suspect_labels(result), the features and the graph.",
    )


def _of_gaussian(result: "Result") -> LeaveOneOut | None:
    """Return leave-one-out probabilities of a Gaussian in place of draws, or None.

    It is the reference of the draws if there is one, and otherwise expectation propagation, of each
    component of a mixture. Other learnt hyperparameters have the values of the draw with the median
    log likelihood.
    """
    posterior, draws = result.posterior, draws_of(result)
    if draws.reference is not None and not posterior.learnt:
        return leave_each_out(draws.reference, posterior)
    if len(posterior.labels) * posterior.n_fields > MAX_COORDINATES or posterior.per_class:
        return None
    if posterior.is_weighted:
        try:
            each = EachComponent(ExpectationPropagation()).run(posterior, RunSettings())
            return leave_each_out(each, posterior)
        except (IncompatibleParts, InvalidInput):
            return None
    try:
        plain = with_median_draw(result)
        if plain is None:
            return None
        return leave_each_out(ExpectationPropagation().fit(plain.plain_target), plain)
    except (IncompatibleParts, InvalidInput):
        return None


def surplus_of(probabilities: Float[np.ndarray, "J K"], given: Int[np.ndarray, " J"]) -> float:
    """Return by how much ``−log p`` of a given label is above its expectation, on average."""
    logs = np.log(np.maximum(probabilities, np.finfo(float).tiny))
    own = logs[np.arange(len(given)), given]
    return float(((probabilities * logs).sum(axis=1) - own).mean())


def p_value_of(probabilities: Float[np.ndarray, "J K"], given: Int[np.ndarray, " J"]) -> float:
    """Return the probability of a log score at most that of the given labels.

    Parameters
    ----------
    probabilities : numpy.ndarray, shape (J, K)
        Distribution of each label under the model.
    given : numpy.ndarray of int, shape (J,)
        Class of each label.
    """
    logs = np.log(np.maximum(probabilities, np.finfo(float).tiny))
    n_labels = len(given)
    observed = logs[np.arange(n_labels), given].sum()
    if n_labels > MANY_LABELS:
        mean = (probabilities * logs).sum(axis=1)
        variance = (probabilities * logs**2).sum(axis=1) - mean**2
        total = max(float(variance.sum()), np.finfo(float).tiny)
        return float(ndtr((observed - mean.sum()) / np.sqrt(total)))
    rng = np.random.default_rng(0)
    simulated = np.zeros(SIMULATIONS)
    for row, log in zip(probabilities, logs, strict=True):
        bounds = np.cumsum(row / row.sum())[:-1]
        simulated += log[np.searchsorted(bounds, rng.random(SIMULATIONS))]
    # The observed value counts as one simulation, so that no p-value is 0.
    as_small = (simulated <= observed + 1e-9 * n_labels).sum()
    return float((1 + as_small) / (1 + SIMULATIONS))
