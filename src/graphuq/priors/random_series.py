"""The randomly scaled and truncated series of Hartog and van Zanten."""

import dataclasses
from typing import ClassVar

import equinox as eqx
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
from graphuq.spectrum import Spectrum
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import check_number
from graphuq.utils.deprecation import renamed_fields

MASS = 20.0  # the rule of thumb's rate times N: 63 % of the mass on the first twentieth of all k


@renamed_fields(constant="include_constant")
class RandomSeries(Prior):
    r"""``s_j² = 1 / (c (λ_j + N^{−2})^q)``, j < k (Hartog & van Zanten 2018, §2.2 to §2.4).

    The scale c and the number k of eigenvectors are random: k has ``p(k) ∝ e^{−ρ k}`` on 1, …, ℓ,
    the number of computed eigenpairs. Unlike the other priors this one is not normalised, which
    is c's part, and the constant always takes part. The paper's Laplacian is the unnormalised one,
    its likelihood ``Probit(1.0)``. Sampled by `ReversibleJump`, or as any other prior is.

    Parameters
    ----------
    scale : float or Distribution, default Gamma(1, 0.001)
        c > 0, a precision whose size depends on the graph: about 200 on a path of 500 nodes, where
        ``Gamma(1, 1)`` would decide by itself that k is 3. The default is flat where labels speak,
        and proper; the paper's ``Gamma(0, 0)`` is not, and labels that modes can part then have
        fields without bound.
    exponent : float, default 1.0
        q ≥ 0.
    truncation : int or Distribution, optional
        k; by default random with ``truncation_rate``. N is the untruncated method.
    truncation_rate : float, optional
        ρ ≥ 0; by default the paper's rule of thumb 20/N.

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
    truncation_rate: float | None = eqx.field(default=None)
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
                "use one of integers, or truncation_rate",
            )

    @property
    def frees_null_vectors(self) -> bool:
        """They have the variance of λ = 0."""
        return True

    def bind(self, spectrum: Spectrum) -> "RandomSeries":
        """With the law of k on the eigenpairs that there are."""
        if self.truncation is not None or spectrum.tail_eigenvalue is not None:
            return self
        rate, n_pairs = self.truncation_rate, spectrum.n_eigenpairs
        rate = MASS / spectrum.n_nodes if rate is None else rate
        law = DiscreteUniform(1, n_pairs)
        if rate > 0:
            law = Distribution("boltzmann", (rate, n_pairs, 1))
        return dataclasses.replace(self, truncation=law)

    def modes(self, spectrum: Spectrum) -> Modes:
        """Eigenvalues with N^{−2} added to each."""
        modes = super().modes(spectrum)
        shift = float(spectrum.n_nodes) ** -2
        tail = None if modes.tail is None else modes.tail + shift
        return dataclasses.replace(modes, eigenvalues=modes.eigenvalues + shift, tail=tail)

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """``−q log(λ + N^{−2}) − log c``; the eigenvalues are shifted already."""
        xp = array_namespace(eigenvalues)
        result: Float[Array, " n"] = -self.exponent * xp.log(eigenvalues) - xp.log(self.scale)
        return result

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Half the log variances, where modes take part."""
        logs = self.log_variances(modes.eigenvalues) / 2
        present = self.taking_part(modes)
        tail = self.log_tail_variance(modes) / 2
        return SpectralStd(array_namespace(modes.eigenvalues).where(present, logs, 0.0), tail)

    def std_of(self, modes: Modes) -> SpectralStd:
        """As they are: the scale is c's part."""
        xp, logs = array_namespace(modes.eigenvalues), self.log_std_of(modes)
        std = xp.where(self.taking_part(modes), xp.exp(logs.modes), 0.0)
        return SpectralStd(std, xp.exp(logs.tail))
