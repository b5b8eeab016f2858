"""A given graph beside features of its nodes, and several graphs on the same nodes."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import GraphuqWarning, InvalidInput
from graphuq.report import write_report
from graphuq.results.average_parts import block_weights

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")

N = 120
RNG = np.random.default_rng(0)
TRUTH = np.repeat([0, 1], N // 2)
Y = np.where(np.arange(N) % 10 == 0, TRUTH, -1)
EP = "expectation-propagation"


def block_graph(truth, p_in, p_out, seed):
    """Return a stochastic block model."""
    rng = np.random.default_rng(seed)
    same = truth[:, None] == truth[None, :]
    upper = np.triu(rng.random((N, N)) < np.where(same, p_in, p_out), 1)
    return gq.graphs.from_adjacency(sparse.csr_array((upper | upper.T).astype(float)))


USEFUL = block_graph(TRUTH, 0.15, 0.02, 1)
USELESS = block_graph(TRUTH, 0.08, 0.08, 2)
SIGNAL = 2.5 * (2 * TRUTH[:, None] - 1) * np.array([1, 0, 0, 0, 0, 0]) + RNG.normal(size=(N, 6))
NOISE = RNG.normal(size=(N, 6))


def accuracy(classifier):
    free = Y < 0
    return float((classifier.transduction_ == TRUTH)[free].mean())


def share_on(classifier, word):
    weights = block_weights(classifier.result_)
    return sum(share for name, share in weights.items() if word in name)


def test_the_evidence_finds_what_is_useful():
    both = gq.GraphClassifier(USELESS, inference=EP).fit(SIGNAL, Y)
    assert accuracy(both) > accuracy(gq.GraphClassifier(USELESS, inference=EP).fit(None, Y)) + 0.2
    noise = gq.GraphClassifier(USEFUL, inference=EP).fit(NOISE, Y)
    alone = gq.GraphClassifier(USEFUL, inference=EP).fit(None, Y)
    assert accuracy(noise) > accuracy(alone) - 0.03
    assert share_on(both, "graph") < share_on(noise, "graph")


@pytest.fixture(scope="module")
def of_arrays():
    return gq.GraphClassifier(USEFUL, inference=EP).fit(SIGNAL, Y)


@pytest.mark.parametrize(
    "kind",
    [
        lambda graph: graph,
        lambda graph: graph.weights,
        lambda graph: sparse.coo_matrix(graph.weights),
        lambda graph: nx.from_scipy_sparse_array(graph.weights),
        lambda graph: {"graph": graph},
    ],
    ids=["Graph", "csr_array", "coo_matrix", "NetworkX", "dictionary"],
)
def test_every_kind_of_graph_takes_features(kind, of_arrays):
    expected = of_arrays
    for X in (SIGNAL, pd.DataFrame(SIGNAL).rename(columns=str)):
        found = gq.GraphClassifier(kind(USEFUL), inference=EP).fit(X, Y)
        np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_)


def test_two_graphs_have_their_names():
    graphs = {"noise": USELESS, "friends": USEFUL}
    fitted = gq.GraphClassifier(graphs, inference=EP).fit(None, Y)
    assert share_on(fitted, "friends") > 0.9
    assert accuracy(fitted) > 0.9
    weights = block_weights(fitted.result_)
    assert set(weights) <= {"noise", "friends", "noise + friends"}
    assert sum(weights.values()) == pytest.approx(1)
    assert "friends" in str(fitted.result_)
    listed = gq.GraphClassifier([USELESS, USEFUL], inference=EP).fit(None, Y)
    names = {"graph 1", "graph 2", "graph 1 + graph 2"}
    assert "graph 2" in set(block_weights(listed.result_)) <= names


def test_a_file_holds_what_prediction_and_new_labels_need(tmp_path):
    graphs = {"noise": USELESS, "friends": USEFUL}
    fitted = gq.GraphClassifier(graphs, inference=EP).fit(SIGNAL, Y)
    fitted.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.predict_proba(SIGNAL), fitted.predict_proba(SIGNAL))
    np.testing.assert_array_equal(again.predict(SIGNAL[5:9]), fitted.transduction_[5:9])
    assert block_weights(again.result_) == block_weights(fitted.result_)
    for one in (fitted, again):
        one.add_labels([1, N - 1], [0, 1])
    np.testing.assert_allclose(again.label_distributions_, fitted.label_distributions_)
    write_report(again.result_, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert all(name in text for name in block_weights(again.result_))


def test_rows_are_nodes_or_are_refused():
    X = SIGNAL.copy()
    X[3] = X[100]  # two nodes with one row of features
    fitted = gq.GraphClassifier(USEFUL, inference=EP).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict_proba(X), fitted.label_distributions_)
    np.testing.assert_array_equal(
        fitted.predict_proba(X[[7, 2]]), fitted.label_distributions_[[7, 2]]
    )
    with pytest.raises(InvalidInput, match=r"row \[1\] has the features of several nodes"):
        fitted.predict(X[[7, 3]])
    with pytest.raises(InvalidInput, match=r"row \[0\] is no node of the graph.*with_features"):
        fitted.predict(X[:2] + 1)
    with pytest.raises(InvalidInput, match="no rows can be added"):
        fitted.add_rows(X[:2] + 1)


def test_words_speak_for_a_node_without_edges_and_nothing_for_one_without_either():
    graph = sparse.lil_array(USEFUL.weights)
    graph[[1, 2]] = 0
    graph[:, [1, 2]] = 0
    words = (
        RNG.random((N, 40)) < np.where(TRUTH[:, None] == (np.arange(40) < 20), 0.4, 0.05)
    ) * 1.0
    words[2] = 0
    fitted = gq.GraphClassifier(sparse.csr_array(graph), inference=EP)
    fitted.fit(sparse.csr_array(words), Y)
    assert fitted.result_.has_evidence[1]
    assert not fitted.result_.has_evidence[2]
    assert accuracy(fitted) > 0.95
    far = np.abs(fitted.label_distributions_ - 0.5).max(axis=1)
    assert far[2] < 0.1 < 0.25 < far[1]


@pytest.mark.parametrize(
    ("graph", "X", "words"),
    [
        (USEFUL, SIGNAL[:-1], "119 rows, and the graph has 120 nodes"),
        (USEFUL, USEFUL.weights, "X: the weights of Graph"),
        (USEFUL, np.full((N, 2), np.nan), "NaN"),
        ([USEFUL, gq.graphs.ring_graph(N - 1)], None, "119 nodes of 'graph 2' beside 120"),
        ({1: USEFUL}, None, "the name 1; name each graph by a text"),
        ([USEFUL, "knn"], None, "graph: a list"),
        ([], None, "graph: a list"),
    ],
)
def test_what_does_not_fit_is_refused(graph, X, words):
    with pytest.raises((InvalidInput, ValueError), match=words):
        gq.GraphClassifier(graph, inference=EP).fit(X, Y)


def test_what_leaves_features_out_says_so():
    with pytest.warns(GraphuqWarning, match="uses the first graph alone, without features"):
        gq.GraphClassifier(USEFUL, model="fixed", inference=EP).fit(SIGNAL, Y)
    with pytest.raises(InvalidInput, match=r"features beside Graph.*GraphRegressor does not use"):
        gq.GraphRegressor(USEFUL).fit(SIGNAL, TRUTH.astype(float))
    with pytest.raises(InvalidInput, match="tail_eigenvalue: True beside features"):
        gq.GraphClassifier(USEFUL, n_eigenpairs=30, tail_eigenvalue=True).fit(SIGNAL, Y)
    search = gq.EvidenceSearch(gq.GraphClassifier(USEFUL), {"laplacian": ["symmetric"]})
    with pytest.raises(InvalidInput, match=r"features beside Graph.*of which the search"):
        search.fit(SIGNAL, Y)


def test_names_of_nodes_agree():
    first = gq.graphs.from_edges(["a", "b"], ["b", "c"], nodes=["a", "b", "c"])
    moved = gq.graphs.node_graph([first, gq.graphs.from_edges(["a", "c"], ["c", "b"])])
    assert moved.others["graph 2"].weights.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    with pytest.raises(InvalidInput, match="the nodes of 'graph 2' do not have the names"):
        gq.graphs.node_graph([first, gq.graphs.from_edges(["a", "d"], ["d", "b"])])
    second = gq.graphs.from_edges(["a"], ["c"], nodes=["a", "b", "c"])
    assert gq.graphs.node_graph([first, second]).names.tolist() == ["a", "b", "c"]
