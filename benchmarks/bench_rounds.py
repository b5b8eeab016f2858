"""Learnt hyperparameters: rounds of their updates for each step of the field.

Question: how many draws per chain, and how many seconds, does it take until R-hat < 1.01? Each step
of the field is followed by 1, 5, 10 or 12 rounds of updates of τ, α and M; the default is 10.

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_rounds.py [--rounds 1 5 10 12] [--seeds 1]

The data are MNIST (4, 9): 4,000 nodes, 40 labels, 50 eigenpairs, probit with γ = 0.1. The sampler
is `MetropolisWithinGibbs(Hamiltonian(), joint=True)`, with hyperpriors of `bench_hierarchy.py`.

Prints: one line for each number of rounds and seed. The columns are draws per chain, seconds, the
largest R-hat, and whether the chains converged within 6,000 draws.

Results go to ``benchmarks/results/rounds.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np

import graphuq as gq
from bench_hierarchy import MODELS
from graphuq.inference import Hamiltonian, MetropolisWithinGibbs
from peers import DATA, RESULTS

MAX_DRAWS = 6_000  # per chain


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 5, 10, 12])
    parser.add_argument("--seeds", type=int, default=1, help="runs for each number of rounds")
    options = parser.parse_args()
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    data = gq.datasets.load_mnist((4, 9), 2000, n_components=50, folder=DATA)
    truth = data.signs(4)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(data.features, 15), n_eigenpairs=50)
    labelled = np.random.default_rng(0).choice(len(truth), 40, replace=False)
    prior, likelihood = MODELS["C: τ, α, M"], gq.likelihoods.Probit(0.1)
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, truth[labelled])
    rows = []
    print(f"{'rounds':>6} {'seed':>4} {'draws':>6} {'seconds':>8} {'R-hat':>7} {'converged':>9}")
    for repeats in options.rounds:
        for seed in range(options.seeds):
            sampler = MetropolisWithinGibbs(Hamiltonian(), joint=True, repeats=repeats)
            began = time.perf_counter()
            result = gq.infer(
                posterior, sampler, n_samples=MAX_DRAWS, rng=seed, stop=gq.Converged()
            )
            row = {
                "rounds": repeats,
                "seed": seed,
                "draws": result.answer.n_samples,
                "seconds": time.perf_counter() - began,
                "rhat": result.diagnostics.rhat,
                "converged": bool(result.diagnostics.converged),
            }
            rows.append(row)
            print(
                f"{repeats:6} {seed:4} {row['draws']:6} {row['seconds']:8.1f} {row['rhat']:7.3f} "
                f"{'yes' if row['converged'] else 'no':>9}",
                flush=True,
            )
            RESULTS.mkdir(parents=True, exist_ok=True)
            (RESULTS / "rounds.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
