"""What every prior offers: the variance of an eigenvector as a function of its eigenvalue."""

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, cast

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from graphuq.distributions import (
    Distribution,
    check_defined,
    check_hyperparameters,
    check_range,
    is_learnt,
    learnt_of,
)
from graphuq.errors import IncompatibleParts, require
from graphuq.spectrum import Spectrum
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import describe


class SpectralStd(eqx.Module):
    """Standard deviations of the random series ``u = Σ_j s_j ξ_j q_j + s̄ r`` (MATH §1).

    Attributes
    ----------
    modes : array, shape (L,)
        s_j >= 0 of each kept eigenvector.
    tail : float
        s̄ of everything orthogonal to them; 0 without a tail.
    """

    modes: Float[Array, " L"]
    tail: Float[Array, ""] | float


class Modes(eqx.Module):
    """What a prior sees of a spectrum.

    Attributes
    ----------
    eigenvalues : array, shape (L,)
        Those of null vectors as the prior takes them.
    present : array of bool, shape (L,)
        Whether an eigenvector takes part.
    energy : array, shape (L,)
        Sum of squares of each eigenvector over the nodes, scaled as nodes are.
    tail, tail_energy : float or None, float
        Eigenvalue that stands for all left out, and their energy.
    n_nodes : int
    """

    eigenvalues: Float[Array, " L"]
    present: Bool[Array, " L"]
    energy: Float[Array, " L"]
    tail: float | Float[Array, ""] | None
    tail_energy: float | Float[Array, ""]
    n_nodes: int


class SparsePrecision(NamedTuple):
    """Numbers of a prior whose precision is ``β (L + shift · I)``, as sparse as the graph.

    Attributes
    ----------
    beta : float
        β > 0.
    shift : float
        At least 0, in units of an eigenvalue of the Laplacian L.
    """

    beta: float
    shift: float


