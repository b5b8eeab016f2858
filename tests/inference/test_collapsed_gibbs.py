"""Collapsed Gibbs sampling against orthant probabilities and rejection sampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import CollapsedGibbs
from graphuq.inference.collapsed_gibbs import sweeps
from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues

WEIGHTS = random_adjacency(12, seed=5)
LABELLED = np.array([0, 3, 7, 9])
N_DRAWS = 600_000


def posterior(n_classes, noise_std=0.5, *, tail=False, n_eigenpairs=8, labelled=LABELLED):
    codes = np.array([0, 1, 1, n_classes - 1, 0, 1])[: len(labelled)]
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail
    )
    labels = codes if n_classes > 2 else 2 * codes - 1
    prior = gq.priors.Matern(tau=0.5, alpha=2.0)
    likelihood = gq.likelihoods.Probit(noise_std, n_classes)
    return gq.Posterior(spectrum, prior, likelihood, labelled, labels)


def rejection(target, noise_std):
    """Return class probabilities by draws of the prior whose noisy labels are the given ones."""
    rng = np.random.default_rng(1)
    spectrum, labels = target.spectrum, np.asarray(target.labels)
    std = np.asarray(target.prior.spectral_std(spectrum).modes)
    several = target.likelihood.is_multiclass
    n_fields = target.n_fields
    total, hits = 0.0, 0
    for _ in range(10):
        xi = rng.normal(size=(N_DRAWS // 10, n_fields, len(std)))
        u = (xi * std) @ spectrum.eigenvectors.T
        noisy = u[:, :, target.labelled]
        noisy = noisy + noise_std * rng.normal(size=noisy.shape)
        found = noisy.argmax(axis=1) if several else np.sign(noisy[:, 0])
        kept = u[(found == labels).all(axis=1)]
        best = kept.argmax(axis=1) if several else (kept[:, 0] > 0).astype(int)
        hits += len(kept)
        total = total + np.stack([(best == k).sum(axis=0) for k in range(max(2, n_fields))], 1)
    return total / hits, hits


def standard_error(result, expected, hits):
    mcse = gq.results.label_mcse(result)
    mcse = mcse if mcse.ndim == 2 else mcse[:, None] / 2  # of a probability, from that of a sign
    return np.sqrt(mcse**2 + expected * (1 - expected) / hits)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_class_probabilities(n_classes):
    target = posterior(n_classes)
    expected, hits = rejection(target, 0.5)
    result = gq.infer(target, CollapsedGibbs(), n_samples=3000, rng=1)
    error = standard_error(result, expected, hits)
    assert result.diagnostics.rhat < 1.01
    assert error.max() < 0.02
    assert (np.abs(result.probabilities - expected) < 4 * error + 1e-4).all()


def test_other_noise_is_detected():
    """Negative control: the sampler's noise is not that of the rejected draws."""
    target = posterior(3, 2.0)
    expected, hits = rejection(target, 0.5)
    result = gq.infer(target, CollapsedGibbs(), n_samples=3000, rng=1)
    error = standard_error(result, expected, hits)
    assert (np.abs(result.probabilities - expected) > 6 * error).any()


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_tail_and_more_labels_than_modes(n_classes):
    """Both forms of a field with a tail agree with Hamiltonian chains."""
    labelled = np.array([0, 2, 3, 7, 9, 11])
    target = posterior(n_classes, tail=True, n_eigenpairs=4, labelled=labelled)
    ours = gq.infer(target, CollapsedGibbs(), n_samples=3000, rng=1)
    theirs = gq.infer(target, gq.inference.Hamiltonian(), n_samples=1000, rng=2)
    error = np.hypot(gq.results.label_mcse(ours), gq.results.label_mcse(theirs))
    assert (
        np.abs(gq.results.label_mean(ours) - gq.results.label_mean(theirs)) < 4.5 * error + 1e-4
    ).all()


