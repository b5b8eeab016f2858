"""Figures 10 and 11: the simulated gas plume."""

import dataclasses
import resource
import sys
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from scipy.ndimage import binary_dilation, binary_erosion
from sklearn.cluster import KMeans

from graphuq import Converged, Posterior, Result, Spectrum, infer, nystrom_spectrum
from graphuq.errors import InvalidInput, NotConvergedWarning
from graphuq.inference import ExpectationPropagation
from graphuq.likelihoods import LevelSet, Likelihood, Probit
from graphuq.priors import InverseLaplacian
from graphuq.results import label_mean, mean_label_variance
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.gas_plume import gas_plume
from graphuq_papers.bertozzi.setup import Chain, protocol
from graphuq_papers.claims import Claim, Finding, Row, cell, finding
from graphuq_papers.problems import rhat

FRAME, QUICK_FRAME = (128, 320), (64, 160)  # pixels
N_PAIRS, N_LABELS, N_CLUSTERS = 40, 8_000, 4  # eigenpairs, labelled pixels, spectral clusters
UNCERTAIN = 0.4  # a pixel is called uncertain if its label mean s has |s| < 0.4
STEPS, STEP_SIZE = 20_000, 0.08  # the paper's number of pCN steps, and its β
EDGE = 3  # pixels; distance from the plume's outline up to which a pixel counts as its edge
PROTOCOL = "the paper's chain, "  # first words of column "how" for the paper's own chain
ACCURACY = "accuracy"  # a column; the truth is the clustering
SHARE, ON_EDGE = "share uncertain", "share of uncertain on edge"  # columns


class Plume(NamedTuple):
    """The video of the plume, with its spectrum and its spectral clustering.

    Attributes
    ----------
    shape : tuple of int
        Numbers of frames, rows and columns.
    spectrum : Spectrum
        Nyström approximation of the spectrum of all pixels.
    gas : numpy.ndarray of bool, shape (N,)
        True pixels of the plume. No label is taken from it.
    signs : numpy.ndarray, shape (N,)
        Classes by spectral clustering, from which labels are drawn; +1 is the plume.
    stages : tuple of dict
        Seconds and memory of each stage of the computation.
    """

    shape: tuple[int, int, int]
    spectrum: Spectrum
    gas: Bool[np.ndarray, " N"]
    signs: Float[np.ndarray, " N"]
    stages: tuple[Row, ...]


@lru_cache(maxsize=1)
def plume(context: Context) -> Plume:
    """Simulate 7 frames of 128 × 320 pixels and compute 40 eigenpairs, with cosine weights.

    A quick run has frames of 64 × 160 pixels.
    """
    frame = context.pick(QUICK_FRAME, FRAME)
    clock = Clock()
    video = gas_plume(7, frame, seed=context.seed)
    clock.lap("simulation")
    spectrum = nystrom_spectrum(video.features, "cosine", n_eigenpairs=N_PAIRS)
    clock.lap("graph and spectrum (Nyström)")
    embedding = spectrum.eigenvectors[:, 1:5]
    found = KMeans(N_CLUSTERS, n_init=4, random_state=0).fit_predict(
        embedding / np.linalg.norm(embedding, axis=0)
    )
    # The first frame shows no plume: the plume is the cluster with the smallest share there,
    # relative to its share in the other frames.
    shares = np.stack([found.reshape(7, -1) == k for k in range(N_CLUSTERS)]).mean(axis=2)
    cluster = int(np.argmin(shares[:, 0] / shares[:, 1:].mean(axis=1)))
    clock.lap("spectral clustering")
    return Plume(
        (7, *frame),
        spectrum,
        video.classes == "plume",
        np.where(found == cluster, 1.0, -1.0),
        tuple(clock.laps),
    )


