"""Check of calibration, for results whose true labels are known."""

import numpy as np
from jaxtyping import Float

from graphuq import scores
from graphuq.results.trust.base import Check, Level, Trust
from graphuq.results.trust.chance import N_SIMULATED, bounds_of_error


def with_calibration(
    trust: Trust, scored: tuple[np.ndarray, np.ndarray] | None, n_bins: int = 10
) -> Trust:
    """Return the verdict with a check of calibration, if true labels are known.

    Parameters
    ----------
    trust : Trust
    scored : tuple of numpy.ndarray, or None
        Label means and true labels of unlabelled nodes; see `graphuq.scores.where_known`.
    n_bins : int, default 10
        Number of bins of the expected calibration error.
    """
    if scored is None:
        return trust
    return Trust({**trust.checks, "calibration": check_calibration(*scored, n_bins=n_bins)})


def check_calibration(label_mean: np.ndarray, truth: np.ndarray, *, n_bins: int = 10) -> Check:
    """Check that the expected calibration error is small, or no larger than chance explains.

    The bound is 0.05, and red begins at 0.15. Either is raised to the 99 % quantile of the error
    of calibrated probabilities at as many nodes, so that ten nodes cannot condemn a result.
    """
    curve = scores.reliability_curve(label_mean, truth, n_bins=n_bins)
    error = curve.expected_calibration_error
    amber, red, why = bounds_of_error(_errors_by_chance(curve), "nodes")
    found = (
        f"At {int(curve.count.sum())} unlabelled nodes of known class, probabilities are off by "
        f"{error:.3f} on average (expected calibration error; the bound is {amber:.3g}{why})"
    )
    if error <= amber:
        return Check(error, amber, "green", f"{found}.")
    too = "sure" if float(curve.count @ (curve.confidence - curve.accuracy)) > 0 else "cautious"
    level: Level = "amber" if error <= red else "red"
    sentence = (
        f"{found}. They are too {too}: rank nodes by them, and do not rely on their values until "
        "more labels are added, in your file or by add_labels(rows, classes)."
    )
    return Check(error, amber, level, sentence)


def _errors_by_chance(curve: scores.ReliabilityCurve) -> Float[np.ndarray, " S"]:
    """Draw the error if labels in each bin are right as often as its confidence says."""
    rng = np.random.default_rng(0)
    share = np.clip(curve.confidence, 0, 1)
    right: Float[np.ndarray, "S B"] = (
        rng.binomial(curve.count, share, (N_SIMULATED, len(share))) / curve.count
    )
    return np.asarray(np.abs(right - share) @ (curve.count / curve.count.sum()))
