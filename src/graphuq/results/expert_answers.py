"""Experts from outside: their class probabilities, averaged with those of the posterior.

The weight of each is its probability of the given labels, each without the others' help of that
label itself:

    w_m ∝ ∏_j p_m(y_j | y_−j),

of the posterior by `leave_one_out`, of an expert by cross-validation. So the posterior is one more
member of an average, and all members are equally probable beforehand (pseudo-BMA; Geisser & Eddy
1979; Yao, Vehtari, Simpson & Gelman 2018). Labels that are the only one of their class say nothing.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from graphuq.errors import IncompatibleParts
from graphuq.posterior.posterior import Posterior
from graphuq.results.caching import kept
from graphuq.results.leaving_out import LeaveOneOut, given_classes, leave_each_out
from graphuq.results.summaries import NodeSummaries, Rows

if TYPE_CHECKING:
    from graphuq.results.result import Result

SMALLEST = 1e-6  # probability of a given label, so that one error excludes nobody for ever
TINY = 1e-300  # in place of a sum of probabilities that is 0
POSTERIOR = "graphuq"  # name of the posterior among the experts


@kept
def expert_weights(result: "Result") -> dict[str, float]:
    """Return the weight of the posterior, "graphuq", and of each expert, by name.

    They are those with which `Result.probabilities` average over the posterior and the experts of
    `graphuq.models.Pooled`. Without experts the posterior has the weight 1.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> model = gq.models.Pooled([KNeighborsClassifier(3)])
    >>> classifier = gq.GraphClassifier(model=model, inference="expectation-propagation")
    >>> sorted(gq.results.expert_weights(classifier.fit(moons.features, y).result_))
    ['KNeighborsClassifier', 'graphuq']
    """
    own = _without_experts(result) if result.posterior.experts else None
    return weights_of(result.posterior, own)


def with_experts(
    summaries: NodeSummaries, rows: Rows, posterior: Posterior, weights: Mapping[str, float]
) -> NodeSummaries:
    """Return summaries whose probabilities are averages over the posterior and the experts.

    Parameters
    ----------
    summaries : NodeSummaries
        Those of the posterior.
    rows : Rows
        Their rows of the basis, which holds the experts' probabilities.
    posterior : Posterior
    weights : dict
        See `expert_weights`.
    """
    if not posterior.experts:
        return summaries
    label = weights[POSTERIOR] * summaries.label_mean
    for expert in posterior.experts:
        label += weights[expert.name] * _label_mean(_at_rows(expert.name, rows, posterior))
    error = weights[POSTERIOR] * summaries.label_mcse
    return NodeSummaries(label, error, summaries.latent_mean, summaries.latent_std)


@kept
def _without_experts(result: "Result") -> LeaveOneOut:
    """Return leave-one-out probabilities of the posterior alone."""
    return leave_each_out(result.answer, result.posterior)


def pooled_leave_one_out(result: "Result") -> LeaveOneOut:
    """Return leave-one-out probabilities of the average over the posterior and the experts."""
    posterior, own = result.posterior, _without_experts(result)
    if not posterior.experts:
        return own
    weights = expert_weights(result)
    of_label, of_class = (weights[POSTERIOR] * part for part in own[:2])
    for expert in posterior.experts:
        of_label += weights[expert.name] * expert.withheld
        of_class += weights[expert.name] * expert.withheld
    return LeaveOneOut(of_label, of_class, own.pareto_shape)


def weights_of(posterior: Posterior, own: LeaveOneOut | None) -> dict[str, float]:
    """Return the weights by name; ``own`` are the posterior's leave-one-out probabilities.

    Raises
    ------
    IncompatibleParts
        If no class has two labels.
    """
    if own is None:
        return {POSTERIOR: 1.0}
    given = given_classes(posterior)
    counted = np.flatnonzero(np.bincount(given)[given] > 1)
    if not len(counted):
        raise IncompatibleParts(
            "experts are weighed by labels that another label of their class predicts, and each "
            "class has one label; add labels, or leave the experts out"
        )
    parts = [own.of_label, *(expert.withheld for expert in posterior.experts)]
    probabilities = [part[counted, given[counted]] for part in parts]
    logs = [np.log(np.maximum(p, SMALLEST)).sum() for p in probabilities]
    names = [POSTERIOR, *(expert.name for expert in posterior.experts)]
    return dict(zip(names, softmax(logs).tolist(), strict=True))


def _at_rows(name: str, rows: Rows, posterior: Posterior) -> Float[np.ndarray, "B K"]:
    """Return an expert's probabilities; 1/K for a row without neighbours."""
    columns = posterior.spectrum.columns_of(name)
    p = np.maximum(np.asarray(rows.eigenvectors[:, columns]) * rows.scale[:, None], 0.0)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > TINY, p / np.maximum(total, TINY), 1 / p.shape[1])


def _label_mean(p: Float[np.ndarray, "B K"]) -> Float[np.ndarray, "B *K"]:
    """Return label means: for two classes the difference of the probabilities."""
    return p[:, 1] - p[:, 0] if p.shape[1] == 2 else p
