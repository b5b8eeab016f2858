"""A user's own likelihood, prior, graph or sampler is one class or function.

Each is defined in this test, and then runs, is saved, loaded and reported like the library's.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import graphuq as gq
from graphuq.errors import StorageError
from graphuq.inference.draws import Draws

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")


class HeavyTails(gq.likelihoods.Likelihood):
    """Likelihood P(y = 1) = 1/2 + arctan(u / γ) / π, whose heavy tails allow wrong labels."""

    noise_std: float = 0.3

    def log_prob(self, u, y):
        return jnp.log(0.5 + jnp.arctan(y * u / self.noise_std) / jnp.pi)


class Heat(gq.priors.Prior):
    """Prior with variances exp(−t λ), the heat kernel."""

    time: float = 3.0

    def log_variances(self, eigenvalues):
        return -self.time * eigenvalues


def star_graph(features):
    """Join every row to the row nearest to the mean, and to the next row."""
    n = len(features)
    weights = np.zeros((n, n))
    hub = np.argmin(((features - features.mean(axis=0)) ** 2).sum(axis=1))
    weights[hub] = np.exp(-((features - features[hub]) ** 2).sum(axis=1))
    weights[np.arange(n - 1), np.arange(1, n)] = 1.0
    np.fill_diagonal(weights, 0.0)
    return gq.graphs.from_adjacency(np.maximum(weights, weights.T))


class ProbitGibbs(gq.inference.Sampler):
    """Albert and Chib's Gibbs sampler (1993), without kernel, step size or acceptance."""

    reference: gq.inference.Approximation | None = None
    default_warmup: ClassVar[int] = 100

    def refusal(self, posterior):
        if posterior.likelihood.latent_noise_std is None:
            return f"{self} samples the noise of a probit, and {posterior.likelihood} has none"
        return super().refusal(posterior)

    def run(self, posterior, settings, reference=None):
        settings = settings.with_defaults(4, self.default_warmup, 1)
        rng, noise = np.random.default_rng(settings.rng), posterior.likelihood.noise_std
        factor = np.asarray(posterior.field.matrix())  # u = factor @ x at the labelled nodes
        root = np.linalg.cholesky(np.eye(factor.shape[1]) + factor.T @ factor / noise**2)
        shape = settings.n_chains, settings.n_samples
        white, log_likelihood = np.empty((*shape, factor.shape[1])), np.empty(shape)
        for chain in range(settings.n_chains):
            x = rng.normal(size=factor.shape[1])
            for step in range(-settings.n_warmup, settings.n_samples):
                # y (u + γ ε) > 0: a truncated normal, by inversion
                mean = posterior.labels * (factor @ x) / noise
                uniform = rng.uniform(size=len(mean))
                above = -norm.ppf(uniform * ndtr(mean))
                latent = posterior.labels * noise * (mean + above)
                x = np.linalg.solve(root @ root.T, factor.T @ latent / noise**2)
                x += np.linalg.solve(root.T, rng.normal(size=len(x)))
                if step >= 0:
                    fitted = posterior.labels * (factor @ x) / noise
                    white[chain, step] = x
                    log_likelihood[chain, step] = norm.logcdf(fitted).sum()
        return Draws(
            white=white,
            log_likelihood=log_likelihood,
            acceptance=np.ones(shape),
            step_size=1.0,
            n_warmup=settings.n_warmup,
            thin=1,
        )


FEATURES = np.random.default_rng(4).normal(size=(40, 2)) + np.repeat([[0.0], [3.0]], 20, axis=0)
LABELLED, LABELS = [0, 7, 25, 33], [-1, -1, 1, 1]


def build(graph=None, prior=None, likelihood=None):
    graph = gq.graphs.knn_graph(FEATURES, n_neighbors=6) if graph is None else graph
    return gq.Posterior(
        gq.laplacian_spectrum(graph, n_eigenpairs=12),
        gq.priors.InverseLaplacian() if prior is None else prior,
        gq.likelihoods.Probit(0.3) if likelihood is None else likelihood,
        LABELLED,
        LABELS,
    )


CASES = {
    "likelihood": (lambda: build(likelihood=HeavyTails()), None),
    "prior": (lambda: build(prior=Heat()), None),
    "graph": (lambda: build(graph=star_graph(FEATURES)), None),
    "sampler": (build, ProbitGibbs()),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("case", CASES)
def test_own_parts_run_and_are_saved_loaded_and_reported(case, tmp_path):
    make, method = CASES[case]
    posterior = make()
    result = gq.infer(posterior, method, n_samples=300, rng=0)
    assert (gq.results.label_mean(result)[LABELLED] * LABELS > 0).all()
    result.save(tmp_path / "fit.nc")
    loaded = gq.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(gq.results.label_mean(loaded), gq.results.label_mean(result))
    assert loaded.posterior.prior == posterior.prior
    assert loaded.posterior.likelihood == posterior.likelihood
    # The loaded posterior is complete and can be sampled again.
    again = gq.infer(loaded.posterior, method, n_samples=300, rng=0)
    np.testing.assert_allclose(
        gq.results.label_mean(again), gq.results.label_mean(result), atol=1e-6
    )
    gq.write_report(loaded, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert gq.to_arviz(result) is not None
    assert len(result.to_dataframe()) == len(FEATURES)


@pytest.mark.slow
def test_the_sampler_of_a_new_shape_agrees_with_the_librarys():
    posterior = build()
    own = gq.infer(posterior, ProbitGibbs(), n_samples=4000, rng=1)
    ours = gq.infer(posterior, gq.inference.ExactHamiltonian(), n_samples=1000, rng=1)
    error = np.hypot(gq.results.label_mcse(own), gq.results.label_mcse(ours))
    assert error.max() < 0.02
    assert (
        np.abs(gq.results.label_mean(own) - gq.results.label_mean(ours)) < 5 * error + 1e-3
    ).all()
    with pytest.raises(gq.errors.IncompatibleParts, match="samples the noise of a probit"):
        gq.infer(build(likelihood=gq.likelihoods.Logistic()), ProbitGibbs())


def test_own_parts_work_in_the_classifier(tmp_path):
    y = np.full(len(FEATURES), -1)
    y[LABELLED] = (np.array(LABELS) + 1) // 2
    classifier = gq.GraphClassifier(
        model=gq.models.Fixed(Heat(), HeavyTails()), inference=gq.inference.MCMC(n_samples=300)
    )
    classifier.fit(FEATURES, y).save(tmp_path / "classifier.nc")
    loaded = gq.load(tmp_path / "classifier.nc")
    new = FEATURES[:5] + 0.01
    np.testing.assert_allclose(loaded.predict_proba(new), classifier.predict_proba(new))


def test_a_part_that_cannot_be_found_again_is_refused_before_writing(tmp_path):
    class Local(gq.likelihoods.Probit):
        pass

    result = gq.infer(build(likelihood=Local(0.3)), "expectation-propagation")
    with pytest.raises(StorageError, match="Local"):
        result.save(tmp_path / "fit.nc")
    assert not list(tmp_path.iterdir())


def test_own_likelihoods_are_differentiated_by_jax():
    target = build(likelihood=HeavyTails()).target
    gradient = jax.grad(lambda x: target.log_likelihood(x))(jnp.zeros(target.dimension))
    assert np.isfinite(np.asarray(gradient)).all()
