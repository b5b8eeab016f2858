"""Noisy values of a probit at the labels, for one prior: their chain, and the field given them."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_ndtr

from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import double_precision


class NoisyValues:
    """Noisy values ``v = F x + γ ε`` of each class, with the labels that they must agree with.

    Parameters
    ----------
    factor : numpy.ndarray, shape (J, r)
        F, the map from the white coordinates x of a class to its field at the labels.
    noise_std : float
        γ > 0.
    labels : numpy.ndarray of int, shape (J,)
        Classes, from 0.
    n_classes : int
        K.
    one_field : bool
        Whether two classes share one field, which is positive for class 1.
    log_weights : numpy.ndarray, shape (J, K), optional
        Logarithm of the weight of each class as the label; by default labels are certain.
    """

    def __init__(
        self,
        factor: Float[np.ndarray, "J r"],
        noise_std: float,
        labels: Int[np.ndarray, " J"],
        n_classes: int,
        one_field: bool,
        log_weights: Float[np.ndarray, "J K"] | None = None,
    ) -> None:
        from graphuq.inference.collapsed_gibbs.sweeps import Values  # imports Numba

        self.factor, self.noise_std, self.one_field = factor, noise_std, one_field
        self.log_weights = log_weights
        self.n_rows = 1 if one_field else n_classes
        own = np.where(labels > 0, 0, -1) if one_field else labels
        covariance = factor @ factor.T
        covariance[np.diag_indices_from(covariance)] += noise_std**2
        self.std = np.sqrt(covariance.diagonal())
        self.values = Values.of(covariance, noise_std, own.astype(np.int64))
        self.gain = self.values.precision @ factor  # E[x | v] = gainᵀ v

    @staticmethod
    def of(posterior: Posterior) -> "NoisyValues":
        """Return those of a posterior with a probit of fixed noise and classes, soft or not."""
        likelihood: Any = posterior.likelihood
        field, noise_std = posterior.plain_target.field, likelihood.noise_std
        log_weights = None
        if likelihood.has_soft_labels:
            with np.errstate(divide="ignore"):
                log_weights = np.log(np.asarray(likelihood.probabilities))
        with double_precision():
            factor = np.asarray(field.one_class.matrix(), dtype=np.float64)
        several = posterior.likelihood.is_multiclass
        labels = np.asarray(posterior.labels)
        codes = (labels if several else labels > 0).astype(np.int64)
        return NoisyValues(
            factor, float(noise_std), codes, field.n_fields, not several, log_weights
        )

    def start(
        self, rng: np.random.Generator, fields: Float[np.ndarray, "R J"] | None = None
    ) -> Float[np.ndarray, "R J"]:
        """Return values that agree with the labels, near fields at the labels if there are any."""
        from graphuq.inference.collapsed_gibbs import sweeps

        noise = rng.normal(size=(self.n_rows, len(self.std)))
        values = noise * self.std if fields is None else fields + self.noise_std * noise
        return sweeps.agreeing(values, self.values.own)

    def run(
        self, rng: np.random.Generator, state: Float[np.ndarray, "R J"], n_kept: int, thin: int
    ) -> Float[np.ndarray, "S R J"]:
        """Return the values after each ``thin`` sweeps."""
        from graphuq.inference.collapsed_gibbs import soft_sweeps, sweeps

        if self.log_weights is not None:
            return soft_sweeps.run(rng, state, self.values, self.log_weights, n_kept, thin)
        return sweeps.run(rng, state, self.values, n_kept, thin)

    def noisy_given(
        self, rng: np.random.Generator, fields: Float[np.ndarray, "S R J"]
    ) -> Float[np.ndarray, "S R J"]:
        """Draw the noisy values given the fields of each draw, and the labels."""
        from graphuq.inference.collapsed_gibbs.noisy_given import noisy_given

        return noisy_given(rng, fields, self.values.own, self.noise_std)

    def white_given(
        self, rng: np.random.Generator, noisy: Float[np.ndarray, "S R J"]
    ) -> Float[np.ndarray, "S R r"]:
        """Draw the white coordinates of each class given its noisy values (Matheron's rule)."""
        white = rng.normal(size=(*noisy.shape[:2], self.factor.shape[1]))
        prior = white @ self.factor.T + self.noise_std * rng.normal(size=noisy.shape)
        return np.asarray(white + (noisy - prior) @ self.gain)

    def fields(self, white: Float[np.ndarray, "S R r"]) -> Float[np.ndarray, "S J *K"]:
        """Return the field at the labels in each draw, classes last."""
        fields: Any = white @ self.factor.T
        return fields[:, 0] if self.one_field else np.swapaxes(fields, 1, 2)

    def log_likelihood(self, u: Float[np.ndarray, "S J *K"]) -> Float[np.ndarray, " S"]:
        """Return the log probability of all labels, given the `fields` of each draw."""
        from graphuq.inference.collapsed_gibbs import soft_sweeps
        from graphuq.inference.collapsed_gibbs.sweeps import log_probabilities

        own = self.values.own
        if self.log_weights is not None:
            return soft_sweeps.log_probabilities(u, np.exp(self.log_weights), self.noise_std)
        if not self.one_field:
            return log_probabilities(u, own, self.noise_std)
        margins = np.where(own == 0, 1.0, -1.0) * u
        return np.asarray(log_ndtr(margins / self.noise_std).sum(axis=1))
