"""Answers of classifiers from outside, beside a posterior of the field."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Expert:
    """Class probabilities of a classifier that knows the labels, and not the field.

    Attributes
    ----------
    name : str
        Name of the block of the basis that holds its probabilities at the nodes, shape (N, K).
    withheld : numpy.ndarray, shape (J, K)
        Its probabilities at each labelled node, without the label of that node.
    """

    name: str
    withheld: Float[np.ndarray, "J K"]
