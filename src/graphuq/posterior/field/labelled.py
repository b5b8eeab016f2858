r"""Gaussian field at the labelled nodes in white coordinates, and elsewhere given its values there.

With ``d = s² − s̄²`` the prior covariance is ``G = Q diag(d) Qᵀ + s̄² I``, times `node_scale` on
both sides, which the formulas below leave out. The likelihood depends on ``u_L`` only, so a chain
needs no more than a square root of ``G_LL``. Given ``u_L``, all other values are Gaussian, with a
variance that does not depend on ``u_L``. See docs/theory/posterior.md, "The chain has at most as
many dimensions as there are labels" and "All other nodes in closed form".

    u_L      = F x,  x white                             `LowRankField`, dimension min(J, ℓ)
             = s̄ x + V (√t − s̄)(Vᵀ x)                   `TailField`, dimension J
    E[u | x] = Q H c(x)                                  c(x) = x, or Vᵀ x
    Var[u_j] = s̄² + q_jᵀ diag(d) q_j − |Hᵀ q_j|²
"""

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.posterior.field.base import Field
from graphuq.posterior.field.conditioning import FieldMoments, condition_with_floor
from graphuq.priors import SpectralStd
from graphuq.spectrum import CovarianceColumns, SpectralBasis
from graphuq.utils.arrays import Array, array_namespace, solve_lower
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

RANK_TOLERANCE = 1e-12  # relative size of a standard deviation below which a direction is empty


class LabelledField(Field):
    """Field that is sampled at the labelled nodes only and is known in closed form elsewhere.

    Attributes
    ----------
    coefficient_map : array, shape (L, r)
        H: the mean coefficients of the series are ``H c(x)``.
    mode_variance : array, shape (L,)
        ``d = s² − s̄²``.
    tail_std : float
        s̄.
    """

    if TYPE_CHECKING:  # fields of each subclass

        @property
        def coefficient_map(self) -> Float[Array, "L r"]:
            """Map H of the coordinates to coefficients."""

        @property
        def mode_variance(self) -> Float[Array, " L"]:
            """Variances d of the modes beyond the tail."""

        @property
        def tail_std(self) -> float:
            """Standard deviation s̄ of the tail."""

    def without_weights(
        self, values: Float[np.ndarray, "j *K"], at: np.ndarray
    ) -> Float[np.ndarray, "j *K"]:
        """Return u at some labelled nodes, from ``√w u`` that the likelihood has been given."""
        return values

    @abstractmethod
    def seen(self, white: Float[Array, "*S n"]) -> Float[Array, "*S r"]:
        """Return ``c(x)``, the part of the white coordinates that unlabelled nodes depend on."""

    @abstractmethod
    def white(self, u: Float[Array, " J"], seen: Float[Array, " r"]) -> Float[Array, " n"]:
        """Return the white coordinates of a field, from ``u_L`` and ``c(x)``."""

    @property
    @abstractmethod
    def labelled_loadings(self) -> Float[Array, "J r"] | None:
        """Matrix of the map ``c(x) → u_L``, or None if ``u_L`` depends on more than ``c(x)``."""

    @abstractmethod
    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> FieldMoments:
        """Return the field given sites of precision τ (of any sign) and shift ν."""

    def to_dataset(self) -> "xr.Dataset":
        """Return the fields as arrays, each with dimensions of its own, and the class name."""
        require_extra("files")
        import xarray as xr

        stored = xr.Dataset(attrs={"class": type(self).__name__})
        for entry in dataclasses.fields(self):
            value = np.asarray(getattr(self, entry.name), dtype=np.float64)
            dims = [f"field_{entry.name}_{axis}" for axis in range(value.ndim)]
            stored[entry.name] = xr.DataArray(value, dims=dims)
        return stored

    @classmethod
    def from_dataset(cls, stored: "xr.Dataset") -> "LabelledField":
        """Return the field of this class that `to_dataset` took apart."""
        arrays = {str(name): array.to_numpy() for name, array in stored.items()}
        values: dict[str, Any] = {n: a if a.ndim else float(a) for n, a in arrays.items()}
        return cls(**values)

    def mean_coefficients(self, white: Float[Array, "*S n"]) -> Float[Array, "*S L"]:
        """Return ``E[coefficients | x]``.

        Rows of Q times this are the mean field at unlabelled nodes.
        """
        return self.seen(white) @ self.coefficient_map.T

    def loadings(self, rows: Float[np.ndarray, "B L"]) -> Float[np.ndarray, "B r"]:
        """Return rows of Q H; the mean field at nodes is these times `seen`."""
        return rows @ np.asarray(self.coefficient_map)

    def conditional_std(
        self, rows: Float[np.ndarray, "B L"], loadings: Float[np.ndarray, "B r"] | None = None
    ) -> Float[np.ndarray, " B"]:
        """Return the standard deviation of u given ``u_L``, at unlabelled nodes.

        Parameters
        ----------
        rows : array, shape (B, L)
            Rows of Q of the nodes.
        loadings : array, shape (B, r), optional
            Rows of Q H; computed if not given.
        """
        if self.tail_std == 0.0 and np.count_nonzero(self.mode_variance) == len(
            self.coefficient_map.T
        ):
            return np.zeros(len(rows))  # as many labels as modes: they determine every node
        prior = self.tail_std**2 + rows**2 @ self.mode_variance
        if loadings is None:
            loadings = self.loadings(rows)
        variance = np.asarray(prior - (loadings**2).sum(axis=1))
        # A difference this small is rounding error: ``u_L`` determines the node.
        variance[variance < RANK_TOLERANCE * prior] = 0.0
        return np.sqrt(variance)


