"""Label means of whole runs against orthant probabilities of a multivariate normal."""

import dataclasses

import numpy as np
import pytest
from reference import covariance, level_set_label_mean, probit_label_mean, step_label_mean

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts

LABELLED, LABELS = [0, 3, 7, 12], [1, -1, 1, -1]
N_NODES, N_EIGENPAIRS = 24, 12
NODES = [1, 5, 7, 12, 20, 23]  # two of them are labelled


def run(likelihood, *, tail, labelled=LABELLED, labels=LABELS, laplacian="symmetric", **options):
    graph = gq.graphs.from_adjacency(random_adjacency(N_NODES, seed=3))
    spectrum = gq.laplacian_spectrum(graph, laplacian, N_EIGENPAIRS, tail_eigenvalue=tail)
    posterior = gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, labelled, labels)
    return gq.infer(
        posterior, gq.inference.PCN(), n_samples=2000, n_chains=32, thin=10, rng=1, **options
    )


def assert_label_means(result, truth, nodes):
    """Check label means within 4 standard errors, which must be below 0.01."""
    error = gq.results.label_mcse(result)[nodes]
    assert error.max() < 0.01
    assert np.all(np.abs(gq.results.label_mean(result)[nodes] - truth) < 4 * error + 2e-5)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "laplacian",
    ["symmetric", pytest.param("unnormalized", marks=pytest.mark.slow), "random-walk"],
)
@pytest.mark.parametrize("tail", [None, 0.8])
def test_probit(tail, laplacian):
    result = run(gq.likelihoods.Probit(0.4), tail=tail or False, laplacian=laplacian)
    prior = covariance(random_adjacency(N_NODES, seed=3), N_EIGENPAIRS, tail, laplacian)
    truth = [probit_label_mean(prior, LABELLED, LABELS, 0.4, node) for node in NODES]
    assert_label_means(result, truth, NODES)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("tail", [None, 0.8])
def test_level_set(tail):
    result = run(gq.likelihoods.LevelSet(1.0), tail=tail or False)
    prior = covariance(random_adjacency(N_NODES, seed=3), N_EIGENPAIRS, tail)
    truth = [level_set_label_mean(prior, LABELLED, LABELS, 1.0, node) for node in NODES]
    assert_label_means(result, truth, NODES)


@pytest.mark.slow
def test_more_labels_than_modes_with_tail():
    """The covariance has a structured square root with J = 6 > ℓ = 4."""
    labelled, labels = [0, 3, 7, 12, 15, 18], [1, -1, 1, -1, 1, 1]
    graph = gq.graphs.from_adjacency(random_adjacency(N_NODES, seed=3))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=4, tail_eigenvalue=0.9)
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(0.4), labelled, labels
    )
    assert type(posterior.field).__name__ == "TailField"
    result = gq.infer(posterior, gq.inference.PCN(), n_samples=2000, n_chains=32, thin=10, rng=2)
    prior = covariance(random_adjacency(N_NODES, seed=3), 4, 0.9)
    nodes = [1, 7, 20]
    truth = [probit_label_mean(prior, labelled, labels, 0.4, node) for node in nodes]
    assert_label_means(result, truth, nodes)


@pytest.mark.slow
def test_float32_chain():
    result = run(gq.likelihoods.Probit(0.4), tail=False, precision="float32")
    prior = covariance(random_adjacency(N_NODES, seed=3), N_EIGENPAIRS, None)
    truth = [probit_label_mean(prior, LABELLED, LABELS, 0.4, node) for node in NODES]
    assert_label_means(result, truth, NODES)


def test_wrong_noise_is_detected():
    """Negative control: label means for another γ are outside the bounds."""
    result = run(gq.likelihoods.Probit(0.4), tail=False)
    prior = covariance(random_adjacency(N_NODES, seed=3), N_EIGENPAIRS, None)
    truth = np.array([probit_label_mean(prior, LABELLED, LABELS, 0.6, node) for node in NODES])
    gap = np.abs(gq.results.label_mean(result)[NODES] - truth)
    assert (gap > 4 * gq.results.label_mcse(result)[NODES]).any()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("gram_labels", [4096, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("likelihood", "right", "wrong"),
    [
        (gq.likelihoods.LevelSet(1.0), {1: 1, -1: 1}, {1: np.exp(-2), -1: np.exp(-2)}),
        (gq.likelihoods.AtomicNoise(0.9, 0.8), {1: 0.9, -1: 0.8}, {1: 0.2, -1: 0.1}),
        pytest.param(
            gq.likelihoods.NoiseFree(), {1: 1, -1: 1}, {1: 0, -1: 0}, marks=pytest.mark.slow
        ),
    ],
    ids=["level-set", "atomic", "noise-free"],
)
@pytest.mark.parametrize(
    ("n_eigenpairs", "tail"),
    [
        pytest.param(12, None, marks=pytest.mark.slow),
        pytest.param(12, 0.8, marks=pytest.mark.slow),
        (3, 0.8),
    ],
)
def test_exact_hamiltonian(monkeypatch, likelihood, right, wrong, n_eigenpairs, tail, gram_labels):
    """Every kind of field agrees, with scalar products of walls stored or computed on demand."""
    monkeypatch.setattr("graphuq.inference.exact_hamiltonian.trajectories.GRAM_LABELS", gram_labels)
    graph = gq.graphs.from_adjacency(random_adjacency(N_NODES, seed=3))
    spectrum = gq.laplacian_spectrum(
        graph, n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail or False
    )
    prior = gq.priors.InverseLaplacian()
    posterior = gq.Posterior(spectrum, prior, likelihood, LABELLED, LABELS)
    method = gq.inference.ExactHamiltonian()
    result = gq.infer(posterior, method, n_samples=2000, n_chains=32, thin=2, n_warmup=100, rng=1)
    assert result.diagnostics.acceptance > 0.999
    levels = {(y, y): right[y] for y in (-1, 1)} | {(-y, y): wrong[y] for y in (-1, 1)}
    law = covariance(random_adjacency(N_NODES, seed=3), n_eigenpairs, tail)
    truth = [step_label_mean(law, LABELLED, LABELS, levels, node) for node in NODES]
    assert_label_means(result, truth, NODES)


def test_exact_hamiltonian_needs_two_levels(posterior):
    wells = dataclasses.replace(posterior, likelihood=gq.likelihoods.GinzburgLandau())
    with pytest.raises(IncompatibleParts, match="needs a likelihood of two levels"):
        gq.infer(wells, gq.inference.ExactHamiltonian())
