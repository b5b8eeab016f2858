"""Linear functions of the features: a block of columns beside the eigenpairs of a graph."""

import numpy as np

from graphuq.graphs.inputs import MatrixLike
from graphuq.graphs.principal import PrincipalComponents
from graphuq.spectrum.known_blocks import Functions

LINEAR = "linear"  # name of the block


def linear_functions(features: MatrixLike) -> Functions:
    """Return up to 100 principal components, whose rows have the mean square length 1.

    Without any, all rows are equal.

    Parameters
    ----------
    features : array_like or sparse matrix, shape (N, d)
        Dense ones are centred.

    Examples
    --------
    >>> block = linear_functions(np.random.default_rng(0).normal(size=(50, 3)))
    >>> block.values.shape, round(float((block.values**2).sum() / 50), 6)
    ((50, 3), 1.0)
    """
    scores, variances = PrincipalComponents(features).of(standardised=False)
    return Functions(LINEAR, scores / np.sqrt(variances.sum() or 1.0))
