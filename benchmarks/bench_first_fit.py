"""The first fit of a fresh process, and where its seconds go.

Question: how long does a person wait for the first fit, if compiled programs are on disk?

How to run:

    python benchmarks/bench_first_fit.py [--classes 2 3 10] [--runs 5]

The data are 500 rows of 8 features in overlapping blobs, with 20, 30 and 30 labels for 2, 3 and 10
classes. Each run is a process of its own; one run before the others fills the caches. "Parts" are
runs in which the packages are imported one after the other, before the fit.

Prints: processor seconds, the least over all runs, of the first and second fit and of each part;
and wall seconds of the fits, which other work on the machine makes longer. Bytecode must be kept
(no ``PYTHONDONTWRITEBYTECODE``).
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from importlib import import_module

import numpy as np

PARTS = {
    "numba": "numba",
    "graphuq": "graphuq.classifier.fitting",
}


def data_of(n_classes):
    """Return features, and the classes of some rows."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-10, 10, size=(n_classes, 8))
    classes = np.arange(500) % n_classes
    features = centres[classes] + 2.5 * rng.normal(size=(500, 8))
    labels = np.full(500, -1)
    n_each = 10 if n_classes < 10 else 3
    labels[: n_each * n_classes] = classes[: n_each * n_classes]
    return features, labels


def one_run(n_classes, in_parts):
    """Print the seconds of one process."""
    import graphuq as gq
    from graphuq.utils.lazy_imports import paused_collection

    seconds = {}

    def timed(name, work):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        seconds[name] = time.process_time() - processor
        return time.perf_counter() - wall

    warnings.simplefilter("ignore")  # of components of the graph
    features, labels = data_of(n_classes)
    timed("use of GraphClassifier", lambda: gq.GraphClassifier)
    if in_parts:
        with paused_collection():
            for name, module in PARTS.items():
                timed(name, lambda module=module: import_module(module))
        timed("numba's first program", first_program)
    else:
        for name in ("first fit", "second fit"):
            wall = timed(name, lambda: gq.GraphClassifier().fit(features, labels))
            seconds[f"{name}, wall"] = wall
    print(json.dumps(seconds))


def first_program():
    """Call a function that Numba has compiled before."""
    from graphuq.inference.nested_sites import propose

    sites, moments = np.ones((2, 1, 2, 2)), np.ones((1, 2, 2))
    propose(np.array([0, 1]), sites, moments, 0.5 * moments)


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 3, 10])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--one", choices=["whole", "parts"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_run(options.classes[0], options.one == "parts")
        return
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for n_classes in options.classes:
        least = {}
        for run in range(options.runs + 1):
            for kind in ("whole", "parts"):
                command = [sys.executable, __file__, "--one", kind, "--classes", str(n_classes)]
                done = subprocess.run(
                    command, check=True, capture_output=True, text=True, env=environment
                )
                found = json.loads(done.stdout.splitlines()[-1])
                if run:
                    least |= {k: min(v, least.get(k, v)) for k, v in found.items()}
        print(f"{n_classes} classes")
        for name, value in least.items():
            print(f"  {name:24} {value:6.2f}")


if __name__ == "__main__":
    main()