class LowRankField(LabelledField):
    """Field ``u_L = F x`` with F of shape (J, r).

    With weights of labels, F has been multiplied by their roots, ``root_weights``.
    """

    is_low_rank: ClassVar[bool] = True
    factor: Float[Array, "J r"]
    coefficient_map: Float[Array, "L r"]
    mode_variance: Float[Array, " L"]
    tail_std: float
    root_weights: Float[Array, " J"] | float = 1.0

    def weighted(self, root_weights: Float[np.ndarray, " J"]) -> "LowRankField":
        """Return the field whose values at the labelled nodes are ``√w u``."""
        factor = root_weights[:, None] * self.factor
        return dataclasses.replace(self, factor=factor, root_weights=root_weights)

    def without_weights(
        self, values: Float[np.ndarray, "j *K"], at: np.ndarray
    ) -> Float[np.ndarray, "j *K"]:
        """Return u at some labelled nodes, from ``√w u`` that the likelihood has been given."""
        if np.ndim(self.root_weights) == 0:
            return values
        roots = np.asarray(self.root_weights)[at]
        return np.asarray(values / roots.reshape(-1, *[1] * (values.ndim - 1)))

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return int(self.factor.shape[1])

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Return the field ``u_L`` at the labelled nodes."""
        return self.factor @ white

    def matrix(self) -> Float[Array, "J n"]:
        """Return the stored factor F."""
        return self.factor

    def seen(self, white: Float[Array, "*S n"]) -> Float[Array, "*S r"]:
        """Return all white coordinates."""
        return white

    def white(self, u: Float[Array, " J"], seen: Float[Array, " r"]) -> Float[Array, " n"]:
        """Return ``c(x)``, which is all of x."""
        return seen

    @property
    def labelled_loadings(self) -> Float[Array, "J r"]:
        """The factor F, without weights."""
        roots: Any = self.root_weights
        return self.factor if np.ndim(roots) == 0 else self.factor / roots[:, None]

    def rotate(self, rotation: Float[np.ndarray, "r r"]) -> "LowRankField":
        """Return the field in coordinates y with ``x = rotation y``, which are white as well."""
        return LowRankField(
            factor=self.factor @ rotation,
            coefficient_map=self.coefficient_map @ rotation,
            mode_variance=self.mode_variance,
            tail_std=self.tail_std,
            root_weights=self.root_weights,
        )

    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> FieldMoments:
        """Return the field given sites, by the r×r Cholesky factor of ``I + Fᵀ diag(τ) F``."""
        xp, factor = array_namespace(precision), self.factor
        inner = xp.eye(self.dimension) + factor.T @ (precision[:, None] * factor)
        lower = xp.linalg.cholesky(inner)
        root = solve_lower(lower, factor.T)  # Σ_L = rootᵀ root
        whitened = root @ shift
        inverse = solve_lower(lower, xp.eye(self.dimension))
        return FieldMoments(
            mean=root.T @ whitened,
            variance=(root**2).sum(axis=0),
            white_mean=inverse.T @ whitened,
            white_covariance=inverse.T @ inverse,
            log_normalizer=0.5 * whitened @ whitened - xp.log(xp.diag(lower)).sum(),
        )


class TailField(LabelledField):
    """Field with a tail and more labels than modes.

    ``u_L = s̄ x + V (√t − s̄)(Vᵀ x)``, times the node scale.
    """

    basis: Float[Array, "J r"]  # V, orthonormal columns
    stretch: Float[Array, " r"]  # √t − s̄
    scale: Float[Array, " J"]
    coefficient_map: Float[Array, "L r"]
    mode_variance: Float[Array, " L"]
    tail_std: float

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return int(self.basis.shape[0])

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Return the field ``u_L`` at the labelled nodes."""
        return self.scale * (
            self.tail_std * white + self.basis @ (self.stretch * (white @ self.basis))
        )

    def matrix(self) -> Float[Array, "J n"]:
        """Return F, of J² numbers."""
        tail = array_namespace(self.basis).diag(self.scale * self.tail_std)
        return tail + (self.scale[:, None] * self.basis * self.stretch) @ self.basis.T

    def seen(self, white: Float[Array, "*S n"]) -> Float[Array, "*S r"]:
        """Return ``Vᵀ x``."""
        return white @ self.basis

    def white(self, u: Float[Array, " J"], seen: Float[Array, " r"]) -> Float[Array, " n"]:
        """Return ``(I − V Vᵀ) u / s̄ + V c(x)``, with u divided by the node scale."""
        unscaled = u / self.scale
        rest = unscaled - self.basis @ (unscaled @ self.basis)
        return rest / self.tail_std + self.basis @ seen

    @property
    def labelled_loadings(self) -> None:
        """Not available (None): the tail at a labelled node is not a function of ``c(x)``."""
        return None

    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> FieldMoments:
        """Return the field given sites, in r dimensions; see `condition_with_floor`.

        ``w = u / scale`` has covariance ``s̄² I + V (t − s̄²) Vᵀ``.
        """
        xp = array_namespace(precision)
        floor, basis, scale = self.tail_std**2, self.basis, self.scale
        t = xp.maximum((self.stretch + self.tail_std) ** 2, RANK_TOLERANCE * floor)
        steps = condition_with_floor(basis, t - floor, floor, precision * scale**2, shift * scale)
        r = basis.T @ (basis / steps.floor_factor[:, None])
        projected = floor * r + r @ steps.inner @ r  # Vᵀ Σ V
        return steps.field._replace(
            mean=scale * steps.field.mean,
            variance=scale**2 * steps.field.variance,
            white_mean=(basis.T @ steps.field.mean) / xp.sqrt(t),
            white_covariance=(projected + projected.T) / (2 * xp.sqrt(t[:, None] * t[None, :])),
        )


