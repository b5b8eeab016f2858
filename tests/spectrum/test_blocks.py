"""Blocks of functions of the features, against the covariance that they stand for."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.models import Mixture, Term
from graphuq.results.trust.truncation import last_eigenvalue, mean_omitted_eigenvalue
from graphuq.spectrum import Functions, QuadraticFunctions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)) * [1.0, 2.0, 0.1] + [5.0, 0.0, -1.0]
GRAPH = gq.graphs.knn_graph(X)
PLAIN = gq.laplacian_spectrum(GRAPH, n_eigenpairs=12)
MORE = gq.Basis(PLAIN, (QuadraticFunctions(X),))


def covariance(rows):
    """Return ``(1 + x·x')²`` of rows whose mean squared length is made one."""
    return (1 + rows @ rows.T / np.mean((rows**2).sum(axis=1))) ** 2


def columns(basis, name="quadratic"):
    return basis.basis[:, basis.columns_of(name)] * basis.node_scale[:, None]


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk", "unnormalized"])
def test_functions_are_a_root_of_the_covariance(laplacian):
    more = gq.Basis.of(GRAPH, laplacian, n_eigenpairs=12)
    assert (more.n_eigenpairs, more.n_columns) == (12, 22)
    found = columns(more)
    np.testing.assert_allclose(found @ found.T, covariance(X - X.mean(axis=0)), atol=1e-8)
    np.testing.assert_allclose(more.energy, ((more.node_scale[:, None] * more.basis) ** 2).sum(0))


def test_sparse_features_are_not_centred():
    rows = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    found = QuadraticFunctions(rows).values
    np.testing.assert_allclose(found @ found.T, covariance(rows.toarray()), atol=1e-4)


def test_covariance_of_more_nodes_than_landmarks_is_close():
    rows = np.random.default_rng(1).normal(size=(400, 12))  # 91 functions, of 100 landmarks
    found = QuadraticFunctions(rows).values
    assert found.shape == (400, 91)
    expected = covariance(rows - rows.mean(axis=0))
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-6 * expected.max())


def test_eigenpairs_are_a_block_and_functions_are_replaced():
    np.testing.assert_array_equal(MORE.eigenvectors, PLAIN.eigenvectors)
    np.testing.assert_array_equal(MORE.basis[:, MORE.columns_of("eigenpairs")], PLAIN.basis)
    again = MORE.with_functions(X[:, :1])
    assert (again.n_eigenpairs, again.n_columns) == (12, 15)
    assert MORE.with_functions(None) is MORE
    assert MORE.with_functions(np.ones((80, 2))).blocks == ()
    assert gq.Basis(PLAIN).basis is PLAIN.basis
    assert "12 of 80 eigenpairs" in repr(MORE)
    assert "10 quadratic functions" in repr(MORE)
    with pytest.raises(InvalidInput, match="'cubic' is unknown; use one of eigenpairs, quadratic"):
        MORE.columns_of("cubic")


def test_several_blocks_follow_each_other():
    own = Functions("heights", X[:, :2])
    both = gq.Basis(PLAIN, (own, QuadraticFunctions(X)))
    assert both.columns_of("heights") == slice(12, 14)
    assert both.columns_of("quadratic") == slice(14, 24)
    np.testing.assert_allclose(columns(both, "heights"), X[:, :2])
    np.testing.assert_allclose(columns(both), columns(MORE))
    with pytest.raises(InvalidInput, match="use each name once"):
        gq.Basis(PLAIN, (own, own))
    with pytest.raises(InvalidInput, match="use each name once"):
        gq.Basis(PLAIN, (Functions("eigenpairs", X),))


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
    more = gq.Basis(plain, (QuadraticFunctions(X),))
    weights = GRAPH.feature_space.connect(X[:7] + 0.05)
    rows, scale = more.extend(weights), more.extend_scale(weights)
    np.testing.assert_allclose(rows[:, :12], plain.extend(weights))
    mean = (weights / weights.sum(axis=1)[:, None]) @ columns(more)
    np.testing.assert_allclose(scale[:, None] * rows[:, 12:], mean)
    far = sparse.csr_array((1, 80))
    assert (more.extend(far) == 0).all()


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk"])
def test_an_extended_basis_has_the_rows_of_extend(laplacian):
    """All columns are shortened alike, so that a field keeps its distribution."""
    more = gq.Basis.of(GRAPH, laplacian, n_eigenpairs=12)
    weights = GRAPH.feature_space.connect(X[:7] + 0.05)
    grown, shrink = more.extended(weights), np.sqrt(80 / 87)
    assert (grown.n_nodes, grown.n_eigenpairs, grown.n_columns) == (87, 12, 22)
    np.testing.assert_allclose(grown.basis[:80], shrink * more.basis)
    np.testing.assert_allclose(grown.basis[80:], shrink * more.extend(weights))
    np.testing.assert_array_equal(grown.node_scale[80:], more.extend_scale(weights))


