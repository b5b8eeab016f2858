r"""Independence sampling by proposals that look at every label.

The posterior of the values w at the labels, ``w = u``, or ``w = u + γ ε`` of a probit, is the
prior times one factor ``t_j(w_j)`` a label, which knows of the value's sign alone. Put Gaussian
sites ``s_k`` in place of the factors of all later labels: then w_j given those before it is a
Gaussian times t_j, of which draws are made exactly, and whose normaliser Z_j is known. One after
another these make a draw of all values, of density

    r(w) = ∏_j p(w_j | w_{<j}, s_{>j}) t_j(w_j) / Z_j(w_{<j}).

With Z̃_j that of s_j in place of t_j, the product of ``p(w_j | …) s_j / Z̃_j`` telescopes to prior
times all sites, so that posterior over proposal is ``∏_j Z_j / Z̃_j``, up to a constant: it varies
by what the sites get wrong about sums of labels, not about any one.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from graphuq.errors import IncompatibleParts
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation
from graphuq.inference.independence.base import (
    IndependenceSampler,
    Proposals,
    Proposed,
    log_density,
    log_normal,
)
from graphuq.likelihoods import Probit, StepLikelihood
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import log_likelihoods, with_noise_sampled

DETERMINED = 1e-18  # share of a value's variance that is left to it, for rounding to leave it whole


class SequentialIndependence(IndependenceSampler):
    r"""Propose label by label, each value from its exact law but for the labels after it.

    The simulator of Geweke, Hajivassiliou and Keane (Geweke 1991), looking ahead: what later
    labels say is put in by the sites of expectation propagation (twisted, in the words of
    Guarniero, Johansen & Lee 2017). Draws are independent, and accepted by Metropolis and
    Hastings as in `Independence`: nearly always with few labels, seven times in ten with hundreds,
    however small the noise, walls or not. Without a reference nothing is looked ahead to.

    Of a probit, whose noise is sampled with the field; and of step likelihoods of no more labels
    than eigenpairs, or with a tail. Weights of proposals that look ahead have no bound, but mostly
    light tails (docs/theory.md): acceptance and R-hat tell where they are not.

    Parameters
    ----------
    lookahead : bool, default True
        Whether to go by the reference's sites. Without, weights are bounded, by one over the
        evidence, so that no chain sticks far off (Tierney 1994, corollary 4), and worth having with
        a handful of labels; the reference is then a control variate alone.
    reference : ExpectationPropagation, optional
    """

    lookahead: bool = True
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    requires_step: ClassVar[bool] = True

    reference_is_matrix: ClassVar[bool] = False

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot sample this posterior and what to do instead, or None."""
        reason = super().refusal(posterior)
        if reason is None:
            reason = self.target_refusal(posterior.target)
            reason = reason and f"SequentialIndependence {reason}; use another sampler"
        return reason

    @staticmethod
    def target_refusal(target: Any) -> str | None:
        """Return what a target lacks, as the end of a sentence, or None."""
        n_labels, likelihood = len(target.labels), target.likelihood
        if likelihood.is_multiclass or not isinstance(likelihood, StepLikelihood | Probit):
            return f"knows likelihoods of two levels, and probit, of two classes, not {likelihood}"
        if isinstance(likelihood, StepLikelihood) and target.dimension < n_labels:
            return (
                f"needs {n_labels} eigenpairs of variance for as many labels of {likelihood}, or a "
                f"tail, and there are {target.dimension}"
            )
        return None

    def proposals(
        self, target: Any, gaussian: GaussianApproximation | None, precision: str, few: int
    ) -> Proposals:
        """Whole draws, of one value after another.

        Raises
        ------
        IncompatibleParts
            If the target is none that this sampler knows, the reference has no sites, or labels
            determine each other.
        """
        refusal = self.target_refusal(target)
        sites = gaussian.sites if gaussian is not None and self.lookahead else None
        if refusal is None and gaussian is not None and self.lookahead and sites is None:
            refusal = f"needs the sites of expectation propagation, and {self.reference} has none"
        if refusal is not None:
            raise IncompatibleParts(f"SequentialIndependence {refusal}; use another sampler")
        from graphuq.inference.independence.ghk import ghk_draws

        plan = _plan(target, sites)
        refers = gaussian is not None and len(gaussian.white_mean) == target.dimension
        root = np.linalg.cholesky(gaussian.white_covariance) if gaussian and refers else None

        def propose(rng: np.random.Generator, n: int) -> Proposed:
            z, value, log_weight = ghk_draws(plan.law, rng, n)
            rest = rng.normal(size=(n, plan.root.shape[1] - z.shape[1]))
            white = plan.mean + np.hstack([z, rest]) @ plan.root.T
            if isinstance(target.likelihood, Probit):
                value = log_likelihoods(target, white, precision, few)
            log_ratio = np.zeros(n)
            if gaussian is not None and root is not None:
                log_ratio = (
                    value + log_normal(white) - log_density(gaussian.white_mean, root, white)
                )
            return Proposed(white, value, log_ratio, plan.constant + log_weight)

        return propose


