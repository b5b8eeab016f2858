"""Targets of samplers: a standard normal prior times a likelihood, in white coordinates."""

from typing import Any, cast

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts
from graphuq.likelihoods import Likelihood, NoiseFree
from graphuq.posterior.field import Field, LowRankField, NoisyField
from graphuq.utils.arrays import Array, double_precision, mapped
from graphuq.utils.extras import has_extra
from graphuq.utils.part import Part

MAX_HALVINGS = 20  # halvings of the distance between a start and the mean of the reference
MAX_REFLECTIONS = 10_000  # reflections of a start, after which it is used as it is
MAX_DENSE = 1_000  # white coordinates of multiclass fields, which a reference correlates
MAX_IN_NUMPY = 2**22  # log probabilities, which NumPy computes faster than JAX compiles
START_NOISE = 0.5  # in units of a label: starts differ, and yet fit most labels


class Target(Part):
    """Posterior in white coordinates: a standard normal prior times a likelihood.

    Attributes
    ----------
    field : Field
    likelihood : Likelihood
    labels : array of ±1, or of codes of classes, shape (J,)
        At nodes without label, for a likelihood on all nodes, 0 or −1.
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
        """Number of fields at a node: 1, or one for each class."""
        return self.field.n_fields

    @property
    def learnt(self) -> tuple[Any, ...]:
        """Empty: only `graphuq.posterior.hierarchical` has learnt hyperparameters."""
        return ()

    @property
    def n_coefficients(self) -> int:
        """Number of white coordinates of the field, which is all of them."""
        return self.dimension

    def given(self, white: Float[Array, " n"]) -> "Target":
        """Return itself: there are no hyperparameters to condition on."""
        return self

    def to_target(self, white: Float[Array, "*S n"]) -> Float[Array, "*S n"]:
        """Return the coordinates unchanged; compare `ReferredTarget.to_target`."""
        return white

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Return the field ``u_L`` at the labelled nodes."""
        return self.field.at_labelled(white)

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log likelihood of all labels, up to a constant; the papers' ``−Φ(u)``."""
        return self.likelihood.log_prob(self.field.at_labelled(white), self.labels).sum()

    def start(self, key: Array) -> Float[Array, " n"]:
        """Draw an overdispersed starting point of a chain near the labels.

        The point is a draw from the Gaussian posterior of labels that are values of u with noise
        of standard deviation `START_NOISE` (Matheron's rule).
        """
        from graphuq.utils.with_jax import jax, jnp

        key_white, key_noise = jax.random.split(key)
        dtype = self.labels.dtype
        white = jax.random.normal(key_white, (self.dimension,), dtype)
        values, given = self._label_values()
        noise = START_NOISE * jax.random.normal(key_noise, values.shape, dtype)
        transpose = jax.linear_transpose(self.field.at_labelled, white)

        def covariance(x: Array) -> Array:
            image: Array = self.field.at_labelled(transpose(x)[0])
            return jnp.where(given, image, 0.0) + START_NOISE**2 * x

        misfit = jnp.where(given, values - self.field.at_labelled(white) - noise, 0.0)
        weights, _ = jax.scipy.sparse.linalg.cg(  # type: ignore[no-untyped-call]
            covariance, misfit, tol=1e-3, maxiter=100
        )
        return self.possible(white + transpose(weights)[0])

    def _label_values(self) -> tuple[Array, Array]:
        """Return labels as values of u, and the mask of those that are given."""
        from graphuq.utils.with_jax import jax, jnp

        if self.likelihood.is_multiclass:
            codes = self.labels.astype(jnp.int32)
            own = jax.nn.one_hot(codes, self.n_fields, dtype=self.labels.dtype)
            return 2 * own - 1, (codes >= 0)[:, None]
        values = self.labels - self.likelihood.prior_mean
        if self.likelihood.uses_all_nodes:
            return values, self.labels != 0
        return values, jnp.asarray(True)

    def possible(self, white: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return a nearby point of positive likelihood, for step likelihoods that can be zero.

        Reflects at the most violated wall until no wall is violated (Motzkin & Schoenberg 1954).
        """
        if not self.likelihood.is_step:
            return white
        from graphuq.utils.with_jax import jax, jnp

        impossible = self.likelihood.log_levels(self.labels)[1] == -jnp.inf
        codes = self.labels.astype(jnp.int32)

        def margins(x: Array) -> Array:
            """Return what must be positive for each label; if multiclass, for each other class."""
            u = self.field.at_labelled(x)
            if not self.likelihood.is_multiclass:
                return self.labels * u
            others = jnp.arange(u.shape[1])[None, :] != codes[:, None]
            difference = jnp.take_along_axis(u, codes[:, None], axis=1) - u
            return jnp.where(others, difference, 1.0)

        def hard_margins(x: Array) -> Array:
            margin = margins(x)
            hard = impossible if margin.ndim == 1 else impossible[:, None]
            return jnp.where(hard, margin, 1.0)

        def violated(carry: tuple[Array, Any]) -> Array:
            x, n_reflections = carry
            return (hard_margins(x) <= 0).any() & (n_reflections < MAX_REFLECTIONS)

        def reflect(carry: tuple[Array, Any]) -> tuple[Array, Any]:
            x, n_reflections = carry
            margin = hard_margins(x)
            wall = jnp.argmin(margin)
            normal = jax.grad(lambda x: margins(x).ravel()[wall])(x)
            size = normal @ normal
            step = (1e-3 * jnp.sqrt(size) - 2 * margin.ravel()[wall]) / size
            return x + step * normal, n_reflections + 1

        result: Array = jax.lax.while_loop(violated, reflect, (white, 0))[0]
        return result

    def log_density(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log posterior density in white coordinates, up to a constant."""
        return self.log_likelihood(white) - 0.5 * (white**2).sum()


class ReferredTarget(Part):
    """Posterior whitened by a Gaussian reference close to it, instead of by its prior.

    With ``x = U (μ + √s z)``, z is standard normal under the reference. The rest of the density,
    ``log p(y | x) − |x|²/2 + |z|²/2``, replaces the log likelihood. A kernel that leaves the prior
    invariant then proposes from the reference. U makes the covariance of the reference diagonal
    and keeps the prior white, so a step costs the same.

    Attributes
    ----------
    target : Target
        Posterior in the coordinates ``Uᵀ x``.
    mean : array, shape (n,)
        μ.
    root : array, shape (n,) or (n, n)
        √s. For multiclass fields R, with ``R Rᵀ`` the covariance and U = I.
    """

    target: Target
    mean: Float[Array, " n"]
    root: Float[Array, " *n n"]

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.target.dimension

    @property
    def likelihood(self) -> Likelihood:
        """Likelihood of the labels."""
        return self.target.likelihood

    @property
    def labels(self) -> Float[Array, " J"]:
        """Labels of the target."""
        return self.target.labels

    def at_labelled(self, z: Float[Array, " n"]) -> Float[Array, "J *K"]:
        """Return the field ``u_L`` at the labelled nodes."""
        return self.target.at_labelled(self.to_target(z))

    def to_target(self, z: Float[Array, "*S n"]) -> Float[Array, "*S n"]:
        """Return the coordinates of `target` at z."""
        if self.root.ndim == 1:
            return self.mean + self.root * z
        return self.mean + z @ self.root.T

    def log_likelihood(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log density of the posterior over the reference, up to a constant."""
        white = self.to_target(z)
        return self.target.log_density(white) + 0.5 * (z**2).sum()

    def start(self, key: Array) -> Float[Array, " n"]:
        """Draw a starting point from the reference, moved where the likelihood is not zero.

        For a step likelihood, the distance to the mean is halved until the log density is at most
        n nats below that at the mean. For draws of a Gaussian the expected difference is half that.
        """
        from graphuq.utils.with_jax import jax, jnp

        z = jax.random.normal(key, (self.dimension,), self.mean.dtype)
        if self.root.ndim == 2:
            return z
        if self.target.likelihood.is_step:
            lowest = self.target.log_density(jnp.asarray(self.mean)) - self.dimension
            is_finite = lowest > -jnp.inf

            def too_far(carry: tuple[Array, Any]) -> Array:
                z, n_halved = carry
                density = self.target.log_density(self.to_target(z))
                return is_finite & (density < lowest) & (n_halved < MAX_HALVINGS)

            z, _ = jax.lax.while_loop(too_far, lambda c: (c[0] / 2, c[1] + 1), (z, 0))
        return (self.target.possible(self.to_target(z)) - self.mean) / self.root


def with_noise_sampled(target: Target) -> Target | None:
    """Return the posterior with the probit's noise among the coordinates, or None without noise.

    ``y = sign(u + γ ε)`` is certain given u and ε, so the likelihood is `NoiseFree`. The result
    is also None if a hyperparameter of the likelihood is learnt.
    """
    likelihood = target.likelihood
    noise_std = likelihood.latent_noise_std
    if noise_std is None or likelihood.learnt:
        return None
    noisy = NoisyField(target.field, noise_std, len(target.labels))
    n_classes = likelihood.n_fields if likelihood.is_multiclass else 2
    return Target(noisy, NoiseFree(n_classes), target.labels)


def can_be_referred(target: Target) -> bool:
    """Return whether a Gaussian reference, of n×n numbers, can be kept of the posterior."""
    if target.likelihood.is_multiclass and target.dimension > MAX_DENSE:
        return False
    return bool(target.field.one_class.is_low_rank)


def demand_reference(target: Target) -> None:
    """Refuse a target whose field allows no reference.

    Raises
    ------
    IncompatibleParts
        If the field has a tail and more labels than modes.
    """
    if not target.field.one_class.is_low_rank:
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
        U: coordinates of ``target`` are ``rotation @ referred.to_target(z)``. It is None for
        multiclass fields, whose classes U would mix. Then U = I, and a step costs one more n×n
        product.

    Raises
    ------
    IncompatibleParts
        If the field has a tail and more labels than modes, so that no n×n matrix is kept.
    """
    demand_reference(target)
    field = target.field
    if not field.is_low_rank:
        return ReferredTarget(target, mean, np.linalg.cholesky(covariance)), None
    variances, rotation = np.linalg.eigh(covariance)
    rotated = Target(cast(LowRankField, field).rotate(rotation), target.likelihood, target.labels)
    return ReferredTarget(rotated, rotation.T @ mean, np.sqrt(variances)), rotation


def log_likelihoods(
    target: Target,
    white: Float[np.ndarray, "*S n"],
    precision: str = "float64",
    few: int = MAX_IN_NUMPY,
) -> Float[np.ndarray, "*S"]:
    """Return the log likelihood of many points.

    Parameters
    ----------
    target : Target or ReferredTarget
    white : numpy.ndarray, shape (…, n)
    precision : {"float64", "float32"}, default "float64"
    few : int, default 2**22
        Up to this number of points times labels, binary low-rank fields are evaluated in NumPy:
        that takes less time than compiling a program. All others are too without JAX.
    """
    flat = white.reshape(-1, white.shape[-1])
    plain = target.field.is_low_rank and not target.likelihood.is_multiclass
    if plain and len(flat) * len(target.labels) <= few:
        likelihood = target.likelihood.unshifted
        u = flat @ np.asarray(target.field.matrix()).T + target.likelihood.prior_mean
        labels = np.broadcast_to(target.labels, u.shape)
        with double_precision():  # for likelihoods that are written in JAX only
            values = likelihood.log_prob(u.ravel(), labels.ravel())
        found = np.asarray(values).reshape(u.shape).sum(axis=1)
    elif has_extra("jax"):
        from graphuq.posterior import compiled

        found = compiled.log_likelihoods(target, flat, precision)
    else:
        found = mapped(target.log_likelihood, flat)
    return found.reshape(white.shape[:-1])
