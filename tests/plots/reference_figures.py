"""Small figures of every ``plot_`` function, from numbers that are the same everywhere.

The numbers are closed forms and draws of NumPy's `RandomState`, whose stream never changes. Texts
are left out and axes have fixed places, because letters differ between versions of matplotlib. To
write the reference images again, after a change that was looked at:

    python tests/plots/reference_figures.py
"""

import functools
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import graphuq as gq
from graphuq import plots
from graphuq.inference.draws import Draws
from graphuq.results.diagnostics import diagnose
from graphuq.results.result import Result
from graphuq.results.uncertainty import class_probabilities, probability_errors
from graphuq.spectrum import Spectrum

FOLDER = Path(__file__).parent / "reference"
SIZE, DPI = (4.8, 3.2), 50  # 240 by 160 pixels
N, L, CHAINS, SAMPLES = 60, 6, 2, 40
NAMES = ("ant", "bee", "cat")


def spectrum():
    """Return the smoothest eigenpairs of a path, in closed form, with a tail."""
    j, node = np.arange(L), np.arange(N)
    vectors = np.cos(np.pi * np.outer(node + 0.5, j) / N)
    vectors /= np.linalg.norm(vectors, axis=0)
    return Spectrum(
        eigenvalues=1 - np.cos(np.pi * j / N),
        eigenvectors=vectors,
        residuals=np.zeros(L),
        tail_eigenvalue=0.06,
        components=np.zeros(N, dtype=int),
        degrees=np.full(N, 2.0),
        node_scale=np.ones(N),
    )


@functools.cache
def result(n_classes):
    """Return a result whose label means and draws are given, not computed."""
    rng, nodes = np.random.RandomState(0), spectrum()
    labelled = np.array([3, 20, 40, 57])
    if n_classes == 2:
        likelihood, labels = gq.likelihoods.Probit(), np.array([1, 1, -1, -1])
        mean = np.tanh(3 * np.cos(np.pi * np.arange(N) / N) + 0.3 * rng.normal(size=N))
    else:
        likelihood, labels = gq.likelihoods.Softmax(), np.array([0, 1, 2, 2])
        score = np.exp(3 * np.cos(np.arange(N)[:, None] / 9 + np.arange(3)))
        mean = score / score.sum(axis=1, keepdims=True)
    posterior = gq.Posterior(nodes, gq.priors.Matern(), likelihood, labelled, labels)
    slow = np.cumsum(rng.normal(size=(CHAINS, SAMPLES, posterior.dimension)), axis=1) / 5
    draws = Draws(
        white=slow + rng.normal(size=slow.shape),
        log_likelihood=-rng.gamma(2.0, size=(CHAINS, SAMPLES)),
        acceptance=np.full((CHAINS, SAMPLES), 0.3),
        step_size=0.1,
        n_warmup=0,
        thin=1,
    )
    return Result(
        probabilities=class_probabilities(mean),
        mcse=probability_errors(np.full_like(mean, 0.01)),
        latent_mean=mean,
        latent_std=np.ones_like(mean),
        has_evidence=np.full(N, True),
        posterior=posterior,
        answer=draws,
        diagnostics=diagnose(draws, posterior, np.full_like(mean, 0.01)),
        settings={},
        classes=NAMES[:n_classes],
    )


def figures():
    """Return the functions that draw a picture each, by name, with their numbers of panels."""
    places = np.stack([np.cos(np.arange(N) / 10), np.arange(N) / N], axis=1)
    nodes, three = np.arange(N), np.array([1, 30, 59])
    # Smooth images: versions of matplotlib differ by a pixel in where an image begins.
    across = np.linspace(0, 1.2, 28)
    images = np.sin(np.add.outer(nodes / 20, np.add.outer(across, across**2)))
    curve = gq.scores.ReliabilityCurve(
        np.array([0.55, 0.7, 0.95]), np.array([0.5, 0.75, 1.0]), np.array([20, 12, 40])
    )
    grid, values = [1.0, 2.0, 4.0, 8.0], np.array([-9.0, -7.5, -7.0, -8.0])
    plane = {"a": grid, "b": grid[:3]}
    return {
        "spectrum": (1, lambda ax: plots.plot_spectrum(spectrum(), ax=ax)),
        "evidence": (1, lambda ax: plots.plot_evidence({"a": grid}, values, {"a": 4.0}, ax=ax)),
        "evidence_plane": (
            1,
            lambda ax: plots.plot_evidence(
                plane, np.add.outer(values, values[:3]), {"a": 4.0, "b": 2.0}, ax=ax
            ),
        ),
        "reliability": (1, lambda ax: plots.plot_reliability(curve, ax=ax)),
        "map": (1, lambda ax: plots.plot_map(result(2), nodes, places, ax=ax)),
        "map_classes": (1, lambda ax: plots.plot_map(result(3), nodes, places, ax=ax)),
        "map_dark": (1, lambda ax: plots.plot_map(result(2), nodes, places, ax=ax)),
        "embedding": (1, lambda ax: plots.plot_embedding(result(3), ax=ax)),
        "certainty": (1, lambda ax: plots.plot_certainty(result(2), ax=ax)),
        "certainty_classes": (1, lambda ax: plots.plot_certainty(result(3), ax=ax)),
        "order": (1, lambda ax: plots.plot_order(result(2), ax=ax)),
        "marginals": (3, lambda ax: plots.plot_marginals(result(2), three, axes=ax)),
        "marginals_classes": (3, lambda ax: plots.plot_marginals(result(3), three, axes=ax)),
        "trace": (2, lambda ax: plots.plot_trace(result(2), axes=ax)),
        "ess": (2, lambda ax: plots.plot_ess(result(2), axes=ax)),
        "images": (3, lambda ax: plots.plot_images(result(2), images, three, axes=ax)),
    }


def drawn(name, n_panels, draw):
    """Return the figure of a function, drawn into axes at fixed places."""
    with matplotlib.style.context("dark_background" if name.endswith("_dark") else "default"):
        figure = Figure(figsize=SIZE, dpi=DPI)
        width = 0.8 / n_panels
        places = [(0.1 + k * width, 0.1, 0.875 * width, 0.8) for k in range(n_panels)]
        axes = [figure.add_axes(place) for place in places]
        draw(axes[0] if n_panels == 1 else axes)
    return figure


def save_without_words(figure, path):
    """Write a figure without texts and legends, whose letters differ between versions."""
    for ax in figure.axes:
        if ax.get_legend():
            ax.get_legend().remove()
        ax.tick_params(which="both", labelbottom=False, labelleft=False, labelright=False)
        ax.minorticks_off()
        for text in [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]:
            text.set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, (n_panels, draw) in figures().items():
        save_without_words(drawn(name, n_panels, draw), FOLDER / f"{name}.png")
