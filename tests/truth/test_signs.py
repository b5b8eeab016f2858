"""Answers on graphs with negative weights, against other graphs and dense formulas."""

import itertools

import numpy as np
import pytest
from reference import orthant, probit_label_mean
from scipy import sparse

import graphuq as gq
from conftest import random_adjacency
from graphuq.graphs import from_adjacency
from graphuq.likelihoods import Probit
from graphuq.priors import Matern, RegularizedLaplacian
from graphuq.spectrum import covariance_columns, power_field, precision
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.smoothed import smoothed

N = 24
KINDS = ["symmetric", "unnormalized", "random-walk"]
SIDES = np.where(np.random.default_rng(5).uniform(size=N) < 0.5, 1.0, -1.0)
LABELLED, LABELS = np.array([0, 3, 7, 12, 20]), np.array([1, -1, 1, 1, -1])
EP = "expectation-propagation"


def unbalanced(n=N, seed=3):
    """Return the weights of a connected graph, a third of which are negative."""
    upper = np.triu(random_adjacency(n, seed), 1)
    upper *= np.where(np.random.default_rng(seed).uniform(size=upper.shape) < 1 / 3, -1, 1)
    return upper + upper.T


def laplacian_of(weights, kind):
    """Return the Laplacian as a sum of ``|w| (u_i − sign(w) u_j)²`` over edges."""
    i, j = np.nonzero(np.triu(weights, 1))
    differences = np.zeros((len(i), len(weights)))
    differences[np.arange(len(i)), i] = 1.0
    differences[np.arange(len(i)), j] = -np.sign(weights[i, j])
    matrix = differences.T @ (np.abs(weights[i, j])[:, None] * differences)
    if kind == "unnormalized":
        return matrix
    root = np.sqrt(np.diag(matrix))
    return matrix / root[:, None] / root


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_eigenpairs_are_those_of_the_sum_over_edges(kind, form):
    weights = unbalanced()
    spectrum = gq.laplacian_spectrum(from_adjacency(form(weights)), kind)
    values, vectors = np.linalg.eigh(laplacian_of(weights, kind))
    assert (spectrum.n_null, spectrum.n_components) == (0, 1)
    assert values[0] > 0.01
    np.testing.assert_allclose(spectrum.eigenvalues, values, atol=1e-12)
    np.testing.assert_allclose(np.abs(spectrum.eigenvectors.T @ vectors), np.eye(N), atol=1e-7)
    operator = Laplacian(from_adjacency(form(weights)), kind)
    np.testing.assert_allclose(operator.dense(), laplacian_of(weights, kind), atol=1e-12)
    np.testing.assert_allclose(operator @ np.eye(N), operator.dense(), atol=1e-12)
    assert operator.trace == pytest.approx(values.sum())
    assert operator.upper_bound >= values[-1]


def test_the_smallest_eigenvalue_is_at_most_twice_the_share_that_contradicts():
    for seed in range(5):
        weights = unbalanced(12, seed)
        divisions = (np.array([1.0, *s]) for s in itertools.product([1.0, -1.0], repeat=11))
        wrong = min((np.abs(weights) - weights * np.outer(s, s)).sum() / 2 for s in divisions)
        smallest = gq.laplacian_spectrum(from_adjacency(weights)).eigenvalues[0]
        assert 0 < smallest <= 2 * wrong / np.abs(weights).sum()


