"""Graphs with negative weights: sides, degrees, rules of directions, and what refuses them."""

import itertools

import networkx
import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import DisconnectedGraphWarning, GraphRepairWarning, InvalidInput

from_adjacency, from_edges = gq.graphs.from_adjacency, gq.graphs.from_edges
N = 20


def dense(graph):
    return graph.weights.toarray() if sparse.issparse(graph.weights) else graph.weights


def signs_of(seed, n=N):
    return np.where(np.random.default_rng(seed).uniform(size=(n, n)) < 0.5, -1.0, 1.0)


def unbalanced(seed=0, n=N):
    """Return weights of a connected graph with random signs."""
    signs = np.triu(signs_of(seed, n), 1)
    return random_adjacency(n, seed) * (signs + signs.T)


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sides_are_those_that_agree_with_every_sign(form):
    """All divisions of small graphs in two are tried."""
    seen = set()
    for seed in range(40):
        upper = np.triu(random_adjacency(6, seed, density=0.7) * signs_of(seed, 6), 1)
        upper[np.abs(upper) < 0.55] = 0.0  # without the ring
        weights = upper + upper.T
        if not (weights < 0).any():
            continue
        graph = from_adjacency(form(weights))
        for component in range(graph.n_components):
            nodes = np.flatnonzero(graph.components == component)
            own = weights[np.ix_(nodes, nodes)]
            divisions = itertools.product([1.0, -1.0], repeat=len(nodes) - 1)
            fits = [s for s in ([1.0, *d] for d in divisions) if (own * np.outer(s, s) >= 0).all()]
            expected = fits[0] if fits else np.zeros(len(nodes))
            assert len(fits) <= 1
            np.testing.assert_array_equal(graph.sides[nodes], expected)
            seen.add((bool(fits), len(nodes) > 1))
    assert seen == {(True, True), (True, False), (False, True)}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_degrees_and_components_are_of_magnitudes(form):
    weights = unbalanced()
    graph, size = from_adjacency(form(weights)), from_adjacency(form(np.abs(weights)))
    np.testing.assert_array_equal(dense(graph), weights)
    np.testing.assert_allclose(graph.degrees, np.abs(weights).sum(axis=1))
    np.testing.assert_array_equal(graph.components, size.components)
    assert graph.n_edges == size.n_edges
    assert graph.is_signed
    assert not size.is_signed
    np.testing.assert_array_equal(size.sides, 1.0)
    np.testing.assert_array_equal(graph.sides, 0.0)


