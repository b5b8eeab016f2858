"""Prior × likelihood at the labelled nodes. No draws live here."""

import dataclasses
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.sparse.linalg import cg
from jaxtyping import Float, Int, PRNGKeyArray

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.field import (
    Array,
    Field,
    LabelledField,
    LowRankField,
    NodeField,
    NoisyField,
    labelled_field,
    series_field,
)
from graphuq.likelihoods import Likelihood, NoiseFree, Probit, StepLikelihood
from graphuq.priors import Prior, SpectralStd
from graphuq.spectrum import Spectrum

MAX_REFLECTIONS = 10_000  # before a start is taken as it is
START_NOISE = 0.5  # wide enough that starts differ, narrow enough that most labels fit


class Target(eqx.Module):
    """What a sampler sees: a standard normal prior times a likelihood, in white coordinates.

    Attributes
    ----------
    field : Field
    likelihood : Likelihood
    labels : array of ±1, shape (J,)
        0 where a likelihood that speaks of every node is given no label.
    """

    field: Field
    likelihood: Likelihood
    labels: Float[Array, " J"]

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return self.field.dimension

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log likelihood of all labels, up to a constant; ``−Φ(u)`` of the papers."""
        return self.likelihood.log_prob(self.field.at_labelled(white), self.labels).sum()

    def start(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        """An overdispersed point near the labels, for a chain to start from.

        A draw from the Gaussian posterior that would hold if the labels were values of u
        seen through noise of standard deviation `START_NOISE` (Matheron's rule).
        """
        key_white, key_noise = jax.random.split(key)
        dtype = self.labels.dtype
        white = jax.random.normal(key_white, (self.dimension,), dtype)
        noise = START_NOISE * jax.random.normal(key_noise, self.labels.shape, dtype)
        transpose = jax.linear_transpose(self.field.at_labelled, white)

        given = self.labels != 0

        def covariance(x: jax.Array) -> jax.Array:
            image: jax.Array = self.field.at_labelled(transpose(x)[0])
            return jnp.where(given, image, 0.0) + START_NOISE**2 * x

        misfit = jnp.where(given, self.labels - self.field.at_labelled(white) - noise, 0.0)
        weights, _ = cg(  # type: ignore[no-untyped-call]
            covariance, misfit, tol=1e-3, maxiter=100
        )
        return self.possible(white + transpose(weights)[0])

    def possible(self, white: Float[Array, " n"]) -> Float[Array, " n"]:
        """A point near this one whose likelihood is not zero, where the likelihood can be.

        Reflects at the wall that is violated most until none is (Motzkin & Schoenberg 1954).
        """
        if not isinstance(self.likelihood, StepLikelihood):
            return white
        impossible = self.likelihood.log_levels(self.labels)[1] == -jnp.inf

        def margins(x: Any) -> Any:
            return jnp.where(impossible, self.labels * self.field.at_labelled(x), 1.0)

        def violated(carry: Any) -> Any:
            x, n_reflections = carry
            return (margins(x) <= 0).any() & (n_reflections < MAX_REFLECTIONS)

        def reflect(carry: Any) -> Any:
            x, n_reflections = carry
            margin = margins(x)
            j = jnp.argmin(margin)
            unit = jnp.zeros_like(self.labels).at[j].set(self.labels[j])
            normal = jax.linear_transpose(self.field.at_labelled, x)(unit)[0]
            size = normal @ normal
            step = (1e-3 * jnp.sqrt(size) - 2 * margin[j]) / size
            return x + step * normal, n_reflections + 1

        return jax.lax.while_loop(violated, reflect, (white, 0))[0]

    def log_density(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Log posterior density in white coordinates, up to a constant."""
        return self.log_likelihood(white) - 0.5 * (white**2).sum()


class ReferredTarget(eqx.Module):
    """The same posterior, whitened by a Gaussian that is close to it instead of by its prior.

    With ``x = U (μ + √s z)``, z is standard normal under the reference and the rest of the
    density, ``log p(y | x) − |x|²/2 + |z|²/2``, takes the place of the log likelihood: a kernel
    that leaves the prior invariant then proposes from the reference. U makes the reference's
    covariance diagonal and the prior no less white, so that a step costs what it did.
    """

    target: Target  # in the coordinates Uᵀ x
    mean: Float[Array, " n"]  # μ
    scale: Float[Array, " n"]  # √s

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.target.dimension

    def to_target(self, z: Float[Array, "*S n"]) -> Float[Array, "*S n"]:
        """Coordinates of `target` that belong to z."""
        return self.mean + self.scale * z

    def log_likelihood(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Log density of the posterior over the reference, up to a constant."""
        white = self.to_target(z)
        return self.target.log_density(white) + 0.5 * (z**2).sum()

    def start(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        """A draw from the reference, or a possible point near it."""
        z = jax.random.normal(key, (self.dimension,), self.mean.dtype)
        return (self.target.possible(self.to_target(z)) - self.mean) / self.scale


def with_noise_sampled(target: Target) -> Target | None:
    """The same posterior with the probit's noise among the coordinates; None for others.

    ``y = sign(u + γ ε)``: given u and ε no doubt is left, and the likelihood is `NoiseFree`.
    """
    if not isinstance(target.likelihood, Probit):
        return None
    noisy = NoisyField(target.field, target.likelihood.noise_std, len(target.labels))
    return Target(noisy, NoiseFree(), target.labels)


def refer(
    target: Target, mean: Float[np.ndarray, " n"], covariance: Float[np.ndarray, "n n"]
) -> tuple[ReferredTarget, Float[np.ndarray, "n n"]]:
    """Whiten a target by the Gaussian of a given mean and covariance in its coordinates.

    Returns
    -------
    referred : ReferredTarget
    rotation : numpy.ndarray, shape (n, n)
        U: coordinates of ``target`` are ``rotation @ referred.to_target(z)``.

    Raises
    ------
    IncompatibleParts
        If the field has a tail and more labels than modes: then no n×n matrix is kept.
    """
    if not isinstance(target.field, LowRankField):
        raise IncompatibleParts(
            "a reference needs a field without a tail, or with fewer labels than eigenpairs; "
            "sample without reference"
        )
    variances, rotation = np.linalg.eigh(covariance)
    rotated = Target(target.field.rotated(rotation), target.likelihood, target.labels)
    return ReferredTarget(rotated, rotation.T @ mean, np.sqrt(variances)), rotation


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """The law of the field, and so of every label, given labels on a few nodes (MATH §1-§3).

    Parameters
    ----------
    spectrum : Spectrum
    prior : Prior
    likelihood : Likelihood
    labelled : array_like of int, shape (J,)
        Indices of the labelled nodes, each once.
    labels : array_like, shape (J,)
        −1 or +1 for each; both must occur.

    Raises
    ------
    InvalidInput
        If there are no labels, labels other than ±1, labels of one class only, a node that is
        not there, or a node labelled twice.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.InverseLaplacian(),
    ...                          gq.likelihoods.Probit(), labelled=[0, 8], labels=[-1, 1])
    >>> posterior.dimension
    2
    """

    spectrum: Spectrum
    prior: Prior
    likelihood: Likelihood
    labelled: Any
    labels: Any

    def __post_init__(self) -> None:
        labelled, labels = _check_labels(self.labelled, self.labels, self.spectrum.n_nodes)
        object.__setattr__(self, "labelled", labelled)
        object.__setattr__(self, "labels", labels)

    @cached_property
    def std(self) -> SpectralStd:
        """Spectral standard deviations of the prior."""
        return self.prior.spectral_std(self.spectrum)

    @cached_property
    def field(self) -> LabelledField:
        """The prior at the nodes that the likelihood sees, and the law of the rest given it."""
        if self.likelihood.everywhere and self.std.tail == 0.0:
            return series_field(self.spectrum, self.std)
        return labelled_field(self.spectrum, self.std, self.seen_nodes)

    @cached_property
    def seen_nodes(self) -> Int[np.ndarray, " J"]:
        """Nodes that the likelihood speaks of: the labelled ones, or all."""
        return np.arange(self.spectrum.n_nodes) if self.likelihood.everywhere else self.labelled

    @cached_property
    def seen_labels(self) -> Float[np.ndarray, " J"]:
        """Their labels, 0 where there is none."""
        if not self.likelihood.everywhere:
            return self.labels
        labels = np.zeros(self.spectrum.n_nodes)
        labels[self.labelled] = self.labels
        return labels

    @cached_property
    def target(self) -> Target:
        """The posterior in white coordinates at the labelled nodes."""
        return Target(self.field, self.likelihood, self.seen_labels)

    @property
    def node_target(self) -> Target:
        """The same law in the papers' N-dimensional form; slow, for tests."""
        spectrum = self.spectrum
        field = NodeField(spectrum.eigenvectors, self.std, spectrum.node_scale, self.seen_nodes)
        return Target(field, self.likelihood, self.seen_labels)

    @property
    def dimension(self) -> int:
        """Number of white coordinates of `target`."""
        return self.target.dimension

    @property
    def has_evidence(self) -> np.ndarray:
        """Whether a node's component holds a label, shape (N,)."""
        components = self.spectrum.components
        return np.isin(components, components[self.labelled])

    def __repr__(self) -> str:
        return (
            f"Posterior({self.prior}, {self.likelihood}, {len(self.labels)} labels on "
            f"{self.spectrum.n_nodes} nodes, {self.spectrum.n_eigenpairs} eigenpairs)"
        )


def _check_labels(
    labelled: Any, labels: Any, n_nodes: int
) -> tuple[Int[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    nodes = np.asarray(labelled)
    require(
        nodes.ndim == 1 and nodes.size > 0,
        "labelled",
        f"shape {nodes.shape}",
        "give the indices of the labelled nodes, at least one of each class",
    )
    if not np.issubdtype(nodes.dtype, np.integer):
        raise InvalidInput("labelled", f"of type {nodes.dtype}", "give integer node indices")
    outside = nodes[(nodes < 0) | (nodes >= n_nodes)]
    require(
        outside.size == 0,
        "labelled",
        f"node {outside[:1].tolist()} is not there",
        f"use indices from 0 to {n_nodes - 1}",
    )
    require(
        len(np.unique(nodes)) == len(nodes),
        "labelled",
        "a node is labelled twice",
        "give each node once",
    )
    values = np.asarray(labels)
    require(
        values.shape == nodes.shape,
        "labels",
        f"shape {values.shape} beside {nodes.size} labelled nodes",
        "give one label a labelled node",
    )
    strange = [value for value in np.unique(values).tolist() if value not in (-1, 1)]
    require(
        not strange,
        "labels",
        f"{strange[:3]} beside -1 and +1",
        "code the two classes as -1 and +1, or use GraphClassifier for labels of any type",
    )
    require(
        len(np.unique(values)) == 2,
        "labels",
        f"only the class {np.unique(values).tolist()}",
        "label at least one node of each of the two classes",
    )
    return nodes.astype(np.int64), values.astype(np.float64)
