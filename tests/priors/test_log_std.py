"""Standard deviations and their logarithms are one computation, which counts the tail's energy."""

import dataclasses

import numpy as np
import pytest

import graphuq as gq
from conftest import random_adjacency

WEIGHTS = random_adjacency(20)
KEPT = 8  # eigenpairs, so that the tail has more energy than they
TAIL = 0.7  # its eigenvalue
NORMALIZED = [  # E|u|² of each is N
    gq.priors.InverseLaplacian(),
    gq.priors.InverseLaplacian(include_constant=True),
    gq.priors.Matern(tau=0.3, alpha=2.0),
    gq.priors.Matern(tau=0.3, alpha=40.0, include_constant=True),
    gq.priors.Diffusion(time=3.0),
    gq.priors.RandomWalk(n_steps=5.0),
    gq.priors.InverseCosine(include_constant=True),
    gq.priors.EigenScales(0.5, 2.0, scales=np.linspace(0.5, 2.0, KEPT)),
    gq.priors.LearnedSpectrum(slopes=np.array([0.0, 1.0, 3.0, 8.0]), n_knots=4),
]
MIXTURE = gq.models.Mixture(
    [
        gq.models.Term(3.0, gq.priors.Matern(0.2, 4.0)),
        gq.models.Term(0.5, gq.priors.Matern(0.6, 2.0, include_constant=True)),
    ]
)
SCALED = [MIXTURE.only(0), MIXTURE.only(1)]  # E|u|² is σ² N, σ = 3 and 0.5
UNSCALED = [  # variances are functions of λ alone
    gq.priors.RandomSeries(scale=40.0),
    gq.priors.RegularizedLaplacian(beta=0.5, sigma=2.0),
]
LAPLACIANS = ["symmetric", "unnormalized", "random-walk"]


def spectrum_of(laplacian, tail_eigenvalue=TAIL):
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(graph, laplacian, KEPT, tail_eigenvalue=tail_eigenvalue)
    if laplacian == "unnormalized":  # two kernels end at λ = 2
        eigenvalues = spectrum.eigenvalues * (2 / spectrum.eigenvalues[-1])
        spectrum = dataclasses.replace(spectrum, eigenvalues=eigenvalues)
    return spectrum


def energies(laplacian):
    """Return ``Σ_i (scale_i q_ji)²`` of the kept modes, and of all others, from dense matrices."""
    degrees = WEIGHTS.sum(axis=1)
    if laplacian == "unnormalized":
        matrix, scale = np.diag(degrees) - WEIGHTS, np.ones(20)
    else:
        matrix = np.eye(20) - WEIGHTS / np.sqrt(np.outer(degrees, degrees))
        walk = np.sqrt(degrees.mean() / degrees)  # its units cancel in a prior
        scale = walk if laplacian == "random-walk" else np.ones(20)
    rows = scale[:, None] * np.linalg.eigh(matrix)[1]
    each = (rows**2).sum(axis=0)
    return each[:KEPT], each[KEPT:].sum()


def by_prior(priors):
    return pytest.mark.parametrize("prior", priors, ids=repr)


@by_prior(NORMALIZED + SCALED)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_logarithms_have_the_energy_of_modes_and_tail(laplacian, prior):
    """``Σ_j s_j² e_j + s̄² ē = σ² N``, e and ē by hand: the tail has a share of it."""
    spectrum = spectrum_of(laplacian)
    modes = prior.modes(spectrum)
    logs, included = prior.log_std_of(modes), prior.modes_included(modes)
    by_mode, beyond = energies(laplacian)
    of_modes = np.exp(2 * np.asarray(logs.modes)[included]) @ by_mode[included]
    of_tail = np.exp(2 * logs.tail) * beyond
    sigma = prior.components[prior.component][0].scale if prior in SCALED else 1.0
    assert of_modes + of_tail == pytest.approx(20 * sigma**2, rel=1e-8)
    if getattr(prior, "alpha", 0) != 40.0:  # there the tail has no more than rounding errors
        assert of_tail > 1e-4 * of_modes


@by_prior(UNSCALED)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_priors_with_a_scale_of_their_own_keep_it(laplacian, prior):
    """``s² = 1/(c (λ + N⁻²))`` and ``1/(β (λ + 1/σ²))``, for modes and tail alike."""
    spectrum = spectrum_of(laplacian)
    precision, shift = (40.0, 20.0**-2) if prior is UNSCALED[0] else (0.5, 0.25)
    logs = prior.log_std_of(prior.modes(spectrum))
    at = np.append(spectrum.eigenvalues, TAIL)
    found = np.append(logs.modes, logs.tail)
    np.testing.assert_allclose(found, -np.log(precision * (at + shift)) / 2, rtol=1e-10)


@by_prior(NORMALIZED + SCALED + UNSCALED)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("tail", [False, TAIL])
def test_logarithms_are_those_of_the_deviations(laplacian, prior, tail):
    modes = prior.modes(spectrum_of(laplacian, tail))
    std, logs, included = prior.std_of(modes), prior.log_std_of(modes), prior.modes_included(modes)
    np.testing.assert_allclose(np.asarray(logs.modes)[included], np.log(std.modes[included]))
    assert (np.asarray(logs.modes)[~included] == 0).all()
    assert (np.asarray(std.modes)[~included] == 0).all()
    assert std.tail == (0 if tail is False else pytest.approx(np.exp(logs.tail)))
    assert (logs.tail == -np.inf) == (tail is False)


def test_a_deviation_that_underflows_has_a_finite_logarithm():
    prior = gq.priors.Matern(tau=0.01, alpha=2000.0, include_constant=True)
    modes = prior.modes(spectrum_of("symmetric"))
    std, logs = prior.std_of(modes), prior.log_std_of(modes)
    at = np.append(modes.eigenvalues, TAIL) + 1e-4
    found = np.append(logs.modes, logs.tail)
    np.testing.assert_allclose(found - found[0], -1000 * np.log(at / at[0]), rtol=1e-10)
    assert std.tail == std.modes[-1] == 0


@by_prior(UNSCALED + [gq.priors.Matern(), MIXTURE])
def test_functions_of_the_features_have_no_part_in_a_prior_on_the_graph(prior):
    plain = spectrum_of("symmetric", False)
    more = gq.Basis(plain).with_functions(np.random.default_rng(0).normal(size=(20, 2)))
    expected, found = (prior.spectral_std(one).modes for one in (plain, more))
    np.testing.assert_allclose(found[:KEPT], expected)
    assert (found[KEPT:] == 0).all()
    assert (np.asarray(prior.log_std_of(prior.modes(more)).modes)[KEPT:] == 0).all()
