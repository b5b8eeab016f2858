"""pCN and Hamiltonian Monte Carlo, with and without a reference: effective samples a second.

Question: on the probit posterior of MNIST (4, 9), 4,000 nodes, 160 labels, 300 eigenpairs, γ = 0.1,
how many effective samples of the slowest of 51 functionals (u at 50 nodes, and the log likelihood)
does a second buy, warm-up and compilation included? Eight chains.

    python benchmarks/bench_samplers.py
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
SHORT = {"n_chains": 8, "n_samples": 2000, "thin": 1, "n_warmup": 500}
METHODS = {
    "pCN": (gq.inference.PCN(), LONG),
    "pCN about EP": (gq.inference.PCN(reference=EP, target_acceptance=0.2), LONG),
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
    print(f"{'method':22} {'form':9} {'precision':9} {'R-hat':>7} {'ESS':>6} {'s':>6} {'ESS/s':>7}")
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
                    f"{name:22} {row['form']:9} {precision:9} {found.rhat:7.4f} "
                    f"{found.ess_bulk:6.0f} {found.seconds:6.1f} "
                    f"{found.ess_bulk / found.seconds:7.0f}",
                    flush=True,
                )
    output = ROOT / "benchmarks" / "results" / "samplers.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
