"""Hyperparameters: a number is fixed, and a distribution is learnt.

Distributions are those of SciPy. A learnt hyperparameter θ enters the chain as ``θ = F⁻¹(Φ(w))``
with w standard normal and F its distribution function. In white coordinates the posterior is then
a standard normal prior times a likelihood, as it is without learnt hyperparameters.
"""

from graphuq.distributions.base import (
    Categorical,
    DiscreteUniform,
    Distribution,
    Gamma,
    Hyperparameter,
    LogNormal,
    LogUniform,
    NegativeBinomial,
    Poisson,
    Uniform,
)
from graphuq.distributions.hyperparameters import (
    HYPERPARAMETER,
    check_defined,
    check_hyperparameters,
    check_range,
    hyperparameter,
    is_learnt,
    learnt_of,
    parameter,
)
from graphuq.distributions.own_methods import check_log_prob, check_log_variances
from graphuq.distributions.quantiles import ContinuousQuantile, DiscreteQuantile

__all__ = [
    "HYPERPARAMETER",
    "Categorical",
    "ContinuousQuantile",
    "DiscreteQuantile",
    "DiscreteUniform",
    "Distribution",
    "Gamma",
    "Hyperparameter",
    "LogNormal",
    "LogUniform",
    "NegativeBinomial",
    "Poisson",
    "Uniform",
    "check_defined",
    "check_hyperparameters",
    "check_log_prob",
    "check_log_variances",
    "check_range",
    "hyperparameter",
    "is_learnt",
    "learnt_of",
    "parameter",
]
