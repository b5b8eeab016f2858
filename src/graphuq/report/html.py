"""Renders the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq import plots, scores
from graphuq.inference.draws import Draws
from graphuq.results.result import Result
from graphuq.results.uncertainty import with_unseen
from graphuq.utils.html import embedded, write_page

N_LISTED = 20


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
    """Write a page that says what was run, whether to believe it, and what came out.

    Parameters
    ----------
    result : Result
    path : path
        The HTML file; it needs no other file and no network.
    title : str
    class_names : sequence, optional
        Names of the classes: of −1 and +1, or of the codes from 0. By default those themselves.
    ids : sequence of length N, optional
        Names of the nodes; by default their indices.
    truth : numpy.ndarray, shape (N,), optional
        True labels, ±1 or codes (NaN where unknown): adds accuracy and calibration.
    images : numpy.ndarray, shape (N, h, w), optional
        Pictures of the nodes, shown for the most and least certain.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    several = result.label_mean.ndim == 2
    codes = list(range(result.posterior.n_classes)) if several else [-1, 1]
    usual: Any = codes if several else ("-1", "+1")
    named = [str(name) for name in (usual if class_names is None else class_names)]
    names = with_unseen(named, len(codes))
    identifiers = np.arange(result.n_nodes) if ids is None else np.asarray(ids)
    most, least = result.most_certain(N_LISTED), result.most_uncertain(N_LISTED)
    figures = {"Certainty": plots.plot_certainty(result, names)}
    if result.posterior.spectrum.has_eigenpairs:
        figures = {
            "Spectrum": plots.plot_spectrum(result.posterior.spectrum),
            "Embedding": plots.plot_embedding(result),
        } | figures
    judged = scores.where_known(result.label_mean, truth, result.posterior.labelled)
    if judged is not None:
        figures["Reliability"] = plots.plot_reliability(scores.reliability_curve(*judged))
    pictures = {}
    if images is not None and len(least):
        pictures = {
            "Least certain": plots.plot_images(
                result, images, least, "Least certain: look here", names
            ),
            "Most certain": plots.plot_images(result, images, most, "Most certain", names),
        }
    chains = {}
    if sampled := isinstance(result.answer, Draws):
        chains = {"Trace": plots.plot_trace(result), "Effective samples": plots.plot_ess(result)}
    write_page(
        path,
        "graphuq.report",
        "template.html",
        title=title,
        result=result,
        diagnostics=result.diagnostics,
        names=names,
        several=several,
        counts=[int((result.labels == code).sum()) for code in codes],
        given=[int((result.posterior.labels == code).sum()) for code in codes],
        no_evidence=int((~result.has_evidence).sum()),
        listed=[
            (
                "Least certain nodes",
                "the next ones to label",
                _rows(result, identifiers, names, least),
            ),
            ("Most certain nodes", "", _rows(result, identifiers, names, most)),
        ],
        learnt=_learnt(result),
        worst=_worst_functionals(result) if sampled else [],
        sampled=sampled,
        accuracy=None if judged is None else _accuracy(*judged),
        calibration=None if judged is None else _calibration(*judged),
        figures={name: embedded(figure) for name, figure in figures.items()},
        pictures={name: embedded(figure) for name, figure in pictures.items()},
        chains={name: embedded(figure) for name, figure in chains.items()},
    )


def _rows(result: Result, ids: np.ndarray, names: list[str], nodes: np.ndarray) -> list[dict]:
    """A row a node: its two most probable classes, and how sure that is."""
    probability = result.class_probabilities
    listed = []
    for node in nodes:
        second, first = np.argsort(probability[node], kind="stable")[-2:]
        if result.label_mean.ndim == 1:  # as `labels` breaks a tie
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


def _learnt(result: Result) -> list[dict[str, Any]]:
    """Each number that was learnt: median, and where 90 % of it lies."""
    return [
        dict(zip(("low", "median", "high"), np.quantile(draws, (0.05, 0.5, 0.95)), strict=True))
        | {"name": name, "law": repr(result.posterior.learnt[name])}
        for name, draws in result.hyperparameters.items()
        if draws.ndim == 2
    ]


def _worst_functionals(result: Result) -> list[dict[str, Any]]:
    table = result.convergence_table()
    names = sorted(table, key=lambda name: table[name]["ess_bulk"])[:5]
    return [{"name": name, **table[name]} for name in names]


def _accuracy(label_mean: np.ndarray, truth: np.ndarray) -> list[tuple[str, float]]:
    by_share = scores.accuracy_by_certainty(label_mean, truth)
    return [(f"{share:.0%}", value) for share, value in by_share.items()]


def _calibration(label_mean: np.ndarray, truth: np.ndarray) -> list[tuple[str, float]]:
    k = label_mean.shape[1] if label_mean.ndim == 2 else 2
    chance = (1 - 1 / k) / 2
    return [
        ("expected calibration error", scores.expected_calibration_error(label_mean, truth)),
        (f"Brier score (by chance {chance:.2f})", scores.brier_score(label_mean, truth)),
        (f"log score (by chance {np.log(k):.2f})", scores.log_score(label_mean, truth)),
    ]
