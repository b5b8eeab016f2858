r"""The Gaussian field at the labelled nodes, in white coordinates, and the law of the rest.

With ``d = s² − s̄²`` the prior covariance is ``G = Q diag(d) Qᵀ + s̄² I`` (MATH §1), times
`node_scale` on both sides, left out of the formulas below. The likelihood sees ``u_L`` alone,
so the chain needs no more than a square root of ``G_LL``, and all the rest is Gaussian given
``u_L``, with a variance that does not depend on it:

    u_L      = F x,  x white                             `LowRankField`, dimension min(J, ℓ)
             = s̄ x + V (√t − s̄)(Vᵀ x)                   `TailField`, dimension J
    E[u | x] = Q H c(x)                                  c(x) = x, or Vᵀ x
    Var[u_j] = s̄² + q_jᵀ diag(d) q_j − |Hᵀ q_j|²
"""

import dataclasses
from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
import xarray as xr
from jaxtyping import Float

from graphuq.posterior.field.base import Field
from graphuq.priors import SpectralStd
from graphuq.spectrum import CovarianceColumns, Spectrum
from graphuq.utils.arrays import Array, array_namespace, solve_lower

RANK_TOLERANCE = 1e-12  # relative size of a standard deviation below which a direction is empty


class Conditioned(NamedTuple):
    """The field given Gaussian sites ``exp(ν u − τ u²/2)`` at the labelled nodes.

    Attributes
    ----------
    mean, variance : array, shape (J,)
        Of u at each labelled node.
    white_mean, white_covariance : array, shape (r,) and (r, r)
        Of the white coordinates that unlabelled nodes depend on.
    log_normalizer : array, shape ()
        Log of the prior mean of the product of the sites.
    """

    mean: Array
    variance: Array
    white_mean: Array
    white_covariance: Array
    log_normalizer: Array


class LabelledField(Field):
    """A field that is sampled at the labelled nodes only, in closed form elsewhere.

    Attributes
    ----------
    coefficient_map : array, shape (L, r)
        H: the mean coefficients of the series are ``H c(x)``.
    mode_variance : array, shape (L,)
        ``d = s² − s̄²``.
    tail_std : float
        s̄.
    """

    coefficient_map: eqx.AbstractVar[Float[Array, "L r"]]
    mode_variance: eqx.AbstractVar[Float[Array, " L"]]
    tail_std: eqx.AbstractVar[float]

    @abstractmethod
    def seen(self, white: Float[Array, "*S n"]) -> Float[Array, "*S r"]:
        """``c(x)``: the part of the white coordinates that unlabelled nodes depend on."""

    @abstractmethod
    def white(self, u: Float[Array, " J"], seen: Float[Array, " r"]) -> Float[Array, " n"]:
        """White coordinates of a field, from ``u_L`` and ``c(x)``."""

    @property
    @abstractmethod
    def labelled_loadings(self) -> Float[Array, "J r"] | None:
        """Matrix of ``c(x) → u_L``, where ``u_L`` depends on nothing else."""

    @abstractmethod
    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> Conditioned:
        """The field given sites of precision τ (of any sign) and shift ν."""

    def to_dataset(self) -> xr.Dataset:
        """Return the fields as arrays, each with dimensions of its own, and the class name."""
        stored = xr.Dataset(attrs={"class": type(self).__name__})
        for entry in dataclasses.fields(self):
            value = np.asarray(getattr(self, entry.name), dtype=np.float64)
            dims = [f"field_{entry.name}_{axis}" for axis in range(value.ndim)]
            stored[entry.name] = xr.DataArray(value, dims=dims)
        return stored

    @classmethod
    def from_dataset(cls, stored: xr.Dataset) -> "LabelledField":
        """Return the field of this class that `to_dataset` took apart."""
        arrays = {str(name): array.to_numpy() for name, array in stored.items()}
        values: dict[str, Any] = {n: a if a.ndim else float(a) for n, a in arrays.items()}
        return cls(**values)

    def mean_coefficients(self, white: Float[Array, "*S n"]) -> Float[Array, "*S L"]:
        """``E[coefficients | x]``: multiply by rows of Q for the mean field off the labels."""
        return self.seen(white) @ self.coefficient_map.T

    def loadings(self, rows: Float[np.ndarray, "B L"]) -> Float[np.ndarray, "B r"]:
        """Rows of Q H: the mean field at nodes is these times `seen`."""
        return rows @ np.asarray(self.coefficient_map)

    def conditional_std(
        self, rows: Float[np.ndarray, "B L"], loadings: Float[np.ndarray, "B r"] | None = None
    ) -> Float[np.ndarray, " B"]:
        """Standard deviation of u given ``u_L``, at unlabelled nodes with these rows of Q.

        ``loadings``, rows of Q H, are computed where they are not given.
        """
        if self.tail_std == 0.0 and np.count_nonzero(self.mode_variance) == len(
            self.coefficient_map.T
        ):
            return np.zeros(len(rows))  # as many labels as modes: they determine every node
        prior = self.tail_std**2 + rows**2 @ self.mode_variance
        if loadings is None:
            loadings = self.loadings(rows)
        variance = np.asarray(prior - (loadings**2).sum(axis=1))
        # What is left by cancellation is rounding, not variance: such a node is determined.
        variance[variance < RANK_TOLERANCE * prior] = 0.0
        return np.sqrt(variance)


