"""Graphs agree with their definitions, and invalid input is refused."""

import warnings

import networkx
import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import (
    DisconnectedGraphWarning,
    GraphRepairWarning,
    GraphuqError,
    InvalidInput,
)
from graphuq.graphs.graph import make_graph

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))


def brute_force_knn(x, k):
    """Compute the self-tuning union graph of Bertozzi et al. (16) by loops."""
    n = len(x)
    d = np.array([[np.linalg.norm(a - b) for b in x] for a in x])
    order = np.array([[j for j in np.argsort(d[i], kind="stable") if j != i][:k] for i in range(n)])
    tau = np.array([d[i, order[i, -1]] for i in range(n)])
    w = np.zeros((n, n))
    for i in range(n):
        for j in order[i]:
            w[i, j] = w[j, i] = np.exp(-(d[i, j] ** 2) / (2 * tau[i] * tau[j]))
    return w


def dense(graph):
    return graph.weights.toarray() if sparse.issparse(graph.weights) else graph.weights


@pytest.mark.parametrize("n_features", [3, 12])  # tree and brute-force neighbours
def test_knn_graph_agrees_with_its_definition(n_features):
    x = np.random.default_rng(1).normal(size=(40, n_features))
    graph = gq.graphs.knn_graph(x, n_neighbors=6)
    np.testing.assert_allclose(dense(graph), brute_force_knn(x, 6), atol=1e-9)
    np.testing.assert_allclose(graph.degrees, dense(graph).sum(axis=1))


def test_average_halves_one_sided_edges():
    union = dense(gq.graphs.knn_graph(X, 5))
    average = dense(gq.graphs.knn_graph(X, 5, symmetrize="average"))
    ratio = average[union > 0] / union[union > 0]
    assert set(ratio.round(9)) == {0.5, 1.0}


@pytest.mark.parametrize(
    ("weights", "options", "formula"),
    [
        ("gaussian", {"scale": 1.25}, lambda a, b: np.exp(-((a - b) ** 2).sum() / (2 * 1.25**2))),
        ("unweighted", {}, lambda a, b: 1.0),
        ("cosine", {}, lambda a, b: a @ b / np.linalg.norm(a) / np.linalg.norm(b)),
    ],
)
def test_complete_graph_weights(weights, options, formula):
    x = np.abs(X[:12])
    w = dense(gq.graphs.complete_graph(x, weights, **options))
    truth = [[0.0 if i == j else formula(a, b) for j, b in enumerate(x)] for i, a in enumerate(x)]
    np.testing.assert_allclose(w, truth, atol=1e-12)


def test_complete_self_tuning_scale_is_the_kth_neighbour():
    w = dense(gq.graphs.complete_graph(X, n_neighbors=4))
    d = np.linalg.norm(X[:, None] - X[None], axis=-1)
    tau = np.sort(d, axis=1)[:, 4]
    truth = np.exp(-(d**2) / (2 * np.outer(tau, tau)))
    np.fill_diagonal(truth, 0)
    np.testing.assert_allclose(w, truth, atol=1e-12)


def test_coincident_points_do_not_divide_by_zero():
    x = np.concatenate([np.zeros((8, 2)), RNG.normal(size=(8, 2))])
    graph = gq.graphs.knn_graph(x, n_neighbors=4)
    assert graph.n_components == 1
    assert np.isfinite(dense(graph)).all()
    assert dense(graph)[0].max() == 1.0


def test_three_ways_to_bring_a_graph():
    network = networkx.karate_club_graph()
    matrix = networkx.to_numpy_array(network)
    graphs = [gq.graphs.from_adjacency(g) for g in (network, matrix, sparse.csr_matrix(matrix))]
    for graph in graphs:
        np.testing.assert_allclose(dense(graph), matrix)
    assert sparse.issparse(graphs[2].weights)