def test_draws_have_the_covariance_of_the_laplacian():
    operator, n = Laplacian(from_adjacency(sparse.csr_array(unbalanced())), "symmetric"), 40_000
    noise = operator.draw(n, np.random.default_rng(0))
    found, expected = noise @ noise.T / n, operator.dense()
    error = np.sqrt((np.outer(*[np.diag(expected)] * 2) + expected**2) / n)
    assert (np.abs(found - expected) <= 5 * error).all()


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
@pytest.mark.parametrize("is_dense", [True, False])
def test_components_with_and_without_contradictions(is_dense):
    """Two are balanced, one of them small, and two are not; one node is alone."""
    sizes = [(5, True), (70, True), (6, False), (80, False), (1, True), (4, False)]
    blocks = []
    for seed, (size, balanced) in enumerate(sizes):
        sides = np.where(np.random.default_rng(seed).uniform(size=size) < 0.5, 1.0, -1.0)
        own = np.zeros((1, 1)) if size == 1 else random_adjacency(size, seed, density=0.5)
        blocks.append(own * np.outer(sides, sides) if balanced else -own)  # triangles of enemies
    order = np.random.default_rng(0).permutation(sum(size for size, _ in sizes))
    weights = sparse.block_diag([*map(sparse.csr_array, blocks)]).toarray()[np.ix_(order, order)]
    graph = from_adjacency(weights if is_dense else sparse.csr_array(weights))
    for kind in KINDS[:2]:
        spectrum = gq.laplacian_spectrum(graph, kind, graph.n_nodes)
        assert (spectrum.n_null, spectrum.n_components) == (3, 6)
        values, vectors = np.linalg.eigh(Laplacian(graph, kind).dense())
        np.testing.assert_allclose(spectrum.eigenvalues, values, atol=1e-12)
        own = (spectrum.eigenvectors * np.exp(-spectrum.eigenvalues)) @ spectrum.eigenvectors.T
        np.testing.assert_allclose(own, (vectors * np.exp(-values)) @ vectors.T, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_lanczos_finds_the_smallest_pairs(kind):
    graph = from_adjacency(sparse.csr_array(unbalanced(400, 1)))
    found = gq.laplacian_spectrum(graph, kind, 20, solver="lanczos", tolerance=1e-8)
    values = np.linalg.eigvalsh(Laplacian(graph, kind).dense())
    np.testing.assert_allclose(found.eigenvalues, values[:20], rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("prior", "tail"),
    [
        (Matern(0.4, 2.0, include_constant=True), False),
        (RegularizedLaplacian(1.0, 2.0), False),
        (Matern(0.4, 2.0, include_constant=True), 0.8),
    ],
)
def test_a_balanced_graph_is_the_graph_of_magnitudes_with_one_side_renamed(kind, prior, tail):
    """What is asked for is the same distribution, so that all digits agree."""
    weights, found = random_adjacency(N, 3), []
    for sides in (np.ones(N), SIDES):
        graph = from_adjacency(weights * np.outer(sides, sides))
        spectrum = gq.laplacian_spectrum(graph, kind, 12 if tail else N, tail_eigenvalue=tail)
        labels = LABELS * sides[LABELLED].astype(int)
        posterior = gq.Posterior(spectrum, prior, Probit(0.4), LABELLED, labels)
        result = gq.infer(posterior, gq.inference.ExpectationPropagation())
        found.append((sides * gq.results.label_mean(result), result.log_evidence))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-10)
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-8)


@pytest.mark.parametrize("prior", ["Matern(tau=0.3, include_constant=True)",
                                   "RegularizedLaplacian(sigma=2.0)"])  # fmt: skip
def test_probabilities_of_the_classifier_are_those_of_renamed_classes(prior):
    weights, sides = random_adjacency(N, 3), SIDES
    y = np.full(N, -1)
    y[LABELLED] = LABELS > 0
    renamed = np.where((y >= 0) & (sides < 0), 1 - y, y)
    model = f"Fixed({prior}, Probit(0.3))"
    classifier = gq.GraphClassifier("precomputed", model=model, inference=EP)
    plain = classifier.fit(weights, y).label_distributions_[:, 1]
    own = classifier.fit(weights * np.outer(sides, sides), renamed).label_distributions_[:, 1]
    np.testing.assert_allclose(np.where(sides > 0, own, 1 - own), plain, atol=1e-8)
    # So are those of rows outside the graph, for which signs are turned, too.
    new = np.abs(np.random.default_rng(0).normal(size=(6, N))) * (np.arange(N) % 3 > 0)
    turned = classifier.predict_proba(new * sides)[:, 1]
    known = classifier.fit(weights, y).predict_proba(new)[:, 1]
    np.testing.assert_allclose(turned, known, atol=1e-8)


