"""What must not change an answer: does it, on random problems?

Question: of random problems, how many answers change more than their tolerance with the order of
rows, the names of classes, scale or origin of the features, their container, threads, saving and
loading, and how many give a row and its copy different probabilities?

How to run:

    python benchmarks/bench_invariances.py [--problems 1000] [--first 0]

Problems and tolerances are those of ``tests/robustness/test_invariants.py``: 4 to 80 rows, 2 to 6
classes, clusters far apart, rows at one place, scales over six orders of magnitude, labels that
may contradict each other. Methods take turns: the default, expectation propagation, Laplace's
method and draws of collapsed Gibbs. A comparison is left out where rounding or the order of rows
decides which neighbours are nearest.

Prints: for each invariance the comparisons, and how many are beyond the tolerance, by method.

Results go to ``benchmarks/results/invariances.json``, after each problem.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from peers import RESULTS
from robustness.test_invariants import METHODS, differences

PATH = RESULTS / "invariances.json"


def table(rows):
    """Print the counts."""
    answered = [row for row in rows if row["found"]]
    print(f"{len(rows)} problems, {len(answered)} answered, the others refused")
    print("invariance | comparisons | beyond the tolerance")
    compared = Counter(name for row in answered for name in row["found"])
    for name, count in compared.items():
        wrong = [row for row in answered if row["found"].get(name)]
        by_method = dict(Counter(row["method"] for row in wrong))
        print(name, count, len(wrong), by_method or "", sep=" | ")


def main():
    """Compare the problems and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = {row["seed"]: row for row in json.loads(PATH.read_text())} if PATH.exists() else {}
    methods = list(METHODS)
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.first, arguments.first + arguments.problems):
            method = methods[seed % len(methods)]
            found = dict(differences(seed, method, Path(folder)))
            rows[seed] = {"seed": seed, "method": method, "found": found}
            PATH.write_text(json.dumps(list(rows.values()), indent=1))
            if any(found.values()):
                print("beyond:", json.dumps(rows[seed]), flush=True)
    table(list(rows.values()))


if __name__ == "__main__":
    main()