def test_blocks_are_stored():
    back = gq.Basis.from_dataset(MORE.to_dataset())
    assert (back.n_eigenpairs, back.n_columns) == (12, 22)
    assert [block.name for block in back.blocks] == ["quadratic"]
    np.testing.assert_array_equal(back.basis, MORE.basis)
    np.testing.assert_allclose(back.energy, MORE.energy)


@pytest.mark.parametrize("rows", [X[:, 0], np.full((80, 2), np.nan)])
def test_other_features_are_refused(rows):
    with pytest.raises(InvalidInput, match="features"):
        QuadraticFunctions(rows)


def test_functions_of_other_nodes_are_refused():
    with pytest.raises(InvalidInput, match="79 rows of quadratic beside 80 nodes"):
        _ = gq.Basis(PLAIN, (QuadraticFunctions(X[:79]),)).basis


def test_a_tail_has_no_functions():
    with_tail = gq.Basis.of(GRAPH, n_eigenpairs=12, tail_eigenvalue="mean")
    assert with_tail.blocks == ()
    both = gq.Basis(with_tail.spectrum, (QuadraticFunctions(X),))
    with pytest.raises(IncompatibleParts, match="tail_eigenvalue"):
        gq.Posterior(both, gq.priors.Matern(), gq.likelihoods.Probit(), [0, 1], [1, -1])


def test_a_grid_has_no_functions():
    grid = gq.laplacian_spectrum(gq.graphs.grid_graph((8, 10)), "unnormalized", 12)
    assert gq.Basis(grid).with_functions(X).blocks == ()
    with pytest.raises(InvalidInput, match="of a grid"):
        gq.Basis(grid, (QuadraticFunctions(X),))


def test_a_mixture_on_functions_needs_them():
    prior = Mixture([Term(1.0, gq.priors.Matern(1, 2)), Term(2.0, block="quadratic")])
    with pytest.raises(IncompatibleParts, match=r"graphuq\.Basis\.of"):
        prior.modes(PLAIN)


def test_a_component_on_functions_has_their_covariance():
    prior = Mixture([Term(3.0, gq.priors.Matern(0.2, 4.0)), Term(2.0, block="quadratic")])
    std = prior.modes(MORE).stds[1]
    assert (std[:12] == 0).all()
    field = MORE.basis * std
    expected = covariance(X - X.mean(axis=0))
    np.testing.assert_allclose(field @ field.T, 4 * expected * 80 / np.trace(expected), atol=1e-7)


def test_the_field_of_a_component_is_the_sum_of_its_terms():
    parts = Term(3.0, gq.priors.Matern(0.2, 4.0)), Term(2.0, block="quadratic")
    alone = Mixture(parts).modes(MORE).stds
    both = Mixture([parts]).modes(MORE).stds[0]
    np.testing.assert_allclose(both**2, (alone**2).sum(axis=0))
    assert (both > 0).sum() == 21  # eleven eigenpairs without the constant, ten functions
