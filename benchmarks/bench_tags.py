"""Do tags that share a graph answer better than one classifier a tag?

Log loss, micro and macro F1 at the unlabelled rows, over random draws of labelled rows, of

- ``MultilabelClassifier``, by default, with odds of components that tags have in common;
- ``one a tag``: the same default model for each tag alone;
- ``logistic``: scikit-learn's ``MultiOutputClassifier(LogisticRegression())``, labelled rows alone;
- ``spreading``: its ``LabelSpreading`` on 15 neighbours, one a tag.

Sets: ``words`` and ``rare`` are `make_multilabel_classification` with two tags a row and with one;
``digits`` are 600 of scikit-learn's digits with six tags made of the digit, such as "even" and "has
a loop"; ``topics`` are 500 texts, each of one to three posts of six newsgroups, which needs the
folder GRAPHUQ_DATA. Method: expectation propagation.

    python benchmarks/bench_tags.py digits --labels 30 --draws 3
"""

import argparse
import os
import tarfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.semi_supervised import LabelSpreading

import graphuq as gq

DIGIT_TAGS = [{0, 6, 8, 9}, {0, 2, 4, 6, 8}, {2, 3, 5, 7}, {0, 3, 6, 8, 9}, {5, 6, 7, 8, 9},
              {1, 4, 7}]  # fmt: skip
POSTS = "newsgroups/six-groups-19997.tar.xz"
N_POSTS, N_LETTERS = 250, 1_500  # of each group, and of each post
FAST = gq.GraphClassifier(inference="expectation-propagation")
FLOOR = 1e-6


def made(seed, **settings):
    """Return counts of words as unit vectors, and tags."""
    X, Y = make_multilabel_classification(
        n_samples=500, n_features=20, n_classes=5, random_state=seed, **settings
    )
    return X / np.linalg.norm(X, axis=1)[:, None], Y


def digits(seed):
    """Return pictures of digits, and tags of the digit."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))[:600]
    return X[rows], np.array([[int(d in tag) for tag in DIGIT_TAGS] for d in y[rows].tolist()])


def topics(seed):
    """Return texts that join posts of several groups, and these groups."""
    groups = {}
    with tarfile.open(Path(os.environ["GRAPHUQ_DATA"]) / POSTS) as archive:
        for member in archive:
            own = groups.setdefault(member.name.split("/")[-2], []) if member.isfile() else None
            if own is not None and len(own) < N_POSTS:
                own.append(
                    archive.extractfile(member).read().decode("latin-1").partition("\n\n")[2]
                )
    names, rng = sorted(groups), np.random.default_rng(seed)
    Y, texts = np.zeros((500, len(names)), int), []
    for row in Y:
        own = rng.choice(len(names), rng.choice([1, 2, 3], p=[0.5, 0.35, 0.15]), replace=False)
        row[own] = 1
        parts = [groups[names[g]][rng.integers(N_POSTS)][:N_LETTERS] for g in own]
        texts.append("\n".join(parts))
    words = TfidfVectorizer(
        sublinear_tf=True, min_df=2, max_df=0.5, stop_words="english", token_pattern=r"[a-z]{3,}"
    )
    return words.fit_transform(texts), Y


SETS = {
    "words": lambda seed: made(seed, n_labels=2, length=50),
    "rare": lambda seed: made(seed, n_labels=1, length=100),
    "digits": digits,
    "topics": topics,
}


def labelled_rows(Y, n_labels, rng):
    """Return random rows in which each tag occurs, and is absent."""
    while True:
        rows = np.sort(rng.permutation(len(Y))[:n_labels])
        if Y[rows].sum(axis=0).min() > 0 and Y[rows].sum(axis=0).max() < n_labels:
            return rows


def answers(X, Y, rows):
    """Return the name and the probabilities of each method, shape (N, T)."""
    given = np.full(Y.shape, -1)
    given[rows] = Y[rows]
    yield "MultilabelClassifier", gq.MultilabelClassifier(FAST).fit(X, given).tag_probabilities_
    model = gq.models.Average(label_design="random")
    alone = [clone(FAST).set_params(model=model).fit(X, y) for y in given.T]
    yield "one a tag", np.column_stack([one.label_distributions_[:, 1] for one in alone])
    fits = [LogisticRegression(max_iter=2_000).fit(X[rows], y) for y in Y[rows].T]
    yield "logistic", np.column_stack([one.predict_proba(X)[:, 1] for one in fits])
    dense = X.toarray() if sparse.issparse(X) else X
    spread = [LabelSpreading(kernel="knn", n_neighbors=15).fit(dense, y) for y in given.T]
    p = np.column_stack([one.label_distributions_[:, 1] for one in spread])
    yield "spreading", np.nan_to_num(p, nan=0.5)


def scores(p, Y):
    """Return log loss, micro F1 and macro F1."""
    q = np.clip(p, FLOOR, 1 - FLOOR)
    loss = -(Y * np.log(q) + (1 - Y) * np.log1p(-q)).mean()
    kinds = ("micro", "macro")
    return [loss, *(f1_score(Y, p > 0.5, average=kind, zero_division=0) for kind in kinds)]


def main():
    """Print one line for each method: means over draws, and the paired difference of log loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", choices=SETS)
    parser.add_argument("--labels", type=int, default=30)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets:
        found = {}
        start = time.perf_counter()
        for seed in range(given.first, given.first + given.draws):
            X, Y = SETS[name](seed)
            rows = labelled_rows(Y, given.labels, np.random.default_rng([seed, given.labels]))
            rest = np.setdiff1d(np.arange(len(Y)), rows)
            for method, p in answers(X, Y, rows):
                found.setdefault(method, []).append(scores(p[rest], Y[rest]))
        first = np.array(found["MultilabelClassifier"])[:, 0]
        print(f"{name}, {given.labels} labelled rows, {time.perf_counter() - start:.0f} s")
        for method, values in found.items():
            table = np.array(values)
            worse = table[:, 0] - first
            error = worse.std(ddof=1) / np.sqrt(len(worse)) if len(worse) > 1 else np.nan
            loss, micro, macro = table.mean(axis=0)
            print(
                f"  {method:22s} loss {loss:.3f} ({worse.mean():+.3f} ± {error:.3f})  "
                f"micro {micro:.3f}  macro {macro:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
