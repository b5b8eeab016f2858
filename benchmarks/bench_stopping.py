"""Who may be believed that an accuracy is reached: the model, or an audit of a random sample?

Question: where the labelling page would say "enough" for a goal, is the accuracy of the unlabelled
rows above it?

How to run, after bench_errors_left.py:

    python benchmarks/bench_stopping.py

An audit has the size that the page offers; the chance that it says enough is exact, by the
hypergeometric distribution. "expected" stops where the expected accuracy is at the goal, "lower
end" where the lower end of its 90 % interval is, each of a model of its own
predictions; "audit" where the lower end of an audit of them is.

Prints: for each goal, how often each one stops at fits whose accuracy is at the goal (it should),
and at fits where it is not (it should not).
"""

import json
from itertools import product

import numpy as np
from scipy.stats import hypergeom

from bench_errors_left import as_on_the_page
from graphuq.acquisition import audited_errors
from graphuq.labelling.audits import sample_size
from peers import RESULTS

GOALS = (0.8, 0.9, 0.95)
MODELS = ("quick", "average", "page")


def enough(goal, n):
    """Return for each number of wrong answers among n whether the audit says enough."""
    counts = [audited_errors([True] * k + [False] * (n - k), 1) for k in range(n + 1)]
    return np.array([1 - count.upper >= goal for count in counts])


def stops(run, goal):
    """Return whether the goal is reached, and how often a model and an audit of it stop."""
    n_left = run["n_left"]
    n = min(sample_size(goal), n_left)
    chances = hypergeom.pmf(np.arange(n + 1), n_left, run["wrong"], n)
    model = [1 - run[end] / n_left >= goal for end in ("expected", "upper")]
    return 1 - run["wrong"] / n_left >= goal, (*model, float(chances @ enough(goal, n)))


def main():
    runs = json.loads((RESULTS / "errors_left.json").read_text())
    runs += [as_on_the_page(run) for run in runs if run["model"] == "average"]
    print("| goal | model | accuracy is | fits | expected | lower end | audit |")
    for goal, model in product(GOALS, MODELS):
        results = [stops(run, goal) for run in runs if run["model"] == model]
        for reached, words in ((True, "reached"), (False, "not reached")):
            rows = np.array([s for is_reached, s in results if is_reached == reached], dtype=float)
            if len(rows):
                shares = " | ".join(f"{share:.2f}" for share in rows.mean(axis=0))
                print(f"| {goal:.0%} | {model} | {words} | {len(rows)} | {shares} |")


if __name__ == "__main__":
    main()
