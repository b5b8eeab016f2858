"""Figures 1, 2, 3 and 5: likelihoods, spectra, spectral embeddings and images."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from graphuq import fiedler_signs
from graphuq.likelihoods import AtomicNoise, LevelSet, Likelihood, Probit
from graphuq.results import label_mean
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.hyperspectral import plume
from graphuq_papers.bertozzi.setup import converged, protocol, voting
from graphuq_papers.bertozzi.variance import PAIRS
from graphuq_papers.claims import Claim, Finding, Row, cell, cells, finding, listed, rises
from graphuq_papers.problems import mnist, moons, share

MEDIAN = "median"  # cell of column "j" in figure 2
ODD = "distance to the mean image"  # a column of figure 5


def _costs(rows: Sequence[Row]) -> Finding:
    probit, walls = (
        [cell(rows, "Φ", {"model": model, "u": u}) for u in (1.0, -1.0, -2.0)]
        for model in ("probit, y = 1", "level set, y = 1")
    )
    words = f"probit {listed(probit[1:], '.1f')}; level set {listed(walls[1:], '.1f')}"
    holds = rises(probit) and np.allclose(walls, (0, 4, 4))
    return finding(holds, f"at u = −1 and −2 {words}")


@experiment(
    Claim("A wrong sign costs probit the more the larger u, the level set always 2/γ².", _costs)
)
def figure1(_: Context) -> Outcome:
    """Negative log likelihood of one label; γ = 1/√2, p = 0.8, q = 0.7."""
    models: tuple[tuple[str, Likelihood, float], ...] = (
        ("probit, y = 1", Probit(2**-0.5), 1.0),
        ("level set, y = 1", LevelSet(2**-0.5), 1.0),
        ("atomic noise, y = 1", AtomicNoise(0.8, 0.7), 1.0),
        ("atomic noise, y = −1", AtomicNoise(0.8, 0.7), -1.0),
    )
    u = np.linspace(-2.0, 2.0, 802)  # an even number omits 0, where all models but probit jump
    curves = {
        name: -np.asarray(likelihood.log_prob(u, np.full_like(u, y)))
        for name, likelihood, y in models
    }
    # The paper models a label as a number here, so its level set has another additive constant.
    curves["level set, y = 1"] -= curves["level set, y = 1"].min()
    figure = Figure(figsize=(11, 2.6), layout="constrained")
    rows: list[Row] = []
    for letter, axes, (name, phi) in zip(
        "abcd", figure.subplots(1, 4), curves.items(), strict=True
    ):
        axes.plot(u, phi, color="#3b6fb6")
        axes.set(title=f"{letter}) {name}", xlabel="u(j)", ylabel="Φ(u(j); y)", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        for value in (-2.0, -1.0, 1.0, 2.0):
            at = int(np.argmin(np.abs(u - value)))
            rows.append({"model": name, "u": value, "Φ": float(phi[at])})
    return Outcome(
        rows,
        "For a wrong sign, the cost of probit grows like the square of u, the cost of the level "
        "set is 2/γ² = 4 for every u, and the cost of atomic noise depends on its error rates, "
        "which differ between the two labels.",
        figure,
    )


def _near_one(rows: Sequence[Row]) -> Finding:
    medians = {row["data"]: row["eigenvalue"] for row in rows if row["j"] == MEDIAN}
    far = {name: abs(value - 1) for name, value in medians.items()}
    least = far.pop("MNIST (4, 9)")
    words = ", ".join(f"{value:.2f} ({name})" for name, value in medians.items())
    return finding(max(far.values()) < 0.1 < least, f"median {words}")


@experiment(Claim("Eigenvalues pile up near 1, except on MNIST.", _near_one))
def figure2(context: Context) -> Outcome:
    """Spectra of the four graph Laplacians."""
    spectra = {
        "MNIST (4, 9)": mnist(context, (4, 9)).spectrum,
        "two moons": moons(context, 0.06, 0).spectrum,
        "voting records": voting(context).spectrum,
        "gas plume (simulated)": plume(context).spectrum,
    }
    figure = Figure(figsize=(11, 2.9), layout="constrained")
    rows: list[Row] = []
    for letter, axes, (name, spectrum) in zip(
        "abcd", figure.subplots(1, 4), spectra.items(), strict=True
    ):
        axes.plot(spectrum.eigenvalues, ".", markersize=3, color="#3b6fb6")
        axes.set(title=f"{letter}) {name}", xlabel="index j", ylabel="λ_j", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        for j in (1, 2, 5, 10, 20, 39, spectrum.n_eigenpairs - 1):
            rows.append({"data": name, "j": j, "eigenvalue": float(spectrum.eigenvalues[j])})
    middle = {name: float(np.median(spectrum.eigenvalues)) for name, spectrum in spectra.items()}
    rows += [{"data": name, "j": MEDIAN, "eigenvalue": value} for name, value in middle.items()]
    return Outcome(
        rows,
        "Median of the computed eigenvalues: "
        + ", ".join(f"{name} {value:.3f}" for name, value in middle.items())
        + ". The eigenvalues of complete graphs approach 1 quickly; those of the "
        "nearest-neighbour graph of MNIST do not. Both agree with the paper.",
        figure,
    )


def _separation(rows: Sequence[Row]) -> Finding:
    values = cells(rows, "Fiedler accuracy")
    return finding(rises(values), f"accuracy of the second eigenvector's signs {listed(values)}")


@experiment(
    Claim("Digits separate better in the order (4, 9), (3, 8), (0, 6), (5, 7).", _separation)
)
def figure3(context: Context) -> Outcome:
    """Four pairs of digits in the plane of the second and third eigenvectors."""
    figure = Figure(figsize=(11, 3.0), layout="constrained")
    rows: list[Row] = []
    for letter, axes, pair in zip("dcba", figure.subplots(1, 4), PAIRS, strict=True):
        problem = mnist(context, pair)
        q = problem.spectrum.eigenvectors
        right = (fiedler_signs(problem.spectrum) == problem.truth).mean()
        rows.append(
            {"digits": f"({pair[0]}, {pair[1]})", "Fiedler accuracy": float(max(right, 1 - right))}
        )
        for sign, color in ((1, "#c2410c"), (-1, "#3b6fb6")):
            chosen = problem.truth == sign
            digit = pair[0] if sign == 1 else pair[1]
            axes.plot(q[chosen, 1], q[chosen, 2], ".", markersize=2, color=color, label=str(digit))
        title = f"{letter}) ({pair[0]}, {pair[1]})"
        axes.set(title=title, xlabel="2nd eigenvector", ylabel="3rd eigenvector")
        axes.legend(frameon=False, markerscale=4)
    accuracies = ", ".join(f"{r['digits']} {r['Fiedler accuracy']:.3f}" for r in rows)
    return Outcome(
        rows,
        "The classes separate better from each panel to the next, left to right. Accuracy of the "
        f"signs of the Fiedler vector, without any label: {accuracies}.",
        figure,
    )


def _looks(rows: Sequence[Row]) -> Finding:
    hard, easy = (float(np.mean(cells(rows, ODD, {"kind": kind}))) for kind in ("hard", "easy"))
    return finding(
        hard > 1.1 * easy, f"distance to the mean image {hard:.1f} (unsure) and {easy:.1f} (sure)"
    )


@experiment(
    Claim("Images whose label mean is near the truth look alike; the others look odd.", _looks)
)
def figure5(context: Context) -> Outcome:
    """Images that are hard and easy to classify: MNIST (4, 9), probit, γ = 0.1, 4 % labelled."""
    problem = mnist(context, (4, 9))
    posterior = problem.posterior(Probit(0.1), share(problem.truth, 0.04, context.seed))
    chain, result = protocol(posterior, 10_000, 0.3, context.seed), converged(posterior, 0)
    figure = Figure(figsize=(11, 2.6), layout="constrained")
    grid = figure.subplots(2, 12)
    rows: list[Row] = []
    assert problem.images is not None
    means = {sign: problem.images[problem.truth == sign].mean(axis=0) for sign in (1, -1)}
    for half, (sign, digit) in enumerate(((1, 4), (-1, 9))):
        ordered = np.flatnonzero(problem.truth == sign)
        ordered = ordered[np.argsort(sign * label_mean(result)[ordered])]
        for line, nodes in enumerate((ordered[:6], ordered[::-1][:6])):
            for column, node in enumerate(nodes):
                axes = grid[line, 6 * half + column]
                axes.imshow(problem.images[node], cmap="gray_r")
                axes.set_axis_off()
                axes.set_title(f"{label_mean(result)[node]:+.2f}", fontsize=7)
                rows.append(
                    {
                        "truth": digit,
                        "kind": "easy" if line else "hard",
                        "node": int(node),
                        "protocol": float(chain.label_mean[node]),
                        "converged": float(label_mean(result)[node]),
                        ODD: float(np.linalg.norm(problem.images[node] - means[sign])),
                    }
                )
    title = "fours (left) and nines (right), hard (top) and easy (bottom); titles: label means"
    figure.suptitle(title, fontsize=9)
    accuracy = (np.sign(label_mean(result)) == problem.truth).mean()
    return Outcome(
        rows,
        "Images with a label mean far from the truth look unusual; images with a label mean near "
        f"the truth look alike. Accuracy {accuracy:.3f} (default sampler, converged), "
        f"{(np.sign(chain.label_mean) == problem.truth).mean():.3f} (the paper's chain).",
        figure,
    )
