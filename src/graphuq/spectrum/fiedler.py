"""Spectral clustering by the Fiedler vector: a baseline without labels."""

import numpy as np
from jaxtyping import Float

from graphuq.spectrum.checks import check_spectrum
from graphuq.spectrum.spectrum import Spectrum


def fiedler_signs(spectrum: Spectrum) -> Float[np.ndarray, " N"]:
    """Return the sign, ±1, of the Fiedler vector at each node: two clusters.

    It is the eigenvector of the smallest positive eigenvalue, or on a graph with negative weights
    that of the smallest. Which cluster is +1 is arbitrary (Bertozzi et al. 2018, §6.2).

    Parameters
    ----------
    spectrum : Spectrum

    Returns
    -------
    numpy.ndarray, shape (N,)

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.array([[0.0], [1], [2], [9], [10], [11]]), n_neighbors=3)
    >>> abs(gq.fiedler_signs(gq.laplacian_spectrum(graph))[:3].sum())
    np.float64(3.0)
    """
    check_spectrum(spectrum)
    place = 0 if spectrum.is_signed else min(spectrum.n_components, spectrum.n_eigenpairs - 1)
    vector = spectrum.eigenvectors[:, place]
    return np.where(vector * spectrum.node_scale >= 0, 1.0, -1.0)
