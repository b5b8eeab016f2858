"""Expectation propagation for each component of a mixture of priors."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from graphuq.errors import InvalidInput
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map

N_PARTS = 4  # into which components are divided at least, for the cores
MAX_NUMBERS = 100_000  # in the matrices of components that are fitted together
MAX_SWEEPS, TOLERANCE = 100, 1e-3  # of expectation propagation
EVIDENCE_TOLERANCE = 3e-3  # where the evidence alone is used as it is: it is then within 0.01
ROUGH_TOLERANCE = 1e-2  # of fits to some of the labels, which only leave components out
JITTER = 1e-9  # added to the diagonal of the covariance, as a share of its largest entry


class Components(NamedTuple):
    """The components of a mixture of priors, and the labels of a posterior.

    Attributes
    ----------
    rows : numpy.ndarray, shape (J, L)
        Map from coefficients to one field at the labels.
    stds : numpy.ndarray, shape (M, L)
        Standard deviations of the coefficients of each component.
    log_prior : numpy.ndarray, shape (M,)
        Log probabilities of the components.
    numbers : numpy.ndarray of int, shape (M,)
        Numbers of the components in the prior.
    blocks : numpy.ndarray of str, shape (M,)
        Names of their blocks.
    codes : numpy.ndarray of int, shape (J,)
        Classes, from 0.
    n_classes : int
        K, at least 2.
    noise_std : float
        γ of the probit.
    """

    rows: Float[np.ndarray, "J L"]
    stds: Float[np.ndarray, "M L"]
    log_prior: Float[np.ndarray, " M"]
    numbers: Int[np.ndarray, " M"]
    blocks: Shaped[np.ndarray, " M"]
    codes: Int[np.ndarray, " J"]
    n_classes: int
    noise_std: float

    @staticmethod
    def of(posterior: Posterior) -> "Components":
        """Return those of positive probability, for a probit of fixed noise and classes."""
        likelihood, spectrum = posterior.likelihood, posterior.spectrum
        prior: Any = posterior.prior
        labels = np.asarray(posterior.labels)
        several = likelihood.is_multiclass
        log_prior = prior.log_probabilities
        numbers = np.flatnonzero(np.isfinite(log_prior))
        rows = np.asarray(spectrum.basis[posterior.labelled])
        return Components(
            rows * posterior.label_scale[:, None],
            np.asarray(posterior.modes.stds)[numbers],
            log_prior[numbers],
            numbers,
            np.array(prior.blocks)[numbers],
            (labels if several else labels > 0).astype(np.int64),
            likelihood.min_classes if several else 2,
            float(likelihood.latent_noise_std),
        )

    def at(self, labels: Any, components: Any) -> "Components":
        """Return some labels and some components, by their places."""
        return self._replace(
            rows=self.rows[labels],
            codes=self.codes[labels],
            stds=self.stds[components],
            log_prior=self.log_prior[components],
            numbers=self.numbers[components],
            blocks=self.blocks[components],
        )

    def factor(self, component: int) -> Float[np.ndarray, "J r"]:
        """Return the map from white coordinates to one field at the labels.

        There is a coordinate for each column in which the component has a part, in their order.
        """
        std = self.stds[component]
        used = std > 0
        return np.asarray(self.rows[:, used] * std[used])

    def fit(self, tolerance: float = EVIDENCE_TOLERANCE, start: Any = None) -> list["Component"]:
        """Return the fixed point of expectation propagation of each component.

        All start from the same sites, if any are given.
        """
        n_numbers = self.n_classes * len(self.codes) ** 2
        size = min(-(-len(self.stds) // N_PARTS), max(1, MAX_NUMBERS // n_numbers))
        parts = [self.stds[i : i + size] for i in range(0, len(self.stds), size)]
        fits = parallel_map(lambda part: self._fit(part, tolerance, start), parts)
        return [one for part in fits for one in part]

    def _fit(
        self, stds: Float[np.ndarray, "m L"], tolerance: float, start: Any
    ) -> list["Component"]:
        from graphuq.inference.nested_sites import fit_sites

        factors = self.rows * stds[:, None]
        covariances = factors @ np.swapaxes(factors, 1, 2)
        diagonal = np.einsum("mjj->mj", covariances)  # a view
        diagonal += JITTER * diagonal.max(axis=1, keepdims=True)
        settings = self.codes, self.n_classes, self.noise_std, MAX_SWEEPS, tolerance, start
        sites = fit_sites(covariances, *settings)
        return [
            Component(*parts, parts[2].log_evidence if parts[2] and parts[2].converged else -np.inf)
            for parts in zip(stds, factors, sites, strict=True)
        ]


class Component(NamedTuple):
    """One component of a mixture, given the labels.

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

    def draws(
        self, rng: np.random.Generator, n: int
    ) -> tuple[Float[np.ndarray, "S K L"], Float[np.ndarray, "S J K"]]:
        """Return draws of the Gaussian: white coordinates of K fields, and these at the labels."""
        from graphuq.inference.nested_sites import draw_shifts

        white = rng.normal(size=(n, self.sites.weights.shape[1], self.factor.shape[1]))
        before = np.swapaxes(white @ self.factor.T, 1, 2)
        shifts = draw_shifts(self.sites, rng, before)
        white += np.swapaxes(shifts, 1, 2) @ self.factor
        return white, np.swapaxes(white @ self.factor.T, 1, 2)

    def log_sites(self, u: Float[np.ndarray, "S J K"]) -> Float[np.ndarray, " S"]:
        """Return the log of all sites, scaled so that their prior mean is the evidence."""
        w, flat = self.sites.weights, u.reshape(len(u), -1)
        mean = np.einsum("jk,sjk->sj", w, u)
        quadratic = flat**2 @ w.ravel() - mean**2 @ (1 / w.sum(axis=1))
        logs = flat @ self.sites.pull.ravel() - 0.5 * quadratic
        return np.asarray(logs + self.log_evidence - self.sites.log_normalizer)


def require_any(log_weights: Float[np.ndarray, " M"]) -> None:
    """Raise `InvalidInput` if all log weights are −inf."""
    if not np.isfinite(log_weights).any():
        raise InvalidInput(
            "prior",
            "expectation propagation converged for none of the components",
            "use larger scales, or another prior",
        )
