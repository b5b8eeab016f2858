"""Types of what users pass to the classifier."""

from typing import TypeAlias

from numpy.typing import ArrayLike
from scipy import sparse

Table: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
"""One row a node, dense or sparse; or a data frame."""
