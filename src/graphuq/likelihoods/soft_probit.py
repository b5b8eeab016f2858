"""Probit likelihood of soft labels: a distribution over the classes for each labelled node."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, is_learnt, parameter
from graphuq.errors import require
from graphuq.likelihoods.base import Likelihood, PerLabel, Tilted
from graphuq.likelihoods.multiclass import log_probit_probability
from graphuq.utils.arrays import (
    Array,
    array_namespace,
    is_of_jax,
    mapped,
    special_functions,
)
from graphuq.utils.checks import describe
from graphuq.utils.part import part_field
from graphuq.utils.special_functions import (
    log_normal_cdf,
    normal_hazard,
    probit_label_mean,
)

SUM_TOLERANCE = 1e-6
REMEDY = "give a matrix of numbers: a row for each labelled node, a column for each class"


def _matrix(values: Any) -> Any:
    """Return probabilities as an array in double; those of JAX, or shapes, stay as they are."""
    if values is None or is_of_jax(values):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    require(array.dtype.kind in "biuf", "probabilities", describe(values), REMEDY)
    return array.astype(np.float64)


class SoftProbit(Likelihood):
    r"""Probit whose labels are distributions: ``p(q_j | u) = Σ_k q_jk p(y_j = k | u_j)``.

    q_j is what somebody believes about the class of node j who has seen the node, and neither the
    graph nor other labels, and for whom all classes were equally probable before. If their shares
    π were others, give ``q_jk / π_k``, divided by its sum. With ``q_j = e_k`` it is the `Probit`.
    See docs/theory/labels.md, "Soft labels".

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0 of the probit, in units of u.
    probabilities : array_like, shape (J, K)
        q: one row for each labelled node, in the order of ``Posterior.labelled``. Rows sum to 1.
        Without it, labels of two classes are numbers ``2 q − 1`` in [−1, 1]; only evidence takes
        those.
    random_labels : bool, default False
        As for `Probit`.

    Raises
    ------
    InvalidInput
        If the probabilities are not such a matrix.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> likelihood = gq.likelihoods.SoftProbit(0.5, [[0.9, 0.1], [0.3, 0.7]])
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.InverseLaplacian(),
    ...                          likelihood, labelled=[0, 8], labels=likelihood.most_probable)
    >>> result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    >>> np.sign(gq.results.label_mean(result)[[1, 7]]).tolist()
    [-1.0, 1.0]
    """

    noise_std: Hyperparameter = parameter(0.1)
    probabilities: Any = part_field(converter=_matrix, default=None)
    random_labels: bool = part_field(default=False, static=True)
    has_gaussian_tails: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    has_soft_labels: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")
        if isinstance(self.probabilities, np.ndarray):
            q = self.probabilities
            require(q.ndim == 2 and q.shape[1] >= 2, "probabilities", f"shape {q.shape}", REMEDY)
            wrong = ~(np.isfinite(q).all(axis=1) & (q >= 0).all(axis=1))
            wrong |= ~(np.abs(q.sum(axis=1) - 1) <= SUM_TOLERANCE)
            row = int(wrong.argmax())
            require(
                not wrong.any(),
                "probabilities",
                f"{q[row].tolist()} in row {row}",
                "give numbers >= 0 that sum to 1",
            )

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return 2 if self.probabilities is None else int(self.probabilities.shape[1])

    @property
    def most_probable(self) -> np.ndarray:
        """The most probable class of each label: −1 or +1, or its code."""
        largest = np.asarray(self.probabilities).argmax(axis=1)
        return largest if self.is_multiclass else 2 * largest - 1

    @property
    def link(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weight 1 and scale γ with ``random_labels``, if γ is a number."""
        if not self.random_labels or is_learnt(self.noise_std):
            return None
        return np.ones(1), np.array([float(self.noise_std)])

    def one_vs_rest_likelihood(self) -> "SoftProbit":
        """Return the likelihood whose labels are numbers 2q − 1, for each class."""
        return SoftProbit(self.noise_std)

    def one_vs_rest_labels(self) -> list[Float[np.ndarray, " J"]]:
        """Return labels 2q − 1 of each class against the rest; of the second class if K = 2."""
        columns = 2 * np.asarray(self.probabilities).T - 1
        return list(columns if self.is_multiclass else columns[1:])

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log Σ_k q_k p(y = k | u)`` of each node; y matters without probabilities."""
        xp = array_namespace(u)
        if u.ndim == y.ndim:
            negative, positive = self._log_shares(y)
            z = u / self.noise_std
            return xp.logaddexp(positive + log_normal_cdf(z), negative + log_normal_cdf(-z))

        def of_class(k: Array) -> Array:
            codes = xp.zeros_like(y) + k.astype(y.dtype)
            found: Array = log_probit_probability(u, codes, self.noise_std, self.n_classes)
            return found

        logs = mapped(of_class, xp.arange(self.n_classes))
        shares = xp.asarray(self.probabilities, u.dtype).T
        return special_functions(logs).logsumexp(logs, axis=0, b=shares)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return ``log(q Φ(z) + (1 − q) Φ(−z))``, ``z = mean / √(γ² + variance)``, K = 2."""
        negative, positive = self._log_shares(y)
        z = mean / array_namespace(mean).sqrt(self.noise_std**2 + variance)
        both = positive + log_normal_cdf(z), negative + log_normal_cdf(-z)
        return array_namespace(mean).logaddexp(*both)

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives in closed form, for two classes."""
        root = np.sqrt(self.noise_std**2 + variance)
        z, (total, above, below) = mean / root, self._sides(mean, variance, y)
        slope = above * normal_hazard(z) - below * normal_hazard(-z)
        return Tilted(total, slope / root, -slope * (z + slope) / root**2)

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Return the derivative in γ; Z solves the heat equation ``∂Z/∂γ² = Z''/2``."""
        _, first, second = self.tilt(mean, variance, y)
        return {"noise_std": float(self.noise_std * (second + first**2).sum())}

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return the average of those of labels +1 and −1, by their shares of Z."""
        _, above, below = self._sides(mean, variance, y)
        ones, noise_std = np.ones_like(mean), float(self.noise_std)
        both = [probit_label_mean(mean, variance, sign * ones, noise_std) for sign in (1, -1)]
        label_mean: np.ndarray = above * both[0] + below * both[1]
        return label_mean

    def _sides(
        self, mean: PerLabel, variance: PerLabel, y: PerLabel
    ) -> tuple[PerLabel, PerLabel, PerLabel]:
        """Return log Z, and the shares of the labels +1 and −1 in Z."""
        negative, positive = self._log_shares(y)
        z = mean / np.sqrt(self.noise_std**2 + variance)
        above, below = positive + log_normal_cdf(z), negative + log_normal_cdf(-z)
        total = np.logaddexp(above, below)
        return total, np.exp(above - total), np.exp(below - total)

    def _log_shares(self, y: Float[Array, " J"]) -> tuple[Array, Array]:
        """Return log probabilities of −1 and +1 for labels of two classes.

        The labels of all nodes may be repeated, one draw of u after the other.
        """
        xp = array_namespace(y)
        if self.probabilities is None:
            shares = (1 - y) / 2, (1 + y) / 2
        else:
            n_times, left = divmod(len(y), len(self.probabilities))
            require(
                left == 0,
                "labels",
                f"{len(y)} of {len(self.probabilities)} soft labels",
                "give all of them, in their order",
            )
            columns = xp.asarray(self.probabilities, y.dtype).T
            shares = xp.tile(columns[0], n_times), xp.tile(columns[1], n_times)
        smallest = xp.finfo(y.dtype).tiny  # log 0 would be a warning; this is as good
        first, second = (xp.log(xp.maximum(share, smallest)) for share in shares)
        return first, second
