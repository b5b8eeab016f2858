r"""Independence sampler with proposals that use every label.

The values at the labels are ``w = u``, or ``w = u + γ ε`` for a probit. Their posterior is the
prior times one factor ``t_j(w_j)`` per label, which depends on the sign of w_j alone. Replace
the factors of all later labels by Gaussian sites ``s_k``. Then w_j given the values before it is
a Gaussian times t_j. It can be drawn exactly, and its normaliser Z_j is known. Values drawn one
after another have the density

    r(w) = ∏_j p(w_j | w_{<j}, s_{>j}) t_j(w_j) / Z_j(w_{<j}).

Let Z̃_j be the normaliser with s_j in place of t_j. The product of ``p(w_j | …) s_j / Z̃_j``
telescopes to the prior times all sites. The ratio of posterior to proposal is therefore
``∏_j Z_j / Z̃_j``, up to a constant. It varies with the error of the sites about sums of labels,
not about single labels.
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
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import log_likelihoods, with_noise_sampled

MIN_VARIANCE = 1e-18  # smallest share of a variance left by other labels, above rounding


class SequentialIndependence(IndependenceSampler):
    r"""Metropolis-Hastings with the GHK simulator: values are proposed label by label.

    The simulator is that of Geweke, Hajivassiliou and Keane (Geweke 1991). Each value is drawn
    from its exact conditional distribution given the values before. With lookahead the sites of
    expectation propagation stand for later labels ("twisted", Guarniero, Johansen & Lee 2017).
    Proposals are independent. They
    are accepted nearly always with few labels and in 7 of 10 cases with hundreds, however small
    the noise. Without a reference there is no lookahead.

    The sampler is for two classes: for a probit, whose noise is sampled with the field, and for
    step likelihoods with no more labels than eigenpairs, or with a tail. With lookahead the weights
    have no bound, but mostly light tails (docs/theory/sampling.md); acceptance and R-hat show where
    they are heavy.

    Parameters
    ----------
    lookahead : bool, default True
        Whether proposals use the reference's sites. Without lookahead the weights are bounded by
        one over the evidence, so no chain stays at a bad point (Tierney 1994, corollary 4). This
        suits a few labels. The reference is then a control variate only.
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
        if likelihood.is_multiclass or not likelihood.is_step_given_noise:
            return f"needs a binary likelihood of two levels, or Probit, and not {likelihood}"
        if likelihood.is_step and target.dimension < n_labels:
            return (
                f"needs {n_labels} eigenpairs with variance for as many labels of {likelihood}, or "
                f"a tail, and there are {target.dimension}"
            )
        return None

    def proposals(
        self, target: Any, gaussian: GaussianApproximation | None, precision: str, few: int
    ) -> Proposals:
        """Return the function that draws whole vectors, one value after another.

        Raises
        ------
        IncompatibleParts
            If the sampler cannot sample the target, the reference has no sites, or labels
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
            z, value, log_weight = ghk_draws(plan.conditionals, rng, n)
            rest = rng.normal(size=(n, plan.root.shape[1] - z.shape[1]))
            white = plan.mean + np.hstack([z, rest]) @ plan.root.T
            if not target.likelihood.is_step:
                value = log_likelihoods(target, white, precision, few)
            log_ratio = np.zeros(n)
            if gaussian is not None and root is not None:
                log_ratio = (
                    value + log_normal(white) - log_density(gaussian.white_mean, root, white)
                )
            return Proposed(white, value, log_ratio, plan.constant + log_weight)

        return propose


class _Plan(NamedTuple):
    """Numbers from which draws are made."""

    conditionals: Any  # Conditionals of ghk.py
    mean: Any  # (n,): mean of the target's white coordinates given all sites
    root: Any  # (n, J + …): maps whitened values and the remaining directions to the coordinates
    constant: float  # added to log weights, so that their log mean is log p(y)


def _plan(target: Any, sites: Any) -> _Plan:
    """Return the plan, with the most informative labels first, which determine later ones."""
    from graphuq.inference.independence.ghk import Conditionals

    n_labels, n = len(target.labels), target.dimension
    precision, shift = np.zeros((2, n_labels)) if sites is None else sites
    noisy = with_noise_sampled(target)
    if noisy is not None:  # a site of u includes the noise variance γ²; a site of u + γ ε does not
        without = 1 - target.likelihood.noise_std**2 * precision
        precision, shift = precision / without, shift / without
    sampled: Any = target if noisy is None else noisy
    factor = np.asarray(sampled.field.matrix(), np.float64)  # w = factor @ x
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
    if not (left > MIN_VARIANCE * (root**2).sum(axis=1)).all() or not (variance > 0).all():
        raise IncompatibleParts(
            "SequentialIndependence finds labels whose value others determine, as happens with "
            "equal rows of features; use ExactHamiltonian()"
        )
    share = variance / left  # 1 + precision × variance
    labels = np.asarray(sampled.labels, np.float64)[order]
    right, wrong = (
        np.asarray(level, np.float64) for level in sampled.likelihood.log_levels(labels)
    )
    conditionals = Conditionals(
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
    return _Plan(
        conditionals, (inverse.T @ whitened)[:n], (inverse.T @ rotation)[:n], float(constant)
    )