@pytest.mark.parametrize("noise_std", [0.02, 0.1])
def test_small_noise_still_mixes(noise_std):
    """Along smooth directions all values move together; single values alone would not."""
    target = posterior(3, noise_std)
    result = gq.infer(target, CollapsedGibbs(), n_samples=2000, rng=0)
    assert result.diagnostics.rhat < 1.01
    assert result.diagnostics.ess_bulk > 1000


@pytest.mark.slow
def test_many_labels_still_mix():
    """Many limits leave each move of a leading direction little room: it is moved again.

    With one move a sweep, and none of the mean over classes, 300 draws count as 6.
    """
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 75)
    centres = np.array([[0.0, 0], [1.5, 0], [0, 1.5], [1.5, 1.5]])
    graph = gq.graphs.knn_graph(centres[classes] + 0.4 * rng.normal(size=(300, 2)))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=30)
    rows = rng.choice(300, 200, replace=False)
    prior, likelihood = gq.priors.Matern(tau=0.1, alpha=2.0), gq.likelihoods.Probit(0.1, 4)
    target = gq.Posterior(spectrum, prior, likelihood, rows, classes[rows])
    diagnostics = gq.infer(target, CollapsedGibbs(), n_samples=2000, rng=0).diagnostics
    assert diagnostics.rhat < 1.01
    assert diagnostics.ess_bulk > 400


@pytest.mark.parametrize(("n_rows", "n_labels"), [(1, 60), (3, 60), (3, 10)])
def test_three_sweeps_leave_the_prior_unchanged(n_rows, n_labels):
    """Values of the prior, moved given the labels that they have, are again values of the prior.

    Later sweeps use the products with the precision that the first one has kept up to date.
    """
    rng = np.random.default_rng(2)
    factor = rng.normal(size=(n_labels, 4)) * np.array([2.0, 1.0, 0.7, 0.4])
    root = np.linalg.cholesky(factor @ factor.T + 0.1**2 * np.eye(n_labels))
    n_repeats = 3000
    before = rng.normal(size=(n_repeats, n_rows, n_labels)) @ root.T
    after = np.empty_like(before)
    for i, values in enumerate(before):
        own = np.where(values[0] > 0, 0, -1) if n_rows == 1 else values.argmax(axis=0)
        if i == 0:
            parts = sweeps.Values.of(root @ root.T, 0.1, own)
        after[i] = sweeps.run(rng, values, parts._replace(own=own), 1, 3)[0]
        found = np.where(after[i, 0] > 0, 0, -1) if n_rows == 1 else after[i].argmax(axis=0)
        assert (found == own).all()
    assert len(parts.duals) == 4
    moved = np.abs(after - before).max(axis=(1, 2))
    assert moved.min() > 0
    for k in range(n_rows):
        for dual in parts.duals:
            assert stats.kstest(after[:, k] @ dual, "norm").pvalue > 1e-3
        squares = ((after[:, k] @ parts.precision) * after[:, k]).sum(axis=1)
        assert stats.kstest(squares, stats.chi2(n_labels).cdf).pvalue > 1e-3
    differences = (after[:, 0] - after[:, -1]) @ parts.duals.T / np.sqrt(2)
    means = after.mean(axis=1) @ parts.duals.T * np.sqrt(n_rows)
    for coordinates in (means, differences) if n_rows > 1 else ():
        covariance = coordinates.T @ coordinates / n_repeats
        assert np.abs(covariance - np.eye(4)).max() < 5 * np.sqrt(2 / n_repeats)
    if n_rows > 1:
        old = before.mean(axis=1) @ parts.duals.T * np.sqrt(n_rows)
        assert np.abs(old.T @ means / n_repeats).max() < 4.5 / np.sqrt(n_repeats)


