"""Averages over models of two modes, against integrals over their coefficients on a grid."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.inference import ModelAverage
from graphuq.inference.model_average.evidence_correction import second_order
from graphuq.inference.model_average.proposals import Proposals
from graphuq.models import Mixture, Term

FEW = random_adjacency(12, seed=3), np.array([0, 2, 5, 7, 9]), np.array([1.0, 1, -1, 1, 1])
WEDGE = (  # labels of all nodes, which leave two coefficients a narrow angle
    random_adjacency(12, seed=4),
    np.arange(12),
    np.array([1.0, 1, -1, 1, 1, -1, -1, -1, -1, -1, 1, 1]),
)
LABEL_WEIGHTS = np.array([0.3, 3.0, 2.0, 0.5, 1.0])
PROBABILITIES = np.array([0.4, 0.6])
EVIDENCE_ERROR = 0.03  # at which importance sampling of an evidence stops


class Case(NamedTuple):
    """Two components of two modes: the constant and the next one, or the two above the constant."""

    tau: tuple[float, float]
    alpha: tuple[float, float]
    scale: tuple[float, float]
    constant: bool


MILD = Case((0.8, 0.6), (2.0, 1.0), (2.0, 0.7), constant=True)
MILDER = MILD._replace(scale=(1.2, 0.5))
SHARP = Case((0.3, 0.6), (3.0, 1.0), (30.0, 3.0), constant=False)


def dense_series(adjacency, laplacian, case):
    """Return the map from two coefficients to u, and their deviations in each component.

    ``s² = σ² κ (λ + τ²)^(−α)``, such that the mean of u² over the nodes is σ².
    """
    degrees = adjacency.sum(axis=1)
    matrix = np.eye(len(degrees)) - adjacency / np.sqrt(np.outer(degrees, degrees))
    first = 0 if case.constant else 1
    values, vectors = (found[..., first : first + 2] for found in np.linalg.eigh(matrix))
    if laplacian == "random-walk":
        vectors = np.sqrt(degrees.mean() / degrees)[:, None] * vectors
    stds = []
    for tau, alpha, sigma in zip(*case[:3], strict=True):
        squares = (values + tau**2) ** -alpha
        level = len(degrees) / (squares @ (vectors**2).sum(axis=0))
        stds.append(sigma * np.sqrt(level * squares))
    return vectors, stds


def by_quadrature(problem, laplacian, case, weights=1.0, by_class=False):
    """Return label means, and the probability of the second component.

    A label of weight w has the probability ``Φ(√w y u)``. Labels that were drawn class by class
    have the weight ``∏ s_k^(1 − n_k)``, s_k the share of class k over all nodes but at least 0.05,
    and powers of 6 at most.
    """
    adjacency, labelled, labels = problem
    rows, stds = dense_series(adjacency, laplacian, case)
    axis = np.linspace(-6, 6, 97)
    grid = np.array(list(itertools.product(axis, axis)))
    means, parts = [], []
    for std, probability in zip(stds, PROBABILITIES, strict=True):
        u = grid * std @ rows.T
        at = probability * norm.pdf(grid).prod(axis=1)
        at *= np.exp(norm.logcdf(np.sqrt(weights) * labels * u[:, labelled]).sum(axis=1))
        if by_class:
            one = norm.cdf(u).mean(axis=1)
            for y, share in ((1, one), (-1, 1 - one)):
                power = min((labels == y).sum() - 1, 6)
                at *= np.maximum(share, 0.05) ** -float(power)
        parts.append(at.sum())
        means.append(at @ (2 * norm.cdf(u) - 1))
    return np.sum(means, axis=0) / sum(parts), parts[1] / sum(parts)


def posterior_of(problem, laplacian, case, **options):
    adjacency, labelled, labels = problem
    graph = gq.graphs.from_adjacency(adjacency)
    spectrum = gq.laplacian_spectrum(graph, laplacian, 2 if case.constant else 3)
    constant = True if case.constant else None
    terms = [
        Term(scale, gq.priors.Matern(tau, alpha, include_constant=constant))
        for tau, alpha, scale in zip(*case[:3], strict=True)
    ]
    prior = Mixture(terms, gq.Categorical(PROBABILITIES))
    likelihood = gq.likelihoods.Probit(1.0, random_labels=True)
    return gq.Posterior(spectrum, prior, likelihood, labelled, labels, **options)


def sampled(problem, laplacian, case, fields="auto", n_samples=2500, **options):
    posterior = posterior_of(problem, laplacian, case, **options)
    return gq.infer(posterior, ModelAverage(fields=fields), n_samples=n_samples)


def check(result, means, probability, error=0.0):
    """Compare with an integral; ``error`` is that of the log odds of the two components."""
    second = (result.answer.hyperparameters["component"] == 1).mean(axis=1)  # of each chain
    of_share = np.hypot(second.std(ddof=1) / np.sqrt(len(second)), error / 4)
    assert of_share < 0.015
    assert abs(second.mean() - probability) < 0.005 + 4 * of_share
    mcse = gq.results.label_mcse(result)
    assert mcse.max() < 0.015
    bound = 1e-3 + 5 * np.hypot(mcse, error / 4)
    assert (np.abs(gq.results.label_mean(result) - means) < bound).all()


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk"])
@pytest.mark.parametrize("weights", [None, LABEL_WEIGHTS], ids=["plain", "weights"])
def test_accepted_proposals(laplacian, weights):
    expected = by_quadrature(FEW, laplacian, MILD, 1.0 if weights is None else weights)
    check(sampled(FEW, laplacian, MILD, "exact", label_weights=weights), *expected)


def test_chains_of_components_have_corrected_evidence():
    """Expectation propagation is off by 0.23 in the log odds of the two."""
    expected = by_quadrature(WEDGE, "symmetric", SHARP)
    result = sampled(WEDGE, "symmetric", SHARP)
    assert not result.diagnostics.is_approximate
    check(result, *expected, error=EVIDENCE_ERROR)


@pytest.mark.parametrize("fields", ["exact", "auto"])
def test_labels_drawn_class_by_class(fields):
    expected = by_quadrature(FEW, "random-walk", MILDER, by_class=True)
    plain, _ = by_quadrature(FEW, "random-walk", MILDER)
    assert np.abs(plain - expected[0]).max() > 0.2
    result = sampled(FEW, "random-walk", MILDER, fields, 4000, label_design="by-class")
    check(result, *expected, error=0.0 if fields == "exact" else EVIDENCE_ERROR)


@pytest.mark.parametrize("design", ["random", "by-class"])
def test_many_labels_have_draws_that_are_nearly_exact(design):
    adjacency, rng = random_adjacency(140, seed=4), np.random.default_rng(0)
    rows, stds = dense_series(adjacency, "random-walk", MILD)
    labelled = np.sort(rng.permutation(140)[:120])
    noisy = rows[labelled] @ (stds[1] * [0.3, 1.5]) + 0.4 + rng.normal(size=120)
    few = np.sort(noisy)[-12]  # of one class: with many of both no field has weights
    problem = adjacency, labelled, np.where(noisy >= few, 1.0, -1.0)
    by_class = design == "by-class"
    expected, other = (
        by_quadrature(problem, "random-walk", MILD, by_class=one)
        for one in (by_class, not by_class)
    )
    assert np.abs(other[0] - expected[0]).max() > 0.04  # the designs differ
    result = sampled(problem, "random-walk", MILD, n_samples=1000, label_design=design)
    assert result.diagnostics.is_approximate
    check(result, *expected)


@pytest.mark.parametrize(
    ("problem", "case"),
    [(FEW, MILD), (FEW, MILDER), (WEDGE, SHARP._replace(scale=(5.0, 2.0))), (WEDGE, SHARP)],
    ids=["few", "milder", "wedge", "sharp wedge"],
)
def test_the_second_order_of_the_evidence(problem, case):
    """What it leaves out is about its square or less, which decides whether it is taken."""
    adjacency, labelled, labels = problem
    rows, stds = dense_series(adjacency, "symmetric", case)
    axis = np.linspace(-6, 6, 241)
    grid = np.array(list(itertools.product(axis, axis)))
    at = norm.pdf(grid).prod(axis=1) * (axis[1] - axis[0]) ** 2
    proposals = Proposals(posterior_of(problem, "symmetric", case))
    lacking = []
    for std, component in zip(stds, proposals.components, strict=True):
        likelihood = np.exp(norm.logcdf(labels * (grid * std @ rows[labelled].T)).sum(axis=1))
        lacking.append(np.log(at @ likelihood) - component.log_evidence)
    found = [second_order(one.sites, proposals.codes, 1.0) for one in proposals.components]
    assert max(np.abs(lacking)) > 1e-3  # expectation propagation is not exact
    for one, expected in zip(found, lacking, strict=True):
        assert abs(one - expected) < min(1.2 * one**2, abs(expected) / 2) + 5e-5
    rng = np.random.default_rng(0)
    corrected = [proposals.correction(rng, m, EVIDENCE_ERROR) for m in (0, 1)]
    for (value, error), expected in zip(corrected, lacking, strict=True):
        assert error < EVIDENCE_ERROR
        assert abs(value - expected) < 3 * EVIDENCE_ERROR
