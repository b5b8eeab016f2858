"""All ten digits of MNIST, 70,000 nodes: accuracy, calibration, time and memory beside peers.

Question: with 1 to 50 labels per class, how accurate is each method, how well calibrated are its
probabilities, and what does it cost? All methods have the same graph and the same labels.

How to run:

    pip install graphlearning annoy
    python benchmarks/bench_digits.py [--draws 2] [--labels 1 5 20 50]

graphuq is `GraphClassifier()` with all its defaults, given 784 pixels. Its seconds have everything
from the pixels to the probabilities. The graph of the other methods, whose time is printed
separately, is the default one of graphuq. Each run has a process of its own, so that its peak
memory is its own; one small fit before it compiles what is to be compiled. The scores of Laplace
learning and LabelSpreading are taken as probabilities. The scores of Poisson learning go through a
softmax. Its scale minimises the log score against the true classes, which are unknown in practice.
These methods offer no other probabilities.

Prints: one line for each number of labels and method. The columns are accuracy, expected
calibration error, Brier score, log score, seconds, processor seconds and peak memory in GB. Each is
a mean over draws of labels; scores have standard errors. For graphuq a second line has the seconds
of what follows the fit: one new row, ``query(10)``, its ten labels added, the verdict.

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
from peers import DATA, RESULTS

METHODS = ["graphuq", "Laplace learning", "Poisson learning", "LabelSpreading"]


def ours(pixels, truth, labelled):
    """Return the probabilities of the default, and the seconds of what follows the fit."""
    y = np.full(len(truth), -1)
    y[labelled] = truth[labelled]
    classifier = gq.GraphClassifier()
    classifier.fit(pixels, y)
    return classifier.label_distributions_, classifier


def after(classifier, pixels, truth):
    """Return the seconds of the steps that follow a fit, each done once before where it repeats."""
    found = {}

    def timed(name, step):
        began = time.perf_counter()
        result = step()
        found[name] = time.perf_counter() - began
        return result

    classifier.predict_proba(pixels[:1] + 1e-3)
    timed("one row", lambda: classifier.predict_proba(pixels[1:2] + 1e-3))
    classifier.query(10)
    rows = timed("query", lambda: classifier.query(10))
    timed("verdict", lambda: str(classifier.result_))
    timed("ten labels", lambda: classifier.add_labels(rows, truth[rows]))
    return found


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
    truth, given = pickle.loads(Path(path).read_bytes())
    codes, steps, classifier = truth[labelled], {}, None
    if method == "graphuq":
        few = np.arange(0, len(truth), 70)
        ours(given[few], truth[few], np.arange(0, len(few), 10))
    began, processor = time.perf_counter(), time.process_time()
    if method == "graphuq":
        probability, classifier = ours(given, truth, labelled)
    elif method == "Laplace learning":
        probability = laplace(given, labelled, codes)
    elif method == "Poisson learning":
        probability = poisson(given, labelled, codes, truth)
    else:
        probability = spreading(given, labelled, codes)
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    scores = {
        "accuracy": gq.scores.accuracy(probability, truth, labelled),
        "ece": gq.scores.expected_calibration_error(probability, truth, labelled),
        "brier": gq.scores.brier_score(probability, truth, labelled),
        "log": gq.scores.log_score(probability, truth, labelled),
        "seconds": seconds,
        "processor": processor,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    if classifier is not None:
        steps = after(classifier, given, truth)
    return scores, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--labels", type=int, nargs="+", default=[1, 5, 20, 50])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--output", type=Path, default=RESULTS / "digits.json")
    options = parser.parse_args()
    data = gq.datasets.load_mnist(folder=DATA)
    truth, pixels = data.codes(), np.asarray(data.features)
    began = time.perf_counter()
    weights = gq.graphs.SelfTuning(4.0)
    graph = gq.graphs.knn_graph(pixels, 15, weights=weights, n_components="auto")
    times = {"graph": time.perf_counter() - began}
    print(f"graph of the other methods: {times['graph']:.1f} s")
    print(
        "labels per class, method: accuracy, expected calibration error, Brier score, log score, "
        "seconds, processor seconds, GB; ± standard error"
    )
    rows = [times]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, given in (("pixels", pixels), ("graph", graph)):
            files[name] = Path(folder) / f"{name}.pkl"
            files[name].write_bytes(pickle.dumps((truth, given), protocol=5))
        for n_labels in options.labels:
            for method in options.methods:
                found, steps = [], []
                path = files["pixels" if method == "graphuq" else "graph"]
                for draw in range(options.draws):
                    rng = np.random.default_rng([n_labels, draw])
                    labelled = np.concatenate(
                        [
                            rng.choice(np.flatnonzero(truth == k), n_labels, replace=False)
                            for k in range(10)
                        ]
                    )
                    with context.Pool(1) as pool:
                        scores, own = pool.apply(run, (method, path, labelled))
                        found.append(scores)
                        steps.append(own)
                row = {"labels per class": n_labels, "method": method, "draws": len(found)}
                cells = []
                for key in found[0]:
                    values = np.array([one[key] for one in found])
                    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
                    row |= {key: float(values.mean()), f"{key} s.e.": float(error)}
                    cells.append(
                        f"{row[key]:.4f} ±{error:.4f}"
                        if key not in ("seconds", "processor", "GB")
                        else f"{row[key]:.1f}"
                    )
                rows.append(row)
                print(f"{n_labels:3d} {method:22} {'  '.join(cells)}", flush=True)
                if steps[0]:
                    row["steps"] = {k: float(np.mean([s[k] for s in steps])) for k in steps[0]}
                    print("    " + ", ".join(f"{k} {v:.2f} s" for k, v in row["steps"].items()))
                options.output.parent.mkdir(parents=True, exist_ok=True)
                options.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
