"""The scikit-learn transformer behind `TableEncoder`, and its fitted numbers as plain data."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MAX_TERMS = 1_000  # words of a column of texts
MANY = 100  # texts, above which a word must occur in two of them
TEXT = "text"  # prefix of the name of the part for one column of texts


def build(
    kinds: Mapping[str, str],
    gaps: Sequence[str],
    scale: bool,
    n_rows: int,
    learnt: Mapping[str, Any] | None = None,
) -> Any:
    """Return the transformer of columns of known kinds, not yet fitted.

    Parameters
    ----------
    kinds : dict
        Kind of each column.
    gaps : sequence of str
        Columns that get an indicator of empty cells.
    scale : bool
        Whether numbers and dates are divided by their standard deviation.
    n_rows : int
        Number of rows that it will be fitted to.
    learnt : dict, optional
        What `to_plain` returned, whose categories and words are then used.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name, kind in kinds.items() if kind in ("number", "date")]
    categories = [name for name, kind in kinds.items() if kind == "category"]
    parts: list[tuple[str, Any, Any]] = []
    if numbers:
        steps = [("fill", SimpleImputer(strategy="median"))]
        steps += [("scale", StandardScaler())] if scale else []
        parts.append(("number", Pipeline(steps), numbers))
    if categories:
        known = "auto" if learnt is None else [np.array(c, object) for c in learnt["categories"]]
        one_hot = OneHotEncoder(categories=known, handle_unknown="ignore", sparse_output=False)
        fill = SimpleImputer(strategy="most_frequent")
        parts.append(("category", Pipeline([("fill", fill), ("one_hot", one_hot)]), categories))
    for name in texts_of(kinds):
        words = TfidfVectorizer(
            sublinear_tf=True,
            max_df=0.5 if learnt is None else 1.0,
            min_df=2 if n_rows > MANY and learnt is None else 1,
            max_features=MAX_TERMS,
            vocabulary=None if learnt is None else learnt["texts"][name]["words"],
        )
        parts.append((f"{TEXT} {name}", words, name))
    if gaps:
        empty = MissingIndicator(features="missing-only", error_on_new=False)
        parts.append(("empty", empty, list(gaps)))
    return ColumnTransformer(parts, sparse_threshold=0.0)


def texts_of(kinds: Mapping[str, str]) -> list[str]:
    """Return the columns of texts."""
    return [name for name, kind in kinds.items() if kind == "text"]


def to_plain(transformer: Any, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return what a fitted transformer has learnt, as lists of numbers and texts."""
    parts = transformer.named_transformers_
    plain: dict[str, Any] = {"texts": {}}
    if "number" in parts:
        plain["medians"] = parts["number"].named_steps["fill"].statistics_.tolist()
        if "scale" in parts["number"].named_steps:
            scaler = parts["number"].named_steps["scale"]
            plain["scaler"] = [a.tolist() for a in (scaler.mean_, scaler.var_, scaler.scale_)]
    if "category" in parts:
        steps = parts["category"].named_steps
        plain["most_frequent"] = steps["fill"].statistics_.tolist()
        plain["categories"] = [c.tolist() for c in steps["one_hot"].categories_]
    for name in texts_of(kinds):
        words = parts[f"{TEXT} {name}"]
        plain["texts"][name] = {
            "words": words.get_feature_names_out().tolist(),
            "idf": words.idf_.tolist(),
        }
    return plain


def from_plain(
    plain: Mapping[str, Any], kinds: Mapping[str, str], gaps: Sequence[str], scale: bool
) -> Any:
    """Return the fitted transformer that `to_plain` took apart.

    It is fitted to two rows that have the right columns, categories and gaps. Then it gets the
    stored numbers.
    """
    transformer = build(kinds, gaps, scale, 2, plain).fit(_example(plain, kinds, gaps))
    parts = transformer.named_transformers_
    if "number" in parts:
        steps = parts["number"].named_steps
        steps["fill"].statistics_ = np.array(plain["medians"])
        if scale:
            scaler = steps["scale"]
            scaler.mean_, scaler.var_, scaler.scale_ = map(np.array, plain["scaler"])
    if "category" in parts:
        fill = parts["category"].named_steps["fill"]
        fill.statistics_ = np.array(plain["most_frequent"], dtype=object)
    for name, words in plain["texts"].items():
        parts[f"{TEXT} {name}"].idf_ = np.array(words["idf"])
    return transformer


def _example(
    plain: Mapping[str, Any], kinds: Mapping[str, str], gaps: Sequence[str]
) -> "pd.DataFrame":
    """Return two rows of known values; the second is empty where the fit had gaps."""
    import pandas as pd

    medians, frequent = iter(plain.get("medians", ())), iter(plain.get("most_frequent", ()))
    columns = {}
    for name, kind in kinds.items():
        if kind == "text":
            columns[name] = pd.Series([plain["texts"][name]["words"][0]] * 2, dtype=object)
            continue
        value = next(frequent if kind == "category" else medians)
        values = [value, np.nan if name in gaps else value]
        columns[name] = pd.Series(values, dtype=object if kind == "category" else np.float64)
    return pd.DataFrame(columns)
