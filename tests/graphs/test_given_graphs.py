"""Graphs of other libraries, lists of edges, and distances to neighbours."""

import warnings
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph, radius_neighbors_graph
from sklearn.pipeline import make_pipeline

import graphuq as gq
from graph_stand_ins import Tensor, dgl, geometric
from graphuq.errors import (
    DisconnectedGraphWarning,
    GraphRepairWarning,
    GraphuqWarning,
    InvalidInput,
    UnlabelledScoreWarning,
)

from_adjacency, from_distances, from_edges = (
    gq.graphs.from_adjacency,
    gq.graphs.from_distances,
    gq.graphs.from_edges,
)
# A triangle a-b-c with a tail c-d; weights 1, 2, 3, 4.
SOURCE, TARGET, WEIGHT = list("abac"), list("bccd"), [1.0, 2.0, 3.0, 4.0]
MATRIX = np.array([[0, 1, 3, 0], [1, 0, 2, 0], [3, 2, 0, 4], [0, 0, 4, 0]], dtype=float)
X = np.random.default_rng(3).normal(size=(80, 3))


def network(kind=networkx.Graph):
    graph = kind()
    graph.add_weighted_edges_from(zip(SOURCE, TARGET, WEIGHT, strict=True))
    return graph


CODES = np.array([[ord(name) - ord("a") for name in ends] for ends in (SOURCE, TARGET)])
BOTH = [np.concatenate([*CODES]).tolist(), np.concatenate([*CODES[::-1]]).tolist()]
TWICE = Tensor(WEIGHT * 2)


def dense(graph):
    return graph.weights.toarray() if sparse.issparse(graph.weights) else graph.weights


OBJECTS = {
    "networkx": (network(), True),
    "edge_weight": (geometric(*BOTH, 4, edge_weight=TWICE), False),
    "edge_attr": (
        geometric(*BOTH, 4, edge_attr=Tensor(np.c_[WEIGHT * 2]), node_types=["n"]),
        False,
    ),
    "dgl": (dgl(*BOTH, 4, {"weight": TWICE}), False),
}


@pytest.mark.parametrize(("graph", "has_names"), OBJECTS.values(), ids=OBJECTS)
def test_graph_objects_keep_weights_and_names(graph, has_names):
    made = from_adjacency(graph)
    np.testing.assert_array_equal(dense(made), MATRIX)
    assert (made.names is not None) == has_names
    assert not has_names or made.names.tolist() == list("abcd")
    np.testing.assert_array_equal(dense(from_adjacency(graph, weight=None)), MATRIX > 0)


def test_igraph():
    igraph = pytest.importorskip("igraph", reason="pip install igraph, to test its graphs")
    graph = igraph.Graph.TupleList(
        zip(SOURCE, TARGET, WEIGHT, strict=True), edge_attrs=["weight"], directed=False
    )
    made = from_adjacency(graph)
    assert made.names.tolist() == graph.vs["name"]
    order = np.argsort(made.names.tolist())
    np.testing.assert_array_equal(dense(made)[np.ix_(order, order)], MATRIX)
    plain = igraph.Graph(n=4, edges=CODES.T.tolist())
    assert from_adjacency(plain).names is None
    np.testing.assert_array_equal(dense(from_adjacency(plain)), MATRIX > 0)
    directed = igraph.Graph(n=4, edges=CODES.T.tolist(), directed=True)
    with pytest.warns(GraphRepairWarning, match="directed graph"):
        np.testing.assert_array_equal(dense(from_adjacency(directed)), MATRIX > 0)


@pytest.mark.parametrize(
    "graph",
    [
        network(networkx.DiGraph),
        geometric(*CODES, 4, edge_weight=Tensor(WEIGHT)),
        dgl(*CODES, 4, {"weight": Tensor(WEIGHT)}),
    ],
    ids=["networkx", "geometric", "dgl"],
)
def test_directed_graphs_become_their_union_with_a_warning(graph):
    with pytest.warns(GraphRepairWarning, match="directed graph; the larger .*'average'"):
        made = from_adjacency(graph)
    np.testing.assert_array_equal(dense(made), MATRIX)
    np.testing.assert_array_equal(dense(from_adjacency(graph, symmetrize="union")), MATRIX)
    np.testing.assert_array_equal(dense(from_adjacency(graph, symmetrize="average")), MATRIX / 2)


def test_parallel_edges_are_added():
    graph = network(networkx.MultiGraph)
    graph.add_edge("a", "b", weight=5.0)
    assert dense(from_adjacency(graph))[0, 1] == 6.0


