"""Reversible jump: its parts, unsupported models, and interrupted runs."""

import warnings

import numpy as np
import pytest
from scipy import stats

import graphuq as gq
from graphuq.errors import (
    ImproperPriorWarning,
    IncompatibleParts,
    InvalidInput,
    NotConvergedWarning,
)
from graphuq.inference import MetropolisWithinGibbs, ReversibleJump
from graphuq.inference.reversible_jump.gibbs import triangular_root, truncated_normal
from graphuq.run.choose_sampler import choose_sampler

N = 24


def spectrum(laplacian="unnormalized", **options):
    path = np.diag(np.ones(N - 1), 1)
    return gq.laplacian_spectrum(gq.graphs.from_adjacency(path + path.T), laplacian, **options)


def posterior(prior=None, likelihood=None, of=None):
    prior = gq.priors.RandomSeries() if prior is None else prior
    likelihood = gq.likelihoods.Probit(1.0) if likelihood is None else likelihood
    labels = np.where(np.arange(0, N, 2) < N // 2, 1, -1)
    return gq.Posterior(of or spectrum(), prior, likelihood, np.arange(0, N, 2), labels)


def short(*arguments, **options):
    """Run chains too short to converge, and ignore the warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return gq.infer(*arguments, **options)


@pytest.mark.parametrize("mean", [5.0, 0.0, -3.0, -40.0])
def test_truncated_normals_far_in_the_tail(mean):
    """Truncated normals agree with the exact distribution function, also far in the tail."""
    w = truncated_normal(np.random.default_rng(0), np.full(20_000, mean))
    assert (mean + w > 0).all()
    share = np.exp(stats.norm.logsf(w) - stats.norm.logsf(-mean))  # uniform if correct
    assert stats.kstest(share, "uniform").pvalue > 0.01


@pytest.mark.parametrize("rank", [3, 8])
def test_leading_blocks_of_the_root_are_roots(rank):
    half = np.random.default_rng(1).normal(size=(8, rank))
    matrix = half @ half.T
    root = triangular_root(matrix)
    np.testing.assert_allclose(np.triu(root, 1), 0, atol=1e-12)
    for m in (2, 5, 8):
        np.testing.assert_allclose(root[:m, :m] @ root[:m, :m].T, matrix[:m, :m], atol=1e-12)


def test_reversible_jump_is_the_default_for_random_series():
    result = short(posterior(), n_samples=50, n_chains=2)
    assert result.settings["inference"].startswith("ReversibleJump(")
    assert set(result.hyperparameters) == {"scale", "truncation"}
    assert set(np.unique(result.hyperparameters["truncation"])) <= set(range(1, N + 1))


def test_a_scale_that_is_not_gamma_has_another_sampler():
    prior = gq.priors.RandomSeries(scale=gq.LogNormal(1.0, 1.0))
    with pytest.raises(IncompatibleParts, match="MetropolisWithinGibbs"):
        gq.infer(posterior(prior), ReversibleJump())
    assert isinstance(choose_sampler(posterior(prior), None), MetropolisWithinGibbs)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"prior": gq.priors.Matern(tau=gq.Uniform(0.1, 1.0))}, "RandomSeries"),
        ({"prior": gq.priors.RandomSeries(exponent=gq.Uniform(0.5, 2.0))}, "exponent"),
        ({"likelihood": gq.likelihoods.LevelSet(0.5)}, "probit"),
        ({"likelihood": gq.likelihoods.Probit(gq.Uniform(0.1, 1.0))}, "noise"),
        ({"of": spectrum("random-walk")}, "random-walk"),
        ({"of": spectrum(n_eigenpairs=9, tail_eigenvalue=True)}, "tail"),
    ],
)
def test_other_models_are_refused(changed, match):
    with pytest.raises(IncompatibleParts, match=match):
        gq.infer(posterior(**changed), ReversibleJump())


@pytest.mark.parametrize(
    "arguments", [{"proposal": "cubic"}, {"reach": 0}, {"form": "dense"}]
)  # fmt: skip
def test_unknown_options_are_refused(arguments):
    with pytest.raises(InvalidInput, match="; use "):
        ReversibleJump(**arguments)


def test_the_improper_scale_warns():
    with pytest.warns(ImproperPriorWarning, match="infinite mass"):
        prior = gq.priors.RandomSeries(scale=gq.Gamma(0, 0))
    result = short(posterior(prior), ReversibleJump(), n_samples=50, n_chains=2, n_warmup=100)
    assert np.isfinite(result.hyperparameters["scale"]).all()
    with pytest.raises(IncompatibleParts, match="improper"):
        gq.infer(posterior(prior), MetropolisWithinGibbs(gq.inference.PCN()))


@pytest.mark.parametrize(
    ("form", "whitened", "stopped_at"),  # during warm-up, and after it
    [
        pytest.param("marginal", True, 2, marks=pytest.mark.slow),
        pytest.param("marginal", True, 4, marks=pytest.mark.slow),
        ("reduced", False, 2),
        ("reduced", False, 4),
    ],
)
def test_an_interrupted_run_resumes_to_the_same_result(form, whitened, stopped_at, tmp_path):
    file, calls = tmp_path / "run.npz", []

    def stops(phase, done, total, acceptance):
        calls.append(done)
        if len(calls) == stopped_at:
            raise KeyboardInterrupt

    options = {"n_samples": 100, "n_chains": 2, "n_warmup": 300, "thin": 2, "rng": 4}
    method = ReversibleJump(form=form, whitened=whitened)
    with pytest.raises(KeyboardInterrupt):
        gq.infer(posterior(), method, checkpoint=file, progress=stops, **options)
    resumed = short(posterior(), method, checkpoint=file, **options)
    whole = short(posterior(), method, **options)
    np.testing.assert_array_equal(resumed.answer.white, whole.answer.white)
    np.testing.assert_array_equal(resumed.hyperparameters["scale"], whole.hyperparameters["scale"])


def test_soft_labels_are_saved_and_exact(tmp_path):
    """Soft labels are means of Φ(f) over draws, also after loading a file."""
    result = short(posterior(), n_samples=50, n_chains=2)
    field = result.answer.white.reshape(100, -1) @ result.posterior.spectrum.eigenvectors.T
    np.testing.assert_allclose(
        gq.results.soft_label_mean(result), stats.norm.cdf(field).mean(axis=0)
    )
    interval = gq.results.soft_label_interval(result, 0.5)
    np.testing.assert_allclose(interval, stats.norm.cdf(gq.credible_interval(result, 0.5)))
    result.save(tmp_path / "fit.nc")
    found = gq.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        gq.results.soft_label_mean(found), gq.results.soft_label_mean(result)
    )
    assert found.posterior.prior.truncation == result.posterior.prior.truncation


@pytest.mark.parametrize(
    ("likelihood", "low", "high"),
    [
        (gq.likelihoods.LevelSet(1.0), 1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2))),
        (gq.likelihoods.AtomicNoise(0.9, 0.8), 0.2, 0.9),
        (gq.likelihoods.NoiseFree(), 0.0, 1.0),
    ],
)
def test_soft_labels_of_step_likelihoods(likelihood, low, high):
    """Soft labels are means of the two levels, weighted by the probability that u > 0."""
    of = posterior(gq.priors.InverseLaplacian(), likelihood)
    result = gq.infer(of, gq.inference.ExpectationPropagation())
    unlabelled = np.arange(1, N, 2)  # u is not Gaussian at labelled nodes
    plus = result.probabilities[unlabelled, 1]
    found = gq.results.soft_label_mean(result)[unlabelled]
    np.testing.assert_allclose(found, low + (high - low) * plus, atol=1e-12)


def wavy():
    """Return a model of a path whose labels change a dozen times, which needs many modes."""
    labelled = np.arange(0, 300, 2)
    labels = np.where(np.sin(labelled / 8) > 0, 1, -1)
    return gq.graphs.path_graph(300), (gq.likelihoods.Probit(1.0), labelled, labels)


@pytest.mark.slow
def test_eigenpairs_are_added_on_demand():
    """The number of eigenpairs follows k, up to the given maximum."""
    graph, model = wavy()
    prior = gq.priors.RandomSeries(truncation_rate=0.3)
    found = gq.adapt_truncation(graph, prior, *model, n_eigenpairs=20)
    assert found.spectrum.n_eigenpairs == 40  # k often exceeds 16, rarely 32
    found = gq.adapt_truncation(graph, prior, *model, n_eigenpairs=20, max_eigenpairs=25)
    assert found.spectrum.n_eigenpairs == 25


def test_eigenpairs_are_added_for_a_random_truncation_only():
    graph, model = wavy()
    with pytest.raises(IncompatibleParts, match="no random truncation"):
        gq.adapt_truncation(graph, gq.priors.Matern(truncation=9), *model)
    with pytest.raises(InvalidInput, match="max_eigenpairs"):
        gq.adapt_truncation(
            graph, gq.priors.RandomSeries(), *model, n_eigenpairs=20, max_eigenpairs=10
        )
