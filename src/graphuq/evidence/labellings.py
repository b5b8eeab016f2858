"""Binary labels of each class against the rest, whose evidence is computed; soft labels too."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.evidence.criteria import one_vs_rest
from graphuq.likelihoods import Probit
from graphuq.posterior.posterior import Posterior


def labellings_of(posterior: Posterior) -> list[Float[np.ndarray, " J"]]:
    """Return labels ±1 of each class against the rest; of soft labels 2q − 1, in [−1, 1]."""
    likelihood: Any = posterior.likelihood
    if likelihood.has_soft_labels:
        return list(likelihood.one_vs_rest_labels())
    return one_vs_rest(posterior.labels, likelihood.is_multiclass)


def with_certain_labels(posterior: Posterior) -> Posterior:
    """Return the posterior with the most probable class of each soft label as its label.

    Raises
    ------
    InvalidInput
        If all have the same most probable class.
    """
    likelihood: Any = posterior.likelihood
    if not likelihood.has_soft_labels:
        return posterior
    certain = Probit(likelihood.noise_std, likelihood.n_classes, likelihood.random_labels)
    return dataclasses.replace(posterior, likelihood=certain)
