"""What each part of an average explains: the posterior probability of its components."""

from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.spectrum.blocks import EIGENPAIRS

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
