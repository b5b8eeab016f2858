"""Predictions for rows outside the graph: the rules of the paper's §5, and one of graphuq."""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq import GraphClassifier
from graphuq.datasets import Dataset, load_mnist
from graphuq.errors import DisconnectedGraphWarning
from graphuq.models import Fixed
from graphuq.scores import accuracy, expected_calibration_error, log_score
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, finding
from graphuq_papers.zhu.tasks import LIKELIHOOD, PRIOR

# Option `out_of_sample` of `GraphClassifier`, and its name in the table.
RULES = {
    "nearest": "nearest node, equation (8)",
    "combination": "combination of neighbours",
    "mean": "mean of neighbours",
}
REFIT = "new fit with these rows in the graph"
MODELS: dict[str, dict[str, Any]] = {  # settings of `GraphClassifier`
    "Zhu et al.": {
        "weights": "unweighted",
        "laplacian": "unnormalized",
        "model": Fixed(PRIOR, LIKELIHOOD),
        "inference": "laplace",
    },
    "default": {"inference": "expectation-propagation"},
}


_KEYS = ("pair", "model", "rule", "draw")  # columns that are not averaged


def _nearest_does(rows: Sequence[Row]) -> Finding:
    nearest, combined, _ = (_mean(list(rows), rule, "accuracy") for rule in RULES.values())
    again = _mean(list(rows), REFIT, "accuracy")
    words = f"accuracy {nearest:.3f}, combination {combined:.3f}, fitted anew {again:.3f}"
    return finding(combined - nearest < 0.01, words)


@experiment(
    Claim("A new row may have its nearest node's answer: combining gains little.", _nearest_does)
)
def outside(context: Context) -> Outcome:
    """Predictions for rows outside the graph: three rules, and a new fit that includes them."""
    n_each = context.pick(500, 2200)
    rows = []
    for digits in ((1, 2), (2, 3), (4, 9)):
        data = load_mnist(digits, n_each, folder=context.folder, rng=context.seed)
        for draw in range(context.pick(1, 3)):
            rng = np.random.default_rng(1000 * context.seed + draw)
            key = {"pair": f"{digits[0]}/{digits[1]}", "draw": draw}
            rows += [key | row for row in _draw_rows(data, n_each, rng)]
    table = _means_over_draws(rows)
    text = "; ".join(
        f"{rule}: accuracy {_mean(table, rule, 'accuracy'):.4f}, log score "
        f"{_mean(table, rule, 'log score'):.3f}, {_mean(table, rule, 'seconds'):.2f} s"
        for rule in (*RULES.values(), REFIT)
    )
    return Outcome(
        table, f"Means over pairs and models; {n_each} rows are outside the graph. {text}."
    )


def _draw_rows(data: Dataset, n_inside: int, rng: np.random.Generator) -> list[Row]:
    """Return the scores of each model and rule for one random choice of rows in the graph."""
    order = rng.permutation(len(data.classes))
    inside, held = np.sort(order[:n_inside]), np.sort(order[n_inside:])
    return [
        {"model": model, **row}
        for model, settings in MODELS.items()
        for row in _compare(data, inside, held, settings, rng)
    ]


def _means_over_draws(rows: list[Row]) -> list[Row]:
    """Return the mean scores of each pair of digits, model and rule."""
    table = []
    for pair in dict.fromkeys(r["pair"] for r in rows):
        for model in MODELS:
            for rule in (*RULES.values(), REFIT):
                key = pair, model, rule
                draws = [r for r in rows if (r["pair"], r["model"], r["rule"]) == key]
                columns = [name for name in draws[0] if name not in _KEYS]
                means = {name: float(np.mean([r[name] for r in draws])) for name in columns}
                table.append({"pair": pair, "model": model, "rule": rule} | means)
    return table


def _mean(table: list[Row], rule: str, key: str) -> float:
    """Return the mean of a column over the rows of one rule."""
    return float(np.mean([row[key] for row in table if row["rule"] == rule]))


def _compare(
    data: Dataset,
    inside: Int[np.ndarray, " N"],
    held: Int[np.ndarray, " M"],
    settings: dict[str, Any],
    rng: np.random.Generator,
) -> list[Row]:
    """Return the scores on the held-out rows of each rule and of a new fit."""
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
        rows.append(_row(REFIT, probability, truth[held], time.perf_counter() - began))
    return rows


def _row(
    rule: str,
    probability: Float[np.ndarray, " M"],
    truth: Float[np.ndarray, " M"],
    seconds: float,
) -> Row:
    mean = 2 * probability - 1
    return {
        "rule": rule,
        "accuracy": accuracy(mean, truth),
        "log score": log_score(mean, truth),
        "calibration error": expected_calibration_error(mean, truth),
        "seconds": seconds,
    }
