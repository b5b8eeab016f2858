"""The prior of Bertozzi, Luo, Stuart & Zygalakis (2018)."""

from jaxtyping import Float

from graphuq.priors.base import Prior
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.deprecation import renamed_fields


@renamed_fields(constant="include_constant")
class InverseLaplacian(Prior):
    r"""``s_j² = c / λ_j``, with c such that ``E|u|² = N`` (Bertozzi et al. 2018, (4), (5), (13)).

    A spectrum without tail gives their Algorithm 2 (projection), one with a tail Algorithm 3
    (approximation: λ̄ stands for every eigenvalue left out), a full one Algorithm 1.

    Null vectors have λ = 0, which would ask for infinite variance: the graph says nothing about
    the level of u on a component as a whole. On a connected graph the paper leaves the one null
    vector out, so that u must change sign. On a disconnected one that would force *every*
    component to change sign, also one that lies within a class, and would pin isolated nodes to
    u = 0. There each null vector takes the variance of the smoothest non-constant mode,
    ``c / λ_+`` with λ_+ the smallest positive eigenvalue kept: levels are as free as anything
    the graph knows of, independent between components, and symmetric about 0, so that a
    component without labels has probability 1/2 throughout.

    Parameters
    ----------
    include_constant : bool or None, default None
        Whether null vectors take part, at variance ``c / λ_+``; None: only if the graph is
        disconnected.

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
        """``−log λ``."""
        result: Float[Array, " n"] = -array_namespace(eigenvalues).log(eigenvalues)
        return result