def test_asymmetric_matrices_are_refused_unless_told_what_to_do():
    upper = np.triu(MATRIX)
    with pytest.raises(InvalidInput, match=r"asymmetric.*symmetrize='union'"):
        from_adjacency(upper)
    for matrix in (upper, sparse.csr_array(upper)):
        np.testing.assert_array_equal(dense(from_adjacency(matrix, symmetrize="union")), MATRIX)
        half = dense(from_adjacency(matrix, symmetrize="average"))
        np.testing.assert_array_equal(half, MATRIX / 2)
    with pytest.raises(InvalidInput, match="symmetrize: 'both' is unknown"):
        from_adjacency(MATRIX, symmetrize="both")


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("dtype", [float, np.float32, int, bool])
def test_every_sparse_format(form, dtype):
    expected = (MATRIX > 0).astype(float)
    for kind in ("array", "matrix"):
        matrix = getattr(sparse, f"{form}_{kind}")(expected.astype(dtype))
        np.testing.assert_array_equal(dense(from_adjacency(matrix)), expected)
        y = [0, -1, -1, 1]
        fitted = gq.GraphClassifier("precomputed", **MODEL).fit(matrix, y)
        np.testing.assert_array_equal(dense(fitted.graph_), expected)


BAD = {
    "types": (
        geometric(*BOTH, 4, node_types=["u", "v"]),
        "nodes of several types; .*to_homogeneous",
    ),
    "no edges": (SimpleNamespace(edge_index=None, num_nodes=4), "no edge_index; set data.edge_ind"),
    "columns": (
        geometric(*BOTH, 4, edge_attr=Tensor(np.ones((8, 2)))),
        r"shape \(8, 2\).*weight=None",
    ),
    "dgl types": (
        dgl(*BOTH, 4, {}, None, ("u", "v")),
        "nodes of types .'u', 'v'.*dgl.to_homogeneous",
    ),
    "text": (
        networkx.Graph([(0, 1, {"weight": "strong"})]),
        "'weight' is not numeric .*weight=None",
    ),
    "a sign that is none": (networkx.Graph([(0, 1, {"sign": "enemy"})]), "'sign' is 'enemy'"),
    "a sign of zero": (networkx.Graph([(0, 1, {"sign": 0})]), "'sign' is 0; use 1 and -1"),
    "two signs": (networkx.Graph([(0, 1, {"weight": -1, "sign": 1})]), "-1.0.* of positive sign"),
}


@pytest.mark.parametrize(("graph", "words"), BAD.values(), ids=BAD)
def test_graphs_that_cannot_be_used(graph, words):
    with pytest.raises(InvalidInput, match=words):
        from_adjacency(graph)


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
def test_weights_that_would_be_left_out_are_told(kind):
    """A graph whose weights had another name was fitted as one without weights, in silence."""
    ends = [(0, 1), (1, 0), (1, 2), (2, 1)]
    graph = kind([(a, b, {"kg": 2.0 + b, "kind": "road", "open": True}) for a, b in ends])
    words = r"edges have no 'weight', .*; its numbers are kg; .*weight='kg'"
    with pytest.warns(GraphuqWarning, match=words):
        from_adjacency(graph, symmetrize="union")
    for name in ("kg", None):  # no warning
        from_adjacency(graph, weight=name, symmetrize="union")
    with pytest.raises(InvalidInput, match=r"no edge has 'kgs'; its numbers are kg; name an"):
        from_adjacency(graph, weight="kgs")


