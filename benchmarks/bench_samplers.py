"""Effective samples per second of pCN, elliptical slice sampling and Hamiltonian Monte Carlo.

Question: how many effective samples per second does each sampler give, of the slowest of 51
functionals (u at 50 nodes, and the log likelihood)? The posterior is that of MNIST (4, 9) with
probit: 4,000 nodes, 160 labels, 300 eigenpairs, γ = 0.1. Each sampler runs with and without a
reference, the Gaussian of expectation propagation.

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_samplers.py

Each sampler has eight chains. Times include warm-up and compilation, and exclude the fit of
expectation propagation.

Prints: for each sampler, with and without a tail, in both precisions: R-hat, effective samples,
seconds, and effective samples per second.

Results go to ``benchmarks/results/samplers.json``.
"""

import json
import os
import warnings
from pathlib import Path

import numpy as np

import graphuq as gq

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GRAPHUQ_DATA", ROOT.parent / "shared" / "data"))
EP = gq.inference.ExpectationPropagation()
LONG = {"n_chains": 8, "n_samples": 2000, "thin": 50, "n_warmup": 5000}
MIDDLE = {"n_chains": 8, "n_samples": 2000, "thin": 10, "n_warmup": 2000}
SHORT = {"n_chains": 8, "n_samples": 2000, "thin": 1, "n_warmup": 500}
METHODS = {
    "pCN": (gq.inference.PCN(), LONG),
    "pCN about EP": (gq.inference.PCN(reference=EP, target_acceptance=0.2), LONG),
    "elliptical slice": (gq.inference.EllipticalSlice(), MIDDLE),
    "elliptical slice about EP": (gq.inference.EllipticalSlice(reference=EP), MIDDLE),
    "Hamiltonian": (gq.inference.Hamiltonian(), SHORT),
    "Hamiltonian about EP": (gq.inference.Hamiltonian(reference=EP), SHORT),
}


def main():
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    data = gq.datasets.load_mnist((4, 9), 2000, n_components=50, folder=DATA)
    truth = data.signs(4)
    graph = gq.graphs.knn_graph(data.features, n_neighbors=20)
    labelled = np.random.default_rng(0).choice(len(truth), 160, replace=False)
    rows = []
    print(f"{'method':25} {'form':9} {'precision':9} {'R-hat':>7} {'ESS':>6} {'s':>6} {'ESS/s':>7}")
    for tail in (False, True):
        posterior = gq.Posterior(
            gq.laplacian_spectrum(graph, n_eigenpairs=300, tail_eigenvalue=tail),
            gq.priors.InverseLaplacian(),
            gq.likelihoods.Probit(0.1),
            labelled,
            truth[labelled],
        )
        for precision in ("float32", "float64"):
            for name, (method, options) in METHODS.items():
                result = gq.infer(posterior, method, precision=precision, **options)
                found = result.diagnostics
                row = {
                    "method": name,
                    "form": "tail" if tail else "projected",
                    "precision": precision,
                    "rhat": found.rhat,
                    "ess": found.ess_bulk,
                    "seconds": found.seconds,
                }
                rows.append(row)
                print(
                    f"{name:25} {row['form']:9} {precision:9} {found.rhat:7.4f} "
                    f"{found.ess_bulk:6.0f} {found.seconds:6.1f} "
                    f"{found.ess_bulk / found.seconds:7.0f}",
                    flush=True,
                )
    output = ROOT / "benchmarks" / "results" / "samplers.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
