"""Averages over models: against exact components, and against chains that learn the component."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import MetropolisWithinGibbs, ModelAverage
from graphuq.inference.hamiltonian import Hamiltonian
from graphuq.inference.model_average.proposals import Proposals
from graphuq.models import Mixture, Term
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import class_probability_draws
from graphuq.results.uncertainty import class_probabilities

MOONS = gq.datasets.two_moons(80, n_features=2, noise_std=0.08)
SPECTRUM = gq.laplacian_spectrum(gq.graphs.knn_graph(MOONS.features), n_eigenpairs=20)
BASIS = gq.Basis(SPECTRUM).with_functions(MOONS.features).with_blocks(["exponential"])
SMOOTH = Term(5.0, gq.priors.Matern(0.1, 4.0))
ON_FEATURES = Mixture(
    [SMOOTH, Term(3.0, block="exponential"), Term(0.5, block="exponential")],
    gq.Categorical([0.2, 0.5, 0.3]),
)
PRIOR = Mixture(
    [
        SMOOTH,
        Term(2.0, gq.priors.Matern(0.5, 2.0, include_constant=True)),
        Term(0.3, gq.priors.Matern(0.5, 2.0)),
    ],
    gq.Categorical([0.5, 0.3, 0.2]),
)


def posterior(n_classes=2, prior=PRIOR):
    labelled = np.array([0, 10, 40, 70, 25, 60])
    labels = MOONS.classes[labelled]
    if n_classes == 3:
        labels = np.array([0, 0, 1, 1, 2, 2])
    likelihood = gq.likelihoods.Probit(1.0, n_classes, random_labels=True)
    spectrum = BASIS if prior is ON_FEATURES else SPECTRUM
    return gq.Posterior(
        spectrum, prior, likelihood, labelled, 2 * labels - 1 if n_classes == 2 else labels
    )


def weighted_prior_draws(target, n=200_000, by_class=False):
    """Return label means and the probability of each component, from draws of the prior.

    Labels that were drawn class by class have the weight ``∏ s_k^(1 − n_k)``, s_k over all nodes
    but at least 0.05.
    """
    rng, likelihood = np.random.default_rng(0), target.likelihood
    prior, spectrum = target.prior, target.spectrum
    model = rng.choice(3, size=n, p=np.exp(prior.log_probabilities))
    std = np.stack([prior.only(m).spectral_std(spectrum).modes for m in range(3)])
    white = rng.normal(size=(n, target.n_fields, spectrum.n_columns)) * std[model][:, None]
    u = np.einsum("nl,skl->snk", spectrum.basis, white)
    u = u[:, :, 0] if target.n_fields == 1 else u
    with jax.enable_x64(True):
        labels, at = jnp.asarray(target.labels), jnp.asarray(u[:, target.labelled])
        logs = jax.jit(jax.vmap(lambda one: likelihood.log_prob(one, labels).sum()))(at)
    logs = np.asarray(logs)
    if by_class:
        shares, positive = norm.cdf(u).mean(axis=1), (target.labels > 0).sum()
        logs = logs + (1 - positive) * np.log(np.maximum(shares, 0.05))
        logs += (1 - len(target.labels) + positive) * np.log(np.maximum(1 - shares, 0.05))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    if target.n_fields == 1:
        means = weights @ (2 * norm.cdf(u) - 1)
    else:
        noisy = (u + rng.normal(size=u.shape)).argmax(axis=2)
        means = np.stack([weights @ (noisy == k) for k in range(target.n_fields)], axis=1)
    shares = np.array([weights[model == m].sum() for m in range(3)])
    return means, shares, 1 / np.sqrt(1 / (weights**2).sum())


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("prior", [PRIOR, ON_FEATURES], ids=["graph", "features"])
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_exact_draws_agree_with_weighted_draws_of_the_prior(n_classes, prior):
    target = posterior(n_classes, prior)
    result = gq.infer(target, ModelAverage(fields="exact"), n_samples=4000)
    means, shares, error = weighted_prior_draws(target)
    assert result.diagnostics.converged
    assert not result.diagnostics.is_approximate
    assert np.abs(gq.results.label_mean(result) - means).max() < 5 * (
        error + gq.results.label_mcse(result).max()
    )
    models = result.answer.hyperparameters["component"]
    found = [(models == m).mean() for m in range(3)]
    np.testing.assert_allclose(found, shares, atol=5 * error + 0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_chains_of_components_start_at_their_posterior(n_classes):
    """Means of 400 starts agree with those of one long chain, within five standard errors."""
    chains, rng, n = Proposals(posterior(n_classes)).chains(0, False), np.random.default_rng(1), 400
    starts = np.stack([chains.start(rng) for _ in range(n)], axis=1)
    for noisy, own in zip(chains.noisy, starts, strict=True):
        chain = noisy.run(rng, own[0], 4000, 10)
        assert (own.std(axis=0) > 0).all()
        error = chain.std(axis=0) * np.sqrt(1 / n + 1 / 2000)  # draws that depend on each other
        assert (np.abs(own.mean(axis=0) - chain.mean(axis=0)) < 5 * error).all()
        np.testing.assert_allclose(own.std(axis=0), chain.std(axis=0), rtol=5 / np.sqrt(n))


UNEQUAL = np.array([0, 10, 40, 70, 25, 60]), np.array([1, 1, 1, 1, -1, 1])


@pytest.mark.parametrize("fields", [pytest.param("exact", marks=pytest.mark.slow), "auto"])
def test_labels_drawn_class_by_class_agree_with_weighted_draws_of_the_prior(fields):
    likelihood = gq.likelihoods.Probit(1.0, random_labels=True)
    target = gq.Posterior(SPECTRUM, PRIOR, likelihood, *UNEQUAL)
    plain, _, _ = weighted_prior_draws(target)
    means, shares, error = weighted_prior_draws(target, by_class=True)
    assert np.abs(plain - means).max() > 0.2  # five labels to one are no evidence of shares
    target = dataclasses.replace(target, label_design="by-class")
    result = gq.infer(target, ModelAverage(fields=fields), n_samples=4000)
    assert not result.diagnostics.is_approximate
    assert np.abs(gq.results.label_mean(result) - means).max() < 5 * (
        error + gq.results.label_mcse(result).max()
    )
    found = [(result.answer.hyperparameters["component"] == m).mean() for m in range(3)]
    np.testing.assert_allclose(found, shares, atol=5 * error + 0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_acceptance_is_that_of_the_chains(n_classes):
    target = posterior(n_classes)
    result = gq.infer(target, ModelAverage(fields="exact"), n_samples=2000)
    pilot = Proposals(target).acceptance()
    assert 0.1 < pilot < 0.95
    assert pilot == pytest.approx(result.diagnostics.acceptance, abs=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_exact_draws_agree_with_chains(n_classes):
    ours = gq.infer(posterior(n_classes), ModelAverage(fields="exact"), n_samples=4000)
    chain = MetropolisWithinGibbs(kernel=Hamiltonian(), joint=True)
    theirs = gq.infer(posterior(n_classes), chain, n_samples=1000, n_chains=8)
    assert ours.diagnostics.converged
    assert not ours.diagnostics.is_approximate
    bound = 5 * np.hypot(gq.results.label_mcse(ours), gq.results.label_mcse(theirs)) + 1e-3
    assert (
        np.abs(gq.results.label_mean(ours) - gq.results.label_mean(theirs)) < bound
    ).mean() > 0.98
    for model in range(3):
        share = [(r.answer.hyperparameters["component"] == model).mean() for r in (ours, theirs)]
        assert share[0] == pytest.approx(share[1], abs=0.05)


def test_evidence_is_the_sum_over_components():
    mixed = gq.infer(posterior(), ModelAverage(fields="gibbs"), n_samples=400)
    parts = [
        gq.infer(posterior(prior=PRIOR.only(m)), "expectation-propagation").log_evidence
        for m in range(3)
    ]
    expected = np.log(np.exp(parts) @ np.array([0.5, 0.3, 0.2]))
    assert mixed.log_evidence == pytest.approx(expected, abs=1e-3)
    assert mixed.diagnostics.is_approximate
    assert "approximation" in mixed.diagnostics.verdict


def test_the_evidence_of_an_average_is_the_corrected_one():
    """Against the mean likelihood of draws of the prior."""
    scales = np.array([30.0, 10.0])
    rough = gq.priors.Matern(2.0, 1.0)
    prior = Mixture([Term(s, rough) for s in scales.tolist()], gq.Categorical([0.5, 0.5]))
    nodes, labels = np.arange(0, 20, 2), np.array([1, -1] * 5)
    target = gq.Posterior(
        SPECTRUM, prior, gq.likelihoods.Probit(1.0, random_labels=True), nodes, labels
    )
    proposals = Proposals(target)
    chains = proposals.chains(0, corrected=True)
    rng, n = np.random.default_rng(0), 1_000_000
    rows = np.asarray(SPECTRUM.eigenvectors)[nodes]
    root = np.linalg.cholesky(
        (rows * rough.spectral_std(SPECTRUM).modes ** 2) @ rows.T + 1e-9 * np.eye(10)
    )
    field = rng.choice(scales, size=n)[:, None] * (rng.normal(size=(n, 10)) @ root.T)
    likelihood = np.prod(norm.cdf(labels * field), axis=1)
    error = likelihood.std() / likelihood.mean() / np.sqrt(n) + chains.error
    expected = np.log(likelihood.mean())
    assert error < 0.1
    assert chains.log_evidence == pytest.approx(expected, abs=4 * error)
    result = gq.infer(target, ModelAverage(fields="auto"), n_samples=200)
    assert proposals.acceptance() < 0.8  # so that chains were used
    assert result.log_evidence == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sites_of_a_component_integrate_to_its_evidence(n_classes):
    proposals, rng = Proposals(posterior(n_classes)), np.random.default_rng(5)
    one = proposals.components[2]
    white = rng.normal(size=(400_000, n_classes, one.factor.shape[1]))
    values = np.exp(one.log_sites(np.swapaxes(white @ one.factor.T, 1, 2)))
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - np.exp(one.log_evidence)) < 4 * error


def test_approximate_draws_are_near_exact_ones():
    exact = gq.infer(posterior(3), ModelAverage(fields="exact"), n_samples=4000)
    quick = gq.infer(posterior(3), ModelAverage(fields="gibbs"), n_samples=4000)
    assert exact.diagnostics.is_approximate is False
    assert np.abs(gq.results.label_mean(exact) - gq.results.label_mean(quick)).max() < 0.03
    assert np.abs(gq.results.label_mean(exact) - gq.results.label_mean(quick)).mean() < 0.01


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_default_is_exact_where_proposals_are_accepted():
    result = gq.infer(posterior(), n_samples=400)
    assert "ModelAverage" in result.settings["inference"]
    assert result.diagnostics.is_approximate == (result.diagnostics.acceptance == 1.0)


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_runs_repeat_and_are_stored(tmp_path):
    first = gq.infer(posterior(3), ModelAverage(), n_samples=400, rng=3)
    again = gq.infer(posterior(3), ModelAverage(), n_samples=400, rng=3)
    np.testing.assert_array_equal(gq.results.label_mean(first), gq.results.label_mean(again))
    first.save(tmp_path / "result.nc")
    loaded = gq.load(tmp_path / "result.nc")
    np.testing.assert_array_equal(gq.results.label_mean(loaded), gq.results.label_mean(first))
    assert loaded.diagnostics.is_approximate == first.diagnostics.is_approximate
    stored = loaded.posterior.prior
    assert (stored.components, stored.component) == (PRIOR.components, PRIOR.component)
    assert loaded.posterior.likelihood.random_labels


def test_first_result_is_that_of_expectation_propagation():
    first = []
    final = gq.infer(posterior(), n_samples=1000, on_first_result=first.append)
    assert first[0].diagnostics.is_approximate
    bound = (
        5 * np.hypot(gq.results.label_mcse(first[0]), gq.results.label_mcse(final)) + 0.06
    )  # that of the test above
    assert (np.abs(gq.results.label_mean(first[0]) - gq.results.label_mean(final)) < bound).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_single_draws_have_the_mean_that_is_reported(n_classes):
    result = gq.infer(posterior(n_classes), ModelAverage(fields="gibbs"), n_samples=2500)
    rows = node_rows(result.posterior)
    link = result.posterior.likelihood.link
    shares = class_probability_draws(result.answer, result.posterior.field, rows, link)
    np.testing.assert_allclose(
        shares.mean(axis=1), class_probabilities(gq.results.label_mean(result)), atol=1e-3
    )
    if n_classes == 3:
        assert ((shares > 0.01) & (shares < 0.99)).any()  # noise of the label, not one class a draw


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_is_a_fit_without_the_label(n_classes):
    small = Mixture(  # with more noise importance weights are reliable
        [
            Term(0.8, gq.priors.Matern(0.1, 4.0)),
            Term(0.4, gq.priors.Matern(0.5, 2.0, include_constant=True)),
        ],
        gq.Categorical([0.5, 0.5]),
    )
    target = posterior(n_classes, small)
    everything = gq.infer(target, ModelAverage(fields="exact"), n_samples=4000)
    both = gq.leave_one_out(everything).of_label, gq.leave_one_out(everything).of_class
    np.testing.assert_allclose(*both, atol=1e-6)  # what is reported is a label with noise
    kept = np.arange(6) != 2
    without = dataclasses.replace(
        target, labelled=target.labelled[kept], labels=np.asarray(target.labels)[kept]
    )
    refit = gq.infer(without, ModelAverage(fields="exact"), n_samples=4000)
    expected = class_probabilities(gq.results.label_mean(refit))[target.labelled[2]]
    np.testing.assert_allclose(both[0][2], expected, atol=0.04)


def test_verdict_knows_an_approximation_that_is_far_off():
    result = gq.infer(posterior(), ModelAverage(fields="gibbs"), n_samples=1000)
    assert result.trust.checks["convergence"].level == "green"
    poor = dataclasses.replace(result.diagnostics, acceptance=0.2)
    poor = dataclasses.replace(result, diagnostics=poor)
    assert poor.trust.checks["convergence"].level == "amber"


def test_refusals_name_the_remedy():
    plain = posterior(prior=gq.priors.Matern())
    with pytest.raises(IncompatibleParts, match=r"of a Mixture, .* use model='average'"):
        gq.infer(plain, ModelAverage())
    with pytest.raises(InvalidInput, match="fields: 'both'"):
        ModelAverage(fields="both")
    start = gq.infer(plain, "expectation-propagation").answer
    with pytest.raises(InvalidInput, match="start: given beside"):
        gq.infer(posterior(), ModelAverage(), start=start)


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("fields", ["exact", "gibbs"])
def test_thinning_and_warm_up_are_honoured(fields):
    """Moves stay with probability 1 − a; with a thinning of 5 almost none does."""
    method, settings = ModelAverage(fields=fields), {"n_samples": 500, "n_chains": 4}
    every, fifth = (
        gq.infer(posterior(), method, thin=thin, n_warmup=n_warmup, **settings).answer
        for thin, n_warmup in ((1, 0), (5, 100))
    )
    assert (every.thin, fifth.thin) == (1, 5)
    assert (every.n_warmup, fifth.n_warmup) == (0, 100)
    assert every.white.shape == fifth.white.shape

    def stays(draws):
        return (np.diff(draws.white, axis=1) == 0).all(axis=2).mean()

    if fields == "exact":
        assert stays(every) > 0.1
        assert stays(fifth) < 0.5 * stays(every)
