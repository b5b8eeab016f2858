"""Scores of class probabilities and their summaries, for `bench_corpus.py`.

This module is not a benchmark.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

import graphuq as gq
from graphuq.results.class_sets import posterior_sets

FLOOR = 1e-5  # smallest probability of any method, so that one error costs at most 11.5 nats
N_BINS = 15  # bins of confidence for the calibration error
COVERAGE = 0.9  # nominal coverage of the prediction sets
LEVEL = 0.005  # a smaller mean difference of a score counts as level


def floored(probability):
    """Return probabilities of at least about `FLOOR` that sum to one; NaN becomes uniform."""
    probability = np.asarray(probability, dtype=float)
    bad = ~np.isfinite(probability).all(axis=1) | (probability.sum(axis=1) <= 0)
    probability = np.where(bad[:, None], 1.0, np.clip(probability, 0, None))
    probability = probability / probability.sum(axis=1, keepdims=True)
    probability = np.maximum(probability, FLOOR)
    return probability / probability.sum(axis=1, keepdims=True)


def certainty_auc(probability, codes):
    """Return the probability that a right answer is more certain than a wrong one, ties one half.

    This is the area under the ROC curve of the largest probability; NaN if all answers are right
    or all are wrong.
    """
    right = probability.argmax(axis=1) == codes
    if right.all() or not right.any():
        return float("nan")
    return float(roc_auc_score(right, probability.max(axis=1)))


def evaluate(probability, codes, labelled):
    """Return all scores of the unlabelled rows, with the reliability curve for `pooled_curve`."""
    rows = np.setdiff1d(np.arange(len(codes)), labelled)
    probability, codes = floored(probability)[rows], codes[rows]
    sets = posterior_sets(probability, COVERAGE)
    curve = gq.scores.reliability_curve(probability, codes, n_bins=N_BINS)
    return {
        "accuracy": gq.scores.accuracy(probability, codes),
        "log": gq.scores.log_score(probability, codes, floor=0.0),
        "brier": gq.scores.brier_score(probability, codes),
        "ece": curve.expected_calibration_error,
        "coverage": float(sets[np.arange(len(codes)), codes].mean()),
        "set size": float(sets.sum(axis=1).mean()),
        "auc": certainty_auc(probability, codes),
        "classes": probability.shape[1],
        "curve": [curve.confidence.tolist(), curve.accuracy.tolist(), curve.count.tolist()],
    }


def pooled_curve(rows):
    """Return the reliability curve of all draws of one set together."""
    n_classes = rows[0]["classes"]
    confidence, accuracy, count = np.concatenate([np.array(row["curve"]) for row in rows], axis=1)
    share = (n_classes * confidence - 1) / (n_classes - 1)
    bins = np.clip((share * N_BINS + 1e-9).astype(int), 0, N_BINS - 1)
    total = np.bincount(bins, count, N_BINS)
    filled = total > 0
    return gq.scores.ReliabilityCurve(
        np.bincount(bins, count * confidence, N_BINS)[filled] / total[filled],
        np.bincount(bins, count * accuracy, N_BINS)[filled] / total[filled],
        total[filled],
    )


def compare(ours, theirs, larger_is_better=False):
    """Return 1 if ours is ahead of theirs on the same draws, 0 if level, −1 if behind.

    Level means that the mean difference is at most `LEVEL` or two standard errors of its own.
    """
    difference = np.asarray(ours) - np.asarray(theirs)
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
    mean = difference.mean() if larger_is_better else -difference.mean()
    return 0 if abs(mean) <= max(LEVEL, 2 * error) else int(np.sign(mean))
