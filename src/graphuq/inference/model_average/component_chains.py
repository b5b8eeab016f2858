"""Collapsed Gibbs chains for the components of a mixture of priors, one for each component."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp, softmax

from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.walk import Made

LEAST_WEIGHT = 1e-3  # share of the likeliest component, from which a component is proposed
BEHIND = 12.0  # log weight behind the largest, from which class shares may not lift a component
THIN, N_WARMUP = 3, 60  # sweeps for each draw, and before the first
N_PILOT = 64  # draws of a component, from which the mean weight of its class shares is estimated
MIN_EFFICIENCY, MAX_TRIES = 0.1, 10  # effective share of proposals that is aimed at; most for that


class ChainState(NamedTuple):
    """What the draws of one chain depend on.

    Attributes
    ----------
    values : numpy.ndarray, shape (M, R, J)
        Noisy values of each component.
    log_weights, log_proposal : numpy.ndarray, shape (M,)
        Log probability of each component in the posterior, and among the proposals.
    tries : numpy.ndarray of int, shape ()
        Proposals for each kept draw, so that few draws repeat.
    """

    values: Float[np.ndarray, "*C M R J"]
    log_weights: Float[np.ndarray, "*C M"]
    log_proposal: Float[np.ndarray, "*C M"]
    tries: Int[np.ndarray, "*C"]


class ComponentChains:
    """Independent proposals whose fields are exact draws of each component.

    A component is proposed with the probability that it is thought to have. The ratio of densities
    is that of the probabilities of components, and the weight of the field's class shares.

    Parameters
    ----------
    factors : sequence of numpy.ndarray, shape (J, L)
        Map from white coordinates to one field at the labels, for each component.
    stds : sequence of numpy.ndarray, shape (L,)
        Standard deviations of the coefficients.
    log_weights : numpy.ndarray, shape (M,)
        Log probabilities of the components given the labels, up to a constant.
    numbers : numpy.ndarray of int, shape (M,)
        Numbers of the components in the prior.
    codes : numpy.ndarray of int, shape (J,)
        Classes, from 0.
    n_classes : int
    noise_std : float
    shares : ClassShares, optional
        Weights for labels that were drawn class by class.
    correction : callable, optional
        Returns an estimate of what a log weight lacks, given a generator and the component.
    """

    def __init__(
        self,
        factors: Any,
        stds: Any,
        log_weights: Float[np.ndarray, " M"],
        numbers: Int[np.ndarray, " M"],
        codes: Int[np.ndarray, " J"],
        n_classes: int,
        noise_std: float,
        shares: ClassShares | None = None,
        correction: Callable[[np.random.Generator, int], float] | None = None,
    ) -> None:
        behind = -np.log(LEAST_WEIGHT) if shares is None else BEHIND
        self.kept = np.flatnonzero(log_weights >= log_weights.max() - behind)
        self.log_weights, self.numbers = log_weights[self.kept], numbers[self.kept]
        self.stds = [stds[m] for m in self.kept]
        self.shares, self.correction = shares, correction
        self.noisy = [
            NoisyValues(factors[m], noise_std, codes, n_classes, n_classes == 2) for m in self.kept
        ]

    def start(self, rng: np.random.Generator) -> ChainState:
        """Return the state after warm-up; pilot draws tell what class shares do to components."""
        starts = [(noisy, noisy.start(rng)) for noisy in self.noisy]
        values = np.stack([noisy.run(rng, state, 1, N_WARMUP)[-1] for noisy, state in starts])
        log_proposal, efficiency = self.log_weights.copy(), 1.0
        if self.shares is not None:
            logs = [self._pilot(rng, m, values) for m in range(len(values))]
            log_proposal += np.array([logsumexp(found) for found in logs])
            spread = np.array([(softmax(found) ** 2).sum() * N_PILOT for found in logs])
            efficiency = 1 / float(softmax(log_proposal) @ spread)
        least = log_proposal.max() + np.log(LEAST_WEIGHT)
        log_proposal = np.where(log_proposal < least, -np.inf, log_proposal)
        log_weights = self.log_weights.copy()
        if self.correction is not None:
            for m in np.flatnonzero(np.isfinite(log_proposal)):
                log_weights[m] += self.correction(rng, int(self.kept[m]))
            log_proposal += log_weights - self.log_weights
        tries = np.array(np.clip(np.ceil(MIN_EFFICIENCY / efficiency), 1, MAX_TRIES), dtype=int)
        return ChainState(values, log_weights, log_proposal - logsumexp(log_proposal), tries)

    def tries(self, states: ChainState) -> int:
        """Return the number of proposals for each kept draw, given the states of all chains."""
        return int(states.tries.max())

    def _pilot(self, rng: np.random.Generator, m: int, values: Any) -> Float[np.ndarray, " S"]:
        """Return the log weights of class shares in draws of a component, and move its values."""
        assert self.shares is not None
        made = self.noisy[m].run(rng, values[m], N_PILOT, THIN)
        values[m] = made[-1]
        return self.shares.log_weights(self._coefficients(rng, m, made)[1])

    def _coefficients(self, rng: np.random.Generator, m: int, made: Any) -> tuple[Any, Any]:
        white = self.noisy[m].white_given(rng, made)
        return white, (white * self.stds[m]).reshape(len(white), -1)

    def propose(
        self, rng: np.random.Generator, state: ChainState, n: int
    ) -> tuple[ChainState, Made]:
        """Return the state after n proposals, and these in random order."""
        counts = rng.multinomial(n, np.exp(state.log_proposal)).tolist()
        values, parts = state.values.copy(), []
        for m, count in enumerate(counts):
            if not count:
                continue
            noisy = self.noisy[m].run(rng, values[m], count, THIN)
            values[m] = noisy[-1]
            white, coefficients = self._coefficients(rng, m, noisy)
            ratio = np.full(count, state.log_weights[m] - state.log_proposal[m])
            if self.shares is not None:
                ratio += self.shares.log_weights(coefficients)
            number = np.full(count, float(self.numbers[m]))
            parts.append(Made(coefficients, number, ratio, self.noisy[m].log_likelihood(white)))
        order = rng.permutation(n)
        made = Made(*(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)))
        return state._replace(values=values), made
