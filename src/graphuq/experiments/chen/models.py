"""Models C and E on MNIST (4, 9): figures 5, 6 and 7."""

from graphuq.distributions import Uniform
from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.chen.setup import Pair, both, draw
from graphuq.experiments.problems import mnist, share
from graphuq.likelihoods import LevelSet
from graphuq.priors import EigenScales, Matern, Prior

N_MODES, NOISE, SHARE = 50, 1e-4, 0.01  # the share of labels is that of figure 20


def figure5(context: Context) -> Outcome:
    """Model C, M = 50: τ and α learnt."""
    prior = Matern(
        tau=Uniform(0.01, 20.0), alpha=Uniform(0.1, 60.0), truncation=N_MODES, include_constant=True
    )
    pair = _run(context, prior)
    rows = pair.rows(model="C")
    found = {row["quantity"]: row for row in rows}
    tau, right = found["median of tau"], found["accuracy"]
    tau["paper"], right["paper"] = 0.7, 0.96
    settles = "settles low, as printed" if tau["converged"] < 2 else "does not settle low"
    return Outcome(
        rows,
        f"τ {settles}: median {tau['converged']:.2f} (90 % in {tau['5 %']:.2f} to "
        f"{tau['95 %']:.2f}; paper about 0.7), α {found['median of alpha']['converged']:.1f}; "
        f"accuracy {right['converged']:.3f} (paper about 0.96); {pair.state} "
        f"over τ and α too; the paper's chain ends at τ = {tau['protocol']:.2f}, accuracy "
        f"{right['protocol']:.3f}.",
        draw(pair, "model C"),
    )


def figure6(context: Context) -> Outcome:
    """Model E, M = 50, about τ = 0.7, α = 35, a = 0.8."""
    return _scales(context, 0.7)


def figure7(context: Context) -> Outcome:
    """Model E, M = 50, about τ = 0.3, α = 35, a = 0.8."""
    return _scales(context, 0.3)


def _scales(context: Context, tau: float) -> Outcome:
    prior = EigenScales(
        tau=tau, alpha=35.0, scales=Uniform(0.2, 1.8), truncation=N_MODES, include_constant=True
    )
    pair = _run(context, prior)
    rows = pair.rows(model="E")
    found = {row["quantity"]: row for row in rows}
    scales = pair.converged.hyperparameters["scales"]
    moved = abs(scales.mean(axis=(0, 1)) - 1.0)
    for j in range(scales.shape[2]):
        rows.append({"model": "E", "quantity": f"mean of a_{j}", "converged": 1.0})
        rows[-1]["converged"] = float(scales[:, :, j].mean())
    return Outcome(
        rows,
        f"About τ = {tau}: accuracy {found['accuracy']['converged']:.3f} ({pair.state}), "
        f"{found['accuracy']['protocol']:.3f} by the paper's chain. The labels move the mean of a "
        f"scale a_j, a priori 1, by at most {moved.max():.2f}: they say little of single modes.",
    )


def _run(context: Context, prior: Prior) -> Pair:
    problem = mnist(context, (4, 9))
    labelled = share(problem.truth, SHARE, context.seed)
    posterior = problem.posterior(LevelSet(NOISE), labelled, prior)
    return both(context, posterior, problem.truth, 0.1)
