"""Diffusion prior, whose covariance is the heat kernel of a graph."""

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.priors.base import Prior
from graphuq.utils.arrays import Array


class Diffusion(Prior):
    r"""Diffusion prior ``s_j² = κ exp(−t λ_j)``, with κ such that ``E|u|² = N``.

    Source: Smola & Kondor 2003, which Zhu, Lafferty & Ghahramani 2003 name in section 3; with their
    σ²/2 = t.

    The covariance is the heat kernel of the graph: heat starts at one node and spreads for the time
    t. `Matern` with large α is close to it, since ``(1 + tλ/α)^{−α}`` has the limit ``exp(−tλ)``.

    Parameters
    ----------
    time : float or Distribution, default 30.0
        t > 0, in units of 1/λ; larger values make u smoother.
    include_constant : bool or None, default None
        Whether null vectors are part of the series, with the variance of λ = 0. With None this
        holds only if the graph is disconnected.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> spectrum = gq.laplacian_spectrum(graph)
    >>> std = gq.priors.Diffusion(time=2.0, include_constant=True).spectral_std(spectrum)
    >>> bool(np.allclose((std.modes / std.modes[0]) ** 2, np.exp(-2.0 * spectrum.eigenvalues)))
    True
    """

    time: Hyperparameter = parameter(30.0)
    include_constant: bool | None = None

    def __check_init__(self) -> None:
        check_range("time", self.time, 0.0, open=True, remedy="use t > 0")

    @property
    def frees_null_vectors(self) -> bool:
        """True: the kernel is finite at λ = 0."""
        return True

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−t λ``."""
        result: Float[Array, " n"] = -self.time * eigenvalues
        return result
