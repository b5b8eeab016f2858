"""When to end a run: stop rules for `infer`."""

import dataclasses

import numpy as np
from jaxtyping import Float

from graphuq.diagnostics import ESS_BOUND, RHAT_BOUND, convergence_table, sketch, worst
from graphuq.errors import require
from graphuq.inference.chains import Draws
from graphuq.posterior import Posterior


@dataclasses.dataclass(frozen=True)
class Converged:
    """Stop once R-hat and the effective sample sizes are good.

    Parameters
    ----------
    rhat : float, default 1.01
        Bound on the largest R-hat, above 1.
    ess : float, default 400
        Bound on the smallest bulk and tail effective sample size over all chains together.
    """

    rhat: float = RHAT_BOUND
    ess: float = ESS_BOUND

    def __post_init__(self) -> None:
        require(self.rhat > 1, "rhat", f"{self.rhat!r}", "use a bound above 1")
        require(self.ess > 0, "ess", f"{self.ess!r}", "use a positive bound")

    def __call__(self, posterior: Posterior, draws: Draws) -> str | None:
        """Reason to stop, or None."""
        rhat, ess_bulk, ess_tail = worst(convergence_table(sketch(posterior, draws)))
        if rhat < self.rhat and min(ess_bulk, ess_tail) >= self.ess:
            return f"R-hat below {self.rhat} and effective sample sizes above {self.ess:g}"
        return None


@dataclasses.dataclass(frozen=True)
class CumulativeMean:
    """The papers' rule: stop once the running mean of u moves little (Bertozzi et al., (17)).

    ``|ū^(kT) − ū^((k−1)T)| <= tolerance``, in the Euclidean norm over nodes, for the slowest
    of the chains. It says nothing about convergence, as the paper notes; kept to reproduce it.

    Parameters
    ----------
    tolerance : float, default 1e-3
        Bound > 0, in units of u.
    every : int, default 5000
        T, in steps of the chain.
    """

    tolerance: float = 1e-3
    every: int = 5000

    def __post_init__(self) -> None:
        require(self.tolerance > 0, "tolerance", f"{self.tolerance!r}", "use a positive bound")
        require(self.every > 0, "every", f"{self.every!r}", "use 1 step or more")

    def __call__(self, posterior: Posterior, draws: Draws) -> str | None:
        """Reason to stop, or None."""
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
    """Euclidean norm over all nodes of the mean field that belongs to a white vector."""
    spectrum, field = posterior.spectrum, posterior.field
    mean = spectrum.node_scale * (
        spectrum.eigenvectors @ np.asarray(field.mean_coefficients(white))
    )
    mean[posterior.labelled] = np.asarray(field.at_labelled(white))
    return float(np.linalg.norm(mean))
