"""Joint draws of the field at many nodes, from draws or from a Gaussian approximation.

Marginals of all nodes come from `summaries`. Here nodes are drawn together. With ``d = s² − s̄²``
the coefficients of the series given ``c(x)`` have mean ``H c(x)`` and covariance
``diag(d) − H Hᵀ``; see `graphuq.posterior.field.labelled`.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.class_covariance import of_classes
from graphuq.inference.draws import Draws
from graphuq.posterior.field import ClassField, LabelledField
from graphuq.posterior.posterior import Posterior


def coefficient_draws(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    posterior: Posterior,
    n_draws: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "S K L"]:
    """Return draws of the coefficients of the eigenvectors; K is 1 for two classes.

    Parameters
    ----------
    answer : Draws, GaussianApproximation or Point
    posterior : Posterior
    n_draws : int
        Number of draws S. Chains with fewer draws are used more than once.
    rng : numpy.random.Generator
    """
    if isinstance(answer, GaussianMixture):
        return coefficients_and_components(answer, posterior, n_draws, rng)[0]
    seen = _seen_draws(answer, posterior, n_draws, rng)
    back = np.asarray(posterior.field.one_class.coefficient_map)
    coefficients: np.ndarray = seen @ back.T
    if not (isinstance(answer, Point) or posterior.learnt):
        coefficients += rng.normal(size=coefficients.shape) @ residual_root(posterior).T
    return coefficients


def coefficients_and_components(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    posterior: Posterior,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "S K L"], Int[np.ndarray, " S"] | None]:
    """Return the draws of `coefficient_draws`, and of a mixture the number of each one's component.

    Each component has as many draws as its weight says, in random order.
    """
    if not isinstance(answer, GaussianMixture):
        return coefficient_draws(answer, posterior, n_draws, rng), None
    counts = rng.multinomial(n_draws, answer.weights)
    parts = [
        coefficient_draws(one, posterior.component(int(number)), count, rng)
        for one, number, count in zip(
            answer.components, answer.numbers, counts.tolist(), strict=True
        )
        if count
    ]
    order = rng.permutation(n_draws)
    return np.concatenate(parts)[order], np.repeat(np.asarray(answer.numbers), counts)[order]


def coefficient_moments(
    answer: GaussianMixture | GaussianApproximation, posterior: Posterior
) -> tuple[Float[np.ndarray, "K L"], Float[np.ndarray, "L L"]]:
    """Return the means of the coefficients, and the covariance within a class, over all classes."""
    n_fields = posterior.n_fields
    if isinstance(answer, GaussianApproximation):
        return _moments(answer, posterior.field, n_fields)
    parts = [
        _moments(one, field, n_fields)
        for one, field in zip(answer.components, answer.fields, strict=True)
    ]
    means = np.stack([part[0] for part in parts])
    weights = np.asarray(answer.weights)
    mean = np.einsum("m,mkl->kl", weights, means)
    apart = means - mean
    between = np.einsum("m,mki,mkj->ij", weights, apart, apart, optimize=True) / n_fields
    within = sum(w * part[1] for w, part in zip(weights, parts, strict=True))
    return mean, np.asarray(within + between)


def _moments(
    answer: GaussianApproximation, field: LabelledField | ClassField, n_fields: int
) -> tuple[Float[np.ndarray, "K L"], Float[np.ndarray, "L L"]]:
    """Return those of one Gaussian, whose white coordinates are of the field."""
    back = np.asarray(field.one_class.coefficient_map)
    inner = of_classes(answer.white_covariance, n_fields).mean_of_classes()
    rest = np.diag(np.asarray(field.one_class.mode_variance)) - back @ back.T
    return answer.white_mean.reshape(n_fields, -1) @ back.T, back @ inner @ back.T + rest


def residual_root(posterior: Posterior) -> Float[np.ndarray, "L L"]:
    """Return a root of ``diag(d) − H Hᵀ``, the covariance of the coefficients given ``c(x)``."""
    field = posterior.field.one_class
    back = np.asarray(field.coefficient_map)
    values, vectors = np.linalg.eigh(np.diag(np.asarray(field.mode_variance)) - back @ back.T)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def joint_draws(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    posterior: Posterior,
    nodes: Int[np.ndarray, " n"],
    n_draws: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "n S K"]:
    """Return draws of u at unlabelled nodes together; K is 1 for two classes."""
    return draws_and_components(answer, posterior, nodes, n_draws, rng)[0]


def draws_and_components(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    posterior: Posterior,
    nodes: Int[np.ndarray, " n"],
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "n S K"], Int[np.ndarray, " S"] | None]:
    """Return the draws of `joint_draws`, and of a mixture the number of each one's component."""
    coefficients, numbers = coefficients_and_components(answer, posterior, n_draws, rng)
    spectrum, field = posterior.spectrum, posterior.field.one_class
    rows = spectrum.node_scale[nodes, None] * np.asarray(spectrum.basis[nodes])
    u: np.ndarray = np.tensordot(rows, coefficients, axes=(1, 2))
    if field.tail_std > 0 and not isinstance(answer, Point):
        units = 1.0
        if isinstance(answer, Draws):
            units = float(np.sqrt((answer.units**2).mean()))
        tail = spectrum.node_scale[nodes, None, None] * field.tail_std * units
        u += tail * rng.normal(size=u.shape)
    if posterior.node_mean is not None:
        u += posterior.node_mean[nodes, None, None]
    return u, numbers


def _seen_draws(
    answer: Any, posterior: Posterior, n_draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "S K r"]:
    """Return draws of ``c(x)`` of each class."""
    n_fields = posterior.n_fields
    if isinstance(answer, Point):
        return np.repeat(answer.seen.reshape(1, n_fields, -1), n_draws, axis=0)
    if isinstance(answer, GaussianApproximation):
        apart = of_classes(answer.white_covariance, n_fields).draws(rng, n_draws)
        return answer.white_mean.reshape(n_fields, -1) + apart
    seen = seen_draws(answer, posterior)
    return seen[rng.choice(len(seen), n_draws, replace=len(seen) < n_draws)]


def seen_draws(answer: Draws, posterior: Posterior) -> Float[np.ndarray, "S K r"]:
    """Return ``c(x)`` of each class in all draws of all chains; K is 1 for two classes."""
    field = posterior.field
    white = answer.white.reshape(-1, answer.white.shape[-1]).astype(np.float64)
    by_class = field.by_class(white) if isinstance(field, ClassField) else white[:, None]
    return np.asarray(field.one_class.seen(by_class))
