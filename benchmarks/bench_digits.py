"""All ten digits of MNIST, 70,000 nodes: accuracy, calibration, time and memory beside peers.

Question: with 1 to 50 labels per class, how accurate is each method, how well calibrated are its
probabilities, and what does it cost? All methods have the same graph and the same labels.

How to run:

    pip install graphlearning annoy
    python benchmarks/bench_digits.py [--draws 3] [--labels 1 5 20 50]

The graph is the default of graphuq: 50 principal components, 15 nearest neighbours, self-tuning
weights with sharpness 4. Every method uses its weights. Each run has a process of its own, so that
its peak memory is its own. The spectrum of graphuq, 150 eigenpairs, is computed once; its time and
that of the graph are printed separately. The scores of Laplace learning and LabelSpreading are
taken as probabilities. The scores of Poisson learning go through a softmax. Its scale minimises the
log score against the true classes, which are unknown in practice. These methods
offer no other probabilities.

Prints: one line for each number of labels and method. The columns are accuracy, expected
calibration error, Brier score, log score, seconds and peak memory in GB. Each is a mean over draws
of labels; scores have standard errors.

Results go to ``benchmarks/results/digits.json``.
"""

import argparse
import json
import multiprocessing
import pickle
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.semi_supervised import LabelSpreading

import graphuq as gq
from graphuq.evidence.maximize import maximize_evidence
from peers import DATA, RESULTS

METHODS = [
    "graphuq, first answer",
    "graphuq, sampled",
    "Laplace learning",
    "Poisson learning",
    "LabelSpreading",
]


def ours(graph, spectrum, labelled, codes, sampled):
    """Return the probabilities of graphuq: hyperparameters by evidence, then chains or EP."""
    likelihood = gq.likelihoods.Probit(0.1, n_classes=10)
    prior = gq.priors.Matern(tau=0.25, alpha=4.0)
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, codes)
    chosen = ["tau", "alpha", "noise_std", "include_constant"]
    posterior = maximize_evidence(posterior, chosen).posterior
    if not sampled:
        return gq.infer(posterior, gq.inference.ExpectationPropagation()).probabilities
    result = gq.infer(
        posterior, n_samples=4000, precision="float32", stop=gq.Converged(label_mcse=0.01)
    )
    print("   ", result.diagnostics.verdict)
    return result.probabilities


def laplace(graph, labelled, codes):
    """Return the scores of GraphLearning's Laplace learning, scaled to sum to one."""
    import graphlearning

    scores = np.clip(graphlearning.ssl.laplace(graph.weights).fit(labelled, codes), 0, None)
    return scores / scores.sum(axis=1, keepdims=True)


def poisson(graph, labelled, codes, truth):
    """Return a softmax of GraphLearning's Poisson learning, its scale fitted to the truth."""
    import graphlearning

    scores = graphlearning.ssl.poisson(graph.weights).fit(labelled, codes)
    scores = scores / np.abs(scores).mean()

    def softmax(t):
        powers = np.exp(np.exp(t) * (scores - scores.max(axis=1, keepdims=True)))
        return powers / powers.sum(axis=1, keepdims=True)

    found = minimize_scalar(
        lambda t: gq.scores.log_score(softmax(t), truth, labelled), bounds=(-5, 5), method="bounded"
    )
    return softmax(found.x)


def spreading(graph, labelled, codes):
    """Return the probabilities of LabelSpreading on these weights, with default settings."""
    y = np.full(graph.n_nodes, -1)
    y[labelled] = codes
    weights = graph.weights.tocsr()
    model = LabelSpreading(kernel=lambda X, Y=None: weights)
    model.fit(np.zeros((graph.n_nodes, 1)), y)
    shares = np.nan_to_num(model.label_distributions_)
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.full_like(shares, 0.1), where=total > 0)


def run(method, path, labelled):
    """Return the scores, seconds and peak memory of one method, which runs in this process."""
    warnings.simplefilter("ignore")
    truth, graph, spectrum = pickle.loads(Path(path).read_bytes())
    codes = truth[labelled]
    began = time.perf_counter()
    if method.startswith("graphuq"):
        probability = ours(graph, spectrum, labelled, codes, method.endswith("sampled"))
    elif method == "Laplace learning":
        probability = laplace(graph, labelled, codes)
    elif method == "Poisson learning":
        probability = poisson(graph, labelled, codes, truth)
    else:
        probability = spreading(graph, labelled, codes)
    seconds = time.perf_counter() - began
    return {
        "accuracy": gq.scores.accuracy(probability, truth, labelled),
        "ece": gq.scores.expected_calibration_error(probability, truth, labelled),
        "brier": gq.scores.brier_score(probability, truth, labelled),
        "log": gq.scores.log_score(probability, truth, labelled),
        "seconds": seconds,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--labels", type=int, nargs="+", default=[1, 5, 20, 50])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--output", type=Path, default=RESULTS / "digits.json")
    options = parser.parse_args()
    began = time.perf_counter()
    data = gq.datasets.load_mnist(n_components=50, folder=DATA)
    truth = data.codes()
    loaded = time.perf_counter()
    graph = gq.graphs.knn_graph(data.features, 15, weights=gq.graphs.SelfTuning(4.0))
    graph_done = time.perf_counter()
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=150)
    solved = time.perf_counter()
    times = {"load": loaded - began, "graph": graph_done - loaded, "spectrum": solved - graph_done}
    print(", ".join(f"{name} {seconds:.1f} s" for name, seconds in times.items()))
    print(
        "labels per class, method: accuracy, expected calibration error, Brier score, log score, "
        "seconds, GB; ± standard error"
    )
    rows = [times]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.pkl"
        path.write_bytes(pickle.dumps((truth, graph, spectrum)))
        for n_labels in options.labels:
            for method in options.methods:
                found = []
                for draw in range(options.draws):
                    rng = np.random.default_rng([n_labels, draw])
                    labelled = np.concatenate(
                        [
                            rng.choice(np.flatnonzero(truth == k), n_labels, replace=False)
                            for k in range(10)
                        ]
                    )
                    with context.Pool(1) as pool:
                        found.append(pool.apply(run, (method, path, labelled)))
                row = {"labels per class": n_labels, "method": method, "draws": len(found)}
                cells = []
                for key in found[0]:
                    values = np.array([one[key] for one in found])
                    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
                    row |= {key: float(values.mean()), f"{key} s.e.": float(error)}
                    cells.append(
                        f"{row[key]:.4f} ±{error:.4f}"
                        if key not in ("seconds", "GB")
                        else f"{row[key]:.1f}"
                    )
                rows.append(row)
                print(f"{n_labels:3d} {method:22} {'  '.join(cells)}", flush=True)
                options.output.parent.mkdir(parents=True, exist_ok=True)
                options.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