def test_components_are_counted_in_a_warning():
    w = np.zeros((7, 7))
    w[0, 1] = w[1, 0] = w[2, 3] = w[3, 2] = w[3, 4] = w[4, 3] = 1
    with pytest.warns(DisconnectedGraphWarning, match=r"4 connected components .* 2 isolated"):
        graph = gq.graphs.from_adjacency(w)
    assert graph.n_components == 4


def test_negligible_edges_do_not_connect():
    w = np.kron(np.eye(2), np.ones((3, 3))) - np.eye(6) + 0.0
    w[0, 3] = w[3, 0] = 1e-20
    for adjacency in (w, sparse.csr_array(w)):
        with pytest.warns(DisconnectedGraphWarning):
            assert gq.graphs.from_adjacency(adjacency).n_components == 2


def test_small_flaws_are_repaired_with_a_warning():
    w = np.ones((4, 4)) - np.eye(4)
    w[0, 1] += 1e-5
    with pytest.warns(GraphRepairWarning, match="transpose"):
        graph = gq.graphs.from_adjacency(w)
    assert dense(graph)[0, 1] == dense(graph)[1, 0]
    for adjacency in (np.ones((4, 4)), sparse.csr_array(np.ones((4, 4)))):
        with pytest.warns(GraphRepairWarning, match="4 self-loop"):
            assert not gq.graphs.from_adjacency(adjacency).weights.diagonal().any()


