"""Options ``--search`` and ``--class-proportions`` of ``graphuq classify``."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphuq.classifier.classifier import GraphClassifier
from graphuq.cli.facts import Facts
from graphuq.errors import InvalidInput, require
from graphuq.graphs.inputs import Features

SEARCH_CHECKPOINT = ".search.json"


def parse_search(texts: list[str] | None) -> dict[str, Any]:
    """Turn ``NAME=low:high`` and ``NAME=a,b,c`` into what `EvidenceSearch` takes."""
    found: dict[str, Any] = {}
    for text in texts or []:
        name, equals, values = text.partition("=")
        require(
            bool(name and equals and values),
            "--search",
            f"{text!r}",
            "write NAME=low:high or NAME=a,b,c",
        )
        if ":" in values:
            ends = [_value(part) for part in values.split(":")]
            numbers = len(ends) == 2 and all(isinstance(end, int | float) for end in ends)
            require(numbers, "--search", f"{text!r}", "write two numbers, as in 2:60")
            found[name] = tuple(ends)
        else:
            found[name] = [_value(part) for part in values.split(",")]
    return found


def parse_proportions(text: str | None) -> str | dict[str, float] | None:
    """Turn ``yes=0.4,no=0.6`` into shares by class name; leave ``labels`` as it is."""
    if text is None or text == "labels":
        return text
    shares = {}
    for entry in text.split(","):
        name, _, share = entry.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            raise InvalidInput(
                "--class-proportions", f"{entry!r}", "write CLASS=SHARE, as in yes=0.4,no=0.6"
            ) from None
    return shares


def proportions_of(
    names: list[str], shares: str | Mapping[str, float] | None
) -> str | list[float] | None:
    """Return the shares in the order of the classes.

    Raises
    ------
    InvalidInput
        If a class has no share, or a share has no class.
    """
    if not isinstance(shares, Mapping):
        return shares
    require(
        set(shares) == set(names),
        "--class-proportions",
        f"classes {sorted(shares)}",
        f"give one share for each of {names}",
    )
    return [shares[name] for name in names]


def select_by_evidence(
    classifier: GraphClassifier,
    parameters: dict[str, Any],
    criterion: str,
    features: Features,
    codes: np.ndarray,
    *,
    checkpoint: Path,
    facts: Facts,
) -> tuple[GraphClassifier, pd.DataFrame]:
    """Return the classifier with the largest evidence, not yet fitted, and all values tried."""
    from graphuq.classifier.search import EvidenceSearch

    search = EvidenceSearch(
        classifier,
        parameters,
        criterion=criterion,
        refit=False,
        random_state=classifier.random_state,
        progress=not facts.quiet,
        checkpoint=checkpoint,
    ).fit(features, codes)
    words = ", ".join(f"{name} {_shown(v)}" for name, v in search.best_params_.items())
    best = {"criterion": _name(criterion), "score": search.best_score_,
            "parameters": dict(search.best_params_)}  # fmt: skip
    facts.say(
        "Largest {search[criterion]}: {search[score]:.4g} at {words}",
        search=best,
        shown={"words": words},
    )
    table = pd.DataFrame(search.results_).sort_values("objective", ascending=False)
    return search.best_estimator_, table


def _name(criterion: str) -> str:
    """Name of what a criterion maximises."""
    return "alignment" if criterion == "alignment" else "log evidence"


def _shown(value: object) -> str:
    """Text of a parameter value, with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _value(text: str) -> Any:
    """Return the Python literal in a text, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
