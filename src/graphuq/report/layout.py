"""Places of the nodes on the map."""

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import rankdata

from graphuq.plots.nodes import leading_eigenvectors
from graphuq.results.result import Result

RANKS = 0.5  # share of ranks in a place; the rest is the eigenvector itself


def node_layout(result: Result, nodes: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"] | None:
    """Return places in the unit square, or None if the spectrum has no eigenvectors.

    A coordinate is the mean of an eigenvector, scaled to [0, 1], and of its ranks. Eigenvectors
    alone put most nodes of a large graph on one spot; ranks alone lose all distances.
    """
    spectrum = result.posterior.spectrum
    if not spectrum.has_eigenpairs:
        return None
    columns = [spectrum.eigenvectors[nodes, k] for k in leading_eigenvectors(spectrum)]
    return np.stack([_spread(np.asarray(column)) for column in columns], axis=1)


def _spread(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    width = float(np.ptp(values))
    own = (values - values.min()) / width if width > 0 else np.full(len(values), 0.5)
    ranks = (rankdata(values) - 1) / max(1, len(values) - 1)
    return (1 - RANKS) * own + RANKS * ranks
