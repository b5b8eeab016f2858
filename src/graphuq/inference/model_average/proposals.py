"""Expectation propagation for each component of a mixture, and independent draws from it."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, softmax

from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_chains import ComponentChains
from graphuq.inference.model_average.components import require_any
from graphuq.inference.model_average.evidence_correction import second_order
from graphuq.inference.model_average.likely_components import fits_of
from graphuq.inference.model_average.walk import Moves
from graphuq.posterior.posterior import Posterior

MIN_WEIGHT = 1e-4  # share of the posterior below which a component is left out
N_PILOT = 400  # proposals from which the share of accepted ones, or an evidence, is estimated
MAX_ROUNDS = 10  # most rounds of as many proposals, from which an evidence is estimated


class Proposals:
    """Expectation propagation for each component of the prior, and independent draws from it."""

    n_tries = 1  # proposals for each kept draw

    def __init__(self, posterior: Posterior, shares: ClassShares | None = None) -> None:
        found, self.components = fits_of(posterior)
        self.shares, self.binary = shares, not posterior.likelihood.is_multiclass
        self.codes, self.n_classes = found.codes, found.n_classes
        self.noise_std, self.numbers = found.noise_std, found.numbers
        evidence = np.array([one.log_evidence for one in self.components])
        log_weights = found.log_prior + evidence
        require_any(log_weights)
        largest = log_weights.max()
        weights = np.exp(log_weights - largest)
        self.log_evidence = float(largest + np.log(weights.sum()))
        self.log_weights = log_weights
        weights = np.where(weights < MIN_WEIGHT * weights.sum(), 0.0, weights)
        self.weights = weights / weights.sum()

    def acceptance(self) -> float:
        """Return the share of proposals that chains would accept: ``Σ_i mean_j min(w_i, w_j)``.

        The sum is over draws with normalised weights w, as which a chain visits them.
        """
        weights = softmax(self.draw(np.random.default_rng(0), N_PILOT).log_ratio)
        return float(np.minimum(weights[:, None], weights).mean(axis=1).sum())

    def chains(self, seed: int, corrected: bool) -> ComponentChains:
        """Return Gibbs chains of the components, with corrected evidence or without."""
        return ComponentChains(
            self.components,
            self.log_weights,
            self.numbers,
            self.codes,
            self.n_classes,
            self.noise_std,
            seed,
            self.shares,
            self.correction if corrected else None,
        )

    def correction(
        self, rng: np.random.Generator, place: int, tolerance: float
    ) -> tuple[float, float]:
        """Return an estimate of ``log(Z / Z_EP)`` of a component of two classes, and its error.

        Where the second order of an expansion is large, it is found by importance sampling of the
        fields at the labels, with as many draws as the tolerance of the error needs.
        """
        from graphuq.inference.nested_sites import draw_shifts

        one = self.components[place]
        second = second_order(one.sites, self.codes, self.noise_std)
        if second**2 < tolerance:  # which the later orders are below
            return second, second**2
        covariance = one.sites.covariance
        root, logs = np.linalg.cholesky(covariance), np.zeros(0)
        for _ in range(MAX_ROUNDS):
            u = root @ rng.normal(size=(N_PILOT, len(root), self.n_classes))
            u += covariance @ draw_shifts(one.sites, rng, u)
            logs = np.append(logs, self._log_likelihood(u) - one.log_sites(u))
            weights = np.exp(logs - logs.max())
            error = float(weights.std() / weights.mean() / np.sqrt(len(logs)))
            if error < tolerance:
                break
        return float(logs.max() + np.log(weights.mean())), error

    def start(self, rng: np.random.Generator) -> tuple[()]:
        """Return the state of a chain of proposals: they are independent."""
        return ()

    def propose(self, rng: np.random.Generator, state: Any, n: int) -> tuple[Any, Moves]:
        """Return n independent proposals, in random order."""
        return state, self.draw(rng, n)

    def draw(self, rng: np.random.Generator, n: int) -> Moves:
        """Return n independent proposals, in random order."""
        counts = rng.multinomial(n, self.weights)
        parts = [self._of_component(int(k), rng, int(counts[k])) for k in np.flatnonzero(counts)]
        order = rng.permutation(n)
        made = Moves(*(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)))
        ratio = made.log_ratio + made.log_likelihood
        if self.shares is not None:
            ratio += self.shares.log_weights(made.coefficients)
        return made._replace(log_ratio=ratio)

    def _of_component(self, place: int, rng: np.random.Generator, n: int) -> Moves:
        """Return draws from one component; the log ratio lacks the likelihood."""
        one = self.components[place]
        white, u = one.draws(rng, n)
        coefficients = white * one.std
        # u of a binary posterior has the distribution of (u₂ − u₁)/√2.
        if self.binary:
            coefficients = (coefficients[:, 1] - coefficients[:, 0]) / np.sqrt(2.0)
        number = np.full(n, float(self.numbers[place]))
        coefficients = coefficients.reshape(n, -1)
        return Moves(coefficients, number, -one.log_sites(u), self._log_likelihood(u))

    def _log_likelihood(self, u: Float[np.ndarray, "S J K"]) -> Float[np.ndarray, " S"]:
        """Return the log probability of all labels, given K fields at the labels in each draw."""
        from graphuq.inference.collapsed_gibbs.sweeps import log_probabilities  # imports Numba

        if not self.binary:
            return log_probabilities(u, self.codes, self.noise_std)
        margins = (2 * self.codes - 1) * (u[..., 1] - u[..., 0]) / np.sqrt(2.0)
        return np.asarray(log_ndtr(margins / self.noise_std).sum(axis=1))
