"""What each part of an average explains: the posterior probability of its components."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from graphuq.spectrum.blocks import EIGENPAIRS
from graphuq.spectrum.few_variables import FEW_VARIABLES

if TYPE_CHECKING:
    from graphuq.results.result import Result


def block_weights(result: "Result") -> dict[str, float]:
    """Return the posterior probability of each block of an average, the largest first.

    The field of a component is on one block, such as a graph, or is the sum of fields on two,
    whose names are then joined by " + ". The probability of a name is that the labels come from
    such a field.

    Parameters
    ----------
    result : Result

    Returns
    -------
    dict of str to float
        They add to one. Blocks below 0.001, or without a draw, are left out. Empty for a result
        that is no average.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> ring, path = gq.graphs.ring_graph(40), gq.graphs.path_graph(40)
    >>> y = np.where(np.arange(40) % 4, -1, np.arange(40) >= 20)
    >>> classifier = gq.GraphClassifier({"ring": ring, "path": path},
    ...                                 inference="expectation-propagation")
    >>> weights = gq.results.block_weights(classifier.fit(None, y).result_)
    >>> bool(abs(sum(weights.values()) - 1) < 1e-9)
    True
    """
    prior: Any = result.posterior.prior
    drawn = result.answer.hyperparameters.get("component")
    if drawn is None or not prior.is_mixture:
        return {}
    first = result.posterior.spectrum.settings.get("name", "graph")
    names = np.array(
        [
            " + ".join(first if term.block == EIGENPAIRS else term.block for term in terms)
            for terms in prior.components
        ]
    )[np.asarray(drawn).astype(int).ravel()]
    found, counts = np.unique(names, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(found[k]): float(counts[k] / counts.sum()) for k in order}


def few_columns(result: "Result") -> Int[np.ndarray, " s"]:
    """Return the columns of X of the few variables that the labels chose, counted from 0.

    They are those of the block "few variables" in `block_weights`, which says how much of the
    answer comes from them. A category is several columns.

    Parameters
    ----------
    result : Result

    Returns
    -------
    numpy.ndarray of int, shape (s,)
        Ascending; empty if no such block is part of the answer.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).random((200, 12))
    >>> y = np.where(np.arange(200) < 40, X[:, 7] > 0.5, -1)
    >>> gq.results.few_columns(gq.GraphClassifier().fit(X, y).result_)
    array([7])
    """
    for block in result.posterior.spectrum.blocks:
        if block.name == FEW_VARIABLES and block.scales is not None:
            return np.flatnonzero(np.isfinite(block.scales))
    return np.arange(0)
