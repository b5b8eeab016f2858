"""Ginzburg-Landau: wells at every node, with Gaussian labels or another data model."""

from typing import Any, ClassVar

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, is_learnt, parameter
from graphuq.errors import require
from graphuq.likelihoods.base import Likelihood
from graphuq.likelihoods.multiclass import check_n_classes, class_count, is_label_column
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import describe


class GinzburgLandau(Likelihood):
    r"""Real-valued labels, with wells of the field at every node (Bertozzi et al. 2018, §3.4).

    For two classes the log likelihood is ``−(u² − 1)² / (4 ε)`` at every node and
    ``−(y − u)² / (2 γ²)`` at labelled nodes. For K classes u has K columns and the wells are at the
    unit vectors e_k: ``−∏_k ¼ |u − e_k|₁² / (2 ε)`` (Garcia-Cardona, Merkurjev, Bertozzi, Flenner &
    Percus 2014, (6)) and ``−|e_y − u|² / (2 γ²)``. The field is not confined to their simplex.

    It is not log-concave: the posterior may have many modes, one for each way to fill the wells.
    All terms are normalised as Gaussian densities, of the root of the well observed to be 0 and of
    the label. Therefore ε and γ can be learnt.

    Parameters
    ----------
    epsilon : float or Distribution, default 1.0
        ε > 0; smaller values make the wells deeper.
    noise_std : float or Distribution, default 1.0
        γ > 0, in units of u and of the label: ±1, or the unit vector of its class.
    n_classes : int, default 2
        K.
    """

    epsilon: Hyperparameter = parameter(1.0)
    noise_std: Hyperparameter = parameter(1.0)
    n_classes: Hyperparameter = class_count(2)
    uses_all_nodes: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0.0, open=True, remedy="use ε > 0")
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")
        check_n_classes(self.n_classes)
        require(
            not is_learnt(self.n_classes),
            "n_classes",
            f"{self.n_classes!r}",
            "give an integer; wells of classes without labels cannot be learnt",
        )

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return minus the wells, minus the misfit where there is a label.

        Nodes without one have y = 0, or −1 for more than two classes.
        """
        xp = array_namespace(u)
        noise_std = xp.asarray(self.noise_std, u.dtype)
        if u.ndim == y.ndim:
            misfit = (y - u) ** 2 / (2 * noise_std**2) + xp.log(noise_std)
        else:
            own = is_label_column(u.shape, y).astype(u.dtype)
            misfit = ((own - u) ** 2).sum(axis=1) / (2 * noise_std**2)
            misfit += u.shape[1] * xp.log(noise_std)
        return log_wells(u, self.epsilon) - xp.where(_is_labelled(u, y), misfit, 0.0)


class GinzburgLandauPrior(Likelihood):
    r"""Wells of the field at every node, as in `GinzburgLandau`, and another model of the labels.

    The wells make a prior that is not Gaussian, which is why they stand here. With
    ``AtomicNoise(p, q)`` as labels it is the model of Bertozzi et al. 2018, §6. Such labels have no
    gradient; `ParallelTempering` with `EllipticalSlice` samples them.

    Parameters
    ----------
    label_model : Likelihood
        Model of the labels of labelled nodes, with fixed numbers: `AtomicNoise`, `LevelSet`,
        `Probit`, `Softmax`, `ConfusionMatrix` or another one of labelled nodes.
    epsilon : float or Distribution, default 1.0
        ε > 0; smaller values make the wells deeper.

    Raises
    ------
    InvalidInput
        If ``label_model`` is no such likelihood.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> likelihood = gq.likelihoods.GinzburgLandauPrior(gq.likelihoods.AtomicNoise(0.9, 0.8))
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph, n_eigenpairs=5),
    ...                          gq.priors.InverseLaplacian(), likelihood, [0, 8], [-1, 1])
    >>> result = gq.infer(posterior, gq.inference.PCN(), n_samples=400, n_chains=4, thin=20)
    >>> np.sign(gq.results.label_mean(result)[[0, 8]]).tolist()
    [-1.0, 1.0]
    """

    label_model: Likelihood
    epsilon: Hyperparameter = parameter(1.0)
    uses_all_nodes: ClassVar[bool] = True

    def __check_init__(self) -> None:
        remedy = "give a likelihood of labelled nodes with fixed numbers, such as AtomicNoise(0.9)"
        require(
            isinstance(self.label_model, Likelihood),
            "label_model",
            describe(self.label_model),
            remedy,
        )
        unusable = (
            self.label_model.uses_all_nodes
            or self.label_model.has_soft_labels
            or self.label_model.learnt
        )
        require(not unusable, "label_model", f"{self.label_model!r}", remedy)
        check_range("epsilon", self.epsilon, 0.0, open=True, remedy="use ε > 0")

    @property
    def n_classes(self) -> int:
        """Number of classes of the labels."""
        return int(getattr(self.label_model, "n_classes", 2))

    @property
    def is_multiclass(self) -> bool:
        """Whether the labels have one field per class."""
        return self.label_model.is_multiclass

    @property
    def has_gradient(self) -> bool:  # type: ignore[override]
        """Whether the model of the labels has a gradient; the wells have one."""
        return self.label_model.has_gradient

    @property
    def has_levels(self) -> bool:  # type: ignore[override]
        """Whether the probability of a label takes finitely many values."""
        return self.label_model.has_levels

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Return those of the model of the labels."""
        return self.label_model.log_levels(y)

    @property
    def link(self) -> Any:
        """That of the model of the labels."""
        return self.label_model.link

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return minus the wells, plus the log probability of each label where there is one."""
        xp, given = array_namespace(u), _is_labelled(u, y)
        known = xp.where(given, y, 1.0)
        return log_wells(u, self.epsilon) + xp.where(
            given, self.label_model.log_prob(u, known), 0.0
        )


def log_wells(u: Float[Array, "J *K"], epsilon: Any) -> Float[Array, " J"]:
    """Return minus the wells at each node, with K columns those at the K unit vectors.

    The 1-norms have kinks, where the gradient is one of two; Hamiltonian trajectories stay
    reversible and keep volume.
    """
    xp = array_namespace(u)
    width = xp.asarray(epsilon, u.dtype)
    if u.ndim == 1:
        return -((u**2 - 1) ** 2) / (4 * width) - xp.log(width) / 2
    total, size = xp.abs(u).sum(axis=1, keepdims=True), xp.abs(u)
    distances = (total - size + xp.abs(u - 1)) / 2  # half the 1-norm of u − e_k
    root = distances.prod(axis=1)
    return -(root**2) / (2 * width) - xp.log(width) / 2


def _is_labelled(u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Array:
    return y != 0 if u.ndim == y.ndim else y >= 0