class LowRankField(LabelledField):
    """``u_L = F x`` with F of shape (J, r)."""

    factor: Float[Array, "J r"]
    coefficient_map: Float[Array, "L r"]
    mode_variance: Float[Array, " L"]
    tail_std: float

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return int(self.factor.shape[1])

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """Field ``u_L`` at the labelled nodes."""
        return self.factor @ white

    def matrix(self) -> Float[Array, "J n"]:
        """Kept as such."""
        return self.factor

    def seen(self, white: Float[Array, "*S n"]) -> Float[Array, "*S r"]:
        """All of the white coordinates."""
        return white

    def white(self, u: Float[Array, " J"], seen: Float[Array, " r"]) -> Float[Array, " n"]:
        """``c(x)`` is all of x."""
        return seen

    @property
    def labelled_loadings(self) -> Float[Array, "J r"]:
        """F."""
        return self.factor

    def rotated(self, rotation: Float[np.ndarray, "r r"]) -> "LowRankField":
        """The same field in coordinates y with ``x = rotation y``, white as well."""
        return LowRankField(
            factor=self.factor @ rotation,
            coefficient_map=self.coefficient_map @ rotation,
            mode_variance=self.mode_variance,
            tail_std=self.tail_std,
        )

    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> Conditioned:
        """By the Cholesky factor of ``I + Fᵀ diag(τ) F``, r×r."""
        xp, factor = array_namespace(precision), self.factor
        inner = xp.eye(self.dimension) + factor.T @ (precision[:, None] * factor)
        lower = xp.linalg.cholesky(inner)
        root = solve_lower(lower, factor.T)  # Σ_L = rootᵀ root
        whitened = root @ shift
        inverse = solve_lower(lower, xp.eye(self.dimension))
        return Conditioned(
            mean=root.T @ whitened,
            variance=(root**2).sum(axis=0),
            white_mean=inverse.T @ whitened,
            white_covariance=inverse.T @ inverse,
            log_normalizer=0.5 * whitened @ whitened - xp.log(xp.diag(lower)).sum(),
        )


