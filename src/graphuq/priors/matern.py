"""Matérn prior on a graph."""

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, is_learnt, parameter
from graphuq.errors import IncompatibleParts, require
from graphuq.priors.base import Prior, check_power_law, check_truncation, power_law
from graphuq.spectrum import PowerPrecision
from graphuq.utils.arrays import Array


class Matern(Prior):
    r"""Matérn prior ``s_j² = κ (λ_j + τ²)^{−α}``, with κ such that ``E|u|² = N``.

    Source: Chen, (6) and (7), corrected.

    These powers of the Laplacian are the spectral density of a Matérn covariance. α controls the
    smoothness of u, and 1/τ is the range of a label. ``Matern(tau=0, alpha=1)`` is
    `InverseLaplacian`. Learnt τ and α make it Chen's model B, and learnt M as well model C.
    With a `graphuq.Laplacian` in place of a spectrum no eigenvector is left out.

    Parameters
    ----------
    tau : float or Distribution, default 0.3
        τ ≥ 0, in units of the square root of an eigenvalue. A distribution may include negative
        values, since only τ² is used.
    alpha : float or Distribution, default 4.0
        α > 0.
    truncation : int or Distribution, optional
        M, the number of eigenvectors kept, at least 2; by default all computed ones.
    include_constant : bool or None, default None
        Whether null vectors are part of the series, with their own variance ``κ τ^{−2α}``. With
        None this holds only if the graph is disconnected. Their variance is then that of the
        smoothest non-constant mode, as in `InverseLaplacian`.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> std = gq.priors.Matern(tau=0.5).spectral_std(gq.laplacian_spectrum(graph))
    >>> round(float((std.modes**2).sum()), 4)
    9.0
    """

    tau: Hyperparameter = parameter(0.3)
    alpha: Hyperparameter = parameter(4.0)
    truncation: Hyperparameter = parameter(None)
    include_constant: bool | None = None

    def __check_init__(self) -> None:
        check_power_law(self.tau, self.alpha)
        check_truncation(self.truncation)
        free = is_learnt(self.tau) or self.tau != 0 or not self.include_constant
        require(
            free,
            "tau",
            "0 gives the constant infinite variance",
            "use τ > 0, or include_constant=None",
        )

    @property
    def frees_null_vectors(self) -> bool:
        """True if ``include_constant`` is True."""
        return bool(self.include_constant)

    @property
    def precision(self) -> PowerPrecision:
        """Precision ``(L + τ² I)^α / κ``.

        Raises
        ------
        IncompatibleParts
            If a hyperparameter is learnt, or ``truncation`` is given.
        """
        if self.learnt:
            raise IncompatibleParts(
                f"{', '.join(self.learnt)} of {self} is learnt; give a number, or pass eigenpairs "
                "(laplacian_spectrum) in place of the Laplacian"
            )
        if self.truncation is not None:
            raise IncompatibleParts(
                f"truncation={self.truncation} leaves out eigenvectors, and a Laplacian none; use "
                "truncation=None, or pass eigenpairs (laplacian_spectrum)"
            )
        return PowerPrecision(None, float(self.tau) ** 2, float(self.alpha), self.include_constant)

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−α log(λ + τ²)``."""
        return power_law(eigenvalues, self.tau, self.alpha)
