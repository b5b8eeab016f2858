"""Is the number of errors that are left right? Corpus sets, five stages, two choices of labels.

Question: how often does a 90 % interval of `expected_errors` hold the number of wrong predictions,
for the quick model of the labelling page and for the default, which gives the page's answer?

How to run (GRAPHUQ_DATA names the folder of the data sets):

    OMP_NUM_THREADS=1 python benchmarks/bench_errors_left.py [--draws 1] [--sets iris digits]
    OMP_NUM_THREADS=1 python benchmarks/bench_errors_left.py --ordered [--sets diabetes]

With ``--ordered`` the classes are grades: the sets of bench_ordered.py and the two rolls of
bench_regression.py, cut at fifths and, with "unequal", at the shares .08, .22, .45, .19 and .06.

Each draw takes up to 600 rows. The first labels are random: two a class, at least 10, and one of
each class. Their number grows four times by the same factor, to 16 times as many, but at most half
of the rows: by random rows, or by the rows that the default rule picks in batches of ten from the
quick model, as on the page. "quick" is one model of largest evidence, "average" the default of
`GraphClassifier`; both are refitted at each stage, by expectation propagation.

Prints: for each model and choice of labels, and each stage, the share of fits whose interval holds
the number, and the ratio of all expected errors to all errors. "page" is the average with the wider
ends of the labelling page.

Results go to ``benchmarks/results/errors_left.json``, which bench_stopping.py reads; those of
grades to ``errors_left_ordered.json``.
"""

import argparse
import json
import warnings

import numpy as np
from sklearn.base import clone

import graphuq as gq
from bench_ordered import FIFTHS, NUMBERS, UNEQUAL, interviews
from bench_regression import swiss_roll, tight_roll
from corpus import load
from graphuq.labelling.features import default_classifier
from graphuq.labelling.forecast import widened
from graphuq.results.errors_left import ErrorCount
from peers import RESULTS

SETS = [
    "iris", "wine", "breast cancer", "digits", "mnist", "mnist 4, 9", "newsgroups", "voting",
    "australian", "banana", "heart", "ionosphere", "led7digit", "mammographic", "segment",
    "splice", "twonorm", "wisconsin", "yeast3", "ecoli2", "GunPoint", "OSULeaf",
    "gaussians, close", "gaussians, five", "gaussians, 70:20:10", "moons, noisy", "blocks, four",
    "digits, unequal",
]  # fmt: skip
ROLLS = {"swiss roll": swiss_roll, "tight roll": tight_roll}
CUT = {f"{name}{end}": (numbers, cuts) for name, numbers in {**NUMBERS, **ROLLS}.items()
       for end, cuts in (("", FIFTHS), (", unequal", UNEQUAL))}  # fmt: skip
GRADES = [*CUT, "interviews"]
MODELS = {"quick": default_classifier(), "average": gq.GraphClassifier()}
ORDERED = {"quick": default_classifier(ordered=True), "average": gq.GraphClassifier(ordered=True)}
DESIGNS = ("random", "page")
MAX_ROWS, N_STAGES, GROWTH = 600, 5, 16
BATCH = 10


def problem(name, draw):
    """Return features or a graph, classes from 0, and the metric of a set."""
    features, classes = graded(name, draw) if name in GRADES else load(name, draw)
    metric = "cosine" if name == "newsgroups" else None
    if isinstance(features, gq.graphs.Graph):
        return features, classes, metric
    rows = np.random.default_rng(draw).permutation(len(classes))[:MAX_ROWS]
    return features[rows], np.unique(classes[rows], return_inverse=True)[1], metric


def graded(name, draw):
    """Return features and grades from 0."""
    if name == "interviews":
        return interviews(draw)
    numbers_of, cuts = CUT[name]
    features, numbers = numbers_of(draw)
    return features, np.searchsorted(np.quantile(numbers, cuts), numbers)


def fit(settings, features, y, metric):
    """Return a classifier with some settings, fitted by expectation propagation."""
    is_graph = isinstance(features, gq.graphs.Graph)
    where = {"graph": features} if is_graph else {"metric": metric}
    classifier = clone(settings).set_params(inference="expectation-propagation", **where)
    return classifier.fit(None if is_graph else features, y)


def stages(models, design, features, truth, metric, rng):
    """Yield the errors that each model expects and those that are there, from stage to stage."""
    n_classes, y = truth.max() + 1, np.full(len(truth), -1)
    order, first = rng.permutation(len(truth)), max(10, 2 * n_classes)
    each = [order[np.flatnonzero(truth[order] == k)[0]] for k in range(n_classes)]
    last = min(GROWTH * first, len(truth) // 2)
    quick = None
    for stage in range(N_STAGES):
        n = round(first * (last / first) ** (stage / (N_STAGES - 1)))
        while design == "page" and quick is not None and (y >= 0).sum() < n:
            picks = quick.query(min(BATCH, n - int((y >= 0).sum())))
            y[picks] = truth[picks]
            quick.add_labels(picks, truth[picks])
        if design == "random" or stage == 0:
            rows = np.union1d(each, order[:n])
            y[rows] = truth[rows]
        for model, settings in models.items():
            fitted = fit(settings, features, y, metric)
            quick = fitted if model == "quick" else quick
            wrong = int((fitted.transduction_ != truth)[y < 0].sum())
            count = gq.expected_errors(fitted.result_)._asdict()
            yield {"model": model, "design": design, "stage": stage, "wrong": wrong,
                   "n_left": int((y < 0).sum()), **count}  # fmt: skip


def as_on_the_page(run):
    """Return a run of the average with the wider ends of the page."""
    count = ErrorCount(*(run[name] for name in ErrorCount._fields))
    return {**run, "model": "page", **widened(count, run["n_left"])._asdict()}


def show(name, found):
    """Print the shares of intervals that hold the truth, and the ratio of expected to true."""
    holds = np.mean([run["lower"] <= run["wrong"] <= run["upper"] for run in found])
    ratio = sum(run["expected"] for run in found) / max(1, sum(run["wrong"] for run in found))
    width = np.mean([(run["upper"] - run["lower"]) / run["n_left"] for run in found])
    print(f"{name:24} {len(found):4} fits, {holds:.2f} hold, expected / true {ratio:.2f}, "
          f"width {width:.3f} of the rows")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--ordered", action="store_true", help="classes are grades")
    parser.add_argument("--sets", nargs="+", help="by default all")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    models, sets = (ORDERED, GRADES) if options.ordered else (MODELS, SETS)
    path = RESULTS / f"errors_left{'_ordered' if options.ordered else ''}.json"
    RESULTS.mkdir(exist_ok=True)
    for draw in range(options.draws):
        for name in options.sets or sets:
            for design in DESIGNS:
                rng = np.random.default_rng([draw, len(name)])
                runs = stages(models, design, *problem(name, draw), rng)
                found += [{"set": name, **run} for run in runs]
            print(name, flush=True)
            path.write_text(json.dumps(found, indent=1))
    found += [as_on_the_page(run) for run in found if run["model"] == "average"]
    for model in (*MODELS, "page"):
        for design in DESIGNS:
            runs = [run for run in found if (run["model"], run["design"]) == (model, design)]
            show(f"{model}, {design}", runs)
            for stage in range(N_STAGES):
                show(f"    stage {stage}", [run for run in runs if run["stage"] == stage])


if __name__ == "__main__":
    main()
