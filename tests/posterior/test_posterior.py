"""Checks of the posterior, and its probabilities in components without labels."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import DisconnectedGraphWarning, IncompatibleParts, InvalidInput

PRIOR, PROBIT = gq.priors.InverseLaplacian(), gq.likelihoods.Probit(0.3)


@pytest.mark.parametrize(
    ("labelled", "labels", "words"),
    [
        ([], [], "labelled: no node; give numbers of nodes, each once"),
        ([0, 16], [1, -1], r"node \[16\] does not exist; use numbers from 0 to 15"),
        ([0, -1], [1, -1], r"node \[-1\] does not exist"),
        ([0, 0], [1, -1], "a node is given twice"),
        ([0, 1], [1, 1], "only the class"),
        ([0, 1], [1, 0], "code the two classes as -1 and"),
        ([0, 1], [1], "one label per labelled node"),
        ([0.5, 1.0], [1, -1], "labelled: float64 of shape .2,.; give numbers of nodes"),
    ],
)
def test_bad_labels(graph, labelled, labels, words):
    with pytest.raises(InvalidInput, match=words):
        gq.Posterior(gq.laplacian_spectrum(graph), PRIOR, PROBIT, labelled, labels)


@pytest.mark.parametrize("likelihood", [gq.likelihoods.Probit, gq.likelihoods.LevelSet])
@pytest.mark.parametrize("noise_std", [0.0, -1.0])
def test_noise_must_be_positive(likelihood, noise_std):
    with pytest.raises(InvalidInput, match="use γ > 0"):
        likelihood(noise_std=noise_std)


@pytest.fixture
def in_three_parts():
    """Return a graph of two components of 12 nodes and an isolated node."""
    blocks = [random_adjacency(12, seed=s) for s in range(2)] + [np.zeros((1, 1))]
    with pytest.warns(DisconnectedGraphWarning):
        return gq.graphs.from_adjacency(
            sparse.block_diag([*map(sparse.csr_array, blocks)], format="csr")
        )


@pytest.mark.parametrize("tail", [False, True])
def test_component_without_labels_keeps_the_prior(in_three_parts, tail):
    """Probability is 1/2 and variance that of the prior, never NaN (scikit-learn 9292, 18029)."""
    spectrum = gq.laplacian_spectrum(in_three_parts, n_eigenpairs=10, tail_eigenvalue=tail)
    posterior = gq.Posterior(spectrum, PRIOR, PROBIT, [0, 5], [1, -1])
    result = gq.infer(posterior, gq.inference.PCN(), n_samples=500, rng=0)
    silent = np.arange(25) >= 12
    np.testing.assert_array_equal(result.has_evidence, ~silent)
    np.testing.assert_allclose(gq.results.label_mean(result)[silent], 0, atol=1e-12)
    modes, tail_std = posterior.std.modes, posterior.std.tail
    prior_std = np.sqrt(spectrum.eigenvectors**2 @ (modes**2 - tail_std**2) + tail_std**2)
    np.testing.assert_allclose(result.latent_std[silent], prior_std[silent], rtol=1e-9)
    assert prior_std.min() > 0.05
    assert np.isfinite(gq.results.label_mean(result)).all()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("include_constant", "forced"), [(None, False), (False, True)])
def test_component_of_one_class_is_not_forced_to_change_sign(include_constant, forced):
    """Labels of one class attract a whole component, unless u ⟂ its null vector is forced."""
    blocks = [random_adjacency(12, seed=s) for s in range(2)]
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(
            sparse.block_diag([*map(sparse.csr_array, blocks)], format="csr")
        )
    posterior = gq.Posterior(
        gq.laplacian_spectrum(graph, n_eigenpairs=10),
        gq.priors.InverseLaplacian(include_constant=include_constant),
        PROBIT,
        [0, 4, 8, 12, 16, 20],
        [1, 1, 1, -1, -1, -1],
    )
    mean = gq.results.label_mean(gq.infer(posterior, gq.inference.PCN(), n_samples=1000, rng=0))
    assert (mean[:12].min() < 0) == forced
    assert (mean[12:].max() > 0) == forced


def test_null_vectors_can_be_left_out(graph, in_three_parts):
    std = PRIOR.spectral_std(gq.laplacian_spectrum(graph))
    assert std.modes[0] == 0
    constant = gq.priors.InverseLaplacian(include_constant=True).spectral_std(
        gq.laplacian_spectrum(graph)
    )
    assert constant.modes[0] == constant.modes[1] > 0
    assert (constant.modes**2).sum() == pytest.approx(16)
    with pytest.raises(IncompatibleParts, match="1 isolated"):
        gq.priors.InverseLaplacian(include_constant=False).spectral_std(
            gq.laplacian_spectrum(in_three_parts)
        )


@pytest.mark.slow
def test_labels_that_no_field_fits_are_refused():
    """Two modes cannot alternate in sign along a path of eight."""
    path = np.diag(np.ones(7), 1) + np.diag(np.ones(7), -1)
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path), n_eigenpairs=3)
    posterior = gq.Posterior(
        spectrum,
        gq.priors.InverseLaplacian(),
        gq.likelihoods.NoiseFree(),
        np.arange(8),
        [1, -1, 1, -1, 1, -1, 1, -1],
    )
    with pytest.raises(InvalidInput, match="probability zero at"):
        gq.infer(posterior, gq.inference.ExactHamiltonian(), n_samples=50, thin=1, n_warmup=50)


def test_learnt_hyperparameters_have_the_order_of_blocks(graph):
    """Draws name hyperparameters alphabetically; acceptance by block does not."""
    prior = gq.priors.Matern(tau=gq.LogUniform(0.1, 1.0), alpha=gq.Uniform(1.0, 4.0))
    likelihood = gq.likelihoods.Probit(gq.LogUniform(0.1, 1.0))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=8)
    posterior = gq.Posterior(spectrum, prior, likelihood, [0, 5, 9], [1, -1, 1])
    blocks = [part.name for part in posterior.target.learnt]
    assert list(posterior.learnt) == blocks == ["tau", "alpha", "noise_std"]
