"""Random series on a path: effect of the prior of the scale c.

Question: do the improper prior Gamma(0, 0) of Hartog and van Zanten, the default Gamma(1, 0.001)
and others give the same k, c and intervals?

How to run:

    python benchmarks/bench_series_prior.py [--rates 0.1 1]

The data are those of the paper's §5.1: a path of 500 nodes with 400 labels. The sampler is the
default, with 16 chains until R-hat < 1.01.

Prints: one line for each ρ and prior of c. The columns are the medians of k and c, mean width and
coverage of the 95 % intervals of the soft labels, and R-hat.

Results go to ``benchmarks/results/series_prior.json``.
"""

import argparse
import json
import warnings

import numpy as np

import graphuq as gq
from graphuq_papers.base import Context
from graphuq_papers.hartog.setup import converged, improper, series
from graphuq_papers.hartog.simulated import path
from graphuq_papers.problems import rhat
from peers import RESULTS

PRIORS = {
    "Gamma(0, 0)": improper,
    "Gamma(0.1, 0.001)": lambda: gq.Gamma(0.1, 0.001),
    "Gamma(1, 0.001)": lambda: gq.Gamma(1.0, 0.001),
    "Gamma(1, 1)": lambda: gq.Gamma(1.0, 1.0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1, 1.0], help="values of ρ")
    options = parser.parse_args()
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    context = Context(quick=True)
    data = path(context)
    rows = []
    print(f"{'ρ':>5} {'prior of c':18} {'k':>5} {'c':>8} {'width':>6} {'coverage':>8} {'R-hat':>7}")
    for rate in options.rates:
        for name, prior in PRIORS.items():
            labels = data.labels[data.labelled]
            posterior = series(data.spectrum, data.labelled, labels, rate, prior())
            result = converged(context, posterior)
            low, high = gq.results.soft_label_interval(result, 0.95).T
            row = {
                "rate": rate,
                "prior": name,
                "median k": float(np.median(result.hyperparameters["truncation"])),
                "median c": float(np.median(result.hyperparameters["scale"])),
                "width": float((high - low).mean()),
                "coverage": float(((low <= data.soft) & (data.soft <= high)).mean()),
                "rhat": rhat(result),
            }
            rows.append(row)
            print(
                f"{rate:5} {name:18} {row['median k']:5.0f} {row['median c']:8.2f} "
                f"{row['width']:6.3f} {row['coverage']:8.3f} {row['rhat']:7.3f}",
                flush=True,
            )
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "series_prior.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
