"""Graph objects of other libraries whose nodes have features, and the order of their nodes."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graph_stand_ins import Tensor, dgl, geometric
from graphuq.errors import GraphuqWarning, InvalidInput

N = 40
RNG = np.random.default_rng(0)
TRUTH = np.repeat([0, 1], N // 2)
Y = np.where(np.arange(N) % 5 == 0, TRUTH, -1)
X = 2.0 * TRUTH[:, None] + RNG.normal(size=(N, 3))
SAME = TRUTH[:, None] == TRUTH
UPPER = np.triu(RNG.random((N, N)) < np.where(SAME, 0.3, 0.05), 1)
A = (UPPER | UPPER.T).astype(float)
EDGES = np.argwhere(UPPER)
BOTH = np.vstack([EDGES, EDGES[:, ::-1]]).T
NAMES = [f"n{k}" for k in range(N)]
SHUFFLED = RNG.permutation(N)
ONE_MODEL = {"model": "fixed", "inference": "laplace"}


def fit(graph, X, y, **settings):
    return gq.GraphClassifier(graph, inference="expectation-propagation", **settings).fit(X, y)


A_GRAPH = gq.graphs.from_adjacency(sparse.csr_array(A))
EXPECTED = fit(A_GRAPH, X, Y).label_distributions_


def network(order, names):
    """Return the graph in NetworkX, with its nodes in some order."""
    graph = nx.Graph()
    graph.add_nodes_from(names[k] for k in order)
    graph.add_edges_from((names[i], names[j]) for i, j in EDGES)
    return graph


def in_igraph():
    igraph = pytest.importorskip("igraph", reason="pip install igraph, to test its graphs")
    return igraph.Graph(n=N, edges=EDGES.tolist())


def annotated(names=None, **more):
    index = pd.Index(NAMES if names is None else names, dtype=object)
    parts = {"obsm": {}, "uns": {}, "X": None} | more
    return SimpleNamespace(obs_names=index, obsp={"connectivities": sparse.csr_matrix(A)}, **parts)


KINDS = {
    "SciPy": lambda: sparse.csr_array(A),
    "NetworkX": lambda: network(range(N), list(range(N))),
    "named NetworkX": lambda: network(range(N), NAMES),
    "igraph": in_igraph,
    "PyTorch Geometric": lambda: geometric(*BOTH, N),
    "DGL": lambda: dgl(*BOTH, N, {}),
    "AnnData": annotated,
    "AnnData, obsp": lambda: annotated().obsp["connectivities"],
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_every_kind_of_graph_takes_features_of_its_nodes(make):
    graph = make()
    found = fit(graph, X, Y)
    assert found.n_features_in_ == 3
    np.testing.assert_array_equal(found.graph_.weights.toarray(), A)
    np.testing.assert_allclose(found.label_distributions_, EXPECTED)
    alone = fit(graph, None, Y)
    assert abs(alone.label_distributions_ - EXPECTED).max() > 0.01


@pytest.mark.filterwarnings("ignore:graph. nodes of:graphuq.errors.GraphuqWarning")
def test_real_objects_of_anndata():
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(X, obs=pd.DataFrame(index=NAMES), obsp={"connectivities": A})
    found = fit(adata, adata.to_df(), Y)
    np.testing.assert_allclose(found.label_distributions_, EXPECTED)
    assert found.graph_.names.tolist() == NAMES
    both = fit(gq.graphs.node_graph(adata, "X"), None, Y)
    np.testing.assert_allclose(both.label_distributions_, EXPECTED)
    joined = gq.GraphClassifier("precomputed", **ONE_MODEL).fit(adata, Y)
    np.testing.assert_array_equal(joined.graph_.weights.toarray(), A)


@pytest.mark.parametrize("names", [NAMES, list(range(N))], ids=["names", "numbers"])
def test_nodes_take_the_order_of_the_rows_that_have_their_names(names):
    graph = network(SHUFFLED, names)
    table = pd.DataFrame(X, index=names).rename(columns=str)
    series = pd.Series(Y, index=names)
    for features, y in ((table, Y), (table, series), (X, series), (None, series)):
        found = (
            fit(graph, features, y, model="fixed") if features is None else fit(graph, features, y)
        )
        np.testing.assert_array_equal(found.graph_.weights.toarray(), A)
        assert list(found.graph_.names) == names
    known = {names[k]: int(Y[k]) for k in np.flatnonzero(Y >= 0)}
    found = fit(graph, table, known)
    np.testing.assert_array_equal(found.graph_.weights.toarray(), A)
    assert (found.transduction_[Y >= 0] == Y[Y >= 0]).all()
    # Without names of rows, labels by name keep the order of the graph.
    found = gq.GraphClassifier(graph, **ONE_MODEL).fit(None, known)
    assert list(found.graph_.names) == [names[k] for k in SHUFFLED]
    assert (found.transduction_[Y[SHUFFLED] >= 0] == Y[SHUFFLED][Y[SHUFFLED] >= 0]).all()


def test_numbers_in_another_order_are_no_places():
    graph = network(SHUFFLED, list(range(N)))
    model = gq.GraphClassifier(graph, **ONE_MODEL)
    for features, y, argument in ((X, Y, "X"), (None, Y, "y"), (X, {0: 0, 39: 1}, "X")):
        with pytest.raises(InvalidInput, match=f"{argument}: rows without names, beside a graph"):
            model.fit(features, y)
    with pytest.raises(InvalidInput, match="y: rows without names"):
        gq.GraphClassifier("precomputed", **ONE_MODEL).fit(graph, Y)
    with pytest.raises(InvalidInput, match=r"another order; give y\.loc"):
        gq.GraphClassifier("precomputed", **ONE_MODEL).fit(graph, pd.Series(Y))
    with pytest.raises(InvalidInput, match="y: rows without names"):
        gq.GraphRegressor(graph).fit(None, Y * 1.0)
    found = gq.GraphRegressor(graph).fit(None, pd.Series(Y * 1.0))
    np.testing.assert_array_equal(found.graph_.weights.toarray(), A)


def test_names_that_disagree_are_refused():
    graph = network(range(N), NAMES)
    other = [*NAMES[:-1], "n99"]
    for features, y, argument in (
        (pd.DataFrame(X, index=other).rename(columns=str), Y, "X"),
        (None, pd.Series(Y, index=other), "y"),
    ):
        with pytest.raises(InvalidInput, match=f"{argument}: its rows .* 'n99' is no node"):
            gq.GraphClassifier(graph, **ONE_MODEL).fit(features, y)
    twice = pd.Series(Y, index=[*NAMES[:-1], "n0"])
    with pytest.raises(InvalidInput, match="names repeat"):
        gq.GraphClassifier(graph, **ONE_MODEL).fit(None, twice)
    # Rows that are only numbered, or nodes that are, have no names.
    numbered = pd.DataFrame(X).rename(columns=str)
    for one, table in ((graph, numbered), (sparse.csr_array(A), numbered.set_axis(other))):
        found = fit(one, table, Y)
        np.testing.assert_allclose(found.label_distributions_, EXPECTED)


def test_several_graphs_are_matched_by_name():
    first, second = network(range(N), NAMES), network(SHUFFLED, NAMES)
    made = gq.graphs.node_graph({"one": first, "two": second})
    np.testing.assert_array_equal(made.others["two"].weights.toarray(), A)
    assert made.names.tolist() == NAMES
    numbers = gq.graphs.node_graph([network(range(N), range(N)), network(SHUFFLED, range(N))])
    np.testing.assert_array_equal(numbers.others["graph 2"].weights.toarray(), A)
    with pytest.raises(InvalidInput, match=r"the nodes of 'graph 2' do not have .*'n99' is no"):
        gq.graphs.node_graph([network(range(N), [*NAMES[:-1], "n99"]), first])


ATTRIBUTES = {
    "PyTorch Geometric": (lambda: geometric(*BOTH, N, x=Tensor(X), y=Tensor(Y)), "x"),
    "DGL": (
        lambda: dgl(*BOTH, N, {}, {"label": Tensor(Y), "feat": Tensor(X)}),
        "feat",
    ),
    "NetworkX": (lambda: with_attributes(network(range(N), NAMES)), "x"),
    "igraph": (lambda: with_attributes(in_igraph()), "x"),
    "AnnData": (lambda: annotated(obsm={"X_pca": X}), "X_pca"),
    "AnnData, X": (lambda: annotated(X=sparse.csr_matrix(X)), "X"),
}


def with_attributes(graph):
    words = ["red"] * N
    if hasattr(graph, "vs"):
        graph.vs["x"], graph.vs["colour"] = X.tolist(), words
        return graph
    nx.set_node_attributes(graph, dict(zip(NAMES, X, strict=True)), "x")
    nx.set_node_attributes(graph, dict(zip(NAMES, words, strict=True)), "colour")
    return graph


@pytest.mark.parametrize(("make", "name"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_features_on_the_object_are_used_or_a_message_says_that_they_are_not(make, name):
    graph = make()
    with pytest.warns(GraphuqWarning, match=f"have '{name}', not used: .*node_graph.graph, "):
        gq.GraphClassifier(graph, **ONE_MODEL).fit(None, Y)
    with pytest.warns(GraphuqWarning, match=f"have '{name}', not used"):
        gq.GraphClassifier("precomputed", **ONE_MODEL).fit(graph, Y)
    np.testing.assert_array_equal(gq.graphs.node_graph(graph, name).features, X)
    gq.GraphClassifier(gq.graphs.from_adjacency(graph), **ONE_MODEL).fit(None, Y)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("make", "name"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_fits_with_features_on_the_object(make, name):
    graph = make()
    with pytest.warns(GraphuqWarning, match=f"have '{name}', not used"):
        gq.GraphClassifier([graph, A_GRAPH], **ONE_MODEL | {"model": "average"}).fit(None, Y)
    used = fit(gq.graphs.node_graph(graph, name), None, Y)
    np.testing.assert_allclose(used.label_distributions_, EXPECTED)
    fit(graph, X, Y)  # X is in their place, without a message


def test_attributes_that_are_no_features():
    graph = with_attributes(network(range(N), NAMES))
    graph.nodes["n3"]["age"] = 3
    with pytest.raises(InvalidInput, match=r"'age' is not a number.*use one of \['x'\]"):
        gq.graphs.node_graph(graph, "age")
    with pytest.raises(InvalidInput, match="'colour' is not a number"):
        gq.graphs.node_graph(graph, ["x", "colour"])
    with pytest.raises(InvalidInput, match="which has no attributes of nodes"):
        gq.graphs.node_graph(A_GRAPH, "x")
    nx.set_node_attributes(graph, dict(zip(NAMES, range(N), strict=True)), "age")
    made = gq.graphs.node_graph(graph, ["age", "x"])
    np.testing.assert_array_equal(made.features, np.column_stack([np.arange(N), X]))


def test_an_object_without_neighbours_says_how_to_find_them():
    empty = annotated()
    empty.obsp = {}
    words = r"no graph 'connectivities' in adata\.obsp; run scan.*use_rep='X'"
    with pytest.raises(InvalidInput, match=words):
        gq.GraphClassifier(empty, **ONE_MODEL).fit(X, Y)
