"""Log scores of the corpus on which the default was learnt, of its sets that need no package.

``python tests/frozen/corpus_score.py`` writes ``corpus_score.json`` beside this file; see
``cases.py`` for when to do so.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
if str(ROOT / "benchmarks") not in sys.path:
    sys.path.insert(0, str(ROOT / "benchmarks"))

import corpus  # noqa: E402
from corpus_peers import Problem, default_graph, graphuq  # noqa: E402
from corpus_scores import evaluate  # noqa: E402

SCORES = Path(__file__).with_name("corpus_score.json")
SETS = [name for name in corpus.NAMES if name not in (*corpus.KEEL, *corpus.AEON)]
RATES = (1, 5)  # labels a class
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "expectation propagation": {"inference": "expectation-propagation"},
}


def score_of(name: str, per_class: int, method: str) -> float:
    """Return the mean log score of the unlabelled rows, in nats; smaller is better."""
    X, codes = corpus.load(name)
    labelled = corpus.draw_labels(codes, per_class, 0)
    problem = Problem(name, X, codes, default_graph(X), labelled)
    found = graphuq(problem, **METHODS[method])
    return round(float(evaluate(found, codes, labelled)["log"]), 6)


def scores_of(method: str) -> dict[str, dict[str, float]]:
    """Return the score of each set, by the number of labels a class."""
    return {str(n): {name: score_of(name, n, method) for name in SETS} for n in RATES}


def mean(scores: dict[str, float]) -> float:
    """Return the mean over sets."""
    return float(np.mean(list(scores.values())))


def main() -> None:
    """Write all scores."""
    found = {method: scores_of(method) for method in METHODS}
    SCORES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
