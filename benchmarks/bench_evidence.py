"""Log evidence of expectation propagation beside importance sampling, for twelve priors.

Question: how far is the log evidence of expectation propagation from its true value, and does it
rank priors correctly? `maximize_evidence` compares priors by it.

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_evidence.py [--draws 40000]

The data are MNIST (4, 9): 4,000 nodes, 160 labels, 300 eigenpairs, probit with γ = 0.1. Priors are
Matérn, with τ from 0.1 to 0.5 and α from 2 to 6.

Prints: one line for each prior. The columns are τ, α, the log evidence of expectation propagation,
that of importance sampling, its standard error, and the difference. Then the range of differences,
and the largest gap in log evidence between two priors that are ranked in the wrong order.

Results go to ``benchmarks/results/evidence.json``.
"""

import argparse
import itertools
import json
import warnings

import numpy as np

import graphuq as gq
from peers import DATA, RESULTS

TAUS, ALPHAS = (0.1, 0.25, 0.5), (2.0, 3.0, 4.0, 6.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=40_000, help="draws of importance sampling")
    options = parser.parse_args()
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    data = gq.datasets.load_mnist((4, 9), 2000, n_components=50, folder=DATA)
    truth = data.signs(4)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(data.features, 20), n_eigenpairs=300)
    labelled = np.random.default_rng(0).choice(len(truth), 160, replace=False)
    rows = []
    print(f"{'τ':>5} {'α':>4} {'EP':>9} {'sampled':>9} {'± error':>8} {'difference':>10}")
    for tau, alpha in itertools.product(TAUS, ALPHAS):
        prior, likelihood = gq.priors.Matern(tau=tau, alpha=alpha), gq.likelihoods.Probit(0.1)
        posterior = gq.Posterior(spectrum, prior, likelihood, labelled, truth[labelled])
        found = gq.estimate_evidence(posterior, n_draws=options.draws)
        row = {
            "tau": tau,
            "alpha": alpha,
            "expectation propagation": float(found.expectation_propagation),
            "importance sampling": float(found.log_evidence),
            "standard error": float(found.std_error),
            "difference": float(found.expectation_propagation - found.log_evidence),
        }
        rows.append(row)
        print(
            f"{tau:5} {alpha:4} {row['expectation propagation']:9.3f} "
            f"{row['importance sampling']:9.3f} {row['standard error']:8.3f} "
            f"{row['difference']:10.3f}",
            flush=True,
        )
    differences = [row["difference"] for row in rows]
    fast = np.array([row["expectation propagation"] for row in rows])
    true = np.array([row["importance sampling"] for row in rows])
    gaps = np.abs(np.subtract.outer(true, true))
    swapped = np.sign(np.subtract.outer(fast, fast)) != np.sign(np.subtract.outer(true, true))
    print(
        f"difference {min(differences):.2f} to {max(differences):.2f}, for log evidence from "
        f"{true.min():.0f} to {true.max():.0f}; largest gap of two priors in the wrong order "
        f"{gaps[swapped].max(initial=0.0):.2f}"
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "evidence.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