def test_edges_are_listed_in_any_direction():
    made = from_edges(SOURCE, TARGET, WEIGHT)
    np.testing.assert_array_equal(dense(made), MATRIX)
    assert made.names.tolist() == list("abcd")
    both = from_edges(SOURCE + TARGET, TARGET + SOURCE, WEIGHT * 2, nodes=list("dcba"))
    np.testing.assert_array_equal(dense(both), MATRIX[::-1, ::-1])
    repeated = from_edges([*SOURCE, "a"], [*TARGET, "b"], [*WEIGHT, 5.0])
    assert dense(repeated)[0, 1] == dense(repeated)[1, 0] == 6.0
    with pytest.warns(GraphRepairWarning, match="edges with two weights; the larger"):
        two = from_edges([*SOURCE, "b"], [*TARGET, "a"], [*WEIGHT, 5.0])
    assert dense(two)[0, 1] == dense(two)[1, 0] == 5.0
    mean = from_edges([*SOURCE, "b"], [*TARGET, "a"], [*WEIGHT, 5.0], symmetrize="average")
    assert dense(mean)[0, 1] == 3.0
    assert dense(mean)[2, 3] == 2.0
    with pytest.warns(DisconnectedGraphWarning):
        assert from_edges(["a"], ["b"], nodes=["a", "b", "c"]).n_nodes == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["a"], ["b", "c"]), "target: 2 names for 1 of source"),
        (([], []), "source: no edge"),
        ((["a", None], ["b", "c"]), "source: no name in row 1"),
        ((["a", "b"], ["b", float("nan")]), "target: no name in row 1"),
        ((["a"], ["b"], ["x"]), "weight: not numeric"),
        ((["a"], ["b"], [1.0, 2.0]), r"weight: shape \(2,\) for 1 edges"),
    ],
)
def test_edges_that_cannot_be_used(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        from_edges(*arguments)
    for nodes, wrong in (["a", "a"], "names repeat"), (["a", "x"], "'b' is missing"):
        with pytest.raises(InvalidInput, match=f"nodes: {wrong}"):
            from_edges(["a"], ["b"], nodes=nodes)


@pytest.mark.parametrize("weights", ["self-tuning", "unweighted", gq.graphs.SelfTuning(4.0)])
@pytest.mark.parametrize("symmetrize", ["union", "average"])
def test_distances_make_the_graph_of_their_features(weights, symmetrize):
    expected = gq.graphs.knn_graph(X, 7, weights, symmetrize=symmetrize)
    without_self = kneighbors_graph(X, 7, mode="distance")
    with_self = KNeighborsTransformer(mode="distance", n_neighbors=7).fit_transform(X)
    assert with_self.diagonal().size == 80
    assert with_self.nnz == 80 * 8
    for distances in (without_self, with_self, without_self.tocoo(), sparse.csc_matrix(with_self)):
        made = from_distances(distances, weights=weights, symmetrize=symmetrize)
        np.testing.assert_allclose(dense(made), dense(expected), atol=1e-12)
    more = kneighbors_graph(X, 20, mode="distance")
    made = from_distances(more, 7, weights, symmetrize=symmetrize)
    np.testing.assert_allclose(dense(made), dense(expected), atol=1e-12)
    through = gq.graphs.knn_graph(more, 7, weights, metric="precomputed", symmetrize=symmetrize)
    np.testing.assert_allclose(dense(through), dense(expected), atol=1e-12)


def test_coincident_points_of_a_transformer_are_joined():
    twins = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 2, axis=0)
    distances = kneighbors_graph(twins, 4, mode="distance")
    expected = gq.graphs.knn_graph(twins, 4, "unweighted")
    made = from_distances(distances, weights="unweighted")
    assert dense(made)[0, 1] == dense(expected)[0, 1] == 1.0


def test_all_within_a_radius():
    """Every scale is the distance to the farthest node within the radius."""
    distances = radius_neighbors_graph(X, 2.0, mode="distance")
    full = distances.toarray()
    scale = full.max(axis=1)
    weights = np.exp(-0.5 * full**2 / np.outer(scale, scale)) * (full > 0)
    np.testing.assert_allclose(dense(from_distances(distances)), weights, atol=1e-12)


def test_a_node_that_stores_no_neighbour_has_the_scale_of_its_farthest_follower():
    distances = sparse.csr_array(np.array([[0, 1.0, 0], [0, 0, 2.0], [0, 0, 0]]))
    made = dense(from_distances(distances))
    assert made[0, 1] == pytest.approx(np.exp(-0.5 * 1 / (1 * 2)))
    assert made[1, 2] == pytest.approx(np.exp(-0.5 * 4 / (2 * 2)))


def test_two_distances_of_a_pair():
    distances = sparse.csr_array(np.array([[0, 1.0, 3], [1.5, 0, 2], [3, 2, 0]]))
    with pytest.warns(GraphRepairWarning, match=r"distances: 1 pair\(s\) .* the smaller"):
        made = from_distances(distances, weights="gaussian", scale=1.0)
    assert dense(made)[0, 1] == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize(
    ("distances", "options", "words"),
    [
        (np.ones((3, 3)), {}, r"distances: a dense matrix .*metric='precomputed'"),
        (sparse.csr_array(np.ones((3, 2))), {}, "not square"),
        (sparse.csr_array(-np.ones((3, 3))), {}, r"9 distance\(s\) negative"),
        (sparse.csr_array(MATRIX), {"n_neighbors": 9}, "n_neighbors: 9 neighbours asked of 4"),
        (sparse.csr_array(MATRIX), {"symmetrize": "no"}, "symmetrize: 'no'"),
        (sparse.csr_array(MATRIX), {"weights": "cosine"}, "metric"),
    ],
)
def test_distances_that_cannot_be_used(distances, options, words):
    with pytest.raises(InvalidInput, match=words):
        from_distances(distances, **options)


