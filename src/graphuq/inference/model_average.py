"""Draws from a finite mixture of priors: the evidence weighs the components.

Expectation propagation gives each component m a Gaussian q_m and the evidence Z_m. A proposal is a
component, with probability ``π_m Z_m / Σ π Z``, and a field from its q_m. Metropolis's rule for
independent proposals accepts or rejects it, so that the chains have the exact posterior of
component and field. The ratio of densities involves the labelled nodes only.

Where most proposals would be rejected, components are drawn with these probabilities, and the
field of each by collapsed Gibbs chains (`component_chains`). Then only the probabilities of the
components are approximate.
"""

from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from graphuq.errors import InvalidInput
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.component_chains import ComponentChains
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.driver import Block, drive
from graphuq.inference.settings import RunSettings, check_lengths, check_memory, seed_number
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map

MIN_WEIGHT = 1e-4  # share of the posterior below which a component is left out
MIN_ACCEPTANCE = 0.5  # share of accepted proposals, from which exact draws are as quick
N_PILOT = 400  # proposals from which that share is estimated
JITTER = 1e-9  # added to the diagonal of the covariance, as a share of its largest entry


class ModelAverage(Sampler):
    """Sample the component of a `MaternMixture` and the field, by independent proposals.

    It needs a `Probit` of fixed noise and a fixed number of classes. Each component costs one
    expectation propagation, of O(K J³) operations, and is quick for up to some hundred labels.

    Parameters
    ----------
    exact : bool, optional
        Whether proposals are accepted or rejected, so that the draws are exact. False: fields are
        drawn by collapsed Gibbs chains of each component, whose probabilities are those of
        expectation propagation. By default proposals are made if at least half of them would be
        accepted.
    """

    exact: bool | None = None
    reference: Approximation | None = None
    default_warmup: ClassVar[int] = 0
    default_chains: ClassVar[int | None] = 4
    always_float64: ClassVar[bool] = True

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the posterior is no mixture that it can sample, or None."""
        likelihood = posterior.likelihood
        if not posterior.prior.is_mixture:
            return f"{self} averages over the components of MaternMixture, not {posterior.prior}"
        if likelihood.learnt or likelihood.latent_noise_std is None:
            return f"{self} needs a Probit of fixed noise and classes, and not {likelihood}"
        if posterior.spectrum.tail_eigenvalue is not None:
            return f"{self} needs a spectrum without a tail; leave tail_eigenvalue out"
        return None

    def unused_arguments(self, given: Any) -> list[str]:
        """Return arguments without effect: there is no warm-up, and nothing to thin."""
        unused = ("n_warmup", "thin")
        return [name for name in given if name in unused]

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws in the coefficients of the eigenvectors, and the component of each."""
        n_chains = self.n_chains(posterior) if settings.n_chains is None else settings.n_chains
        check_lengths(settings.n_samples, n_chains, 0, 1, settings.precision)
        check_memory(n_chains, settings.n_samples, posterior.field.dimension, np.dtype(np.float64))
        proposals, seed = Proposals(posterior), seed_number(settings.seed)
        exact = proposals.acceptance() >= MIN_ACCEPTANCE if self.exact is None else self.exact

        chains = None if exact else proposals.chains()

        def start() -> Any:
            if chains is None:
                return proposals.draw(np.random.default_rng([seed, 0]), n_chains)
            rngs = [np.random.default_rng([seed, 0, c]) for c in range(n_chains)]
            return np.stack(parallel_map(chains.start, rngs))

        def advance(n_steps: int, state: Any) -> Block:
            if chains is not None:
                rngs = [np.random.default_rng([seed, 1 + n_steps, c]) for c in range(n_chains)]
                moved = parallel_map(
                    lambda c: chains.advance(rngs[c], state[c], BLOCK), range(n_chains)
                )
                white, place, value = map(
                    np.stack, zip(*(draws for _, draws in moved), strict=True)
                )
                model = proposals.numbers[place].astype(float)
                kept = Kept(white, model, value, np.ones_like(value))
                return Block(np.stack([after for after, _ in moved]), kept, BLOCK, 1)
            rng = np.random.default_rng([seed, 1 + n_steps])
            made = proposals.draw(rng, n_chains * BLOCK).in_chains(n_chains)
            state, kept = _walk(state, made, rng.uniform(size=(n_chains, BLOCK)))
            return Block(state, kept, BLOCK, 1)

        def collect(state: Any, kept: Kept) -> Draws:
            return Draws(
                white=kept.coefficients,
                log_likelihood=kept.log_likelihood,
                acceptance=kept.acceptance,
                step_size=1.0,
                n_warmup=0,
                thin=1,
                hyperparameters={"model": kept.model},
                log_evidence=proposals.log_evidence,
                is_approximate=not exact,
            )

        return drive(
            start,
            advance,
            collect,
            Kept,
            n_samples=settings.n_samples,
            n_warmup=0,
            stop=settings.stop,
            progress=settings.progress,
            checkpoint=settings.checkpoint,
            fingerprint=(posterior.target, self, n_chains, seed, BLOCK),
        )


