"""The report of a result: tables and numbers, and the HTML page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.validation import check_is_fitted

from graphuq import acquisition, scores
from graphuq.classifier.regressor.regressor import GraphRegressor
from graphuq.classifier.regressor.values import numbers_of
from graphuq.errors import IncompatibleParts, require
from graphuq.plots.panels import functional_words, names_of_classes
from graphuq.report.calibration import with_calibration
from graphuq.report.data import middle_of_cell, node_data, places_of
from graphuq.report.figures import ALTERNATIVES, chain_figures, result_figures
from graphuq.report.numbers import write_numbers_report
from graphuq.report.thumbnails import picture
from graphuq.results import label_numbers
from graphuq.results.average_parts import block_weights
from graphuq.results.errors_left import expected_errors
from graphuq.results.label_checks import suspect_labels
from graphuq.results.label_numbers import (
    class_codes,
    is_labelled,
    most_certain,
    most_uncertain,
)
from graphuq.results.result import Result
from graphuq.results.sampling import convergence_table, is_sampled
from graphuq.results.summary import CERTAIN, class_rows, quantiles_of_draws, uncertain_line
from graphuq.results.table import checked_ids
from graphuq.utils.extras import require_extra
from graphuq.utils.html import write_page

N_LISTED = 20  # nodes in the lists of those to label next and of the most certain ones
N_SUSPECT = 5  # given labels in the list of those that are probably wrong
N_FIRST = 5  # nodes to label next that are shown at once
ADD = "Then call classifier.add_labels(rows, classes), or label on the page of graphuq label."


def write_report(
    result: Result | GraphRegressor,
    path: str | Path,
    *,
    title: str = "graphuq report",
    class_names: Sequence[Any] | np.ndarray | None = None,
    ids: Sequence[Any] | np.ndarray | None = None,
    truth: Float[np.ndarray, " N"] | None = None,
    images: Float[np.ndarray, "N h w"] | None = None,
) -> None:
    """Write a self-contained HTML report: verdict, map and table of the nodes, and settings.

    In a browser that runs its script, the report has a map with zoom, hover and lasso, a table to
    sort, filter and search, and lists to copy or download. Without the script it has the same
    figures and tables as before. It shows at most 50,000 nodes and stays below 2 MB.

    Parameters
    ----------
    result : Result or GraphRegressor
        A result of classes, such as ``classifier.result_``, or a fitted regressor, whose report
        shows predicted numbers and how many of the given ones their intervals hold.
    path : path
        The HTML file to write. It needs no other file and no network.
    title : str
    class_names : sequence, optional
        Names of the classes in the order of their codes: −1 and +1, or 0 to K − 1. By default
        those of the result. A regressor has none.
    ids : sequence of length N, optional
        Names of the nodes; by default their indices.
    truth : numpy.ndarray, shape (N,), optional
        True labels, ±1 or codes from 0, or true numbers; NaN where unknown. They add accuracy and
        calibration, and the verdict then takes the calibration into account.
    images : numpy.ndarray, shape (N, h, w), optional
        Pictures of the nodes; large numbers are dark.

    Raises
    ------
    InvalidInput
        If ``result`` is something else, such as a classifier, or ``ids`` or ``images`` do not
        have one entry for each node, or a regressor is given ``class_names``.
    StorageError
        If the file cannot be written.
    MissingPackage
        If the extra ``graphuq[report]`` is not installed.
    """
    require_extra("report")
    require(
        isinstance(result, Result | GraphRegressor),
        "result",
        f"a {type(result).__name__}",
        "give a Result, such as classifier.result_, or a GraphRegressor",
    )
    if isinstance(result, GraphRegressor):
        check_is_fitted(result)
        words = "given for a regressor, which has no classes"
        require(class_names is None, "class_names", words, "leave it out")
        known = None if truth is None else numbers_of(truth, "truth", "give numbers")
        n_rows = len(result.transduction_)
        identifiers = _checked_ids(n_rows, ids, truth=known, images=images)
        write_numbers_report(result, path, title=title, ids=identifiers, truth=known, images=images)
        return
    identifiers = _checked_ids(len(result.has_evidence), ids, images=images)
    names = names_of_classes(result, class_names)
    (next_nodes, why_next), most = _to_label_next(result), most_certain(result, N_LISTED)
    scored = scores.where_known(label_numbers.label_mean(result), truth, result.posterior.labelled)
    sampled = is_sampled(result)
    nodes = node_data(result, names, identifiers, next_nodes=next_nodes, truth=truth, images=images)
    trust = with_calibration(result.trust, scored)
    accuracy = None if scored is None else _accuracy(*scored)
    suspect = _suspect(result, identifiers, names, images)
    write_page(
        path,
        "graphuq.report",
        "template.html",
        script="report.js",
        styles=("report.css",),
        title=title,
        result=result,
        n_nodes=len(identifiers),
        diagnostics=result.diagnostics,
        trust=trust,
        names=names,
        n_labelled=len(result.posterior.labels),
        multiclass=label_numbers.label_mean(result).ndim == 2,
        classes=list(zip(names, class_rows(result), strict=True)),
        cards=_cards(result, scored),
        next_rows=_rows(result, identifiers, names, next_nodes, images),
        n_first=N_FIRST,
        why_next=why_next,
        most_rows=_rows(result, identifiers, names, most, images),
        suspect=suspect,
        to_check=_to_check(result, bool(suspect)),
        learnt=_learnt(result),
        learnt_by_sampling=any(np.ndim(v) == 2 for v in result.hyperparameters.values()),
        worst=_worst_functionals(result, names) if sampled else [],
        sampled=sampled,
        accuracy=accuracy,
        calibration=None if scored is None else _calibration(*scored),
        figures=result_figures(result, names, scored, *places_of(nodes)),
        alternatives=ALTERNATIVES,
        chains=chain_figures(result, names) if sampled else {},
        nodes=nodes,
        n_shown=nodes["n_shown"],
        n_thumbnails=0 if images is None else nodes["thumbnails"]["count"],
    )


def _checked_ids(n_nodes: int, ids: Any, **others: Any) -> np.ndarray:
    """Return the names of the nodes, after a check that all arrays have an entry for each."""
    identifiers = checked_ids(ids, n_nodes)
    for name, values in others.items():
        if values is not None:
            found = f"{len(values)} entries for {n_nodes} nodes"
            require(len(values) == n_nodes, name, found, "give one for each node")
    return identifiers


def _to_label_next(result: Result) -> tuple[Int[np.ndarray, " M"], str]:
    """Return a diverse batch of nodes to label, and how they were chosen."""
    try:
        nodes = acquisition.query(result, N_LISTED)
    except IncompatibleParts:  # a point has no covariances
        words = "The least certain unlabelled nodes. A point estimate cannot tell which of them "
        return most_uncertain(result, N_LISTED), f"{words}repeat each other. {ADD}"
    words = "Uncertain nodes, each chosen as if those before it were labelled, so that the batch "
    return nodes, f"{words}does not repeat itself. {ADD}"


def _cards(result: Result, scored: tuple[np.ndarray, np.ndarray] | None) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page, each with its words."""
    free = len(result.has_evidence) - len(result.posterior.labelled)
    cards = []
    try:
        errors = expected_errors(result)
        cards += [
            (
                f"{100 * (1 - errors.expected / free):.1f} %" if free else "–",
                f"expected accuracy of {free:,} unlabelled nodes: their mean probability",
            ),
            (
                f"{errors.expected:,.0f}",
                f"errors left: expected wrong labels, 90 % interval {errors.lower:,.0f} to "
                f"{errors.upper:,.0f}",
            ),
        ]
    except IncompatibleParts:
        cards += [("–", "errors left: a point estimate has no probabilities of errors")]
    if scored is not None:
        return [
            *cards,
            (
                f"{100 * scores.accuracy(*scored):.1f} %",
                f"true accuracy: {_n_wrong(*scored):,} wrong labels among {len(scored[1]):,} "
                "of known class",
            ),
            (f"{scores.expected_calibration_error(*scored):.3f}", "expected calibration error"),
        ]
    certain = result.probabilities[~is_labelled(result)].max(axis=1) >= CERTAIN
    share = f"{100 * certain.mean():.0f} %" if len(certain) else "–"
    return [*cards, (share, f"of the unlabelled nodes have a probability of {CERTAIN} or more")]