MODEL = {"model": "fixed", "inference": "expectation-propagation"}


def test_classifier_of_a_graph_object_with_labels_by_name():
    club = networkx.karate_club_graph()
    people = networkx.relabel_nodes(club, {node: f"person {node}" for node in club})
    truth = np.array([club.nodes[node]["club"] for node in club])
    fitted = gq.GraphClassifier("precomputed", **MODEL).fit(
        people, {"person 0": "Mr. Hi", "person 33": "Officer"}
    )
    assert (fitted.transduction_ == truth).mean() > 0.9
    table = fitted.result_.to_dataframe(fitted.graph_.names)
    assert table["id"].tolist() == [f"person {node}" for node in club]
    graph = from_adjacency(club)
    again = gq.GraphClassifier(graph, **MODEL).fit(None, {0: "Mr. Hi", 33: "Officer"})
    np.testing.assert_array_equal(again.label_distributions_, fitted.label_distributions_)
    with pytest.raises(InvalidInput, match=r"y: .x. is not a node; use names as in graph\.names"):
        gq.GraphClassifier("precomputed", **MODEL).fit(people, {"x": 0})
    with pytest.raises(InvalidInput, match="y: a mapping beside a matrix"):
        gq.GraphClassifier(**MODEL).fit(X, {0: 0})


PATH = from_edges([0, 1, 2], [1, 2, 3])
NAMED_PATH = from_edges(["a", "b", "c"], ["b", "c", "d"])
BY_NAME = {"a": 0, "d": 1}


@pytest.mark.parametrize(
    ("graph", "y"), [(PATH, [0, -1, -1, 1]), (PATH, {0: 0, 3: 1}), (NAMED_PATH, BY_NAME)]
)
def test_a_graph_is_fitted_predicted_and_scored_like_its_weights(graph, y, tmp_path):
    fitted = gq.GraphClassifier("precomputed", **MODEL).fit(graph, y)
    expected = gq.GraphClassifier("precomputed", **MODEL).fit(graph.weights, [0, -1, -1, 1])
    assert fitted.transduction_.tolist() == [0, 0, 1, 1]
    assert fitted.n_features_in_ == 4
    np.testing.assert_array_equal(fitted.label_distributions_, expected.label_distributions_)
    found, same = fitted.predict_proba(graph), expected.predict_proba(graph.weights)
    np.testing.assert_array_equal(found, same)
    with pytest.warns(UnlabelledScoreWarning):
        assert fitted.score(graph, y) == 1
    fitted.save(tmp_path / "fit.nc")
    np.testing.assert_array_equal(gq.load(tmp_path / "fit.nc").predict_proba(graph), same)


def test_a_graph_of_features_keeps_them():
    graph = gq.graphs.knn_graph(X, 8, "unweighted")
    y = np.where(np.arange(80) < 8, X[:, 0] > 0, -1)
    fitted = gq.GraphClassifier("precomputed", **MODEL).fit(graph, y)
    expected = gq.GraphClassifier(n_neighbors=8, weights="unweighted", **MODEL).fit(X, y)
    np.testing.assert_array_equal(fitted.predict_proba(X + 0.01), expected.predict_proba(X + 0.01))
    with pytest.raises(InvalidInput, match=r"X: Graph\(80 .*; give features; .*transduction_"):
        fitted.predict(graph)
    with pytest.raises(InvalidInput, match="y: a mapping beside a matrix"):
        fitted.score(X, {0: 1})


@pytest.mark.parametrize(("graph", "y"), [(PATH, {0: 0.0, 3: 1.0}), (NAMED_PATH, BY_NAME)])
def test_regression_and_search_on_a_graph(graph, y):
    numbers = [0.0, np.nan, np.nan, 1.0]
    fitted = gq.GraphRegressor("precomputed").fit(graph, y)
    expected = gq.GraphRegressor("precomputed").fit(graph.weights, numbers)
    np.testing.assert_array_equal(fitted.transduction_, expected.transduction_)
    np.testing.assert_array_equal(fitted.predict(graph), expected.predict(graph.weights))
    with pytest.warns(UnlabelledScoreWarning):
        assert fitted.score(graph, y) > 0
    search = gq.EvidenceSearch(
        gq.GraphClassifier("precomputed", **MODEL), {"laplacian": ["symmetric", "unnormalized"]}
    ).fit(graph, {name: int(value) for name, value in y.items()})
    assert search.best_estimator_.graph_ is not None
    assert search.predict(graph).tolist()[::3] == [0, 1]
    with pytest.warns(UnlabelledScoreWarning):
        assert search.score(graph, {name: int(value) for name, value in y.items()}) == 1


