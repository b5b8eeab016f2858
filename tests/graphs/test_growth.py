"""Graphs to which rows are added equal graphs that are made of all rows."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import InvalidInput

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(330, 6))


def assert_equal_graphs(grown, whole):
    assert abs(grown.weights - whole.weights).max() < 1e-12
    np.testing.assert_allclose(grown.degrees, whole.degrees)
    np.testing.assert_array_equal(grown.feature_space.neighbors, whole.feature_space.neighbors)
    np.testing.assert_allclose(
        grown.feature_space.local_scales, whole.feature_space.local_scales, rtol=1e-12
    )
    assert grown.settings == whole.settings


@pytest.mark.parametrize("n_more", [1, 30, 200])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": "gaussian", "scale": 1.5, "symmetrize": "average"},
        {"weights": gq.graphs.SelfTuning(4.0, metric="cosine")},
        {"weights": "gaussian", "scale": [1.0, 2.0, 3.0, 1.0, 1.0, 0.5]},
    ],
)
def test_grown_graph_equals_the_graph_of_all_rows(options, n_more):
    first = gq.graphs.knn_graph(ROWS[:-n_more], 7, **options)
    assert_equal_graphs(
        gq.graphs.grown_graph(first, ROWS[-n_more:]), gq.graphs.knn_graph(ROWS, 7, **options)
    )


def test_many_rows_in_single_precision():
    rows = RNG.normal(size=(5000, 10)).astype(np.float32)
    first = gq.graphs.knn_graph(rows[:4500], 5)
    again = gq.graphs.grown_graph(gq.graphs.grown_graph(first, rows[4500:4510]), rows[4510:])
    assert again.feature_space.features.dtype == np.float32
    assert_equal_graphs(again, gq.graphs.knn_graph(rows, 5))


def test_sparse_rows():
    rows = sparse.csr_array(np.maximum(ROWS + 1, 0))
    first = gq.graphs.knn_graph(rows[:300], 5, metric="cosine")
    assert_equal_graphs(
        gq.graphs.grown_graph(first, rows[300:]), gq.graphs.knn_graph(rows, 5, metric="cosine")
    )


def test_rows_that_cannot_be_added_are_refused():
    first = gq.graphs.knn_graph(ROWS, 5)
    with pytest.raises(InvalidInput, match="4 features"):
        gq.graphs.grown_graph(first, ROWS[:3, :4])
    with pytest.raises(InvalidInput, match="NaN"):
        gq.graphs.grown_graph(first, np.full((1, 6), np.nan))
    with pytest.raises(InvalidInput, match="complete"):
        gq.graphs.grown_graph(gq.graphs.complete_graph(ROWS[:50]), ROWS[:3])