class Clock:
    """Recorder of the seconds and the peak memory of each stage."""

    def __init__(self) -> None:
        self.laps: list[Row] = []
        self.began = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Record the stage that has just ended."""
        now = time.perf_counter()
        unit = 2**30 if sys.platform == "darwin" else 2**20
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
        self.laps.append({"stage": stage, "seconds": now - self.began, "peak GB": peak})
        self.began = now


def posterior_of(
    context: Context, likelihood: Likelihood, tail: float | None, constant: bool
) -> Posterior:
    """Return the posterior given labels of some pixels, with or without a tail and q_0."""
    data = plume(context)
    n_labels = context.pick(N_LABELS // 4, N_LABELS)
    nodes = np.random.default_rng(context.seed).choice(len(data.signs), n_labels, replace=False)
    spectrum = data.spectrum
    if tail is not None:
        spectrum = dataclasses.replace(spectrum, tail_eigenvalue=tail)
    return Posterior(
        spectrum, InverseLaplacian(include_constant=constant), likelihood, nodes, data.signs[nodes]
    )


def _edge(data: Plume) -> Bool[np.ndarray, " N"]:
    """Return the pixels near the outline of the plume that clustering finds."""
    inside = (data.signs > 0).reshape(data.shape)
    frames = [
        binary_dilation(frame, iterations=EDGE) & ~binary_erosion(frame, iterations=EDGE)
        for frame in inside
    ]
    return np.stack(frames).ravel()


PROJECTION = "projection, sampled"  # cell of column "how" in figure 10


def _edges(rows: Sequence[Row]) -> Finding:
    """Judge probit with q_0, and the paper's chain for the level set, which has no q_0."""
    probit = next(r for r in rows if r.get("q_0") and "Probit" in r["model"])
    chain = next(r for r in rows if r["how"].startswith(PROTOCOL))
    return finding(
        probit[ON_EDGE] > 0.5,
        f"{probit[SHARE]:.2%} uncertain, {probit[ON_EDGE]:.0%} of them there; by the paper's chain "
        f"{chain[SHARE]:.2%} uncertain, accuracy {chain[ACCURACY]:.2f}",
        protocol=bool(chain[ON_EDGE] > 0.5),
    )


def _more_uncertain(rows: Sequence[Row]) -> Finding:
    tail = next(r for r in rows if r.get("q_0") and "Probit" in r["model"])[SHARE]
    none = cell(rows, SHARE, {"how": PROJECTION})
    return finding(tail > none, f"{tail:.2%} of the pixels uncertain, by projection {none:.2%}")


EDGES = Claim("Uncertain pixels lie mainly on the edge of the plume.", _edges)


@experiment(EDGES, Claim("Approximation leaves more pixels uncertain.", _more_uncertain))
def figure10(context: Context) -> Outcome:
    """Gas plume: level set with spectral approximation, λ̄ = 1, γ = 0.1."""
    found, data = _maps(context, 1.0), plume(context)
    other = _sampled(context, Probit(0.1), None, True)
    row = _row(data, _edge(data), other.posterior, other, True, PROJECTION)
    return dataclasses.replace(found, rows=[*found.rows, row])


@experiment(EDGES)
def figure11(context: Context) -> Outcome:
    """Gas plume: level set with spectral projection, γ = 0.1."""
    return _maps(context, None)


