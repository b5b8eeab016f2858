"""What each part of an average explains, and the columns that the labels chose."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.results.summary import detail_lines

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 12, size=300)
X = np.column_stack([RNG.random((300, 4)), np.eye(12)[CODES], RNG.random((300, 3))])
KNOWN = np.arange(300) < 60


def text_of(result):
    return "\n".join(detail_lines(result))


def fit(classes):
    return gq.GraphClassifier().fit(X, np.where(KNOWN, classes, -1)).result_


def test_columns_of_a_category_are_listed_together():
    result = fit(CODES % 2)
    assert gq.results.few_columns(result).tolist() == list(range(4, 16))
    assert "few variables" in gq.results.block_weights(result)
    assert "columns 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 2 more of X" in text_of(result)


def test_a_single_column_is_named_in_the_summary():
    result = fit((X[:, 17] > 0.5).astype(int))
    assert gq.results.few_columns(result).tolist() == [17]
    assert "Few variables: column 17 of X, from 0." in text_of(result)


def test_answers_without_few_variables_have_no_columns():
    moons = gq.datasets.two_moons(100)
    y = np.where(np.arange(100) % 5, -1, moons.codes())
    graph = gq.graphs.from_adjacency(gq.graphs.knn_graph(moons.features).weights)
    result = gq.GraphClassifier(graph).fit(None, y).result_
    assert gq.results.few_columns(result).tolist() == []
    assert "Few variables" not in text_of(result)
