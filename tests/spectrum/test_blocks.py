"""Blocks of functions of the features, against the covariance that they stand for."""

import json
from importlib.resources import files

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.graphs.principal import PrincipalComponents
from graphuq.models import Mixture, Term
from graphuq.models.learnt_odds import learnt_mixture
from graphuq.results.trust.truncation import last_eigenvalue, mean_omitted_eigenvalue
from graphuq.spectrum import (
    ExponentialFunctions,
    Functions,
    PowerFunctions,
    ThirdPower,
    WhitenedGraph,
    WhitenedLinear,
)
from graphuq.spectrum.joined import columns_that_tear
from graphuq.spectrum.whitened import whitened

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)) * [1.0, 2.0, 0.1] + [5.0, 0.0, -1.0]
GRAPH = gq.graphs.knn_graph(X)
PLAIN = gq.laplacian_spectrum(GRAPH, n_eigenpairs=12)
MORE = gq.Basis(PLAIN, (ExponentialFunctions(X),))


def covariance(rows):
    """Return ``exp(−d/2)`` of the sums d of differences of standardised columns, of mean 1."""
    rows = rows / rows.std(axis=0)
    distances = np.abs(rows[:, None] - rows).sum(axis=2)
    n = len(rows)
    return np.exp(-distances * n * (n - 1) / (2 * distances.sum()))


def columns(basis, name="exponential"):
    return basis.basis[:, basis.columns_of(name)] * basis.node_scale[:, None]


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk", "unnormalized"])
def test_functions_are_a_root_of_the_covariance(laplacian):
    more = gq.Basis.of(GRAPH, laplacian, n_eigenpairs=12).with_blocks(["exponential"])
    assert (more.n_eigenpairs, more.n_columns) == (12, 92)
    found = columns(more)
    np.testing.assert_allclose(found @ found.T, covariance(X), atol=1e-8)
    np.testing.assert_allclose(more.energy, ((more.node_scale[:, None] * more.basis) ** 2).sum(0))


def test_units_and_constant_columns_have_no_influence_on_exponential_functions():
    changed = np.column_stack([X * [1e-3, 1e5, -7.0] + 30.0, np.full(80, 1e9)])
    found = ExponentialFunctions(changed).values
    np.testing.assert_allclose(found @ found.T, covariance(X), atol=1e-6)
    assert ExponentialFunctions(np.full((80, 2), 0.1)).values.shape == (80, 0)


def test_covariance_of_more_nodes_than_landmarks_is_close():
    rows = np.random.default_rng(1).normal(size=(400, 2))
    found = ExponentialFunctions(rows).values
    assert found.shape == (400, 100)
    missing = covariance(rows) - found @ found.T
    assert np.abs(missing).mean() < 0.01
    assert np.diag(missing).min() > -1e-9  # what landmarks do not know is left out
    # Half the nodes twice: distances of a node to itself are left out of the mean distance.
    few = np.repeat(rows[:40], 2, axis=0)
    found = ExponentialFunctions(few).values
    np.testing.assert_allclose(found @ found.T, covariance(few), atol=1e-6)


def test_functions_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.lognormal(size=300), rng.normal(size=300) - 7, np.ones(300)])
    order, scales = rng.permutation(300), np.array([0.5, np.inf, np.inf])
    for make in (ExponentialFunctions, lambda rows: gq.FunctionsOfFew(rows, scales)):
        found, other = make(rows).values[order], make(rows[order]).values
        np.testing.assert_allclose(other @ other.T, found @ found.T, atol=1e-8)
    found = ExponentialFunctions(rows).values
    scaled = ExponentialFunctions(rows * [1e5, 1e-3, 1.0] + 2.0).values
    np.testing.assert_allclose(scaled @ scaled.T, found @ found.T, atol=1e-6)


def test_wide_and_sparse_features_have_no_exponential_functions():
    """With many columns all distances are nearly equal; sparse columns are seldom a table."""
    wide = np.random.default_rng(2).normal(size=(80, 101))
    for rows, has in ((wide, False), (wide[:, :100], True), (sparse.csr_array(wide[:, :3]), False)):
        assert gq.Basis(PLAIN).with_functions(rows).has("exponential") is has


