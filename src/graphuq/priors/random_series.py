"""Randomly scaled and truncated series of Hartog and van Zanten (2018)."""

import dataclasses
from typing import ClassVar

from jaxtyping import Float

from graphuq.distributions import (
    DiscreteUniform,
    Distribution,
    Gamma,
    Hyperparameter,
    check_range,
    is_learnt,
    parameter,
)
from graphuq.errors import require
from graphuq.priors.base import Modes, Prior, SpectralStd
from graphuq.spectrum import SpectralBasis
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import check_number
from graphuq.utils.part import part_field

RATE_TIMES_NODES = 20.0  # rule of thumb: 63 % of the mass of k is on the first N/20 values


class RandomSeries(Prior):
    r"""Series of random length, ``s_j² = 1 / (c (λ_j + N^{−2})^q)`` for j < k.

    Source: Hartog & van Zanten 2018, §2.2 to §2.4. The scale c and the number k of eigenvectors
    are random. ``p(k) ∝ e^{−ρ k}`` on 1, …, ℓ, with ℓ the number of computed eigenpairs. Unlike
    other priors it is not normalised, because c is its scale, and it contains the constant. The
    paper uses the unnormalised Laplacian and ``Probit(1.0)``. `ReversibleJump` samples it, and so
    do the samplers of other priors.

    Parameters
    ----------
    scale : float or Distribution, default Gamma(1, 0.001)
        c > 0, a precision whose size depends on the graph. It is about 200 on a path of 500
        nodes, where ``Gamma(1, 1)`` alone would force k to 3. The default is proper, and flat over
        the range that labels determine. The paper's ``Gamma(0, 0)`` is improper; if modes can
        separate the labels, fields are then unbounded.
    exponent : float, default 1.0
        q ≥ 0.
    truncation : int or Distribution, optional
        k; by default random with ``truncation_rate``. With k = N nothing is truncated. The paper's
        introduction also names ``Poisson(mean, low=1)``; `NegativeBinomial` has wider tails.
    truncation_rate : float, optional
        ρ ≥ 0; by default 20/N, the rule of thumb of the paper.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> path = np.diag(np.ones(9), 1) + np.diag(np.ones(9), -1)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path), "unnormalized")
    >>> gq.priors.RandomSeries(truncation_rate=0.5).bind(spectrum).truncation.support
    (1.0, 10.0)
    """

    scale: Hyperparameter = parameter(Gamma(1.0, 0.001))
    exponent: Hyperparameter = parameter(1.0)
    truncation: Hyperparameter = parameter(None)
    truncation_rate: float | None = part_field(default=None)
    include_constant: bool | None = True
    is_random_series: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("scale", self.scale, 0.0, open=True, remedy="use c > 0")
        check_range("exponent", self.exponent, 0.0, open=False, remedy="use q >= 0")
        rate = self.truncation_rate
        if rate is not None:
            check_number("truncation_rate", rate, "use ρ >= 0")
            require(rate >= 0, "truncation_rate", f"{rate!r} is negative", "use ρ >= 0")
        require(
            self.include_constant is True,
            "include_constant",
            f"{self.include_constant!r}",
            "leave it True",
        )
        if self.truncation is not None:
            remedy = "use 1 or more, or a distribution of integers"
            check_range("truncation", self.truncation, 1.0, open=False, remedy=remedy)
            require(
                not is_learnt(self.truncation) or self.truncation.discrete,
                "truncation",
                f"{self.truncation!r} is continuous",
                "use a distribution of integers, or truncation_rate",
            )

    @property
    def frees_null_vectors(self) -> bool:
        """True: null vectors have the variance of λ = 0."""
        return True

    def bind(self, spectrum: SpectralBasis) -> Prior:
        """Return the prior with the distribution of k on the computed eigenpairs."""
        if self.truncation is not None or spectrum.tail_eigenvalue is not None:
            return super().bind(spectrum)
        rate, n_pairs = self.truncation_rate, spectrum.n_eigenpairs
        rate = RATE_TIMES_NODES / spectrum.n_nodes if rate is None else rate
        truncation = DiscreteUniform(1, n_pairs)
        if rate > 0:
            truncation = Distribution("boltzmann", (rate, n_pairs, 1))
        return dataclasses.replace(self, truncation=truncation)

    def modes(self, spectrum: SpectralBasis) -> Modes:
        """Return eigenvalues with N^{−2} added to each."""
        modes = super().modes(spectrum)
        shift = float(spectrum.n_nodes) ** -2
        tail = None if modes.tail is None else modes.tail + shift
        return dataclasses.replace(modes, eigenvalues=modes.eigenvalues + shift, tail=tail)

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−q log(λ + N^{−2}) − log c``; the eigenvalues are already shifted."""
        xp = array_namespace(eigenvalues)
        result: Float[Array, " n"] = -self.exponent * xp.log(eigenvalues) - xp.log(self.scale)
        return result

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Return half the log variances without normalisation, because c is the scale."""
        logs = self.log_variances(modes.eigenvalues) / 2
        present = self.modes_included(modes)
        tail = self.log_tail_variance(modes) / 2
        return SpectralStd(array_namespace(modes.eigenvalues).where(present, logs, 0.0), tail)