def _maps(context: Context, tail: float | None) -> Outcome:
    """Compare the level set and probit, with and without q_0, and map the label means."""
    data, clock = plume(context), Clock()
    edge = _edge(data)
    rows: list[Row] = []
    for constant in (False, True):
        level_set_rows, level_set = _level_set(context, tail, constant, edge, clock)
        sampled = _sampled(context, Probit(0.1), tail, constant)
        how = f"sampled, R-hat {rhat(sampled):.3f}"
        rows += [*level_set_rows, _row(data, edge, sampled.posterior, sampled, constant, how)]
        clock.lap(f"probit, sampled, {constant_name(constant)}")
    text = _probit_sentences(data, rows, edge, tail, rhat(sampled)) + _chain_sentence(context, rows)
    if level_set is not None:
        text += _level_set_sentences(rows[-2], level_set, sampled)
    if tail is None:
        rows.append(_noisy_level_set(context, data, edge))
        clock.lap("level set with γ = 1, sampled, with q_0")
        text += (
            f"The level set with γ = 1, as in table 2, {rows[-1]['how']}: accuracy "
            f"{rows[-1][ACCURACY]:.4f}, share of uncertain pixels {rows[-1][SHARE]:.4f}, of which "
            f"a share of {rows[-1][ON_EDGE]:.2f} lies near the outline. "
        )
    else:
        text += (
            "With λ̄ = 1, and kept eigenvalues that are nearly 1 too, the "
            f"{len(data.signs) - N_PAIRS:,} modes of the tail hold nearly all of the prior "
            "variance, so labels carry almost no information about other pixels. Figure 10 of the "
            "paper needs smaller first eigenvalues than its cosine weights give on this video. "
        )
    stages = [*data.stages, *clock.laps]
    return Outcome([*rows, *stages], text + stage_summary(stages), _draw(data, label_mean(sampled)))


def constant_name(constant: bool) -> str:
    """Return the words that name a prior with or without the constant eigenvector."""
    return "with q_0" if constant else "without q_0"


