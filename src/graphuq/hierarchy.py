"""A posterior some of whose hyperparameters are learnt, in white coordinates.

White are the coefficients ξ of the series and, after them, one coordinate w for each number that is
learnt (`graphuq.hyperparameters`): ``u_L = Q_L (s(θ(w)) ξ)``. ξ and θ are independent a priori, the
non-centred form (Papaspiliopoulos, Roberts & Sköld 2007; Chen, (7) and (8)).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from graphuq.arrays import Array
from graphuq.errors import IncompatibleParts
from graphuq.field import LowRankField
from graphuq.hyperparameters import Quantile, Steps, is_learnt
from graphuq.likelihoods import Likelihood
from graphuq.priors import Modes, Prior
from graphuq.spectrum import Spectrum
from graphuq.target import Target


class Learnt(eqx.Module):
    """Where a hyperparameter lives among the white coordinates, and what it is there."""

    name: str = eqx.field(static=True)
    of_prior: bool = eqx.field(static=True)
    begin: int = eqx.field(static=True)
    size: int | None = eqx.field(static=True)  # None: a plain number, of one coordinate
    quantile: Quantile | Steps

    @property
    def discrete(self) -> bool:
        """Whether it is an integer."""
        return isinstance(self.quantile, Steps)

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
    rows : array, shape (J, L)
        Rows of the eigenvectors at the nodes that the likelihood sees.
    scale : array, shape (J,)
        Node scale there.
    modes : Modes
    prior, likelihood
        NaN where a number is learnt.
    labels : array of ±1, shape (J,)
        0 where a likelihood that speaks of every node is given no label.
    learnt : tuple of Learnt
    """

    rows: Float[Array, "J L"]
    scale: Float[Array, " J"]
    modes: Modes
    prior: Prior
    likelihood: Likelihood
    labels: Float[Array, " J"]
    learnt: tuple[Learnt, ...]

    @staticmethod
    def of(
        spectrum: Spectrum,
        prior: Prior,
        likelihood: Likelihood,
        nodes: np.ndarray,
        labels: np.ndarray,
    ) -> "HierarchicalTarget":
        """Gather what the chain needs.

        Raises
        ------
        IncompatibleParts
            If the spectrum has a tail.
        """
        if spectrum.tail is not None:
            raise IncompatibleParts(
                "hyperparameters can be learnt on a spectrum without a tail only; compute it with "
                "tail=False"
            )
        modes = prior.modes(spectrum)
        n_kept = int(np.flatnonzero(modes.present)[-1]) + 1
        modes = Modes(
            modes.eigenvalues[:n_kept],
            modes.present[:n_kept],
            modes.energy[:n_kept],
            None,
            0.0,
            modes.n_nodes,
        )
        learnt, begin = [], n_kept
        for part in (prior, likelihood):
            for name, law in part.learnt.items():
                size = prior.n_values(name, n_kept) if part is prior else None
                quantile = Steps.of(law) if law.discrete else Quantile.of(law)
                learnt.append(Learnt(name, part is prior, begin, size, quantile))
                begin += size or 1
        return HierarchicalTarget(
            rows=spectrum.eigenvectors[nodes, :n_kept],
            scale=spectrum.node_scale[nodes],
            modes=modes,
            prior=_filled(prior, dict.fromkeys(prior.learnt, np.nan)),
            likelihood=_filled(likelihood, dict.fromkeys(likelihood.learnt, np.nan)),
            labels=labels,
            learnt=tuple(learnt),
        )

    @property
    def n_modes(self) -> int:
        """Coefficients of the series."""
        return int(self.rows.shape[1])

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return self.n_modes + sum(part.size or 1 for part in self.learnt)

    def values(self, white: Float[Array, " n"]) -> dict[str, Array]:
        """The hyperparameters at a point."""
        return {part.name: part.value(white) for part in self.learnt}

    def parts(self, white: Float[Array, " n"]) -> tuple[Prior, Likelihood]:
        """Prior and likelihood with the hyperparameters of a point."""
        prior, likelihood = (
            _filled(part, {p.name: p.value(white) for p in self.learnt if p.of_prior == is_prior})
            for part, is_prior in ((self.prior, True), (self.likelihood, False))
        )
        return prior, likelihood

    def coefficients(self, white: Float[Array, " n"]) -> Float[Array, " L"]:
        """``s(θ) ξ``: those of the eigenvectors."""
        prior, _ = self.parts(white)
        result: Array = prior.std_of(self.modes).modes * white[: self.n_modes]
        return result

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log likelihood of all labels, up to a constant."""
        prior, likelihood = self.parts(white)
        coefficients = prior.std_of(self.modes).modes * white[: self.n_modes]
        return likelihood.log_prob(self.scale * (self.rows @ coefficients), self.labels).sum()

    def given(self, white: Float[Array, " n"]) -> Target:
        """The posterior of ξ given the hyperparameters of a point."""
        prior, likelihood = self.parts(white)
        std = prior.std_of(self.modes).modes
        field = LowRankField(
            factor=self.scale[:, None] * self.rows * std[None, :],
            coefficient_map=jnp.diag(std),
            mode_variance=std**2,
            tail_std=0.0,
        )
        return Target(field, likelihood, self.labels)

    def start(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        """Hyperparameters from their prior, and a field near the labels given them."""
        key_values, key_field = jax.random.split(key)
        white = jax.random.normal(key_values, (self.dimension,), self.labels.dtype)
        return white.at[: self.n_modes].set(self.given(white).start(key_field))


def coefficient_field(spectrum: Spectrum, nodes: np.ndarray, n_modes: int) -> LowRankField:
    """The series in its own coefficients, which are known in every draw; nothing is left open."""
    n_pairs = spectrum.n_eigenpairs
    return LowRankField(
        factor=spectrum.node_scale[nodes, None] * spectrum.eigenvectors[nodes, :n_modes],
        coefficient_map=np.eye(n_pairs, n_modes),
        mode_variance=np.zeros(n_pairs),
        tail_std=0.0,
    )


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
