"""What do a graph and features of its nodes bring together?

Question: how right, and how well calibrated, is the default on a graph whose nodes have features,
beside the graph alone, the features alone, and published graph networks?

How to run:

    python benchmarks/bench_nodes.py public
    python benchmarks/bench_nodes.py splits [--sets cora texas] [--n-splits 10]
    python benchmarks/bench_nodes.py blocks [--draws 5]
    python benchmarks/bench_nodes.py --summary

Data: ``nodes/cora.npz`` and ``nodes/texas.npz`` of the folder of data (``--data``). "public" is the
split of Yang et al. (2016), 20 labels a class; "splits" are the ten of Pei et al. (2020), by
expectation propagation. "blocks" are simulated contextual block models (Deshpande, Sen, Montanari &
Mossel 2018) of 600 nodes, 100 features and 30 labels, beside the answer that knows which part is
useless, and message passing that knows all parameters (Duranthon & Zdeborová 2023).

Prints accuracy, log score, calibration error (ten bins of the largest probability) and CPU seconds.
A class without a training label has the probability 0, which counts as 1e-3. Results go to
``benchmarks/results/nodes.json``.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import graphuq as gq
from peers import DATA, RESULTS

PATH = RESULTS / "nodes.json"
EP = {"inference": "expectation-propagation"}
FLOOR = 1e-3
N, WIDTH, DEGREE, N_LABELS = 600, 100, 10.0, 30
# Signal of the graph, (c_in − c_out) / (2 √c), and of the features, μ.
MODELS = {"useless graph": (0.0, 8.0), "useless features": (1.8, 0.0), "both useful": (1.2, 1.5)}


def scores(probability, truth):
    """Return accuracy, mean log score and calibration error."""
    of_truth = np.maximum(probability[np.arange(len(truth)), truth], FLOOR)
    top, hit = probability.max(axis=1), probability.argmax(axis=1) == truth
    part = np.minimum((10 * top).astype(int), 9)
    error = sum(abs(np.sum((hit - top.astype(float))[part == k])) for k in range(10)) / len(truth)
    return float(hit.mean()), float(-np.log(of_truth).mean()), float(error)


def load(folder, name):
    stored = np.load(folder / "nodes" / f"{name}.npz")
    parts = (stored["data"], stored["indices"], stored["indptr"])
    X = sparse.csr_array(parts, shape=tuple(stored["shape"]))
    ends, truth = stored["edges"], stored["labels"]
    W = sparse.csr_array((np.ones(len(ends)), tuple(ends.T)), shape=(len(truth), len(truth)))
    return X, sparse.csr_array(W + W.T), truth, stored


def graphuq(graph, X, y, **settings):
    fitted = gq.GraphClassifier(graph=graph, **settings).fit(X, y)
    found = np.zeros((len(y), int(y.max()) + 1))
    found[:, fitted.classes_] = fitted.label_distributions_
    return found


def logistic(X, y):
    known = y >= 0
    model = LogisticRegression(max_iter=2000).fit(X[known], y[known])
    found = np.zeros((len(y), int(y.max()) + 1))
    found[:, model.classes_] = model.predict_proba(X)
    return found


METHODS = {
    "graph and features": lambda W, X, y: graphuq(W, X, y),
    "graph and features, without draws": lambda W, X, y: graphuq(W, X, y, **EP),
    "graph alone": lambda W, X, y: graphuq(W, None, y, **EP),
    "features alone": lambda W, X, y: graphuq("knn", X, y, **EP),
    "logistic regression": lambda W, X, y: logistic(X, y),
}


def measured(method, W, X, y, truth, test):
    """Return the scores of a method at the test nodes, and CPU seconds."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probability = method(W, X, y)
    wide = np.zeros((len(y), int(truth.max()) + 1))
    wide[:, : probability.shape[1]] = probability
    return [*scores(wide[test], truth[test]), time.process_time() - begin]


def public(folder):
    X, W, truth, stored = load(folder, "cora")
    y = np.full(len(truth), -1)
    y[stored["train"]] = truth[stored["train"]]
    for name, method in METHODS.items():
        keep("cora, public split", name, 0, measured(method, W, X, y, truth, stored["test"]))


def splits(folder, sets, n_splits):
    names = ("graph and features, without draws", "graph alone", "logistic regression")
    for which in sets:
        X, W, truth, stored = load(folder, which)
        for k in range(n_splits):
            train, test = stored["random_train"][k] > 0, stored["random_test"][k] > 0
            y = np.where(train, truth, -1)
            for name in names:
                row = measured(METHODS[name], W, X, y, truth, test)
                keep(f"{which}, random splits", name, k, row)


