"""Neighbours by every library agree with the distances of all pairs in double precision."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import graphuq as gq
from graphuq.errors import GraphuqWarning, InvalidInput
from graphuq.graphs import neighbors, neighbors_faiss, neighbors_jax
from graphuq.graphs.neighbors import nearest_neighbors

RNG = np.random.default_rng(0)


def true_distances(features, queries, metric, k):
    distances = cdist(queries, features, metric)
    if queries is features:
        np.fill_diagonal(distances, np.inf)
    return np.sort(distances, axis=1)[:, :k]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("n_rows", "width"), [(600, 12), (5000, 3), (5000, 12)])
def test_exact_neighbours(n_rows, width, metric, dtype):
    """Test far from the origin, where single precision loses half of its digits."""
    features = (RNG.normal(size=(n_rows, width)) + 30).astype(dtype)
    queries = (RNG.normal(size=(50, width)) + 30).astype(dtype)
    for asked in (features, queries):
        near = nearest_neighbors(features, 7, metric, None if asked is features else asked)
        assert near.recall == 1.0
        expected = true_distances(features.astype(float), asked.astype(float), metric, 7)
        if asked is features:
            assert not (near.indices == np.arange(n_rows)[:, None]).any()
            expected = true_distances(f := features.astype(float), f, metric, 7)
        if metric == "cosine" and n_rows > 4096:  # rows at nearly equal distances may swap
            assert np.abs(near.distances - expected).max() < 1e-6
        else:
            np.testing.assert_allclose(near.distances, expected, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_exact_neighbours_of_wide_rows_far_from_the_origin(metric):
    """Without a shift by their mean, faiss found wrong rows for 3,311 of 4,200 (Euclidean)."""
    features, queries = (RNG.normal(size=(n, 64)) + 300 for n in (4200, 40))
    for asked in (features, queries):
        near = nearest_neighbors(features, 7, metric, None if asked is features else asked)
        expected = true_distances(features, asked, metric, 7)
        np.testing.assert_allclose(near.distances, expected, rtol=1e-6)


def test_rows_that_occur_many_times_are_not_their_own_neighbours():
    features = np.repeat(RNG.normal(size=(600, 10)), 10, axis=0)
    for search in ("exact", "approximate"):
        near = nearest_neighbors(features, 5, "euclidean", search=search)
        assert not (near.indices == np.arange(6000)[:, None]).any()
        assert not near.distances.any()


@pytest.mark.slow
def test_recall_of_approximate_neighbours_is_reported():
    features = RNG.normal(size=(20_000, 12)).astype(np.float32)
    graph = gq.graphs.knn_graph(features, 10, search="approximate")
    near = nearest_neighbors(features, 10, "euclidean", search="approximate")
    truth = nearest_neighbors(features, 10, "euclidean", search="exact")
    shared = np.mean([np.isin(a, b).mean() for a, b in zip(truth[1], near[1], strict=True)])
    assert 0.985 < shared <= 1
    assert abs(near.recall - shared) < 0.01
    assert graph.settings["recall"] == round(near.recall, 4)
    again = nearest_neighbors(features, 10, "euclidean", search="approximate")
    np.testing.assert_array_equal(again.indices, near.indices)


def test_rows_alone_in_their_lists_have_neighbours(monkeypatch):
    """Test rows far from all others, whose lists hold fewer rows than the number of neighbours."""
    features = RNG.normal(size=(6000, 12))
    features[:40] += 1000 * RNG.normal(size=(40, 12))
    monkeypatch.setattr(neighbors_faiss, "FIRST_PROBES", 1)
    monkeypatch.setattr(neighbors_faiss, "MIN_RECALL", 0.3)
    near = nearest_neighbors(features, 9, "euclidean", search="approximate")
    assert near.indices.min() >= 0
    expected = true_distances(features, features.copy(), "euclidean", 10)[:40, 1:]
    assert (near.distances[:40] >= expected * (1 - 1e-6)).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("given", [False, True], ids=["rows", "queries"])
def test_exact_neighbours_without_faiss(monkeypatch, metric, given):
    features = RNG.normal(size=(5000, 12))
    queries = RNG.normal(size=(300, 12)) if given else None
    expected = nearest_neighbors(features, 7, metric, queries)
    monkeypatch.setattr(neighbors, "has_extra", lambda extra: False)
    monkeypatch.setattr(neighbors_faiss, "nearest", None)
    near = nearest_neighbors(features, 7, metric, queries)
    assert near.recall == 1.0
    np.testing.assert_allclose(near.distances, expected.distances, rtol=1e-6)


def test_a_long_search_without_faiss_is_announced(monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 4500)
    features = RNG.normal(size=(5000, 12))
    truth = nearest_neighbors(features, 7, "euclidean", search="exact")
    monkeypatch.setattr(neighbors, "has_extra", lambda extra: False)
    with pytest.warns(GraphuqWarning, match=r"all pairs of 5,000 rows .*graphuq\[neighbors\]'"):
        near = nearest_neighbors(features, 7, "euclidean")
    np.testing.assert_allclose(near.distances, truth.distances, rtol=1e-6)


def test_unknown_search():
    with pytest.raises(InvalidInput, match="'fast' is unknown; use one of auto, exact"):
        gq.graphs.knn_graph(RNG.normal(size=(20, 2)), 3, search="fast")


@pytest.mark.parametrize("kind", ["dense", "single", "sparse"])
def test_rows_of_the_graph_are_found_again(kind):
    features = RNG.integers(-1, 2, size=(500, 8)).astype(float)
    features[:, 0] = np.arange(500) // 2  # each row occurs twice
    other = features[:20] + 0.5
    stored = {
        "dense": features,
        "single": features.astype(np.float32),
        "sparse": sparse.csr_array(features),
    }[kind]
    space = gq.graphs.knn_graph(stored, 5).feature_space
    asked = np.vstack([features[::-1], other])
    found = space.find(sparse.csr_array(asked) if kind == "sparse" else asked)
    expected = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in features[::-1]] + [
        -1
    ] * 20
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_neighbours_by_matrix_products(monkeypatch, metric):
    """Run the accelerator's method on the CPU, with several blocks of rows and of queries."""
    monkeypatch.setattr(neighbors, "has_accelerator", lambda: True)
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 1)  # an accelerator has a larger limit
    monkeypatch.setattr(neighbors_jax, "ROWS", 1000)
    monkeypatch.setattr(neighbors_jax, "BLOCK_ELEMENTS", 1_500_000)
    features = RNG.normal(size=(4200, 12)) + 30
    phases = []
    near = nearest_neighbors(features, 7, metric, progress=lambda *seen: phases.append(seen[1:3]))
    assert phases == [(1500, 4200), (3000, 4200), (4200, 4200)]
    assert not (near.indices == np.arange(4200)[:, None]).any()
    assert near.recall == 1.0
    np.testing.assert_allclose(
        near.distances, true_distances(features, features, metric, 7), rtol=2e-4, atol=1e-6
    )
    asked = nearest_neighbors(features, 1001, metric, features[:5])  # more than a block of rows
    assert (asked.indices[:, 0] == np.arange(5)).all()
    np.testing.assert_allclose(
        asked.distances,
        true_distances(features, features[:5], metric, 1001),
        rtol=2e-4,
        atol=1e-6,
    )


