"""Check that the answer does not hang on class shares, of which the labels tell nothing.

Numbers of labels that someone chose for each class are no evidence about class shares. With few
labels of two classes an average takes the shares for unknown (docs/theory/class_shares.md, "Labels
chosen class by class"). Else unlabelled nodes tell them, as far as the fit tells classes apart
(`graphuq.results.unknown_shares`). Nodes that would change if one class were twice as common show
what hangs on them.
"""

from typing import TYPE_CHECKING

import numpy as np

from graphuq.results.label_numbers import is_labelled
from graphuq.results.trust.base import Check

if TYPE_CHECKING:
    from graphuq.results.result import Result

FACTOR = 2.0  # by which the odds of a class are multiplied
# Of 141 draws of 2 to 20 labels a class of 28 data sets with more than two classes, those below the
# bound had an accuracy of 0.93, the others of 0.54 (docs/trust.md).
MAX_CHANGED = 0.1


def check_class_shares(result: "Result") -> Check:
    """Check that few unlabelled nodes would have another class if one class were twice as common.

    It is green for labels drawn at random, for two classes, and with known shares
    (``class_proportions``).
    """
    posterior = result.posterior
    if not posterior.likelihood.has_codes or posterior.label_design != "by-class":
        sentence = "Class shares are given, or learnt, or labels count as drawn at random."
        return Check(0.0, MAX_CHANGED, "green", sentence)
    p = result.probabilities[~is_labelled(result) & result.has_evidence]
    if not len(p):
        return Check(0.0, MAX_CHANGED, "green", "No unlabelled node depends on the labels.")
    of_class = np.bincount(p.argmax(axis=1), minlength=p.shape[1]) / len(p)
    changed = (FACTOR * p > p.max(axis=1, keepdims=True)).mean(axis=0) - of_class
    k = int(changed.argmax())
    share, name = float(changed[k]), result.classes[k]
    numbers = f"if class {name} were twice as common, {share:.0%} of unlabelled nodes would change"
    if share <= MAX_CHANGED:
        sentence = f"Class shares are unknown and matter little: {numbers}."
        return Check(share, MAX_CHANGED, "green", sentence)
    return Check(
        share,
        MAX_CHANGED,
        "amber",
        "The labels tell nothing of class shares, since someone chose how many each class has; "
        f"estimates from the unlabelled nodes are rough, and shares matter: {numbers}. Give "
        "class_proportions if you know them, or add labels of random nodes.",
    )
