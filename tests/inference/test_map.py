"""Maximum a posteriori against a general optimiser, and its two solvers against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput

WEIGHTS = random_adjacency(14, seed=2)
LABELLED, LABELS = [0, 3, 8, 11], np.array([1, -1, 1, -1])
MAP = gq.inference.MAP


def build(likelihood, n_eigenpairs=7, tail=False):
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail
    )
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, LABELLED, LABELS)


def series(n_eigenpairs):
    """Return the matrix of ξ → u, by the formulas."""
    degrees = WEIGHTS.sum(axis=1)
    operator = np.eye(14) - WEIGHTS / np.sqrt(np.outer(degrees, degrees))
    eigenvalues, q = np.linalg.eigh(operator)
    inverse = 1 / eigenvalues[1:n_eigenpairs]
    return q[:, 1:n_eigenpairs] * np.sqrt(14 * inverse / inverse.sum())


@pytest.mark.parametrize("noise_std", [0.1, 1.0])
def test_probit_solvers_agree_with_a_general_optimiser(noise_std):
    matrix = series(7)

    def objective(xi):
        u = matrix @ xi
        return xi @ xi / 2 - norm.logcdf(LABELS * u[LABELLED] / noise_std).sum()

    found = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    posterior = build(gq.likelihoods.Probit(noise_std))
    newton = gq.infer(posterior, MAP())
    flow = gq.infer(posterior, MAP(solver="flow", tolerance=1e-10))
    assert np.abs(newton.latent_mean - flow.latent_mean).max() < 1e-8
    assert np.abs(newton.latent_mean - matrix @ found.x).max() < 1e-4
    assert newton.answer.objective == pytest.approx(found.fun, abs=1e-8)
    assert newton.answer.n_iterations < flow.answer.n_iterations
    assert set(gq.results.label_mean(newton)) <= {-1.0, 1.0}
    assert gq.results.mean_label_variance(newton) == 0


def test_tail_and_full_spectrum():
    """A tail with the value of the eigenvalue it replaces changes nothing."""
    full = gq.infer(build(gq.likelihoods.Probit(0.3), 14), MAP())
    top = float(full.posterior.spectrum.eigenvalues[-1])
    tail = gq.infer(build(gq.likelihoods.Probit(0.3), 13, tail=top), MAP())
    np.testing.assert_allclose(tail.latent_mean, full.latent_mean, atol=1e-8)


def test_more_labels_than_modes_with_a_tail():
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=4, tail_eigenvalue=0.8
    )
    labels = np.where(np.arange(10) % 3 == 0, 1, -1)
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(0.3), np.arange(10), labels
    )
    found = gq.infer(posterior, MAP())
    covariance = spectrum.eigenvectors @ np.diag(posterior.std.modes**2) @ spectrum.eigenvectors.T
    rest = np.eye(14) - spectrum.eigenvectors @ spectrum.eigenvectors.T
    covariance = covariance + posterior.std.tail**2 * rest
    block = covariance[:10, :10]
    # Stationary: u = G_LL ∇ log p.
    u = found.latent_mean[:10]
    ratio = norm.pdf(u / 0.3) / norm.cdf(labels * u / 0.3) * labels / 0.3
    np.testing.assert_allclose(u, block @ ratio, atol=1e-7)
    np.testing.assert_allclose(found.latent_mean, covariance[:, :10] @ ratio, atol=1e-7)


@pytest.mark.slow
def test_ginzburg_landau_starts():
    posterior = build(gq.likelihoods.GinzburgLandau(0.1, 0.5), 14)
    target = posterior.target

    def objective(xi):
        u = series(14) @ turn @ xi
        misfit = ((u[LABELLED] - LABELS) ** 2).sum() / (2 * 0.5**2)
        return xi @ xi / 2 + ((u**2 - 1) ** 2).sum() / (4 * 0.1) + misfit

    # Coordinates of the field are those of the series, up to signs of eigenvectors.
    turn = np.linalg.pinv(series(14)) @ target.field.factor
    objectives = []
    for start in (None, "zero", "random", gq.likelihoods.Probit(0.1)):
        for solver in ("newton", "flow"):
            answer = gq.infer(posterior, MAP(solver=solver, start=start, rng=3)).answer
            objectives.append(answer.objective)
            for direction in np.random.default_rng(0).normal(size=(20, target.dimension)):
                near = answer.seen + 1e-3 * direction
                assert objective(near) > answer.objective - 1e-6
    assert max(objectives) > min(objectives) + 0.1, "several minima, found from different starts"


def test_a_model_without_a_maximum_is_refused():
    for likelihood in (gq.likelihoods.LevelSet(), gq.likelihoods.AtomicNoise(0.9, 0.8)):
        with pytest.raises(IncompatibleParts, match="shrinking the field"):
            gq.infer(build(likelihood), MAP())


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_wells_of_three_classes_have_their_minimum_on_a_kink(epsilon):
    """One labelled node with the prior N(0, I): slopes on both sides of the minimum are positive.

    The minimum by brute force has the other classes' fields at 0, where no gradient vanishes.
    """
    likelihood = gq.likelihoods.GinzburgLandau(epsilon, 0.5, n_classes=3)

    def objective(u):
        data = likelihood.log_prob(jnp.asarray(u), jnp.zeros(len(u)))
        return (u**2).sum(axis=1) / 2 - np.asarray(data)

    own, other = np.linspace(0.3, 1.3, 51), np.linspace(-0.5, 0.5, 51)
    grid = np.stack(np.meshgrid(own, other, other, indexing="ij"), axis=-1).reshape(-1, 3)
    with jax.enable_x64(True):
        best = grid[objective(grid).argmin()]
        near = best + [[0.0, 0.0, 0.0], [0.0, 1e-3, 0.0], [0.0, -1e-3, 0.0]]
        at, *beside = objective(near)
    assert np.abs(best[1:]).max() < 1e-9, "the middle of an odd grid"
    assert 0.5 < best[0] < 1.2
    assert (np.array(beside) - at).min() / 1e-3 > 0.01


@pytest.mark.parametrize(
    ("likelihood", "words"),
    [
        (gq.likelihoods.GinzburgLandau(n_classes=3), "kinks.*ParallelTempering"),
        (gq.likelihoods.GinzburgLandauPrior(gq.likelihoods.ConfusionMatrix()), "kinks"),
        (gq.likelihoods.GinzburgLandauPrior(gq.likelihoods.AtomicNoise(0.9)), "gradient"),
        (gq.likelihoods.Softmax(n_classes=3), "Laplace"),
    ],
)
def test_the_refusal_says_why(likelihood, words):
    classes = LABELS if not likelihood.is_multiclass else [0, 1, 2, 0]
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=7)
    prior = gq.priors.InverseLaplacian()
    posterior = gq.Posterior(spectrum, prior, likelihood, LABELLED, classes)
    with pytest.raises(IncompatibleParts, match=words):
        gq.infer(posterior, MAP())


def test_refusals():
    with pytest.raises(InvalidInput, match="solver"):
        MAP(solver="simplex")
    with pytest.raises(InvalidInput, match="start"):
        MAP(start="fiedler")
    with pytest.raises(InvalidInput, match="no stationary point in 2"):
        gq.infer(build(gq.likelihoods.Probit(0.1)), MAP(solver="flow", max_iterations=2))
    tail = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=3, tail_eigenvalue=True
    )
    prior, likelihood = gq.priors.InverseLaplacian(), gq.likelihoods.Probit()
    with_tail = gq.Posterior(tail, prior, likelihood, LABELLED, LABELS)
    with pytest.raises(IncompatibleParts, match="tail"):
        gq.infer(with_tail, MAP(solver="flow"))
    with pytest.raises(IncompatibleParts, match="gives a point"):
        gq.infer(
            build(gq.likelihoods.Probit()),
            gq.inference.Hamiltonian(reference=MAP()),
        )


@pytest.mark.slow
def test_saved_and_loaded(tmp_path):
    result = gq.infer(build(gq.likelihoods.GinzburgLandau()), MAP())
    result.save(tmp_path / "map.nc")
    again = gq.load(tmp_path / "map.nc")
    np.testing.assert_array_equal(gq.results.label_mean(again), gq.results.label_mean(result))
    np.testing.assert_array_equal(again.answer.seen, result.answer.seen)
    assert again.diagnostics == result.diagnostics
    assert "point" in again.diagnostics.verdict
    assert again.log_evidence is None
    with pytest.raises(IncompatibleParts, match="no draws"):
        _ = gq.results.draws(again)
