"""Counts whose log rate is normal, against integrals by adaptive quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, poisson

from graphuq.evidence.poisson_lognormal import mass_up_to, sites_of
from graphuq.models.predictive import LogNormal, PoissonLogNormal

CASES = [
    (0, 0.0, 1.0), (0, -8.0, 2.0), (0, 6.0, 3.0), (3, 1.0, 0.05), (7, -2.0, 1.5), (40, 3.0, 10.0),
    (500, 6.5, 0.3), (2_000, 5.0, 1.0), (0, -42.0, 44.0), (2, -30.0, 30.0),
]  # fmt: skip
"""Count, mean and standard deviation of the log rate."""


def expectation(function, count, mean, std):
    """Return ``E[function(h) 1(y)]``, without any mode or grid of the code under test."""

    def integrand(h):
        return function(h) * poisson.pmf(count, np.exp(h)) * norm.pdf(h, mean, std)

    centre = np.linspace(mean - 12 * std, mean + 12 * std, 100_001)
    log_density = poisson.logpmf(count, np.exp(centre)) + norm.logpdf(centre, mean, std)
    top = centre[log_density.argmax()]
    inner = centre[log_density > log_density.max() - 8]
    points = [inner[0], top, inner[-1]]
    low, high = centre[log_density > log_density.max() - 50][[0, -1]]
    return quad(integrand, low, high, points=points, limit=500, epsabs=0, epsrel=1e-11)[0]


@pytest.mark.parametrize(("count", "mean", "std"), CASES)
def test_mass_and_moments_are_those_of_quadrature(count, mean, std):
    """A normal factor times the normal distribution has the mean and variance given the count."""
    found = sites_of(*(np.array([x], dtype=float) for x in (count, mean, std**2)))
    mass = expectation(lambda h: 1.0, count, mean, std)
    assert found.log_mass[0] == pytest.approx(np.log(mass), abs=1e-8)
    first = expectation(lambda h: h, count, mean, std) / mass
    second = expectation(lambda h: (h - first) ** 2, count, mean, std) / mass
    variance = 1 / (1 / std**2 + 1 / found.variance[0])
    middle = variance * (mean / std**2 + found.mean[0] / found.variance[0])
    assert variance == pytest.approx(second, rel=1e-6)
    assert abs(middle - first) < 1e-6 * np.sqrt(second)


@pytest.mark.parametrize("exponent", [-300, -20, -9, 6, 8])
def test_rates_of_any_size_have_finite_factors(exponent):
    """From a rate that says nothing of a count of 0, to counts of a hundred million."""
    count = float(np.round(10.0**exponent))
    found = sites_of(*(np.array([x]) for x in (count, exponent * np.log(10), 100.0)))
    assert np.isfinite(found).all()
    assert found.variance[0] > 0
    if count > 0:  # a factor as sharp as the count is: variance 1/y
        assert found.variance[0] == pytest.approx(1 / count, rel=0.1)
        assert found.mean[0] == pytest.approx(np.log(count), abs=0.1)
    else:  # a count of 0 where nearly none is expected is no news
        assert -0.1 < found.log_mass[0] <= 0


@pytest.mark.parametrize(("count", "mean", "std"), CASES)
def test_distribution_functions_are_those_of_quadrature(count, mean, std):
    found = mass_up_to(*(np.array([x], dtype=float) for x in (count, mean, std)))[0]
    h = np.linspace(mean - 9 * std, mean + 9 * std, 200_001)
    expected = np.trapezoid(poisson.cdf(count, np.exp(h)) * norm.pdf(h, mean, std), h)
    assert found == pytest.approx(expected, abs=1e-9)
    assert mass_up_to(np.array([-1.0]), np.array([mean]), np.array([std])) == 0


def test_masses_sum_to_the_distribution_function():
    counts = np.arange(400.0)
    own = PoissonLogNormal(np.full(400, 1.0), np.full(400, 0.8))
    masses = np.exp(own.log_mass(counts))
    np.testing.assert_allclose(np.cumsum(masses), own.up_to(counts), atol=1e-10)
    np.testing.assert_allclose(own.mean[0], (masses * counts).sum(), rtol=1e-6)


def test_mean_deviation_and_quantiles_are_those_of_draws():
    """A hundred thousand counts at each of four rows."""
    rng, n = np.random.default_rng(0), 100_000
    log_mean, log_std = np.array([-1.0, 0.5, 2.0, 4.0]), np.array([0.3, 1.0, 0.05, 0.6])
    own = PoissonLogNormal(log_mean, log_std)
    draws = own.simulated(rng.normal(size=(n, 4)), rng)
    assert np.all(np.abs(draws.mean(axis=0) - own.mean) < 4 * own.std / np.sqrt(n))
    np.testing.assert_allclose(draws.std(axis=0), own.std, rtol=0.06)
    for coverage in (0.5, 0.9):
        low, high = own.interval(coverage).T
        held = ((low <= draws) & (draws <= high)).mean(axis=0)
        assert np.all(held > coverage - 4 * np.sqrt(0.25 / n))
        without_ends = ((low < draws) & (draws < high)).mean(axis=0)
        assert np.all(without_ends < coverage)
        exact = own.inside(draws, coverage)
        error = exact.std(axis=0) / np.sqrt(n)
        assert np.all(error < 0.005)
        assert np.all(np.abs(exact.mean(axis=0) - coverage) < 4 * error)


def test_a_quantile_is_the_smallest_count_that_reaches_its_level():
    rng = np.random.default_rng(1)
    own = PoissonLogNormal(rng.uniform(-4, 9, 50), rng.uniform(0.01, 2.5, 50))
    for level in (0.025, 0.5, 0.95):
        found = own.quantile(level)
        assert np.all(own.up_to(found) >= level)
        assert np.all(own.up_to(found - 1) < level)


def test_rates_are_log_normal():
    rng = np.random.default_rng(0)
    rates = LogNormal(np.array([0.3]), np.array([0.7]))
    draws = rates.simulated(rng.normal(size=(200_000, 1)), rng)
    error = draws.std() / np.sqrt(200_000)
    assert abs(draws.mean() - rates.mean[0]) < 4 * error
    np.testing.assert_allclose(draws.std(), rates.std[0], rtol=0.02)
    assert abs((draws <= rates.quantile(0.9)).mean() - 0.9) < 4 * np.sqrt(0.09 / 200_000)
