"""From the posterior's class probabilities to those that are reported.

Three steps, each of which does nothing unless the model asks for it:

1. an average with experts from outside (`expert_answers`);
2. a power of the probabilities, normalised again (`sharpened`): an average over answers that are
   well calibrated is too cautious (Ranjan & Gneiting 2010);
3. class shares that the labels do not tell (`unknown_shares`).
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from graphuq.posterior.posterior import Posterior
from graphuq.results.expert_answers import expert_weights, weights_of, with_experts
from graphuq.results.leaving_out import leave_each_out
from graphuq.results.summaries import NodeSummaries, Rows
from graphuq.results.uncertainty import class_probabilities
from graphuq.results.unknown_shares import (
    changed_error,
    estimated_shares,
    multiplied,
    share_odds,
    with_shares,
)

if TYPE_CHECKING:
    from graphuq.results.result import Result

MAX_SHOWN = 10  # largest class shares that are shown


def reported_at_nodes(
    summaries: NodeSummaries, rows: Rows, posterior: Posterior, answer: Any
) -> NodeSummaries:
    """Return the summaries of all nodes with the probabilities that are reported."""
    if posterior.experts:
        weights = weights_of(posterior, leave_each_out(answer, posterior))
        summaries = with_experts(summaries, rows, posterior, weights)
    return with_shares(sharpened(summaries, posterior.sharpness), posterior)


def reported_at_rows(summaries: NodeSummaries, rows: Rows, result: "Result") -> NodeSummaries:
    """Return the summaries of rows outside the graph with the probabilities that are reported."""
    posterior, odds = result.posterior, share_odds(result)
    found = with_experts(summaries, rows, posterior, expert_weights(result))
    found = sharpened(found, posterior.sharpness)
    return found if odds is None else multiplied(found, odds)


def as_reported(p: Float[np.ndarray, "M K"], result: "Result") -> Float[np.ndarray, "M K"]:
    """Return class probabilities of the posterior as they would be reported, without experts."""
    odds = share_odds(result)
    own = powers(p, result.posterior.sharpness)
    return own if odds is None else own * odds / (own @ odds)[:, None]


def label_means_as_reported(
    label_mean: Float[np.ndarray, "M *K"], result: "Result"
) -> Float[np.ndarray, "M *K"]:
    """Return label means of the posterior as they would be reported, without experts."""
    p = as_reported(class_probabilities(label_mean), result)
    return p if label_mean.ndim == 2 else p[:, 1] - p[:, 0]


def sharpened(summaries: NodeSummaries, power: float) -> NodeSummaries:
    """Return summaries whose probabilities are those to a power, normalised again."""
    if power == 1.0:
        return summaries
    before = summaries.probabilities
    p = powers(before, power)
    return summaries.with_probabilities(p, changed_error(summaries.mcse, before, p, power))


def powers(p: Float[np.ndarray, "B K"], power: float) -> Float[np.ndarray, "B K"]:
    """Return probabilities to a power, normalised again."""
    largest = p.max(axis=1, keepdims=True)
    found = (p / np.where(largest > 0, largest, 1.0)) ** power
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def lines_on(result: "Result") -> list[str]:
    """Return a line on the weights of experts, and one on estimated class shares, if any."""
    lines, shares = [], estimated_shares(result)
    if result.posterior.experts:
        weights = expert_weights(result).items()
        lines.append("Weights: " + ", ".join(f"{name} {w:.2f}" for name, w in weights) + ".")
    if shares is not None:
        order = np.argsort(-shares, kind="stable")[:MAX_SHOWN]
        shown = ", ".join(f"{result.classes[k]} {shares[k]:.2f}" for k in order)
        more = ", …" if len(shares) > MAX_SHOWN else ""
        lines.append(f"Class shares, estimated from the unlabelled nodes: {shown}{more}.")
    return lines
