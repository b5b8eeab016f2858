"""Rows outside the graph: the paper's rules of §5 and ours, on rows held out."""

import time
import warnings
from typing import Any

import numpy as np

from graphuq.classifier.classifier import GraphClassifier
from graphuq.datasets import load_mnist
from graphuq.errors import DisconnectedGraphWarning
from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.zhu.tasks import LIKELIHOOD, PRIOR
from graphuq.scores import accuracy, expected_calibration_error, log_score

RULES = {"nearest": "nearest node (8)", "combination": "combination", "mean": "neighbours' mean"}
MODELS: dict[str, dict[str, Any]] = {
    "Zhu et al.": {
        "weights": "unweighted",
        "laplacian": "unnormalized",
        "prior": PRIOR,
        "likelihood": LIKELIHOOD,
        "inference": "laplace",
    },
    "default": {"inference": "expectation-propagation"},
}


def outside(context: Context) -> Outcome:
    """Rows outside the graph by three rules, beside a fit with them inside."""
    rows = []
    for digits in ((1, 2), (2, 3), (4, 9)):
        n_each = context.pick(500, 2200)
        data = load_mnist(digits, n_each, folder=context.folder, seed=context.seed)
        for draw in range(context.pick(1, 3)):
            rng = np.random.default_rng(1000 * context.seed + draw)
            order = rng.permutation(len(data.classes))
            inside, held = np.sort(order[:n_each]), np.sort(order[n_each:])
            for model, settings in MODELS.items():
                rows += [
                    {"pair": f"{digits[0]}/{digits[1]}", "model": model, "draw": draw, **row}
                    for row in _compared(data, inside, held, settings, rng)
                ]
    table = []
    for pair in dict.fromkeys(r["pair"] for r in rows):
        for model in MODELS:
            for rule in (*RULES.values(), "in the graph"):
                own = [r for r in rows if (r["pair"], r["model"], r["rule"]) == (pair, model, rule)]
                means = {k: float(np.mean([r[k] for r in own])) for k in own[0] if k not in _KEYS}
                table.append({"pair": pair, "model": model, "rule": rule} | means)
    text = "; ".join(
        f"{rule}: accuracy {_mean(table, rule, 'accuracy'):.4f}, log score "
        f"{_mean(table, rule, 'log score'):.3f}, {_mean(table, rule, 'seconds'):.2f} s"
        for rule in (*RULES.values(), "in the graph")
    )
    return Outcome(table, f"Means over pairs and models, {n_each} rows held out. {text}.")


_KEYS = ("pair", "model", "rule", "draw")


def _mean(table: list[dict[str, Any]], rule: str, key: str) -> float:
    return float(np.mean([row[key] for row in table if row["rule"] == rule]))


def _compared(data: Any, inside: Any, held: Any, settings: Any, rng: Any) -> list[dict[str, Any]]:
    features, truth = data.features, np.where(data.classes == data.classes.min(), -1.0, 1.0)
    given = np.zeros(len(inside))
    labelled = np.concatenate([rng.choice(np.flatnonzero(truth[inside] == s), 10, replace=False)
                               for s in (-1, 1)])  # fmt: skip
    given[labelled] = truth[inside][labelled]
    classifier = GraphClassifier(n_neighbors=10, missing_label=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        classifier.fit(features[inside], given)
        rows = []
        for rule, words in RULES.items():
            classifier.out_of_sample = rule
            began = time.perf_counter()
            probability = classifier.predict_proba(features[held])[:, 1]
            rows.append(_row(words, probability, truth[held], time.perf_counter() - began))
        began = time.perf_counter()
        both = np.r_[inside, held]
        again = np.r_[given, np.zeros(len(held))]
        classifier.fit(features[both], again)
        probability = classifier.label_distributions_[len(inside) :, 1]
        rows.append(_row("in the graph", probability, truth[held], time.perf_counter() - began))
    return rows


def _row(rule: str, probability: Any, truth: Any, seconds: float) -> dict[str, Any]:
    mean = 2 * probability - 1
    return {
        "rule": rule,
        "accuracy": accuracy(mean, truth),
        "log score": log_score(mean, truth),
        "calibration error": expected_calibration_error(mean, truth),
        "seconds": seconds,
    }