def contextual_block_model(strength, signal, seed):
    """Return weights, features and classes of nodes.

    Features are ``√(μ/N) s v' + noise`` with signs s of the classes and v standard normal; two
    nodes of one class are joined with the probability c_in/N, others with c_out/N.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(N) % 2)
    s = 2 * truth - 1
    X = np.sqrt(signal / N) * np.outer(s, rng.normal(size=WIDTH)) + rng.normal(size=(N, WIDTH))
    c_in, c_out = affinities(strength)
    p = np.where(np.equal.outer(s, s), c_in, c_out) / N
    upper = np.triu(rng.random((N, N)) < p, 1)
    labelled = rng.permutation(N)[:N_LABELS]
    y = np.full(N, -1)
    y[labelled] = truth[labelled]
    return sparse.csr_array((upper | upper.T).astype(float)), X, y, truth


def affinities(strength):
    return DEGREE + strength * np.sqrt(DEGREE), DEGREE - strength * np.sqrt(DEGREE)


def message_passing(W, X, y, strength, signal, n_steps=300):
    """Return probabilities by belief propagation and approximate message passing, damped."""
    source, target = W.nonzero()
    place = {pair: k for k, pair in enumerate(zip(source.tolist(), target.tolist(), strict=True))}
    back = np.array([place[pair] for pair in zip(target.tolist(), source.tolist(), strict=True)])
    c_in, c_out = affinities(strength)
    tanh, known = (c_in - c_out) / (c_in + c_out), y >= 0
    rng, root = np.random.default_rng(0), np.sqrt(signal / N)
    m = np.where(known, 2.0 * y - 1, 0.01 * rng.normal(size=N))
    message, v = m[source], np.zeros(WIDTH)
    for _ in range(n_steps):
        certain = signal / N * np.sum(m**2)
        step = (root * X.T @ m - signal / N * np.sum(1 - m**2) * v) / (1 + certain)
        v = 0.5 * v + 0.5 * step
        field = root * X @ v - signal / N * WIDTH / (1 + certain) * m
        field -= (c_in - c_out) / (2 * N) * m.sum()
        bonds = np.arctanh(tanh * message)
        total = field + np.bincount(target, bonds, N)
        new = np.where(known, 2.0 * y - 1, np.tanh(total))
        cavity = np.tanh(total[source] - bonds[back])
        message = 0.5 * message + 0.5 * np.where(known[source], new[source], cavity)
        m = 0.5 * m + 0.5 * new
    return np.stack([(1 - m) / 2, (1 + m) / 2], axis=1)


def blocks(n_draws):
    for what, (strength, signal) in MODELS.items():
        for seed in range(n_draws):
            W, X, y, truth = contextual_block_model(strength, signal, seed)
            own = {
                name: METHODS[name]
                for name in ("graph and features, without draws", "graph alone", "features alone")
            }
            own["message passing"] = lambda W, X, y, a=strength, b=signal: message_passing(
                W, X, y, a, b
            )
            for name, method in own.items():
                row = measured(method, W, X, y, truth, y < 0)
                keep(f"block model, {what}", name, seed, row)


def keep(what, method, number, row):
    print(f"{what} {number} {method}: " + " ".join(f"{value:.3f}" for value in row), flush=True)
    stored = json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}
    stored.setdefault(what, {}).setdefault(method, {})[str(number)] = row
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(stored, indent=1), "utf-8")


def summary():
    for what, methods in json.loads(PATH.read_text("utf-8")).items():
        print(f"\n{what}\n| method | n | accuracy | log score | calibration error | CPU s |")
        for method, rows in methods.items():
            table = np.array(list(rows.values()))
            mean, error = table.mean(axis=0), table[:, 0].std() / np.sqrt(len(table))
            print(
                f"| {method} | {len(table)} | {mean[0]:.3f} ± {error:.3f} | {mean[1]:.3f} "
                f"| {mean[2]:.3f} | {mean[3]:.0f} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("public", "splits", "blocks"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", default=["cora", "texas"])
    parser.add_argument("--n-splits", type=int, default=10)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--summary", action="store_true")
    args = parser.parse_args()
    if args.part == "public":
        public(args.data)
    elif args.part == "splits":
        splits(args.data, args.sets, args.n_splits)
    elif args.part == "blocks":
        blocks(args.draws)
    if args.summary or args.part:
        summary()