def test_eigenpairs_are_a_block_and_functions_are_replaced():
    np.testing.assert_array_equal(MORE.eigenvectors, PLAIN.eigenvectors)
    np.testing.assert_array_equal(MORE.basis[:, MORE.columns_of("eigenpairs")], PLAIN.basis)
    again = MORE.with_functions(X[:, :1])
    assert again.n_eigenpairs == 12
    assert [block.name for block in again.blocks] == ["powers", "whitened linear", "exponential"]
    assert again.with_blocks(["powers"]).n_columns == 14
    assert MORE.with_functions(None) is MORE
    assert MORE.with_functions(np.ones((80, 2))).blocks == ()
    assert MORE.with_functions(sparse.csr_array((80, 2))).blocks == ()
    assert gq.Basis(PLAIN).basis is PLAIN.basis
    assert "12 of 80 eigenpairs" in repr(MORE)
    assert "80 exponential functions" in repr(MORE)
    with pytest.raises(InvalidInput, match="'cubic' is unknown; use one of eigenpairs, exp"):
        MORE.columns_of("cubic")


def test_several_blocks_follow_each_other():
    own = Functions("heights", X[:, :2])
    both = gq.Basis(PLAIN, (own, ExponentialFunctions(X)))
    assert both.columns_of("heights") == slice(12, 14)
    assert both.columns_of("exponential") == slice(14, 94)
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
    more = gq.Basis(plain, (ExponentialFunctions(X),))
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
    more = gq.Basis.of(GRAPH, laplacian, n_eigenpairs=12).with_blocks(["exponential"])
    weights = GRAPH.feature_space.connect(X[:7] + 0.05)
    grown, shrink = more.extended(weights), np.sqrt(80 / 87)
    assert (grown.n_nodes, grown.n_eigenpairs, grown.n_columns) == (87, 12, 92)
    np.testing.assert_allclose(grown.basis[:80], shrink * more.basis)
    np.testing.assert_allclose(grown.basis[80:], shrink * more.extend(weights))
    np.testing.assert_array_equal(grown.node_scale[80:], more.extend_scale(weights))


def test_blocks_are_stored():
    back = gq.Basis.from_dataset(MORE.to_dataset())
    assert (back.n_eigenpairs, back.n_columns) == (12, 92)
    assert [block.name for block in back.blocks] == ["exponential"]
    np.testing.assert_array_equal(back.basis, MORE.basis)
    np.testing.assert_allclose(back.energy, MORE.energy)


@pytest.mark.parametrize("rows", [X[:, 0], np.full((80, 2), np.nan)])
def test_other_features_are_refused(rows):
    with pytest.raises(InvalidInput, match="features"):
        ExponentialFunctions(rows)


def test_functions_of_other_nodes_are_refused():
    with pytest.raises(InvalidInput, match="79 rows of exponential beside 80 nodes"):
        _ = gq.Basis(PLAIN, (ExponentialFunctions(X[:79]),)).basis


def test_a_tail_has_no_functions():
    with_tail = gq.Basis.of(GRAPH, n_eigenpairs=12, tail_eigenvalue="mean")
    assert with_tail.blocks == ()
    both = gq.Basis(with_tail.spectrum, (ExponentialFunctions(X),))
    with pytest.raises(IncompatibleParts, match="tail_eigenvalue"):
        gq.Posterior(both, gq.priors.Matern(), gq.likelihoods.Probit(), [0, 1], [1, -1])


def test_a_grid_has_no_functions():
    grid = gq.laplacian_spectrum(gq.graphs.grid_graph((8, 10)), "unnormalized", 12)
    assert gq.Basis(grid).with_functions(X).blocks == ()
    with pytest.raises(InvalidInput, match="of a grid"):
        gq.Basis(grid, (ExponentialFunctions(X),))


def test_a_mixture_on_functions_needs_them():
    prior = Mixture([Term(1.0, gq.priors.Matern(1, 2)), Term(2.0, block="exponential")])
    with pytest.raises(IncompatibleParts, match=r"graphuq\.Basis\.of"):
        prior.modes(PLAIN)


