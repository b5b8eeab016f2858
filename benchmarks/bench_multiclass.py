"""Multiclass posteriors: seconds of each sampler to a Monte-Carlo error of 0.01.

Question: how long does each sampler take until the Monte-Carlo error of every class probability is
at most 0.01? There are 1, 5 or 20 labels for each of ten digits.

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_multiclass.py [--labels 1 5 20] [--samples 1000]

The data are 4,000 digits of MNIST: 50 principal components, 15 neighbours, 150 eigenpairs, γ = 0.1.
`CollapsedGibbs` samples a probit, `Hamiltonian` a softmax or a probit, and `ExactHamiltonian` a
probit together with its noise. Each run has a fixed number of draws. Its processor seconds are
scaled by the square of the error.

Prints: one line for each number of labels and sampler. The columns are seconds of the run, the
largest error, R-hat, and scaled seconds. With R-hat above 1.01 the true time is longer.

Results go to ``benchmarks/results/multiclass.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np

import graphuq as gq
from peers import DATA, RESULTS

EP = gq.inference.ExpectationPropagation()
SOFTMAX, PROBIT = gq.likelihoods.Softmax(0.1, n_classes=10), gq.likelihoods.Probit(0.1, 10)
METHODS = {
    "collapsed Gibbs": (gq.inference.CollapsedGibbs(), PROBIT),
    "Hamiltonian about EP, probit": (gq.inference.Hamiltonian(reference=EP), PROBIT),
    "Hamiltonian about EP": (gq.inference.Hamiltonian(reference=EP), SOFTMAX),
    "Hamiltonian": (gq.inference.Hamiltonian(), SOFTMAX),
    "exact Hamiltonian": (gq.inference.ExactHamiltonian(), PROBIT),
}
TARGET = 0.01  # Monte-Carlo error of every class probability


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[1, 5, 20], help="per class")
    parser.add_argument("--samples", type=int, default=1_000, help="draws per chain")
    options = parser.parse_args()
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    data = gq.datasets.load_mnist(None, 400, n_components=50, folder=DATA)
    truth = data.codes()
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(data.features, 15), n_eigenpairs=150)
    prior = gq.priors.Matern(tau=0.25, alpha=4.0)
    rows = []
    print(f"{'labels':>6} {'sampler':28} {'seconds':>8} {'error':>7} {'R-hat':>7} {'scaled':>8}")
    for n_labels in options.labels:
        rng = np.random.default_rng(n_labels)
        labelled = np.concatenate(
            [rng.choice(np.flatnonzero(truth == k), n_labels, replace=False) for k in range(10)]
        )
        for name, (sampler, likelihood) in METHODS.items():
            posterior = gq.Posterior(spectrum, prior, likelihood, labelled, truth[labelled])
            began = time.process_time()
            result = gq.infer(
                posterior, sampler, n_samples=options.samples, n_chains=8, precision="float32"
            )
            seconds = time.process_time() - began
            error = result.diagnostics.label_mcse
            row = {
                "labels per class": n_labels,
                "sampler": name,
                "seconds": seconds,
                "mcse": error,
                "rhat": result.diagnostics.rhat,
                "seconds to 0.01": seconds * (error / TARGET) ** 2,
            }
            rows.append(row)
            print(
                f"{n_labels:6} {name:28} {seconds:8.1f} {error:7.4f} {row['rhat']:7.3f} "
                f"{row['seconds to 0.01']:8.1f}",
                flush=True,
            )
            RESULTS.mkdir(parents=True, exist_ok=True)
            (RESULTS / "multiclass.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
