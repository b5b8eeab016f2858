"""The default spectrum beside the field on the whole graph, with no eigenpair left out.

Question: how far are probabilities from 150 eigenpairs, without a tail and with one, from those of
the same Matérn prior on all nodes? What do those cost?

How to run:

    python benchmarks/bench_whole_graph.py [--nodes 4000] [--large 100000]

Graphs have 15 neighbours, from the mixture of `mixture.py` with ten classes, two moons in 100
columns, and a cube of three columns. The two classes are half of the classes, the moons, or the
sign of the first column. Labels are 20 nodes at random, and inference is expectation propagation.

Prints: for each graph and prior, the log evidence by 150 pairs, by 150 pairs with a tail (the mean
of the other eigenvalues), and on all nodes; the mean and the largest difference of probabilities of
the first two from the last; accuracy, and log score (mean log probability) of the other nodes of
all three. Then, for `--large` nodes of the cube, seconds of the processor and memory of 150 pairs
and of the whole field with its stated errors.

Results go to ``benchmarks/results/whole_graph.json``.
"""

import argparse
import json
import resource
import time

import numpy as np

import graphuq as gq
from mixture import mixture
from peers import RESULTS

N_LABELS = 20
PRIORS = [(0.3, 4.0), (0.1, 2.0), (0.3, 1.0)]


def data(n_nodes):
    """Return features and signs of each set."""
    features, classes = mixture(n_nodes)
    moons = gq.datasets.two_moons(n_nodes)
    cube = np.random.default_rng(0).normal(size=(n_nodes, 3))
    return {
        "mixture": (features, np.where(classes < 5, -1.0, 1.0)),
        "two moons": (moons.features, moons.signs(1)),
        "cube": (cube, np.where(cube[:, 0] > 0, 1.0, -1.0)),
    }


def answers(graph, prior, labelled, labels):
    """Return the results of 150 pairs, of the pairs with a tail, and of all nodes."""
    bases = (
        gq.laplacian_spectrum(graph),
        gq.laplacian_spectrum(graph, tail_eigenvalue="mean"),
        gq.Laplacian(graph),
    )
    return [
        gq.infer(
            gq.Posterior(basis, prior, gq.likelihoods.Probit(), labelled, labels),
            gq.inference.ExpectationPropagation(),
        )
        for basis in bases
    ]


def compare(name, features, signs, tau, alpha):
    """Return one row of the table."""
    graph = gq.graphs.knn_graph(features, 15)
    rng = np.random.default_rng(1)
    labelled = np.sort(rng.choice(len(signs), N_LABELS, replace=False))
    found = answers(graph, gq.priors.Matern(tau, alpha), labelled, signs[labelled])
    probability = [(1 + gq.results.label_mean(result)) / 2 for result in found]
    free = np.setdiff1d(np.arange(len(signs)), labelled)
    of_truth = [np.where(signs > 0, p, 1 - p)[free] for p in probability]
    return {
        "graph": name,
        "tau": tau,
        "alpha": alpha,
        "log evidence": [result.log_evidence for result in found],
        "mean difference": [float(abs(p - probability[-1]).mean()) for p in probability[:-1]],
        "largest difference": [float(abs(p - probability[-1]).max()) for p in probability[:-1]],
        "accuracy": [float((p > 0.5).mean()) for p in of_truth],
        "log score": [float(np.log(p).mean()) for p in of_truth],
        "deviation error": found[-1].settings["deviation_error"],
    }


def cost(n_nodes):
    """Return seconds of the processor and memory of a large cube."""
    cube = np.random.default_rng(0).normal(size=(n_nodes, 3))
    labelled = np.sort(np.random.default_rng(1).choice(n_nodes, N_LABELS, replace=False))
    labels = np.where(cube[labelled, 0] > 0, 1.0, -1.0)
    times = [time.process_time()]
    graph = gq.graphs.knn_graph(cube, 15)
    times.append(time.process_time())
    gq.laplacian_spectrum(graph)
    times.append(time.process_time())
    parts = gq.priors.Matern(0.3, 4.0), gq.likelihoods.Probit(), labelled, labels
    posterior = gq.Posterior(gq.Laplacian(graph), *parts)
    times.append(time.process_time())
    gq.infer(posterior, gq.inference.ExpectationPropagation())
    times.append(time.process_time())
    stages = ("graph", "150 pairs", "whole field", "answer of the whole field")
    return {
        "nodes": n_nodes,
        "edge ends": int(graph.weights.nnz),
        "seconds": dict(zip(stages, np.diff(times).tolist(), strict=True)),
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "deviation error": posterior.spectrum.settings["deviation_error"],
        "scale error": posterior.spectrum.settings["scale_error"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=4_000)
    parser.add_argument("--large", type=int, nargs="*", default=[100_000])
    parser.add_argument("--output", default=RESULTS / "whole_graph.json")
    options = parser.parse_args()
    rows = []
    for name, (features, signs) in data(options.nodes).items():
        for tau, alpha in PRIORS:
            row = compare(name, features, signs, tau, alpha)
            rows.append(row)
            shown = {key: row[key] for key in list(row)[3:-1]}
            words = "; ".join(
                f"{key} {', '.join(f'{value:.3f}' for value in values)}"
                for key, values in shown.items()
            )
            print(f"{name}, tau {tau}, alpha {alpha}: {words}", flush=True)
    costs = [cost(n_nodes) for n_nodes in options.large]
    for row in costs:
        print(json.dumps(row), flush=True)
    RESULTS.mkdir(exist_ok=True)
    with open(options.output, "w") as file:
        json.dump({"rows": rows, "costs": costs}, file, indent=1)


if __name__ == "__main__":
    main()
