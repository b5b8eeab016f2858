"""Is the number of wrong tags right? Sets of tags, three stages of labelling.

Question: how often does the 90 % interval of `expected_wrong_tags`, as the labelling page shows it,
hold the number of wrong tags of all unlabelled rows?

How to run (GRAPHUQ_DATA names the folder of the data sets):

    OMP_NUM_THREADS=1 python benchmarks/bench_wrong_tags.py [--draws 1] [--sets words "of digits"]

Sets: those of bench_tags.py; other draws of `make_multilabel_classification`; and sets of classes
of which each of four tags is a random subset. Each has up to 300 rows. The first labels are 15
random rows; their number grows to 120, but at most half of the rows. `MultilabelClassifier`, by
expectation propagation.

Prints for each stage the share of fits whose interval holds the number, and all expected wrong tags
over all wrong ones. "independent": draws of one tag are independent of those of another.
"together": a draw has all tags at the same quantile of their errors. "page": as the labelling page
has it, with ends that are a tenth further out.

Results go to ``benchmarks/results/wrong_tags.json``.
"""

import argparse
import json
import warnings

import numpy as np

import graphuq as gq
from bench_tags import FAST, SETS, made
from corpus import load
from graphuq.labelling.forecast import widened
from graphuq.results.errors_left import ErrorCount, _error_draws, ends_around
from peers import RESULTS

OF_CLASSES = ["digits", "mnist", "newsgroups", "wine", "gaussians, five", "blocks, four"]
SIMULATED = {
    "few words": {"n_labels": 2, "length": 20},
    "long texts": {"n_labels": 2, "length": 200},
    "many tags": {"n_labels": 3, "length": 60},
    "none or one": {"n_labels": 1, "length": 40},
    "four a row": {"n_labels": 4, "length": 80},
    "short and rare": {"n_labels": 1, "length": 15},
}
N_TAGS, MAX_ROWS, N_STAGES, FIRST, LAST = 4, 300, 3, 15, 120


def tags_of_classes(name, draw):
    """Return features or a graph, and tags each of which is a random subset of the classes."""
    features, classes = load(name, draw)
    rng = np.random.default_rng([draw, 7])
    classes = np.unique(classes, return_inverse=True)[1]
    if not isinstance(features, gq.graphs.Graph):
        rows = rng.permutation(len(classes))[:MAX_ROWS]
        features, classes = features[rows], classes[rows]
    n_classes = classes.max() + 1
    tags = []
    while len(tags) < N_TAGS:
        own = rng.random(n_classes) < 0.4
        if own.any() and not own.all():
            tags.append(own[classes].astype(int))
    return features, np.column_stack(tags)


def problem(name, draw):
    """Return features or a graph, tags and the metric of a set."""
    if name in SETS:
        X, Y = SETS[name](draw)
        return X[:MAX_ROWS], Y[:MAX_ROWS], None
    if name in SIMULATED:
        X, Y = made(100 + draw, **SIMULATED[name])
        return X[:MAX_ROWS], Y[:MAX_ROWS], None
    own = name.removeprefix("of ")
    return *tags_of_classes(own, draw), "cosine" if own == "newsgroups" else None


def counts_of(results, free):
    """Return intervals of the number of wrong tags, by their names."""
    draws = [_error_draws(result, free) for result in results]
    expected = sum(float((1 - r.probabilities[free].max(axis=1)).sum()) for r in results)
    rng = np.random.default_rng(0)
    sums = {
        "independent": sum(rng.permutation(one) for one in draws),
        "together": sum(np.sort(one) for one in draws),
    }
    return {k: ErrorCount(expected, *ends_around(expected, v, 0.9)) for k, v in sums.items()}


def stages(features, Y, metric, rng):
    """Yield the wrong tags that are expected, and those that are there, from stage to stage."""
    order, is_graph = rng.permutation(len(Y)), isinstance(features, gq.graphs.Graph)
    last = min(LAST, len(Y) // 2)
    where = {"graph": features} if is_graph else {"metric": metric}
    for stage in range(N_STAGES):
        n = round(FIRST * (last / FIRST) ** (stage / (N_STAGES - 1)))
        rows = order[:n]
        known = (Y[rows].min(axis=0) == 0) & (Y[rows].max(axis=0) == 1)
        if not known.any():
            continue
        given = np.full((len(Y), int(known.sum())), -1)
        given[rows] = Y[rows][:, known]
        settings = FAST.__class__(**{**FAST.get_params(deep=False), **where})
        fitted = gq.MultilabelClassifier(settings).fit(None if is_graph else features, given)
        free = np.setdiff1d(np.arange(len(Y)), rows)
        wrong = (fitted.tag_probabilities_[free] > 0.5) != Y[free][:, known]
        counts = counts_of([one.result_ for one in fitted.estimators_], free)
        n_left = wrong.size
        counts["page"] = widened(counts["independent"], n_left)
        counts["together, page"] = widened(counts["together"], n_left)
        for name, count in counts.items():
            yield {"stage": stage, "n_labels": n, "by": name, "wrong": int(wrong.sum()),
                   "n_left": n_left, **count._asdict()}  # fmt: skip


def show(name, found):
    """Print the share of intervals that hold the truth, and the ratio of expected to true."""
    holds = np.mean([run["lower"] <= run["wrong"] <= run["upper"] for run in found])
    below = np.mean([run["wrong"] < run["lower"] for run in found])
    ratio = sum(run["expected"] for run in found) / max(1, sum(run["wrong"] for run in found))
    width = np.mean([(run["upper"] - run["lower"]) / run["n_left"] for run in found])
    print(f"{name:24} {len(found):4} fits, {holds:.2f} hold, {below:.2f} below, "
          f"expected / true {ratio:.2f}, width {width:.3f}")  # fmt: skip


def main():
    """Fit all sets at all stages, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--sets", nargs="+", help="by default all")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found, sets = [], [*SETS, *SIMULATED, *(f"of {name}" for name in OF_CLASSES)]
    RESULTS.mkdir(exist_ok=True)
    for draw in range(options.draws):
        for name in options.sets or sets:
            rng = np.random.default_rng([draw, len(name)])
            found += [
                {"set": name, "draw": draw, **run} for run in stages(*problem(name, draw), rng)
            ]
            print(name, flush=True)
            (RESULTS / "wrong_tags.json").write_text(json.dumps(found, indent=1))
    for by in ("independent", "together", "page", "together, page"):
        own = [run for run in found if run["by"] == by]
        show(by, own)
        for stage in range(N_STAGES):
            show(f"  stage {stage + 1}", [run for run in own if run["stage"] == stage])
    for name in options.sets or sets:
        show(name, [run for run in found if run["set"] == name and run["by"] == "page"])


if __name__ == "__main__":
    main()
