"""Verdict on a regression: do intervals have the right width, does the graph explain numbers?"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.classifier.regressor.rows import predictive_of_fit
from graphuq.evidence.regression import columns
from graphuq.models.predictive import Predictive
from graphuq.results.trust.base import Check, Level, Trust
from graphuq.results.trust.chance import N_SIMULATED, bounds_of_error

if TYPE_CHECKING:
    from graphuq.classifier.regressor.regressor import GraphRegressor

COVERAGES = (0.5, 0.8, 0.9, 0.95)
MIN_NUMBERS = 21.0  # of up to 20, one draw in ten has short intervals; see `_check_numbers`
MAX_SIMULATED = 2000  # rows of known number, for the error that chance explains


class Predicted(NamedTuple):
    """Known numbers beside predictions that did not use them.

    Attributes
    ----------
    known : numpy.ndarray, shape (n,)
    predictive : Predictive
        Distributions of what was predicted, noise included.
    draws : numpy.ndarray, shape (S, n), optional
        Draws by the model of fields with noise, in deviations from their means; by default
        independent ones.
    """

    known: Float[np.ndarray, " n"]
    predictive: Predictive
    draws: Float[np.ndarray, "S n"] | None = None

    @property
    def error(self) -> float:
        """Root mean square error."""
        return float(np.sqrt(np.mean((self.known - self.predictive.mean) ** 2)))

    def holds(self, coverage: float) -> Bool[np.ndarray, " n"]:
        """Whether the interval of a given probability holds each number."""
        low, high = self.predictive.interval(coverage).T
        return (low <= self.known) & (self.known <= high)

    def shares(self) -> Float[np.ndarray, " 4"]:
        """Share of numbers in intervals of each of `COVERAGES`; see `Predictive.inside`."""
        return np.array([self.predictive.inside(self.known, p).mean() for p in COVERAGES])

    def shares_by_chance(self) -> Float[np.ndarray, "S 4"]:
        """Return the same of numbers that the model simulates."""
        rng, draws = np.random.default_rng(0), self.draws
        if draws is None:
            draws = rng.normal(size=(N_SIMULATED, len(self.known)))
        rows = slice(None, draws.shape[1])
        simulated = self.predictive.at(rows).simulated(draws, rng)
        found = [self.predictive.at(rows).inside(simulated, p).mean(axis=1) for p in COVERAGES]
        return np.stack(found, axis=1)


def left_out(regressor: "GraphRegressor") -> Predicted:
    """Return each given number beside its leave-one-out prediction."""
    posterior = regressor.posterior_
    return Predicted(posterior.given, posterior.left_out)


def held_out(
    regressor: "GraphRegressor", truth: Float[np.ndarray, " N"] | None
) -> Predicted | None:
    """Return the true numbers of rows without a given one, or None if none is known."""
    if truth is None:
        return None
    regressor.posterior_.model.check(truth, "truth")
    rows = np.setdiff1d(np.flatnonzero(~np.isnan(truth)), regressor.posterior_.engine.labelled)
    if not len(rows):
        return None
    if len(rows) > MAX_SIMULATED:  # the first ones are simulated
        rows = np.random.default_rng(0).permutation(rows)
    predictive = predictive_of_fit(regressor, "measurement").at(rows)
    return Predicted(truth[rows], predictive, _errors_of_field(regressor, rows[:MAX_SIMULATED]))


def _errors_of_field(
    regressor: "GraphRegressor", rows: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "S n"]:
    """Draw standardised errors at some rows by the model: those of neighbours are alike."""
    rng, model = np.random.default_rng(0), regressor.posterior_.engine
    scale = model.spectrum.node_scale[rows]
    phi = columns(np.asarray(model.spectrum.basis[rows]), scale)
    values, vectors = np.linalg.eigh(model.coefficients[1])
    root = phi @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    own = (model.std.tail * scale) ** 2 + model.noise_std**2  # of each row alone
    draws = rng.normal(size=(N_SIMULATED, root.shape[1])) @ root.T
    draws += rng.normal(size=draws.shape) * np.sqrt(own)
    return draws / np.sqrt((root**2).sum(axis=1) + own)


def trust_of(regressor: "GraphRegressor", truth: Float[np.ndarray, " N"] | None = None) -> Trust:
    """Return the verdict on a fitted regressor, from four checks.

    Parameters
    ----------
    regressor : "GraphRegressor"
    truth : numpy.ndarray, shape (N,), optional
        True numbers, NaN where unknown. Those of rows without a given number take the place of the
        leave-one-out predictions in the check of the intervals.
    """
    others, true = left_out(regressor), held_out(regressor, truth)
    words = "given numbers, each predicted from the others,"
    if true is not None:
        words = "rows of known number"
    return Trust(
        {
            "numbers": _check_numbers(len(others.known)),
            "graph": check_graph(regressor.posterior_.explained, regressor.posterior_.measure),
            "intervals": check_intervals(others if true is None else true, words),
            "components": _check_components(regressor),
        }
    )


def check_intervals(predicted: Predicted, words: str) -> Check:
    """Check that intervals hold as many numbers as they should, or as many as chance explains.

    The largest difference over four probabilities may be 0.05, and red begins at 0.15. Either is
    raised to the 99 % quantile of the difference that the model itself has by chance.
    """
    nominal = np.array(COVERAGES)
    found = predicted.shares()
    off = np.abs(found - nominal)
    worst = int(off.argmax())
    error = float(off[worst])
    off_by_chance = np.abs(predicted.shares_by_chance() - nominal).max(axis=1)
    amber, red, why = bounds_of_error(off_by_chance, "numbers")
    sentence = (
        f"At {len(predicted.known):,} {words} intervals of {COVERAGES[worst]:.0%} hold "
        f"{found[worst]:.0%} (off by {error:.3f}; the bound is {amber:.3g}{why})."
    )
    if error <= amber:
        return Check(error, amber, "green", sentence)
    narrow = found[worst] < COVERAGES[worst]
    level: Level = "amber" if error <= red else "red"
    remedy = f"They are too {'narrow' if narrow else 'wide'}: do not rely on their width."
    return Check(error, amber, level, f"{sentence} {remedy}")


def check_graph(explained: float, measure: str) -> Check:
    """Check that a number is predicted better by the graph than by the mean of the others."""
    if explained > 0:
        sentence = f"Without its own number, a row's prediction explains {explained:.0%} of the "
        return Check(explained, 0.0, "green", f"{sentence}{measure} of the given numbers.")
    return Check(
        explained,
        0.0,
        "amber",
        "The graph predicts the given numbers no better than their mean. Add numbers, or change "
        "the features or the graph.",
    )


def _check_numbers(n_given: int) -> Check:
    """Check that there are more than 20 numbers.

    On 29 tables 90 % intervals hold less than 0.8 of the other numbers in 15 % of draws of 10
    numbers, 10 % of 20, 4 % of 40 and 1 % of 100, and leave-one-out shares do not say in which; see
    docs/measurements/few_numbers.md.
    """
    sentence = f"{n_given:,} rows have a number."
    if n_given >= MIN_NUMBERS:
        return Check(float(n_given), MIN_NUMBERS, "green", sentence)
    return Check(
        float(n_given),
        MIN_NUMBERS,
        "amber",
        f"{n_given} numbers are few: in one draw of ten, intervals of 90% hold less than 80% of "
        f"the others. Give {MIN_NUMBERS:g} or more.",
    )


def _check_components(regressor: "GraphRegressor") -> Check:
    missing = int((~regressor.has_evidence_).sum())
    share = missing / len(regressor.has_evidence_)
    if not missing:
        return Check(share, 0.0, "green", "Every component of the graph has a number.")
    return Check(
        share,
        0.0,
        "amber",
        f"{missing:,} of {len(regressor.has_evidence_):,} rows ({share:.1%}) have no number in "
        "their component of the graph, so that the graph says nothing of them. Give one number in "
        "each component, or raise n_neighbors.",
    )
