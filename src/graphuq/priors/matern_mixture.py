"""Finite mixture of Matérn priors of different smoothness and scale."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from graphuq.distributions import Hyperparameter, is_learnt, parameter
from graphuq.errors import IncompatibleParts, require
from graphuq.priors.base import Modes, Prior, SpectralStd
from graphuq.utils.arrays import Array, array_namespace


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in np.atleast_1d(np.asarray(values, dtype=float)))


class MaternMixture(Prior):
    r"""Mixture of M priors ``s_j² = σ_m² κ_m (λ_j + τ_m²)^{−α_m}``, one of which is the true one.

    Each component is a `Matern` prior, κ_m as there, whose variance of u is σ_m² on average over
    the nodes. The number m of the component is a learnt hyperparameter: its posterior says how
    smooth the labels are and how much the graph tells about them. The likelihood then needs no
    learnt noise, since only σ_m/γ matters.

    Parameters
    ----------
    tau, alpha, scale : sequence of float, length M
        τ_m > 0, α_m > 0 and σ_m > 0 of each component.
    with_constant : sequence of bool, length M
        Whether null vectors are part of the component, with the variance of λ = 0. Without, they
        are left out; on a disconnected graph they have the variance of the smoothest other mode.
    model : int or Distribution, default 0
        Number m of the component, from 0, or its distribution, such as `graphuq.Categorical`.
    on_features : sequence of bool, length M, optional
        Whether the component is a random quadratic function of the features instead: the columns
        that `graphuq.with_feature_columns` adds to a spectrum have equal variances, and
        eigenvectors none. Its τ, α and constant have no meaning. By default none is.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> spectrum = gq.laplacian_spectrum(graph)
    >>> prior = gq.priors.MaternMixture([0.2, 1.0], [4, 2], scale=[3, 1], with_constant=[0, 1],
    ...                                 model=gq.Categorical([0.5, 0.5]))
    >>> sorted(prior.learnt)
    ['model']
    >>> round(float((prior.component(0).spectral_std(spectrum).modes ** 2).sum()), 4)
    81.0
    """

    tau: tuple[float, ...] = eqx.field(converter=_numbers, static=True)
    alpha: tuple[float, ...] = eqx.field(converter=_numbers, static=True)
    scale: tuple[float, ...] = eqx.field(converter=_numbers, static=True)
    with_constant: tuple[float, ...] = eqx.field(converter=_numbers, static=True)
    model: Hyperparameter = parameter(0)
    on_features: tuple[float, ...] = eqx.field(default=(), converter=_numbers, static=True)
    is_mixture: ClassVar[bool] = True

    def __check_init__(self) -> None:
        for name in ("tau", "alpha", "scale", "with_constant", "on_features"):
            values = self._on_features if name == "on_features" else getattr(self, name)
            require(
                len(values) == len(self.tau) > 0,
                name,
                f"{len(values)} values beside {len(self.tau)} of tau",
                "give one value for each component",
            )
            require(
                name in ("with_constant", "on_features") or min(values) > 0,
                name,
                f"{min(values)!r} is not positive",
                "use positive numbers",
            )
        super().__check_init__()
        last = self.model.support[1] if is_learnt(self.model) else self.model
        require(
            0 <= last < len(self.tau),
            "model",
            f"{self.model!r} beside {len(self.tau)} components",
            "use one number from 0 for each component",
        )

    @property
    def _on_features(self) -> tuple[float, ...]:
        return self.on_features or (0.0,) * len(self.tau)

    @property
    def n_components(self) -> int:
        """Number of components M."""
        return len(self.tau)

    @property
    def log_probabilities(self) -> Float[np.ndarray, " M"]:
        """Log prior probability of each component."""
        if not is_learnt(self.model):
            return np.where(np.arange(self.n_components) == self.model, 0.0, -np.inf)
        with np.errstate(divide="ignore"):
            return np.asarray(self.model.frozen.logpmf(np.arange(self.n_components)))

    def component(self, model: int) -> "MaternMixture":
        """Return the prior of one component, without anything learnt."""
        return dataclasses.replace(self, model=int(model))

    def component_std(self, modes: Modes) -> Float[np.ndarray, "M L"]:
        """Return the standard deviations of the modes in each component, without a tail.

        They are those of `std_of`, for all components at once.
        """
        lists = self.tau, self.alpha, self.scale, self.with_constant, self._on_features
        tau, alpha, scale, constant, on_features = (np.array(one)[:, None] for one in lists)
        eigenvalues, null = modes.eigenvalues, modes.eigenvalues == 0
        without = null & (constant == 0)
        at = np.where(without, eigenvalues[~null].min(), eigenvalues)
        logs = np.where(
            modes.present & ~(without & (null.sum() == 1)), -alpha * np.log(at + tau**2), -np.inf
        )
        logs = np.where(on_features > 0, np.where(np.isinf(eigenvalues), 0.0, -np.inf), logs)
        relative = np.exp((logs - logs.max(axis=1, keepdims=True)) / 2)
        energy = np.array([squares @ modes.energy for squares in relative**2])[:, None]
        return np.asarray(scale * (np.sqrt(modes.n_nodes / energy) * relative))

    def named_draws(self, draws: dict[str, Any]) -> dict[str, Any]:
        """Return tau, alpha, scale, with_constant and on_features of the component of each draw.

        Where a component is a function of the features, tau and alpha are NaN. Without any such
        component on_features is left out.
        """
        if "model" not in draws:
            return draws
        number = np.asarray(draws["model"]).astype(int)
        of_features = np.asarray(self._on_features)[number] > 0
        found = {
            "tau": np.where(of_features, np.nan, np.asarray(self.tau)[number]),
            "alpha": np.where(of_features, np.nan, np.asarray(self.alpha)[number]),
            "scale": np.asarray(self.scale)[number],
            "with_constant": np.asarray(self.with_constant)[number] > 0,
        }
        if any(self.on_features):
            found["on_features"] = of_features
        return {name: value for name, value in draws.items() if name != "model"} | found

    @property
    def frees_null_vectors(self) -> bool:
        """True: a component with the constant gives it the variance of λ = 0."""
        return True

    def modes(self, spectrum: Any) -> Modes:
        """Return eigenvalues and energies; all columns count as present.

        Raises
        ------
        IncompatibleParts
            If a component is a function of features that the spectrum lacks, and as `Prior.modes`.
        """
        modes = super().modes(spectrum)
        if any(self.on_features) and not spectrum.n_feature_columns:
            raise IncompatibleParts(
                f"{self} has components on features, and {spectrum} has no columns of features; "
                "add them with graphuq.with_feature_columns, or leave on_features out"
            )
        values = np.where(np.isinf(spectrum.eigenvalues), np.inf, modes.eigenvalues)
        present = np.ones(len(values), bool)
        return dataclasses.replace(modes, eigenvalues=values, present=present)

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−α log(λ + τ²)`` of the component ``model``; on features 0 at λ = ∞ only."""
        xp = array_namespace(eigenvalues)
        smoothest = xp.min(xp.where(eigenvalues > 0, eigenvalues, xp.inf))
        null = (eigenvalues == 0) & (self._of_model(xp, self.with_constant) == 0)
        at = xp.where(null, smoothest, eigenvalues)
        on_graph = -self._of_model(xp, self.alpha) * xp.log(at + self._of_model(xp, self.tau) ** 2)
        on_features = xp.where(xp.isinf(eigenvalues), 0.0, -xp.inf)
        return xp.where(self._of_model(xp, self._on_features) > 0, on_features, on_graph)

    def modes_included(self, modes: Modes) -> Bool[Array, " L"]:
        """Return which columns are part of the component.

        They are eigenvectors or columns of features. Without the constant, the null vector of a
        connected graph is none of them.
        """
        xp = array_namespace(modes.eigenvalues)
        null = modes.eigenvalues == 0
        left_out = (xp.sum(null) == 1) & (self._of_model(xp, self.with_constant) == 0)
        of_features = self._of_model(xp, self._on_features) > 0
        return modes.present & ~(null & left_out) & (xp.isinf(modes.eigenvalues) == of_features)

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Return log standard deviations, scaled so that ``E|u|² = σ² N``."""
        xp = array_namespace(modes.eigenvalues)
        std, shift = super().log_std_of(modes), xp.log(self._of_model(xp, self.scale))
        included = self.modes_included(modes)
        return SpectralStd(xp.where(included, std.modes + shift, 0.0), std.tail + shift)

    def _of_model(self, xp: Any, values: tuple[float, ...]) -> Any:
        """Return the value of the component ``model``, whose number may be traced."""
        return xp.asarray(values)[xp.asarray(self.model).astype(int)]

    def __repr__(self) -> str:
        if is_learnt(self.model):
            return f"MaternMixture({self.n_components} components)"
        of = " on features" if self._on_features[int(self.model)] else ""
        return f"MaternMixture(component {int(self.model)} of {self.n_components}{of})"
