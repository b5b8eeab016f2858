"""Evidence as a function of parameters of graph, prior and likelihood, with its gradient.

    θ → weights of the pairs → Laplacian → covariance at the labels → evidence

Derivatives are computed in reverse. Let C be the columns of the inverse in
``G = [β (L + c I)⁻¹]_LL``, and S the derivative of the criterion in G. Then
``dE = −tr(S Cᵀ dL C)/β``: the columns for the value give the gradient as well, that of σ (which is
expensive in Zhu et al.) in N J² operations. Other spectral priors need the derivative of a function
of a matrix (Daleckii & Krein 1965), and for it all N eigenvectors.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphuq.errors import IncompatibleParts
from graphuq.evidence.changed_values import with_values
from graphuq.evidence.criteria import CriterionValue, evaluate
from graphuq.graphs import Graph
from graphuq.graphs.pairs import AllNodePairs, NodePairs
from graphuq.likelihoods import Likelihood
from graphuq.priors import Prior, RegularizedLaplacian
from graphuq.spectrum import Laplacian, Precision, Spectrum, laplacian_spectrum
from graphuq.utils.part import unchecked

LOG_STEP = 1e-5  # in central differences of spectral deviations, whose formulas are smooth
CLOSE = 1e-9  # difference of eigenvalues that are treated as equal
DENSE_SHARE = 0.1  # share of pairs that are edges, above which a factorisation is faster
MAX_EIGENVECTORS = 5_000  # nodes of a graph all of whose eigenvectors are computed


@dataclasses.dataclass(frozen=True, eq=False)
class GraphEvidence:
    """Evidence of labels on a graph as a function of hyperparameters.

    Attributes
    ----------
    pairs : NodePairs or AllNodePairs
        Pairs of nodes that the weights belong to.
    weight : WeightFunction
    laplacian : {"symmetric", "unnormalized", "random-walk"}
    n_eigenpairs : int or None
        ℓ of a series. By default (None) the usual number; `RegularizedLaplacian` is solved for.
    tail_eigenvalue : bool, float or "mean"
    prior : Prior
    likelihood : Likelihood
    labelled, labels : numpy.ndarray, shape (J,)
    criterion : str
        See `graphuq.evidence.criteria.evaluate`.
    tolerance : float, default 1e-10
        Tolerance of conjugate gradients; see `Precision`.
    """

    pairs: NodePairs | AllNodePairs
    weight: Any
    laplacian: str
    n_eigenpairs: int | None
    tail_eigenvalue: Any
    prior: Prior
    likelihood: Likelihood
    labelled: Int[np.ndarray, " J"]
    labels: Float[np.ndarray, " J"]
    criterion: str
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", {})

    @property
    def solved(self) -> bool:
        """Whether the covariance is solved for instead of expanded in eigenvectors."""
        return self.prior.has_sparse_precision and self.n_eigenpairs is None

    def value(self, values: dict[str, Any]) -> float:
        """Return the criterion at hyperparameters; see `value_and_gradient`."""
        return self._at(values)[0].value

    def value_and_gradient(self, values: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Return the criterion, and its derivative in the logarithm of each hyperparameter.

        Parameters
        ----------
        values : dict
            Values by names such as "weights__cutoff", "prior__beta" or "likelihood__steepness": a
            part, two underscores, and the name of one of its numbers or arrays.
        """
        criterion, basis = self._at(values)
        gradient: dict[str, Any] = {}
        graph = {k: v for k, v in values.items() if k.startswith("weights__")}
        if graph:
            diagonal, off = basis.by_laplacian(criterion.by_covariance)
            own = {k.partition("__")[2]: np.asarray(v, float) for k, v in graph.items()}
            from graphuq.evidence.weight_gradient import weight_gradient

            pulled = weight_gradient(self.pairs, self.weight, self.laplacian, own, diagonal, off)
            gradient |= {f"weights__{k}": own[k] * v for k, v in pulled.items()}
        for name, value in values.items():
            part, _, own_name = name.partition("__")
            if part == "likelihood":
                gradient[name] = criterion.by_likelihood[own_name] * value
            elif part == "prior":
                gradient[name] = basis.by_prior(criterion.by_covariance, own_name)
        return criterion.value, gradient

    def _at(self, values: dict[str, Any]) -> tuple[CriterionValue, Any]:
        prior, likelihood = (
            with_values(getattr(self, part), _own(values, part)) for part in ("prior", "likelihood")
        )
        basis = self._basis(_own(values, "weights"), prior)
        return evaluate(basis.covariance, likelihood, self.labels, self.criterion), basis

    def _basis(self, of_weights: dict[str, Any], prior: Any) -> Any:
        """Return the covariance at the labels, with a cache of its expensive parts."""
        key = repr(sorted(of_weights.items())) + (f" {prior.shift!r}" if self.solved else "")
        known: dict[str, Any] = self.__dict__["_known"]
        if key not in known:
            before = next(iter(known.values()), None)
            known.clear()
            graph = self._graph(with_values(self.weight, of_weights))
            kind = _SolvedBasis if self.solved else _SeriesBasis
            known[key] = kind.of(self, graph, prior, before)
        return known[key].under(prior)

    def _graph(self, weight: Any) -> Graph:
        """Return the graph, unchecked because it is made in every evaluation."""
        values = self.pairs.weights(weight)
        weights: Any = self.pairs.adjacency(values)
        components = np.zeros(self.pairs.n_nodes, dtype=np.int64)
        if sparse.issparse(weights):
            weights.eliminate_zeros()
            components = connected_components(weights, directed=False)[1].astype(np.int64)
            if weights.nnz > DENSE_SHARE * self.pairs.n_nodes**2:
                weights = weights.toarray()
        degrees = np.asarray(weights.sum(axis=1)).ravel()
        return Graph(weights, degrees, components, settings={"graph": "searched"})


