"""Neighbours by distances in the main principal components, beside singular vectors by NumPy."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import InvalidInput

RNG = np.random.default_rng(3)
MEANS = RNG.normal(size=(3, 150)) * (np.arange(150) < 20)
CLASSES = RNG.integers(0, 3, 240)
ROWS = 1.5 * MEANS[CLASSES] + RNG.normal(size=(240, 150))
LABELLED = np.concatenate([np.flatnonzero(k == CLASSES)[:3] for k in range(3)])
Y = np.where(np.isin(np.arange(240), LABELLED), CLASSES, -1)


def main_scores(rows, n, of=None):
    """Return the scores by NumPy's singular values; ``of`` are rows outside."""
    centre = rows.mean(axis=0)
    directions = np.linalg.svd(rows - centre, full_matrices=False)[2][:n]
    return ((rows if of is None else of) - centre) @ directions.T


WIDE = RNG.normal(size=(240, 10)) @ RNG.normal(size=(10, 1100)) + 0.01 * RNG.normal(
    size=(240, 1100)
)


@pytest.mark.parametrize("rows", [ROWS, WIDE])
def test_neighbours_are_those_of_the_scores(rows):
    """Beyond 1,000 features axes are approximate, and exact where they stand out."""
    graph = gq.graphs.knn_graph(rows, 7, n_components=10)
    expected = gq.graphs.knn_graph(main_scores(rows, 10), 7)
    assert abs(graph.weights - expected.weights).max() < 1e-6
    assert graph.settings == {**expected.settings, "n_components": 10}
    np.testing.assert_array_equal(graph.features, rows)


def test_all_components_have_the_distances_of_the_features():
    few = ROWS[:, :9]
    whole, given = gq.graphs.knn_graph(few, 7, n_components=9), gq.graphs.knn_graph(few, 7)
    assert abs(whole.weights - given.weights).max() < 1e-9


def test_the_default_graph_has_fifty_components_of_many_dense_features():
    def components(X, **options):
        graph = gq.GraphClassifier(inference="laplace", model="largest-evidence", **options)
        return graph.fit(X, Y).graph_.settings.get("n_components")

    assert components(ROWS) == 50
    assert components(ROWS[:, :100]) is None
    assert components(sparse.csr_array(np.where(ROWS > 1, ROWS, 0.0))) is None
    assert components(ROWS, metric="cosine") is None
    assert components(ROWS, weights=gq.graphs.GaussianWeights(np.full(150, 9.0))) is None


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_components": 0}, "n_components: 0; use 1"),
        ({"n_components": 151}, "n_components: 151; use at most 150"),
        ({"n_components": "many"}, "n_components"),
        ({"n_components": 5, "metric": "cosine"}, "metric 'cosine'"),
    ],
)
def test_other_numbers_are_refused(options, match):
    with pytest.raises(InvalidInput, match=match):
        gq.graphs.knn_graph(ROWS, 7, **options)
    with pytest.raises(InvalidInput, match="sparse"):
        gq.graphs.knn_graph(sparse.csr_array(ROWS), 7, n_components=5)


@pytest.mark.parametrize("rule", ["mean", "nearest", "combination"])
def test_new_rows_are_joined_by_the_same_distances(rule):
    known, more = ROWS[:200], ROWS[200:]
    space = gq.graphs.knn_graph(known, 7, n_components=10).feature_space
    of_points = gq.graphs.knn_graph(main_scores(known, 10), 7).feature_space
    expected = of_points.connect(main_scores(known, 10, more), rule)
    assert abs(space.connect(more, rule) - expected).max() < 1e-8
    np.testing.assert_array_equal(space.find(ROWS[198:202]), [198, 199, -1, -1])


def test_added_rows_keep_the_components():
    known = gq.graphs.knn_graph(ROWS[:200], 7, n_components=10)
    grown = gq.graphs.grown_graph(known, ROWS[200:])
    expected = gq.graphs.knn_graph(main_scores(ROWS[:200], 10, ROWS), 7)
    assert abs(grown.weights - expected.weights).max() < 1e-8
    np.testing.assert_array_equal(grown.features, ROWS)


def test_saved_estimators_join_new_rows_as_before(tmp_path):
    classifier = gq.GraphClassifier(inference="expectation-propagation").fit(ROWS[:200], Y[:200])
    classifier.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    assert again._feature_space.axes.directions.shape == (150, 50)
    np.testing.assert_allclose(
        again.predict_proba(ROWS[195:]), classifier.predict_proba(ROWS[195:]), atol=1e-9
    )


def test_a_search_scores_the_graph_that_the_classifier_makes():
    own = gq.GraphClassifier(model="largest-evidence", inference="expectation-propagation")
    search = gq.EvidenceSearch(own, {"n_neighbors": [7, 12]}).fit(ROWS, Y)
    assert search.best_estimator_.graph_.settings["n_components"] == 50
    expected = gq.EvidenceSearch(own, {"n_neighbors": [7, 12]}).fit(main_scores(ROWS, 50), Y)
    for found, of_scores in zip(search.results_, expected.results_, strict=True):
        assert found["score"] == pytest.approx(of_scores["score"], abs=1e-6)