def test_a_negligible_negative_weight_is_no_edge():
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 0] = weights[2, 3] = weights[3, 2] = 1.0
    weights[0, 2] = weights[2, 0] = -1e-14
    with pytest.warns(DisconnectedGraphWarning):
        graph = from_adjacency(weights)
    assert not graph.is_signed
    only_enemies = from_adjacency(np.array([[0, -1.0], [-1.0, 0]]))
    np.testing.assert_array_equal(only_enemies.sides, [1, -1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_union_and_mean_of_two_directions(form):
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 0] = -1, -3  # the larger magnitude
    weights[1, 2] = -2  # one direction alone
    weights[2, 3], weights[3, 2] = 2, -1  # a contradiction
    weights[0, 3], weights[3, 0] = 1, 4
    union = dense(from_adjacency(form(weights), symmetrize="union"))
    np.testing.assert_array_equal(
        union, [[0, -3, 0, 4], [-3, 0, -2, 0], [0, -2, 0, 0.5], [4, 0, 0.5, 0]]
    )
    mean = dense(from_adjacency(form(weights), symmetrize="average"))
    np.testing.assert_array_equal(mean, (weights + weights.T) / 2)
    for rule in ("random-walk", "shared-neighbors"):
        with pytest.raises(InvalidInput, match=f"'{rule}' of negative weights.*use 'union'"):
            from_adjacency(form(weights), symmetrize=rule)
    with pytest.raises(InvalidInput, match="NaN"):
        from_adjacency(form(np.where(weights == -3, np.nan, weights)), symmetrize="random-walk")


def test_lists_of_edges_have_signs():
    graph = from_edges(["a", "b", "a"], ["b", "c", "b"], [-1.0, 2.0, -0.5])
    np.testing.assert_array_equal(dense(graph), [[0, -1.5, 0], [-1.5, 0, 2], [0, 2, 0]])
    with pytest.warns(GraphRepairWarning, match="two weights"):
        both = from_edges(["a", "b", "b"], ["b", "a", "c"], [-1.0, 3.0, -1.0])
    np.testing.assert_array_equal(dense(both), [[0, 1, 0], [1, 0, -1], [0, -1, 0]])


@pytest.mark.parametrize("minus", [-1, "-"])
def test_the_attribute_sign_is_the_sign_of_the_weight(minus):
    graph = networkx.Graph()
    graph.add_edge("a", "b", weight=2.0, sign=minus)
    graph.add_edge("b", "c", sign=1 if minus == -1 else "+")
    graph.add_edge("c", "d", weight=3.0)
    graph.add_edge("d", "a", weight=-0.5, sign=minus)
    expected = [[0, -2, 0, -0.5], [-2, 0, 1, 0], [0, 1, 0, 3], [-0.5, 0, 3, 0]]
    np.testing.assert_array_equal(dense(from_adjacency(graph)), expected)
    plain = dense(from_adjacency(graph, weight=None))
    np.testing.assert_array_equal(plain, np.array(expected) != 0)
    igraph = pytest.importorskip("igraph", reason="pip install igraph, to test its graphs")
    made = igraph.Graph.TupleList([("a", "b", 2.0, minus)], edge_attrs=["weight", "sign"])
    np.testing.assert_array_equal(dense(from_adjacency(made)), [[0, -2], [-2, 0]])


TWO, THREE = np.full(N, -1), np.full(N, -1)
TWO[:4], THREE[:6] = [0, 1, 0, 1], [0, 1, 2, 0, 1, 2]
NUMBERS = np.where(np.arange(N) < 5, np.arange(N), np.nan)


def _posterior(likelihood, labels):
    spectrum = gq.laplacian_spectrum(from_adjacency(unbalanced()))
    return gq.Posterior(spectrum, gq.priors.Matern(), likelihood, [0, 1, 2], labels)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda W: gq.GraphClassifier("precomputed").fit(W, THREE),
            "graph: negative weights beside 3 classes.*W.maximum",
        ),
        (
            lambda W: gq.GraphClassifier("precomputed", max_classes=4).fit(W, TWO),
            "beside 4 classes",
        ),
        (
            lambda W: gq.GraphClassifier("precomputed", ordered=True).fit(W, THREE),
            "beside 3 classes",
        ),
        (
            lambda W: gq.GraphClassifier([gq.graphs.ring_graph(N), sparse.csr_array(W)]).fit(
                None, THREE
            ),
            "beside 3 classes",
        ),
        (lambda W: _posterior(gq.likelihoods.Probit(n_classes=3), [0, 1, 2]), "beside 3 classes"),
        (
            lambda W: gq.GraphRegressor("precomputed").fit(W, NUMBERS),
            "graph: negative weights, and no number is the opposite",
        ),
        (
            lambda W: gq.graphs.poisson_reweighted(from_adjacency(W), [0]),
            "negative weights, and the Poisson equation takes none",
        ),
        (
            lambda W: gq.EvidenceSearch(
                gq.GraphClassifier("precomputed", model="largest-evidence"),
                {"model__likelihood__noise_std": [0.1, 0.3]},
            ).fit(W, TWO),
            "negative weights, and a search takes none",
        ),
        (
            lambda W: gq.GraphClassifier("precomputed").fit(np.abs(W), TWO).predict(W[:2]),
            "negative weights to the nodes of a graph without any",
        ),
    ],
)
def test_what_cannot_use_opposed_nodes_refuses_them_in_words(call, words):
    with pytest.raises(InvalidInput, match=words):
        call(unbalanced())
