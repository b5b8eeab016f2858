"""The report of a regression: tables, numbers and figures of the page."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from graphuq import plots
from graphuq.classifier.options import is_word
from graphuq.classifier.regressor.regressor import GraphRegressor
from graphuq.classifier.regressor.rows import (
    exposure_of_fit,
    given_of_fit,
    predictive_of_fit,
    unit_of_field,
)
from graphuq.classifier.regressor.trust import COVERAGES, Predicted, held_out, left_out, trust_of
from graphuq.classifier.regressor.values import COLOR_ENDS, number_format
from graphuq.models.numbers import DEVIATIONS
from graphuq.models.predictive import Predictive
from graphuq.plots.panels import accents, add_colorbar, label_colors
from graphuq.report.data import page_data, places_of, shown_nodes
from graphuq.report.figures import drawn_panels
from graphuq.utils.html import write_page
from graphuq.utils.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_LISTED = 20  # rows to label next
N_WIDE = 1000  # rows of the widest intervals that are always on the map
ROW_BYTES = 49  # of the columns below, with the places
COVERAGE = 0.9  # of the intervals in the page
MAX_POINTS = 2000  # of a figure

OTHERS, TRUE = "Leave-one-out predictions", "Predictions and true numbers"
ALTERNATIVES = {
    "Map": "Map of the rows, coloured by predicted value; similar rows lie side by side",
    OTHERS: "Predictions of the given numbers from the others, with 90 % intervals, against the "
    "given numbers; the table beside it has the coverage",
    TRUE: "Predictions with 90 % intervals against true numbers",
    "Spectrum": "Eigenvalues of the Laplacian in ascending order",
}
"""Texts in place of the figures, for readers who cannot see them."""


def write_numbers_report(
    regressor: GraphRegressor,
    path: str | Path,
    *,
    title: str,
    ids: np.ndarray,
    truth: Float[np.ndarray, " N"] | None,
    images: Float[np.ndarray, "N h w"] | None,
) -> None:
    """Write the report of a fitted regressor; the parameters are those of `write_report`."""
    posterior, predictive = regressor.posterior_, predictive_of_fit(regressor, "measurement")
    mean, std = predictive.mean, predictive.std
    free = np.setdiff1d(np.arange(len(mean)), posterior.engine.labelled)
    next_rows = posterior.most_uncertain(free, N_LISTED, exposure_of_fit(regressor)[free])
    others, true = left_out(regressor), held_out(regressor, truth)
    show, _ = number_format(posterior.unit)
    show_end = "{:,.0f}".format if predictive.is_whole else show
    low, high = predictive.interval(COVERAGE).T
    nodes = _page_data(regressor, predictive, low, high, ids, next_rows, images)
    write_page(
        path,
        "graphuq.report",
        "numbers.html",
        script="numbers.js",
        styles=("report.css",),
        title=title,
        trust=trust_of(regressor, truth),
        cards=_cards(regressor, others, true, show),
        n_rows=len(mean),
        n_given=len(others.known),
        is_counts=posterior.model.takes_exposure,
        has_exposure=regressor.exposure_ is not None,
        n_shown=nodes["n_shown"],
        coverage=_coverage(others, true),
        next_rows=[
            {
                "id": ids[row],
                "numbers": [
                    *(show(x) for x in (mean[row], std[row])),
                    *(show_end(x) for x in (low[row], high[row])),
                ],
                "evidence": bool(regressor.has_evidence_[row]),
            }
            for row in next_rows
        ],
        hyperparameters=_hyperparameters(regressor),
        log_evidence=regressor.log_evidence_,
        settings=_settings(regressor),
        figures=_figures(regressor, others, true, *places_of(nodes)),
        alternatives=ALTERNATIVES,
        nodes=nodes,
    )


def _page_data(
    regressor: GraphRegressor,
    predictive: Predictive,
    low: Float[np.ndarray, " N"],
    high: Float[np.ndarray, " N"],
    ids: np.ndarray,
    next_rows: Int[np.ndarray, " M"],
    images: Float[np.ndarray, "N h w"] | None,
) -> dict[str, Any]:
    """Return what the map shows, as a dictionary for JSON; floats are packed by their bits.

    The script rounds them, and the page writes some of them itself. So they keep all their bits.
    """
    engine, field = regressor.posterior_.engine, regressor.transduction_
    floats = {"mean": predictive.mean, "std": predictive.std, "low": low, "high": high}
    floats["given"] = given_of_fit(regressor)
    if regressor.exposure_ is not None:
        floats["field"] = field
    widest = np.argsort(-predictive.std, kind="stable")[:N_WIDE]
    important = [next_rows, widest, engine.labelled]
    order = shown_nodes(important, len(field), ids, ROW_BYTES + 8 * (len(floats) - 5), images)
    nodes = np.sort(order)
    columns = {
        name: values[nodes].astype(np.float64).view(np.uint32) for name, values in floats.items()
    }
    return page_data(
        engine.spectrum,
        order,
        {**columns, "evidence": regressor.has_evidence_[nodes].astype(np.uint8)},
        ids,
        labelled=engine.labelled,
        next_nodes=next_rows,
        images=images,
        is_whole=predictive.is_whole,
        decimals=number_format(regressor.posterior_.unit)[1],
        field_decimals=number_format(unit_of_field(regressor))[1],
        ends={
            "mean": np.quantile(field, COLOR_ENDS).tolist(),
            "std": np.quantile(predictive.std, COLOR_ENDS).tolist(),
        },
    )


def _cards(
    regressor: GraphRegressor,
    others: Predicted,
    true: Predicted | None,
    show: Callable[[float], str],
) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page, each with its words."""
    n_rows, n_given = len(regressor.transduction_), len(others.known)
    spread = show(float(others.known.std()))
    cards = [
        (f"{n_rows:,}", f"rows, {n_given:,} of them with a given number"),
        (
            number_format(regressor.posterior_.spread)[0](regressor.noise_std_),
            f"{regressor.posterior_.noise}: standard deviation around the field",
        ),
        (
            show(others.error),
            f"leave-one-out error: root mean square; standard deviation of the numbers: {spread}",
        ),
    ]
    if true is not None:
        words = f"true error: root mean square at {len(true.known):,} rows of known number"
        cards.append((show(true.error), words))
    kind, one = ("leave-one-out", others) if true is None else ("true", true)
    inside = one.holds(COVERAGE)
    words = f"{kind} coverage of 90 % intervals: {inside.sum():,} of {len(inside):,} numbers"
    return [*cards, (f"{inside.mean():.1%}".replace("%", " %"), words)]


