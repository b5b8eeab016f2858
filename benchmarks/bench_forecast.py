"""Is "label n more and expect …" right? Forecast and outcome over draws.

Question: how do `forecast_errors` and `expected_errors` compare with the number of errors that are
left after n more labels, and how often do their 90 % intervals hold it?

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_forecast.py [--draws 20] [--labels 10] [--more 20]

Each draw labels some rows at random, forecasts, labels the rows that the default rule picks in
batches of ten, and counts wrong labels. The fit averages over models, as an approximation; added
labels are learnt by the most probable of them, which is the default of `add_labels`.

Prints: for each data set, means over draws of the errors now (true, expected) and after the labels
(true, expected then, forecast), and the share of draws whose intervals hold the true number.

Results go to ``benchmarks/results/forecast.json``.
"""

import argparse
import json
import warnings

import numpy as np

import graphuq as gq
from peers import RESULTS, load

SETS = ("digits49", "digits38", "mnist49", "voting")
MAX_ROWS = 500
METHOD = gq.inference.ModelAverage(fields="gibbs")


def one_draw(features, truth, n_labels, n_more, draw):
    """Return the numbers of one draw by name."""
    rng = np.random.default_rng(draw)
    rows = rng.choice(len(truth), min(MAX_ROWS, len(truth)), replace=False)
    features, truth = features[rows], (truth[rows] > 0).astype(int)
    y = np.full(len(truth), -1)
    while len(np.unique(y[y >= 0])) < 2:
        y[:] = -1
        labelled = rng.choice(len(truth), n_labels, replace=False)
        y[labelled] = truth[labelled]
    classifier = gq.GraphClassifier(inference=gq.inference.MCMC(METHOD, n_samples=500, stop=None))
    result = classifier.fit(features, y).result_
    now, forecast = gq.expected_errors(result), gq.acquisition.forecast_errors(result, n_more)
    wrong_now = int((classifier.transduction_ != truth).sum())
    for begin in range(0, n_more, 10):
        picks = classifier.query(min(10, n_more - begin))
        classifier.add_labels(picks, truth[picks])
    then = gq.expected_errors(classifier.result_)
    wrong = int((classifier.transduction_ != truth).sum())
    return {
        "true now": wrong_now,
        "expected now": now.expected,
        "holds now": now.lower <= wrong_now <= now.upper,
        "true then": wrong,
        "expected then": then.expected,
        "forecast": forecast.expected,
        "forecast holds expected": forecast.lower <= then.expected <= forecast.upper,
        "forecast holds true": forecast.lower <= wrong <= forecast.upper,
        "holds then": then.lower <= wrong <= then.upper,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--more", type=int, default=20)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for name in options.sets:
        features, truth = load(name)
        runs = [
            one_draw(features, truth, options.labels, options.more, draw)
            for draw in range(options.draws)
        ]
        found[name] = runs
        means = {key: round(float(np.mean([run[key] for run in runs])), 2) for key in runs[0]}
        print(f"{name:12} {means}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "forecast.json").write_text(json.dumps(found, indent=1, default=bool))


if __name__ == "__main__":
    main()