def test_a_graph_beside_another_graph_or_word_is_refused():
    with pytest.raises(InvalidInput, match=r"X: a graphuq graph beside graph=Graph\(4 nodes"):
        gq.GraphClassifier(PATH).fit(NAMED_PATH, [0, -1, -1, 1])
    for make in (
        gq.GraphClassifier(),
        gq.GraphRegressor(),
        gq.EvidenceSearch(None, {"n_neighbors": [3]}),
    ):
        with pytest.raises(InvalidInput, match=r"X: a graphuq graph beside graph='knn'; use gr"):
            make.fit(PATH, [0, -1, -1, 1])


def test_neighbours_of_a_pipeline():
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.08, rng=1)
    y = np.where(np.arange(200) < 20, moons.classes, -1)
    expected = gq.GraphClassifier(n_neighbors=9, **MODEL).fit(moons.features, y)
    pipeline = make_pipeline(
        KNeighborsTransformer(mode="distance", n_neighbors=9),
        gq.GraphClassifier(metric="precomputed", **MODEL),
    ).fit(moons.features, y)
    np.testing.assert_allclose(
        pipeline[-1].label_distributions_, expected.label_distributions_, atol=1e-6
    )


def test_a_graph_object_beside_another_word_is_refused_with_the_remedy():
    club = networkx.karate_club_graph()
    for make in gq.GraphClassifier(), gq.EvidenceSearch(None, {"n_neighbors": [3]}):
        with pytest.raises(InvalidInput, match=r"X: a NetworkX graph beside graph='knn'; use gr"):
            make.fit(club, [0, 1])


def test_search_on_a_graph_object():
    club = networkx.karate_club_graph()
    search = {"laplacian": ["symmetric", "unnormalized"]}
    y = {0: "Mr. Hi", 33: "Officer", 1: "Mr. Hi", 32: "Officer"}
    found = gq.EvidenceSearch(gq.GraphClassifier("precomputed", **MODEL), search).fit(club, y)
    graph = from_adjacency(club)
    same = gq.EvidenceSearch(gq.GraphClassifier(graph, **MODEL), search).fit(None, y)
    assert found.best_params_ == same.best_params_
    np.testing.assert_allclose(
        found.best_estimator_.label_distributions_, same.best_estimator_.label_distributions_
    )


PLACES = np.random.default_rng(0).normal(size=(40, 3))
APART = cdist(PLACES, PLACES)
ON_A_RING = shortest_path(np.roll(np.eye(30), 1, axis=1), directed=False)


@pytest.mark.parametrize(
    "distances",
    [APART, APART**2, cdist(PLACES, PLACES, "cityblock"), ON_A_RING, sparse.csr_array(APART)],
    ids=["distances", "squares", "city blocks", "steps", "sparse"],
)
def test_distances_given_as_weights_are_suspected(distances):
    """They would join the nodes that are least alike, and nothing said so."""
    with pytest.warns(GraphRepairWarning, match="keep the triangle inequality, as distances do"):
        gq.graphs.from_adjacency(distances)


@pytest.mark.parametrize(
    "weights",
    [
        np.exp(-(APART**2)),
        1 / (1 + 10 * APART),
        np.exp(PLACES @ PLACES.T),
        1.0 - np.eye(40),
        np.random.default_rng(1).uniform(0.01, 1, (40, 40)),
        np.where(APART < 1, APART, 0.0),
    ],
    ids=["Gaussian", "inverse", "products", "equal", "random", "not between all"],
)
def test_weights_between_all_nodes_are_not(weights):
    weights = np.where(np.eye(40, dtype=bool), 0.0, (weights + weights.T) / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GraphRepairWarning)
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        gq.graphs.from_adjacency(weights)


def test_names_that_differ_in_their_type_alone_are_refused():
    """One column of numbers and one of texts made two nodes of each, and no path between them."""
    words = r"nodes: the names 1 and '1', which are two nodes; write all names as texts"
    with pytest.raises(InvalidInput, match=words):
        gq.graphs.from_edges([1, 2, 3], ["2", "3", "1"])
    with pytest.raises(InvalidInput, match=words):
        gq.graphs.from_hyperedges([[1, 2], ["1", 3]])
    network = networkx.Graph([("a", 1), ("1", "b")])
    with pytest.raises(InvalidInput, match=words):
        gq.graphs.from_adjacency(network)
    assert gq.graphs.from_edges([1, "a"], ["a", "b"]).names.tolist() == [1, "a", "b"]
