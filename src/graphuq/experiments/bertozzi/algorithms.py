"""Figure 9: full spectrum, spectral projection and spectral approximation."""

import numpy as np
from matplotlib.figure import Figure

from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.bertozzi.setup import converged, protocol, voting
from graphuq.experiments.problems import choose
from graphuq.likelihoods import Probit

# Mean absolute differences of label means that the paper prints.
PAPER = {"projection": 0.1577, "approximation": 0.0261}
STEPS, STEP_SIZE = 10_000, 0.3  # the paper's number of pCN steps, and its β


def figure9(context: Context) -> Outcome:
    """Label means by Algorithms 1, 2 and 3: voting records, probit, γ = 0.1, ℓ = 150."""
    names = ("full", *PAPER)
    n_trials = context.pick(3, 20)
    chain_gaps: dict[str, list[float]] = {name: [] for name in PAPER}
    gaps: dict[str, list[float]] = {name: [] for name in PAPER}
    shown: dict[str, np.ndarray] = {}
    for trial in range(n_trials):
        chain_means, means = {}, {}
        for name in names:
            problem = voting(context, name, None if name == "full" else 150)
            labelled = choose(problem.truth, 3, 2, trial)
            posterior = problem.posterior(Probit(0.1), labelled)
            chain_means[name] = protocol(posterior, STEPS, STEP_SIZE, trial).label_mean
            means[name] = converged(posterior, trial, label_mcse=0.01).label_mean
        for name in PAPER:
            chain_gaps[name].append(float(np.abs(chain_means[name] - chain_means["full"]).mean()))
            gaps[name].append(float(np.abs(means[name] - means["full"]).mean()))
        shown = shown or means
    rows = [
        {
            "algorithm": name,
            "paper": PAPER[name],
            "protocol": float(np.mean(chain_gaps[name])),
            "converged": float(np.mean(gaps[name])),
            "standard error": float(np.std(gaps[name], ddof=1) / np.sqrt(n_trials)),
            "trials": n_trials,
        }
        for name in PAPER
    ]
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, 3, sharey=True), names, strict=True):
        axes.plot(shown[name], ".", markersize=3, color="#3b6fb6")
        axes.set(title=name, xlabel="node", ylim=(-1.05, 1.05))
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("label mean s_j")
    return Outcome(
        rows,
        "Mean absolute difference from the label means of the full spectrum: projection "
        f"{rows[0]['converged']:.3f} (paper: {PAPER['projection']}), approximation "
        f"{rows[1]['converged']:.3f} (paper: {PAPER['approximation']}). The paper's protocol, a "
        "single chain per spectrum that has not converged, gives "
        f"{rows[1]['protocol']:.3f} for the approximation.",
        figure,
    )
