"""Seconds of a default fit, beside label spreading, GraphLearning and an earlier commit.

Question: how long does `GraphClassifier().fit` take, and which part of it?

How to run:

    python benchmarks/bench_fit.py [--before CHECKOUT] [--runs 2] [--only digits cora]

``--before`` is a folder with an earlier commit, such as one made by ``git worktree add``. Its fits
take turns with those of this commit. Every run is a process of its own on one core: a fit that
fills caches, then one that is measured. "clusters" are Gaussian clusters that overlap: rows,
classes, labels. "cora" is the citation graph with its 140 public labels, "components" a made
graph of its size in 438 components, and "triangles" a graph of 1,000 triangles.

Prints: for each case and method the least processor seconds of all runs, accuracy and log score
on the other rows, and the ratio of seconds to those of label spreading. Then the seconds of the
stages of the default fit, and of what other packages need for them: neighbours by scikit-learn,
and as many eigenpairs by SciPy.

Results go to ``benchmarks/results/fit.json``.
"""

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from peers import DATA, RESULTS, ROOT

CASES = [
    "clusters 1000 3 60",
    "clusters 5000 2 100",
    "clusters 5000 10 100",
    "clusters 5000 10 1000",
    "digits",
    "cora",
    "components",
    "triangles",
]
OWN = {"default": {}, "expectation propagation": {"inference": "expectation-propagation"}}
STAGES = {  # file and function: name in the table
    ("classifier/options.py", "build_graph"): "graph",
    ("classifier/options.py", "basis_of"): "eigenpairs",
    ("spectrum/whitened.py", "spectrum"): "whitened graph and eigenpairs",
    ("model_average/likely_components.py", "fits_of"): "components",
    ("model_average/likely_components.py", "likely_components"): "components",
    ("inference/driver.py", "drive"): "draws, and when to stop",
    ("results/summaries/__init__.py", "summarize"): "summaries",
}
SMALLEST = 1e-6  # probability in the log score


def graph_of_edges(edges, n):
    """Return the adjacency matrix of undirected edges."""
    i, j = np.asarray(edges).T
    return sp.csr_array((np.ones(2 * len(i)), (np.r_[i, j], np.r_[j, i])), shape=(n, n))


def components(rng):
    """Return a graph of 2,110 nodes and 437 small components, and its six classes."""
    n, sizes = 2110, rng.choice([1, 2, 3, 4, 5, 7], 437, p=[0.1, 0.45, 0.2, 0.1, 0.1, 0.05])
    classes = rng.integers(6, size=n)
    of_class = [np.flatnonzero(classes == k) for k in range(6)]
    edges = []
    for i in range(1, n):
        alike = of_class[classes[i]][of_class[classes[i]] < i]
        own = len(alike) > 0 and rng.uniform() < 0.75
        edges.append((i, int(rng.choice(alike)) if own else int(rng.integers(i))))
    starts = rng.integers(n, size=1500)
    edges += [(i, int(rng.choice(of_class[classes[i]]))) for i in starts.tolist()]
    edges = {(min(e), max(e)) for e in edges if e[0] != e[1]}
    small = [np.ones((s, s)) - np.eye(s) for s in sizes]
    weights = sp.block_diag([graph_of_edges(sorted(edges), n), *small]).tocsr()
    return weights, np.r_[classes, rng.integers(6, size=weights.shape[0] - n)]


