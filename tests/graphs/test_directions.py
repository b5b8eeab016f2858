"""Directed graphs made symmetric, and groups of nodes, against dense formulas."""

import networkx
import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.graphs import directions, hyperedges

from_adjacency, from_hyperedges = gq.graphs.from_adjacency, gq.graphs.from_hyperedges


def directed(seed=0, n=12):
    """Return weights of a directed graph in which two nodes lead nowhere."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2, (n, n)) * (rng.uniform(size=(n, n)) < 0.3)
    np.fill_diagonal(weights, 0)
    weights[[3, 7]] = 0
    return weights


def normalized(weights):
    root = np.sqrt(weights.sum(axis=1))
    return np.eye(len(weights)) - weights / root[:, None] / root


def dense(graph):
    return graph.weights.toarray() if sparse.issparse(graph.weights) else graph.weights


def chungs_parts(weights):
    """Return the walk along the edges, and its stationary distribution by eigenvectors."""
    n, out = len(weights), weights.sum(axis=1, keepdims=True)
    steps = np.divide(weights, out, out=np.zeros_like(weights), where=out > 0)
    with_ends = np.where(out > 0, steps, 1 / n)
    restarted = (1 - directions.RESTART) * with_ends + directions.RESTART / n
    values, vectors = np.linalg.eig(restarted.T)
    share = np.real(vectors[:, np.argmax(np.real(values))])
    return steps, share / share.sum()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_random_walk_is_chungs_laplacian(form):
    weights = directed()
    steps, share = chungs_parts(weights)
    flow = share[:, None] * steps
    made = dense(from_adjacency(form(weights), symmetrize="random-walk"))
    np.testing.assert_allclose(made, len(weights) * (flow + flow.T) / 2, rtol=1e-8)
    # Where every node leads on, and without restarts, it is the formula of the paper.
    strong = weights + np.roll(np.eye(len(weights)), 1, axis=1)
    steps, share = chungs_parts(strong)
    root = np.sqrt(share)
    paper = root[:, None] * steps / root
    laplacian = np.eye(len(strong)) - (paper + paper.T) / 2
    made = dense(from_adjacency(strong, symmetrize="random-walk"))
    assert np.abs(normalized(made) - laplacian).max() < 3 * directions.RESTART


def test_random_walk_on_an_undirected_graph_is_the_usual_laplacian(monkeypatch):
    weights = directed()
    weights = weights + weights.T
    monkeypatch.setattr(directions, "RESTART", 0.0)
    made = dense(from_adjacency(weights, symmetrize="random-walk"))
    np.testing.assert_allclose(normalized(made), normalized(weights), atol=1e-8)


def test_shared_neighbors_is_the_degree_discounted_formula():
    weights = directed()
    out, into = weights.sum(axis=1), weights.sum(axis=0)
    o = np.diag(np.divide(1, np.sqrt(out), out=np.zeros(12), where=out > 0))
    i = np.diag(np.divide(1, np.sqrt(into), out=np.zeros(12), where=into > 0))
    expected = o @ weights @ i @ weights.T @ o + i @ weights.T @ o @ weights @ i
    np.fill_diagonal(expected, 0)
    made = dense(from_adjacency(weights, symmetrize="shared-neighbors"))
    np.testing.assert_allclose(made, expected, atol=1e-12)


def test_shared_neighbors_tell_roles_that_the_union_does_not():
    """Each class leads to the next one; 60 nodes, two labels a class, mean of three graphs."""
    right = {"union": [], "shared-neighbors": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        codes = np.arange(60) % 3
        leads = codes[None, :] == (codes[:, None] + 1) % 3
        weights = (rng.uniform(size=(60, 60)) < np.where(leads, 0.4, 0.03)).astype(float)
        np.fill_diagonal(weights, 0)
        y = np.where(np.arange(60) < 6, codes, -1)
        for rule, found in right.items():
            graph = from_adjacency(weights, symmetrize=rule)
            fitted = gq.GraphClassifier("precomputed").fit(graph, y)
            found.append((fitted.transduction_ == codes)[6:].mean())
    assert np.mean(right["shared-neighbors"]) > 0.95
    assert np.mean(right["union"]) < 0.8


def test_edges_of_a_list_lead_from_source_to_target():
    graph = networkx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")])
    source, target = zip(*graph.edges, strict=True)
    for rule in directions.RULES:
        listed = gq.graphs.from_edges(source, target, nodes=list(graph), symmetrize=rule)
        np.testing.assert_allclose(dense(listed), dense(from_adjacency(graph, symmetrize=rule)))
        assert listed.settings["symmetrize"] == rule
    with pytest.raises(InvalidInput, match="symmetrize: 'both' is unknown"):
        gq.graphs.from_edges(source, target, symmetrize="both")


@pytest.mark.parametrize("rule", directions.RULES)
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_wrong_weights_are_refused_by_every_rule(rule, wrong):
    weights = directed()
    weights[0, 1] = wrong
    with pytest.raises(InvalidInput, match=r"adjacency: .*NaN"):
        from_adjacency(weights, symmetrize=rule)


def test_too_many_pairs_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(directions, "MAX_PAIRS", 10)
    monkeypatch.setattr(hyperedges, "MAX_PAIRS", 10)
    with pytest.raises(InvalidInput, match="'random-walk'"):
        from_adjacency(directed(), symmetrize="shared-neighbors")
    with pytest.raises(InvalidInput, match="largest group has 5"):
        from_hyperedges([range(5)])


def test_groups_are_walked_by_weight_and_then_to_another_member():
    rng = np.random.default_rng(1)
    groups = [rng.permutation(9)[: rng.integers(2, 6)].tolist() for _ in range(8)]
    weight = rng.uniform(0.5, 2, 8)
    graph = from_hyperedges(groups, weight, nodes=range(9))
    expected = np.zeros((9, 9))
    for group, w in zip(groups, weight, strict=True):
        for i in group:
            for j in group:
                expected[i, j] += (i != j) * w / (len(group) - 1)
    np.testing.assert_allclose(dense(graph), expected)
    member = np.array([[i in group for group in groups] for i in range(9)])
    np.testing.assert_allclose(graph.degrees, member @ weight)


def test_groups_of_two_are_edges_and_names_are_kept():
    pairs = [("ann", "bob"), ("bob", "cy"), ("cy", "cy"), ("ann",)]
    graph = from_hyperedges(pairs)
    edges = gq.graphs.from_edges(["ann", "bob"], ["bob", "cy"])
    np.testing.assert_array_equal(dense(graph), dense(edges))
    assert graph.names.tolist() == ["ann", "bob", "cy"]


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ([["a"], ["b"]], {}, "no group has two members"),
        (["ab", "bc"], {}, "'ab' at 0 is no group"),
        ([["a", None]], {}, "no name in group 0"),
        ([["a", ["b"]]], {}, "a name of type list"),
        ([["a", "b"]], {"weight": [1, 2]}, r"shape \(2,\) for 1 groups"),
        ([["a", "b"]], {"weight": [-1]}, "negative, NaN"),
        ([["a", "b"]], {"weight": ["x"]}, "not numeric"),
        ([["a", "b"]], {"nodes": ["a"]}, r"\['b'\] is missing"),
        ([["a", "b"]], {"nodes": ["a", "b", "a"]}, "names repeat"),
    ],
)
def test_what_is_no_group_is_refused(groups, options, message):
    with pytest.raises(InvalidInput, match=message):
        from_hyperedges(groups, **options)