def series_field(spectrum: SpectralBasis, std: SpectralStd) -> LowRankField:
    """Return the field at all nodes, ``u = Q (s ξ)``, in the white coordinates ξ of the series.

    Modes without variance are left out, and so is a tail.
    """
    kept = np.flatnonzero(std.modes > 0)
    return LowRankField(
        factor=spectrum.node_scale[:, None] * spectrum.basis[:, kept] * std.modes[kept],
        coefficient_map=np.diag(std.modes)[:, kept],
        mode_variance=std.modes**2,
        tail_std=0.0,
    )


def columns_field(columns: CovarianceColumns) -> LowRankField:
    """Return the field of `CovarianceColumns`: ``E[u | x] = B x`` and a deviation of each node."""
    n_labels = len(columns.labelled)
    return LowRankField(
        factor=columns.factor,
        coefficient_map=np.eye(n_labels + 1, n_labels),
        mode_variance=np.ones(n_labels + 1),
        tail_std=0.0,
    )


def labelled_field(
    spectrum: SpectralBasis, std: SpectralStd, labelled: np.ndarray
) -> LabelledField:
    """Return the field at the labelled nodes, by a square root of its prior covariance there.

    Parameters
    ----------
    spectrum : Spectrum
    std : SpectralStd
    labelled : numpy.ndarray of int, shape (J,)
    """
    rows = spectrum.basis[labelled]
    scale = spectrum.node_scale[labelled]
    if std.tail == 0.0:
        return _projected_field(rows, scale, std)
    return _field_with_tail(rows, scale, std)


