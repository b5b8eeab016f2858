"""Expectation propagation for each component of a mixture, and independent draws from it."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, softmax

from graphuq.errors import InvalidInput
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_chains import ComponentChains
from graphuq.inference.model_average.walk import Made
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map

MIN_WEIGHT = 1e-4  # share of the posterior below which a component is left out
N_PILOT = 400  # proposals from which the share of accepted ones, or an evidence, is estimated
EVIDENCE_ERROR, MAX_ROUNDS = 0.03, 10  # relative error at which an evidence is known; most rounds
N_PARTS = 4  # into which components are divided at least, for the cores
MAX_NUMBERS = 100_000  # in the matrices of components that are fitted together
JITTER = 1e-9  # added to the diagonal of the covariance, as a share of its largest entry


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
    """

    std: Float[np.ndarray, " L"]
    factor: Float[np.ndarray, "J L"]
    sites: Any
    log_evidence: float

    def log_sites(self, u: Float[np.ndarray, "S J K"]) -> Float[np.ndarray, " S"]:
        """Return the log of all sites, scaled so that their prior mean is the evidence."""
        w, flat = self.sites.weights, u.reshape(len(u), -1)
        mean = np.einsum("jk,sjk->sj", w, u)
        quadratic = flat**2 @ w.ravel() - mean**2 @ (1 / w.sum(axis=1))
        logs = flat @ self.sites.pull.ravel() - 0.5 * quadratic
        return np.asarray(logs + self.log_evidence - self.sites.log_normalizer)


class Proposals:
    """Expectation propagation for each component of the prior, and independent draws from it."""

    n_tries = 1  # proposals for each kept draw

    def __init__(self, posterior: Posterior, shares: ClassShares | None = None) -> None:
        self.posterior, self.shares = posterior, shares
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
        stds = prior.component_std(self.modes)[self.numbers]
        size = min(
            -(-len(stds) // N_PARTS), max(1, MAX_NUMBERS // (self.n_classes * len(rows) ** 2))
        )
        parts = [stds[i : i + size] for i in range(0, len(stds), size)]
        self.components = [one for part in parallel_map(self._fit, parts) for one in part]
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
        self.log_weights = log_weights
        weights = np.where(weights < MIN_WEIGHT * weights.sum(), 0.0, weights)
        self.weights = weights / weights.sum()

    def _fit(self, stds: Float[np.ndarray, "m L"]) -> list[Component]:
        from graphuq.inference.nested_sites import fit_sites

        factors = self.rows * stds[:, None]
        covariances = factors @ np.swapaxes(factors, 1, 2)
        diagonal = np.einsum("mjj->mj", covariances)  # a view
        diagonal += JITTER * diagonal.max(axis=1, keepdims=True)
        sites = fit_sites(covariances, self.codes, self.n_classes, self.noise_std)
        return [
            Component(*parts, parts[2].log_evidence if parts[2] and parts[2].converged else -np.inf)
            for parts in zip(stds, factors, sites, strict=True)
        ]

    def acceptance(self) -> float:
        """Return the share of proposals that chains would accept: ``Σ_i mean_j min(w_i, w_j)``.

        The sum is over draws with normalised weights w, as which a chain visits them.
        """
        weights = softmax(self.draw(np.random.default_rng(0), N_PILOT).log_ratio)
        return float(np.minimum(weights[:, None], weights).mean(axis=1).sum())

    def chains(self, seed: int, corrected: bool) -> ComponentChains:
        """Return Gibbs chains of the components, with corrected evidence or without."""
        return ComponentChains(
            [one.factor for one in self.components],
            [one.std for one in self.components],
            self.log_weights,
            self.numbers,
            self.codes,
            self.n_classes,
            self.noise_std,
            seed,
            self.shares,
            self.correction if corrected else None,
        )

    def correction(self, rng: np.random.Generator, place: int) -> tuple[float, float]:
        """Return an estimate of ``log(Z / Z_EP)`` of a component, and its standard error.

        It is found by importance sampling of the fields at the labels, with as many draws as the
        error needs.
        """
        from graphuq.inference.nested_sites import draw_shifts

        one = self.components[place]
        covariance = one.sites.covariance
        root, logs = np.linalg.cholesky(covariance), np.zeros(0)
        for _ in range(MAX_ROUNDS):
            u = root @ rng.normal(size=(N_PILOT, len(root), self.n_classes))
            u += covariance @ draw_shifts(one.sites, rng, u)
            logs = np.append(logs, self._log_likelihood(u) - one.log_sites(u))
            weights = np.exp(logs - logs.max())
            error = float(weights.std() / weights.mean() / np.sqrt(len(logs)))
            if error < EVIDENCE_ERROR:
                break
        return float(logs.max() + np.log(weights.mean())), error

    def start(self, rng: np.random.Generator) -> tuple[()]:
        """Return the state of a chain of proposals: they are independent."""
        return ()

    def propose(self, rng: np.random.Generator, state: Any, n: int) -> tuple[Any, Made]:
        """Return n independent proposals, in random order."""
        return state, self.draw(rng, n)

    def draw(self, rng: np.random.Generator, n: int) -> Made:
        """Return n independent proposals, in random order."""
        counts = rng.multinomial(n, self.weights)
        parts = [self._of_component(int(k), rng, int(counts[k])) for k in np.flatnonzero(counts)]
        order = rng.permutation(n)
        made = Made(*(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)))
        ratio = made.log_ratio + made.log_likelihood
        if self.shares is not None:
            ratio += self.shares.log_weights(made.coefficients)
        return made._replace(log_ratio=ratio)

    def _of_component(self, place: int, rng: np.random.Generator, n: int) -> Made:
        """Return draws from one component; the log ratio lacks the likelihood."""
        from graphuq.inference.nested_sites import draw_shifts

        one = self.components[place]
        white = rng.normal(size=(n, self.n_classes, one.factor.shape[1]))
        before = np.swapaxes(white @ one.factor.T, 1, 2)  # (S, J, K)
        shifts = draw_shifts(one.sites, rng, before)
        white += np.swapaxes(shifts, 1, 2) @ one.factor
        coefficients = white * one.std
        # u of a binary posterior has the distribution of (u₂ − u₁)/√2.
        if self.binary:
            coefficients = (coefficients[:, 1] - coefficients[:, 0]) / np.sqrt(2.0)
        u = np.swapaxes(white @ one.factor.T, 1, 2)
        model = np.full(n, float(self.numbers[place]))
        coefficients = coefficients.reshape(n, -1)
        return Made(coefficients, model, -one.log_sites(u), self._log_likelihood(u))

    def _log_likelihood(self, u: Float[np.ndarray, "S J K"]) -> Float[np.ndarray, " S"]:
        """Return the log probability of all labels, given K fields at the labels in each draw."""
        from graphuq.inference.collapsed_gibbs.sweeps import log_probabilities  # imports Numba

        if not self.binary:
            return log_probabilities(u, self.codes, self.noise_std)
        margins = (2 * self.codes - 1) * (u[..., 1] - u[..., 0]) / np.sqrt(2.0)
        return np.asarray(log_ndtr(margins / self.noise_std).sum(axis=1))
