"""Columns of features beside the eigenvectors, against the covariance that they stand for."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.results.trust.truncation import last_eigenvalue, mean_omitted_eigenvalue
from graphuq.spectrum import load_spectrum, with_feature_columns, without_feature_columns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)) * [1.0, 2.0, 0.1] + [5.0, 0.0, -1.0]
GRAPH = gq.graphs.knn_graph(X)
PLAIN = gq.laplacian_spectrum(GRAPH, n_eigenpairs=12)
MORE = with_feature_columns(PLAIN, X)


def covariance(rows):
    """Return ``(1 + x·x')²`` of rows whose mean squared length is made one."""
    return (1 + rows @ rows.T / np.mean((rows**2).sum(axis=1))) ** 2


def columns(spectrum):
    own = np.asarray(spectrum.eigenvectors)[:, spectrum.n_eigenpairs :]
    return own * spectrum.node_scale[:, None]


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk", "unnormalized"])
def test_columns_are_a_root_of_the_covariance(laplacian):
    more = with_feature_columns(gq.laplacian_spectrum(GRAPH, laplacian, n_eigenpairs=12), X)
    assert (more.n_eigenpairs, more.n_feature_columns, more.n_columns) == (12, 10, 22)
    found = columns(more)
    np.testing.assert_allclose(found @ found.T, covariance(X - X.mean(axis=0)), atol=1e-8)
    np.testing.assert_allclose(more.energy, ((more.node_scale[:, None] * more.basis) ** 2).sum(0))


def test_sparse_features_are_not_centred():
    rows = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    found = columns(with_feature_columns(PLAIN, rows))
    np.testing.assert_allclose(found @ found.T, covariance(rows.toarray()), atol=1e-4)


def test_covariance_of_more_nodes_than_landmarks_is_close():
    rows = np.random.default_rng(1).normal(size=(400, 12))  # 91 functions, of 100 landmarks
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(rows), n_eigenpairs=5)
    found = columns(with_feature_columns(spectrum, rows))
    assert found.shape == (400, 91)
    expected = covariance(rows - rows.mean(axis=0))
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-6 * expected.max())


def test_eigenpairs_stay_and_columns_are_replaced():
    np.testing.assert_array_equal(MORE.eigenvectors[:, :12], PLAIN.eigenvectors)
    again = with_feature_columns(MORE, X[:, :1])
    assert (again.n_eigenpairs, again.n_feature_columns) == (12, 3)
    back = without_feature_columns(MORE)
    np.testing.assert_array_equal(back.eigenvectors, PLAIN.eigenvectors)
    np.testing.assert_array_equal(back.eigenvalues, PLAIN.eigenvalues)
    assert without_feature_columns(PLAIN) is PLAIN
    assert with_feature_columns(PLAIN, np.ones((80, 2))) is PLAIN
    assert "12 of 80 eigenpairs and 10 columns of features" in repr(MORE)


def test_what_concerns_eigenpairs_is_unchanged():
    assert MORE.tail_energy == pytest.approx(PLAIN.tail_energy)
    assert last_eigenvalue(MORE) == PLAIN.eigenvalues[-1]
    assert mean_omitted_eigenvalue(MORE) == mean_omitted_eigenvalue(PLAIN)
    for prior in (gq.priors.Matern(), gq.priors.InverseCosine(), gq.priors.Diffusion(2.0)):
        expected = prior.spectral_std(PLAIN).modes
        np.testing.assert_allclose(prior.spectral_std(MORE).modes[:12], expected)
        assert (prior.spectral_std(MORE).modes[12:] == 0).all()


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk", "unnormalized"])
def test_new_rows_have_the_mean_of_their_neighbours(laplacian):
    plain = gq.laplacian_spectrum(GRAPH, laplacian, n_eigenpairs=12)
    more = with_feature_columns(plain, X)
    weights = GRAPH.feature_space.connect(X[:7] + 0.05)
    rows, scale = more.extend(weights), more.extend_scale(weights)
    np.testing.assert_allclose(rows[:, :12], plain.extend(weights))
    mean = (weights / weights.sum(axis=1)[:, None]) @ columns(more)
    np.testing.assert_allclose(scale[:, None] * rows[:, 12:], mean)
    far = sparse.csr_array((1, 80))
    assert (more.extend(far) == 0).all()


def test_columns_are_stored(tmp_path):
    MORE.save(tmp_path / "spectrum.npz")
    loaded = load_spectrum(tmp_path / "spectrum.npz")
    np.testing.assert_array_equal(loaded.eigenvectors, MORE.eigenvectors)
    assert (loaded.n_eigenpairs, loaded.n_feature_columns) == (12, 10)
    back = type(MORE).from_dataset(MORE.to_dataset())
    assert (back.n_eigenpairs, back.n_feature_columns) == (12, 10)


@pytest.mark.parametrize("rows", [X[:79], X[:, 0], np.full((80, 2), np.nan)])
def test_other_features_are_refused(rows):
    with pytest.raises(InvalidInput, match="features"):
        with_feature_columns(PLAIN, rows)


def test_a_tail_is_refused():
    with_tail = gq.laplacian_spectrum(GRAPH, n_eigenpairs=12, tail_eigenvalue="mean")
    with pytest.raises(InvalidInput, match="tail_eigenvalue"):
        with_feature_columns(with_tail, X)


def test_a_mixture_on_features_needs_them():
    prior = gq.priors.MaternMixture([1, 1], [2, 1], [1, 2], [0, 0], on_features=[0, 1])
    with pytest.raises(IncompatibleParts, match="with_feature_columns"):
        prior.modes(PLAIN)


def test_a_component_on_features_has_their_covariance():
    prior = gq.priors.MaternMixture([0.2, 1], [4, 1], [3, 2], [0, 0], on_features=[0, 1])
    std = prior.component_std(prior.modes(MORE))[1]
    field = np.asarray(MORE.eigenvectors) * std
    expected = covariance(X - X.mean(axis=0))
    np.testing.assert_allclose(field @ field.T, 4 * expected * 80 / np.trace(expected), atol=1e-7)
