"""Tempered multiple-try Metropolis against weighed draws of the prior."""

import dataclasses
from functools import cache

import jax
import numpy as np
import pytest
from reference import covariance
from scipy import stats

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts
from graphuq.inference import TemperedMultipleTry, multiple_try, tempered_multiple_try
from graphuq.target import log_likelihoods

LABELLED = [0, 2, 3, 5, 7, 8]
LABELS = [1, -1, 1, 1, -1, -1]
NODES = [2, 4, 6, 9]
WEIGHTS = random_adjacency(10, seed=4)
LENGTHS = {"n_samples": 500, "n_chains": 16, "n_warmup": 300, "thin": 4, "seed": 5}
FEW = {"n_tries": 4, "n_moves": 6, "n_counted": 2}  # most labels have their say at the end


def build(likelihood, tail=False, n_eigenpairs=7):
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs, tail=tail)
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, LABELLED, LABELS)


def off(likelihood, truth, sampler):
    """How many standard errors label means are off at most."""
    result = gq.infer(build(likelihood), sampler, **LENGTHS)
    signs = np.where(result.draws.white @ build(likelihood).field.coefficient_map.T
                     @ result.posterior.spectrum.eigenvectors[NODES].T >= 0, 1.0, -1.0)  # fmt: skip
    means = signs.mean(axis=1)  # of each chain
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert error.max() < 0.03
    return np.max(np.abs(means.mean(axis=0) - truth) / error)


@cache
def truth_of(likelihood):
    """Of two million draws from the prior, weighed by the likelihood."""
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


@pytest.mark.parametrize("settings", [{}, FEW], ids=["default", "few"])
@pytest.mark.parametrize(
    "likelihood",
    [gq.likelihoods.LevelSet(0.7), gq.likelihoods.AtomicNoise(0.95, 0.7)],
    ids=repr,
)
def test_label_means(likelihood, settings):
    assert off(likelihood, truth_of(likelihood), TemperedMultipleTry(**settings)) < 4


def test_who_does_not_ask_the_other_labels_is_caught(monkeypatch):
    """Negative control: what the counted labels propose is accepted as it is."""
    honest = multiple_try._line_moves
    monkeypatch.setattr(
        multiple_try, "_line_moves", lambda own, others, *rest: honest(own, 0 * others, *rest)
    )
    jax.clear_caches()
    likelihood = gq.likelihoods.LevelSet(0.7)
    assert off(likelihood, truth_of(likelihood), TemperedMultipleTry(**FEW)) > 10
    monkeypatch.undo()
    jax.clear_caches()


def test_as_many_labels_are_counted_as_matter():
    sure, rise = np.linspace(0, 4, 400), np.full(400, 2.0)
    right = stats.norm.cdf(sure)
    n_counted = tempered_multiple_try._enough(sure, rise)
    rest = np.cumsum((2 * right * (1 - right) * rise)[::-1])[::-1]
    assert n_counted & (n_counted - 1) == 0
    assert rest[n_counted] <= 1 < rest[n_counted // 2]
    assert tempered_multiple_try._enough(np.zeros(37), np.ones(37)) == 37
    assert tempered_multiple_try._enough(np.full(37, 9.0), np.ones(37)) == 1


@pytest.mark.parametrize("n_eigenpairs", [4, 7])
def test_the_field_has_the_priors_spread(n_eigenpairs):
    """Labels that say next to nothing, and an odd and an even number of coordinates."""
    posterior = build(gq.likelihoods.LevelSet(100.0), n_eigenpairs=n_eigenpairs)
    draws = gq.infer(posterior, TemperedMultipleTry(), **LENGTHS).draws
    square = (draws.white**2).sum(axis=-1)
    r = posterior.dimension
    for power, moment in ((1, r), (2, r * (r + 2))):
        means = (square**power).mean(axis=1)
        assert abs(means.mean() - moment) < 4 * means.std(ddof=1) / np.sqrt(len(means))
    mixed = np.einsum("csi,csj->cij", draws.white, draws.white) / draws.n_samples
    error = mixed.std(axis=0, ddof=1) / np.sqrt(len(mixed))
    assert np.all(np.abs(mixed.mean(axis=0) - np.eye(r)) < 4.5 * error)


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # short
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_log_likelihoods_are_the_targets(precision):
    posterior = build(gq.likelihoods.AtomicNoise(0.9, 0.8))
    lengths = LENGTHS | {"n_samples": 50, "precision": precision}
    draws = gq.infer(posterior, TemperedMultipleTry(), **lengths).draws
    truth = log_likelihoods(posterior.target, draws.white.astype(float))
    np.testing.assert_allclose(draws.log_likelihood, truth, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_an_interrupted_run_goes_on_to_the_same_numbers(tmp_path):
    posterior, calls, path = build(gq.likelihoods.LevelSet(0.7)), [], tmp_path / "run.npz"
    lengths = LENGTHS | {"n_samples": 150, "n_warmup": 200, "seed": -3}
    sampler = TemperedMultipleTry(**FEW)
    whole = gq.infer(posterior, sampler, **lengths)

    def interrupt(*_):
        calls.append(1)
        if len(calls) in (3, 7):  # between two tunings, and after the last
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            gq.infer(posterior, sampler, progress=interrupt, checkpoint=path, **lengths)
    resumed = gq.infer(posterior, sampler, checkpoint=path, **lengths)
    np.testing.assert_array_equal(resumed.draws.white, whole.draws.white)
    np.testing.assert_array_equal(resumed.draws.log_likelihood, whole.draws.log_likelihood)
    assert dataclasses.asdict(resumed.diagnostics)["rhat"] == whole.diagnostics.rhat


@pytest.mark.parametrize(
    ("posterior", "words"),
    [
        (build(gq.likelihoods.NoiseFree()), "labels that may be wrong"),
        (build(gq.likelihoods.Probit()), "two levels for two classes"),
        (build(gq.likelihoods.LevelSet(), tail=0.9, n_eigenpairs=4), "without a tail"),
    ],
    ids=["noise-free", "probit", "tail"],
)
def test_what_it_refuses(posterior, words):
    with pytest.raises(IncompatibleParts, match=words):
        gq.infer(posterior, TemperedMultipleTry())
