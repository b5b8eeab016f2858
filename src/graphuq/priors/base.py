"""Base class of priors: the variance of an eigenvector as a function of its eigenvalue."""

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, cast

import numpy as np
from jaxtyping import Bool, Float

from graphuq.distributions import (
    Distribution,
    Hyperparameter,
    check_defined,
    check_hyperparameters,
    check_log_variances,
    check_range,
    is_learnt,
    learnt_of,
)
from graphuq.errors import IncompatibleParts, require
from graphuq.spectrum import PowerPrecision, SpectralBasis
from graphuq.spectrum.null_vectors import null_vectors_included
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import check_fields, describe
from graphuq.utils.part import Part

NORMALIZED_MAX = 2 + 1e-9  # largest λ of the symmetric and random-walk Laplacian, with rounding


class SpectralStd(Part):
    """Standard deviations of the random series ``u = Σ_j s_j ξ_j q_j + s̄ r``.

    See `docs/theory/posterior.md`, "The posterior".

    Attributes
    ----------
    modes : array, shape (L,)
        s_j ≥ 0 of each kept eigenvector.
    tail : float
        s̄ of the complement of the kept eigenvectors; 0 without a tail.
    """

    modes: Float[Array, " L"]
    tail: Float[Array, ""] | float


class Modes(Part):
    """Eigenvalues and energies of a spectrum, as a prior uses them.

    Attributes
    ----------
    eigenvalues : array, shape (L,)
        Eigenvalues; null vectors have the eigenvalue that the prior assigns to them.
    present : array of bool, shape (L,)
        Whether an eigenvector is part of the series.
    energy : array, shape (L,)
        Sum of squares of each eigenvector over the nodes, after scaling by `Laplacian.node_scale`.
    tail, tail_energy : float or None, float
        Common eigenvalue of all eigenvectors that are left out, and their total energy.
    n_nodes : int
        Number of nodes N.
    """

    eigenvalues: Float[Array, " L"]
    present: Bool[Array, " L"]
    energy: Float[Array, " L"]
    tail: float | Float[Array, ""] | None
    tail_energy: float | Float[Array, ""]
    n_nodes: int

    def first(self, n_modes: int) -> "Modes":
        """Return the first modes alone."""
        return dataclasses.replace(
            self,
            eigenvalues=self.eigenvalues[:n_modes],
            present=self.present[:n_modes],
            energy=self.energy[:n_modes],
        )


