"""A figure a function. Each returns a matplotlib ``Figure`` and shows nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphuq.errors import require
from graphuq.results.diagnostics import ESS_BOUND, RHAT_BOUND, convergence_table, worst_case
from graphuq.results.result import Result
from graphuq.results.uncertainty import with_unseen
from graphuq.scores import ReliabilityCurve
from graphuq.spectrum import Spectrum

BLUE, ORANGE, GREY = "#3b6fb6", "#d97706", "#8a8f98"
LABEL_COLORS = "coolwarm"  # −1 blue, 0 pale, +1 red
MANY_NODES = 20_000  # from here on points are binned


def _figure(width: float = 6.0, height: float = 3.8) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _grid(
    n_panels: int, max_columns: int, size: tuple[float, float], title: str
) -> tuple[Figure, Any]:
    """A title over rows of panels of a size, all of them switched off until something is drawn."""
    columns = min(max_columns, max(1, n_panels))
    rows = -(-n_panels // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.3), layout="constrained")
    figure.suptitle(title, fontsize=10)
    grid = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axes in grid:
        axes.set_axis_off()
    return figure, grid


def plot_spectrum(spectrum: Spectrum) -> Figure:
    """Eigenvalues of the Laplacian, and the tail that stands for the rest."""
    figure, axes = _figure()
    index = np.arange(spectrum.n_eigenpairs)
    axes.plot(index, spectrum.eigenvalues, ".", color=BLUE, markersize=4, label="computed")
    if spectrum.tail_eigenvalue is not None:
        axes.plot(
            [spectrum.n_eigenpairs, spectrum.n_nodes],
            [spectrum.tail_eigenvalue] * 2,
            color=ORANGE,
            label="tail λ̄",
        )
        axes.legend(frameon=False)
    axes.set(xlabel="index j", ylabel="eigenvalue λ_j", title="Laplacian spectrum")
    return figure


def plot_evidence(grids: Mapping[str, Any], values: Any, best: Mapping[str, Any]) -> Figure:
    """The evidence against one parameter, or over two, and where it is largest.

    Parameters
    ----------
    grids : dict
        Values of one parameter or two, by name.
    values : array_like
        The criterion there, as `EvidenceSearch.surface` gives it; NaN where there is none.
    best : dict
        Where the search ended, ``search.best_params_``.

    Raises
    ------
    InvalidInput
        If there are three parameters or more.
    """
    require(len(grids) in (1, 2), "grids", f"{len(grids)} parameters", "draw one or two")
    figure, axes = _figure()
    names, axis = list(grids), [np.asarray(grid, dtype=float) for grid in grids.values()]
    if len(names) == 1:
        axes.plot(axis[0], values, "o-", color=BLUE, markersize=3)
        axes.axvline(best[names[0]], color=ORANGE, linewidth=1)
        axes.set(xlabel=names[0], ylabel="log evidence", xscale="log")
        return figure
    mesh = axes.pcolormesh(*axis, np.asarray(values).T, cmap="viridis", shading="nearest")
    axes.plot(*(best[name] for name in names), "o", color="white", markeredgecolor=ORANGE)
    axes.set(xlabel=names[0], ylabel=names[1], xscale="log", yscale="log")
    figure.colorbar(mesh, ax=axes, label="log evidence")
    return figure


def plot_embedding(result: Result) -> Figure:
    """Nodes at the first two non-constant eigenvectors, coloured by label mean."""
    figure, axes = _figure(6.0, 4.6)
    spectrum = result.posterior.spectrum
    first = min(spectrum.n_components, spectrum.n_eigenpairs - 1)
    second = min(first + 1, spectrum.n_eigenpairs - 1)
    x, y = spectrum.eigenvectors[:, first], spectrum.eigenvectors[:, second]
    several = result.label_mean.ndim == 2
    style: dict[str, Any] = {"cmap": LABEL_COLORS, "vmin": -1, "vmax": 1}
    shown = result.label_mean
    if several:
        style = {"cmap": class_colors(result.posterior.n_classes), "vmin": -0.5}
        style["vmax"] = result.posterior.n_classes - 0.5
        shown = result.labels
    drawn: Any
    if result.n_nodes > MANY_NODES:
        reduce: Any = _most_frequent if several else np.mean
        drawn = axes.hexbin(x, y, C=shown, gridsize=120, reduce_C_function=reduce, **style)
    else:
        size = float(np.clip(20_000 / result.n_nodes, 4, 25))
        drawn = axes.scatter(x, y, c=shown, s=size, linewidths=0, **style)
        drawn.set_rasterized(True)
    labelled = result.posterior.labelled
    if len(labelled) <= 1000:
        axes.scatter(
            x[labelled],
            y[labelled],
            c=result.posterior.labels,
            s=45,
            edgecolors="black",
            linewidths=1.0,
            label="given label",
            **style,
        )
        axes.legend(frameon=False)
    what = "most probable class" if several else "label mean"
    bar = figure.colorbar(drawn, label=what)
    if several:
        bar.set_ticks(range(result.posterior.n_classes))
    axes.set(
        xlabel=f"eigenvector {first}",
        ylabel=f"eigenvector {second}",
        title=f"Nodes by eigenvectors, coloured by {what}",
    )
    return figure


def class_colors(n_classes: int) -> Any:
    """A colour map of so many colours, as far apart as may be."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    few = matplotlib.colormaps["tab10" if n_classes <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    return ListedColormap([few[k % len(few)] for k in range(n_classes)])


