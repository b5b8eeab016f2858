"""Tempered trajectories against weighted draws of the prior."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from reference import covariance

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts
from graphuq.inference import TemperedHamiltonian
from graphuq.inference.exact_hamiltonian import tempered
from graphuq.posterior.target import log_likelihoods

LABELLED = [0, 2, 3, 5, 7, 8]
LABELS = [1, -1, 1, 1, -1, -1]
NODES = [2, 4, 6, 9]
WEIGHTS = random_adjacency(10, seed=4)
LENGTHS = {"n_samples": 1000, "n_chains": 16, "n_warmup": 200, "thin": 1, "rng": 5}
FLAT = {"flattest": 0.3, "n_replicas": 4}


def build(likelihood, tail=False, n_eigenpairs=7):
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail)
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, LABELLED, LABELS)


def off(likelihood, truth, sampler):
    """Return the largest error of a label mean, in standard errors."""
    result = gq.infer(build(likelihood), sampler, **LENGTHS)
    signs = np.where(result.answer.white @ build(likelihood).field.coefficient_map.T
                     @ result.posterior.spectrum.eigenvectors[NODES].T >= 0, 1.0, -1.0)  # fmt: skip
    means = signs.mean(axis=1)  # by chain
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert error.max() < 0.03
    return np.max(np.abs(means.mean(axis=0) - truth) / error)


@cache
def truth_of(likelihood):
    """Return label means of two million prior draws, weighted by the likelihood."""
    root = np.linalg.cholesky(covariance(WEIGHTS, 7, None) + 1e-12 * np.eye(10))
    u = np.random.default_rng(7).normal(size=(2_000_000, 10)) @ root.T
    right = (u[:, LABELLED] >= 0) == (np.array(LABELS) > 0)
    if isinstance(likelihood, gq.likelihoods.LevelSet):
        chances = np.where(right, 1.0, np.exp(-2 / likelihood.noise_std**2))
    else:
        of_plus, of_minus = likelihood.p, likelihood.q
        chance_right = np.where(np.array(LABELS) > 0, of_plus, of_minus)
        chance_wrong = np.where(np.array(LABELS) > 0, 1 - of_minus, 1 - of_plus)
        chances = np.where(right, chance_right, chance_wrong)
    weights = chances.prod(axis=1)
    return tuple(weights @ np.sign(u[:, NODES]) / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [pytest.param({}, id="default"), pytest.param(FLAT, id="flat", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    "likelihood",
    [
        gq.likelihoods.LevelSet(0.7),
        pytest.param(gq.likelihoods.AtomicNoise(0.95, 0.7), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_label_means(likelihood, settings):
    assert off(likelihood, truth_of(likelihood), TemperedHamiltonian(**settings)) < 4


@pytest.mark.slow
def test_unconditional_swaps_are_detected(monkeypatch):
    """Negative control: neighbouring replicas are always swapped."""
    honest = tempered._swap
    monkeypatch.setattr(tempered, "_swap", lambda noise, *rest: honest(0 * noise, *rest))
    likelihood = gq.likelihoods.LevelSet(0.7)
    assert off(likelihood, truth_of(likelihood), TemperedHamiltonian(**FLAT)) > 10


def test_powers_equalize_rejections():
    """Powers are closer where rejections are frequent."""
    powers = tempered._equalize_rejections(
        np.array([0.1, 0.2, 0.6, 1.0]), np.array([0.2, 0.2, 0.8])
    )
    np.testing.assert_allclose(powers, [0.1, 0.6, 0.8, 1.0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_tempering_reaches_all_modes():
    """At most two of three bundles of labels can be right: three modes, 40 nats apart."""
    rng = np.random.default_rng(2)
    bundles = np.repeat([np.pi / 3, -np.pi / 3, np.pi], 10) + 0.1 * rng.normal(size=30)
    bundles[-1] += np.pi  # one label is −1, with the same information
    angles = np.append(bundles, [0.2, 1.3, 2.5])  # three nodes are unlabelled
    labels = np.append(np.ones(29), -1.0)
    spectrum = gq.Spectrum(
        eigenvalues=np.array([0.0, 1.0, 1.0]),
        eigenvectors=np.stack([np.ones(33), np.cos(angles), np.sin(angles)], axis=1),
        residuals=np.zeros(3),
        tail_eigenvalue=None,
        components=np.zeros(33, dtype=np.int64),
        degrees=np.ones(33),
        node_scale=np.ones(33),
        settings={"laplacian": "symmetric"},
    )
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.LevelSet(0.7), np.arange(30), labels
    )
    assert posterior.dimension == 2  # without the constant
    turn = np.linspace(0, 2 * np.pi, 100_001)[:-1]
    signs = np.sign(np.cos(turn[:, None] - angles))
    weights = np.exp(-2 / 0.7**2 * (signs[:, :30] != labels).sum(axis=1))
    truth = weights @ signs[:, 30:] / weights.sum()
    assert gq.infer(posterior, gq.inference.ExactHamiltonian(), **LENGTHS).diagnostics.rhat > 1.1
    freed = gq.infer(posterior, TemperedHamiltonian(flattest=0.1, n_replicas=10), **LENGTHS)
    assert freed.diagnostics.rhat < 1.01
    white = freed.answer.white @ posterior.field.coefficient_map.T
    means = np.sign(white @ spectrum.eigenvectors[30:].T).mean(axis=1)
    error = means.std(axis=0, ddof=1) / 4
    assert error.max() < 0.03
    assert np.all(np.abs(means.mean(axis=0) - truth) < 4 * error)


@pytest.mark.slow_after(1)
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # the run is short
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_log_likelihoods_are_the_targets(precision):
    posterior = build(gq.likelihoods.AtomicNoise(0.9, 0.8))
    lengths = LENGTHS | {"n_samples": 50, "precision": precision}
    draws = gq.infer(posterior, TemperedHamiltonian(), **lengths).answer
    truth = log_likelihoods(posterior.target, draws.white.astype(float))
    np.testing.assert_allclose(draws.log_likelihood, truth, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_an_interrupted_run_resumes_to_the_same_numbers(tmp_path):
    posterior, calls, path = build(gq.likelihoods.LevelSet(0.7)), [], tmp_path / "run.npz"
    lengths = LENGTHS | {"n_samples": 150, "n_warmup": 200, "thin": 2, "rng": 3}
    sampler = TemperedHamiltonian(**FLAT)
    whole = gq.infer(posterior, sampler, **lengths)

    def interrupt(*_):
        calls.append(1)
        if len(calls) in (3, 7):  # between two tunings, and after the last
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            gq.infer(posterior, sampler, progress=interrupt, checkpoint=path, **lengths)
    resumed = gq.infer(posterior, sampler, checkpoint=path, **lengths)
    np.testing.assert_array_equal(resumed.answer.white, whole.answer.white)
    np.testing.assert_array_equal(resumed.answer.log_likelihood, whole.answer.log_likelihood)
    assert dataclasses.asdict(resumed.diagnostics)["rhat"] == whole.diagnostics.rhat


@pytest.mark.parametrize(
    ("posterior", "words"),
    [
        (build(gq.likelihoods.NoiseFree()), "labels that may be wrong"),
        (build(gq.likelihoods.Probit()), "two levels for two classes"),
    ],
    ids=["noise-free", "probit"],
)
def test_unsupported_likelihoods_are_refused(posterior, words):
    with pytest.raises(IncompatibleParts, match=words):
        gq.infer(posterior, TemperedHamiltonian())
