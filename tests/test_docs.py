"""The extension guide must not rot: its likelihood, run."""

from typing import ClassVar

import jax
import numpy as np
from scipy.stats import norm

import graphuq as gq
from graphuq.inference.chains import run_chains
from graphuq.likelihoods import Likelihood
from graphuq.posterior.field import LowRankField
from graphuq.posterior.target import Target


class Logistic(Likelihood):
    r"""p(y | u) = 1 / (1 + exp(−2 γ y u))."""

    steepness: float = 1.0
    has_gradient: ClassVar[bool] = True

    def log_prob(self, u, y):
        return jax.nn.log_sigmoid(2 * self.steepness * y * u)


def test_a_likelihood_of_ones_own():
    """One node seen once, against quadrature."""
    field = LowRankField(np.ones((1, 1)), np.ones((1, 1)), np.ones(1), 0.0)
    target = Target(field, Logistic(1.5), np.ones(1))
    draws = run_chains(target, gq.inference.PCN(), n_samples=1000, n_chains=32, thin=5, seed=0)
    chain_means = np.sign(draws.white[..., 0]).mean(axis=1)
    u = np.linspace(-9, 9, 20_001)
    weight = norm.pdf(u) / (1 + np.exp(-3 * u))
    truth = (weight * np.sign(u)).sum() / weight.sum()
    error = chain_means.std(ddof=1) / np.sqrt(32)
    assert error < 0.01
    assert abs(chain_means.mean() - truth) < 4 * error
