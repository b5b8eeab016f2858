"""What a sampler sees: white coordinates and a likelihood."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.sparse.linalg import cg
from jaxtyping import Float, PRNGKeyArray

from graphuq.errors import IncompatibleParts
from graphuq.likelihoods import Likelihood, NoiseFree, Probit, StepLikelihood
from graphuq.posterior.field import ClassField, Field, LowRankField, NoisyField, of_one_class
from graphuq.utils.arrays import Array, with_dtype

MAX_HALVINGS = 20  # of the distance from the mean of a reference, of a start
MAX_REFLECTIONS = 10_000  # before a start is taken as it is
MAX_DENSE = 1_000  # white coordinates of several classes, which a reference mixes
MAX_IN_NUMPY = 2**22  # log likelihoods of a label, which NumPy finds while a program is compiled
START_NOISE = 0.5  # wide enough that starts differ, narrow enough that most labels fit


class Target(eqx.Module):
    """What a sampler sees: a standard normal prior times a likelihood, in white coordinates.

    Attributes
    ----------
    field : Field
    likelihood : Likelihood
    labels : array of ±1, or of codes of classes, shape (J,)
        0 where a likelihood that speaks of every node is given no label.
    """

    field: Field
    likelihood: Likelihood
    labels: Float[Array, " J"]

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        return self.field.dimension

    @property
    def n_fields(self) -> int:
        """Fields at a node: one, or one for each class."""
        return self.field.n_fields

    @property
    def learnt(self) -> tuple[Any, ...]:
        """Nothing; see `graphuq.posterior.hierarchical`."""
        return ()

    @property
    def n_coefficients(self) -> int:
        """White coordinates of the field: all."""
        return self.dimension

    def given(self, white: Float[Array, " n"]) -> "Target":
        """Itself: there is nothing else to be given."""
        return self

    def to_target(self, white: Float[Array, "*S n"]) -> Float[Array, "*S n"]:
        """The same: these coordinates are the target's own."""
        return white

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Field ``u_L`` at the labelled nodes."""
        return self.field.at_labelled(white)

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
        values, given = self._values()
        noise = START_NOISE * jax.random.normal(key_noise, values.shape, dtype)
        transpose = jax.linear_transpose(self.field.at_labelled, white)

        def covariance(x: jax.Array) -> jax.Array:
            image: jax.Array = self.field.at_labelled(transpose(x)[0])
            return jnp.where(given, image, 0.0) + START_NOISE**2 * x

        misfit = jnp.where(given, values - self.field.at_labelled(white) - noise, 0.0)
        weights, _ = cg(  # type: ignore[no-untyped-call]
            covariance, misfit, tol=1e-3, maxiter=100
        )
        return self.possible(white + transpose(weights)[0])

    def _values(self) -> tuple[Array, Array]:
        """Labels as values of u, and where they are given."""
        if self.likelihood.is_multiclass:
            codes = self.labels.astype(jnp.int32)
            own = jax.nn.one_hot(codes, self.n_fields, dtype=self.labels.dtype)
            return 2 * own - 1, jnp.asarray(True)
        if self.likelihood.uses_all_nodes:
            return self.labels, self.labels != 0
        return self.labels, jnp.asarray(True)

    def possible(self, white: Float[Array, " n"]) -> Float[Array, " n"]:
        """A point near this one whose likelihood is not zero, where the likelihood can be.

        Reflects at the wall that is violated most until none is (Motzkin & Schoenberg 1954).
        """
        if not isinstance(self.likelihood, StepLikelihood):
            return white
        impossible = self.likelihood.log_levels(self.labels)[1] == -jnp.inf
        codes = self.labels.astype(jnp.int32)

        def leads(x: Any) -> Any:
            """What must be positive for each label, of several classes over each other one."""
            u = self.field.at_labelled(x)
            if not self.likelihood.is_multiclass:
                return self.labels * u
            others = jnp.arange(u.shape[1])[None, :] != codes[:, None]
            lead = jnp.take_along_axis(u, codes[:, None], axis=1) - u
            return jnp.where(others, lead, 1.0)

        def margins(x: Any) -> Any:
            lead = leads(x)
            there = impossible if lead.ndim == 1 else impossible[:, None]
            return jnp.where(there, lead, 1.0)

        def violated(carry: Any) -> Any:
            x, n_reflections = carry
            return (margins(x) <= 0).any() & (n_reflections < MAX_REFLECTIONS)

        def reflect(carry: Any) -> Any:
            x, n_reflections = carry
            margin = margins(x)
            wall = jnp.argmin(margin)
            normal = jax.grad(lambda x: leads(x).ravel()[wall])(x)
            size = normal @ normal
            step = (1e-3 * jnp.sqrt(size) - 2 * margin.ravel()[wall]) / size
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
    root: Float[Array, " *n n"]  # √s; or of several classes R with R Rᵀ the covariance, and U = I

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.target.dimension

    @property
    def likelihood(self) -> Likelihood:
        """Of the labels."""
        return self.target.likelihood

    @property
    def labels(self) -> Float[Array, " J"]:
        """As the target has them."""
        return self.target.labels

    def at_labelled(self, z: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Field ``u_L`` at the labelled nodes."""
        return self.target.at_labelled(self.to_target(z))

    def to_target(self, z: Float[Array, "*S n"]) -> Float[Array, "*S n"]:
        """Coordinates of `target` that belong to z."""
        if self.root.ndim == 1:
            return self.mean + self.root * z
        return self.mean + z @ self.root.T

    def log_likelihood(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Log density of the posterior over the reference, up to a constant."""
        white = self.to_target(z)
        return self.target.log_density(white) + 0.5 * (z**2).sum()

    def start(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        """A draw from the reference, or a point nearer to its mean, or a possible one.

        Nearer where the likelihood has walls, by halves, until the posterior's density is no less
        than at the mean by n nats, twice what draws of a Gaussian fall short of it.
        """
        z = jax.random.normal(key, (self.dimension,), self.mean.dtype)
        if self.root.ndim == 2:
            return z
        if isinstance(self.target.likelihood, StepLikelihood):
            least = self.target.log_density(jnp.asarray(self.mean)) - self.dimension
            there = least > -jnp.inf

            def too_far(carry: Any) -> Any:
                z, n_halved = carry
                density = self.target.log_density(self.to_target(z))
                return there & (density < least) & (n_halved < MAX_HALVINGS)

            z, _ = jax.lax.while_loop(too_far, lambda c: (c[0] / 2, c[1] + 1), (z, 0))
        return (self.target.possible(self.to_target(z)) - self.mean) / self.root


def with_noise_sampled(target: Target) -> Target | None:
    """The same posterior with the probit's noise among the coordinates; None for others.

    ``y = sign(u + γ ε)``: given u and ε no doubt is left, and the likelihood is `NoiseFree`.
    """
    likelihood = target.likelihood
    if not isinstance(likelihood, Probit) or likelihood.learnt:
        return None
    noisy = NoisyField(target.field, likelihood.noise_std, len(target.labels))
    return Target(noisy, NoiseFree(likelihood.n_classes), target.labels)


def can_be_referred(target: Target) -> bool:
    """Whether a Gaussian of n×n numbers can be kept of its posterior."""
    if isinstance(target.field, ClassField) and target.dimension > MAX_DENSE:
        return False
    return isinstance(of_one_class(target.field), LowRankField)


def demand_reference(target: Target) -> None:
    """Refuse a target of which that cannot be."""
    if not isinstance(of_one_class(target.field), LowRankField):
        raise IncompatibleParts(
            "a reference needs a field without a tail, or with fewer labels than eigenpairs; "
            "sample without reference"
        )


def refer(
    target: Target, mean: Float[np.ndarray, " n"], covariance: Float[np.ndarray, "n n"]
) -> tuple[ReferredTarget, Float[np.ndarray, "n n"] | None]:
    """Whiten a target by the Gaussian of a given mean and covariance in its coordinates.

    Returns
    -------
    referred : ReferredTarget
    rotation : numpy.ndarray, shape (n, n), or None
        U: coordinates of ``target`` are ``rotation @ referred.to_target(z)``. Of several classes
        it would mix them, and is None: U = I, and a step costs a product of n×n more.

    Raises
    ------
    IncompatibleParts
        If the field has a tail and more labels than modes: then no n×n matrix is kept.
    """
    demand_reference(target)
    field = target.field
    if not isinstance(field, LowRankField):
        return ReferredTarget(target, mean, np.linalg.cholesky(covariance)), None
    variances, rotation = np.linalg.eigh(covariance)
    rotated = Target(field.rotated(rotation), target.likelihood, target.labels)
    return ReferredTarget(rotated, rotation.T @ mean, np.sqrt(variances)), rotation


def log_likelihoods(
    target: Any,
    white: Float[np.ndarray, "*S n"],
    precision: str = "float64",
    few: int = MAX_IN_NUMPY,
) -> Float[np.ndarray, "*S"]:
    """Log likelihood of many points at once.

    Of up to ``few`` numbers, points times labels, where the field is a matrix and classes are two,
    by NumPy, which is done sooner than a program is compiled.
    """
    flat = white.reshape(-1, white.shape[-1])
    plain = type(target.field) is LowRankField and not target.likelihood.is_multiclass
    if plain and len(flat) * len(target.labels) <= few:
        u = flat @ np.asarray(target.field.factor).T
        labels = np.broadcast_to(target.labels, u.shape)
        with jax.enable_x64(True):  # of a likelihood that knows JAX alone
            values = target.likelihood.log_prob(u.ravel(), labels.ravel())
        found = np.asarray(values).reshape(u.shape).sum(axis=1)
    else:
        with jax.enable_x64(precision == "float64"):
            traced = with_dtype(target, precision), jnp.asarray(flat, precision)
            found = np.asarray(_log_likelihoods(*traced), np.float64)
    return found.reshape(white.shape[:-1])


@eqx.filter_jit
def _log_likelihoods(target: Any, white: Float[Array, "S n"]) -> Float[Array, " S"]:
    return jax.vmap(target.log_likelihood)(white)