def test_a_component_on_functions_has_their_covariance():
    prior = Mixture([Term(3.0, gq.priors.Matern(0.2, 4.0)), Term(2.0, block="exponential")])
    std = prior.modes(MORE).stds[1]
    assert (std[:12] == 0).all()
    field = MORE.basis * std
    expected = covariance(X)
    np.testing.assert_allclose(field @ field.T, 4 * expected * 80 / np.trace(expected), atol=1e-7)


def test_the_field_of_a_component_is_the_sum_of_its_terms():
    parts = Term(3.0, gq.priors.Matern(0.2, 4.0)), Term(2.0, block="exponential")
    alone = Mixture(parts).modes(MORE).stds
    both = Mixture([parts]).modes(MORE).stds[0]
    np.testing.assert_allclose(both**2, (alone**2).sum(axis=0))
    assert (both > 0).sum() == 91  # eleven eigenpairs without the constant, 80 functions


def test_principal_components_are_those_of_the_covariance():
    centred = X - X.mean(axis=0)
    scores, variances = PrincipalComponents(X).of(standardised=False)
    np.testing.assert_allclose(variances / variances[0], _shares(centred), rtol=1e-10)
    products = centred @ centred.T / np.square(X.std(axis=0)).max()
    np.testing.assert_allclose(scores @ scores.T, products, atol=1e-10)
    np.testing.assert_allclose((scores**2).mean(axis=0), variances)
    standard = centred / X.std(axis=0)
    scores, _ = PrincipalComponents(np.column_stack([X * 1e3, np.ones(80)])).of(standardised=True)
    np.testing.assert_allclose(scores @ scores.T, standard @ standard.T, atol=1e-8)
    assert PrincipalComponents(np.ones((80, 2))).of(standardised=False).scores.shape == (80, 0)


