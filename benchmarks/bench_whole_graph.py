"""The default spectrum beside the field on the whole graph, with no eigenpair left out.

Question: how far are probabilities from 150 eigenpairs, without a tail and with one, from those of
the same Matérn prior on all nodes? What do those cost?

How to run:

    python benchmarks/bench_whole_graph.py [--nodes 2000] [--large 100000] [--solvers 100000]

Graphs have 15 neighbours, from the mixture of `mixture.py` with ten classes, two moons in 100
columns, and a cube of three columns. The two classes are half of the classes, the moons, or the
sign of the first column. Labels are 20 nodes at random, and inference is expectation propagation.

Prints: for each graph and prior, the log evidence by 150 pairs, by 150 pairs with a tail (the mean
of the other eigenvalues), and on all nodes; the mean and the largest difference of probabilities of
the first two from the last; accuracy, and log score (mean log probability) of the other nodes of
all three. Then, for `--large` nodes of the cube, seconds of the processor and memory of 150 pairs
and of the whole field with its stated errors. For `--solvers` nodes of the mixture, with PyAMG
installed: seconds of the processor for a column of ``(L + τ²)^{−α}`` by a Chebyshev series, by α
solutions with block conjugate gradients, and by α solutions with smoothed aggregation.

Results go to ``benchmarks/results/whole_graph.json``.
"""

import argparse
import json
import resource
import time

import numpy as np
from scipy import sparse

import graphuq as gq
from graphuq.spectrum import Laplacian, Precision
from graphuq.spectrum.laplacian_power import LaplacianPower
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


def solvers(n_nodes, n_columns=16):
    """Yield seconds of a column by three solvers, and how far the second is from the first."""
    import pyamg

    laplacian = Laplacian(gq.graphs.knn_graph(mixture(n_nodes)[0], 15))
    right = np.zeros((n_nodes, n_columns))
    right[np.arange(n_columns), np.arange(n_columns)] = 1.0
    right -= laplacian.project_to_null_space(right)
    for tau in (0.3, 0.1):
        matrix = sparse.diags_array(laplacian.diagonal + tau**2) - laplacian.scaled_weights(float)
        times = [time.process_time()]
        levels = pyamg.smoothed_aggregation_solver(
            sparse.csr_matrix(matrix), B=laplacian.null_profile[:, None]
        )
        times.append(time.process_time())
        levels.solve(right[:, 0], tol=1e-9, accel="cg")
        times.append(time.process_time())
        gradients = Precision(laplacian, tau**2, factorize=False)
        once = gradients.solve(right)
        times.append(time.process_time())
        series = LaplacianPower(laplacian, tau**2, 0.0)(right, 4.0, 1e-13)
        times.append(time.process_time())
        setup, multigrid, conjugate, chebyshev = np.diff(times).tolist()
        again = gradients.solve(gradients.solve(gradients.solve(once)))
        yield {
            "tau": tau,
            "multigrid, setup": setup,
            "multigrid, alpha 4": 4 * multigrid,
            "conjugate gradients, alpha 4": 4 * conjugate / n_columns,
            "Chebyshev series, alpha 4": chebyshev / n_columns,
            "difference": float(abs(again * tau**8 - series).max() / abs(series).max()),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--large", type=int, nargs="*", default=[100_000])
    parser.add_argument("--solvers", type=int, nargs="*", default=[])
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
    compared = [row for n_nodes in options.solvers for row in solvers(n_nodes)]
    for row in compared:
        print(json.dumps(row), flush=True)
    RESULTS.mkdir(exist_ok=True)
    with open(options.output, "w") as file:
        json.dump({"rows": rows, "costs": costs, "solvers": compared}, file, indent=1)


if __name__ == "__main__":
    main()
