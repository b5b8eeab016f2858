"""Where nested expectation propagation starts."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class StartingSites(NamedTuple):
    """Sites of the first labels, from which sweeps start.

    Attributes
    ----------
    weights, shifts : numpy.ndarray, shape (j, K)
        As in `nested_sites.NestedSites`.
    """

    weights: Float[np.ndarray, "j K"]
    shifts: Float[np.ndarray, "j K"]
