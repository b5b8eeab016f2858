"""Section 4.1: acceptance of pCN, of a random walk and of a Gibbs sampler as the graph grows."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.special import log_ndtr, ndtr, ndtri

from graphuq import Posterior, laplacian_spectrum
from graphuq.datasets import two_moons
from graphuq.graphs import complete_graph
from graphuq.likelihoods import Probit
from graphuq.priors import InverseLaplacian
from graphuq.results import convergence_of
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, cells, finding, listed
from graphuq_papers.problems import space

NOISE, BETA, N_LABELS, N_CHAINS = 0.5, 0.2, 10, 4  # γ, β of both chains, J
ESS = "effective draws in 1,000 steps"  # column, of the mean label
PCN, WALK, GIBBS = "pCN", "random walk", "Gibbs"
Step = Callable[[Float[np.ndarray, " L"]], tuple[Float[np.ndarray, " L"], bool]]


def _steady(rows: Sequence[Row]) -> Finding:
    found = {name: cells(rows, "acceptance", {"sampler": name}) for name in (PCN, WALK)}
    words = "; ".join(f"{name} {listed(values, '.2f')}" for name, values in found.items())
    low, high = min(found[PCN]), max(found[PCN])
    return finding(
        low > 0.8 * high and found[WALK][-1] < found[WALK][0] / 2,
        f"N = {listed(cells(rows, 'N', {'sampler': PCN}), 'd')}: {words}",
    )


@experiment(Claim("Acceptance of pCN does not depend on N, that of a random walk falls.", _steady))
def dimension(context: Context) -> Outcome:
    """Acceptance and effective draws of three samplers of the whole field: two moons, probit."""
    sizes = context.pick((50, 100, 200, 400), (100, 200, 400, 800, 1600))
    n_steps = context.pick(4_000, 20_000)
    rows: list[Row] = []
    for size in sizes:
        posterior = _posterior(context, size)
        for name, make in ((PCN, _pcn), (WALK, _random_walk), (GIBBS, _gibbs)):
            accepted, labels = [], []
            for chain in range(N_CHAINS):
                rng = np.random.default_rng(chain)
                found = _run(posterior, make(posterior, rng), rng, n_steps)
                accepted.append(found[0])
                labels.append(found[1])
            table = convergence_of({"mean label": np.stack(labels)})["mean label"]
            rows.append(
                {
                    "N": size,
                    "sampler": name,
                    "acceptance": float(np.mean(accepted)),
                    ESS: table["ess_bulk"] / (N_CHAINS * labels[0].size / 1000),
                    "R-hat": table["rhat"],
                }
            )
    effective = "; ".join(
        f"{name} {listed(cells(rows, ESS, {'sampler': name}), '.1f')}"
        for name in (PCN, WALK, GIBBS)
    )
    return Outcome(
        rows,
        f"Chains of the whole field for probit with γ = {NOISE} and {N_LABELS} labels, β = {BETA} "
        f"in pCN and in the random walk u + βζ with ζ from the prior; Gibbs is Albert and Chib's. "
        f"Acceptance for {_steady(rows).figures}. {ESS.capitalize()}: {effective}.",
        _draw(rows),
    )


def _posterior(context: Context, size: int) -> Posterior:
    data = two_moons(size, 100, 0.06, rng=0)
    points, metric = space(context, data.features)
    graph = complete_graph(points, "self-tuning", n_neighbors=10, metric=metric)
    truth = data.signs(1)
    labelled = np.concatenate([np.flatnonzero(truth == sign)[: N_LABELS // 2] for sign in (-1, 1)])
    spectrum = laplacian_spectrum(graph, n_eigenpairs=size, solver="dense")
    return Posterior(spectrum, InverseLaplacian(), Probit(NOISE), labelled, truth[labelled])


def _loadings(posterior: Posterior) -> Float[np.ndarray, "J L"]:
    """Return A with u_L = A ξ, ξ ~ N(0, I)."""
    rows = posterior.spectrum.eigenvectors[posterior.labelled]
    return np.asarray(rows * posterior.std.modes)


def _log_likelihood(posterior: Posterior) -> Callable[[Float[np.ndarray, " L"]], float]:
    loadings = posterior.labels[:, None] * _loadings(posterior) / NOISE
    return lambda xi: float(log_ndtr(loadings @ xi).sum())


def _pcn(posterior: Posterior, rng: np.random.Generator) -> Step:
    """Return pCN: the proposal keeps the prior, so that the likelihood alone decides."""
    value = _log_likelihood(posterior)

    def step(xi: Float[np.ndarray, " L"]) -> tuple[Float[np.ndarray, " L"], bool]:
        proposal = np.sqrt(1 - BETA**2) * xi + BETA * rng.normal(size=len(xi))
        accepted = bool(np.log(rng.uniform()) < value(proposal) - value(xi))
        return (proposal if accepted else xi), accepted

    return step


def _random_walk(posterior: Posterior, rng: np.random.Generator) -> Step:
    """Return a random walk with steps from the prior: prior and likelihood decide."""
    value = _log_likelihood(posterior)

    def step(xi: Float[np.ndarray, " L"]) -> tuple[Float[np.ndarray, " L"], bool]:
        proposal = xi + BETA * rng.normal(size=len(xi))
        change = value(proposal) - value(xi) - (proposal @ proposal - xi @ xi) / 2
        accepted = bool(np.log(rng.uniform()) < change)
        return (proposal if accepted else xi), accepted

    return step


def _gibbs(posterior: Posterior, rng: np.random.Generator) -> Step:
    """Return Albert and Chib's sampler: noisy values of the labels, then ξ given those."""
    loadings, labels = _loadings(posterior), posterior.labels
    # ξ given z is normal with covariance (I + AᵀA/γ²)⁻¹: a prior draw, corrected at the labels.
    gain = np.linalg.solve(loadings @ loadings.T + NOISE**2 * np.eye(len(labels)), loadings).T

    def step(xi: Float[np.ndarray, " L"]) -> tuple[Float[np.ndarray, " L"], bool]:
        mean = labels * (loadings @ xi) / NOISE  # of a noisy value times its label, in units of γ
        tail = rng.uniform(size=len(labels)) * ndtr(mean)
        noisy = labels * NOISE * (mean - ndtri(tail))
        prior = rng.normal(size=len(xi))
        seen = loadings @ prior + NOISE * rng.normal(size=len(labels))
        return prior + gain @ (noisy - seen), True

    return step