@dataclasses.dataclass(frozen=True, eq=False)
class _SolvedBasis:
    """Covariance from the columns C of ``(L + c I)⁻¹`` at the labelled nodes."""

    model: GraphEvidence
    prior: RegularizedLaplacian
    columns: Float[np.ndarray, "N J"]
    scale: Float[np.ndarray, " J"]

    @staticmethod
    def of(model: GraphEvidence, graph: Graph, prior: Any, before: Any) -> "_SolvedBasis":
        laplacian = Laplacian(graph, model.laplacian)
        right = np.zeros((graph.n_nodes, len(model.labelled)))
        right[model.labelled, np.arange(len(model.labelled))] = 1.0
        start = None if before is None else before.columns
        precision = Precision(
            laplacian, float(prior.shift), factorize=False, tolerance=model.tolerance
        )
        columns = precision.solve(right, start)
        return _SolvedBasis(model, prior, columns, laplacian.node_scale[model.labelled])

    def under(self, prior: Any) -> "_SolvedBasis":
        """Return the covariance with another β."""
        return dataclasses.replace(self, prior=prior)

    @property
    def covariance(self) -> Float[np.ndarray, "J J"]:
        """Covariance ``G_LL`` at the labelled nodes."""
        own = self.columns[self.model.labelled] * np.multiply.outer(self.scale, self.scale)
        return (own + own.T) / (2 * float(self.prior.beta))

    def by_laplacian(
        self, by_covariance: Float[np.ndarray, "J J"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative in the diagonal of L and in its entries at the pairs."""
        if self.model.laplacian == "random-walk":
            raise IncompatibleParts(
                "continuous parameters of a graph have no gradient here under the random walk's "
                "Laplacian; use 'unnormalized' or 'symmetric', or give a list of values"
            )
        scaled = self.columns @ (by_covariance / float(self.prior.beta))
        return _at_pairs(self.model.pairs, -scaled, self.columns)

    def by_prior(self, by_covariance: Float[np.ndarray, "J J"], name: str) -> float:
        """Return the derivative in log β, or in log σ: ``dG = (2c/β) Cᵀ C d log σ``."""
        if name == "beta":
            return float(-(by_covariance * self.covariance).sum())
        scaled = self.columns * self.scale
        change = 2 * float(self.prior.shift / self.prior.beta)
        return change * float(((scaled @ by_covariance) * scaled).sum())


@dataclasses.dataclass(frozen=True, eq=False)
class _SeriesBasis:
    """Covariance from eigenpairs and the spectral deviations of a prior."""

    model: GraphEvidence
    prior: Prior
    spectrum: Spectrum
    laplacian: Laplacian

    @staticmethod
    def of(model: GraphEvidence, graph: Graph, prior: Prior, before: Any) -> "_SeriesBasis":
        spectrum = laplacian_spectrum(
            graph, model.laplacian, model.n_eigenpairs, tail_eigenvalue=model.tail_eigenvalue
        )
        laplacian = Laplacian(graph, model.laplacian)
        return _SeriesBasis(model, prior.bind(spectrum), spectrum, laplacian)

    def under(self, prior: Prior) -> "_SeriesBasis":
        """Return the covariance with another prior."""
        return dataclasses.replace(self, prior=prior.bind(self.spectrum))

    @property
    def covariance(self) -> Float[np.ndarray, "J J"]:
        """Covariance ``G_LL`` at the labelled nodes."""
        return self._covariance(self.prior)

    def _covariance(self, prior: Prior) -> Float[np.ndarray, "J J"]:
        std, nodes = prior.spectral_std(self.spectrum), self.model.labelled
        rows, scale = self.spectrum.eigenvectors[nodes], self.spectrum.node_scale[nodes]
        tail = std.tail**2
        found = (rows * (std.modes**2 - tail)) @ rows.T + tail * np.eye(len(nodes))
        return np.asarray(scale[:, None] * found * scale)

    def by_prior(self, by_covariance: Float[np.ndarray, "J J"], name: str) -> float:
        """Return the derivative in the logarithm of a hyperparameter, by central differences."""
        at = getattr(self.prior, name)
        above, below = (
            self._covariance(with_values(self.prior, {name: at * np.exp(sign * LOG_STEP)}))
            for sign in (1, -1)
        )
        return float((by_covariance * (above - below)).sum() / (2 * LOG_STEP))

    def by_laplacian(
        self, by_covariance: Float[np.ndarray, "J J"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative in the diagonal of L and in its entries at the pairs.

        With ``B = Q_Lᵀ S Q_L`` and f the variances of modes, ``dE = tr(Γ∘B · Qᵀ dL Q)``. Off the
        diagonal ``Γ_ij = (f_i − f_j)/(λ_i − λ_j)``. On it, Γ is the derivative of f in each
        eigenvalue, its normalisation included.
        """
        model, spectrum, n_nodes = self.model, self.spectrum, self.spectrum.n_nodes
        if (
            n_nodes > MAX_EIGENVECTORS
            or model.tail_eigenvalue is not False
            or model.laplacian == "random-walk"
        ):
            raise IncompatibleParts(
                f"continuous parameters of a graph of {n_nodes} nodes under {self.prior}: its "
                f"gradient needs all eigenvectors of at most {MAX_EIGENVECTORS} nodes, no tail "
                "and no random walk; give a list of values, or use RegularizedLaplacian"
            )
        values, vectors = np.linalg.eigh(self.laplacian.dense())
        kept = spectrum.n_eigenpairs
        variances = np.zeros(n_nodes)
        variances[:kept] = self.prior.spectral_std(spectrum).modes ** 2
        rows = vectors[model.labelled]
        b = rows.T @ by_covariance @ rows
        apart = values[:, None] - values[None, :]
        near = np.abs(apart) < CLOSE
        own, slopes = self._by_eigenvalues(np.diagonal(b)[:kept])
        level = (slopes[:, None] + slopes[None, :]) / 2
        rise = variances[:, None] - variances[None, :]
        quotient = np.where(near, level, rise / np.where(near, 1.0, apart))
        core = quotient * b
        core[np.diag_indices(n_nodes)] = own
        return _at_pairs(model.pairs, vectors @ core, vectors)

    def _by_eigenvalues(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative of ``Σ_j weights_j f_j`` in each eigenvalue, and ``f'`` by mode."""
        from graphuq.utils.with_jax import jax, jnp

        modes, n_nodes = self.prior.modes(self.spectrum), self.spectrum.n_nodes
        n_null, kept = self.spectrum.n_null, len(weights)
        with jax.enable_x64(True):

            def total(eigenvalues: Any) -> Any:
                values = jnp.asarray(eigenvalues)
                if not self.prior.frees_null_vectors:
                    values = values.at[:n_null].set(values[n_null])
                found = self.prior.std_of(unchecked(modes, {"eigenvalues": values}))
                return (jnp.asarray(weights) * found.modes**2).sum()

            eigenvalues = jnp.asarray(self.spectrum.eigenvalues)
            by_value = np.asarray(jax.grad(total)(eigenvalues))
            logs = jax.jvp(
                self.prior.log_variances, (eigenvalues + 1e-300,), (jnp.ones_like(eigenvalues),)
            )[1]
        own, slopes = np.zeros(n_nodes), np.zeros(n_nodes)
        own[:kept] = by_value
        std = self.prior.spectral_std(self.spectrum).modes
        slopes[:kept] = np.where(std > 0, std**2 * np.asarray(logs), 0.0)
        return own, slopes


def _at_pairs(
    pairs: NodePairs | AllNodePairs, left: np.ndarray, right: np.ndarray
) -> tuple[Any, Any]:
    """Return the diagonal of ``A Bᵀ``, and its symmetrised entries at the pairs."""
    diagonal = np.einsum("nj,nj->n", left, right)
    if isinstance(pairs, AllNodePairs):
        product = left @ right.T
        return diagonal, (product + product.T) / 2
    first, second = pairs.rows, pairs.columns
    off = np.einsum("ej,ej->e", left[first], right[second])
    return diagonal, off + np.einsum("ej,ej->e", left[second], right[first])


def _own(values: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the values of one part by their names in it."""
    return {k.partition("__")[2]: v for k, v in values.items() if k.startswith(f"{part}__")}