class TailField(LabelledField):
    """``u_L = s̄ x + V (√t − s̄)(Vᵀ x)`` times the node scale: a tail and more labels than modes."""

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
        """Field ``u_L`` at the labelled nodes."""
        return self.scale * (
            self.tail_std * white + self.basis @ (self.stretch * (white @ self.basis))
        )

    def matrix(self) -> Float[Array, "J n"]:
        """Of J² numbers."""
        tail = array_namespace(self.basis).diag(self.scale * self.tail_std)
        return tail + (self.scale[:, None] * self.basis * self.stretch) @ self.basis.T

    def seen(self, white: Float[Array, "*S n"]) -> Float[Array, "*S r"]:
        """``Vᵀ x``."""
        return white @ self.basis

    def white(self, u: Float[Array, " J"], seen: Float[Array, " r"]) -> Float[Array, " n"]:
        """``(I − V Vᵀ) u / s̄ + V c(x)``, u before scaling."""
        unscaled = u / self.scale
        rest = unscaled - self.basis @ (unscaled @ self.basis)
        return rest / self.tail_std + self.basis @ seen

    @property
    def labelled_loadings(self) -> None:
        """None: a labelled node's share of the tail is its own."""
        return None

    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> Conditioned:
        """By Woodbury's identity in r dimensions.

        With ``w = u / scale`` of covariance ``s̄² I + V (t − s̄²) Vᵀ``, A = 1/s̄² + τ and
        K = 1/s̄² − 1/t, the posterior covariance is ``(A − V K Vᵀ)⁻¹``.
        """
        xp = array_namespace(precision)
        tail_variance = self.tail_std**2
        t = xp.maximum((self.stretch + self.tail_std) ** 2, RANK_TOLERANCE * tail_variance)
        basis, scale = self.basis, self.scale
        inverse = 1 / (1 / tail_variance + precision * scale**2)  # A⁻¹
        k = 1 / tail_variance - 1 / t
        r = basis.T @ (inverse[:, None] * basis)
        system = xp.eye(len(k)) - k[:, None] * r
        c = xp.linalg.solve(system, xp.diag(k))
        c = (c + c.T) / 2
        scaled = inverse[:, None] * basis
        shift = shift * scale
        mean = inverse * shift + scaled @ (c @ (scaled.T @ shift))
        variance = inverse + ((scaled @ c) * scaled).sum(axis=1)
        projected = r + r @ c @ r
        log_determinant = (
            (len(shift) - len(t)) * xp.log(tail_variance)
            + xp.log(t).sum()
            - xp.log(inverse).sum()
            + xp.linalg.slogdet(system)[1]
        )
        return Conditioned(
            mean=scale * mean,
            variance=scale**2 * variance,
            white_mean=(basis.T @ mean) / xp.sqrt(t),
            white_covariance=projected / xp.sqrt(t[:, None] * t[None, :]),
            log_normalizer=0.5 * shift @ mean - 0.5 * log_determinant,
        )


def series_field(spectrum: Spectrum, std: SpectralStd) -> LowRankField:
    """The field at all nodes, its white coordinates those of the series itself: ``u = Q (s ξ)``.

    Modes of no variance are left out, and so is a tail.
    """
    kept = np.flatnonzero(std.modes > 0)
    return LowRankField(
        factor=spectrum.node_scale[:, None] * spectrum.eigenvectors[:, kept] * std.modes[kept],
        coefficient_map=np.diag(std.modes)[:, kept],
        mode_variance=std.modes**2,
        tail_std=0.0,
    )


def columns_field(columns: CovarianceColumns) -> LowRankField:
    """The field of `CovarianceColumns`: ``E[u | x] = B x`` and a deviation of each node."""
    n_labels = len(columns.labelled)
    return LowRankField(
        factor=columns.factor,
        coefficient_map=np.eye(n_labels + 1, n_labels),
        mode_variance=np.ones(n_labels + 1),
        tail_std=0.0,
    )


def labelled_field(spectrum: Spectrum, std: SpectralStd, labelled: np.ndarray) -> LabelledField:
    """Square root of the prior covariance at the labelled nodes.

    Parameters
    ----------
    spectrum : Spectrum
    std : SpectralStd
    labelled : numpy.ndarray of int, shape (J,)
    """
    rows = spectrum.eigenvectors[labelled]
    scale = spectrum.node_scale[labelled]
    if std.tail == 0.0:
        return _projected_field(rows, scale, std)
    return _field_with_tail(rows, scale, std)


def _projected_field(
    rows: Float[np.ndarray, "J L"], scale: Float[np.ndarray, " J"], std: SpectralStd
) -> LowRankField:
    """Without a tail: ``A = Q_L diag(s) = U Σ Vᵀ``, ``F = U Σ``, ``H = diag(s) V``."""
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
    """With a tail: ``Q_L = V Σ Wᵀ`` turns ``G_LL`` into an r×r matrix T on span V, s̄² I off it.

    ``T = Σ Wᵀ diag(d) W Σ + s̄² I = Y t Yᵀ``; V is turned by Y, and
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
    if len(rows) <= rows.shape[1]:  # V is square: u_L = V √t x' with x' = Vᵀ x white as well
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
