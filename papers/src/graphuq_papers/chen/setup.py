"""Data set and chains of Chen's paper, and converged chains beside them."""

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from graphuq import Converged, Posterior, Result, infer, laplacian_spectrum
from graphuq.datasets import load_voting
from graphuq.errors import NotConvergedWarning
from graphuq.graphs import complete_graph
from graphuq.inference import PCN, MetropolisWithinGibbs
from graphuq.likelihoods import LevelSet
from graphuq.priors import Prior
from graphuq.results import draws as draws_of
from graphuq.results import label_mean
from graphuq.scores import accuracy
from graphuq_papers.base import Context
from graphuq_papers.claims import Row
from graphuq_papers.problems import Problem, rhat, space

# The paper's symbols of the hyperparameters.
SYMBOLS = {"tau": "τ", "alpha": "α", "truncation": "M"}
KEPT = 2_000  # draws stored per chain of the paper's protocol; the others are thinned out
N_MODES, BETA = 50, 0.1  # of several classes: M where it is fixed, β of the paper's chain
GREY, LIGHT, ORANGE = "#4b5563", "#9dbce6", "#c2410c"
SHOWN_STEPS, N_BINS = 250, 25  # of a trace, at most about twice as many; of a histogram
ACCEPTANCE = 0.5  # acceptance rate to which the paper tunes its step sizes, if it tunes them


@lru_cache(maxsize=1)
def voting(context: Context) -> Problem:
    """Return the voting records: 435 nodes, complete graph with weights exp(−d²/2).

    The spectrum has all eigenpairs of the unnormalised Laplacian.
    """
    data = load_voting(context.folder)
    points, metric = space(context, data.features)
    graph = complete_graph(points, "gaussian", scale=1.0, metric=metric)
    return Problem(laplacian_spectrum(graph, "unnormalized"), data.signs("democrat"))


