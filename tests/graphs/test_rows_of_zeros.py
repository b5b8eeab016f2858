"""Rows of zeros have no cosine: they have no neighbours, and others are as without them."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning, FarRowsWarning

ROWS = np.random.default_rng(0).random((40, 6))
PLACES = np.array([0, 7, 41])
KEPT = np.setdiff1d(np.arange(43), PLACES)
WITH_ZEROS = np.zeros((43, 6))
WITH_ZEROS[KEPT] = ROWS

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")

MAKERS = {
    "knn": lambda X: gq.graphs.knn_graph(X, 5, metric="cosine"),
    "cosine weights": lambda X: gq.graphs.knn_graph(X, 5, weights="cosine"),
    "epsilon": lambda X: gq.graphs.epsilon_graph(X, 1.5, metric="cosine"),
    "complete": lambda X: gq.graphs.complete_graph(X, n_neighbors=5, metric="cosine"),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_of_zeros_have_no_neighbours_and_change_no_other_edge(make, kind):
    with pytest.warns(DisconnectedGraphWarning, match="3 isolated"):
        graph = make(kind(WITH_ZEROS))
    weights = sparse.csr_array(graph.weights).toarray()
    assert not weights[PLACES].any()
    without = sparse.csr_array(make(kind(ROWS)).weights).toarray()
    np.testing.assert_allclose(weights[np.ix_(KEPT, KEPT)], without, atol=1e-9)


@pytest.mark.parametrize("rule", ["mean", "nearest", "combination"])
def test_a_new_row_of_zeros_is_joined_to_no_node_and_no_row_to_a_node_of_zeros(rule):
    space = gq.graphs.knn_graph(WITH_ZEROS, 5, metric="cosine").feature_space
    weights = space.connect(np.vstack([np.zeros(6), ROWS[:2] + 0.01]), rule).toarray()
    assert not weights[0].any()
    assert not weights[:, PLACES].any()
    assert weights[1:].any(axis=1).all()


def test_a_text_without_words_has_the_probabilities_of_the_prior():
    y = np.full(43, -1)
    y[KEPT[::3]] = (ROWS[::3, 0] > 0.5).astype(int)
    classifier = gq.GraphClassifier(
        metric="cosine", model="largest-evidence", inference="expectation-propagation"
    )
    classifier.fit(WITH_ZEROS, y)
    assert not classifier.result_.has_evidence[PLACES].any()
    np.testing.assert_allclose(classifier.label_distributions_[PLACES], 0.5, atol=1e-6)
    classifier.fit(ROWS, y[KEPT])
    with pytest.warns(FarRowsWarning, match="row 0"):
        np.testing.assert_allclose(classifier.predict_proba(np.zeros((1, 6))), 0.5, atol=1e-6)