def _most_frequent(values: Any) -> float:
    return float(np.bincount(np.asarray(values, dtype=int)).argmax())


def plot_certainty(result: Result, class_names: Sequence[str] = ("−1", "+1")) -> Figure:
    """Histogram of label means over unlabelled nodes: certain at the ends, torn in the middle.

    Of several classes, of the probability of the most probable one, by class.
    """
    figure, axes = _figure()
    unlabelled = np.setdiff1d(np.arange(result.n_nodes), result.posterior.labelled)
    if result.label_mean.ndim == 2:
        if tuple(class_names) == ("−1", "+1"):
            class_names = [str(k) for k in range(result.posterior.n_classes)]
        shown = unlabelled if len(unlabelled) else np.arange(result.n_nodes)
        _certainty_by_class(axes, result, shown, class_names)
        return figure
    values = result.label_mean[unlabelled] if len(unlabelled) else result.label_mean
    bins: Any = np.linspace(-1, 1, 41)
    bars: Any
    _, edges, bars = axes.hist(values, bins=bins)
    import matplotlib

    colors = matplotlib.colormaps[LABEL_COLORS]
    for left, bar in zip(edges, bars, strict=False):
        bar.set_facecolor(colors((left + 0.025 + 1) / 2))
        bar.set_edgecolor("white")
    axes.set(
        xlabel=f"label mean  (−1: surely {class_names[0]}, +1: surely {class_names[1]})",
        ylabel="unlabelled nodes",
        title="How certain the labels are",
    )
    return figure


