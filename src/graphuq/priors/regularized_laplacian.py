"""Regularised-Laplacian prior of Zhu, Lafferty and Ghahramani (2003)."""

from typing import ClassVar

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.errors import IncompatibleParts, require
from graphuq.priors.base import Modes, Prior, SpectralStd
from graphuq.spectrum import PowerPrecision
from graphuq.utils.arrays import Array, array_namespace


class RegularizedLaplacian(Prior):
    r"""Prior ``s_j² = 1 / (β (λ_j + 1/σ²))``.

    Source: Zhu, Lafferty & Ghahramani 2003, (3) and (4).

    It is the Gaussian field whose precision is ``β (L + I/σ²)``, as sparse as the graph. The
    constant has variance ``σ²/β``. Variances are not normalised, because β is their scale. The
    paper uses the unnormalised Laplacian. With all N eigenpairs, or a `graphuq.Laplacian` in place
    of a spectrum, the prior is exact. With fewer it is truncated or approximated like any other.

    Parameters
    ----------
    beta : float or Distribution, default 0.1
        β > 0, an inverse temperature. The defaults of β and σ are those of the paper.
    sigma : float or Distribution, default 1000.0
        σ > 0; larger values pull the field less towards zero.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path), "unnormalized")
    >>> std = gq.priors.RegularizedLaplacian(beta=2.0, sigma=1.0).spectral_std(spectrum)
    >>> (std.modes**2).round(3).tolist()
    [0.5, 0.315, 0.167, 0.113]
    """

    beta: Hyperparameter = parameter(0.1)
    sigma: Hyperparameter = parameter(1000.0)
    include_constant: bool | None = True
    has_sparse_precision: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("beta", self.beta, 0.0, open=True, remedy="use β > 0")
        check_range("sigma", self.sigma, 0.0, open=True, remedy="use σ > 0")
        require(
            self.include_constant is True,
            "include_constant",
            f"{self.include_constant!r}",
            "leave it True",
        )

    @property
    def frees_null_vectors(self) -> bool:
        """True: null vectors have the variance of λ = 0."""
        return True

    @property
    def shift(self) -> Hyperparameter:
        """Shift ``1/σ²`` of the precision ``β (L + I/σ²)``."""
        return 1 / self.sigma**2

    @property
    def precision(self) -> PowerPrecision:
        """Precision with β and c = 1/σ².

        Raises
        ------
        IncompatibleParts
            If β or σ is learnt.
        """
        if self.learnt:
            raise IncompatibleParts(
                f"{', '.join(self.learnt)} of {self} is learnt; give a number, or pass eigenpairs "
                "(laplacian_spectrum) in place of the Laplacian"
            )
        return PowerPrecision(float(self.beta), float(self.shift))

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−log β − log(λ + 1/σ²)``."""
        xp = array_namespace(eigenvalues)
        logs: Float[Array, " n"] = -xp.log(self.beta) - xp.log(eigenvalues + self.shift)
        return logs

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Return half the log variances without normalisation, because β is the scale."""
        logs = self.log_variances(modes.eigenvalues) / 2
        present = self.modes_included(modes)
        tail = self.log_tail_variance(modes) / 2
        return SpectralStd(array_namespace(modes.eigenvalues).where(present, logs, 0.0), tail)
