"""Inverse-cosine prior of Smola and Kondor (2003)."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.priors.base import NORMALIZED_MAX, Prior
from graphuq.utils.arrays import Array, array_namespace


class InverseCosine(Prior):
    r"""Inverse-cosine prior ``s_j² = κ cos(π λ_j / 4)``, with κ such that ``E|u|² = N``.

    Source: Smola & Kondor 2003, which Zhu, Lafferty & Ghahramani 2003 name in section 3.

    It has no hyperparameter. Its variance falls late: at λ = 0.5 it is still 0.92 of that at 0. On
    a large graph, where many eigenvalues are small, it therefore says little about labels, and
    `Matern` or `Diffusion` is better (docs/archive/kernels.md).

    Parameters
    ----------
    include_constant : bool or None, default None
        Whether null vectors are part of the series, with the variance of λ = 0. With None this
        holds only if the graph is disconnected.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> spectrum = gq.laplacian_spectrum(graph)
    >>> std = gq.priors.InverseCosine(include_constant=True).spectral_std(spectrum)
    >>> expected = np.cos(np.pi * spectrum.eigenvalues / 4)
    >>> bool(np.allclose((std.modes / std.modes[0]) ** 2, expected))
    True
    """

    include_constant: bool | None = None
    max_eigenvalue: ClassVar[float] = NORMALIZED_MAX

    @property
    def frees_null_vectors(self) -> bool:
        """True: the kernel is finite at λ = 0."""
        return True

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``log cos(πλ/4)``."""
        xp = array_namespace(eigenvalues)
        cosine = xp.maximum(xp.cos(np.pi / 4 * eigenvalues), np.finfo(np.float32).tiny)
        result: Float[Array, " n"] = xp.log(cosine)
        return result
