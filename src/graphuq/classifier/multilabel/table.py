"""Tables of tags: one row for each row of the fit, and one row for each tag."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.table import checked_ids, given_codes, ranks
from graphuq.utils.extras import require_extra
from graphuq.utils.frames import made_frame

if TYPE_CHECKING:
    import pandas as pd

SEPARATOR = ";"  # between the names of the tags of a row
FLOOR = 1e-12  # least probability whose logarithm is taken


def joined(codes: np.ndarray, names: Sequence[Any]) -> list[str | None]:
    """Return the names of the tags of each row as one text, None where none of them is known."""
    texts = [str(name) for name in names]
    return [
        SEPARATOR.join(text for text, code in zip(texts, row, strict=True) if code > 0)
        if any(code >= 0 for code in row)
        else None
        for row in codes.tolist()
    ]


def frame_of_tags(p: Float[np.ndarray, "N T"], names: Sequence[Any], ids: Any) -> "pd.DataFrame":
    """Return the table of rows with these probabilities of the tags."""
    errors = np.minimum(p, 1 - p).sum(axis=1)
    columns: dict[str, Any] = {"id": checked_ids(ids, len(p))}
    columns["tags"] = joined((p > 0.5).astype(int), names)
    columns |= {f"probability_{name}": p[:, t] for t, name in enumerate(names)}
    return made_frame(columns | {"expected_errors": errors, "rank": ranks(-errors)})


def table_of_tags(classifier: Any, ids: Any) -> "pd.DataFrame":
    """Return the table of the rows of the fit; see `MultilabelClassifier.to_dataframe`."""
    names = classifier.classes_.tolist()
    results = [one.result_ for one in classifier.estimators_]
    given = np.column_stack([given_codes(result) for result in results])
    table = frame_of_tags(classifier.tag_probabilities_, names, ids)
    table["has_evidence"] = np.logical_and.reduce([r.has_evidence for r in results])
    table["given"] = np.array(joined(given, names), dtype=object)
    table["n_given"] = (given >= 0).sum(axis=1)
    return table


def summary_of_tags(classifier: Any) -> "pd.DataFrame":
    """Return the table of the tags; see `MultilabelClassifier.tags_`."""
    require_extra("tables")
    import pandas as pd

    rows = []
    for name, one in zip(classifier.classes_.tolist(), classifier.estimators_, strict=True):
        result = one.result_
        codes = given_codes(result)
        trust = result.trust
        rows.append(
            {
                "tag": name,
                "n_labels": int((codes >= 0).sum()),
                "n_with": int((codes == 1).sum()),
                "share": float(one.label_distributions_[:, 1].mean()),
                "log_score": _log_score(result),
                "verdict": trust.level,
                "reasons": " ".join(trust.reasons),
            }
        )
    return pd.DataFrame(rows)


def _log_score(result: Any) -> float:
    """Return the mean log probability of the given labels, each from all others of its tag."""
    try:
        p = kept_leave_one_out(result).of_class
    except IncompatibleParts:
        return float("nan")
    codes = given_codes(result)[result.posterior.labelled]
    return float(np.log(np.maximum(p[np.arange(len(codes)), codes], FLOOR)).mean())
