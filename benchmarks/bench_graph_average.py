"""An average over graphs, weighted by their evidence, beside the graph of largest evidence.

Question: Zhu, Lafferty & Ghahramani (2003, §3) name the average over the graph's own
hyperparameters as what a full Bayesian would do. Does it predict better than the best graph?

How to run:

    python benchmarks/bench_graph_average.py [--draws 5]

Each value of a grid (k of nearest neighbours, the radius ε, the length scale α of exp weights, the
cutoff α₂ of tanh weights with steepness 10/α₂) is a model with the same prior probability. Its
weight is its evidence: Laplace's on the paper's six tasks (a third of the rows), expectation
propagation's with hyperparameters of largest evidence on sets of the corpus. Scores are those of
unlabelled rows; draws of labels are paired. docs/archive/evidence_search.md has the table.
"""

import argparse
import warnings

import numpy as np
from scipy.special import softmax

import corpus
import graphuq as gq
from graphuq_papers.base import Context
from graphuq_papers.zhu.tasks import classifier, tasks
from peers import DATA

NEIGHBORS = (2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)
QUANTILES = (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # of distances between nodes
SETS = {"banana": 5, "heart": 5, "wisconsin": 5, "sonar": 5}  # labels a class


def zhu_models(graph, task):
    """Return the classifiers of a grid over the parameter of one of the paper's graphs."""
    if graph == "knn":
        return [classifier(graph, task).set_params(n_neighbors=k) for k in NEIGHBORS]
    at = np.quantile(task.distances[task.distances > 0], QUANTILES)
    if graph == "epsilon":
        return [classifier(graph, task).set_params(graph__radius=float(x)) for x in at]
    if graph == "exp":
        return [classifier(graph, task).set_params(weights__scale=float(x) / 2) for x in at]
    weights = [gq.graphs.TanhWeights(10 / float(x), float(x)) for x in at]
    return [classifier(graph, task).set_params(weights=one) for one in weights]


def scores(models, X, given, truth, unlabelled):
    """Return (accuracy, log score) of the best graph, both averages, and hindsight."""
    logs, found = [], []
    for model in models:
        try:
            fitted = model.fit(X, given)
        except gq.errors.GraphuqError:
            continue
        logs.append(fitted.result_.log_evidence)
        found.append(fitted.result_.probabilities[unlabelled])
    logs, found = np.array(logs), np.array(found)
    columns = np.searchsorted(fitted.classes_, truth[unlabelled])
    weights = softmax(logs)

    def of(p):
        own = np.maximum(p[np.arange(len(columns)), columns], 1e-12)
        return float((p.argmax(axis=1) == columns).mean()), float(-np.log(own).mean())

    every = [of(p) for p in found]
    hindsight = max(a for a, _ in every), min(b for _, b in every)
    averages = [
        np.einsum("m,mnk->nk", w, found) for w in (weights, np.full(len(logs), 1 / len(logs)))
    ]
    n_effective = 1 / (weights**2).sum()
    return [every[int(logs.argmax())], *map(of, averages), hindsight], n_effective


def report(name, rows, effective):
    """Print means over draws, and the paired differences of the weighted average to the best."""
    table = np.array(rows)  # (draws, ways, 2)
    change = table[:, 1] - table[:, 0]
    error = change.std(axis=0, ddof=1) / np.sqrt(len(change))
    means = "  ".join(f"{a:.3f}/{b:.3f}" for a, b in table.mean(axis=0))
    print(
        f"{name:22s} {means}  change {change[:, 0].mean():+.3f} ± {error[0]:.3f}, "
        f"{change[:, 1].mean():+.3f} ± {error[1]:.3f}  graphs {np.mean(effective):.1f}",
        flush=True,
    )


def main():
    """Print one line a task and graph, and one a set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--graphs", nargs="*", default=["knn", "epsilon", "tanh", "exp"])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--tasks", nargs="*", default=["1/2", "2/3", "o/e", "b/h", "p/m", "r/a"])
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("accuracy/log score of: best graph, weighted by evidence, equal weights, hindsight")
    for task in [t for t in tasks(Context(quick=True, folder=DATA)) if t.name in chosen.tasks]:
        for graph in chosen.graphs:
            rows, effective = [], []
            for seed in range(chosen.draws):
                labelled = task.draw(seed)
                free = np.setdiff1d(np.arange(len(task.truth)), labelled)
                models = zhu_models(graph, task)
                row, n = scores(models, task.distances, task.given(labelled), task.truth, free)
                rows.append(row)
                effective.append(n)
            report(f"{task.name} {graph}", rows, effective)
    for name in chosen.sets:
        X, classes = corpus.load(name)
        rows, effective = [], []
        for seed in range(chosen.draws):
            labelled = corpus.draw_labels(classes, SETS[name], seed)
            y = np.full(len(classes), -1)
            y[labelled] = classes[labelled]
            free = np.setdiff1d(np.arange(len(classes)), labelled)
            models = [
                gq.GraphClassifier(
                    n_neighbors=k, inference="expectation-propagation", missing_label=-1
                )
                for k in NEIGHBORS[2:]
            ]
            row, n = scores(models, X, y, classes, free)
            rows.append(row)
            effective.append(n)
        report(name, rows, effective)


if __name__ == "__main__":
    main()
