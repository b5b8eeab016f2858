"""Probit posterior with a `RandomSeries` prior, in the form that `ReversibleJump` samples.

It is in units of the noise: with f = u/γ, ``y = sign(f + ε)`` and coefficients
``g ~ N(0, 1/(c μ))``, ``μ = (λ + N^{−2})^q``. Draws of c are returned in the user's units of u.
"""

from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from graphuq.distributions import is_learnt
from graphuq.errors import IncompatibleParts
from graphuq.likelihoods import Likelihood
from graphuq.priors import Prior, RandomSeries
from graphuq.spectrum import CovarianceColumns, SpectralBasis
from graphuq.utils.part import Part


class ProbitSeries(Part):
    """Labels, eigenpairs and the distributions of the scale c and the truncation k.

    Attributes
    ----------
    eigenvectors : numpy.ndarray or ProductBasis, shape (N, L)
    precisions : numpy.ndarray, shape (L,)
        μ of each mode; the prior precision of its coefficient is c μ.
    labelled : numpy.ndarray of int, shape (J,)
    labels : numpy.ndarray of ±1, shape (J,)
    noise_std : float
        γ, the unit of the field.
    scale, truncation : float or Distribution
        c and k, in the user's units of u.
    """

    eigenvectors: Any
    precisions: Float[np.ndarray, " L"]
    labelled: Int[np.ndarray, " J"]
    labels: Float[np.ndarray, " J"]
    noise_std: float
    scale: Any
    truncation: Any

    @staticmethod
    def of(
        spectrum: SpectralBasis | CovarianceColumns,
        prior: Prior,
        likelihood: Likelihood,
        labelled: Int[np.ndarray, " J"],
        labels: Float[np.ndarray, " J"],
    ) -> "ProbitSeries":
        """Make the posterior that the sampler needs.

        Raises
        ------
        IncompatibleParts
            If the model is not a `RandomSeries` of known exponent with a binary probit of known
            noise, a number or gamma distribution of c, and a spectrum without tail and with
            orthonormal eigenvectors.
        """
        series = cast(RandomSeries, prior)
        if not prior.is_random_series or is_learnt(series.exponent):
            raise IncompatibleParts(
                f"ReversibleJump needs a RandomSeries of known exponent, and not {prior}; use "
                "gq.priors.RandomSeries(), or MetropolisWithinGibbs"
            )
        noise_std = likelihood.latent_noise_std
        if noise_std is None or likelihood.is_multiclass or likelihood.learnt:
            raise IncompatibleParts(
                f"ReversibleJump needs a binary probit of known noise, and not {likelihood}; use "
                "Probit(1.0), or MetropolisWithinGibbs"
            )
        if is_learnt(series.scale) and series.scale.name != "gamma":
            raise IncompatibleParts(
                f"ReversibleJump needs a gamma distribution of the scale, and not {series.scale}; "
                "use gq.Gamma, or MetropolisWithinGibbs"
            )
        if not spectrum.has_eigenpairs:
            raise IncompatibleParts(
                "ReversibleJump needs eigenpairs; use laplacian_spectrum in place of the Laplacian"
            )
        if spectrum.tail_eigenvalue is not None:
            raise IncompatibleParts(
                "ReversibleJump samples a series without tail; compute the spectrum with "
                "tail_eigenvalue=False"
            )
        if np.any(spectrum.node_scale != 1.0):
            raise IncompatibleParts(
                "ReversibleJump needs orthonormal eigenvectors, which the random-walk Laplacian "
                "lacks; use laplacian='unnormalized'"
            )
        modes = prior.modes(spectrum)
        n_kept = int(np.count_nonzero(modes.present))
        return ProbitSeries(
            eigenvectors=spectrum.eigenvectors[:, :n_kept],
            precisions=modes.eigenvalues[:n_kept] ** series.exponent,
            labelled=labelled,
            labels=labels,
            noise_std=float(noise_std),
            scale=series.scale,
            truncation=series.truncation,
        )

    @property
    def n_modes(self) -> int:
        """Largest number of eigenvectors of a draw."""
        return len(self.precisions)

    @property
    def scale_prior(self) -> tuple[float, float] | None:
        """Shape and rate of the gamma distribution of c, in units of the noise, or None."""
        if not is_learnt(self.scale):
            return None
        shape, _, scale = self.scale.parameters
        return shape, 1 / (scale * self.noise_std**2)

    def log_prior_truncation(self) -> Float[np.ndarray, " L"]:
        """Return ``log p(k)`` for k = 1, …, ℓ."""
        if is_learnt(self.truncation):
            return self.truncation.log_probabilities(1 + np.arange(self.n_modes))
        values = np.full(self.n_modes, -np.inf)
        values[-1 if self.truncation is None else min(self.truncation, self.n_modes) - 1] = 0.0
        return values
