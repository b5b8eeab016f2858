"""Counts on a graph, against quadrature on a small one and against simulation."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import kstest, norm, poisson

import graphuq as gq
from graphuq.evidence import regression
from graphuq.evidence.counts import GraphCounts
from graphuq.evidence.weighed import maximize_regression, slopes_of, with_values
from graphuq.models.predictive import PoissonLogNormal
from known_fields import series_covariance

NAMES = ("tau", "alpha", "field_std", "noise_std")
RNG = np.random.default_rng(0)
GRAPH = gq.graphs.knn_graph(RNG.normal(size=(40, 2)), n_neighbors=6)
LABELLED = np.array([0, 5, 9])
COUNTS = np.array([0.0, 5.0, 2.0])
EXPOSURE = np.array([1.0, 2.0, 0.5])
OFFSET = 0.3  # of the log rate


@pytest.fixture(autouse=True)
def a_known_constant(monkeypatch):
    """Let the constant have deviation 1: that of 10 makes rates that nobody can simulate."""
    monkeypatch.setattr(regression, "CONSTANT_STD", 1.0)


def counts_model(laplacian="random-walk", tail=False, noise_std=0.35):
    spectrum = gq.laplacian_spectrum(GRAPH, laplacian, 25, tail_eigenvalue=tail)
    return GraphCounts(
        spectrum,
        gq.priors.Matern(tau=0.4, alpha=1.5),
        LABELLED,
        COUNTS,
        np.log(EXPOSURE) + OFFSET,
        field_std=0.8,
        noise_std=noise_std,
    )


def covariance(model):
    """Return the prior covariance of ``c + a u`` at all nodes."""
    series = series_covariance(model.prior, model.spectrum)
    return model.field_std**2 * series + 1.0


def on_a_grid(model, n=81):
    """Return log evidence, and mean and deviation at all nodes, by quadrature in three dimensions.

    The grid is over the log rates with their noise, whose prior is a normal one.
    """
    prior = covariance(model)
    seen = prior[np.ix_(LABELLED, LABELLED)] + model.noise_std**2 * np.eye(3)
    x = np.linspace(-6.5, 6.5, n)
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    log_weight = norm.logpdf(grid).sum(axis=1) + 3 * np.log(x[1] - x[0])
    rates = grid @ np.linalg.cholesky(seen).T
    log_mass = poisson.logpmf(model.counts, np.exp(rates + model.log_exposure)).sum(axis=1)
    joint = log_weight + log_mass
    log_evidence = logsumexp(joint)
    share = np.exp(joint - log_evidence)
    gain = prior[:, LABELLED] @ np.linalg.inv(seen)
    means = rates @ gain.T
    mean = share @ means
    variance = share @ (means - mean) ** 2 + np.diagonal(prior - gain @ prior[LABELLED])
    return log_evidence, mean, np.sqrt(variance)


@pytest.mark.parametrize(
    ("laplacian", "tail", "noise_std"),
    [("random-walk", False, 0.35), ("symmetric", 1.3, 0.35), ("random-walk", False, 0.0)],
)
def test_evidence_and_field_are_near_those_of_quadrature(laplacian, tail, noise_std):
    """Expectation propagation is off by 0.0003 in log evidence and by 0.001 of a deviation."""
    model = counts_model(laplacian, tail, noise_std)
    log_evidence, mean, std = on_a_grid(model)
    assert model.fixed_point.converged
    assert abs(model.log_evidence - log_evidence) < 1e-3
    found_mean, found_std = model.field()
    assert np.abs((found_mean - mean) / std).max() < 5e-4
    np.testing.assert_allclose(found_std, std, rtol=2e-3)
    rows, scale = np.asarray(model.spectrum.basis[20:23]), model.spectrum.node_scale[20:23]
    np.testing.assert_allclose(model.field_at(rows, scale)[0], found_mean[20:23])


def test_one_count_is_exact():
    """With a single count, expectation propagation has nothing to approximate but its moments."""
    model = dataclasses.replace(
        counts_model(), labelled=LABELLED[1:2], counts=COUNTS[1:2], log_exposure=np.full(1, 0.4)
    )
    variance = covariance(model)[5, 5]
    total = np.sqrt(variance + 0.35**2)

    def joint(h):
        return poisson.pmf(5, np.exp(h + 0.4)) * norm.pdf(h, 0, total)

    mass = quad(joint, -10, 10)[0]
    mean = quad(lambda h: h * joint(h), -10, 10)[0] / mass
    assert model.log_evidence == pytest.approx(np.log(mass), abs=1e-7)
    assert model.field()[0][5] == pytest.approx(mean * variance / total**2, abs=1e-6)


def test_leave_one_out_is_near_what_the_other_counts_predict():
    model = counts_model()
    mean, std = model.leave_one_out()
    for j, node in enumerate(LABELLED):
        others = np.arange(3) != j
        refit = dataclasses.replace(
            model,
            labelled=LABELLED[others],
            counts=COUNTS[others],
            log_exposure=model.log_exposure[others],
        )
        expected, field_std = (part[node] for part in refit.field())
        wide = np.hypot(field_std, model.noise_std)
        assert abs(mean[j] - expected) < 0.02 * wide
        assert std[j] == pytest.approx(wide, rel=0.02)


@pytest.mark.parametrize(("laplacian", "tail"), [("random-walk", False), ("symmetric", 1.3)])
def test_slopes_are_derivatives(laplacian, tail):
    model = counts_model(laplacian, tail)
    at = np.log([0.4, 1.5, 0.8, 0.35])

    def evidence(x):
        return with_values(model, dict(zip(NAMES, np.exp(x), strict=True))).log_evidence

    expected = approx_fprime(at, evidence, 1e-5)
    np.testing.assert_allclose(slopes_of(model, NAMES), expected, atol=1e-4)


def test_the_maximum_is_not_below_its_neighbours():
    start = counts_model()
    best = maximize_regression(start, ("field_std",))
    assert (best.prior, best.noise_std) == (start.prior, start.noise_std)

    def loss(factor):
        model = with_values(best, {"field_std": best.field_std * factor})
        return 0.5 * np.log(model.field_std) ** 2 - model.log_evidence  # its hyperprior

    assert loss(1.0) < min(loss(1.02), loss(0.98))
    assert maximize_regression(start, ()) is start


def test_where_the_passes_begin_does_not_matter():
    model = counts_model()
    other = with_values(with_values(model, {"field_std": 3.0}), {"field_std": 0.8})
    np.testing.assert_allclose(other.field()[0], model.field()[0], atol=1e-7)
    again = model.replaced()
    np.testing.assert_array_equal(again.field()[0], model.field()[0])  # a file holds these


def test_counts_that_differ_a_million_times_have_an_answer():
    model = dataclasses.replace(
        counts_model(), counts=np.array([1e6, 0.0, 3.0]), log_exposure=np.zeros(3)
    )
    best = maximize_regression(model, NAMES)
    assert best.fixed_point.converged
    mean = best.field()[0]
    assert mean[0] > mean[9] > mean[5]


def simulated(rng, n_labels=12):
    """Return a model of counts drawn from its own prior, and the log rates of all nodes."""
    model = counts_model()
    field = rng.multivariate_normal(np.zeros(40), covariance(model), method="eigh")
    labelled = rng.choice(39, n_labels, replace=False)  # the last node has no count
    log_exposure = np.log(rng.uniform(0.3, 3, n_labels)) + OFFSET
    log_rates = field + model.noise_std * rng.normal(size=40)
    counts = rng.poisson(np.exp(log_rates[labelled] + log_exposure)).astype(float)
    own = {"labelled": labelled, "counts": counts, "log_exposure": log_exposure}
    return dataclasses.replace(model, **own), field, log_rates


CONTROLS = {
    "right": lambda model: model,
    "field too small": lambda model: dataclasses.replace(model, field_std=0.4),
    "no exposure": lambda model: dataclasses.replace(
        model, log_exposure=np.full(len(model.counts), OFFSET)
    ),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("control", CONTROLS)
def test_simulation_based_calibration(control):
    """The true field has a uniform place in its posterior (Talts et al. 2018); controls do not."""
    rng, places = np.random.default_rng(1), []
    for _ in range(500):
        model, field, _ = simulated(rng)
        mean, std = CONTROLS[control](model).field()
        places += [norm.cdf((field[39] - mean[39]) / std[39])]
    p = kstest(places, "uniform").pvalue
    assert p > 1e-3 if control == "right" else p < 1e-4


def test_new_counts_have_uniform_places():
    """Randomised places of counts at the last node; half the deviation puts them at the ends."""
    rng, places = np.random.default_rng(2), {1.0: [], 0.5: []}
    for _ in range(500):
        model, _, log_rates = simulated(rng)
        count = np.array([float(rng.poisson(20 * np.exp(log_rates[39])))])
        mean, std = (part[39:] for part in model.field())
        for factor, found in places.items():
            own = PoissonLogNormal(mean + np.log(20), factor * np.hypot(std, model.noise_std))
            low, high = own.up_to(count - 1)[0], own.up_to(count)[0]
            found.append(low + rng.uniform() * (high - low))
    assert kstest(places[1.0], "uniform").pvalue > 1e-3
    outer = np.abs(np.array(places[0.5]) - 0.5)
    assert kstest(outer, "uniform", args=(0, 0.5)).pvalue < 1e-4


def test_learnt_hyperparameters_are_near_the_true_ones():
    """With many counts the evidence finds noise and size of a simulated field."""
    rng = np.random.default_rng(3)
    graph = gq.graphs.knn_graph(np.linspace(0, 1, 600)[:, None], n_neighbors=6)
    spectrum = gq.laplacian_spectrum(graph, "random-walk", 60)
    prior = gq.priors.Matern(tau=0.05, alpha=2.0)
    std = prior.spectral_std(spectrum)
    q = np.asarray(spectrum.eigenvectors)
    field = spectrum.node_scale * (q @ (std.modes * rng.normal(size=60)))
    counts = rng.poisson(50 * np.exp(field + 0.3 * rng.normal(size=600))).astype(float)
    everywhere, log_exposure = np.arange(600), np.full(600, np.log(50))
    start = GraphCounts(spectrum, gq.priors.Matern(), everywhere, counts, log_exposure)
    best = maximize_regression(start, NAMES)
    # A count of 50 says as much of the noise as a number with a variance of 0.3² + 1/50.
    assert abs(np.log(best.noise_std / 0.3)) < 4 * (1 + 1 / (50 * 0.3**2)) / np.sqrt(2 * 600)
    truth = GraphCounts(spectrum, prior, everywhere, counts, log_exposure, 1.0, 0.3)
    assert best.log_evidence > truth.log_evidence - 1
