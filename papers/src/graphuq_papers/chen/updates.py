"""Section 3: centred and non-centred updates, and separate and block updates."""

from collections.abc import Sequence

import numpy as np

from graphuq.results import convergence_of
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.chen.algorithm import Walk, walk
from graphuq_papers.claims import Claim, Finding, Row, cell, finding
from graphuq_papers.problems import moons, share

FORMS = {  # centred, block
    "non-centred, separate (Algorithm 2)": (False, False),
    "centred, separate": (True, False),
    "non-centred, block": (False, True),
}
NOISES = (0.1, 1.0)  # γ: labels that determine the field, and labels that say little
N_CHAINS, N_MODES, BETA, START = 4, 50, 0.1, (2.0, 10.0)
STEP_SIZES = ((0.1, 3.0), (1.0, 10.0), (3.0, 30.0))  # of τ and α: the best of these is reported
ESS = "effective draws of {} in 1,000 steps"  # columns


def _ratio(rows: Sequence[Row], form: str) -> list[float]:
    """Return how many times as many effective draws of τ Algorithm 2 has, for each γ."""
    column = ESS.format("τ")
    return [
        cell(rows, column, {"γ": gamma, "form": next(iter(FORMS))})
        / cell(rows, column, {"γ": gamma, "form": form})
        for gamma in NOISES
    ]


def _better_than(form: str) -> Claim:
    """Return the claim that Algorithm 2 mixes better than another form."""
    words = "the centred form" if "non" not in form else "moving all in one block"

    def judge(rows: Sequence[Row]) -> Finding:
        ratios = _ratio(rows, form)
        by_noise = ", ".join(f"{r:.1f} (γ = {g})" for r, g in zip(ratios, NOISES, strict=True))
        return finding(min(ratios) > 1, f"times as many effective draws of τ: {by_noise}")

    return Claim(f"Algorithm 2 mixes better than {words}.", judge)


@experiment(*map(_better_than, list(FORMS)[1:]))
def updates(context: Context) -> Outcome:
    """Centred and non-centred, separate and block updates of model C: two moons, σ = 0.06."""
    problem = moons(context, 0.06, 0)
    n_steps = context.pick(10_000, 50_000)
    labelled = share(problem.truth, 0.03, context.seed)
    rows: list[Row] = []
    for gamma in NOISES:
        for form, (centred, block) in FORMS.items():
            tried = []
            for step_sizes in STEP_SIZES:
                chains = [
                    walk(
                        problem, labelled, gamma, N_MODES, n_steps, beta=BETA, start=START,
                        seed=chain, centred=centred, block=block, step_sizes=step_sizes,
                    )
                    for chain in range(N_CHAINS)
                ]  # fmt: skip
                tried.append({"step sizes of τ, α": str(step_sizes), **_mixing(chains)})
            best = max(tried, key=lambda row: row[ESS.format("τ")])
            rows.append({"γ": gamma, "form": form, **best})
    words = "; ".join(
        f"γ = {row['γ']}, {row['form']}: {row[ESS.format('τ')]:.2f} (R-hat {row['R-hat']:.2f})"
        for row in rows
    )
    return Outcome(
        rows,
        f"Effective draws of τ in 1,000 steps, {N_CHAINS} chains of {n_steps:,} steps each from "
        f"τ = {START[0]:g}, without the first fifth, with the best of {len(STEP_SIZES)} step sizes "
        f"of each form: {words}.",
    )


def _mixing(chains: list[Walk]) -> Row:
    """Return effective draws of τ and α, the largest R-hat and the acceptance of the field."""
    n_steps = len(chains[0].tau)
    kept = slice(n_steps // 5, None)
    table = convergence_of(
        {
            "τ": np.stack([chain.tau[kept] for chain in chains]),
            "α": np.stack([chain.alpha[kept] for chain in chains]),
        }
    )
    n_kept = len(chains) * (n_steps - n_steps // 5) / 1000
    return {
        **{ESS.format(name): found["ess_bulk"] / n_kept for name, found in table.items()},
        "R-hat": max(found["rhat"] for found in table.values()),
        "acceptance of ξ": float(np.mean([chain.accepted.mean() for chain in chains])),
    }