def with_nan(x):
    x = x.copy()
    x[2, 0] = np.nan
    return x


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gq.graphs.knn_graph(with_nan(X)), "X: NaN or infinite values in 1 row"),
        (lambda: gq.graphs.knn_graph(X * np.inf), "NaN or infinite"),
        (lambda: gq.graphs.knn_graph(X[:5], 5), "5 neighbours asked of 5 rows; use at most 4"),
        (lambda: gq.graphs.knn_graph(X, 0), "n_neighbors: 0; use 1 or more"),
        (lambda: gq.graphs.knn_graph(X[:0]), "empty"),
        (lambda: gq.graphs.knn_graph(X[:, 0]), "1 dimension"),
        (lambda: gq.graphs.knn_graph([["a", "b"]]), "not numeric"),
        (lambda: gq.graphs.knn_graph(X, weights="soft"), "'soft' is unknown; use one of self-t"),
        (lambda: gq.graphs.knn_graph(X, weights="gaussian"), "weights: .gaussian. has no length"),
        (lambda: gq.graphs.knn_graph(X, scale=2.0), "scale: 2.0 has no effect"),
        (lambda: gq.graphs.knn_graph(X, weights="gaussian", scale=-1.0), "-1.0 is not positive"),
        (lambda: gq.graphs.knn_graph(X, symmetrize="both"), "symmetrize: 'both' is unknown"),
        (lambda: gq.graphs.complete_graph(X, "cosine"), "negative for some pairs"),
        (lambda: gq.graphs.complete_graph(np.zeros((30_000, 1))), "7 GB; use knn_graph"),
        (lambda: make_graph(-np.eye(3)), "3 negative weight"),
        (lambda: gq.graphs.from_adjacency(-np.ones((3, 3))), "for every pair of nodes.*exp"),
        (lambda: gq.graphs.from_adjacency(with_nan(np.eye(4))), "1 weight.* NaN"),
        (lambda: gq.graphs.from_adjacency(np.triu(np.ones((3, 3)), 1)), "asymmetric"),
        (lambda: gq.graphs.from_adjacency(np.ones((3, 2))), "not square"),
        (lambda: gq.graphs.from_adjacency(np.zeros((3, 3))), "no weight other than 0"),
        (lambda: gq.graphs.from_adjacency([["a"]]), "not numeric"),
    ],
)
def test_bad_input_names_argument_value_and_remedy(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_errors_are_value_errors():
    assert issubclass(GraphuqError, ValueError)


def test_new_rows_connect_as_the_graph_does():
    graph = gq.graphs.knn_graph(X, 5, weights="gaussian", scale=0.8)
    queries = RNG.normal(size=(4, 3))
    w = graph.feature_space.connect(queries).toarray()
    d = np.linalg.norm(queries[:, None] - X[None], axis=-1)
    nearest = d <= np.sort(d, axis=1)[:, 4:5]
    np.testing.assert_allclose(w, np.where(nearest, np.exp(-(d**2) / (2 * 0.8**2)), 0), atol=1e-12)
    assert graph.feature_space.find(np.stack([X[7], queries[0]])).tolist() == [7, -1]


def test_grids_join_neighbours():
    torus = gq.graphs.grid_graph((3, 4), periodic=True)
    assert (torus.degrees == 4).all()
    grid = gq.graphs.grid_graph((2, 3))
    nodes = np.arange(6).reshape(2, 3)
    expected = {(nodes[i, j], nodes[i, j + 1]) for i in range(2) for j in range(2)}
    expected |= {(nodes[0, j], nodes[1, j]) for j in range(3)}
    rows, columns = grid.weights.nonzero()
    assert {(r, c) for r, c in zip(rows, columns, strict=True) if r < c} == expected
    assert gq.graphs.path_graph(5).n_edges == 4
    assert gq.graphs.ring_graph(5).n_edges == 5


@pytest.mark.parametrize(
    ("shape", "periodic"), [((), False), ((1, 3), False), ((2,), True), ((3, 3), (True,))]
)
def test_impossible_grids_are_refused(shape, periodic):
    with pytest.raises(InvalidInput, match=r"; (use|give)"):
        gq.graphs.grid_graph(shape, periodic)


def test_small_worlds_are_rewired_rings():
    ring = gq.graphs.small_world_graph(20, rewiring=0.0)
    assert (ring.n_nodes, ring.n_edges) == (20, 20)
    world = gq.graphs.small_world_graph(1000, both_ends=True, rng=1)
    assert world.n_components == 1
    assert 800 < world.n_nodes < 900  # the paper reports 848
    again = gq.graphs.small_world_graph(1000, both_ends=True, rng=1)
    np.testing.assert_array_equal(again.degrees, world.degrees)
    with pytest.raises(InvalidInput, match="rewiring"):
        gq.graphs.small_world_graph(rewiring=1.5)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_graphs_of_distances_and_sparse_features(metric):
    """Dense features, sparse features and distances give equal graphs."""
    rng = np.random.default_rng(0)
    x = sparse.csr_array(rng.uniform(size=(60, 40)) * (rng.uniform(size=(60, 40)) < 0.4))
    full = x.toarray()
    if metric == "cosine":
        norms = np.linalg.norm(full, axis=1)
        distances = 1 - full @ full.T / np.multiply.outer(norms, norms)
    else:
        distances = np.array([[np.linalg.norm(a - b) for b in full] for a in full])
    np.fill_diagonal(distances, 0.0)
    radius = float(np.quantile(distances[distances > 0], 0.2)) + 1e-9
    builders = (
        lambda f, m: gq.graphs.knn_graph(f, 5, metric=m),
        lambda f, m: gq.graphs.epsilon_graph(f, radius, "gaussian", scale=0.7, metric=m),
        lambda f, m: gq.graphs.complete_graph(f, gq.graphs.TanhWeights(3.0, 0.5), metric=m),
    )
    for build in builders:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedGraphWarning)
            plain, stored, given = (
                build(full, metric),
                build(x, metric),
                build(distances, "precomputed"),
            )
        np.testing.assert_allclose(dense(stored), dense(plain), atol=1e-7)
        np.testing.assert_allclose(dense(given), dense(plain), atol=1e-7)
        assert given.feature_space is None
        for rule in ("mean", "nearest", "combination"):
            ways = [
                g.feature_space.connect(q[:4] * 0.9, rule) for g, q in ((plain, full), (stored, x))
            ]
            np.testing.assert_allclose(ways[0].toarray(), ways[1].toarray(), atol=1e-6)
        np.testing.assert_array_equal(stored.feature_space.find(x[[3, 7]]), [3, 7])
        assert stored.feature_space.find(x[[3]] * 2)[0] == -1


