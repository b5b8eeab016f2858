"""A posterior some of whose hyperparameters are learnt, in white coordinates.

White are the coefficients ξ of the series, of several classes one class after the other, and after
them one coordinate w for each number that is learnt (`graphuq.distributions`):
``u_L = Q_L (s(θ(w)) ξ)``. A tail adds J coefficients (`graphuq.posterior.field.coefficients`):
``u_L = Q_L (s(θ) ξ) + C (s̄(θ) ξ')``. ξ and θ are independent a priori, the non-centred form
(Papaspiliopoulos, Roberts & Sköld 2007; Chen, (7) and (8)).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from graphuq.distributions import ContinuousQuantile, DiscreteQuantile, is_learnt
from graphuq.likelihoods import Likelihood
from graphuq.posterior.field import Field, TailAtLabelled
from graphuq.posterior.target import Target
from graphuq.priors import Modes, Prior, SpectralStd
from graphuq.spectrum import Spectrum
from graphuq.utils.arrays import Array


class Learnt(eqx.Module):
    """Where a hyperparameter lives among the white coordinates, and what it is there."""

    name: str = eqx.field(static=True)
    of_prior: bool = eqx.field(static=True)
    begin: int = eqx.field(static=True)
    size: int | None = eqx.field(static=True)  # None: a plain number, of one coordinate
    of_class: int | None = eqx.field(static=True)  # None: shared by all
    quantile: ContinuousQuantile | DiscreteQuantile

    @property
    def discrete(self) -> bool:
        """Whether it is an integer."""
        return isinstance(self.quantile, DiscreteQuantile)

    @property
    def coordinates(self) -> slice:
        """Its white coordinates."""
        return slice(self.begin, self.begin + (self.size or 1))

    def value(self, white: Float[Array, " n"]) -> Array:
        """θ at a point."""
        w = white[self.coordinates]
        return self.quantile(w[0] if self.size is None else w)


class HierarchicalTarget(eqx.Module):
    """Prior, likelihood and labels, with a distribution in place of some numbers.

    Attributes
    ----------
    rows : array, shape (J, L) or (J, L + J)
        Rows of the eigenvectors at the nodes that the likelihood sees; with a tail, after them C.
    scale : array, shape (J,)
        Node scale there.
    modes : Modes
    prior, likelihood
        NaN where a number is learnt.
    labels : array of ±1, or of codes of classes, shape (J,)
        0 where a likelihood that speaks of every node is given no label.
    learnt : tuple of Learnt
    n_fields : int
        One, or one for each class.
    """

    rows: Float[Array, "J L"]
    scale: Float[Array, " J"]
    modes: Modes
    prior: Prior
    likelihood: Likelihood
    labels: Float[Array, " J"]
    learnt: tuple[Learnt, ...]
    n_fields: int = eqx.field(static=True)

    @staticmethod
    def of(
        spectrum: Spectrum,
        prior: Prior,
        likelihood: Likelihood,
        nodes: np.ndarray,
        labels: np.ndarray,
        per_class: bool = False,
    ) -> "HierarchicalTarget":
        """Gather what the chain needs; ``per_class``: each class has a prior of its own.

        Raises
        ------
        IncompatibleParts
            If the spectrum has a tail, and there are too many such nodes.
        """
        modes = prior.modes(spectrum)
        n_kept = int(np.flatnonzero(modes.present)[-1]) + 1
        rows = spectrum.eigenvectors[nodes, :n_kept]
        if spectrum.tail_eigenvalue is not None:
            rows = np.hstack([rows, TailAtLabelled.of(rows).root])
        modes = Modes(
            modes.eigenvalues[:n_kept],
            modes.present[:n_kept],
            modes.energy[:n_kept],
            modes.tail,
            modes.tail_energy,
            modes.n_nodes,
        )
        n_fields = likelihood.n_fields
        learnt, begin = [], rows.shape[1] * n_fields
        for part in (prior, likelihood):
            for name, law in part.learnt.items():
                size = prior.n_values(name, n_kept) if part is prior else None
                quantile = DiscreteQuantile.of(law) if law.discrete else ContinuousQuantile.of(law)
                own = range(n_fields) if per_class and part is prior else [None]
                for k in own:
                    learnt.append(Learnt(name, part is prior, begin, size, k, quantile))
                    begin += size or 1
        return HierarchicalTarget(
            rows=rows,
            scale=spectrum.node_scale[nodes],
            modes=modes,
            prior=_filled(prior, dict.fromkeys(prior.learnt, np.nan)),
            likelihood=_filled(likelihood, dict.fromkeys(likelihood.learnt, np.nan)),
            labels=labels,
            learnt=tuple(learnt),
            n_fields=n_fields,
        )

    @property
    def n_modes(self) -> int:
        """Coefficients of the series, those of the tail at the labelled nodes included."""
        return int(self.rows.shape[1])

    @property
    def has_tail(self) -> bool:
        """Whether some are of the tail."""
        return self.n_modes > len(self.modes.eigenvalues)

    @property
    def n_coefficients(self) -> int:
        """White coordinates of the field, all classes together."""
        return self.n_modes * self.n_fields

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return self.n_coefficients + sum(part.size or 1 for part in self.learnt)

    def values(self, white: Float[Array, " n"]) -> dict[str, Array]:
        """The hyperparameters at a point; those of each class along the first axis."""
        values: dict[str, Any] = {}
        for part in self.learnt:
            values.setdefault(part.name, []).append(part.value(white))
        by_class = {part.name for part in self.learnt if part.of_class is not None}
        return {k: jnp.stack(v) if k in by_class else v[0] for k, v in values.items()}

    def prior_of(self, white: Float[Array, " n"], of_class: int | None = None) -> Prior:
        """The prior with the hyperparameters of a point: the shared one, or that of a class."""
        own = [p for p in self.learnt if p.of_prior and p.of_class == of_class]
        return _filled(self.prior, {p.name: p.value(white) for p in own})

    def likelihood_of(self, white: Float[Array, " n"]) -> Likelihood:
        """The likelihood with the hyperparameters of a point."""
        own = [p for p in self.learnt if not p.of_prior]
        return _filled(self.likelihood, {p.name: p.value(white) for p in own})

    def std(self, white: Float[Array, " n"]) -> Float[Array, "*K L"]:
        """Standard deviations of the series at a point, of each class where it has its own."""
        return self._by_class(lambda of_class: self._along(self._std_of(white, of_class)))

    def tail_std(self, white: Float[Array, " n"]) -> Float[Array, "*K"]:
        """s̄ at a point, of each class where it has its own."""
        return self._by_class(lambda of_class: jnp.asarray(self._std_of(white, of_class).tail))

    def log_std(self, white: Float[Array, " n"], of_class: int | None) -> Float[Array, " L"]:
        """Logarithms of the standard deviations, 0 of modes that take no part."""
        return self._along(self.prior_of(white, of_class).log_std_of(self.modes))

    def _std_of(self, white: Float[Array, " n"], of_class: int | None) -> SpectralStd:
        return self.prior_of(white, of_class).std_of(self.modes)

    def _along(self, std: SpectralStd) -> Float[Array, " L"]:
        """For each coefficient."""
        n_more = self.n_modes - len(self.modes.eigenvalues)
        modes = jnp.asarray(std.modes)
        return jnp.append(modes, jnp.full(n_more, std.tail, modes.dtype)) if n_more else modes

    def _by_class(self, of: Callable[[int | None], Array]) -> Array:
        if any(part.of_class is not None for part in self.learnt):
            return jnp.stack([of(k) for k in range(self.n_fields)])
        return of(None)

    def white_coefficients(self, white: Float[Array, " n"]) -> Float[Array, "*K L"]:
        """ξ, of several classes in rows."""
        xi = white[: self.n_coefficients]
        return xi.reshape(self.n_fields, self.n_modes) if self.n_fields > 1 else xi

    def coefficients(self, white: Float[Array, " n"]) -> Float[Array, " m"]:
        """``s(θ) ξ``: those of the eigenvectors and the tail, one class after the other."""
        xi = self.white_coefficients(white)
        return (jnp.broadcast_to(self.std(white), xi.shape) * xi).ravel()

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log likelihood of all labels, up to a constant."""
        return self.given(white).log_likelihood(white[: self.n_coefficients])

    def given(self, white: Float[Array, " n"]) -> Target:
        """The posterior of ξ given the hyperparameters of a point."""
        field = SeriesAtLabelled(self.rows, self.scale, self.std(white), self.n_fields)
        return Target(field, self.likelihood_of(white), self.labels)

    def start(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        """Hyperparameters from their prior, and a field near the labels given them."""
        key_values, key_field = jax.random.split(key)
        white = jax.random.normal(key_values, (self.dimension,), self.labels.dtype)
        return white.at[: self.n_coefficients].set(self.given(white).start(key_field))


class SeriesAtLabelled(Field):
    """The series at the labelled nodes, in its own white coefficients."""

    rows: Float[Array, "J L"]
    scale: Float[Array, " J"]
    std: Float[Array, "*K L"]
    classes: int = eqx.field(static=True)

    @property
    def n_fields(self) -> int:
        """One, or one for each class."""
        return self.classes

    @property
    def alike(self) -> bool:
        """Unless each class has a prior of its own."""
        return self.std.ndim == 1

    @property
    def dimension(self) -> int:
        """Number of coefficients, all classes together."""
        return int(self.rows.shape[1]) * self.n_fields

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Field ``u_L`` at the labelled nodes."""
        if self.n_fields == 1:
            return self.scale * (self.rows @ (self.std * white))
        coefficients = jnp.broadcast_to(self.std, (self.n_fields, self.rows.shape[1]))
        fields = self.rows @ (coefficients * white.reshape(coefficients.shape)).T
        return self.scale[:, None] * fields


def _filled(part: Any, values: dict[str, Any]) -> Any:
    """A part with some of its hyperparameters replaced, without checks: values may be traced."""
    if not values:
        return part
    return eqx.tree_at(
        lambda p: [getattr(p, name) for name in values],
        part,
        list(values.values()),
        is_leaf=lambda x: x is None or is_learnt(x),
    )
