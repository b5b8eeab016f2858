"""The report of a result: figures, tables and the HTML page."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from graphuq import plots, scores
from graphuq.errors import require
from graphuq.plots.panels import names_of_classes
from graphuq.plots.pictures import IMAGE_COLUMNS, IMAGE_SIZE
from graphuq.results.result import Result
from graphuq.utils.html import embedded, write_page

N_LISTED = 20  # nodes in each list of the most and least certain ones
N_SUSPECT = 5  # given labels in the list of those that are probably wrong


def write_report(
    result: Result,
    path: str | Path,
    *,
    title: str = "graphuq report",
    class_names: Sequence[Any] | np.ndarray | None = None,
    ids: Sequence[Any] | np.ndarray | None = None,
    truth: Float[np.ndarray, " N"] | None = None,
    images: Float[np.ndarray, "N h w"] | None = None,
) -> None:
    """Write a self-contained HTML report: results, convergence diagnostics, and settings.

    Parameters
    ----------
    result : Result
    path : path
        The HTML file to write. It needs no other file and no network.
    title : str
    class_names : sequence, optional
        Names of the classes in the order of their codes: −1 and +1, or 0 to K − 1. By default
        those of the result.
    ids : sequence of length N, optional
        Names of the nodes; by default their indices.
    truth : numpy.ndarray, shape (N,), optional
        True labels, ±1 or codes from 0; NaN where unknown. They add accuracy and calibration.
    images : numpy.ndarray, shape (N, h, w), optional
        Pictures of the nodes, shown for the most and the least certain ones.

    Raises
    ------
    InvalidInput
        If ``result`` is something else, such as a classifier.
    StorageError
        If the file cannot be written.
    """
    require(
        isinstance(result, Result),
        "result",
        f"a {type(result).__name__}",
        "give a Result, such as classifier.result_",
    )
    multiclass = result.label_mean.ndim == 2
    codes = list(range(result.posterior.n_classes)) if multiclass else [-1, 1]
    names = names_of_classes(result, class_names)
    identifiers = np.arange(result.n_nodes) if ids is None else np.asarray(ids)
    most, least = result.most_certain(N_LISTED), result.most_uncertain(N_LISTED)
    scored = scores.where_known(result.label_mean, truth, result.posterior.labelled)
    sampled = result.is_sampled
    pictures = {}
    if images is not None and len(least):
        pictures = {
            "Least certain": _pictures(result, images, least, names),
            "Most certain": _pictures(result, images, most, names),
        }
    write_page(
        path,
        "graphuq.report",
        "template.html",
        title=title,
        result=result,
        diagnostics=result.diagnostics,
        trust=result.trust,
        names=names,
        multiclass=multiclass,
        counts=[int((result.labels == code).sum()) for code in codes],
        given=[int((result.posterior.labels == code).sum()) for code in codes],
        listed=[
            (
                "Least certain nodes",
                "Label these next, or check them.",
                _rows(result, identifiers, names, least),
            ),
            ("Most certain nodes", "", _rows(result, identifiers, names, most)),
        ],
        suspect=_suspect(result, identifiers, names),
        learnt=_learnt(result),
        worst=_worst_functionals(result) if sampled else [],
        sampled=sampled,
        accuracy=None if scored is None else _accuracy(*scored),
        calibration=None if scored is None else _calibration(*scored),
        figures=_figures(result, names, scored),
        pictures=pictures,
        chains=_chain_figures(result) if sampled else {},
    )


def _figures(
    result: Result, names: list[str], scored: tuple[np.ndarray, np.ndarray] | None
) -> dict[str, str]:
    """Figures of the result, as embedded pictures; which ones there are depends on the result."""
    found = {"Certainty": _one_panel(lambda ax: plots.plot_certainty(result, names, ax=ax))}
    if result.posterior.spectrum.has_eigenpairs:
        found = {
            "Spectrum": _one_panel(
                lambda ax: plots.plot_spectrum(result.posterior.spectrum, ax=ax)
            ),
            "Embedding": _one_panel(lambda ax: plots.plot_embedding(result, names, ax=ax)),
        } | found
    if scored is not None:
        curve = scores.reliability_curve(*scored)
        found["Reliability"] = _one_panel(lambda ax: plots.plot_reliability(curve, ax=ax))
    return found


def _one_panel(draw: Callable[[Axes], Axes]) -> str:
    """Draw into a figure that pyplot does not manage, and embed it."""
    figure, axes = plots.panels()
    draw(axes[0])
    return embedded(figure)


def _pictures(
    result: Result, images: np.ndarray, nodes: Int[np.ndarray, " M"], names: list[str]
) -> str:
    """Images of some nodes, each under its class and the probability of it."""
    figure, axes = plots.panels(len(nodes), IMAGE_COLUMNS, IMAGE_SIZE)
    plots.plot_images(result, images, nodes, class_names=names, axes=axes)
    return embedded(figure)


def _chain_figures(result: Result) -> dict[str, str]:
    """Traces, and effective sample sizes and R-hat against the number of draws."""
    trace, traces = plots.panels(2, 1, (8.0, 2.3))
    drawn = plots.plot_trace(result, axes=traces)
    for unused in traces[len(drawn) :]:
        unused.remove()
    ess, both = plots.panels(2, 2, (4.0, 2.8))
    plots.plot_ess(result, axes=both)
    return {"Trace": embedded(trace), "Effective sample size": embedded(ess)}


def _rows(result: Result, ids: np.ndarray, names: list[str], nodes: np.ndarray) -> list[dict]:
    """Return a table row for each node: its two most probable classes and their probabilities."""
    probability = result.class_probabilities
    listed = []
    for node in nodes:
        second, first = np.argsort(probability[node], kind="stable")[-2:]
        if result.label_mean.ndim == 1:  # a tie is broken as in `Result.labels`
            first = int(result.labels[node] > 0)
        listed.append(
            {
                "id": ids[node],
                "label": names[first],
                "probability": probability[node, first],
                "next": f"{names[second]} {probability[node, second]:.3f}",
                "label_mean": result.label_mean[node],
                "mcse": result.label_mcse[node].max(),
                "evidence": bool(result.has_evidence[node]),
            }
        )
    return listed


def _suspect(result: Result, ids: np.ndarray, names: list[str]) -> list[dict]:
    """Return a table row for each label that should be checked; see `Result.labels_to_check`."""
    name_of = dict(zip(result.classes.tolist(), names, strict=True))
    return [
        row
        | {"id": ids[row["node"]], "given": name_of[row["given"]], "other": name_of[row["other"]]}
        for row in result.labels_to_check(N_SUSPECT).to_dict(orient="records")
    ]


def _learnt(result: Result) -> list[dict[str, Any]]:
    """Return median and 90 % interval of each learnt hyperparameter."""
    return [
        dict(zip(("low", "median", "high"), np.quantile(draws, (0.05, 0.5, 0.95)), strict=True))
        | {"name": name, "prior": repr(result.posterior.learnt[name])}
        for name, draws in result.hyperparameters.items()
        if np.ndim(draws) == 2
    ]


def _worst_functionals(result: Result) -> list[dict[str, Any]]:
    """Return the five functionals with the smallest effective sample sizes."""
    table = result.convergence_table()
    names = sorted(table, key=lambda name: table[name]["ess_bulk"])[:5]
    return [{"name": name, **table[name]} for name in names]


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
