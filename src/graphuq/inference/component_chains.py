"""Collapsed Gibbs chains for the components of a mixture of priors, one for each component."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_ndtr

LEAST_WEIGHT = 1e-3  # share of the posterior from which a component has a chain
THIN, N_WARMUP = 3, 60  # sweeps for each kept draw, and before the first


class ComponentDraws(NamedTuple):
    """Draws of component and field, in random order.

    Attributes
    ----------
    coefficients : numpy.ndarray, shape (S, R L)
    component : numpy.ndarray of int, shape (S,)
        Place among the components.
    log_likelihood : numpy.ndarray, shape (S,)
    """

    coefficients: Float[np.ndarray, "S n"]
    component: Int[np.ndarray, " S"]
    log_likelihood: Float[np.ndarray, " S"]


class ComponentChains:
    """Exact draws of the field in each component, whose probabilities are given.

    Parameters
    ----------
    factors : sequence of numpy.ndarray, shape (J, L)
        Map from white coordinates to one field at the labels, for each component.
    stds : sequence of numpy.ndarray, shape (L,)
        Standard deviations of the coefficients.
    weights : numpy.ndarray, shape (M,)
        Probabilities of the components given the labels; small ones are left out.
    codes : numpy.ndarray of int, shape (J,)
        Classes, from 0.
    n_classes : int
    noise_std : float
    """

    def __init__(
        self,
        factors: Any,
        stds: Any,
        weights: Float[np.ndarray, " M"],
        codes: Int[np.ndarray, " J"],
        n_classes: int,
        noise_std: float,
    ) -> None:
        from graphuq.inference.collapsed_gibbs.sweeps import Values

        self.kept = np.flatnonzero(weights >= LEAST_WEIGHT * weights.max())
        self.weights = weights[self.kept] / weights[self.kept].sum()
        self.stds = [stds[m] for m in self.kept]
        self.factors = [factors[m] for m in self.kept]
        self.noise_std, self.several = noise_std, n_classes > 2
        self.own = codes if self.several else np.where(codes > 0, 0, -1)
        self.n_rows = n_classes if self.several else 1
        self.values, self.gains, self.scales = [], [], []
        for factor in self.factors:
            covariance = factor @ factor.T
            covariance[np.diag_indices_from(covariance)] += noise_std**2
            values = Values.of(covariance, noise_std, self.own)
            self.values.append(values)
            self.gains.append(values.precision @ factor)
            self.scales.append(np.sqrt(covariance.diagonal()))

    def start(self, rng: np.random.Generator) -> Float[np.ndarray, "M R J"]:
        """Return noisy values of each component after its warm-up."""
        from graphuq.inference.collapsed_gibbs import sweeps

        states = []
        for values, scale in zip(self.values, self.scales, strict=True):
            state = sweeps.start(rng, scale, self.own, self.n_rows)
            states.append(sweeps.run(rng, state, values, 1, N_WARMUP)[-1])
        return np.stack(states)

    def advance(
        self, rng: np.random.Generator, states: Float[np.ndarray, "M R J"], n: int
    ) -> tuple[Float[np.ndarray, "M R J"], ComponentDraws]:
        """Return the states after n draws in all, and these draws."""
        from graphuq.inference.collapsed_gibbs import sweeps

        counts, after = rng.multinomial(n, self.weights), states.copy()
        parts = []
        for m in np.flatnonzero(counts):
            noisy = sweeps.run(rng, states[m], self.values[m], int(counts[m]), THIN)
            after[m] = noisy[-1]
            parts.append(self._fields(rng, int(m), noisy))
        order = rng.permutation(n)
        return after, ComponentDraws(
            *(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True))
        )

    def _fields(
        self, rng: np.random.Generator, m: int, noisy: Float[np.ndarray, "S R J"]
    ) -> ComponentDraws:
        """Draw the field of one component given noisy values (Matheron's rule)."""
        from graphuq.inference.collapsed_gibbs.sweeps import log_probabilities

        factor = self.factors[m]
        white = rng.normal(size=(*noisy.shape[:2], factor.shape[1]))
        prior = white @ factor.T + self.noise_std * rng.normal(size=noisy.shape)
        white += (noisy - prior) @ self.gains[m]
        fields = white @ factor.T
        if self.several:
            u = np.swapaxes(fields, 1, 2)
            log_likelihood = log_probabilities(u, self.own, self.noise_std)
        else:
            signs = np.where(self.own == 0, 1.0, -1.0)
            log_likelihood = log_ndtr(signs * fields[:, 0] / self.noise_std).sum(axis=1)
        coefficients = (white * self.stds[m]).reshape(len(white), -1)
        return ComponentDraws(coefficients, np.full(len(white), self.kept[m]), log_likelihood)
