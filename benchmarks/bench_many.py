"""How time and memory of a default fit grow with the number of classes, and of labels.

Question: how many classes, or labels, can a laptop do, and what happens there?

How to run:

    OMP_NUM_THREADS=1 python benchmarks/bench_many.py [--classes 60 120 240 480 960] [--each 1]
    OMP_NUM_THREADS=1 python benchmarks/bench_many.py --classes --labels 12500 25000 50000 100000

Classes are clusters in 20 dimensions, of ten rows each, with one or a few labels a class. Labels
are of five classes of eight clusters each, in 10 dimensions, with a fifth more rows than labels.
Each fit is a process of its own, with one thread.

Prints, for each size: seconds of CPU of the fit, imports excluded, peak memory in GB, accuracy and
mean log score of the hidden rows, of which less is better, and the exponents of time and memory
since the size before.

Results go to ``benchmarks/results/many.json``.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings

import numpy as np

from peers import RESULTS

LEAST = 1e-6  # probability in a log score


def clusters(n_classes, n_each):
    """Return features, classes and labels of many classes."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(n_classes), 10)
    features = rng.normal(size=(n_classes, 20))[classes]
    features = features + 0.5 * rng.normal(size=features.shape)
    y = np.full(len(classes), -1)
    for k in range(n_classes):
        y[rng.choice(np.flatnonzero(classes == k), n_each, replace=False)] = k
    return features, classes, y


def many_labels(n_classes, n_labels):
    """Return features, classes and labels of few classes."""
    rng, n_rows = np.random.default_rng(0), int(1.2 * n_labels)
    centers = rng.normal(size=(8 * n_classes, 10))
    cluster = rng.integers(len(centers), size=n_rows)
    features = centers[cluster] + 0.6 * rng.normal(size=(n_rows, 10))
    classes, y = cluster % n_classes, np.full(n_rows, -1)
    labelled = rng.permutation(n_rows)[:n_labels]
    y[labelled] = classes[labelled]
    return features, classes, y


def fit(kind, size, other):
    """Fit in this process, and print the numbers as JSON."""
    import graphuq as gq

    features, classes, y = clusters(size, other) if kind == "classes" else many_labels(other, size)
    classifier = gq.GraphClassifier()
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(features, y)
    seconds = time.process_time() - began
    probabilities, hidden = classifier.label_distributions_, y < 0
    own = np.maximum(probabilities[np.arange(len(y)), classes], LEAST)
    found = {
        "seconds": seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "accuracy": float((probabilities.argmax(axis=1) == classes)[hidden].mean()),
        "log_score": -float(np.log(own)[hidden].mean()),
        "method": type(classifier.result_.answer).__name__,
    }
    print(json.dumps(found))


def measured(kind, size, other, limit):
    """Return the numbers of a fit in a process of its own, or None after the limit."""
    command = [sys.executable, __file__, "--one", kind, str(size), str(other)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            command, env=os.environ | threads, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--classes", type=int, nargs="*", default=[60, 120, 240, 480, 960])
    parser.add_argument("--each", type=int, default=1, help="labels of each class")
    parser.add_argument("--labels", type=int, nargs="*", default=[])
    parser.add_argument("--few", type=int, default=5, help="classes of many labels")
    parser.add_argument("--limit", type=float, default=1800, help="seconds of wall time of a fit")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, *sizes = options.one
        fit(kind, *map(int, sizes))
        return
    results = {}
    for kind, sizes, other in (
        ("classes", options.classes, options.each),
        ("labels", options.labels, options.few),
    ):
        last = None
        for size in sizes:
            found = measured(kind, size, other, options.limit)
            if found is None:
                print(f"{size} {kind}: more than {options.limit:.0f} s", flush=True)
                break
            line = f"{size} {kind}: {found['seconds']:.0f} s, {found['memory']:.2f} GB, "
            line += f"accuracy {found['accuracy']:.4f}, log score {found['log_score']:.3f}"
            if last is not None:
                growth = np.log(size / last[0])
                time_, memory = (
                    np.log(found[name] / last[1][name]) / growth for name in ("seconds", "memory")
                )
                line += f"; exponents {time_:.1f} and {memory:.1f}"
            print(f"{line}; {found['method']}", flush=True)
            last = size, found
            results[f"{size} {kind}, {other}"] = found
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "many.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