class Prior(Part):
    """A Gaussian random series on the spectrum of a graph Laplacian.

    A subclass declares its hyperparameters as fields and defines `log_variances`; nothing else is
    required. This base class normalises the variances so that ``E|u|² = N``.

    Attributes
    ----------
    include_constant : bool or None, default None
        Whether null vectors are part of the series. With None this holds only if the graph is
        disconnected or has negative weights. A subclass that annotates the attribute makes it a
        field, which users can set.
    truncation : int or Distribution, optional
        A field with this name limits the series to its first eigenvectors.
    max_eigenvalue : float, default inf
        Largest λ for which `log_variances` is defined.
    has_sparse_precision : bool, default False
        Whether the matrix `precision` is as sparse as the graph. Models then solve for the
        covariance where no eigenpairs are asked for.
    is_random_series : bool, default False
        Whether the fields ``scale``, ``exponent`` and ``truncation`` are those of `RandomSeries`.
    is_mixture : bool, default False
        Whether the prior is one of finitely many components, as `graphuq.models.Mixture`.

    Raises
    ------
    InvalidInput
        If the subclass does not define `log_variances`, or a hyperparameter is no number.

    Examples
    --------
    A prior whose variances decay exponentially in the square of an eigenvalue. A field made with
    ``parameter`` accepts a number, or a distribution if it is to be learnt.

    >>> import numpy as np, graphuq as gq
    >>> from graphuq.distributions import Hyperparameter, parameter
    >>> class Bell(gq.priors.Prior):
    ...     width: Hyperparameter = parameter(0.5)
    ...
    ...     def log_variances(self, eigenvalues):
    ...         return -((eigenvalues / self.width) ** 2)
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> spectrum = gq.laplacian_spectrum(graph)
    >>> round(float((Bell(0.7).spectral_std(spectrum).modes ** 2).sum()), 6)
    9.0
    >>> posterior = gq.Posterior(spectrum, Bell(0.7), gq.likelihoods.Probit(),
    ...                          labelled=[0, 8], labels=[-1, 1])
    >>> result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    >>> np.sign(gq.results.label_mean(result)[[1, 7]]).tolist()
    [-1.0, 1.0]
    """

    include_constant = cast("bool | None", None)  # no annotation: subclasses may make it a field
    max_eigenvalue: ClassVar[float] = np.inf
    has_sparse_precision: ClassVar[bool] = False
    is_random_series: ClassVar[bool] = False
    is_mixture: ClassVar[bool] = False

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Refuse a subclass that lacks a required method."""
        check_defined(cls)
        return super().__new__(cls)

    def __check_init__(self) -> None:
        check_hyperparameters(self)
        check_fields(self, (Distribution,))
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
    def precision(self) -> PowerPrecision:
        """Precision ``β (L + c I)^α`` of the field on all nodes, with which no eigenpair is needed.

        Raises
        ------
        IncompatibleParts
            If the precision of this prior is no such power, or a hyperparameter is learnt.
        """
        raise IncompatibleParts(
            f"the precision of {self} is no power of the Laplacian; use Matern() or "
            "RegularizedLaplacian(), or pass eigenpairs (laplacian_spectrum) in place of the "
            "Laplacian"
        )

    @abstractmethod
    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the log variance of modes with these eigenvalues, up to a constant.

        It must accept NumPy and JAX arrays. `graphuq.utils.arrays.array_namespace` returns the
        module, `numpy` or `jax.numpy`, whose functions fit the argument.

        Parameters
        ----------
        eigenvalues : array, shape (n,)
            Eigenvalues of the Laplacian, at least 0.

        Returns
        -------
        array, shape (n,)
        """

    def log_scales(self, modes: Modes) -> Float[Array, " L"] | float:
        """Return what is added to each log variance, besides the function of the eigenvalue."""
        return 0.0

    @property
    def frees_null_vectors(self) -> bool:
        """Whether null vectors have the variance of λ = 0 if they are part of the series.

        Otherwise they have the variance of the smoothest other mode.
        """
        return False

    def named_draws(self, draws: dict[str, Any]) -> dict[str, Any]:
        """Return draws of hyperparameters by the names that are reported; here the same."""
        return draws

    @property
    def learnt(self) -> dict[str, Distribution]:
        """Hyperparameters that are distributions, by name."""
        return learnt_of(self)

    def bind(self, spectrum: SpectralBasis) -> "Prior":
        """Return the prior with fields that depend on the spectrum filled in.

        By default that is a truncation without upper end, given that it is at most ℓ.
        """
        truncation = getattr(self, "truncation", None)
        if not is_learnt(truncation) or np.isfinite(truncation.support[1]):
            return self
        bounded: Any = {"truncation": truncation.up_to(spectrum.n_columns)}
        return dataclasses.replace(self, **bounded)

    def n_values(self, name: str, n_modes: int) -> int | None:
        """Return how many values a hyperparameter has, or None if it is a plain number."""
        return None

    def modes(self, spectrum: SpectralBasis) -> Modes:
        """Return the eigenvalues and energies of a spectrum, as this prior uses them.

        Raises
        ------
        IncompatibleParts
            In four cases. Null vectors are left out, and isolated nodes have no other mode.
            ``truncation`` is not above the number of components. ``truncation`` leaves out
            computed eigenvectors, and the spectrum has a tail. An eigenvalue is above
            `max_eigenvalue`.
        """
        computed = spectrum.eigenvalues
        largest = max(float(computed.max()), spectrum.tail_eigenvalue or 0.0)
        if largest > self.max_eigenvalue:
            raise IncompatibleParts(
                f"{self} is defined for eigenvalues up to {self.max_eigenvalue:g}, and one is "
                f"{largest:.4g}; use laplacian='symmetric' or 'random-walk', or another prior"
            )
        n_null = spectrum.n_null
        present = np.arange(spectrum.n_columns) < self._n_kept(spectrum)
        present[:n_null] = null_vectors_included(self.include_constant, spectrum)
        # Columns of other blocks have no eigenvalue and take no part; this one stands in its place.
        other = np.full(spectrum.n_columns - len(computed), computed.max())
        eigenvalues = np.append(computed, other)
        if not self.frees_null_vectors:
            eigenvalues[:n_null] = eigenvalues[n_null]
        check_log_variances(self, eigenvalues)
        return Modes(
            eigenvalues,
            present,
            spectrum.energy,
            spectrum.tail_eigenvalue,
            spectrum.tail_energy,
            spectrum.n_nodes,
        )

    def _n_kept(self, spectrum: SpectralBasis) -> int:
        """Return how many eigenvectors truncation leaves; the largest number if it is learnt."""
        truncation = getattr(self, "truncation", None)
        n_null, n_pairs = spectrum.n_null, spectrum.n_eigenpairs
        if truncation is None:
            return n_pairs
        smallest, largest = (truncation, truncation)
        if is_learnt(truncation):
            smallest, largest = truncation.support
            if largest > n_pairs:
                raise IncompatibleParts(
                    f"truncation goes up to {largest:g} and there are {n_pairs} eigenpairs; "
                    "compute more, or lower the upper end of truncation"
                )
        if smallest <= (0 if self.frees_null_vectors else n_null):
            raise IncompatibleParts(
                f"truncation={smallest:g} leaves no mode besides the {n_null} null vector(s); "
                "use a larger number"
            )
        if (is_learnt(truncation) or largest < n_pairs) and spectrum.tail_eigenvalue is not None:
            raise IncompatibleParts(
                f"truncation={truncation} of {n_pairs} eigenpairs and a tail contradict each "
                "other; use a spectrum without tail, or truncation=None"
            )
        return int(min(largest, n_pairs))

    def std_of(self, modes: Modes) -> SpectralStd:
        """Return the standard deviations, those of `log_std_of`; 0 for modes outside the series."""
        xp, logs = array_namespace(modes.eigenvalues), self.log_std_of(modes)
        std = xp.where(self.modes_included(modes), xp.exp(logs.modes), 0.0)
        return SpectralStd(std, xp.exp(logs.tail))

    def modes_included(self, modes: Modes) -> Bool[Array, " L"]:
        """Return which modes are part of the series, after truncation."""
        truncation = getattr(self, "truncation", None)
        if truncation is None:
            return modes.present
        kept: Bool[Array, " L"] = (
            array_namespace(modes.eigenvalues).arange(len(modes.present)) < truncation
        )
        return modes.present & kept

    def log_tail_variance(self, modes: Modes) -> Any:
        """Return the log variance of all eigenvectors left out, up to the same constant."""
        if modes.tail is None:
            return -np.inf
        at = array_namespace(modes.eigenvalues).asarray([modes.tail], dtype=modes.eigenvalues.dtype)
        return self.log_variances(at)[0]

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Return log standard deviations, scaled so that ``E|u|² = N`` (Chen, (7), corrected).

        The trace is over the kept modes and the tail only, so that this holds for every
        truncation. All hyperparameters may be traced numbers. Logarithms are 0 for modes outside
        the series. Others are finite where the deviation itself underflows, and a missing tail has
        −∞.
        """
        logs = self.log_variances(modes.eigenvalues) + self.log_scales(modes)
        present = self.modes_included(modes)
        return SpectralStd(*log_deviations(logs, self.log_tail_variance(modes), present, modes))

    def spectral_std(self, spectrum: SpectralBasis) -> SpectralStd:
        """Return the standard deviation of each coefficient of the series.

        Raises
        ------
        IncompatibleParts
            If a hyperparameter is a distribution, or in the cases of `modes`.
        """
        if self.learnt:
            raise IncompatibleParts(
                f"{', '.join(self.learnt)} of {self} is learnt and has no single value; "
                "give a number"
            )
        std = self.std_of(self.modes(spectrum))
        return SpectralStd(std.modes, float(std.tail))


def log_deviations(
    logs: Float[Array, "*B L"], log_tail: Any, present: Bool[Array, "*B L"], modes: Modes
) -> tuple[Float[Array, "*B L"], Any]:
    """Return log standard deviations of modes and tail, scaled so that ``E|u|² = N``.

    Parameters
    ----------
    logs : array, shape (…, L)
        Log variance of each mode, up to a constant; several priors at once.
    log_tail : float or array, shape (…)
        That of all eigenvectors left out.
    present : array of bool, shape (…, L)
    modes : Modes
    """
    xp = array_namespace(modes.eigenvalues)
    # Variances relative to the largest cannot overflow. No root of one is taken, which would have
    # no gradient where the variance underflows.
    largest = xp.max(xp.where(present, logs, -xp.inf), axis=-1)
    tail = log_tail - largest
    relative = logs - largest[..., None]
    shares = xp.where(present, xp.exp(xp.where(present, relative, 0.0)), 0.0)
    energy = shares @ modes.energy + xp.exp(tail) * modes.tail_energy
    scale = xp.log(modes.n_nodes / energy)
    return xp.where(present, (relative + scale[..., None]) / 2, 0.0), (tail + scale) / 2


def power_law(eigenvalues: Array, tau: Hyperparameter, alpha: Hyperparameter) -> Array:
    """Return ``−α log(λ + τ²)``."""
    return -alpha * array_namespace(eigenvalues).log(eigenvalues + tau**2)


def check_power_law(tau: Hyperparameter, alpha: Hyperparameter) -> None:
    """Refuse τ < 0 and α ≤ 0; a learnt τ may be negative, since only its square is used."""
    if not is_learnt(tau):
        check_range("tau", tau, 0.0, open=False, remedy="use τ >= 0")
    check_range("alpha", alpha, 0.0, open=True, remedy="use α > 0")


def check_truncation(truncation: Hyperparameter) -> None:
    """Refuse M < 2, and a distribution that is not one of integers."""
    if truncation is None:
        return
    remedy = "use 2 or more, or a distribution of integers such as gq.DiscreteUniform(2, 70)"
    check_range("truncation", truncation, 2.0, open=False, remedy=remedy)
    continuous = is_learnt(truncation) and not truncation.discrete
    require(not continuous, "truncation", f"{truncation!r} is continuous", remedy)