def test_epsilon_graph_agrees_with_its_definition():
    d = np.array([[np.linalg.norm(a - b) for b in X] for a in X])
    graph = gq.graphs.epsilon_graph(X, 2.5)
    np.testing.assert_array_equal(dense(graph), (d <= 2.5) & ~np.eye(30, dtype=bool))
    twins = np.array([[0.0], [0.0], [1.0]])
    assert gq.graphs.epsilon_graph(twins, 1.0).n_edges == 3  # a distance of 0 is within the radius


def test_tanh_weights_agree_with_the_paper():
    d = np.linspace(0, 3, 50)
    for steepness in (0.3, 40.0):
        found = gq.graphs.TanhWeights(steepness, 1.2).weight(d, d, d)
        np.testing.assert_allclose(found, (np.tanh(-steepness * (d - 1.2)) + 1) / 2, atol=1e-15)
    far = gq.graphs.TanhWeights(1e6, 1.0).weight(np.array([0.0, 2.0]), d, d)
    np.testing.assert_allclose(far, [1.0, 0.0], atol=1e-300)


def test_a_scale_for_each_feature():
    scales = np.array([0.5, 1.0, 1e9])
    graph = gq.graphs.complete_graph(X, "gaussian", scale=scales)
    ignored = gq.graphs.complete_graph(X[:, :2] / [0.5, 1.0], "gaussian", scale=1.0)
    np.testing.assert_allclose(dense(graph), dense(ignored), atol=1e-7)
    assert graph.feature_space.find(X[[4]])[0] == 4
    new = graph.feature_space.connect(X[[4]] + 0.1).toarray()
    other = ignored.feature_space.connect((X[[4], :2] + 0.1) / [0.5, 1.0]).toarray()
    np.testing.assert_allclose(new, other, atol=1e-7)


def test_a_combination_of_nodes_reconstructs_the_row():
    space = gq.graphs.knn_graph(X, 6).feature_space
    row = X[[2, 5, 9]].mean(axis=0, keepdims=True)
    weights = space.connect(row, "combination")
    assert weights.sum() == pytest.approx(1)
    nearest = space.connect(row, "nearest")
    apart = [np.linalg.norm(w @ X - row) for w in (weights, nearest)]
    assert apart[0] < 0.5 * apart[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gq.graphs.epsilon_graph(X, 0.0), "radius: 0.0"),
        (lambda: gq.graphs.epsilon_graph(X, 1e-6), "no two of 30 nodes"),
        (lambda: gq.graphs.epsilon_graph(X, 1.0, "self-tuning"), "no local scales"),
        (lambda: gq.graphs.knn_graph(X, 3, metric="manhattan"), "metric: 'manhattan' is unknown"),
        (lambda: gq.graphs.knn_graph(X, 3, metric="precomputed"), "of shape \\(30, 3\\)"),
        (lambda: gq.graphs.knn_graph(-np.ones((4, 4)), 2, metric="precomputed"), "negative dist"),
        (lambda: gq.graphs.knn_graph(np.eye(4), 2, metric="precomputed"), "nodes to themselves"),
        (
            lambda: gq.graphs.knn_graph(np.triu(np.ones((4, 4)), 1), 2, metric="precomputed"),
            "asymmetric distances",
        ),
        (
            lambda: gq.graphs.knn_graph(np.eye(4)[:3] * 0, 2, metric="cosine"),
            "no weight other than 0",
        ),
        (lambda: gq.graphs.complete_graph(X, "gaussian", scale=[1.0, 2.0]), "2 scales of 3"),
        (lambda: gq.graphs.complete_graph(X, "gaussian", scale=[1.0, -2.0, 1]), "not positive"),
        (lambda: gq.graphs.TanhWeights(1.0, 0.0), "cutoff: 0.0"),
        (lambda: gq.graphs.TanhWeights(-1.0, 1.0), "steepness: -1.0"),
        (lambda: gq.graphs.knn_graph(X, 4).feature_space.connect(X, "best"), "rule: 'best'"),
    ],
)
def test_bad_distances_and_weights(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