def test_a_few_new_rows_train_no_index(monkeypatch):
    """Many nodes have an index of lists, which takes as long to train as 4,096 exact queries."""
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 4_200)
    monkeypatch.setattr(neighbors, "FEW_QUERIES", 20)
    calls = []

    def count(module, name):
        original = getattr(module, name)

        def counted(*given):
            calls.append(name)
            return original(*given)

        monkeypatch.setattr(module, name, counted)

    count(neighbors, "_center")
    count(neighbors_faiss, "_inverted_lists")
    features = np.random.default_rng(0).normal(size=(4_300, 9)) + 40.0
    space = gq.graphs.knn_graph(features, 5).feature_space
    assert calls == ["_center", "_inverted_lists"]
    rows = features[:20] + 0.01
    first, again = space.connect(rows), space.connect(rows[:3])
    assert calls[2:] == ["_center"]  # the nodes are prepared once
    expected = np.argsort(cdist(rows, features), axis=1)[:, :5]
    np.testing.assert_array_equal(np.sort(first.indices.reshape(20, 5)), np.sort(expected))
    np.testing.assert_array_equal(again.indices, first.indices[:15])
    np.testing.assert_array_equal(space.find(features[[7, 3]]), [7, 3])
    space.connect(features[:21] + 0.01)
    assert calls[3:] == ["_inverted_lists"]
