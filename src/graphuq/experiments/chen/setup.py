"""Chains of Chen's paper, and converged ones."""

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from graphuq.datasets import load_voting
from graphuq.errors import NotConvergedWarning
from graphuq.experiments.base import Context
from graphuq.experiments.problems import Problem, rhat
from graphuq.graphs import complete_graph
from graphuq.inference import PCN, MetropolisWithinGibbs
from graphuq.posterior.posterior import Posterior
from graphuq.results.result import Result
from graphuq.run.infer import infer
from graphuq.run.stopping import Converged
from graphuq.scores import accuracy
from graphuq.spectrum import laplacian_spectrum

KEPT = 2_000  # draws kept of a protocol's chain
ACCEPTANCE = 0.5  # that the paper's step sizes are tuned to, where they are


@lru_cache(maxsize=1)
def voting(context: Context) -> Problem:
    """435 members, complete graph, exp(−d²/2), unnormalised Laplacian, all eigenpairs."""
    data = load_voting(context.folder)
    graph = complete_graph(data.features, "gaussian", scale=1.0)
    return Problem(laplacian_spectrum(graph, "unnormalized"), data.signs("democrat"))


class Pair(NamedTuple):
    """One posterior, by the paper's way and converged."""

    protocol: Result
    converged: Result
    truth: np.ndarray

    def rows(self, **about: Any) -> list[dict[str, Any]]:
        """A row a hyperparameter, and one of accuracy."""
        rows: list[dict[str, Any]] = []
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
                }
            )
        right = {
            "quantity": "accuracy",
            "protocol": self._accuracy(self.protocol),
            "converged": self._accuracy(self.converged),
        }
        seconds = {
            "quantity": "seconds",
            "protocol": self.protocol.draws.seconds,
            "converged": self.converged.draws.seconds,
            "R-hat": rhat(self.converged),
        }
        return [*rows, {**about, **right}, {**about, **seconds}]

    @property
    def state(self) -> str:
        """How far the chains got, in words."""
        worst = rhat(self.converged)
        word = "converged" if worst < 1.01 else "NOT converged"
        return f"{word} in {self.converged.draws.seconds:.0f} s, R-hat {worst:.3f}"

    def _accuracy(self, result: Result) -> float:
        return accuracy(result.label_mean, self.truth, result.posterior.labelled)


def both(context: Context, posterior: Posterior, truth: np.ndarray, step_size: float) -> Pair:
    """One chain of the paper's sampler, and default chains until R-hat < 1.01."""
    n_steps = context.pick(20_000, 100_000)
    protocol = paper_chain(posterior, n_steps, context.seed, step_size)
    return Pair(protocol, learn(context, posterior, context.seed), truth)


def paper_chain(
    posterior: Posterior, n_steps: int, seed: int, step_size: float, n_warmup: int = 0
) -> Result:
    """One chain of pCN within Gibbs, of several classes class by class (Algorithms 2 and 4)."""
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
            seed=seed,
        )


def learn(context: Context, posterior: Posterior, seed: int) -> Result:
    """Until R-hat < 1.01, hyperparameters included; whether it got there is in the result.

    Of several classes few chains: warm-up is most of the time there, and each chain pays it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return infer(
            posterior,
            n_samples=context.pick(2500, 10_000),
            n_chains=8 if posterior.likelihood.is_multiclass else None,
            seed=seed,
            precision="float32",
            stop=Converged(label_mcse=None),
        )


def draw(pair: Pair, title: str) -> Figure:
    """The protocol's trace of each hyperparameter, and its converged law beside it."""
    names = [name for name, v in pair.converged.hyperparameters.items() if v.ndim == 2]
    figure = Figure(figsize=(9.5, 2.5 * len(names)), layout="constrained")
    grid = np.atleast_2d(figure.subplots(len(names), 2, width_ratios=(2, 1)))
    for (left, right), name in zip(grid, names, strict=True):
        trace = pair.protocol.hyperparameters[name][0]
        steps = np.arange(1, len(trace) + 1) * pair.protocol.draws.thin
        left.plot(steps, trace, color="#8a8f98", linewidth=0.7)
        left.set(xlabel="step of the paper's chain", ylabel=name, title=title)
        values = pair.converged.hyperparameters[name].ravel()
        whole = bool((values == np.round(values)).all())
        bins: Any = np.arange(values.min() - 0.5, values.max() + 1) if whole else 60
        right.hist(values, bins=bins, density=True, color="#3b6fb6")
        right.set(xlabel=name, ylabel="posterior", xlim=(None, None))
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
    return figure