def _coverage(others: Predicted, true: Predicted | None) -> list[list[str]]:
    """Return a table row for each probability: the shares of numbers in its intervals."""
    shares = [COVERAGES, *(one.shares() for one in (others, true) if one is not None)]
    return [[f"{100 * share:.1f} %" for share in row] for row in zip(*shares, strict=True)]


def _hyperparameters(regressor: GraphRegressor) -> list[tuple[str, float, str]]:
    """Return name, value and origin of each hyperparameter."""
    prior = regressor.prior_
    fields = {field.name: getattr(prior, field.name) for field in dataclasses.fields(prior)}
    model = regressor.get_model()
    own = "auto" if is_word(model.prior, "auto") else ""
    found = [
        (name, float(value), own if name in ("tau", "alpha") else "")
        for name, value in fields.items()
        if isinstance(value, float | int) and not isinstance(value, bool)
    ]
    found += [(name, getattr(regressor, f"{name}_"), getattr(model, name)) for name in DEVIATIONS]
    return [
        (name, value, "weighed by the evidence" if is_word(origin, "auto") else "given")
        for name, value, origin in found
    ]


def _settings(regressor: GraphRegressor) -> dict[str, Any]:
    """Return the settings of graph, spectrum and model, and the version of graphuq."""
    return {
        **regressor.posterior_.engine.spectrum.settings,
        "prior": repr(regressor.prior_),
        "out_of_sample": regressor.out_of_sample,
        "n_labelled": len(regressor.posterior_.given),
        "graphuq_version": __version__,
    }


def _figures(
    regressor: GraphRegressor,
    others: Predicted,
    true: Predicted | None,
    nodes: Int[np.ndarray, " n"],
    places: Float[np.ndarray, "n 2"],
) -> dict[str, dict[str, str]]:
    """Return the figures of the page, by the names in `ALTERNATIVES` and by theme."""
    spectrum = regressor.posterior_.engine.spectrum
    draw: dict[str, Callable[[Axes], Axes]] = {
        OTHERS: partial(_draw_predicted, others, OTHERS, "given number"),
        "Map": partial(_draw_map, regressor, nodes, places),
        "Spectrum": lambda ax: plots.plot_spectrum(spectrum, ax=ax),
    }
    if true is not None:
        draw[TRUE] = partial(_draw_predicted, true, TRUE, "true number")
    return drawn_panels(draw)


def _draw_predicted(predicted: Predicted, title: str, known: str, ax: "Axes") -> "Axes":
    """Draw predictions against numbers that were not used for them, with 90 % intervals."""
    order = np.random.default_rng(0).permutation(len(predicted.known))[:MAX_POINTS]
    inside = predicted.holds(COVERAGE)
    low, high = predicted.predictive.interval(COVERAGE).T
    thin = min(1.0, 12 / np.sqrt(len(order)))
    for part, color, words in zip(
        (order[inside[order]], order[~inside[order]]),
        accents(),
        ("in its 90 % interval", "outside"),
        strict=True,
    ):
        x, y = predicted.known[part], predicted.predictive.mean[part]
        ax.vlines(x, low[part], high[part], color=color, alpha=0.5 * thin, linewidth=1)
        ax.plot(x, y, ".", color=color, alpha=max(0.4, thin), label=words)
    ends = [predicted.known.min(), predicted.known.max()]
    ax.plot(ends, ends, color="grey", linewidth=1, label="prediction = number")
    bottom, top = ax.get_ylim()
    ax.set(xlabel=known, ylabel="prediction", title=title)
    ax.set_ylim(bottom, top + 0.2 * (top - bottom))  # room for the legend
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=3, columnspacing=1.0)
    return ax


def _draw_map(
    regressor: GraphRegressor,
    nodes: Int[np.ndarray, " n"],
    places: Float[np.ndarray, "n 2"],
    ax: "Axes",
) -> "Axes":
    """Draw the map of the rows, coloured by predicted value."""
    mean = regressor.transduction_
    low, high = np.quantile(mean, COLOR_ENDS)
    size = float(np.clip(20_000 / len(nodes), 2, 25))
    x, y = places.T
    style: dict[str, Any] = {"cmap": label_colors(), "vmin": low, "vmax": high}
    drawn = ax.scatter(x, y, c=mean[nodes], s=size, linewidths=0, **style)
    words = "predicted value" + (", exposure 1" if regressor.exposure_ is not None else "")
    add_colorbar(drawn, ax, words, extend="both")
    ax.set(title="Map of the rows", xticks=[], yticks=[])
    ax.set_xlabel("similar rows lie side by side; the axes have no unit")
    return ax