class Prior(eqx.Module):
    """A Gaussian random series on the spectrum of a graph Laplacian.

    A subclass is a small immutable value: its hyperparameters as fields, each a number or a
    distribution, and `log_variances`. ``truncation``, where it has one, and
    ``include_constant`` are understood here.
    """

    include_constant = cast("bool | None", None)  # no annotation: subclasses may make it a field
    has_sparse_precision: ClassVar[bool] = False
    is_random_series: ClassVar[bool] = False

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Refuse a subclass that lacks a required method."""
        check_defined(cls)
        return super().__new__(cls)

    def __check_init__(self) -> None:
        check_hyperparameters(self)
        require(
            self.include_constant is None or isinstance(self.include_constant, bool | np.bool_),
            "include_constant",
            describe(self.include_constant),
            "use True, False or None",
        )

    @property
    def can_choose_constant(self) -> bool:
        """Whether ``include_constant`` is a field and None, so that the evidence may choose it."""
        names = {field.name for field in dataclasses.fields(self)}
        return "include_constant" in names and self.include_constant is None

    @property
    def sparse_precision(self) -> SparsePrecision:
        """β and shift of the precision ``β (L + shift · I)``, with which a `Laplacian` is enough.

        Raises
        ------
        IncompatibleParts
            If `has_sparse_precision` is false, or a hyperparameter is learnt.
        """
        raise IncompatibleParts(
            f"{self} has no sparse precision; use RegularizedLaplacian(), or pass eigenpairs "
            "(laplacian_spectrum) in place of the Laplacian"
        )

    @abstractmethod
    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Log variance of modes with these eigenvalues, up to a constant.

        Written with `array_namespace`, it serves NumPy and JAX arrays alike.
        """

    def log_scales(self, modes: Modes) -> Float[Array, " L"] | float:
        """What is added to the log variance of each mode for itself, its eigenvalue apart."""
        return 0.0

    @property
    def frees_null_vectors(self) -> bool:
        """Whether null vectors that take part have their own variance, at λ = 0.

        Else they have that of the smoothest other mode.
        """
        return False

    @property
    def learnt(self) -> dict[str, Distribution]:
        """Hyperparameters that are distributions, by name."""
        return learnt_of(self)

    def bind(self, spectrum: Spectrum) -> "Prior":
        """The prior with what it takes from a spectrum filled in."""
        return self

    def n_values(self, name: str, n_modes: int) -> int | None:
        """How many values a hyperparameter has; None for a plain number."""
        return None

    def modes(self, spectrum: Spectrum) -> Modes:
        """What this prior sees of a spectrum.

        Raises
        ------
        IncompatibleParts
            If null vectors are left out and isolated nodes have no other mode to live on; if
            ``truncation`` is not above the number of components; if it leaves out computed
            eigenvectors while a tail stands for the others.
        """
        n_null, n_pairs = spectrum.n_components, spectrum.n_eigenpairs
        present = np.arange(n_pairs) < self._kept(spectrum)
        present[:n_null] = null_vectors_take_part(self.include_constant, spectrum)
        eigenvalues = spectrum.eigenvalues.copy()
        if not self.frees_null_vectors:
            eigenvalues[:n_null] = eigenvalues[n_null]
        return Modes(
            eigenvalues,
            present,
            spectrum.energy,
            spectrum.tail_eigenvalue,
            spectrum.tail_energy,
            spectrum.n_nodes,
        )

    def _kept(self, spectrum: Spectrum) -> int:
        """Eigenvectors that truncation leaves, at most where it is learnt."""
        truncation = getattr(self, "truncation", None)
        n_null, n_pairs = spectrum.n_components, spectrum.n_eigenpairs
        if truncation is None:
            return n_pairs
        least, most = (truncation, truncation)
        if is_learnt(truncation):
            least, most = truncation.support
            if np.isfinite(most) and most > n_pairs:
                raise IncompatibleParts(
                    f"truncation goes up to {most:g} and there are {n_pairs} eigenpairs; compute "
                    "more, or let it go no further"
                )
        if least <= (0 if self.frees_null_vectors else n_null):
            raise IncompatibleParts(
                f"truncation={least:g} leaves no mode beside the {n_null} null vector(s); use more"
            )
        if (is_learnt(truncation) or most < n_pairs) and spectrum.tail_eigenvalue is not None:
            raise IncompatibleParts(
                f"truncation={truncation} of {n_pairs} eigenpairs and a tail contradict each "
                "other; use a spectrum without tail, or truncation=None"
            )
        return int(min(most, n_pairs))

    def std_of(self, modes: Modes) -> SpectralStd:
        """Standard deviations, so scaled that ``E|u|² = N``: MATH §5 on Chen's (7).

        Here ``truncation`` may be a traced number, and so may all else.
        """
        xp = array_namespace(modes.eigenvalues)
        present = self.taking_part(modes)
        logs = self.log_variances(modes.eigenvalues) + self.log_scales(modes)
        # Relative to the largest, lest powers overflow; and never the root of a variance, which has
        # no gradient where it underflows.
        largest = xp.max(xp.where(present, logs, -xp.inf))
        relative = xp.where(present, xp.exp(xp.where(present, logs - largest, 0.0) / 2), 0.0)
        tail = xp.exp((self.log_tail_variance(modes) - largest) / 2)
        energy = relative**2 @ modes.energy + tail**2 * modes.tail_energy
        scale = xp.sqrt(modes.n_nodes / energy)
        return SpectralStd(scale * relative, scale * tail)

    def taking_part(self, modes: Modes) -> Bool[Array, " L"]:
        """Which modes do, truncation considered."""
        truncation = getattr(self, "truncation", None)
        if truncation is None:
            return modes.present
        kept: Bool[Array, " L"] = (
            array_namespace(modes.eigenvalues).arange(len(modes.present)) < truncation
        )
        return modes.present & kept

    def log_tail_variance(self, modes: Modes) -> Any:
        """Log variance that stands for all eigenvectors left out, up to the same constant."""
        if modes.tail is None:
            return -np.inf
        at = array_namespace(modes.eigenvalues).asarray([modes.tail], dtype=modes.eigenvalues.dtype)
        return self.log_variances(at)[0]

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Logarithms of the standard deviations; 0 of modes that take no part.

        Finite where the deviation itself underflows, but for a tail that is not there.
        """
        xp = array_namespace(modes.eigenvalues)
        present = self.taking_part(modes)
        logs = self.log_variances(modes.eigenvalues) + self.log_scales(modes)
        largest = xp.max(xp.where(present, logs, -xp.inf))
        tail = self.log_tail_variance(modes) - largest
        shares = xp.where(present, xp.exp(xp.where(present, logs - largest, 0.0)), 0.0)
        energy = shares @ modes.energy + xp.exp(tail) * modes.tail_energy
        scale = xp.log(modes.n_nodes / energy)
        return SpectralStd(xp.where(present, (logs - largest + scale) / 2, 0.0), (tail + scale) / 2)

    def spectral_std(self, spectrum: Spectrum) -> SpectralStd:
        """Standard deviation of each coefficient of the series.

        Raises
        ------
        IncompatibleParts
            See `modes`; and if a hyperparameter is a distribution.
        """
        if self.learnt:
            raise IncompatibleParts(
                f"{', '.join(self.learnt)} of {self} is learnt, and has no one value; give a number"
            )
        std = self.std_of(self.modes(spectrum))
        return SpectralStd(std.modes, float(std.tail))


def power_law(eigenvalues: Array, tau: Any, alpha: Any) -> Array:
    """``−α log(λ + τ²)``."""
    return -alpha * array_namespace(eigenvalues).log(eigenvalues + tau**2)


def check_power_law(tau: Any, alpha: Any) -> None:
    """Refuse τ < 0 and α ≤ 0; a τ that is learnt may be negative, as only its square matters."""
    if not is_learnt(tau):
        check_range("tau", tau, 0.0, open=False, remedy="use τ >= 0")
    check_range("alpha", alpha, 0.0, open=True, remedy="use α > 0")


def check_truncation(truncation: Any) -> None:
    """Refuse M < 2, and a distribution that is not one of integers."""
    if truncation is None:
        return
    remedy = "use 2 or more, or a distribution of integers such as gq.DiscreteUniform(2, 70)"
    check_range("truncation", truncation, 2.0, open=False, remedy=remedy)
    require(
        not is_learnt(truncation) or truncation.discrete,
        "truncation",
        f"{truncation!r} is continuous",
        "use one of integers, such as DiscreteUniform(2, 70)",
    )


def null_vectors_take_part(constant: bool | None, spectrum: Spectrum) -> bool:
    """Whether null vectors take part: ``include_constant``; if None, on disconnected graphs only.

    Raises
    ------
    IncompatibleParts
        If they do not, and isolated nodes have no other mode to live on.
    """
    take_part = spectrum.n_components > 1 if constant is None else constant
    if not take_part and (n_isolated := int((spectrum.degrees == 0).sum())):
        raise IncompatibleParts(
            f"include_constant=False leaves u = 0 at {n_isolated} isolated node(s); "
            "use include_constant=None, or drop those nodes"
        )
    return take_part
