"""Atomic noise of K classes: each label is wrong with a probability that depends on its class."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import require
from graphuq.likelihoods.base import Likelihood
from graphuq.likelihoods.multiclass import codes
from graphuq.utils.arrays import Array, array_namespace, is_of_jax
from graphuq.utils.checks import describe
from graphuq.utils.part import part_field

SUM_TOLERANCE = 1e-6
REMEDY = "give a K × K matrix of numbers, a row for each true class and a column for each label"


def _matrix(value: Any) -> Any:
    """Return a matrix in double; one of JAX, or its shape alone, stays as it is."""
    if is_of_jax(value):
        return value
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return np.asarray(np.nan)


class ConfusionMatrix(Likelihood):
    r"""Labels of K classes with known errors: ``p(y = l | u) = C[k, l]``, ``k = argmax u``.

    It is the `AtomicNoise` of Bertozzi et al. 2018, §3.3 and §6, for more than two classes. With
    equal errors, ``C[k, k] = p`` and ``(1 − p)/(K − 1)`` elsewhere, it is `LevelSet` with
    ``exp(−1/γ²) = (1 − p)/(p (K − 1))``, which has more samplers; without errors it is `NoiseFree`.
    A matrix that is not known is learnt by `AnnotatorClassifier`, one for each annotator. If the
    true class is a probit of u, `SoftProbit` with rows ``q_j ∝ C[:, y_j]`` has the same labels.

    Parameters
    ----------
    matrix : array_like, shape (K, K)
        C, probabilities in (0, 1) whose rows add up to 1. K is at least 3. A label must be more
        probable in its own class than in any other.

    Raises
    ------
    InvalidInput
        If it is no such matrix.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> errors = [[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8]]
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.Matern(),
    ...                          gq.likelihoods.ConfusionMatrix(errors), [0, 4, 8], [0, 1, 2])
    >>> result = gq.infer(posterior, gq.inference.EllipticalSlice(), n_samples=500, n_chains=4)
    >>> result.probabilities.shape
    (9, 3)
    """

    matrix: Any = part_field(
        converter=_matrix, default=((0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.05, 0.05, 0.9))
    )
    has_gradient: ClassVar[bool] = False
    has_levels: ClassVar[bool] = True

    def __check_init__(self) -> None:
        c = self.matrix
        if not isinstance(c, np.ndarray):
            return
        square = c.ndim == 2 and c.shape[0] == c.shape[1]
        require(square, "matrix", describe(c), REMEDY)
        require(len(c) > 2, "matrix", f"{len(c)} classes", "use AtomicNoise(p, q) for two classes")
        wrong = ~((c > 0) & (c < 1)).all(axis=1) | ~(np.abs(c.sum(axis=1) - 1) <= SUM_TOLERANCE)
        row = int(wrong.argmax())
        require(
            not wrong.any(),
            "matrix",
            f"{c[row].tolist()} in row {row}",
            "give probabilities in (0, 1) that add up to 1; without errors use NoiseFree",
        )
        others = np.where(np.eye(len(c), dtype=bool), 0.0, c).max(axis=0)
        weak = np.flatnonzero(others >= np.diag(c))
        require(
            len(weak) == 0,
            "matrix",
            f"label {weak[:1].tolist()} is at least as probable in another class as in its own",
            "exchange columns, or lower the probabilities of errors",
        )

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return int(np.shape(self.matrix)[0])

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Return the log of the largest and of the smallest probability of each label."""
        columns = np.log(np.asarray(self.matrix))[:, np.asarray(y, dtype=int)]
        return columns.max(axis=0), columns.min(axis=0)

    def log_prob(self, u: Float[Array, "J K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log C[argmax u, y]`` of each label."""
        xp = array_namespace(u)
        logs: Float[Array, " J"] = xp.log(xp.asarray(self.matrix, u.dtype))[
            u.argmax(axis=1), codes(y)
        ]
        return logs
