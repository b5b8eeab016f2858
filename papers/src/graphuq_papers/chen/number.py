"""Model F with the number of classes learnt, which the paper describes and leaves open."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from matplotlib.figure import Figure

from graphuq import DiscreteUniform
from graphuq.likelihoods import LevelSet
from graphuq.plots import class_colors
from graphuq.priors import Matern
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.chen.setup import N_MODES, learn
from graphuq_papers.claims import Claim, Finding, Row, finding, listed
from graphuq_papers.problems import digits, rhat, share

CASES = [((1, 4, 9), (1, 4, 9)), ((1, 4, 9), (1, 4)), ((4, 9), (4, 9))]  # digits, labelled ones
SHARES, MOST, GAMMA = (0.02, 0.1), 6, 0.3
PRIOR = Matern(tau=1.0, alpha=3.0, truncation=N_MODES)


def _number(rows: Sequence[Row]) -> Finding:
    """Judge by the digits that are there and have no label: their class must be missed."""
    hidden = [row for row in rows if row["digits"] != row["labelled digits"]]
    found = [cast(float, row["P(K = digits)"]) for row in hidden]
    words = f"with a digit that has no label, P(K = 3) is {listed(found, '.3f')}"
    return finding(min(found) > 0.5, words, rhat=max(cast(float, row["R-hat"]) for row in rows))


@experiment(Claim("Labels and graph tell the number of classes.", _number))
def number(context: Context) -> Outcome:
    """Posterior of the number of classes K, from the labelled ones to 6: MNIST, γ = 0.3."""
    rows: list[Row] = []
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    panels = figure.subplots(1, len(CASES), sharey=True)
    color = class_colors(len(SHARES))
    for axes, (there, seen) in zip(panels, CASES, strict=True):
        problem = digits(context, there, context.pick(200, 1000), N_MODES)
        for place, fraction in enumerate(SHARES):
            labelled = share(problem.truth, fraction, context.seed)
            known = np.isin(np.array(there)[problem.truth[labelled].astype(int)], seen)
            likelihood = LevelSet(GAMMA, DiscreteUniform(len(seen), MOST))
            result = learn(
                context, problem.posterior(likelihood, labelled[known], PRIOR), context.seed
            )
            values = np.arange(len(seen), MOST + 1)
            draws = result.hyperparameters["n_classes"]
            shares = (draws[..., None] == values).mean(axis=(0, 1))
            unseen = result.probabilities[:, len(seen) :].sum(axis=1)
            hidden = ~np.isin(np.array(there)[problem.truth.astype(int)], seen)
            rows.append(
                {
                    "digits": "".join(map(str, there)),
                    "labelled digits": "".join(map(str, seen)),
                    "labels": int(known.sum()),
                    "P(K = labelled)": float(shares[0]),
                    "P(K = digits)": float(shares[values == len(there)][0]),
                    "P(unseen class), known digits": float(unseen[~hidden].mean()),
                    "P(unseen class), others": float(unseen[hidden].mean()) if hidden.any() else "",
                    "R-hat": rhat(result),
                }
            )
            width = 0.8 / len(SHARES)
            at = values + (place - (len(SHARES) - 1) / 2) * width
            axes.bar(at, shares, width, color=color(place), label=f"{known.sum()} labels")
        axes.axvline(len(there), color="0.5", linestyle=":", linewidth=1)
        axes.set(
            xlabel="number of classes K",
            title=f"digits {listed(there, 'd')}\nlabels of {listed(seen, 'd')}",
            xticks=range(2, MOST + 1),
            ylim=(0, 1.05),
        )
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("posterior probability (dotted: truth)")
    words = "; ".join(
        f"digits {row['digits']}, {row['labels']} labels of {row['labelled digits']}: "
        f"{row['P(K = labelled)']:.3f}"
        for row in rows
    )
    return Outcome(
        rows,
        f"Posterior probability that there are only the labelled classes — {words}. The prior is "
        f"uniform up to {MOST}. Each further class would have to lose at every label, so the "
        "answer is the number of labelled classes, whether or not the data hold another one.",
        figure,
    )