def _projected_field(
    rows: Float[np.ndarray, "J L"], scale: Float[np.ndarray, " J"], std: SpectralStd
) -> LowRankField:
    """Return the field without a tail.

    ``A = Q_L diag(s) = U Σ Vᵀ``, ``F = U Σ``, ``H = diag(s) V``.
    """
    left, sigma, right = np.linalg.svd(rows * std.modes, full_matrices=False)
    kept = sigma > RANK_TOLERANCE * sigma.max()
    return LowRankField(
        factor=scale[:, None] * left[:, kept] * sigma[kept],
        coefficient_map=std.modes[:, None] * right[kept].T,
        mode_variance=std.modes**2,
        tail_std=0.0,
    )


def _field_with_tail(
    rows: Float[np.ndarray, "J L"], scale: Float[np.ndarray, " J"], std: SpectralStd
) -> LabelledField:
    """Return the field with a tail.

    ``Q_L = V Σ Wᵀ`` turns ``G_LL`` into an r×r matrix T on span V and ``s̄² I`` off it:
    ``T = Σ Wᵀ diag(d) W Σ + s̄² I = Y t Yᵀ``. V is rotated by Y, and
    ``H = diag(d) W Σ Y t^{-1/2}`` since ``E[coefficients | u_L] = diag(d) Q_Lᵀ G_LL^{-1} u_L``.
    """
    mode_variance = std.modes**2 - std.tail**2
    left, sigma, right = np.linalg.svd(rows, full_matrices=False)
    turned = right.T * sigma
    t, y = np.linalg.eigh(
        turned.T @ (mode_variance[:, None] * turned) + std.tail**2 * np.eye(len(sigma))
    )
    kept = t > RANK_TOLERANCE**2 * t.max()
    t, y = np.maximum(t, 0.0), y
    inverse_root = np.where(kept, 1 / np.sqrt(np.where(kept, t, 1.0)), 0.0)
    basis = left @ y
    coefficient_map = mode_variance[:, None] * (turned @ y) * inverse_root
    if len(rows) <= rows.shape[1]:  # V is square, so x' = Vᵀ x is white and u_L = V √t x'
        return LowRankField(
            factor=scale[:, None] * basis * np.sqrt(t),
            coefficient_map=coefficient_map,
            mode_variance=mode_variance,
            tail_std=std.tail,
        )
    return TailField(
        basis=basis,
        stretch=np.sqrt(t) - std.tail,
        scale=scale,
        coefficient_map=coefficient_map,
        mode_variance=mode_variance,
        tail_std=std.tail,
    )
