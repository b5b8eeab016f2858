"""Seconds of each step of labelling with a person in the loop, against the number of nodes.

Question: after the fit, how long do a query, new labels and the report take at a million nodes, and
how large is the report?

How to run:

    python benchmarks/bench_loop.py [--nodes 10000 100000 1000000]

The data are the mixture of `mixture.py` with ten classes, and 20 labels per class at first. The
graph has 15 neighbours, the spectrum 50 eigenpairs, and inference is expectation propagation. Each
of three rounds asks for ten rows and adds their labels. Each size has a process of its own.

Prints: for each size, seconds of the fit, of each round's query and new labels, and of the report,
by the clock and of the processor; the report's size in MB; peak memory in GB.

Results go to ``benchmarks/results/loop.json``.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import graphuq as gq
from mixture import mixture
from peers import RESULTS

N_LABELS, N_ROUNDS, BATCH = 20, 3, 10  # labels a class at first, rounds, rows in a round


def timed(work):
    """Return what the function returns, and seconds by the clock and of the processor."""
    began, busy = time.perf_counter(), time.process_time()
    found = work()
    return found, [round(time.perf_counter() - began, 3), round(time.process_time() - busy, 3)]


def one_size(n_nodes):
    """Return the seconds of each step, the size of the report and memory."""
    features, classes = mixture(n_nodes)
    rng, y = np.random.default_rng(1), np.full(n_nodes, -1)
    for k in range(10):
        rows = rng.choice(np.flatnonzero(classes == k), N_LABELS, replace=False)
        y[rows] = k
    classifier = gq.GraphClassifier(
        n_neighbors=15, n_eigenpairs=50, inference="expectation-propagation"
    )
    _, seconds = timed(lambda: classifier.fit(features, y))
    found = {"fit": seconds, "query": [], "add_labels": []}
    for _ in range(N_ROUNDS):
        rows, seconds = timed(lambda: classifier.query(BATCH))
        found["query"].append(seconds)
        _, seconds = timed(lambda rows=rows: classifier.add_labels(rows, classes[rows]))
        found["add_labels"].append(seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        truth = classes.astype(float)
        _, found["report"] = timed(lambda: gq.write_report(classifier.result_, path, truth=truth))
        found["report MB"] = path.stat().st_size / 1e6
    found["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--alone", type=int, help="run one size in this process and print JSON")
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(one_size(options.alone)))
        return
    rows = {}
    for n_nodes in options.nodes:
        command = [sys.executable, __file__, "--alone", str(n_nodes)]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows[n_nodes] = json.loads(lines.splitlines()[-1])
        print(n_nodes, rows[n_nodes], flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "loop.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
