"""Fields with a prior mean against quadrature and closed forms; constants that are learnt."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput

WEIGHTS = random_adjacency(9, seed=5)
LABELLED, LABELS = [0, 4, 7], np.array([1.0, -1.0, 1.0])
FREE = np.setdiff1d(np.arange(9), LABELLED)
MEAN = np.linspace(-1.0, 1.5, 9)


def build(likelihood, prior_mean, laplacian="symmetric", **more):
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), laplacian, n_eigenpairs=4)
    prior = gq.priors.InverseLaplacian()
    return gq.Posterior(
        spectrum, prior, likelihood, LABELLED, LABELS, prior_mean=prior_mean, **more
    )


def by_quadrature(log_prob, prior_mean, n_points=61, width=5.0):
    """Return label mean, mean and deviation of u, and the log evidence, on a grid of 3 modes."""
    degrees = WEIGHTS.sum(axis=1)
    operator = np.eye(9) - WEIGHTS / np.sqrt(np.outer(degrees, degrees))
    eigenvalues, q = np.linalg.eigh(operator)
    std = np.sqrt(9 / eigenvalues[1:4] / (1 / eigenvalues[1:4]).sum())
    axis = np.linspace(-width, width, n_points)
    grid = np.stack(np.meshgrid(*[axis] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    u = grid @ (q[:, 1:4] * std).T + prior_mean
    prior = norm.logpdf(grid).sum(axis=1) + 3 * np.log(axis[1] - axis[0])
    weight = np.exp(prior + log_prob(u))
    total = weight.sum()
    weight /= total
    mean = weight @ u
    return weight @ np.sign(u), mean, np.sqrt(weight @ (u - mean) ** 2), np.log(total)


def probit(u):
    return norm.logcdf(LABELS * u[:, LABELLED] / 0.3).sum(axis=1)


def level_set(u):
    return np.where(np.sign(u[:, LABELLED]) == LABELS, 0.0, -2 / 1.5**2).sum(axis=1)


def logistic(u):
    return -np.log1p(np.exp(-2 * 2.0 * LABELS * u[:, LABELLED])).sum(axis=1)


def ginzburg_landau(u):
    wells = ((u**2 - 1) ** 2).sum(axis=1) / (4 * 2.0)
    return -wells - ((u[:, LABELLED] - LABELS) ** 2).sum(axis=1) / (2 * 0.8**2)


GAUSSIAN = gq.inference.ExpectationPropagation()
CASES = [
    (gq.likelihoods.Probit(0.3), probit, gq.inference.Independence(reference=GAUSSIAN)),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            (gq.likelihoods.Probit(0.3), probit, None),
            (gq.likelihoods.Probit(0.3), probit, gq.inference.PCN()),
            (gq.likelihoods.LevelSet(1.5), level_set, gq.inference.EllipticalSlice()),
            (gq.likelihoods.Logistic(2.0), logistic, gq.inference.Hamiltonian(reference=GAUSSIAN)),
            (gq.likelihoods.GinzburgLandau(2.0, 0.8), ginzburg_landau, gq.inference.Hamiltonian()),
        )
    ),
]


@pytest.mark.parametrize(("likelihood", "log_prob", "method"), CASES)
def test_draws_agree_with_quadrature(likelihood, log_prob, method):
    label_mean, mean, std, _ = by_quadrature(log_prob, MEAN)
    posterior = build(likelihood, MEAN)
    result = gq.infer(posterior, method, n_samples=1000, n_chains=32, thin=4, rng=1)
    if result.posterior.likelihood.link is not None:  # of a label drawn given u
        label_mean = by_quadrature_of_labels(log_prob)
    error = gq.results.label_mcse(result)
    assert error.max() < 0.02
    assert np.all(np.abs(gq.results.label_mean(result) - label_mean) < 4 * error + 5e-3)
    assert np.all(np.abs(result.latent_mean - mean) < 0.05 * std)
    np.testing.assert_allclose(result.latent_std, std, rtol=0.05)
    u = gq.results.latent_draws(result, [1, 4])
    np.testing.assert_allclose(u.mean(axis=1), mean[[1, 4]], atol=0.05 * std.max())
    interval = gq.credible_interval(result, 0.5)
    assert np.all((interval[:, 0] < mean) & (mean < interval[:, 1]))


def by_quadrature_of_labels(log_prob):
    """Return the mean of a logistic label at each node."""

    def of_node(node):
        def both(u):
            return log_prob(u) - np.log1p(np.exp(-2 * 2.0 * u[:, node]))

        return np.exp(by_quadrature(both, MEAN)[3] - by_quadrature(log_prob, MEAN)[3])

    return np.array([2 * of_node(node) - 1 for node in range(9)])


@pytest.mark.parametrize("prior_mean", [0.6, MEAN], ids=["number", "array"])
def test_expectation_propagation_and_leave_one_out(prior_mean):
    result = gq.infer(build(gq.likelihoods.Probit(0.3), prior_mean), GAUSSIAN)
    label_mean, mean, std, log_evidence = by_quadrature(probit, prior_mean)
    np.testing.assert_allclose(gq.results.label_mean(result), label_mean, atol=0.04)
    np.testing.assert_allclose(result.latent_mean, mean, atol=0.02)
    np.testing.assert_allclose(result.latent_std, std, atol=0.02)
    assert result.log_evidence == pytest.approx(log_evidence, abs=0.01)
    independence = gq.inference.Independence(reference=GAUSSIAN)
    drawn = gq.infer(result.posterior, independence, n_samples=200, n_chains=16)
    for one, tolerance in ((result, 0.03), (drawn, 0.02)):
        for j in range(3):

            def others(u, j=j):
                kept = np.delete(np.arange(3), j)
                return norm.logcdf(LABELS[kept] * u[:, np.array(LABELLED)[kept]] / 0.3).sum(axis=1)

            truth = np.exp(log_evidence - by_quadrature(others, prior_mean)[3])
            own = gq.leave_one_out(one).of_label[j, int(LABELS[j] > 0)]
            assert own == pytest.approx(truth, abs=tolerance)


@pytest.mark.parametrize("method", [GAUSSIAN, gq.inference.Laplace()], ids=str)
@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk", "unnormalized"])
def test_gaussian_noise_in_closed_form(method, laplacian):
    """E u = μ + G_·L (G_LL + γ²)⁻¹ (y − μ_L), and the evidence of y − μ_L."""
    posterior = build(gq.likelihoods.GaussianNoise(0.4), MEAN, laplacian)
    result = gq.infer(posterior, method)
    spectrum, std = posterior.spectrum, posterior.std.modes
    rows = spectrum.node_scale[:, None] * np.asarray(spectrum.eigenvectors) * std
    prior = rows @ rows.T
    noisy = prior[np.ix_(LABELLED, LABELLED)] + 0.16 * np.eye(3)
    gain = prior[:, LABELLED] @ np.linalg.inv(noisy)
    misfit = LABELS - MEAN[LABELLED]
    np.testing.assert_allclose(result.latent_mean, MEAN + gain @ misfit, atol=1e-7)
    variance = np.diag(prior - gain @ prior[LABELLED])
    np.testing.assert_allclose(result.latent_std, np.sqrt(np.maximum(variance, 0)), atol=1e-7)
    sign = 2 * norm.cdf(result.latent_mean / result.latent_std) - 1
    np.testing.assert_allclose(gq.results.label_mean(result)[FREE], sign[FREE], atol=1e-7)
    log_det = np.linalg.slogdet(2 * np.pi * noisy)[1]
    evidence = -0.5 * misfit @ np.linalg.solve(noisy, misfit) - 0.5 * log_det
    assert result.log_evidence == pytest.approx(evidence, abs=1e-7)
    if method is GAUSSIAN:  # a point has the same mean
        point = gq.infer(posterior, gq.inference.MAP())
        np.testing.assert_allclose(point.latent_mean, result.latent_mean, atol=1e-6)


@pytest.mark.parametrize("tail_eigenvalue", [False, "mean"])
def test_a_solved_covariance_and_a_tail_have_the_same_mean(tail_eigenvalue):
    """With all eigenpairs, columns of the covariance give the same answer; a tail changes none."""
    graph = gq.graphs.from_adjacency(WEIGHTS)
    full = gq.laplacian_spectrum(graph, "unnormalized", n_eigenpairs=9)
    bases = [full, gq.Laplacian(graph, "unnormalized")]
    prior = gq.priors.RegularizedLaplacian(beta=0.5, sigma=2.0)
    found = [
        gq.infer(
            gq.Posterior(
                basis, prior, gq.likelihoods.Probit(0.3), LABELLED, LABELS, prior_mean=MEAN
            ),
            GAUSSIAN,
        )
        for basis in bases
    ]
    np.testing.assert_allclose(found[0].probabilities, found[1].probabilities, atol=1e-5)
    np.testing.assert_allclose(found[0].latent_mean, found[1].latent_mean, atol=1e-5)
    tail = gq.laplacian_spectrum(graph, n_eigenpairs=2, tail_eigenvalue=tail_eigenvalue)
    posterior = gq.Posterior(
        tail,
        gq.priors.InverseLaplacian(),
        gq.likelihoods.GaussianNoise(1e4),
        LABELLED,
        LABELS,
        prior_mean=MEAN,
    )
    answer = gq.infer(posterior, GAUSSIAN)  # labels without information leave the prior
    np.testing.assert_allclose(answer.latent_mean, MEAN, atol=1e-6)


@pytest.mark.slow
def test_learnt_hyperparameters_keep_the_mean():
    posterior = build(gq.likelihoods.Probit(gq.Uniform(0.1, 1.0)), MEAN)
    method = gq.inference.MetropolisWithinGibbs(gq.inference.PCN())
    result = gq.infer(posterior, method, n_samples=1000, n_chains=32, thin=20, rng=0)
    noises = np.linspace(0.1, 1.0, 10)[1:] - 0.05

    def averaged(u):
        at = LABELS * u[:, LABELLED]
        return np.log(np.mean([norm.cdf(at / noise).prod(axis=1) for noise in noises], axis=0))

    label_mean, *_ = by_quadrature(averaged, MEAN)
    assert gq.results.label_mcse(result).max() < 0.01
    np.testing.assert_allclose(gq.results.label_mean(result), label_mean, atol=0.03)


def test_a_constant_mean_is_learnt_by_the_evidence():
    """With Gaussian noise the best constant is that of generalised least squares."""
    posterior = build(gq.likelihoods.GaussianNoise(0.5), 0.0)
    best = gq.maximize_evidence(posterior, ["prior_mean"], hyperprior=False)
    rows = np.asarray(posterior.spectrum.eigenvectors)[LABELLED] * posterior.std.modes
    weights = np.linalg.solve(rows @ rows.T + 0.25 * np.eye(3), np.ones(3))
    assert best.values["prior_mean"] == pytest.approx(weights @ LABELS / weights.sum(), abs=1e-3)
    assert best.posterior.prior_mean == best.values["prior_mean"]
    assert gq.infer(best.posterior, GAUSSIAN).hyperparameters["prior_mean"] == pytest.approx(
        best.values["prior_mean"]
    )
    together = gq.maximize_evidence(build(gq.likelihoods.Probit(0.3), 0.0))
    assert {"prior_mean", "noise_std"} <= set(together.values)
    plain = gq.maximize_evidence(build(gq.likelihoods.Probit(0.3), None))
    assert "prior_mean" not in plain.values
    assert together.log_evidence > plain.log_evidence - 0.5  # the hyperprior costs little


def test_the_regularised_laplacian_holds_a_constant_that_is_learnt():
    """G = (field without constant) + σ²/(βN) 11ᵀ: a constant with a Gaussian prior."""
    beta, sigma = 0.5, 3.0
    degrees = np.diag(WEIGHTS.sum(axis=1))
    inverse = np.linalg.inv(beta * (degrees - WEIGHTS + np.eye(9) / sigma**2))
    centre = np.eye(9) - np.ones((9, 9)) / 9
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), "unnormalized", n_eigenpairs=9
    )
    std = gq.priors.RegularizedLaplacian(beta, sigma).spectral_std(spectrum)
    rows = np.asarray(spectrum.eigenvectors) * std.modes
    np.testing.assert_allclose(rows @ rows.T, inverse, atol=1e-9)
    without = rows[:, 1:] @ rows[:, 1:].T
    np.testing.assert_allclose(without, centre @ inverse @ centre, atol=1e-9)
    np.testing.assert_allclose(inverse - without, sigma**2 / (beta * 9), atol=1e-9)


def test_files_pickles_new_labels_and_nodes_outside_keep_the_mean(tmp_path):
    for prior_mean in (0.6, MEAN):
        result = gq.infer(build(gq.likelihoods.Probit(0.3), prior_mean), GAUSSIAN)
        result.save(tmp_path / "result.nc")
        again = gq.load(tmp_path / "result.nc")
        np.testing.assert_array_equal(again.posterior.prior_mean, prior_mean)
        np.testing.assert_array_equal(gq.credible_interval(again), gq.credible_interval(result))
        assert str(again.posterior.likelihood) == str(result.posterior.likelihood)
        copied = pickle.loads(pickle.dumps(result.posterior))
        np.testing.assert_array_equal(
            gq.results.label_mean(gq.infer(copied, GAUSSIAN)), gq.results.label_mean(result)
        )
        more = result.posterior.relabelled([2], [-1])
        np.testing.assert_array_equal(
            more.likelihood.prior_mean,
            0.6 if isinstance(prior_mean, float) else MEAN[[0, 4, 7, 2]],
        )
    rows = np.asarray(result.posterior.spectrum.eigenvectors)[FREE]
    with pytest.raises(IncompatibleParts, match="at the nodes of the graph alone"):
        gq.results.at_rows(result, rows, np.ones(len(FREE)))
    constant = gq.infer(build(gq.likelihoods.Probit(0.3), 0.6), GAUSSIAN)
    outside = gq.results.at_rows(constant, rows, np.ones(len(FREE)))
    np.testing.assert_allclose(outside.label_mean, gq.results.label_mean(constant)[FREE])


def test_methods_that_need_a_threshold_at_zero_refuse():
    posterior = build(gq.likelihoods.Probit(0.3), MEAN)
    for name in ("exact-hamiltonian", "reflective-hamiltonian", "sequential-independence"):
        with pytest.raises(IncompatibleParts, match="of a field with a mean"):
            gq.infer(posterior, name)
    for method in (gq.inference.CollapsedGibbs(), gq.inference.ModelAverage()):
        assert method.refusal(posterior) is not None
    series = gq.priors.RandomSeries(1.0, truncation=gq.DiscreteUniform(1, 4))
    learnt = gq.Posterior(
        gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), "unnormalized", n_eigenpairs=4),
        series,
        gq.likelihoods.Probit(0.3),
        LABELLED,
        LABELS,
        prior_mean=0.5,
    )
    with pytest.raises(IncompatibleParts, match="of a field with a mean"):
        gq.infer(learnt, gq.inference.ReversibleJump())


@pytest.mark.parametrize(
    ("likelihood", "more", "error", "match"),
    [
        (gq.likelihoods.Probit(), {"prior_mean": [0.1]}, InvalidInput, "one for each node"),
        (gq.likelihoods.Probit(), {"prior_mean": "a"}, InvalidInput, "'a'"),
        (gq.likelihoods.Probit(), {"prior_mean": np.inf}, InvalidInput, "not finite"),
        (gq.likelihoods.NoiseFree(), {"prior_mean": 1.0}, IncompatibleParts, "positive prob"),
        (
            gq.likelihoods.Probit(),
            {"prior_mean": 1.0, "label_weights": [1.0, 2.0, 1.0]},
            IncompatibleParts,
            "weights",
        ),
    ],
)  # fmt: skip
def test_what_a_mean_cannot_be(likelihood, more, error, match):
    with pytest.raises(error, match=match):
        build(likelihood, **more)