def test_log_probabilities_are_those_of_the_likelihood():
    rng = np.random.default_rng(0)
    own = rng.integers(0, 4, size=5)
    u = rng.normal(size=(50, 5, 4)) * np.array([0.1, 1.0, 3.0, 10.0, 40.0])[:, None]
    with jax.enable_x64(True):
        likelihood = gq.likelihoods.Probit(0.7, 4)
        labels = jnp.asarray(own, jnp.float64)
        log_prob = jax.jit(jax.vmap(lambda one: likelihood.log_prob(one, labels).sum()))
        expected = log_prob(jnp.asarray(u))
    found = sweeps.log_probabilities(u, own, 0.7)
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-6)
    binary = NoisyValues.of(posterior(2))
    white = rng.normal(size=(7, binary.factor.shape[1]))
    target = posterior(2).plain_target
    with jax.enable_x64(True):
        expected = jax.jit(jax.vmap(target.log_likelihood))(jnp.asarray(white))
    found = binary.log_likelihood(binary.fields(white[:, None, :]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-0.5, 0.3),
        (-1.0, 4.0),
        (0.5, np.inf),
        (6.0, np.inf),
        (3.0, 3.1),
        (-np.inf, -4.0),
        (1e-12, 8e9),
    ],
)
def test_truncated_normal_numbers(low, high):
    rng = np.random.default_rng(3)
    draws = np.array([sweeps._truncated_normal(rng, low, high) for _ in range(20_000)])
    assert ((draws >= low) & (draws <= high)).all()
    assert stats.kstest(draws, stats.truncnorm(low, high).cdf).pvalue > 1e-3


def test_start_agrees_with_the_labels():
    rng = np.random.default_rng(0)
    own = np.array([2, 0, 1, 1, 2])
    values = sweeps.agreeing(rng.normal(size=(3, 5)), own)
    np.testing.assert_array_equal(values.argmax(axis=0), own)
    signs = sweeps.agreeing(rng.normal(size=(1, 3)), np.array([0, -1, 0]))
    np.testing.assert_array_equal(np.sign(signs[0]), [1, -1, 1])


def test_the_same_seed_and_a_checkpoint_give_the_same_draws(tmp_path):
    target, path = posterior(3), tmp_path / "run.npz"
    whole = gq.infer(target, "collapsed-gibbs", n_samples=200, rng=4)

    def interrupt(phase, done, total, acceptance):
        if phase == "sampling" and done >= 600:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gq.infer(
            target, CollapsedGibbs(), n_samples=200, rng=4, checkpoint=path, progress=interrupt
        )
    resumed = gq.infer(target, CollapsedGibbs(), n_samples=200, rng=4, checkpoint=path)
    np.testing.assert_array_equal(resumed.answer.white, whole.answer.white)


def test_wrong_posteriors_are_refused():
    spectrum, labels = posterior(3).spectrum, [0, 1, 1, 2]
    prior = gq.priors.Matern()
    for likelihood in (gq.likelihoods.Softmax(0.5, 3), gq.likelihoods.LevelSet(0.5, 3)):
        target = gq.Posterior(spectrum, prior, likelihood, LABELLED, labels)
        with pytest.raises(IncompatibleParts, match="needs a Probit"):
            gq.infer(target, CollapsedGibbs())
    learnt = gq.likelihoods.Probit(gq.LogUniform(0.1, 1.0), 3)
    with pytest.raises(IncompatibleParts, match="fixed noise"):
        gq.infer(gq.Posterior(spectrum, prior, learnt, LABELLED, labels), CollapsedGibbs())
    with pytest.raises(InvalidInput, match="leave it out"):
        CollapsedGibbs(reference=gq.inference.ExpectationPropagation())


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # of the short run
def test_the_first_result_of_several_classes_is_near_the_final_one():
    """With little noise few draws are near, and so is expectation propagation."""
    target, first = posterior(4, 0.05), []
    final = gq.infer(target, n_samples=2000, on_first_result=first.append)
    gaussian = gq.infer(target, "expectation-propagation")
    errors = [
        np.abs(gq.results.label_mean(r) - gq.results.label_mean(final)).max()
        for r in (gaussian, first[0])
    ]
    assert max(errors) < 0.06
    assert final.log_evidence == pytest.approx(gaussian.log_evidence)
    assert len(first) == 1
    np.testing.assert_array_equal(first[0].answer.white, final.answer.first(200).white)
