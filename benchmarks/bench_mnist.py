"""MNIST (4, 9), 4,000 images, 160 labels: accuracy and label variance of converged chains.

Question: what are mean label variance and accuracy if R-hat < 1.01, and how many seconds does this
take? Table 1 of Bertozzi et al. 2018 has variances of 0.1485 (probit) and 0.1280 (level set).

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_mnist.py [--draws 5]

Prints: for each draw of labels and likelihood, accuracy, mean label variance, R-hat, effective
samples and seconds.

Results go to ``benchmarks/results/mnist.json``.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

import graphuq as gq

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GRAPHUQ_DATA", ROOT.parent / "shared" / "data"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--output", default=ROOT / "benchmarks" / "results" / "mnist.json")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    data = gq.datasets.load_mnist((4, 9), 2000, n_components=50, folder=DATA)
    truth = data.signs(4)
    began = time.perf_counter()
    graph = gq.graphs.knn_graph(data.features, n_neighbors=20)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=300)
    print(f"{graph}, {spectrum}: {time.perf_counter() - began:.1f} s")
    rows = []
    print(
        f"{'draw':>4} {'likelihood':10} {'accuracy':>8} {'variance':>8} {'R-hat':>7} {'ESS':>6} "
        f"{'seconds':>7}"
    )
    for seed in range(options.draws):
        labelled = np.random.default_rng(seed).choice(len(truth), 160, replace=False)
        for name, likelihood in (
            ("probit", gq.likelihoods.Probit(0.1)),
            ("level-set", gq.likelihoods.LevelSet(0.1)),
        ):
            posterior = gq.Posterior(
                spectrum, gq.priors.InverseLaplacian(), likelihood, labelled, truth[labelled]
            )
            began = time.perf_counter()
            result = gq.infer(
                posterior,
                gq.inference.PCN(),
                n_samples=4000,
                n_chains=8,
                n_warmup=10_000,
                thin=400 if name == "level-set" else 100,
                stop=gq.Converged(),
                rng=seed,
                precision="float32",
            )
            row = {
                "draw": seed,
                "likelihood": name,
                "accuracy": gq.scores.accuracy(gq.results.label_mean(result), truth, labelled),
                "mean_label_variance": gq.results.mean_label_variance(result),
                "rhat": result.diagnostics.rhat,
                "ess": result.diagnostics.ess_bulk,
                "seconds": time.perf_counter() - began,
            }
            rows.append(row)
            print(
                f"{seed:4} {name:10} {row['accuracy']:8.4f} {row['mean_label_variance']:8.4f} "
                f"{row['rhat']:7.4f} {row['ess']:6.0f} {row['seconds']:7.1f} s",
                flush=True,
            )
    Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    Path(options.output).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