def load(case):
    """Return features, graph (one of them None), classes and labels, -1 for none."""
    rng = np.random.default_rng(0)
    name, *sizes = case.split()
    if name == "cora":
        data = np.load(DATA / "nodes" / "cora.npz")
        classes = data["labels"]
        graph, known = graph_of_edges(data["edges"], len(classes)), data["train"]
        known = np.flatnonzero(known) if known.dtype == bool else known
        y = np.full(len(classes), -1)
        y[known] = classes[known]
        return None, graph, classes, y
    features = graph = None
    if name == "clusters":
        n, n_classes, n_labels = map(int, sizes)
        classes = rng.integers(n_classes, size=n)
        centres = 0.7 * rng.normal(size=(n_classes, 20))
        features = rng.normal(size=(n, 20)) + centres[classes]
    elif name == "digits":
        from sklearn.datasets import load_digits

        features, classes = load_digits(return_X_y=True)
        n_labels = 50
    elif name == "components":
        (graph, classes), n_labels = components(rng), 120
    else:
        graph = sp.block_diag([sp.csr_array(np.ones((3, 3)) - np.eye(3))] * 1000).tocsr()
        classes, n_labels = np.arange(3000) // 3 % 3, 120
    y = np.full(len(classes), -1)
    n_classes = classes.max() + 1
    for k in range(n_classes):
        own = rng.choice(np.flatnonzero(classes == k), n_labels // n_classes, replace=False)
        y[own] = k
    return features, graph, classes, y


def methods(features, graph, y):
    """Return functions that fit and return class probabilities, or None, by name."""
    import graphuq as gq

    def ours(**settings):
        if graph is None:
            return gq.GraphClassifier(**settings).fit(features, y).label_distributions_
        made = gq.graphs.from_adjacency(graph)
        return gq.GraphClassifier("precomputed", **settings).fit(made, y).label_distributions_

    def spreading():
        from sklearn.semi_supervised import LabelSpreading

        if graph is None:
            model = LabelSpreading(kernel="knn", n_neighbors=15)
            return model.fit(features, y).label_distributions_
        dense = graph.toarray()
        model = LabelSpreading(kernel=lambda a, b: dense)
        return model.fit(np.zeros((len(y), 1)), y).label_distributions_

    def learning(method):
        import graphlearning

        own, known = graph, np.flatnonzero(y >= 0)
        if graph is None:
            own = graphlearning.weightmatrix.knn(features, 15)
        scores = getattr(graphlearning.ssl, method)(own).fit(known, y[known])
        return np.maximum(scores, 0)

    found = {name: lambda settings=settings: ours(**settings) for name, settings in OWN.items()}
    found["label spreading"] = spreading
    try:
        import graphlearning  # noqa: F401
    except ImportError:
        print("GraphLearning is not installed: pip install graphlearning annoy", file=sys.stderr)
        return found
    return found | {f"GraphLearning, {m}": lambda m=m: learning(m) for m in ("laplace", "poisson")}


def one_run(case, name):
    """Print the seconds of one method in this process, and how good its answer is."""
    warnings.simplefilter("ignore")
    features, graph, classes, y = load(case)
    fit = methods(features, graph, y)[name]
    fit()
    wall, began = time.perf_counter(), time.process_time()
    p = np.nan_to_num(fit())
    found = {"seconds": time.process_time() - began, "wall": time.perf_counter() - wall}
    p = np.maximum(p / np.maximum(p.sum(axis=1, keepdims=True), SMALLEST), SMALLEST)
    other = np.flatnonzero(y < 0)
    found["accuracy"] = float((p[other].argmax(axis=1) == classes[other]).mean())
    found["log score"] = float(-np.log(p[other, classes[other]]).mean())
    print(json.dumps(found))


def stages(case):
    """Print the seconds of the stages of the default fit, and of others' parts, in this process."""
    warnings.simplefilter("ignore")
    features, graph, _, y = load(case)
    fit = methods(features, graph, y)["default"]
    fit()
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    fit()
    profile.disable()
    stats = pstats.Stats(profile)
    found = dict.fromkeys(dict.fromkeys(STAGES.values()), 0.0)
    for (file, _, function), values in stats.stats.items():
        for (end, name), stage in STAGES.items():
            if file.endswith(end) and function == name:
                found[stage] = max(found[stage], values[3])
    total = stats.total_tt
    found = {"whole fit": total} | found
    found["all else"] = total - sum(list(found.values())[1:])
    if graph is None:
        found |= floors(features)
    print(json.dumps(found))


def floors(features):
    """Return the seconds of the same neighbours and eigenpairs by other packages."""
    from scipy.sparse.linalg import eigsh
    from sklearn.neighbors import NearestNeighbors

    import graphuq as gq

    began = time.process_time()
    NearestNeighbors(n_neighbors=15, algorithm="brute").fit(features).kneighbors()
    neighbours = time.process_time() - began
    graph = gq.graphs.knn_graph(features, n_neighbors=15)
    weights = graph.weights
    scale = 1 / np.sqrt(np.asarray(weights.sum(axis=1)).ravel())
    normalised = sp.diags_array(scale) @ weights @ sp.diags_array(scale)
    n_pairs = gq.laplacian_spectrum(graph).n_eigenpairs  # as many as the default fit has
    began = time.process_time()
    eigsh(normalised, k=n_pairs, which="LA", tol=1e-4)
    return {
        "scikit-learn: neighbours once": neighbours,
        "SciPy: eigenpairs once": time.process_time() - began,
    }


def child(arguments, source):
    """Return what a run in a process of its own prints."""
    one = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
    path = os.pathsep.join([str(source / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=os.environ | one | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stderr[-400:], file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def least(runs):
    """Return the run with the fewest seconds, or None if any failed."""
    return None if None in runs else min(runs, key=lambda run: run["seconds"])


def of_case(case, before, n_runs):
    """Return the runs of all methods by name, printing each."""
    features, graph, _, y = load(case)
    names = [(name, ROOT) for name in methods(features, graph, y)]
    if before is not None:
        names += [(name, before) for name in OWN]
    runs = {key: [] for key in names}
    for _ in range(n_runs):
        for name, source in names:
            runs[name, source].append(child(["--case", case, "--method", name], source))
    found = {}
    for (name, source), own in runs.items():
        found[name if source == ROOT else f"{name}, before"] = least(own)
    base = found["label spreading"]["seconds"]
    print(f"\n{case}\n{'':32} seconds  ratio  accuracy  log score")
    for name, run in found.items():
        if run is None:
            print(f"{name:32} failed")
            continue
        ratio = run["seconds"] / base
        print(
            f"{name:32} {run['seconds']:7.2f} {ratio:6.1f} {run['accuracy']:9.4f} "
            f"{run['log score']:10.4f}"
        )
    return found


def main():
    """Compare all cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="folder of an earlier commit")
    parser.add_argument("--runs", type=int, default=2, help="runs of each method")
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the cases to run")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--method", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case and options.method:
        return one_run(options.case, options.method)
    if options.case:
        return stages(options.case)
    chosen = [case for case in CASES if case.startswith(tuple(options.only) or "")]
    results = {}
    for case in chosen:
        results[case] = of_case(case, options.before, options.runs)
        found = results[case]["stages"] = child(["--case", case], ROOT)
        for name, seconds in (found or {}).items():
            print(f"  {name:30} {seconds:7.2f}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "fit.json").write_text(json.dumps(results, indent=1))
    return None


if __name__ == "__main__":
    main()
