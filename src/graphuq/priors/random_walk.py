"""Prior whose covariance is that of a random walk of p steps."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.priors.base import NORMALIZED_MAX, Prior
from graphuq.utils.arrays import Array, array_namespace


class RandomWalk(Prior):
    r"""Random-walk prior ``s_j² = κ (2 − λ_j)^p``, with κ such that ``E|u|² = N``.

    Source: Smola & Kondor 2003, which Zhu, Lafferty & Ghahramani 2003 name in section 3; with their
    a = 2.

    With the random-walk Laplacian ``2 − λ`` is an eigenvalue of twice the lazy walk, which stays
    where it is with probability 1/2. The covariance is therefore that of p lazy steps. It is close
    to `Diffusion` with the time p/2 where λ is small.

    Parameters
    ----------
    n_steps : float or Distribution, default 60.0
        p > 0, also a fraction; larger values make u smoother.
    include_constant : bool or None, default None
        Whether null vectors are part of the series, with the variance of λ = 0. With None this
        holds only if the graph is disconnected.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> spectrum = gq.laplacian_spectrum(graph)
    >>> std = gq.priors.RandomWalk(n_steps=4, include_constant=True).spectral_std(spectrum)
    >>> bool(np.allclose((std.modes / std.modes[0]) ** 2, (1 - spectrum.eigenvalues / 2) ** 4))
    True
    """

    n_steps: Hyperparameter = parameter(60.0)
    include_constant: bool | None = None
    max_eigenvalue: ClassVar[float] = NORMALIZED_MAX

    def __check_init__(self) -> None:
        check_range("n_steps", self.n_steps, 0.0, open=True, remedy="use p > 0")

    @property
    def frees_null_vectors(self) -> bool:
        """True: the kernel is finite at λ = 0."""
        return True

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``p log(1 − λ/2)``."""
        xp = array_namespace(eigenvalues)
        # A bipartite graph has λ = 2, whose mode has no variance.
        left = xp.maximum(1.0 - eigenvalues / 2, np.finfo(np.float32).tiny)
        result: Float[Array, " n"] = self.n_steps * xp.log(left)
        return result
