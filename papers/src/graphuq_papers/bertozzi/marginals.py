"""Figure 4: marginal posteriors at selected nodes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from scipy.signal import find_peaks
from scipy.stats import gaussian_kde

from graphuq import Posterior, Result
from graphuq.inference import Hamiltonian, ParallelTempering
from graphuq.likelihoods import GinzburgLandau, LevelSet, Likelihood, Probit
from graphuq.priors import InverseLaplacian, Modes, Prior, SpectralStd
from graphuq.results import label_mean, latent_draws
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.setup import (
    Chain,
    converged,
    given_draws,
    protocol,
    residuals,
    voting,
)
from graphuq_papers.claims import Claim, Finding, Row, cells, finding, listed
from graphuq_papers.problems import choose, rhat

WELLS = "Ginzburg-Landau"
SHARP = "Ginzburg-Landau, prior variance 0.2, ε = 0.1"


class SmallVariance(InverseLaplacian):
    """Prior ``c/λ`` with the given variance of u in place of 1."""

    variance: float = 1.0

    def log_std_of(self, modes: Modes) -> SpectralStd:
        """Return log standard deviations, those of c/λ times the root of the variance."""
        std, shift = super().log_std_of(modes), np.log(self.variance) / 2
        return SpectralStd(std.modes + shift * self.modes_included(modes), std.tail + shift)


class Model(NamedTuple):
    """Likelihood, β of the paper's chain, and prior."""

    likelihood: Likelihood
    step_size: float
    prior: Prior = InverseLaplacian()


MODELS = {
    WELLS: Model(GinzburgLandau(epsilon=10.0, noise_std=0.6), 0.1),
    "probit": Model(Probit(0.5), 0.2),
    "level set": Model(LevelSet(0.5), 0.2),
    # Not in the paper: prior and wells at which its picture appears.
    SHARP: Model(GinzburgLandau(epsilon=0.1, noise_std=0.6), 0.1, SmallVariance(variance=0.2)),
}
COLORS = {"protocol": "#d97706", "converged": "#3b6fb6"}
# Parallel tempering in a quick run: a third of the chains, replicas and steps of warm-up.
SMALL = {
    "method": ParallelTempering(kernel=Hamiltonian(), n_replicas=16),
    "n_chains": 8,
    "n_warmup": 250,
}
DRAWS = 5_000  # draws that the number of modes is counted from
LEAST = 0.05  # height of a mode above the valley beside it, as a share of the highest mode
MODES = {way: f"modes, {way}" for way in COLORS}  # columns


def _two_modes(rows: Sequence[Row]) -> Finding:
    def counts(model: str, way: str) -> list[int]:
        return cells(rows, MODES[way], {"model": model, "confidence": "low"})

    def shows(way: str) -> bool:
        return min(counts(WELLS, way)) >= 2 and max(counts("probit", way)) == 1

    words = "; ".join(
        f"{model} {listed(counts(model, 'converged'), 'd')}" for model in (WELLS, "probit", SHARP)
    )
    return finding(shows("converged"), f"modes at six nodes: {words}", shows("protocol"))


def _one_sign(rows: Sequence[Row]) -> Finding:
    def least(model: str, way: str) -> float:
        return float(min(cells(rows, way, {"model": model, "confidence": "high"})))

    words = ", ".join(
        f"{model} {least(model, 'converged'):.2f}" for model in (WELLS, "probit", SHARP)
    )
    holds, chain = (least(WELLS, way) > 0.5 for way in ("converged", "protocol"))
    return finding(holds, f"least label mean of six nodes: {words}", protocol=chain)


def _slower(rows: Sequence[Row]) -> Finding:
    wells, probit = (cells(rows, "gap", {"model": model})[0] for model in (WELLS, "probit"))
    worst = max(cells(rows, "R-hat", {"model": WELLS}))
    return finding(
        wells > probit,
        f"the paper's chain is off by {wells:.3f} (Ginzburg-Landau) and {probit:.3f} (probit)",
        rhat=worst,
    )