def _shares(centred):
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    return values / values[0]


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("width", [300, 1_400])
def test_many_features_have_approximate_components(width, standardised):
    """The first components stand out; sparse rows have those of the same rows as an array."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(120, 3)) * [9, 6, 4] @ rng.normal(size=(3, width)) / 26
    rows += 0.01 * rng.normal(size=rows.shape)
    few = np.where(rows > 0.3, rows, 0.0)
    few[:, 5] = 0.7  # a column of which each row has the same entry, which is no direction
    few[:, 6] = 0.0
    for given, dense in ((rows, rows), (sparse.csr_array(few), few), (few, few)):
        deviation = dense.std(axis=0)
        scale = np.where(deviation > 1e-12, deviation, np.inf) if standardised else deviation.max()
        centred = (dense - dense.mean(axis=0)) / scale
        scores, variances = PrincipalComponents(given).of(standardised=standardised)
        assert len(variances) <= 100
        left, values, _ = np.linalg.svd(centred, full_matrices=False)
        np.testing.assert_allclose(variances[:3], values[:3] ** 2 / 120, rtol=1e-3)
        found = scores[:, :3] / np.linalg.norm(scores[:, :3], axis=0)
        np.testing.assert_allclose(np.abs((found * left[:, :3]).sum(axis=0)), 1.0, atol=1e-4)


def test_sparse_rows_that_are_all_equal_have_no_components():
    rows = sparse.csr_array(np.tile([0.0, 1.0, 0.3], (50, 500)))
    assert PrincipalComponents(rows).of(standardised=True).scores.shape == (50, 0)


@pytest.mark.parametrize("width", [150, 1_400])
def test_functions_of_sparse_features_are_those_of_the_same_features_as_an_array(width):
    rng = np.random.default_rng(4)
    words = rng.poisson(np.exp(rng.normal(size=(80, 2)) @ rng.normal(size=(2, width)) - 2.0))
    given = sparse.csr_array(words.astype(np.float64))
    for block in (PowerFunctions, gq.WhitenedLinear):
        expected = block(words.astype(np.float64)).values
        np.testing.assert_allclose(
            *(v @ v.T for v in (block(given).values, expected)), atol=1e-3 * len(expected)
        )
    centred = words - words.mean(axis=0)
    products = np.linalg.matrix_power(centred @ centred.T / 80, 3)
    found = ThirdPower(given).values
    expected = 1 + products * 80 / np.trace(products)
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-3 * expected.max())
    names = [block.name for block in gq.Basis(PLAIN).with_functions(given).blocks]
    assert names == ["powers", "whitened linear", "third power"]


def test_powers_have_the_seventeenth_power_of_the_covariance():
    centred = X - X.mean(axis=0)
    products = np.linalg.matrix_power(centred @ centred.T / 80, 17)
    found = PowerFunctions(X).values
    expected = 1 + products * 80 / np.trace(products)
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-6)


def test_the_third_power_of_wide_tables_does_not_depend_on_the_scale():
    """Their covariance is ``1 + c (x x')³`` of standardised features."""
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    products = np.linalg.matrix_power(standard @ standard.T / 80, 3)
    for rows in (X, X * [1.0, 1e4, 1e-4] + 7):
        found = ThirdPower(rows).values
        expected = 1 + products * 80 / np.trace(products)
        np.testing.assert_allclose(found @ found.T, expected, atol=1e-6)
    wide = np.random.default_rng(0).normal(size=(80, 101))
    blocks = {n: gq.Basis(PLAIN).with_functions(wide[:, :n]).blocks for n in (100, 101)}
    names = {n: [block.name for block in found] for n, found in blocks.items()}
    assert names[100] == ["powers", "whitened linear", "exponential", "whitened graph"]
    assert names[101] == ["powers", "whitened linear", "third power", "whitened graph"]


def test_classes_of_many_columns_of_few_values():
    """Each of ten of 60 places has a likelier value in each class; neighbours do not see it."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 900)
    shares = rng.dirichlet(np.full(4, 8.0), size=(3, 60))
    shares[:, 10:] = shares[:1, 10:]
    shares[:, :10] = rng.dirichlet(np.full(4, 0.7), size=(3, 10))
    cells = [[rng.choice(4, p=shares[k, j]) for j in range(60)] for k in classes]
    rows = np.eye(4)[np.array(cells)].reshape(900, -1)
    y = np.full(900, -1)
    for k in range(3):
        y[np.flatnonzero(classes == k)[:50]] = k
    hidden = y < 0
    found = gq.GraphClassifier().fit(rows, y)
    linear = LogisticRegression(C=0.1, max_iter=500).fit(rows[~hidden], y[~hidden])
    peer = linear.score(rows[hidden], classes[hidden])
    assert (found.transduction_ == classes)[hidden].mean() > peer - 0.02


def test_linear_functions_of_whitened_features_do_not_depend_on_the_scale():
    """Their covariance is ``1 + c x C⁻¹ x'``, with 1 % of the mean variance added to C."""
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    inverse = np.linalg.inv(standard.T @ standard / 80 + 0.01 * np.eye(3))
    products = standard @ inverse @ standard.T
    for rows in (X, X * [1.0, 1e4, 1e-4] + 7):
        found = WhitenedLinear(rows).values
        expected = 1 + products * 80 / np.trace(products)
        np.testing.assert_allclose(found @ found.T, expected, atol=1e-6)
        assert WhitenedLinear(np.ones((80, 2))).values.shape == (80, 0)


def test_the_second_graph_has_neighbours_by_mahalanobis_distance():
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    inverse = np.linalg.inv(standard.T @ standard / 80 + 0.01 * np.eye(3))
    rows = standard @ np.linalg.cholesky(inverse)
    graph = gq.graphs.knn_graph(rows, 15, weights=gq.graphs.SelfTuning(4.0))
    expected = gq.laplacian_spectrum(graph)
    found = WhitenedGraph(X).spectrum
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-8)
    np.testing.assert_allclose(found.degrees, expected.degrees, rtol=1e-6)
    own = whitened(PrincipalComponents(X))
    distances = ((own[:, None] - own[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, ((rows[:, None] - rows[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk"])
def test_a_second_graph_is_stored_and_grows(laplacian):
    basis = gq.Basis.of(GRAPH, laplacian, n_eigenpairs=12)
    back = gq.Basis.from_dataset(basis.to_dataset())
    assert [block.name for block in back.blocks] == [block.name for block in basis.blocks]
    np.testing.assert_array_equal(back.basis, basis.basis)
    prior = Mixture([Term(2.0, gq.priors.Matern(0.2, 4.0), "whitened graph")])
    np.testing.assert_array_equal(prior.modes(back).stds, prior.modes(basis).stds)
    weights = GRAPH.feature_space.connect(X[:7] + 0.05)
    grown, shrink = basis.extended(weights), np.sqrt(80 / 87)
    np.testing.assert_allclose(grown.basis[:80], shrink * basis.basis, atol=1e-12)
    np.testing.assert_allclose(grown.basis[80:], shrink * basis.extend(weights), atol=1e-12)
    again = gq.Basis.from_dataset(grown.to_dataset())
    std = prior.modes(again).stds[0]
    assert (std**2) @ again.energy == pytest.approx(4.0 * 87, rel=0.1)  # new rows are means
    np.testing.assert_allclose(std, prior.modes(grown).stds[0])


def two_sexes(rng, n=120):
    """Return rows whose last column of two values is far from all others, and three classes."""
    classes = np.arange(n) % 3
    numbers = rng.normal(size=(n, 2)) + 3.0 * np.eye(3)[classes][:, :2]
    return np.column_stack([0.2 * numbers, np.arange(n) // 3 % 2]), classes


def test_columns_that_tear_the_graph_have_a_graph_without_them():
    rows, _ = two_sexes(np.random.default_rng(1))
    for laplacian in ("symmetric", "random-walk", "unnormalized"):
        with pytest.warns(gq.errors.DisconnectedGraphWarning):
            graph = gq.graphs.knn_graph(rows, 10)
        basis = gq.Basis.of(graph, laplacian)
        assert basis.blocks[-1].name == "joined graph"
        expected = WhitenedGraph(rows[:, :2], laplacian).spectrum
        found = basis.blocks[-1].spectrum
        np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-10)
        back = gq.Basis.from_dataset(basis.to_dataset())
        assert [block.name for block in back.blocks] == [block.name for block in basis.blocks]
        odds = json.loads(files("graphuq.models").joinpath("block_odds.json").read_text("utf-8"))
        found = learnt_mixture(basis, 3, 15)
        share = np.exp(found.log_probabilities)
        own = {name: share[np.array(found.blocks) == name].sum() for name in found.blocks}
        assert own["joined graph"] == pytest.approx(own["whitened graph"])
        assert set(own) == {"eigenpairs", "joined graph", *odds} - {"steep"}


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_columns_that_tear_no_graph():
    rows, _ = two_sexes(np.random.default_rng(1))
    few = rows.copy()
    few[:, 2] = np.arange(120) < 4
    cases = {
        "it tears": (rows, True),
        "near enough to be neighbours": (rows * [1, 1, 0.1], False),
        "one other column is no graph": (rows[:, 1:], False),
        "four rows are torn off": (few, False),
        "sparse rows have no second graph": (sparse.csr_array(rows), False),
    }
    for reason, (features, tears) in cases.items():
        spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features, 10))
        assert columns_that_tear(spectrum, features).any() == tears, reason


def test_a_column_that_tears_the_graph_costs_few_right_answers():
    """Two labels of each class: without the third graph, each part lacks some of them."""
    rows, classes = two_sexes(np.random.default_rng(1), 180)
    y = np.full(180, -1)
    known = np.concatenate([np.flatnonzero(classes == k)[[0, 2]] for k in range(3)])
    y[known] = classes[known]  # all of the first value
    assert np.ptp(rows[known, 2]) == 0
    with pytest.warns(gq.errors.DisconnectedGraphWarning):
        classifier = gq.GraphClassifier(inference="expectation-propagation").fit(rows, y)
    right = classifier.transduction_ == classes
    assert right[rows[:, 2] == 1].mean() > 0.85


def test_a_second_graph_needs_two_dense_features_and_not_too_many_rows(monkeypatch):
    names = [block.name for block in gq.Basis.of(GRAPH, n_eigenpairs=12).blocks]
    assert names == ["powers", "whitened linear", "exponential", "whitened graph"]
    monkeypatch.setattr("graphuq.spectrum.whitened.MAX_ROWS", 79)
    assert len(gq.Basis.of(GRAPH, n_eigenpairs=12).blocks) == 3
    wide = gq.Basis(PLAIN).with_functions(sparse.csr_array(np.abs(X)))
    assert [block.name for block in wide.blocks] == names[:2]
