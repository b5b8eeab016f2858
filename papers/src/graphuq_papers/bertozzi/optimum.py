"""Study of ours: the optimum by the paper's gradient flow, as printed, beside our two solvers."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from graphuq import Posterior, infer
from graphuq.inference import MAP
from graphuq.likelihoods import GinzburgLandau, Likelihood, Probit
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.setup import voting
from graphuq_papers.claims import Claim, Finding, Row, cells, finding
from graphuq_papers.problems import moons, share

NOISE, WELL_NOISE, EPSILON = 0.1, 1.0, 1.0  # γ of probit; γ and ε of Ginzburg-Landau
STEP_SIZES = {"probit": NOISE**2, "Ginzburg-Landau": 0.1}  # β, below 2 / the largest slope of ∇Φ
TOLERANCE, MAX_STEPS = 1e-7, 200_000  # of the gradient in units of the prior's deviations
APART = "largest distance from Newton's field"
Vector = Float[np.ndarray, " N"]


def _one_optimum(model: str) -> Callable[[Sequence[Row]], Finding]:
    def judge(rows: Sequence[Row]) -> Finding:
        worst = {
            data: max(cells(rows, APART, {"data": data, "model": model}))
            for data in dict.fromkeys(cells(rows, "data"))
        }
        words = ", ".join(f"{data} {value:.1g}" for data, value in worst.items())
        return finding(max(worst.values()) < 1e-4, f"fields differ by at most: {words}")

    return judge


@experiment(
    Claim("Gradient flow and Newton's method reach one optimum of probit.", _one_optimum("probit")),
    Claim("From there they reach one optimum of Ginzburg-Landau.", _one_optimum("Ginzburg-Landau")),
)
def optimum(context: Context) -> Outcome:
    """The optimum by Algorithm 4 as printed, by our gradient flow and by Newton's method."""
    rows: list[Row] = []
    for data, problem in (
        ("voting records", voting(context)),
        ("two moons", moons(context, 0.06, context.seed)),
    ):
        labelled = share(problem.truth, 0.03, context.seed)
        start = np.zeros(len(problem.truth))
        for model, likelihood, begin in (
            ("probit", Probit(NOISE), "zero"),
            ("Ginzburg-Landau", GinzburgLandau(EPSILON, WELL_NOISE), Probit(NOISE)),
        ):
            posterior = problem.posterior(likelihood, labelled)
            fields = _by_solvers(posterior, model, begin, start)
            newton = fields["Newton"][0]
            start = fields["Algorithm 4"][0] if model == "probit" else start
            rows += [
                {
                    "data": data,
                    "model": model,
                    "solver": solver,
                    "iterations": steps,
                    APART: float(np.abs(field - newton).max()),
                }
                for solver, (field, steps) in fields.items()
            ]
    text = "; ".join(
        f"{r['data']}, {r['model']}, {r['solver']}: {r['iterations']} iterations" for r in rows
    )
    return Outcome(rows, f"{text}.")


def _by_solvers(
    posterior: Posterior, model: str, begin: Likelihood | str, start: Vector
) -> dict[str, tuple[Vector, int]]:
    """Return the field of each solver, and its number of iterations."""
    found = {}
    for name, solver in (("Newton", "newton"), ("our flow", "flow")):
        result = infer(posterior, MAP(solver=solver, start=begin, tolerance=TOLERANCE))
        found[name] = np.asarray(result.latent_mean), int(result.answer.n_iterations)
    return found | {"Algorithm 4": algorithm4(posterior, model, start)}


def algorithm4(posterior: Posterior, model: str, start: Vector) -> tuple[Vector, int]:
    """Return the optimum and the number of steps: ``u ← (I + β P)^{-1} (u − β ∇Φ(u))``, β fixed.

    P is the precision of the prior in the basis of the eigenvectors that the prior keeps.
    """
    std, step = np.asarray(posterior.std.modes), STEP_SIZES[model]
    kept = std > 0
    q, std = np.asarray(posterior.spectrum.eigenvectors)[:, kept], std[kept]
    shrink, a = 1 / (1 + step / std**2), q.T @ start
    for n_steps in range(MAX_STEPS):
        slope = q.T @ _slope(posterior, model, q @ a)
        if np.abs(std * slope + a / std).max() <= TOLERANCE:
            return q @ a, n_steps
        a = shrink * (a - step * slope)
    return q @ a, MAX_STEPS


def _slope(posterior: Posterior, model: str, u: Vector) -> Vector:
    """Return ``∇Φ`` at all nodes."""
    labelled, y = posterior.labelled, posterior.labels
    if model == "probit":
        slope, z = np.zeros(len(u)), y * u[labelled] / NOISE
        slope[labelled] = -y / NOISE * np.exp(-(z**2) / 2 - log_ndtr(z)) / np.sqrt(2 * np.pi)
        return slope
    slope = u * (u**2 - 1) / EPSILON
    slope[labelled] += (u[labelled] - y) / WELL_NOISE**2
    return slope
