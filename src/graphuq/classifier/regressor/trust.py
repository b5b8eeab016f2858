"""Verdict on a regression: do intervals have the right width, does the graph explain numbers?"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import norm

from graphuq.evidence.regression import columns
from graphuq.results.trust.base import Check, Level, Trust
from graphuq.results.trust.chance import N_SIMULATED, bounds_of_error

if TYPE_CHECKING:
    from graphuq.classifier.regressor.regressor import GraphRegressor

COVERAGES = (0.5, 0.8, 0.9, 0.95)
MIN_NUMBERS = 21.0  # intervals from 20 hold 0.84 to 0.88, not 0.9; docs/measurements/regression.md
MAX_SIMULATED = 2000  # rows of known number, for the error that chance explains


class Predicted(NamedTuple):
    """Known numbers beside predictions that did not use them.

    Attributes
    ----------
    known, mean, std : numpy.ndarray, shape (n,)
        Numbers, and means and standard deviations of what was predicted, noise included.
    draws : numpy.ndarray, shape (S, m), optional
        Draws of ``(known − mean) / std`` at m of the numbers by the model; by default
        independent ones.
    """

    known: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    draws: Float[np.ndarray, "S m"] | None = None

    @property
    def error(self) -> float:
        """Root mean square error."""
        return float(np.sqrt(np.mean((self.known - self.mean) ** 2)))

    def holds(self, coverage: float) -> Bool[np.ndarray, " n"]:
        """Whether the interval of a given probability holds each number."""
        return np.abs(self.known - self.mean) <= norm.ppf((1 + coverage) / 2) * self.std

    def shares(self) -> Float[np.ndarray, " 4"]:
        """Share of numbers in intervals of each of `COVERAGES`."""
        return np.array([self.holds(coverage).mean() for coverage in COVERAGES])


def left_out(regressor: "GraphRegressor") -> Predicted:
    """Return each given number beside its leave-one-out prediction."""
    model = regressor.regression_
    return Predicted(
        regressor._location + regressor._spread * model.values, *regressor.leave_one_out()
    )


def held_out(
    regressor: "GraphRegressor", truth: Float[np.ndarray, " N"] | None
) -> Predicted | None:
    """Return the true numbers of rows without a given one, or None if none is known."""
    if truth is None:
        return None
    model = regressor.regression_
    rows = np.setdiff1d(np.flatnonzero(~np.isnan(truth)), model.labelled)
    if not len(rows):
        return None
    std = np.hypot(regressor.transduction_std_[rows], regressor.noise_std_)
    draws = _errors_of_field(regressor, rows)
    return Predicted(truth[rows], regressor.transduction_[rows], std, draws)


def _errors_of_field(
    regressor: "GraphRegressor", rows: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "S m"]:
    """Draw standardised errors at some rows by the model: those of neighbours are alike."""
    rng, model = np.random.default_rng(0), regressor.regression_
    rows = np.sort(rng.permutation(rows)[:MAX_SIMULATED])
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
            "graph": check_graph(others),
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
    draws = predicted.draws
    if draws is None:
        shape = (N_SIMULATED, len(predicted.known))
        draws = np.random.default_rng(0).normal(size=shape)
    half = norm.ppf((1 + nominal) / 2)
    shares = np.stack([(np.abs(draws) <= width).mean(axis=1) for width in half], axis=1)
    amber, red, why = bounds_of_error(np.abs(shares - nominal).max(axis=1), "numbers")
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


def check_graph(predicted: Predicted) -> Check:
    """Check that a number is predicted better by the graph than by the mean of the others."""
    n = len(predicted.known)
    by_mean = (predicted.known - predicted.known.mean()) * n / (n - 1)  # leave-one-out, too
    explained = 1 - predicted.error**2 / float(np.mean(by_mean**2))
    if explained > 0:
        sentence = f"Without its own number, a row's prediction explains {explained:.0%} of the "
        return Check(explained, 0.0, "green", f"{sentence}variance of the given numbers.")
    return Check(
        explained,
        0.0,
        "amber",
        "The graph predicts the given numbers no better than their mean. Add numbers, or change "
        "the features or the graph.",
    )


def _check_numbers(n_given: int) -> Check:
    sentence = f"{n_given:,} rows have a number."
    if n_given >= MIN_NUMBERS:
        return Check(float(n_given), MIN_NUMBERS, "green", sentence)
    return Check(
        float(n_given),
        MIN_NUMBERS,
        "amber",
        f"{n_given} numbers are few: the hyperparameters count as known, so that intervals are "
        f"somewhat too narrow. Give {MIN_NUMBERS:g} or more.",
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
        "their component of the graph, so that the mean of all numbers is predicted. Give one "
        "number in each component, or raise n_neighbors.",
    )
