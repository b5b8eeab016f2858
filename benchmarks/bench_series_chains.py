"""Random series on a path: does one chain of the paper's sampler find the posterior of k?

Question: with ρ = 0, how much do medians of k differ between chains of Hartog and van Zanten's
Algorithm 1? How far are they from the median of converged chains?

How to run:

    python benchmarks/bench_series_chains.py [--chains 4] [--draws 2000]

The data are those of the paper's §5.1: a path of 500 nodes with 400 labels, and c ~ Gamma(0, 0).
Chains have a warm-up of 500 steps. They differ in their seeds, and so in their starts.

Prints: the median of k of each chain; then that of 16 chains of the default sampler with
c ~ Gamma(1, 0.001), with its 5 and 95 % quantiles and R-hat.

Results go to ``benchmarks/results/series_chains.json``.
"""

import argparse
import json

import numpy as np

from graphuq_papers.base import Context
from graphuq_papers.hartog.setup import PAPERS, PROPER, converged, improper, run, series
from graphuq_papers.hartog.simulated import path
from graphuq_papers.problems import rhat
from peers import RESULTS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chains", type=int, default=4, help="chains of the paper's sampler")
    parser.add_argument("--draws", type=int, default=2_000, help="draws of each of them")
    options = parser.parse_args()
    context = Context(quick=True)
    data = path(context)
    parts = data.spectrum, data.labelled, data.labels[data.labelled], 0.0
    medians = []
    for seed in range(options.chains):
        posterior = series(*parts, improper())
        result = run(posterior, PAPERS, n_samples=options.draws, n_chains=1, n_warmup=500, rng=seed)
        medians.append(float(np.median(result.hyperparameters["truncation"])))
        print(f"chain {seed} of the paper's sampler: median k {medians[-1]:.0f}", flush=True)
    result = converged(context, series(*parts, PROPER))
    low, middle, high = np.quantile(result.hyperparameters["truncation"], (0.05, 0.5, 0.95))
    print(
        f"default sampler: median k {middle:.0f}, 90 % interval {low:.0f} to {high:.0f}, R-hat "
        f"{rhat(result):.3f}"
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = {"paper": medians, "default": [low, middle, high], "rhat": rhat(result)}
    (RESULTS / "series_chains.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