def _run(
    posterior: Posterior, step: Step, rng: np.random.Generator, n_steps: int
) -> tuple[float, Float[np.ndarray, " S"]]:
    """Return the acceptance rate, and the mean label after each step but the first fifth."""
    vectors = posterior.spectrum.eigenvectors * posterior.std.modes
    xi = rng.normal(size=vectors.shape[1])
    n_accepted, means = 0, np.empty(n_steps)
    for k in range(n_steps):
        xi, accepted = step(xi)
        n_accepted += accepted
        means[k] = np.sign(vectors @ xi).mean()
    return n_accepted / n_steps, means[n_steps // 5 :]


def _draw(rows: list[Row]) -> Figure:
    """Draw acceptance and effective draws of each sampler against N."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    colors = {PCN: "#3b6fb6", WALK: "#c2410c", GIBBS: "#8a8f98"}
    for axes, column in zip(figure.subplots(1, 2), ("acceptance", ESS), strict=True):
        for name, color in colors.items():
            chosen = [row for row in rows if row["sampler"] == name]
            x, y = ([row[key] for row in chosen] for key in ("N", column))
            axes.plot(x, y, "o-", color=color, label=name)
        axes.set(xlabel="N", xscale="log", ylabel=column)
        axes.set_xticks(cells(rows, "N", {"sampler": PCN}), cells(rows, "N", {"sampler": PCN}))
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylim(0, 1.05)
    figure.axes[1].set_yscale("log")
    figure.axes[0].legend(frameon=False)
    return figure
