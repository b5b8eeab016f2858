"""Collapsed Gibbs chains for the components of a mixture of priors, one for each component."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, logsumexp, softmax

from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.components import Component
from graphuq.inference.model_average.walk import Moves
from graphuq.utils.arrays import parallel_map

MIN_WEIGHT = 1e-3  # share of the likeliest component, from which a component is proposed
BEHIND = 12.0  # log weight behind the largest, from which class shares may not lift a component
THIN = 2  # sweeps for each draw, which costs as much as they do: draws may be somewhat alike

# With class shares a proposal may depend little on the one before it, or chains are not exact.
APART, LABELS_PER_SWEEP = 3, 20  # least sweeps, and labels for each of which there is another
N_WARMUP = 20  # sweeps before the first draw, from a draw of expectation propagation
N_PILOT = 64  # draws of a component, from which the mean weight of its class shares is estimated
TRIES = 4  # proposals for each kept draw with class shares, whose weights have heavy tails

# Error of the evidence of the likeliest component. Errors are independent, so that a component of
# weight w may have √(max w / w) times as much, up to the second number.
EVIDENCE_ERROR, MAX_EVIDENCE_ERROR = 0.03, 0.15

Correction: TypeAlias = Callable[[np.random.Generator, int, float], tuple[float, float]]


class ComponentChains:
    """Independent proposals whose fields are exact draws of each component.

    A component is proposed with the probability that it is thought to have. The ratio of densities
    is that of the probabilities of components, and the weight of the field's class shares.

    Parameters
    ----------
    components : sequence of Component, length M
        What expectation propagation found.
    log_weights : numpy.ndarray, shape (M,)
        Log probabilities of the components given the labels, up to a constant.
    numbers : numpy.ndarray of int, shape (M,)
        Numbers of the components in the prior.
    codes : numpy.ndarray of int, shape (J,)
        Classes, from 0.
    n_classes : int
    noise_std : float
    seed : int
        Of the pilot draws.
    shares : ClassShares, optional
        Weights for labels that were drawn class by class.
    correction : callable, optional
        Returns an estimate of what a log weight lacks, and its standard error, given a generator,
        the component and the error that may be left.

    Attributes
    ----------
    error : float
        Standard error of the log weights after their correction, on average over the posterior.
    log_evidence : float
        Log of the sum of all weights, with their correction.
    n_tries : int
        Proposals for each kept draw, so that few draws repeat.
    """

    def __init__(
        self,
        components: Sequence[Component],
        log_weights: Float[np.ndarray, " M"],
        numbers: Int[np.ndarray, " M"],
        codes: Int[np.ndarray, " J"],
        n_classes: int,
        noise_std: float,
        seed: int,
        shares: ClassShares | None = None,
        correction: Correction | None = None,
    ) -> None:
        self.shares, stds = shares, [one.std for one in components]
        self.thin = THIN if shares is None else max(APART, len(codes) // LABELS_PER_SWEEP)

        def noisy(m: int) -> NoisyValues:
            factor = components[m].factor[:, stds[m] > 0]
            return NoisyValues(factor, noise_std, codes, n_classes, n_classes == 2)

        def pilot(m: int) -> Float[np.ndarray, " S"]:
            assert shares is not None
            rng, values = np.random.default_rng([seed, int(numbers[m])]), noisy(m)
            warm = _warmed_up(rng, values, components[m])
            white = values.white_given(rng, values.run(rng, warm, N_PILOT, 1))
            return shares.log_weights(coefficients_of(white, stds[m]))

        log_proposal = log_weights.copy()
        if shares is not None:
            near = np.flatnonzero(log_weights >= log_weights.max() - BEHIND)
            logs = parallel_map(pilot, near.tolist())
            log_proposal = np.full(len(log_weights), -np.inf)
            log_proposal[near] = log_weights[near] + [logsumexp(found) for found in logs]
        self.n_tries = 1 if shares is None else TRIES
        kept = np.flatnonzero(log_proposal >= log_proposal.max() + np.log(MIN_WEIGHT))
        self.log_weights, log_proposal = log_weights[kept], log_proposal[kept]
        self.error, corrected = 0.0, log_weights
        if correction is not None:
            found = [
                correction(np.random.default_rng([seed, int(numbers[m]), 1]), m, bound)
                for m, bound in zip(kept.tolist(), tolerances(log_proposal), strict=True)
            ]
            lacking, errors = np.array(found).T
            self.log_weights, log_proposal = self.log_weights + lacking, log_proposal + lacking
            self.error = float(softmax(log_proposal) @ errors)
            corrected = log_weights.copy()
            corrected[kept] = self.log_weights
        self.log_evidence = float(logsumexp(corrected))
        self.log_proposal = log_softmax(log_proposal)
        self.numbers, self.stds = numbers[kept], [stds[m] for m in kept]
        self.components = [components[m] for m in kept.tolist()]
        self.noisy = [noisy(m) for m in kept.tolist()]

    def start(self, rng: np.random.Generator) -> Float[np.ndarray, "M R J"]:
        """Return noisy values of each component after its warm-up."""
        both = zip(self.noisy, self.components, strict=True)
        return np.stack([_warmed_up(rng, noisy, one) for noisy, one in both])

    def propose(
        self, rng: np.random.Generator, state: Float[np.ndarray, "M R J"], n: int
    ) -> tuple[Float[np.ndarray, "M R J"], Moves]:
        """Return the noisy values after n proposals, and these in random order."""
        counts = rng.multinomial(n, np.exp(self.log_proposal)).tolist()
        values, parts, fields = state.copy(), [], []
        for m, count in enumerate(counts):
            if not count:
                continue
            noisy = self.noisy[m].run(rng, values[m], count, self.thin)
            values[m] = noisy[-1]
            white = self.noisy[m].white_given(rng, noisy)
            coefficients = coefficients_of(white, self.stds[m])
            ratio = np.full(count, self.log_weights[m] - self.log_proposal[m])
            if self.shares is not None:
                ratio += self.shares.log_weights(coefficients)
            number = np.full(count, float(self.numbers[m]))
            parts.append((coefficients, number, ratio))
            fields.append(self.noisy[m].fields(white))
        # All components have the same likelihood, so one call serves their draws.
        log_likelihood = self.noisy[0].log_likelihood(np.concatenate(fields))
        columns = [*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)), log_likelihood]
        order = rng.permutation(n)
        return values, Moves(*(column[order] for column in columns))


def _warmed_up(
    rng: np.random.Generator, noisy: NoisyValues, component: Component
) -> Float[np.ndarray, "R J"]:
    """Return noisy values of a component: a chain that begins at its Gaussian has few sweeps."""
    u = component.draws(rng, 1)[1][0].T
    # u of a binary posterior has the distribution of (u₂ − u₁)/√2.
    fields = (u[1:] - u[:1]) / np.sqrt(2.0) if noisy.one_field else u
    return noisy.run(rng, noisy.start(rng, fields), 1, N_WARMUP)[-1]


def tolerances(log_weights: Float[np.ndarray, " M"]) -> list[float]:
    """Return the error that the evidence of each component may have."""
    bounds = EVIDENCE_ERROR * np.exp((log_weights.max() - log_weights) / 2)
    found: list[float] = np.minimum(bounds, MAX_EVIDENCE_ERROR).tolist()
    return found


def coefficients_of(
    white: Float[np.ndarray, "n *R r"], std: Float[np.ndarray, " L"]
) -> Float[np.ndarray, "n RL"]:
    """Return coefficients of all columns, given white coordinates of those of positive variance."""
    found, used = np.zeros((*white.shape[:-1], len(std))), std > 0
    found[..., used] = white * std[used]
    return found.reshape(len(white), -1)
