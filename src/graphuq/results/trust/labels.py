"""Checks that there are enough labels, and that they say something about the other nodes."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int
from scipy.special import gammaln, logsumexp

from graphuq.errors import IncompatibleParts
from graphuq.inference.draws import Draws
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.label_numbers import is_labelled
from graphuq.results.leaving_out import (
    class_log_probs,
    codes_of_classes,
    given_classes,
    own_values,
    thinned,
)
from graphuq.results.trust.base import Check, not_computed

if TYPE_CHECKING:
    from graphuq.results.result import Result

MIN_PER_CLASS = 2.0  # with one label of a class, none is left that could predict it
# A gain of two nats is a Bayes factor of 7.4. "Positive" evidence begins at a factor of 3 and
# "strong" evidence at 20 (Kass & Raftery 1995, §3.2); the evidence often chose hyperparameters,
# which by itself gains about half a nat for each.
MIN_GAIN = 2.0
# If labels follow the model, chance explains them 100 times better in at most one of 100 data sets
# (Markov's inequality for the ratio of the two probabilities).
MAX_LOSS = float(np.log(100.0))
# Mean certainty on a scale from 0 (all probabilities are 1/K) to 1. At 0.25 the mean probability of
# the best of two classes is 0.625: more than every third label is then expected to be wrong.
MIN_CERTAINTY = 0.25


def counts_of_classes(result: "Result") -> Int[np.ndarray, " K"]:
    """Return the number of given labels of each class."""
    counts: np.ndarray = np.bincount(given_classes(result.posterior), minlength=len(result.classes))
    return counts


def check_labels_per_class(result: "Result") -> Check:
    """Check that each class with labels has at least two.

    The only label of a class cannot be predicted from the others, so nothing can contradict it.
    """
    counts = counts_of_classes(result)
    smallest = int(counts[counts > 0].min())
    single = int((counts == 1).sum())
    if smallest >= MIN_PER_CLASS:
        sentence = f"Every labelled class has at least {smallest} labels."
        return Check(float(smallest), MIN_PER_CLASS, "green", sentence)
    classes = "class has" if single == 1 else "classes have"
    return Check(
        float(smallest),
        MIN_PER_CLASS,
        "amber",
        f"{single} {classes} only one label, which no other label can confirm; label at least "
        f"{MIN_PER_CLASS:g} nodes of each class, in your file or by add_labels(rows, classes).",
    )


def check_evidence(result: "Result") -> Check:
    """Check that the graph explains the given labels better than chance does.

    The log evidence ``log p(labels)`` is compared with that of a model without a graph, by
    `log_chance`. Without an estimate of the evidence, the sum of the log leave-one-out
    probabilities of the given labels takes its place. The check holds from 2 nats on, and is red
    where the evidence without a graph is 100 times larger.
    """
    try:
        explained = _log_probability_of_labels(result)
    except IncompatibleParts as error:
        return not_computed("Whether the graph explains the labels", error)
    gain = explained - log_chance(counts_of_classes(result))
    both = result.posterior.spectrum.blocks
    model = "model of graph and features" if both else "graph"
    if gain >= MIN_GAIN:
        sentence = f"The {model} explains the labels better than chance, by {gain:.1f} nats."
        return Check(gain, MIN_GAIN, "green", sentence)
    if gain <= -MAX_LOSS:
        return Check(
            gain,
            MIN_GAIN,
            "red",
            f"A model without {'graph and features' if both else 'the graph'} has the larger "
            f"evidence (by {-gain:.1f}). Check the labels by gq.suspect_labels(result), the "
            "features and the graph.",
        )
    return Check(
        gain,
        MIN_GAIN,
        "amber",
        f"The labels are too few to tell, or the {model} says little about them: their log "
        f"evidence exceeds that of chance by {gain:.1f}, and {MIN_GAIN:g} are needed. Add labels, "
        "in your file or by add_labels(rows, classes), or change the features or the graph "
        "(n_neighbors, metric).",
    )


def log_chance(counts: Int[np.ndarray, " K"]) -> float:
    """Return the log probability of the labels under a model without a graph.

    It is the larger of two: ``J log(1/K)``, and the probability with unknown class shares that are
    uniform on the simplex, ``log Γ(K) + Σ log Γ(n_k + 1) − log Γ(J + K)``.
    """
    n_labels, n_classes = int(counts.sum()), len(counts)
    shares = gammaln(n_classes) + gammaln(counts + 1).sum() - gammaln(n_labels + n_classes)
    return float(max(-n_labels * np.log(n_classes), shares))


def check_certainty(result: "Result") -> Check:
    """Check that the probabilities of unlabelled nodes differ from 1/K.

    The certainty is ``(mean of the largest probability − 1/K) / (1 − 1/K)``, over the unlabelled
    nodes whose component has a label.
    """
    free = ~is_labelled(result) & result.has_evidence
    if not free.any():
        return Check(1.0, MIN_CERTAINTY, "green", "No unlabelled node depends on the labels.")
    n_classes = len(result.classes)
    mean = float(result.probabilities[free].max(axis=1).mean())
    certainty = (mean - 1 / n_classes) / (1 - 1 / n_classes)
    numbers = f"the most probable class has probability {mean:.2f} on average"
    if certainty >= MIN_CERTAINTY:
        return Check(certainty, MIN_CERTAINTY, "green", f"At unlabelled nodes, {numbers}.")
    return Check(
        certainty,
        MIN_CERTAINTY,
        "amber",
        f"The labels decide little: at unlabelled nodes, {numbers}, near 1/K = "
        f"{1 / n_classes:.2f}. Add labels where the command graphuq query says, or "
        "gq.acquisition.query(result, 20).",
    )


def _log_probability_of_labels(result: "Result") -> float:
    """Return the log evidence, normalised over labels, or the leave-one-out score.

    Raises
    ------
    IncompatibleParts
        If there is neither.
    """
    constant = _log_normalizer(result)
    if result.log_evidence is not None and constant is not None:
        return float(result.log_evidence) - len(result.posterior.labels) * constant
    probabilities = kept_leave_one_out(result).of_label
    given = probabilities[np.arange(len(probabilities)), given_classes(result.posterior)]
    return float(np.log(np.maximum(given, np.finfo(float).tiny)).sum())


def _log_normalizer(result: "Result") -> float | None:
    """Return ``log Σ_y p(y | u)``, or None if it depends on u.

    A likelihood may leave out a constant. If the sum depends on u, as with Gaussian noise, it is
    not a distribution of class labels.
    """
    likelihood = result.posterior.likelihood.unshifted.of_component(0)
    if likelihood.uses_all_nodes or likelihood.has_soft_labels:
        return None
    values = {}
    if isinstance(result.answer, Draws):
        values = own_values(likelihood, thinned(result.answer, 1).first(1))
    elif likelihood.learnt:
        return None
    n_draws = len(next(iter(values.values()), [0]))
    fields = (likelihood.n_fields,) if likelihood.is_multiclass else ()
    u = np.random.default_rng(0).normal(size=(3, n_draws, *fields))
    codes = codes_of_classes(result.posterior)
    totals = logsumexp(class_log_probs(likelihood, u, codes, values), axis=0)
    return float(totals.flat[0]) if np.ptp(totals) < 1e-6 else None
