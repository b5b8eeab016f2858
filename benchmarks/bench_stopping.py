"""Who may be believed that an accuracy is reached: the model, or an audit of a random sample?

Question: where the labelling page would say "enough" for a goal, is the accuracy of the unlabelled
rows above it?

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_stopping.py [--draws 2]

Fits are those of bench_errors_left.py with the model of the page: twelve sets, four stages, random
labels and those of the page's rule. An audit has the size that the page offers; the chance that it
says enough is exact, by the hypergeometric distribution. "model" stops where the expected accuracy
is at the goal, "careful model" where the lower end of its 90 % interval is, "audit" where the lower
end of the audit's is.

Prints: for each goal, how often each one stops at fits whose accuracy is at the goal (it should),
and at fits where it is not (it should not).
"""

import argparse
import warnings

import numpy as np
from scipy.stats import hypergeom

from bench_errors_left import problems, read, stages
from graphuq.acquisition import audited_errors
from graphuq.labelling.audits import sample_size

GOALS = (0.8, 0.9, 0.95)


def enough(goal, n):
    """Return for each number of wrong answers among n whether the audit says enough."""
    counts = [audited_errors([True] * k + [False] * (n - k), 1) for k in range(n + 1)]
    return np.array([1 - count.upper >= goal for count in counts])


def stops(run, n_rows, goal):
    """Return whether the goal is reached, and how often each one stops."""
    n_free = n_rows - run["n_labels"]
    n = min(sample_size(goal), n_free)
    chances = hypergeom.pmf(np.arange(n + 1), n_free, run["wrong"], n)
    accuracy, expected, lower = (1 - run[name] / n_free for name in ("wrong", "expected", "upper"))
    audit = float(chances @ enough(goal, n))
    return accuracy >= goal, (expected >= goal, lower >= goal, audit)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sources, runs = read(), []
    for design in ("random", "page"):
        for draw in range(options.draws):
            for name, *problem in problems(np.random.default_rng(draw), *sources):
                rng = np.random.default_rng(draw)
                found = stages("page", design, *problem, rng)
                runs += [({"set": name, **run}, len(problem[1])) for run in found]
    for goal in GOALS:
        results = [stops(run, n_rows, goal) for run, n_rows in runs]
        for reached, words in ((True, "reached"), (False, "not reached")):
            rows = np.array([s for is_reached, s in results if is_reached == reached], dtype=float)
            if len(rows):
                shares = " | ".join(f"{share:.2f}" for share in rows.mean(axis=0))
                print(f"| {goal:.0%} | {words} | {len(rows)} | {shares} |")


if __name__ == "__main__":
    main()