def covariance(weights, tau, alpha):
    """Return the covariance of a Matérn field by its definition."""
    values, vectors = np.linalg.eigh(laplacian_of(weights, "symmetric"))
    matrix = (vectors * (values + tau**2) ** -alpha) @ vectors.T
    return len(weights) / np.trace(matrix) * matrix


@pytest.mark.parametrize("tau", [0.1, 0.6])
def test_label_means_on_a_small_unbalanced_graph_are_ratios_of_orthants(tau):
    weights, labelled, labels = unbalanced(7, 2), [0, 3, 5], [1, -1, 1]
    posterior = gq.Posterior(
        gq.laplacian_spectrum(from_adjacency(weights)), Matern(tau, 2.0), Probit(0.3),
        labelled, labels,
    )  # fmt: skip
    result = gq.infer(posterior, "collapsed-gibbs", n_samples=2000, n_chains=16, rng=1)
    matrix = covariance(weights, tau, 2.0)
    truth = [probit_label_mean(matrix, labelled, labels, 0.3, node) for node in range(7)]
    error = gq.results.label_mcse(result)
    assert error.max() < 0.01
    assert (np.abs(gq.results.label_mean(result) - truth) < 4 * error + 2e-5).all()
    # The evidence is the probability of the labels.
    noisy = matrix[np.ix_(labelled, labelled)] + 0.09 * np.eye(3)
    found = gq.infer(posterior, gq.inference.ExpectationPropagation()).log_evidence
    assert found == pytest.approx(np.log(orthant(noisy, labels)), abs=0.01)


@pytest.mark.parametrize("solver", ["factorised", "conjugate gradients"])
def test_a_field_that_is_solved_for_has_the_covariance_of_the_laplacian(solver, monkeypatch):
    if solver != "factorised":
        monkeypatch.setattr(precision, "DENSE_UP_TO", 0)
    balanced = random_adjacency(N, 3) * np.outer(SIDES, SIDES)
    for weights in (unbalanced(), balanced):
        laplacian = Laplacian(from_adjacency(sparse.csr_array(weights)), "unnormalized")
        asked = RegularizedLaplacian(0.4, 3.0).precision
        columns = covariance_columns.CovarianceColumns.of(laplacian, asked, LABELLED)
        inverse = np.linalg.inv(0.4 * (laplacian_of(weights, "unnormalized") + np.eye(N) / 9))
        own = columns.columns[:, :-1]
        np.testing.assert_allclose(own @ own[LABELLED].T, inverse[:, LABELLED], atol=1e-7)
        total = (columns.columns**2).sum(axis=1)
        tolerance = 1e-8 if solver == "factorised" else 0.25
        np.testing.assert_allclose(total, np.diag(inverse), rtol=tolerance)


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_matern_field_on_the_whole_graph(is_exact, monkeypatch):
    n = 300
    if not is_exact:
        monkeypatch.setattr(power_field, "EXACT_UP_TO", 0)
    weights = unbalanced(n, 2)
    laplacian = Laplacian(from_adjacency(sparse.csr_array(weights)), "symmetric")
    asked = Matern(0.5, 2.0).precision
    columns = covariance_columns.CovarianceColumns.of(laplacian, asked, LABELLED)
    values, vectors = np.linalg.eigh(laplacian_of(weights, "symmetric"))
    matrix = (vectors / (columns.beta * (values + 0.25) ** 2)) @ vectors.T
    own = columns.columns[:, :-1]
    np.testing.assert_allclose(own @ own[LABELLED].T, matrix[:, LABELLED], rtol=1e-8, atol=1e-10)