class Pair(NamedTuple):
    """Two results for one posterior.

    Attributes
    ----------
    protocol : Result
        One chain of the paper's sampler.
    converged : Result
        Chains of the default sampler.
    truth : numpy.ndarray, shape (N,)
        True class of each node.
    """

    protocol: Result
    converged: Result
    truth: np.ndarray

    def rows(self, **about: Any) -> list[Row]:
        """Return a row for each scalar hyperparameter, one for accuracy and one for time.

        The median of the paper's chain is that of its second half. Keyword arguments become
        additional columns.
        """
        rows: list[Row] = []
        for name, draws in self.converged.hyperparameters.items():
            if draws.ndim > 2:
                continue
            half = self.protocol.hyperparameters[name][0]
            half = half[len(half) // 2 :]
            rows.append(
                {
                    **about,
                    "quantity": f"median of {name}",
                    "protocol": float(np.median(half)),
                    "converged": float(np.median(draws)),
                    "5 %": float(np.quantile(draws, 0.05)),
                    "95 %": float(np.quantile(draws, 0.95)),
                    "mean": float(draws.mean()),
                }
            )
        right = {
            "quantity": "accuracy",
            "protocol": self._accuracy(self.protocol),
            "converged": self._accuracy(self.converged),
        }
        seconds = {
            "quantity": "seconds",
            "protocol": draws_of(self.protocol).seconds,
            "converged": draws_of(self.converged).seconds,
            "R-hat": rhat(self.converged),
        }
        return [*rows, {**about, **right}, {**about, **seconds}]

    @property
    def state(self) -> str:
        """Sentence about the convergence of the default sampler."""
        worst = rhat(self.converged)
        word = "have converged" if worst < 1.01 else "have NOT converged"
        return f"chains {word} after {draws_of(self.converged).seconds:.0f} s (R-hat {worst:.3f})"

    def _accuracy(self, result: Result) -> float:
        return accuracy(label_mean(result), self.truth, result.posterior.labelled)


def multiclass_posterior(
    problem: Problem, prior: Prior, labelled: np.ndarray, gamma: float
) -> Posterior:
    """Return the posterior of the level set of several classes."""
    n_classes = len(np.unique(problem.truth))
    return problem.posterior(LevelSet(gamma, n_classes), labelled, prior)


def both(
    context: Context,
    posterior: Posterior,
    truth: np.ndarray,
    step_size: float,
    **converged: Any,
) -> Pair:
    """Run one chain of the paper's sampler, and the default sampler until R-hat < 1.01.

    Other keyword arguments are those of `learn`.
    """
    n_steps = context.pick(20_000, 100_000)
    protocol = paper_chain(posterior, n_steps, context.seed, step_size)
    return Pair(protocol, learn(context, posterior, context.seed, **converged), truth)


def paper_chain(
    posterior: Posterior, n_steps: int, seed: int, step_size: float, n_warmup: int = 0
) -> Result:
    """Run one chain of pCN within Gibbs (Algorithms 2 and 4).

    A multiclass chain updates one class after the other.
    """
    by_class = posterior.likelihood.is_multiclass
    kernel = PCN(step_size=step_size, target_acceptance=ACCEPTANCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return infer(
            posterior,
            MetropolisWithinGibbs(kernel=kernel, interweave=False, repeats=1, by_class=by_class)
            if posterior.learnt or by_class
            else kernel,
            n_samples=KEPT,
            thin=max(1, n_steps // KEPT),
            n_chains=1,
            n_warmup=n_warmup,
            rng=seed,
        )


def learn(context: Context, posterior: Posterior, seed: int, **options: Any) -> Result:
    """Run the default sampler until R-hat < 1.01, including the R-hat of hyperparameters.

    The result's diagnostics say whether it has converged; there is no warning. Multiclass
    posteriors have only 8 chains, because each chain needs a warm-up, and warm-up takes most of
    the time. Other keyword arguments are those of `infer`, in place of these choices.
    """
    chosen: dict[str, Any] = {
        "n_samples": context.pick(2500, 10_000),
        "n_chains": 8 if posterior.likelihood.is_multiclass else None,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return infer(
            posterior,
            rng=seed,
            precision="float32",
            stop=Converged(label_mcse=None),
            **(chosen | options),
        )


def draw(pair: Pair, title: str) -> Figure:
    """Draw each hyperparameter: the trace of the paper's chain, posteriors and prior.

    The paper's chain counts from its second half on.
    """
    names = [name for name, v in pair.converged.hyperparameters.items() if v.ndim == 2]
    figure = Figure(figsize=(9.5, 2.8 * len(names)), layout="constrained")
    grid = np.atleast_2d(figure.subplots(len(names), 2, width_ratios=(2, 1)))
    for (left, right), name in zip(grid, names, strict=True):
        trace = pair.protocol.hyperparameters[name][0]
        steps = np.arange(1, len(trace) + 1) * draws_of(pair.protocol).thin
        shown = slice(None, None, max(1, len(trace) // SHOWN_STEPS))
        left.plot(steps[shown], trace[shown], color=GREY, linewidth=0.9)
        symbol = SYMBOLS.get(name, name)
        left.set(xlabel="step of the paper's chain", ylabel=symbol, title=title)
        values = pair.converged.hyperparameters[name].ravel()
        low, high = values.min(), values.max()
        whole = bool((values == np.round(values)).all())
        width = max(1, round((high - low) / N_BINS))
        bins: Any = np.arange(low, high + 1 + width, width) - 0.5 if whole else N_BINS
        right.hist(values, bins=bins, density=True, color=LIGHT, label="converged")
        half = trace[len(trace) // 2 :]
        style: Any = {"histtype": "step", "color": GREY, "linewidth": 1.2}
        right.hist(half, bins=bins, density=True, label="paper's chain", **style)
        prior = pair.converged.posterior.prior.learnt[name].frozen
        at = np.arange(low, high + 1) if whole else np.linspace(low, high, 200)
        density = prior.pmf(at) if whole else prior.pdf(at)
        right.plot(at, density, "--", color=ORANGE, linewidth=1.2, label="prior")
        right.set(xlabel=symbol, ylabel="density")
        style = {"frameon": False, "fontsize": 8, "ncols": 3, "columnspacing": 1.0}
        right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), **style)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
    return figure
