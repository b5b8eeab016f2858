"""Time and memory of each stage, from features to probabilities, against the number of nodes.

Question: what does a million nodes cost, and how does the cost of each stage grow?

How to run:

    python benchmarks/bench_scale.py [--nodes 10000 100000 1000000]

The data are the mixture of `mixture.py` with ten classes, and 20 labels per class. The graph has 15
neighbours, the spectrum 50 eigenpairs, and inference is expectation propagation. Each size has a
process of its own.

Prints: for each size, seconds of each stage, memory, recall of the neighbours and accuracy; then
the exponent of each stage's time from each size to the next. Constant costs such as compilation
and imports make the first exponents too small.

Results go to ``benchmarks/results/scale.json``.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import graphuq as gq
from mixture import mixture
from peers import RESULTS

STAGES = ("graph", "eigenpairs", "evidence", "posterior")


def one_size(n_nodes):
    """Return the seconds of each stage, memory in GB, recall and accuracy."""
    features, classes = mixture(n_nodes)
    rng = np.random.default_rng(1)
    labelled = np.concatenate(
        [rng.choice(np.flatnonzero(classes == k), 20, replace=False) for k in range(10)]
    )
    times = [time.perf_counter()]
    graph = gq.graphs.knn_graph(features, 15, gq.graphs.SelfTuning(4.0))
    times.append(time.perf_counter())
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=50)
    times.append(time.perf_counter())
    posterior = gq.Posterior(
        spectrum,
        gq.priors.Matern(tau=0.25, alpha=4.0),
        gq.likelihoods.Probit(n_classes=10),
        labelled,
        classes[labelled],
    )
    posterior = gq.maximize_evidence(posterior).posterior
    times.append(time.perf_counter())
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    times.append(time.perf_counter())
    found = dict(zip(STAGES, np.diff(times).tolist(), strict=True))
    found["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    found["features GB"] = features.nbytes / 1e9
    found["recall"] = graph.settings["recall"]
    found["accuracy"] = float((gq.results.label_mean(result).argmax(axis=1) == classes).mean())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--alone", type=int, help="run one size in this process and print JSON")
    parser.add_argument("--output", type=Path, default=RESULTS / "scale.json")
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(one_size(options.alone)))
        return
    rows = {}
    for n_nodes in options.nodes:
        command = [sys.executable, __file__, "--alone", str(n_nodes)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows[n_nodes] = json.loads(lines.splitlines()[-1])
        print(n_nodes, {name: round(value, 3) for name, value in rows[n_nodes].items()})
    if len(rows) > 1:
        for stage in (*STAGES, "GB"):
            values = [row[stage] for row in rows.values()]
            steps = np.diff(np.log(values)) / np.diff(np.log(list(rows)))
            print(f"{stage}: " + ", ".join(f"N^{step:.2f}" for step in steps))
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
