"""Inverse-Laplacian prior of Bertozzi, Luo, Stuart & Zygalakis (2018)."""

from jaxtyping import Float

from graphuq.priors.base import Prior
from graphuq.utils.arrays import Array, array_namespace


class InverseLaplacian(Prior):
    r"""Prior ``s_j² = c / λ_j``, with c such that ``E|u|² = N``.

    Source: Bertozzi et al. 2018, (4), (5), (13).

    A full spectrum gives their Algorithm 1, and a spectrum without tail Algorithm 2 (projection).
    A spectrum with a tail gives Algorithm 3 (approximation), where λ̄ replaces every eigenvalue
    that is left out.

    Null vectors have λ = 0 and would have infinite variance: the graph has no information about
    the level of u on a whole component. On a connected graph the paper leaves the only null
    vector out, so that u must change sign. On a disconnected graph that would force *every*
    component to change sign, also one that lies within a class. It would also fix isolated nodes
    at u = 0.

    On a disconnected graph each null vector therefore has the variance of the smoothest
    non-constant mode, ``c / λ_+`` with λ_+ the smallest positive eigenvalue kept. Levels are then
    independent between components and symmetric about 0. Class probabilities are 1/2 at all nodes
    of a component without labels.

    Parameters
    ----------
    include_constant : bool or None, default None
        Whether null vectors are part of the series, with variance ``c / λ_+``. With
        None this holds only if the graph is disconnected.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> std = gq.priors.InverseLaplacian().spectral_std(gq.laplacian_spectrum(graph))
    >>> round(float((std.modes**2).sum()), 6)
    9.0
    """

    include_constant: bool | None = None

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−log λ``."""
        result: Float[Array, " n"] = -array_namespace(eigenvalues).log(eigenvalues)
        return result
