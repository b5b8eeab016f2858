"""Figure 4: marginal posteriors at selected nodes."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from graphuq.experiments.base import Context, Outcome, Row
from graphuq.experiments.bertozzi.setup import Chain, converged, protocol, voting
from graphuq.experiments.problems import choose, rhat
from graphuq.likelihoods import GinzburgLandau, LevelSet, Likelihood, Probit
from graphuq.results.result import Result

MODELS: dict[str, tuple[Likelihood, float]] = {  # likelihood, and β of the paper's chain
    "Ginzburg-Landau": (GinzburgLandau(epsilon=10.0, noise_std=0.6), 0.1),
    "probit": (Probit(0.5), 0.2),
    "level set": (LevelSet(0.5), 0.2),
}


def figure4(context: Context) -> Outcome:
    """Marginals of u at six nodes of low and six of high confidence: voting records, 5 labels."""
    problem = voting(context)
    labelled = choose(problem.truth, 3, 2, context.seed)
    n_steps = context.pick(20_000, 100_000)
    chains: dict[str, Chain] = {}
    results: dict[str, Result] = {}
    for model, (likelihood, step_size) in MODELS.items():
        posterior = problem.posterior(likelihood, labelled)
        chains[model] = protocol(posterior, n_steps, step_size, context.seed)
        results[model] = converged(posterior, context.seed)
    score = np.mean([result.label_mean for result in results.values()], axis=0)
    others = np.setdiff1d(np.arange(len(score)), labelled)
    low = others[np.argsort(np.abs(score[others]))[:6]]
    high = others[np.argsort(-score[others])[:6]]
    rows: list[Row] = [
        {
            "model": model,
            "confidence": kind,
            "node": int(node),
            "protocol": float(chains[model].label_mean[node]),
            "converged": float(result.label_mean[node]),
            "R-hat": rhat(result),
        }
        for model, result in results.items()
        for kind, nodes in (("low", low), ("high", high))
        for node in nodes
    ]
    figure = Figure(figsize=(13, 6.4), layout="constrained")
    parts: Any = figure.subfigures(2, 3)
    for column, (model, result) in enumerate(results.items()):
        for line, (kind, nodes) in enumerate((("low", low), ("high", high))):
            part = parts[line, column]
            part.suptitle(f"{model}, {kind} confidence", fontsize=9)
            drawn = zip(part.subplots(2, 3).ravel(), nodes, result.latent_draws(nodes), strict=True)
            for axes, node, u in drawn:
                axes.hist(u, bins=50, density=True, color="#3b6fb6")
                axes.set_title(f"s = {result.label_mean[node]:+.2f}", fontsize=7)
                axes.tick_params(labelsize=6)
                axes.set_yticks([])
    gaps = {
        model: float(np.abs(chains[model].label_mean - result.label_mean).mean())
        for model, result in results.items()
    }
    return Outcome(
        rows,
        "Mean absolute difference between label means of the paper's chain and of the default "
        "sampler, over all nodes: "
        + ", ".join(f"{model} {gap:.3f}" for model, gap in gaps.items())
        + ". R-hat of the default sampler: "
        + ", ".join(f"{m} {rhat(r):.3f}" for m, r in results.items())
        + " (parallel tempering for Ginzburg-Landau).",
        figure,
    )