def test_the_harmonic_function_turns_its_sign_at_an_opposed_node():
    weights, labelled = unbalanced(), [0, 5]
    found = gq.harmonic_function(from_adjacency(weights), labelled, [1.0, -1.0])
    free = np.setdiff1d(np.arange(N), labelled)
    matrix = laplacian_of(weights, "unnormalized")
    expected = np.linalg.solve(
        matrix[np.ix_(free, free)], -matrix[np.ix_(free, labelled)] @ [1.0, -1.0]
    )
    np.testing.assert_allclose(found[free], expected, atol=1e-10)
    pair = np.array([[0, -2.0], [-2.0, 0]])
    assert gq.harmonic_function(from_adjacency(pair), [0], [1.0]).tolist() == [1.0, -1.0]


def test_smoothed_features_of_an_opposed_node_have_the_opposite_sign():
    """On a balanced graph they are those of features whose signs are turned on one side."""
    X = np.random.default_rng(0).normal(size=(N, 3))
    weights = random_adjacency(N, 3)
    plain = smoothed(SIDES[:, None] * X, from_adjacency(weights), 0.2)
    own = smoothed(X, from_adjacency(weights * np.outer(SIDES, SIDES)), 0.2)
    np.testing.assert_allclose(own, SIDES[:, None] * plain, atol=1e-5)


def test_the_smallest_eigenvector_tells_two_sides_apart():
    for noise in (False, True):
        weights = random_adjacency(N, 3, density=0.6) * np.outer(SIDES, SIDES)
        if noise:
            weights[0, 1], weights[1, 0] = -weights[0, 1], -weights[1, 0]
        graph = from_adjacency(weights)
        found = gq.fiedler_signs(gq.laplacian_spectrum(graph))
        np.testing.assert_array_equal(found, SIDES * found[0] * SIDES[0])
        np.testing.assert_array_equal(graph.sides, 0 if noise else SIDES * SIDES[0])


@pytest.fixture(scope="module")
def fitted():
    weights, sides = unbalanced(60, 4), np.arange(60) % 2
    weights = np.abs(weights) * np.where(np.add.outer(sides, sides) % 2, -1, 1)
    weights[0, 5] = weights[5, 0] = 3.0  # contradicts the sides
    y = np.full(60, -1)
    y[[0, 1, 6, 9]] = sides[[0, 1, 6, 9]]
    classifier = gq.GraphClassifier("precomputed", inference=EP).fit(weights, y)
    return classifier, weights, sides


def test_the_default_learns_two_sides_from_four_labels(fitted):
    classifier, _, sides = fitted
    assert (classifier.transduction_ == sides).all()
    assert classifier.graph_.sides.tolist() == [0] * 60
    assert classifier.result_.posterior.spectrum.n_null == 0


def test_files_keep_what_signs_tell(fitted, tmp_path):
    classifier, weights, _ = fitted
    spectrum = gq.laplacian_spectrum(classifier.graph_)
    spectrum.save(tmp_path / "spectrum.npz")
    read = gq.load_spectrum(tmp_path / "spectrum.npz")
    assert (read.is_signed, read.n_null) == (True, 0)
    classifier.save(tmp_path / "fit.nc")
    again = gq.GraphClassifier.load(tmp_path / "fit.nc")
    rows = weights[:3]
    np.testing.assert_allclose(again.predict_proba(rows), classifier.predict_proba(rows))


def test_several_tags_and_features_beside_signs(fitted):
    """A tag is a class of its own, and features say which side a node is on."""
    _, weights, sides = fitted
    tags = np.full((60, 2), np.nan)
    tags[:8, 0], tags[:8, 1] = sides[:8], 1 - sides[:8]
    graph = sparse.csr_array(weights)
    own = gq.MultilabelClassifier(gq.GraphClassifier(graph)).fit(None, tags)
    np.testing.assert_array_equal(own.transduction_, np.column_stack([sides, 1 - sides]))
    X = np.random.default_rng(0).normal(size=(60, 3)) + 2.0 * sides[:, None]
    y = np.where(np.arange(60) < 8, sides, -1)
    beside = gq.GraphClassifier(graph, inference=EP).fit(X, y)
    assert (beside.transduction_ == sides).mean() > 0.95
