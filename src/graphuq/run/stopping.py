"""Stop rules for `infer`."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import require
from graphuq.inference.draws import Draws
from graphuq.posterior.posterior import Posterior
from graphuq.results.convergence import convergence_of
from graphuq.results.diagnostics import (
    ESS_BOUND,
    RHAT_BOUND,
    monitored_functionals,
    node_rows,
    worst_case,
)
from graphuq.results.summaries import label_errors
from graphuq.utils.checks import check_number, require_integer, require_positive

MCSE_NODES = 2_000  # random nodes among which the largest Monte-Carlo errors are searched
FIRST_DRAWS = 1_000  # draws that are enough to find them
WORST_NODES = 200  # nodes whose errors are then monitored
FIRST_NODES, FIRST_FUNCTIONALS = 16, 8  # looked at first, which often makes the others unnecessary


PROBABILITY_MCSE, MCSE_SHARE = 0.02, 0.99  # Monte-Carlo error of a probability at which sampling
# stops by default, and the share of nodes that must have it
# Few labels, of each class and in all: draws are quick, and probabilities moderate at all nodes, so
# that their errors cost log score.
FEW_EACH, FEW_LABELS, SMALL_MCSE = 2, 20, 0.01


def default_rule(posterior: Posterior) -> "Converged":
    """Return the rule by which sampling stops if neither a rule nor a number of draws is given."""
    few = len(posterior.labels) <= min(FEW_LABELS, FEW_EACH * posterior.n_classes)
    # The label mean of two classes, p₊ − p₋, has twice the error of a probability.
    unit = 1 if posterior.likelihood.has_codes else 2
    bound = unit * (SMALL_MCSE if few else PROBABILITY_MCSE)
    return Converged(label_mcse=bound, label_mcse_share=MCSE_SHARE)


@dataclasses.dataclass(frozen=True)
class Converged:
    """Stop once R-hat and the effective sample sizes meet their bounds.

    Parameters
    ----------
    rhat : float, default 1.01
        Bound on the largest R-hat, above 1.
    ess : float, default 400
        Bound on the smallest bulk and tail effective sample size over all chains together.
    label_mcse : float, optional
        Bound on the Monte-Carlo standard error of label means. It is checked at 200 unlabelled
        nodes: those with the largest error in the first 1,000 draws, among at most 2,000 random
        nodes.
    label_mcse_share : float, default 1
        Share of the random nodes whose error must meet the bound, from 0.9 to 1. The last few
        nodes, where chains pass slowly between two classes, may need several times the draws of
        all others.
    """

    rhat: Any = RHAT_BOUND  # any value is accepted here, and checked by __post_init__
    ess: Any = ESS_BOUND
    label_mcse: Any = None
    label_mcse_share: Any = 1.0
    _sought: list[Any] = dataclasses.field(
        default_factory=list, init=False, repr=False, compare=False
    )  # the last posterior, its early draws, the nodes where these have the largest error, and
    # how many of them may exceed the bound

    def __post_init__(self) -> None:
        for name in ("rhat", "ess", "label_mcse"):
            if name != "label_mcse" or self.label_mcse is not None:
                require_positive(name, getattr(self, name), "use a positive bound")
        require(self.rhat > 1, "rhat", f"{self.rhat!r}", "use a bound above 1")
        share = self.label_mcse_share
        check_number("label_mcse_share", share, "use 0.9 to 1")
        require(0.9 <= share <= 1, "label_mcse_share", f"{share!r}", "use 0.9 to 1")

    def __call__(self, posterior: Posterior, draws: Draws) -> str | None:
        """Return the reason to stop, or None."""
        bound = self.label_mcse
        if bound is not None and self._has_larger_error(posterior, draws, bound):
            return None
        # A few functionals before the others: one that has not converged is enough.
        functionals = list(monitored_functionals(posterior, draws).items())
        for part in (functionals[:FIRST_FUNCTIONALS], functionals[FIRST_FUNCTIONALS:]):
            table = convergence_of(dict(part))
            rhat, *sizes = worst_case(table)
            if table and not (rhat < self.rhat and min(sizes) >= self.ess):
                return None
        reason = f"R-hat below {self.rhat} and effective sample sizes above {self.ess:g}"
        if self.label_mcse is None:
            return reason
        reason += f"; Monte-Carlo errors of label means below {self.label_mcse:g}"
        share = self.label_mcse_share
        return reason if share == 1 else f"{reason} at {100 * share:g} % of the nodes"

    def _has_larger_error(self, posterior: Posterior, draws: Draws, bound: float) -> bool:
        """Return whether the Monte-Carlo error of a label mean is too large at too many nodes.

        It counts as too large until there are the draws in which the nodes are found.
        All checks of one run share their early draws and find the nodes once.
        """
        n_few = max(20, FIRST_DRAWS // draws.n_chains)
        if draws.n_samples < n_few:
            return True
        few = draws.first(n_few)
        if not self._sought or not (
            self._sought[0] is posterior and np.array_equal(self._sought[1], few.white)
        ):
            nodes, n_looked_at = _worst_nodes(posterior, few)
            may_exceed = int((1 - self.label_mcse_share) * n_looked_at + 1e-9)
            self._sought[:] = posterior, few.white.copy(), nodes, may_exceed
        nodes, may_exceed = self._sought[2:]
        n_first, link, exceed = FIRST_NODES + may_exceed, posterior.likelihood.link, 0
        for part in (nodes[:n_first], nodes[n_first:]):
            if not len(part):
                continue
            errors = label_errors(draws, posterior.field, node_rows(posterior)[part], link)
            largest = errors if errors.ndim == 1 else errors.max(axis=1)
            exceed += int((largest > bound).sum())
            if exceed > may_exceed:
                return True
        return False


def _worst_nodes(posterior: Posterior, few: Draws) -> tuple[Int[np.ndarray, " W"], int]:
    """Return the nodes of largest error among random unlabelled ones, and how many were drawn.

    Summaries of all nodes at each check would take longer than sampling.
    """
    unlabelled = np.ones(posterior.spectrum.n_nodes, dtype=bool)
    unlabelled[posterior.labelled] = False
    nodes = np.flatnonzero(unlabelled) if unlabelled.any() else posterior.labelled
    some = np.random.default_rng(0).permutation(nodes)[:MCSE_NODES]
    rows, link = node_rows(posterior)[some], posterior.likelihood.link
    errors = label_errors(few, posterior.field, rows, link)
    if errors.ndim == 2:
        errors = errors.max(axis=1)
    return some[np.argsort(-errors, kind="stable")[:WORST_NODES]], len(some)


@dataclasses.dataclass(frozen=True)
class CumulativeMean:
    """Stop once the running mean of u changes little: Bertozzi et al. 2018, equation (17).

    The condition is ``|ū^(kT) − ū^((k−1)T)| <= tolerance`` in the Euclidean norm over nodes, for
    the slowest chain. It does not imply convergence, as the paper notes. It is there to
    reproduce the paper.

    Parameters
    ----------
    tolerance : float, default 1e-3
        Bound > 0, in units of u.
    every : int, default 5000
        Period T, in steps of the chain.
    """

    tolerance: Any = 1e-3  # any value is accepted here, and checked by __post_init__
    every: Any = 5000

    def __post_init__(self) -> None:
        require_positive("tolerance", self.tolerance, "use a positive bound")
        require_integer("every", self.every, 1)

    def __call__(self, posterior: Posterior, draws: Draws) -> str | None:
        """Return the reason to stop, or None."""
        stride = max(1, self.every // draws.thin)
        n_periods = draws.n_samples // stride
        if n_periods < 2:
            return None
        ends = np.arange(1, n_periods + 1) * stride
        running = np.cumsum(draws.white.astype(np.float64), axis=1)[:, ends - 1]
        means = running / ends[:, None]
        steps = np.diff(means, axis=1)  # (C, periods − 1, n): u is linear in white coordinates
        for k in range(n_periods - 1):
            moved = max(_field_norm(posterior, step) for step in steps[:, k])
            if moved <= self.tolerance:
                return (
                    f"the running mean moved by {moved:.2g} <= {self.tolerance:g} over "
                    f"{self.every} steps (equation 17), first at step {ends[k + 1] * draws.thin}"
                )
        return None


def _field_norm(posterior: Posterior, white: Float[np.ndarray, " n"]) -> float:
    """Return the Euclidean norm over nodes of the mean field of a white vector."""
    spectrum, field = posterior.spectrum, posterior.field
    one, means = field.one_class, []
    for own in white.reshape(field.n_fields, -1):
        mean = spectrum.node_scale * (spectrum.basis @ np.asarray(one.mean_coefficients(own)))
        known = np.asarray(one.at_labelled(own))
        if len(known):
            every = np.arange(len(known))
            mean[posterior.observed_nodes] = one.without_weights(known, every)
        means.append(mean)
    return float(np.linalg.norm(means))