class _Plan(NamedTuple):
    """What draws are made of."""

    law: Any  # Conditionals
    mean: Any  # (n,): of the target's white coordinates, all sites in place
    root: Any  # (n, J + …): from whitened values, and what they leave open, to the coordinates
    constant: float  # of the log weights: their log mean is then log p(y)


def _plan(target: Any, sites: Any) -> _Plan:
    """The labels that speak loudest go first: the fewer are left open after them."""
    from graphuq.inference.independence.ghk import Conditionals

    n_labels, n = len(target.labels), target.dimension
    precision, shift = np.zeros((2, n_labels)) if sites is None else sites
    noisy = with_noise_sampled(target)
    if noisy is not None:  # of variance γ², which a site of u has in it and one of u + γ ε has not
        without = 1 - target.likelihood.noise_std**2 * precision
        precision, shift = precision / without, shift / without
    among: Any = target if noisy is None else noisy
    factor = np.asarray(among.field.matrix(), np.float64)  # w = factor @ x
    lower = np.linalg.cholesky(np.eye(factor.shape[1]) + factor.T @ (precision[:, None] * factor))
    inverse = solve_triangular(lower, np.eye(len(lower)), lower=True)  # covariance inverseᵀ inverse
    spread = factor @ inverse.T
    order = np.argsort(-precision * (spread**2).sum(axis=1), kind="stable")
    precision, shift, spread = precision[order], shift[order], spread[order]
    rotation, upper = qr(spread.T)
    signs = np.where(np.diag(upper) < 0, -1.0, 1.0)
    rotation[:, :n_labels] *= signs
    root = (signs[:, None] * upper[:n_labels]).T
    whitened = inverse @ (factor[order].T @ shift)
    left = np.diag(root) ** 2
    with np.errstate(divide="ignore"):
        variance = 1 / (1 / left - precision)
    if not (left > DETERMINED * (root**2).sum(axis=1)).all() or not (variance > 0).all():
        raise IncompatibleParts(
            "SequentialIndependence finds labels whose value others determine, as those of equal "
            "rows of features do; use ExactHamiltonian()"
        )
    share = variance / left  # 1 + precision × variance
    labels = np.asarray(among.labels, np.float64)[order]
    right, wrong = (np.asarray(level, np.float64) for level in among.likelihood.log_levels(labels))
    law = Conditionals(
        root=np.ascontiguousarray(root),
        center=spread @ whitened,
        slope=share,
        shift=-variance * shift,
        std=np.sqrt(variance),
        constant=0.5 * (shift**2 * variance / share - np.log(share)),
        linear=shift / share,
        square=0.5 * precision / share,
        labels=labels,
        right=right,
        wrong=wrong,
    )
    constant = 0.5 * whitened @ whitened - np.log(np.diag(lower)).sum()
    return _Plan(law, (inverse.T @ whitened)[:n], (inverse.T @ rotation)[:n], float(constant))
