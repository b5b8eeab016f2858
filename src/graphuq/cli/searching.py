"""``--search`` and ``--proportions`` of ``graphuq classify``."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import InvalidInput, require

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
    """Turn ``labels`` or ``yes=0.4,no=0.6`` into shares by name."""
    if text is None or text == "labels":
        return text
    shares = {}
    for entry in text.split(","):
        name, _, share = entry.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            raise InvalidInput(
                "--proportions", f"{entry!r}", "write CLASS=SHARE, as in yes=0.4,no=0.6"
            ) from None
    return shares


def proportions_of(names: list[str], shares: str | Mapping[str, float] | None) -> Any:
    """In the order of classes."""
    if not isinstance(shares, Mapping):
        return shares
    require(
        set(shares) == set(names), "--proportions", f"of {sorted(shares)}", f"give those of {names}"
    )
    return [shares[name] for name in names]


def searched(
    classifier: GraphClassifier,
    parameters: dict[str, Any],
    criterion: str,
    features: Any,
    codes: np.ndarray,
    *,
    checkpoint: Path,
    quiet: bool,
) -> tuple[GraphClassifier, pd.DataFrame]:
    """The classifier of the largest evidence, not fitted, and all that was tried."""
    from graphuq.classifier.search import EvidenceSearch

    search = EvidenceSearch(
        classifier,
        parameters,
        criterion=criterion,
        refit=False,
        random_state=classifier.random_state,
        progress=not quiet,
        checkpoint=checkpoint,
    ).fit(features, codes)
    if not quiet:
        words = ", ".join(f"{name} {_shown(v)}" for name, v in search.best_params_.items())
        print(f"Largest {_of(criterion)}: {search.best_score_:.4g} at {words}")
    table = pd.DataFrame(search.results_).sort_values("objective", ascending=False)
    return search.best_estimator_, table


def _of(criterion: str) -> str:
    return "alignment" if criterion == "alignment" else "log evidence"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _value(text: str) -> Any:
    """A number, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