def _n_wrong(label_mean: np.ndarray, truth: np.ndarray) -> int:
    """Return the number of wrong labels."""
    return round(len(truth) * (1 - scores.accuracy(label_mean, truth)))


def _rows(
    result: Result, ids: np.ndarray, names: list[str], nodes: np.ndarray, images: np.ndarray | None
) -> list[dict]:
    """Return a table row for each node: its two most probable classes and their probabilities."""
    best, listed = class_codes(result), []
    for node in nodes:
        first, others = best[node], result.probabilities[node].copy()
        others[first] = -1.0
        shown = middle_of_cell(result.probabilities[node])
        second = int(others.argmax())
        listed.append(
            {
                "id": ids[node],
                "label": names[first],
                "probability": shown[first],
                "second": names[second],
                "second_probability": shown[second],
                "mcse": result.mcse[node].max(),
                "evidence": bool(result.has_evidence[node]),
                "picture": None if images is None else picture(images[node]),
            }
        )
    return listed


def _to_check(result: Result, any_suspect: bool) -> list[str]:
    """Return sentences on given labels, nodes without evidence, and uncertain nodes."""
    alone = int((~result.has_evidence).sum())
    labels = "Given all other labels, these given labels are improbable. Look at them again."
    sentences = [labels if any_suspect else "No given label is improbable, given all others."]
    if alone:
        sentences.append(f"{alone:,} nodes have no label in their part of the graph (no evidence).")
    return [*sentences, f"{uncertain_line(result)} The table of the nodes begins there."]


