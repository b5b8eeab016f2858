"""What do signs of edges tell, with few labels?

Questions: members of parliament agree in some votes and disagree in others. How right is the
default on their votes as features, on a graph of their agreements, and on one whose weights are
agreements less disagreements? And on a sparse graph, whose edges alone carry signs, how far is the
answer from the best possible one?

How to run:

    python benchmarks/bench_signs.py [--draws 10]
    python benchmarks/bench_signs.py --summary

Data: ``voting/house-votes-84.data`` of the folder of data (``--data``). The simulation has two
classes of 500 nodes and c edges a node between random nodes. A sign is right (+ within a class, −
between classes) with the probability 1 − ε. No answer is better than chance without labels if
``c (1 − 2ε)² < 1`` (Lelarge, Massoulié & Xu 2015; Saade et al. 2015). The best answer is that of
belief propagation, which is told ε.

Prints accuracy and log score over nodes without a label, with standard errors over draws. Results
go to ``benchmarks/results/signs.json``.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy import sparse
from scipy.special import expit

import graphuq as gq
from bench_nodes import scores
from peers import DATA, RESULTS

PATH = RESULTS / "signs.json"
N_LABELS = (2, 4, 8, 20)
N_NODES, SIMULATED = 1000, {"c = 8, ε = .2": (8, 0.2), "c = 4, ε = .2": (4, 0.2)}
ROUNDS, CERTAIN = 200, 30.0  # of belief propagation; log odds of a label


def house(folder):
    """Return the classes, and the estimator and data of each answer."""
    votes = gq.datasets.load_voting(folder)
    x = np.asarray(votes.features)
    cast = (x != 0).astype(float)
    both = cast @ cast.T
    net = x @ x.T
    np.fill_diagonal(net, 0.0)
    np.fill_diagonal(both, 0.0)
    given = {
        "votes as features": ("knn", x),
        "agreements": ("precomputed", (both + net) / 2),
        "agreements less disagreements, positive part": ("precomputed", np.maximum(net, 0.0)),
        "agreements less disagreements, signed": ("precomputed", net),
    }
    answers = {k: (gq.GraphClassifier(graph), X) for k, (graph, X) in given.items()}
    answers["votes, and agreements less disagreements, signed"] = (
        gq.GraphClassifier(sparse.csr_array(net)),
        x,
    )
    return votes.codes(), answers


def simulated(c, wrong, rng):
    """Return classes and the signed weights of random edges."""
    codes = rng.permutation(np.arange(N_NODES) % 2)
    ends = rng.integers(N_NODES, size=(2, c * N_NODES // 2))
    ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    signs = np.where(codes[ends[0]] == codes[ends[1]], 1.0, -1.0)
    signs *= np.where(rng.random(ends.shape[1]) < wrong, -1.0, 1.0)
    upper = sparse.csr_array((signs, tuple(ends)), (N_NODES, N_NODES))
    return codes, sparse.csr_array(upper + upper.T)


def belief_propagation(weights, y, wrong):
    """Return probabilities of class 1, given edges, labels and ε, as on a tree."""
    edges = sparse.coo_array(weights)
    source, target = edges.row, edges.col
    back = np.empty(len(source), int)  # the same edge in the other direction
    back[np.lexsort((source, target))] = np.lexsort((target, source))
    own = np.where(y < 0, 0.0, np.where(y == 1, CERTAIN, -CERTAIN))
    log_odds = np.zeros(len(source))  # the labels tell the classes apart
    for _ in range(ROUNDS):
        told = 2 * np.arctanh((1 - 2 * wrong) * np.tanh(log_odds / 2)) * edges.data
        at = own + np.bincount(target, told, len(y))
        log_odds = 0.5 * log_odds + 0.5 * (at[source] - told[back])
    return expit(at)


def draws(codes, n_labels, rng):
    """Return labels of random nodes, with both classes among them."""
    while True:
        chosen = rng.choice(len(codes), n_labels, replace=False)
        if len(set(codes[chosen].tolist())) == 2:
            return np.where(np.isin(np.arange(len(codes)), chosen), codes, -1)


def store(data, n_labels, name, draw, row):
    stored = json.loads(PATH.read_text()) if PATH.exists() else {}
    here = stored.setdefault(data, {}).setdefault(str(n_labels), {}).setdefault(name, {})
    here[str(draw)] = row
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(stored, indent=1))


def answer(estimator, X, y, codes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator.fit(X, y)
    return [float(v) for v in scores(fitted.label_distributions_[y < 0], codes[y < 0])[:2]]


def measure(folder, n_draws):
    codes, answers = house(folder)
    for draw in range(n_draws):
        for n_labels in N_LABELS:
            y = draws(codes, n_labels, np.random.default_rng([draw, n_labels]))
            for name, (estimator, X) in answers.items():
                store("House", n_labels, name, draw, answer(estimator, X, y, codes))
    for data, (c, wrong) in SIMULATED.items():
        for draw in range(n_draws):
            rng = np.random.default_rng([draw, c])
            codes, weights = simulated(c, wrong, rng)
            for n_labels in N_LABELS:
                y = draws(codes, n_labels, rng)
                estimator = gq.GraphClassifier("precomputed")
                given = {"signed": weights, "positive part": weights.maximum(0)}
                for name, X in given.items():
                    store(data, n_labels, name, draw, answer(estimator, X, y, codes))
                p = np.clip(belief_propagation(weights, y, wrong), 1e-12, 1 - 1e-12)
                row = scores(np.column_stack([1 - p, p])[y < 0], codes[y < 0])[:2]
                store(data, n_labels, "belief propagation", draw, [float(v) for v in row])


def summary():
    print("| data | labels | answer from | draws | accuracy | log score |\n" + "|---" * 6 + "|")
    for data, by_number in json.loads(PATH.read_text()).items():
        for n_labels, answers in by_number.items():
            for name, rows in answers.items():
                table = np.array(list(rows.values()))
                mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / len(table) ** 0.5
                shown = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]
                print("|", " | ".join([data, n_labels, name, str(len(table)), *shown]), "|")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if not given.summary:
        measure(given.data, given.draws)
    summary()
