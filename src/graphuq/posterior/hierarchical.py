"""Posterior with learnt hyperparameters, in white coordinates.

The white coordinates are the coefficients ξ of the series, those of several classes concatenated,
followed by one coordinate w for each learnt number (`graphuq.distributions`):
``u_L = Q_L (s(θ(w)) ξ)``. A tail adds J coefficients (`graphuq.posterior.field.coefficients`):
``u_L = Q_L (s(θ) ξ) + C (s̄(θ) ξ')``. ξ and θ are independent a priori, which is the non-centred
form (Papaspiliopoulos, Roberts & Sköld 2007; Chen, (7) and (8)).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.distributions import ContinuousQuantile, DiscreteQuantile
from graphuq.likelihoods import Likelihood
from graphuq.posterior.field import Field, TailAtLabelled
from graphuq.posterior.target import Target
from graphuq.priors import Modes, Prior, SpectralStd
from graphuq.spectrum import SpectralBasis
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.part import Part, part_field, unchecked


class Learnt(Part):
    """Learnt hyperparameter: its position among the white coordinates, and its distribution.

    Attributes
    ----------
    name : str
    of_prior : bool
        Whether it belongs to the prior; otherwise to the likelihood.
    begin : int
        Position of its first white coordinate.
    size : int or None
        Number of values, or None for a scalar, which has one coordinate.
    of_class : int or None
        Class that it belongs to, or None if all classes share it.
    quantile : ContinuousQuantile or DiscreteQuantile
        Map from a white coordinate to the value.
    """

    name: str = part_field(static=True)
    of_prior: bool = part_field(static=True)
    begin: int = part_field(static=True)
    size: int | None = part_field(static=True)
    of_class: int | None = part_field(static=True)
    quantile: ContinuousQuantile | DiscreteQuantile

    @property
    def discrete(self) -> bool:
        """Whether its values are integers."""
        return self.quantile.discrete

    @property
    def coordinates(self) -> slice:
        """Positions of its white coordinates."""
        return slice(self.begin, self.begin + (self.size or 1))

    def value(self, white: Float[Array, " n"]) -> Array:
        """Return θ at a point."""
        w = white[self.coordinates]
        return self.quantile(w[0] if self.size is None else w)


class HierarchicalTarget(Part):
    """Prior, likelihood and labels, with distributions in place of some hyperparameters.

    Attributes
    ----------
    rows : array, shape (J, L) or (J, L + J)
        Rows of the eigenvectors at the nodes with data; with a tail, followed by C.
    scale : array, shape (J,)
        Node scale at the same nodes.
    modes : Modes
    prior, likelihood
        Parts with NaN for each learnt hyperparameter.
    labels : array of ±1, or of codes of classes, shape (J,)
        At nodes without label, for a likelihood on all nodes, 0 or −1.
    learnt : tuple of Learnt
    n_fields : int
        Number of fields at a node: 1, or one for each class.
    """

    rows: Float[Array, "J L"]
    scale: Float[Array, " J"]
    modes: Modes
    prior: Prior
    likelihood: Likelihood
    labels: Float[Array, " J"]
    learnt: tuple[Learnt, ...]
    n_fields: int = part_field(static=True)

    @staticmethod
    def of(
        spectrum: SpectralBasis,
        prior: Prior,
        likelihood: Likelihood,
        nodes: np.ndarray,
        labels: np.ndarray,
        per_class: bool = False,
        scale: Float[np.ndarray, " J"] | None = None,
        modes: Modes | None = None,
    ) -> "HierarchicalTarget":
        """Make the target.

        Parameters
        ----------
        spectrum : Spectrum
        prior : Prior
        likelihood : Likelihood
        nodes : numpy.ndarray of int, shape (J,)
            Nodes with data: the labelled ones, or all.
        labels : numpy.ndarray, shape (J,)
        per_class : bool, default False
            Whether each class has prior hyperparameters of its own.
        scale : numpy.ndarray, shape (J,), optional
            Factor of u at these nodes; the node scale by default.
        modes : Modes, optional
            Those of the prior on the spectrum, if they are known.

        Raises
        ------
        IncompatibleParts
            If the spectrum has a tail and there are more than 2,000 nodes with data.
        """
        modes = prior.modes(spectrum) if modes is None else modes
        n_kept = int(np.flatnonzero(modes.present)[-1]) + 1
        rows = spectrum.basis[nodes, :n_kept]
        if spectrum.tail_eigenvalue is not None:
            rows = np.hstack([rows, TailAtLabelled.of(rows).root])
        modes = modes.first(n_kept)
        n_fields = likelihood.n_fields
        learnt, begin = [], rows.shape[1] * n_fields
        for part in (prior, likelihood):
            for name, distribution in part.learnt.items():
                size = prior.n_values(name, n_kept) if part is prior else None
                kind = DiscreteQuantile if distribution.discrete else ContinuousQuantile
                quantile = kind.of(distribution)
                classes = range(n_fields) if per_class and part is prior else [None]
                for k in classes:
                    learnt.append(Learnt(name, part is prior, begin, size, k, quantile))
                    begin += size or 1
        return HierarchicalTarget(
            rows=rows,
            scale=spectrum.node_scale[nodes] if scale is None else scale,
            modes=modes,
            prior=unchecked(prior, dict.fromkeys(prior.learnt, np.nan)),
            likelihood=unchecked(likelihood, dict.fromkeys(likelihood.learnt, np.nan)),
            labels=labels,
            learnt=tuple(learnt),
            n_fields=n_fields,
        )

    @property
    def n_modes(self) -> int:
        """Number of coefficients of a series, with those of the tail at the labelled nodes."""
        return int(self.rows.shape[1])

    @property
    def has_tail(self) -> bool:
        """Whether some coefficients belong to a tail."""
        return self.n_modes > len(self.modes.eigenvalues)

    @property
    def n_coefficients(self) -> int:
        """Number of white coordinates of the field, for all classes."""
        return self.n_modes * self.n_fields

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return self.n_coefficients + sum(part.size or 1 for part in self.learnt)

    def values(self, white: Float[Array, " n"]) -> dict[str, Array]:
        """Return the hyperparameters at a point, with those per class along the first axis."""
        values: dict[str, Any] = {}
        for part in self.learnt:
            values.setdefault(part.name, []).append(part.value(white))
        by_class = {part.name for part in self.learnt if part.of_class is not None}
        xp = array_namespace(white)
        return {k: xp.stack(v) if k in by_class else v[0] for k, v in values.items()}

    def prior_of(self, white: Float[Array, " n"], of_class: int | None = None) -> Prior:
        """Return the prior with the hyperparameters of a point, shared or of one class."""
        learnt = [p for p in self.learnt if p.of_prior and p.of_class == of_class]
        return unchecked(self.prior, {p.name: p.value(white) for p in learnt})

    def likelihood_of(self, white: Float[Array, " n"]) -> Likelihood:
        """Return the likelihood with the hyperparameters of a point."""
        learnt = [p for p in self.learnt if not p.of_prior]
        return unchecked(self.likelihood, {p.name: p.value(white) for p in learnt})

    def std(self, white: Float[Array, " n"]) -> Float[Array, "*K L"]:
        """Return the standard deviations of the series at a point, per class if they differ."""
        return self._by_class(lambda of_class: self._per_coefficient(self._std_of(white, of_class)))

    def tail_std(self, white: Float[Array, " n"]) -> Float[Array, "*K"]:
        """Return s̄ at a point, per class if they differ."""
        return self._by_class(
            lambda of_class: array_namespace(white).asarray(self._std_of(white, of_class).tail)
        )

    def log_std(self, white: Float[Array, " n"], of_class: int | None) -> Float[Array, " L"]:
        """Return the log standard deviations; 0 for modes that take no part."""
        return self._per_coefficient(self.prior_of(white, of_class).log_std_of(self.modes))

    def _std_of(self, white: Float[Array, " n"], of_class: int | None) -> SpectralStd:
        return self.prior_of(white, of_class).std_of(self.modes)

    def _per_coefficient(self, std: SpectralStd) -> Float[Array, " L"]:
        """Return a deviation for each coefficient, with those of the tail last."""
        n_more = self.n_modes - len(self.modes.eigenvalues)
        xp, modes = array_namespace(std.modes), std.modes
        return xp.append(modes, xp.full(n_more, std.tail, modes.dtype)) if n_more else modes

    def _by_class(self, of: Callable[[int | None], Array]) -> Array:
        if any(part.of_class is not None for part in self.learnt):
            first, *rest = (of(k) for k in range(self.n_fields))
            return array_namespace(first).stack([first, *rest])
        return of(None)

    def white_coefficients(self, white: Float[Array, " n"]) -> Float[Array, "*K L"]:
        """Return ξ; multiclass fields have one row per class."""
        xi = white[: self.n_coefficients]
        return xi.reshape(self.n_fields, self.n_modes) if self.n_fields > 1 else xi

    def coefficients(self, white: Float[Array, " n"]) -> Float[Array, " m"]:
        """Return ``s(θ) ξ`` of eigenvectors and tail, with the classes concatenated."""
        xi = self.white_coefficients(white)
        return (array_namespace(xi).broadcast_to(self.std(white), xi.shape) * xi).ravel()

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log likelihood of all labels, up to a constant."""
        return self.given(white).log_likelihood(white[: self.n_coefficients])

    def given(self, white: Float[Array, " n"]) -> Target:
        """Return the posterior of ξ given the hyperparameters of a point."""
        field = SeriesAtLabelled(self.rows, self.scale, self.std(white), self.n_fields)
        return Target(field, self.likelihood_of(white), self.labels)

    def start(self, key: Array) -> Float[Array, " n"]:
        """Draw hyperparameters from their prior, and a field near the labels given them."""
        from graphuq.utils.with_jax import jax

        key_values, key_field = jax.random.split(key)
        white = jax.random.normal(key_values, (self.dimension,), self.labels.dtype)
        return white.at[: self.n_coefficients].set(self.given(white).start(key_field))


class SeriesAtLabelled(Field):
    """Series at the labelled nodes, in its own white coefficients."""

    rows: Float[Array, "J L"]
    scale: Float[Array, " J"]
    std: Float[Array, "*K L"]
    classes: int = part_field(static=True)

    @property
    def n_fields(self) -> int:
        """Number of fields at a node: 1, or one for each class."""
        return self.classes

    @property
    def classes_share_prior(self) -> bool:
        """Whether the deviations are the same for all classes."""
        return self.std.ndim == 1

    @property
    def dimension(self) -> int:
        """Number of coefficients, for all classes."""
        return int(self.rows.shape[1]) * self.n_fields

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Return the field ``u_L`` at the labelled nodes."""
        if self.n_fields == 1:
            return self.scale * (self.rows @ (self.std * white))
        coefficients = array_namespace(white).broadcast_to(
            self.std, (self.n_fields, self.rows.shape[1])
        )
        fields = self.rows @ (coefficients * white.reshape(coefficients.shape)).T
        return self.scale[:, None] * fields