def _level_set(
    context: Context,
    tail: float | None,
    constant: bool,
    edge: Bool[np.ndarray, " N"],
    clock: Clock,
) -> tuple[list[Row], Result | None]:
    """Run the paper's chain, expectation propagation and a sampler on the level set.

    The sampler runs only if expectation propagation has a fixed point.

    Returns
    -------
    rows : list of dict
        A row for each method that gave a result.
    result : Result or None
        The result of the sampler, if it ran.
    """
    data, name = plume(context), constant_name(constant)
    posterior = posterior_of(context, LevelSet(0.1), tail, constant)
    chain = protocol(posterior, context.pick(STEPS // 4, STEPS), STEP_SIZE, context.seed)
    how = f"{PROTOCOL}{chain.acceptance:.4f} of proposals accepted"
    rows = [_row(data, edge, posterior, chain, constant, how)]
    clock.lap(f"level set, the paper's chain, {name}")
    try:
        result = infer(posterior, ExpectationPropagation())
    except InvalidInput:  # no fixed point: the kept eigenvectors cannot fit the labels
        clock.lap(f"level set, expectation propagation, {name}")
        return rows, None
    rows.append(_row(data, edge, posterior, result, constant, "expectation propagation"))
    clock.lap(f"level set, expectation propagation, {name}")
    result = _sampled(context, LevelSet(0.1), tail, constant)
    how = f"sampled, R-hat {rhat(result):.3f}"
    rows.append(_row(data, edge, posterior, result, constant, how))
    clock.lap(f"level set, sampled, {name}")
    return rows, result


def _probit_sentences(
    data: Plume,
    rows: list[Row],
    edge: Bool[np.ndarray, " N"],
    tail: float | None,
    largest_rhat: float,
) -> str:
    """Describe the maps of probit with q_0, and the accuracy of probit without q_0."""
    best = rows[-1]
    without = next(r for r in rows if not r["q_0"] and "Probit" in r["model"])
    name = "projection" if tail is None else "approximation"
    return (
        f"Spectral {name}, {len(data.signs):,} pixels. The maps show probit, sampled to R-hat "
        f"{largest_rhat:.3f}. Accuracy is the share of pixels that agree with spectral "
        "clustering, the source of the labels. With the constant eigenvector q_0, accuracy is "
        f"{best[ACCURACY]:.4f}, and a share of {best[SHARE]:.4f} of the pixels is uncertain "
        f"(|s| < {UNCERTAIN}). Of the uncertain pixels, a share of {best[ON_EDGE]:.2f} lies within "
        f"{EDGE} pixels of the plume's outline; the share of all pixels there is "
        f"{edge.mean():.3f}. The prior of the paper leaves q_0 out. Then u must average to zero, "
        f"which a small plume contradicts, and accuracy is {without[ACCURACY]:.4f}. "
    )


def _chain_sentence(context: Context, rows: list[Row]) -> str:
    """State the acceptance rate and accuracy of the paper's chain, without and with q_0."""
    chains = [row for row in rows if row["how"].startswith(PROTOCOL)]
    return (
        f"The paper's chain for the level set ({context.pick(STEPS // 4, STEPS):,} steps, "
        f"β = {STEP_SIZE}): {chains[0]['how'].removeprefix(PROTOCOL)} without q_0; accuracy "
        f"{chains[0][ACCURACY]:.4f} without q_0 and {chains[1][ACCURACY]:.4f} with it. "
    )


def _level_set_sentences(row: Row, level_set: Result, probit: Result) -> str:
    """Describe the sampled level set with q_0, and its difference from probit."""
    gap = float(np.abs(label_mean(probit) - label_mean(level_set)).mean())
    return (
        f"The level set of the paper, γ = 0.1 with q_0, {row['how']}: accuracy "
        f"{row[ACCURACY]:.4f}, share of uncertain pixels {row[SHARE]:.4f}, mean "
        f"absolute difference from the label means of probit {gap:.4f}. A wrong label costs "
        "200 nats there, so the posterior has all its mass on fields with the fewest wrong "
        "labels. "
    )


def _noisy_level_set(context: Context, data: Plume, edge: np.ndarray) -> Row:
    """Sample the level set of table 2, which allows for wrong labels (γ = 1)."""
    result = _sampled(context, LevelSet(1.0), None, True)
    how = f"sampled, R-hat {rhat(result):.3f}"
    return _row(data, edge, result.posterior, result, True, how)


def _sampled(
    context: Context, likelihood: Likelihood, tail: float | None, constant: bool
) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return infer(
            posterior_of(context, likelihood, tail, constant),
            n_samples=context.pick(500, 4000),
            precision="float32",
            stop=Converged(),
        )


def _row(
    data: Plume,
    edge: np.ndarray,
    posterior: Posterior,
    answer: Result | Chain,
    constant: bool,
    how: str,
) -> Row:
    if isinstance(answer, Result):
        mean, variance = label_mean(answer), mean_label_variance(answer)
    else:
        mean, variance = answer.label_mean, answer.mean_label_variance
    uncertain = np.abs(mean) < UNCERTAIN
    return {
        "model": repr(posterior.likelihood),
        "q_0": constant,
        "how": how,
        ACCURACY: float((np.sign(mean) == data.signs).mean()),
        SHARE: float(uncertain.mean()),
        ON_EDGE: float(edge[uncertain].mean()) if uncertain.any() else np.nan,
        "mean label variance": variance,
    }


def stage_summary(stages: list[Row]) -> str:
    """Return the seconds of each stage and the peak memory, in words."""
    laps = "; ".join(f"{s['stage']}: {s['seconds']:.1f} s" for s in stages)
    memory = max(s["peak GB"] for s in stages)
    return f"Time of each stage — {laps}. Peak memory of the process: {memory:.1f} GB."


def _draw(data: Plume, label_mean: Float[np.ndarray, " N"]) -> Figure:
    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    frames = label_mean.reshape(data.shape)[1:]  # the first frame shows no plume
    image: Any = None
    for k, (axes, frame) in enumerate(zip(figure.subplots(2, 3).ravel(), frames, strict=True)):
        image = axes.imshow(frame, cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
        red = np.zeros((*frame.shape, 4))
        red[np.abs(frame) < UNCERTAIN] = (0.9, 0.1, 0.1, 1.0)
        axes.imshow(red, interpolation="nearest")
        axes.set_title(f"frame {k + 2}", fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.colorbar(image, ax=figure.axes, label=f"label mean s_j; red: |s_j| < {UNCERTAIN}")
    return figure