def _suspect(
    result: Result, ids: np.ndarray, names: list[str], images: np.ndarray | None
) -> list[dict]:
    """Return a table row for each label that is probably wrong."""
    name_of = dict(zip(result.classes.tolist(), names, strict=True))
    return [
        row
        | {"id": ids[row["node"]], "given": name_of[row["given"]], "other": name_of[row["other"]]}
        | {"picture": None if images is None else picture(images[row["node"]])}
        for row in suspect_labels(result, N_SUSPECT, likely_wrong=True).to_dict(orient="records")
    ]


def _learnt(result: Result) -> list[dict[str, Any]]:
    """Return median and 90 % interval of each sampled hyperparameter, and all chosen values."""
    found = []
    for name, value in result.hyperparameters.items():
        sampled = np.ndim(value) == 2
        if sampled and value.dtype != bool and (quantiles := quantiles_of_draws(value)):
            low, median, high = quantiles
            prior = repr(result.posterior.learnt.get(name, result.posterior.prior))
            row = {"prior": prior, "low": low, "median": median, "high": high}
        elif sampled and value.dtype == bool:
            words = f"probability {np.mean(value):.2f}"
            prior = repr(result.posterior.prior)
            row = {"prior": prior, "low": None, "median": words, "high": None}
        elif isinstance(value, bool):
            words = "yes" if value else "no"
            row = {"prior": "chosen by the evidence", "low": None, "median": words, "high": None}
        elif isinstance(value, float | int):
            row = {"prior": "chosen by the evidence", "low": None, "median": value, "high": None}
        else:
            continue
        found.append({"name": name, **row})
    prior = repr(result.posterior.prior)
    for name, share in block_weights(result).items():
        words = f"probability {share:.2f}"
        found.append({"name": name, "prior": prior, "low": None, "median": words, "high": None})
    return found


def _worst_functionals(result: Result, names: list[str]) -> list[dict[str, Any]]:
    """Return the five functionals with the smallest effective sample sizes."""
    table = convergence_table(result)
    slowest = sorted(table, key=lambda name: table[name]["ess_bulk"])[:5]
    return [{"name": functional_words(name, names), **table[name]} for name in slowest]


def _accuracy(label_mean: np.ndarray, truth: np.ndarray) -> list[tuple[str, float]]:
    """Return the accuracy of the most certain shares of the nodes."""
    by_share = scores.accuracy_by_certainty(label_mean, truth)
    return [(f"{share:.0%}", value) for share, value in by_share.items()]


def _calibration(label_mean: np.ndarray, truth: np.ndarray) -> list[tuple[str, float]]:
    """Return calibration error and proper scores, beside those of uniform probabilities."""
    k = label_mean.shape[1] if label_mean.ndim == 2 else 2
    chance = (1 - 1 / k) / 2
    return [
        ("expected calibration error", scores.expected_calibration_error(label_mean, truth)),
        (
            f"Brier score (uniform probabilities: {chance:.2f})",
            scores.brier_score(label_mean, truth),
        ),
        (
            f"log score (uniform probabilities: {np.log(k):.2f})",
            scores.log_score(label_mean, truth),
        ),
    ]