def _certainty_by_class(
    axes: Axes, result: Result, nodes: Int[np.ndarray, " M"], class_names: Sequence[str]
) -> None:
    n_classes = result.posterior.n_classes
    names = with_unseen([str(name) for name in class_names], n_classes)
    labels, probability = result.labels[nodes], result.label_mean[nodes].max(axis=1)
    colors = class_colors(n_classes)
    bins: Any = np.linspace(1 / n_classes, 1, 31)
    axes.hist(
        [probability[labels == k] for k in range(n_classes)],
        bins=bins,
        stacked=True,
        color=[colors(k) for k in range(n_classes)],
        label=names,
    )
    axes.legend(frameon=False, fontsize=7, ncols=1 + n_classes // 11)
    axes.set(
        xlabel="probability of the most probable class",
        ylabel="unlabelled nodes",
        title="How certain the labels are",
    )


def plot_reliability(curve: ReliabilityCurve) -> Figure:
    """Accuracy by confidence, with two binomial standard errors; on the diagonal, well calibrated.

    Parameters
    ----------
    curve : ReliabilityCurve
        Of `graphuq.scores.reliability_curve`.
    """
    figure, axes = _figure()
    least = min(0.5, float(curve.confidence.min()))
    axes.plot([least, 1], [least, 1], "--", color=GREY, linewidth=1, label="well calibrated")
    # Half a node more on either side: of few nodes that are all right, little is known.
    share = (curve.accuracy * curve.count + 0.5) / (curve.count + 1)
    error = 2 * np.sqrt(share * (1 - share) / curve.count)
    axes.errorbar(
        curve.confidence,
        curve.accuracy,
        yerr=[np.minimum(error, curve.accuracy), np.minimum(error, 1 - curve.accuracy)],
        fmt="o",
        color=BLUE,
        capsize=2,
        markersize=4,
        linewidth=1,
    )
    for x, y, n in zip(curve.confidence, curve.accuracy, curve.count, strict=True):
        axes.annotate(
            f"{n}", (x, y), xytext=(4, -9), textcoords="offset points", fontsize=7, color=GREY
        )
    axes.set(
        xlabel="probability of the inferred class",
        ylabel="share that is right",
        xlim=(least - 0.02, 1.02),
        ylim=(max(0.0, float(curve.accuracy.min()) - 0.15), 1.03),
        title=f"Reliability (calibration error {curve.expected_calibration_error:.3f})",
    )
    axes.legend(frameon=False, loc="lower right")
    return figure


def plot_trace(result: Result) -> Figure:
    """Trace, by chain, of the functional that mixes worst and of the log likelihood."""
    functionals = result.functionals()
    table = convergence_table(functionals)
    slowest = min(table, key=lambda name: table[name]["ess_bulk"]) if table else "log_likelihood"
    names = [slowest] + [n for n in ("log_likelihood",) if n != slowest]
    figure = Figure(figsize=(8.0, 2.3 * len(names)), layout="constrained")
    for axes, name in zip(np.atleast_1d(figure.subplots(len(names), 1)), names, strict=True):
        values = functionals[name]
        stride = max(1, values.shape[1] // 1000)
        for chain in values[:, ::stride]:
            axes.plot(
                np.arange(len(chain)) * stride, chain, linewidth=0.6, alpha=0.7, rasterized=True
            )
        row = table.get(name)
        note = "" if row is None else f"  (R-hat {row['rhat']:.3f}, ESS {row['ess_bulk']:.0f})"
        axes.set_title(f"{name.replace('_', ' ')}{note}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("kept draw")
    return figure


def plot_ess(result: Result) -> Figure:
    """Smallest effective sample size and largest R-hat as draws accumulate."""
    figure = Figure(figsize=(8.0, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    functionals = result.functionals()
    n_samples = result.draws.n_samples
    counts = np.unique(np.linspace(max(4, n_samples // 8), n_samples, 8).astype(int))
    rhat, bulk, tail = np.array(
        [
            worst_case(convergence_table({k: v[:, :count] for k, v in functionals.items()}))
            for count in counts
        ]
    ).T
    left.plot(counts, bulk, "o-", color=BLUE, label="bulk", markersize=4)
    left.plot(counts, tail, "o-", color=ORANGE, label="tail", markersize=4)
    left.axhline(ESS_BOUND, color=GREY, linestyle="--", linewidth=1)
    left.set(xlabel="kept draws a chain", title="Smallest effective sample size", ylim=(0, None))
    left.legend(frameon=False)
    right.plot(counts, rhat, "o-", color=BLUE, markersize=4)
    right.axhline(RHAT_BOUND, color=GREY, linestyle="--", linewidth=1)
    right.set(xlabel="kept draws a chain", title="Largest R-hat")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def plot_marginals(
    result: Result, nodes: Int[np.ndarray, " M"], *, title: str = "Marginal posteriors of u"
) -> Figure:
    """Histogram of u at some nodes, one panel each, under its label mean (Bertozzi, figure 4)."""
    figure, grid = _grid(len(nodes), 3, (2.6, 1.7), title)
    for axes, node, u in zip(grid, nodes, result.latent_draws(nodes), strict=False):
        axes.set_axis_on()
        if u.ndim == 2:
            colors = class_colors(u.shape[1])
            for k, values in enumerate(u.T):
                axes.hist(values, bins=60, density=True, histtype="step", color=colors(k))
        else:
            axes.hist(u, bins=60, density=True, color=BLUE)
            axes.axvline(0.0, color=GREY, linewidth=1, linestyle="--")
        axes.set_title(f"node {node}: {_in_words(result, node)}", fontsize=8)
        axes.set_yticks([])
        axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def plot_order(result: Result) -> Figure:
    """Label variance of all nodes, from the most to the least certain."""
    figure, axes = _figure()
    variance = result.label_variance[result.rank_by_uncertainty()[::-1]]
    axes.plot(np.arange(1, result.n_nodes + 1), variance, color=BLUE, rasterized=True)
    axes.set(
        xlabel="nodes, the most certain first",
        ylabel="label variance",
        ylim=(-0.02, 1.02),
        title=f"Label variance by certainty (mean {result.mean_label_variance:.3f})",
    )
    return figure


def _in_words(result: Result, node: Any, names: Sequence[str] = ()) -> str:
    """Label mean of a node; of several classes the most probable one, and its probability."""
    if result.label_mean.ndim == 1:
        return f"label mean {result.label_mean[node]:+.2f}"
    k = int(result.labels[node])
    return f"{names[k] if k < len(names) else k}: {result.label_mean[node, k]:.2f}"


def plot_images(
    result: Result,
    images: Float[np.ndarray, "N h w"],
    nodes: Int[np.ndarray, " M"],
    title: str,
    class_names: Sequence[str] = (),
) -> Figure:
    """The images of some nodes, each under its label mean; of several classes, under its class."""
    figure, grid = _grid(len(nodes), 10, (0.9, 1.1), title)
    for axes, node in zip(grid, nodes, strict=False):
        axes.imshow(images[node], cmap="gray_r", interpolation="nearest")
        words = _in_words(result, node, class_names).removeprefix("label mean ")
        axes.set_title(words, fontsize=8 if result.label_mean.ndim == 1 else 6)
    return figure


def plot_frames(
    maps: Float[np.ndarray, "T H W"] | Int[np.ndarray, "T H W"],
    label: str,
    limits: tuple[float, float] = (0.0, 1.0),
    cmap: str = "Greys",
    names: Sequence[str] = (),
) -> Figure:
    """A number for each pixel of each frame: a probability, the width of an interval."""
    n_columns = min(len(maps), max(3, int(np.ceil(np.sqrt(len(maps))))))
    n_rows = -(-len(maps) // n_columns)
    height = 0.5 + 8.0 / n_columns * n_rows * maps.shape[1] / maps.shape[2]
    figure = Figure(figsize=(8.0, min(height, 12.0)), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for t, axes in enumerate(grid.ravel()):
        if t >= len(maps):
            axes.set_axis_off()
            continue
        picture = axes.imshow(maps[t], cmap=cmap, vmin=limits[0], vmax=limits[1])
        axes.set(title=names[t] if names else f"frame {t + 1}", xticks=[], yticks=[])
    figure.colorbar(picture, ax=grid, shrink=0.6, label=label)
    return figure
