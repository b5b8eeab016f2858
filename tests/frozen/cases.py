"""Eight data sets and five settings, whose answers were frozen before the house was rebuilt.

``python tests/frozen/cases.py`` writes ``answers.json`` beside this file. Do that only if the model
itself is meant to change, and say in CHANGELOG.md what it does to the log score of the corpus.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from threadpoolctl import threadpool_limits

import graphuq as gq

ANSWERS = Path(__file__).with_name("answers.json")
N_SHOWN = 12  # rows of each answer that are kept, evenly spaced, beside the means over all rows


def _scaled(features: Any) -> np.ndarray:
    return (features - features.mean(axis=0)) / features.std(axis=0)


def _moons() -> tuple[Any, Any, Any]:
    moons = gq.datasets.two_moons(120, n_features=2, noise_std=0.1)
    return "knn", moons.features, moons.classes


def _scikit_learn(load: Any, n_rows: int | None = None, standardised: bool = True) -> Any:
    def loaded() -> tuple[Any, Any, Any]:
        data = load()
        features = _scaled(data.data) if standardised else data.data
        rows = np.random.default_rng(0).permutation(len(features))[:n_rows]
        return "knn", features[rows], data.target[rows]

    return loaded


def _two_digits() -> tuple[Any, Any, Any]:
    digits = gq.datasets.load_digits((4, 9))
    return "knn", digits.data, digits.target


def _blobs() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    classes = np.repeat(np.arange(10), 20)
    return "knn", rng.normal(size=(10, 3))[classes] * 2 + rng.normal(size=(200, 3)), classes


def _network() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(2)
    classes = np.repeat([0, 1, 2], [40, 60, 80])
    odds = np.where(classes[:, None] == classes[None, :], 0.15, 0.02)
    edges = np.triu(rng.uniform(size=odds.shape) < odds, 1)
    weights = (edges | edges.T).astype(float)
    return "precomputed", weights, classes


DATA = {
    "two moons": _moons,
    "iris": _scikit_learn(load_iris),
    "wine": _scikit_learn(load_wine),
    "breast cancer": _scikit_learn(load_breast_cancer),
    "ten digits": _scikit_learn(load_digits, 600, standardised=False),
    "digits 4 and 9": _two_digits,
    "ten blobs": _blobs,
    "network": _network,
}
FIXED = {"model": gq.models.Fixed(gq.priors.Matern(0.3, 4.0), gq.likelihoods.Probit(0.1))}
SETTINGS: dict[str, tuple[int, dict[str, Any]]] = {
    "default, five labels a class": (5, {}),
    "default, two labels a class": (2, {}),
    "fixed parts": (5, FIXED),
    "fixed parts, expectation propagation": (5, FIXED | {"inference": "expectation-propagation"}),
    "expectation propagation": (5, {"inference": "expectation-propagation"}),
}
IS_SAMPLED = {name: "inference" not in settings for name, (_, settings) in SETTINGS.items()}


def labels_of(classes: np.ndarray, n_each: int) -> np.ndarray:
    """Return labels of some random rows of each class, and −1 elsewhere."""
    rng, labels = np.random.default_rng(3), np.full(len(classes), -1)
    for k in np.unique(classes):
        rows = rng.permutation(np.flatnonzero(classes == k))[:n_each]
        labels[rows] = k
    return labels


def fitted(data: str, setting: str) -> gq.GraphClassifier:
    """Return the classifier of one answer, with one thread of BLAS and OpenMP: sums round alike."""
    graph, X, classes = DATA[data]()
    n_each, parameters = SETTINGS[setting]
    with threadpool_limits(1):
        return gq.GraphClassifier(graph, **parameters).fit(X, labels_of(classes, n_each))


def shown(probabilities: np.ndarray) -> list[list[float]]:
    """Return what is frozen of an answer: means over all rows, then some rows."""
    rows = np.linspace(0, len(probabilities) - 1, N_SHOWN).astype(int)
    some = np.vstack([probabilities.mean(axis=0), probabilities[rows]])
    return np.round(some, 8).tolist()


def main() -> None:
    """Write all answers."""
    answers = {
        f"{data} | {setting}": shown(fitted(data, setting).label_distributions_)
        for data in DATA
        for setting in SETTINGS
    }
    ANSWERS.write_text(json.dumps(answers, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