def _walk(state: "Made", made: "Made", uniform: Float[np.ndarray, "C S"]) -> tuple["Made", "Kept"]:
    """Accept or reject proposals in turn, in all chains."""
    n_chains, size = made.log_ratio.shape
    taken = np.empty((n_chains, size), dtype=np.int64)  # number of the proposal; −1: the state
    probability = np.empty((n_chains, size))
    for c in range(n_chains):
        current, ratio = -1, state.log_ratio[c]
        for i in range(size):
            probability[c, i] = np.exp(min(made.log_ratio[c, i] - ratio, 0.0))
            if uniform[c, i] <= probability[c, i]:
                current, ratio = i, made.log_ratio[c, i]
            taken[c, i] = current

    def kept(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        both = np.concatenate([before[:, None], after], axis=1)
        return np.take_along_axis(
            both, (taken + 1).reshape(taken.shape + (1,) * (both.ndim - 2)), 1
        )

    chosen = Made(*(kept(old, new) for old, new in zip(state, made, strict=True)))
    last = Made(*(array[:, -1] for array in chosen))
    return last, Kept(chosen.coefficients, chosen.model, chosen.log_likelihood, probability)


class Kept(NamedTuple):
    """What is kept of each step."""

    coefficients: Float[np.ndarray, "C S n"]
    model: Float[np.ndarray, "C S"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]


class Component(NamedTuple):
    """One component of the mixture, given the labels.

    Attributes
    ----------
    std : numpy.ndarray, shape (L,)
        Standard deviations of the coefficients.
    factor : numpy.ndarray, shape (J, L)
        Map from white coordinates to one field at the labels.
    sites : NestedSites
        What `nested_sites.fit_sites` found.
    log_evidence : float
        −inf if there is no fixed point.
    log_normalizer : float
        ``log ∫ N(u; 0, G) exp(bᵀ u − uᵀ W u/2) du`` of the sites.
    """

    std: Float[np.ndarray, " L"]
    factor: Float[np.ndarray, "J L"]
    sites: Any
    log_evidence: float
    log_normalizer: float

    def log_sites(self, u: Float[np.ndarray, "S J K"]) -> Float[np.ndarray, " S"]:
        """Return the log of all sites, scaled so that their prior mean is the evidence."""
        w = self.sites.weights
        quadratic = (w * u**2).sum(axis=2) - (w * u).sum(axis=2) ** 2 / w.sum(axis=1)
        logs = ((self.sites.pull * u).sum(axis=2) - 0.5 * quadratic).sum(axis=1)
        return np.asarray(logs + self.log_evidence - self.log_normalizer)


def log_normalizer(sites: Any) -> float:
    """Return ``(bᵀ E[u] − log|I + W G|)/2``, with the factors of `nested_sites`."""
    b, w, covariance = sites.pull, sites.weights, sites.covariance
    before = covariance @ b
    gained = np.einsum("kij,jk->ik", sites.gains, before)
    shared = sites.inner_root.T @ (sites.inner_root @ gained.sum(axis=1))
    mean = covariance @ (b - gained + np.einsum("kij,j->ik", sites.gains, shared))
    roots = np.sqrt(w.T)
    systems = np.eye(len(b)) + roots[:, :, None] * covariance * roots[:, None, :]
    half = 0.5 * np.linalg.slogdet(systems)[1].sum() - np.log(np.diag(sites.inner_root)).sum()
    return float(0.5 * (b * mean).sum() - half + 0.5 * np.log(w.sum(axis=1)).sum())


class Made(NamedTuple):
    """Proposals: coefficients, component, log ratio of densities, log likelihood."""

    coefficients: Float[np.ndarray, "*S n"]
    model: Float[np.ndarray, "*S"]
    log_ratio: Float[np.ndarray, "*S"]
    log_likelihood: Float[np.ndarray, "*S"]

    def in_chains(self, n_chains: int) -> "Made":
        """Return the proposals with an axis of chains before that of steps."""
        return Made(*(array.reshape(n_chains, -1, *array.shape[1:]) for array in self))


class Proposals:
    """Expectation propagation for each component of the prior, and independent draws from it."""

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        likelihood = posterior.likelihood
        self.binary = not likelihood.is_multiclass
        labels = np.asarray(posterior.labels)
        self.codes = ((labels > 0) if self.binary else labels).astype(np.int64)
        self.n_classes = 2 if self.binary else likelihood.min_classes
        self.noise_std = float(likelihood.latent_noise_std)
        prior: Any = posterior.prior
        self.prior = prior
        spectrum = posterior.spectrum
        rows = np.asarray(spectrum.eigenvectors[posterior.labelled])
        self.rows = rows * posterior.label_scale[:, None]
        self.modes = prior.modes(spectrum)
        log_prior = prior.log_probabilities
        self.numbers = np.flatnonzero(np.isfinite(log_prior))
        self.components: list[Component] = parallel_map(self._fit, self.numbers.tolist())
        evidence = np.array([one.log_evidence for one in self.components])
        usable = np.isfinite(evidence)
        if not usable.any():
            raise InvalidInput(
                "prior",
                "expectation propagation converged for none of the components",
                "use larger scales, or another prior",
            )
        log_weights = np.where(usable, log_prior[self.numbers] + evidence, -np.inf)
        largest = log_weights.max()
        weights = np.exp(log_weights - largest)
        self.log_evidence = float(largest + np.log(weights.sum()))
        weights = np.where(weights < MIN_WEIGHT * weights.sum(), 0.0, weights)
        self.weights = weights / weights.sum()

    def _fit(self, number: int) -> Component:
        from graphuq.inference.nested_sites import fit_sites

        std = np.asarray(self.prior.component(number).std_of(self.modes).modes)
        factor = self.rows * std
        covariance = factor @ factor.T
        covariance[np.diag_indices_from(covariance)] += JITTER * covariance.diagonal().max()
        try:
            sites = fit_sites(covariance, self.codes, self.n_classes, self.noise_std)
        except np.linalg.LinAlgError:
            return Component(std, factor, None, -np.inf, 0.0)
        evidence = sites.log_evidence if sites.converged else -np.inf
        return Component(std, factor, sites, evidence, log_normalizer(sites))

    def acceptance(self) -> float:
        """Return the mean probability with which a proposal would replace another."""
        ratio = self.draw(np.random.default_rng(0), N_PILOT).log_ratio.reshape(2, -1)
        return float(np.exp(np.minimum(ratio[0] - ratio[1], 0.0)).mean())

    def chains(self) -> ComponentChains:
        """Return Gibbs chains of the components."""
        return ComponentChains(
            [one.factor for one in self.components],
            [one.std for one in self.components],
            self.weights,
            self.codes,
            self.n_classes,
            self.noise_std,
        )

    @cached_property
    def log_prob(self) -> Any:
        """Log probability of all labels as a function of fields (S, J, K) or (S, J)."""
        likelihood = self.posterior.likelihood
        with jax.enable_x64(True):
            labels = jnp.asarray(self.posterior.labels, jnp.float64)
        return jax.jit(jax.vmap(lambda u: likelihood.log_prob(u, labels).sum()))

    def draw(self, rng: np.random.Generator, n: int) -> Made:
        """Return n independent proposals, in random order."""
        counts = rng.multinomial(n, self.weights)
        parts = [
            self.propose(self.components[k], int(self.numbers[k]), rng, count)
            for k, count in enumerate(counts.tolist())
            if count
        ]
        order = rng.permutation(n)
        made = Made(*(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)))
        u = self._labelled(made.coefficients)
        with jax.enable_x64(True):
            value = np.asarray(self.log_prob(u))
        return made._replace(log_likelihood=value, log_ratio=made.log_ratio + value)

    def propose(self, one: Component, number: int, rng: np.random.Generator, n: int) -> Made:
        """Return draws from one component; the log ratio lacks the likelihood."""
        from graphuq.inference.nested_sites import draw_shifts

        white = rng.normal(size=(n, self.n_classes, one.factor.shape[1]))
        before = np.swapaxes(white @ one.factor.T, 1, 2)  # (S, J, K)
        shifts = draw_shifts(one.sites, rng, before)
        white += np.swapaxes(shifts, 1, 2) @ one.factor
        coefficients = white * one.std
        # u of a binary posterior has the distribution of (u₂ − u₁)/√2.
        if self.binary:
            coefficients = (coefficients[:, 1] - coefficients[:, 0]) / np.sqrt(2.0)
        u = np.swapaxes(white @ one.factor.T, 1, 2)
        log_sites = one.log_sites(u)
        model = np.full(n, float(number))
        return Made(coefficients.reshape(n, -1), model, -log_sites, np.zeros(n))

    def _labelled(self, coefficients: Float[np.ndarray, "S n"]) -> Any:
        """Return the field at the labels of each draw, shape (S, J) or (S, J, K)."""
        if self.binary:
            return coefficients @ self.rows.T
        by_class = coefficients.reshape(len(coefficients), self.n_classes, -1)
        return np.swapaxes(by_class @ self.rows.T, 1, 2)
