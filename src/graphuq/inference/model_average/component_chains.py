"""Collapsed Gibbs chains for the components of a mixture of priors, one for each component."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues

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
        self.kept = np.flatnonzero(weights >= LEAST_WEIGHT * weights.max())
        self.weights = weights[self.kept] / weights[self.kept].sum()
        self.stds = [stds[m] for m in self.kept]
        self.noisy = [
            NoisyValues(factors[m], noise_std, codes, n_classes, n_classes == 2) for m in self.kept
        ]

    def start(self, rng: np.random.Generator) -> Float[np.ndarray, "M R J"]:
        """Return noisy values of each component after its warm-up."""
        starts = [(noisy, noisy.start(rng)) for noisy in self.noisy]
        return np.stack([noisy.run(rng, state, 1, N_WARMUP)[-1] for noisy, state in starts])

    def advance(
        self, rng: np.random.Generator, states: Float[np.ndarray, "M R J"], n: int
    ) -> tuple[Float[np.ndarray, "M R J"], ComponentDraws]:
        """Return the states after n draws in all, and these draws."""
        counts, after = rng.multinomial(n, self.weights), states.copy()
        parts = []
        for m in np.flatnonzero(counts):
            noisy = self.noisy[m]
            made = noisy.run(rng, states[m], int(counts[m]), THIN)
            after[m] = made[-1]
            white = noisy.white_given(rng, made)
            coefficients = (white * self.stds[m]).reshape(len(white), -1)
            place = np.full(len(white), self.kept[m])
            parts.append(ComponentDraws(coefficients, place, noisy.log_likelihood(white)))
        order = rng.permutation(n)
        return after, ComponentDraws(
            *(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True))
        )