@experiment(
    Claim("At unsure nodes Ginzburg-Landau has several modes, probit has one.", _two_modes),
    Claim("At the surest nodes most draws of Ginzburg-Landau have one sign.", _one_sign),
    Claim("The chain converges more slowly for Ginzburg-Landau than for probit.", _slower),
)
def figure4(context: Context) -> Outcome:
    """Marginals of u at six nodes of low and six of high confidence: voting records, 5 labels."""
    problem = voting(context)
    labelled = choose(problem.truth, 3, 2, context.seed)
    n_steps = context.pick(20_000, 100_000)
    chains: dict[str, Chain] = {}
    results: dict[str, Result] = {}
    for model, (likelihood, step_size, prior) in MODELS.items():
        posterior = problem.posterior(likelihood, labelled, prior)
        chains[model] = protocol(posterior, n_steps, step_size, context.seed)
        options: Any = SMALL if context.quick and likelihood.uses_all_nodes else {}
        results[model] = converged(posterior, context.seed, **options)
    papers = [result for model, result in results.items() if model != SHARP]
    score = np.mean([label_mean(result) for result in papers], axis=0)
    others = np.setdiff1d(np.arange(len(score)), labelled)
    low = others[np.argsort(np.abs(score[others]))[:6]]
    high = others[np.argsort(-score[others])[:6]]
    rows: list[Row] = []
    figure = Figure(figsize=(17, 6.6), layout="constrained")
    parts: Any = figure.subfigures(2, len(MODELS))
    for column, (model, result) in enumerate(results.items()):
        chain = chains[model]
        gap = float(np.abs(chain.label_mean - label_mean(result)).mean())
        for line, (kind, nodes) in enumerate((("low", low), ("high", high))):
            parts[line, column].suptitle(f"{model}, {kind} confidence", fontsize=9)
            draws = {
                "protocol": _latent(result.posterior, chain, nodes),
                "converged": latent_draws(result, nodes),
            }
            for place, (axes, node) in enumerate(
                zip(parts[line, column].subplots(2, 3).ravel(), nodes, strict=True)
            ):
                u = {way: drawn[place] for way, drawn in draws.items()}
                _histograms(axes, u)
                drawn_mean = float(np.sign(u["protocol"]).mean())
                axes.set_title(f"{drawn_mean:+.2f} / {label_mean(result)[node]:+.2f}", fontsize=7)
                rows.append(
                    {
                        "model": model,
                        "confidence": kind,
                        "node": int(node),
                        "protocol": drawn_mean,
                        "converged": float(label_mean(result)[node]),
                        **{MODES[way]: n_modes(values) for way, values in u.items()},
                        "gap": gap,
                        "R-hat": rhat(result),
                    }
                )
    figure.suptitle("label means: the paper's chain (orange) / converged (blue)", fontsize=9)
    gaps = {row["model"]: row["gap"] for row in rows}
    return Outcome(
        rows,
        "Mean absolute difference between label means of the paper's chain and of the default "
        "sampler, over all nodes: "
        + ", ".join(f"{model} {gap:.3f}" for model, gap in gaps.items())
        + ". R-hat of the default sampler: "
        + ", ".join(f"{m} {rhat(r):.3f}" for m, r in results.items())
        + " (parallel tempering for Ginzburg-Landau). The last column is not in the paper: a prior "
        "of variance 0.2 in place of 1 and ε = 0.1 give the paper's picture. "
        f"Least label mean of the six sure nodes: {_one_sign(rows).figures.partition(': ')[2]}.",
        figure,
    )


def _latent(
    posterior: Posterior, chain: Chain, nodes: Int[np.ndarray, " B"]
) -> Float[np.ndarray, "B S"]:
    """Return draws of u at some nodes by the paper's chain."""
    u, std = given_draws(posterior, chain.white, nodes)
    return np.asarray(u + residuals(np.random.default_rng(0), std, chain.kept).T)


def _histograms(axes: Any, draws: dict[str, Float[np.ndarray, " S"]]) -> None:
    """Draw converged draws as a filled histogram, and those of the paper's chain as a line."""
    for way, u in draws.items():
        filled = way == "converged"
        axes.hist(
            u,
            bins=50,
            density=True,
            color=COLORS[way],
            histtype="stepfilled" if filled else "step",
            zorder=1 if filled else 2,
        )
    axes.tick_params(labelsize=6)
    axes.set_yticks([])


def n_modes(u: Float[np.ndarray, " S"]) -> int:
    """Return the number of modes of a density estimate that stand out from their valleys."""
    u = u[:: max(1, len(u) // DRAWS)]
    low, high = np.quantile(u, (0.001, 0.999))
    density = gaussian_kde(u)(np.linspace(low, high, 200))
    edged = np.concatenate([[0.0], density, [0.0]])
    return len(find_peaks(edged, prominence=LEAST * density.max())[0])
