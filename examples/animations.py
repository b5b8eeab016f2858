"""Draw the animations of the site: labels that arrive, and a chain between walls.

    python examples/animations.py docs/_static

Each is a GIF below 300 kB, beside a picture of its last frame for readers who prefer no motion.
"""

import io
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import graphuq as gq
from graphuq.inference.exact_hamiltonian.trajectories import simulate, walls_of
from graphuq.plots.panels import label_colors


def save(folder, name, figures, seconds):
    """Write figures as a GIF of some seconds, and the last one as a still picture."""
    frames = []
    for figure in figures:
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=90)
        frames.append(Image.open(buffer).convert("RGB"))
    few = frames[-1].quantize(64, dither=Image.Dither.NONE)  # one set of colours for all frames
    few.putpalette([255 if value > 247 else value for value in few.getpalette()])
    frames = [frame.quantize(palette=few, dither=Image.Dither.NONE) for frame in frames]
    duration = [round(1000 * seconds / len(frames))] * (len(frames) - 1) + [2500]
    options = {"save_all": True, "duration": duration, "loop": 0, "optimize": True}
    frames[0].save(folder / f"{name}.gif", append_images=frames[1:], **options)
    frames[-1].save(folder / f"{name}.png", optimize=True)


def labels_arriving(n_labels=14):
    """Yield one figure for each label: probabilities, labels, and how many rows are wrong."""
    moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.17, rng=5)
    y = np.full(300, -1)
    y[[np.flatnonzero(moons.classes == k)[0] for k in (0, 1)]] = 0, 1
    classifier = gq.GraphClassifier(inference="expectation-propagation", random_state=0)
    classifier.fit(moons.data, y)
    for count in range(2, n_labels + 1):
        result = classifier.result_
        wrong = int((classifier.transduction_ != moons.classes).sum())
        expected = gq.expected_errors(result).expected
        figure = Figure(figsize=(6.2, 3.9), layout="constrained")
        ax = figure.subplots()
        style = {"cmap": label_colors(), "vmin": -1, "vmax": 1}
        drawn = ax.scatter(*moons.data.T, c=gq.results.label_mean(result), s=22, **style)
        labelled = result.posterior.labelled
        signs = result.posterior.labels
        ax.scatter(*moons.data[labelled].T, c=signs, s=110, ec="black", **style, label="label")
        ax.legend(frameon=False, loc="upper right")
        ax.set(xlabel="feature 1", ylabel="feature 2", xticks=[], yticks=[])
        ax.set_title(f"{count:2} labels: {wrong} of 300 rows wrong, {expected:.0f} expected")
        bar = figure.colorbar(drawn, ax=ax, ticks=[-1, 0, 1])
        bar.set_ticklabels(["upper moon", "undecided", "lower moon"])
        yield figure
        rows = classifier.query(1)
        classifier.add_labels(rows, moons.classes[rows])


def cone():
    """Return the walls of three labels without noise, for a field with two coordinates x.

    ``F x`` must have the signs of the labels: the posterior is the round prior within a cone.
    """
    graph = gq.graphs.knn_graph(np.arange(12.0)[:, None], 3)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=3)
    prior, likelihood = gq.priors.InverseLaplacian(), gq.likelihoods.NoiseFree()
    labelled, labels = np.array([0, 4, 11]), np.array([1, 1, -1])
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, labels)
    return walls_of(posterior.target, "float64")


def trajectories(walls, n_trajectories, n_positions):
    """Yield exact positions on each trajectory of a chain, a quarter turn, and its momentum."""
    rng, white = np.random.default_rng(1), np.array([[0.9, 0.2]])
    angles = np.linspace(0, np.pi / 2, n_positions)[:, None, None]
    for _ in range(n_trajectories):
        momentum = rng.normal(size=(1, 1, 2))
        path = np.concatenate(
            [simulate(walls, white, np.zeros(1), momentum, t, 100).white[0] for t in angles]
        )
        yield path, momentum[0, 0]
        white = path[-1:]


def chain_between_walls(n_trajectories=9, n_frames=12):
    """Yield one figure for each step of a chain on its way."""
    walls, grid = cone(), np.linspace(-3, 3, 301)
    plane = np.stack(np.meshgrid(grid, grid), axis=-1)
    inside = (plane @ walls.factor.T * walls.labels > 0).all(axis=-1)
    draws = []
    for path, _ in trajectories(walls, n_trajectories, 10 * n_frames):
        draws.append(path[0])
        for k in range(1, n_frames + 1):
            yield wall_figure(grid, inside, walls.factor, path[: 10 * k], draws)
    yield wall_figure(grid, inside, walls.factor, path, [*draws, path[-1]])


def wall_figure(grid, inside, factor, path, draws):
    """Return a picture of the cone, its walls, the way so far and the draws of the chain."""
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    ax = figure.subplots()
    ax.contourf(grid, grid, ~inside, levels=[0.5, 1.5], colors=["#d5d8dd"])
    density = np.exp(-(grid[:, None] ** 2 + grid**2) / 2)
    ax.contour(grid, grid, np.where(inside, density, np.nan), levels=6, cmap="Blues", vmin=-0.4)
    for row, name in zip(factor, ("walls of three labels", None, None), strict=True):
        ax.axline((0, 0), (-row[1], row[0]), color="black", lw=1, label=name)
    ax.plot(*path.T, color="#e76300", lw=1.6, label="trajectory")
    ax.plot(*np.array(draws).T, "o", color="#2f80cc", ms=6, label="draws of the chain")
    ax.plot(*path[-1], "o", color="#e76300", ms=5)
    ax.set(xlim=(-1.2, 3), ylim=(-2, 2), xlabel="coordinate 1", ylabel="coordinate 2")
    ax.set(title="A chain between the walls of hard labels", aspect="equal")
    ax.legend(loc="lower left", fontsize=8, framealpha=1)
    return figure


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    save(folder, "labels_arriving", labels_arriving(), 9)
    save(folder, "chain_between_walls", chain_between_walls(), 9)
