"""Equally distant neighbours: chosen by both rows alone, whatever rounds or runs beside."""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

import graphuq as gq
from graphuq.graphs import neighbors, ties
from graphuq.graphs.neighbors import nearest_neighbors

COUNTS = np.random.default_rng(0).integers(0, 3, (400, 5)).astype(float)
VOTES = np.random.default_rng(1).integers(0, 2, (300, 12)).astype(float)


def mixed_by_integers(i, j):
    """The number of a pair, with Python's integers."""
    mask = 2**64 - 1
    a, b = i + 2, j + 2
    z = ((a * b + (a ^ b)) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def by_definition(rows, queries, k):
    """The sets of k nearest rows, by squares of integers and then by the number of the pair."""
    found = []
    for i, x in enumerate(rows if queries is None else queries):
        own = i if queries is None else -1
        order = sorted(
            (int(((x - y) ** 2).sum()), mixed_by_integers(own, j), j)
            for j, y in enumerate(rows)
            if j != own
        )
        found.append({j for *_, j in order[:k]})
    return found


def sets_of(found):
    assert (np.diff(found.distances, axis=1) >= 0).all()
    return [set(row) for row in found.indices.tolist()]


@pytest.mark.parametrize("queries", [None, VOTES[:40]])
@pytest.mark.parametrize("as_metric", ["dense", "sparse", "precomputed", "faiss"])
def test_neighbours_are_those_of_the_definition(as_metric, queries, monkeypatch):
    expected = by_definition(VOTES, queries, 7)
    rows, asked, metric = VOTES, queries, "euclidean"
    if as_metric == "sparse":
        rows = sparse.csr_array(rows)
        asked = None if queries is None else sparse.csr_array(queries)
    if as_metric == "precomputed":
        metric, asked = "precomputed", None
        rows = np.sqrt(((VOTES[:, None] - VOTES) ** 2).sum(axis=2))
        if queries is not None:
            pytest.skip("distances from new rows are given as a whole")
    if as_metric == "faiss":
        pytest.importorskip("faiss")
        monkeypatch.setattr(neighbors, "FEW_ROWS", 10)
    found = nearest_neighbors(rows, 7, metric, asked)
    assert sets_of(found) == expected


def test_a_tree_has_them_too():
    assert sets_of(nearest_neighbors(COUNTS, 7, "euclidean")) == by_definition(COUNTS, None, 7)


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 7.0])
def test_rounding_does_not_choose(scale):
    """Distances that are equal but for rounding are equal."""
    found = nearest_neighbors(VOTES * scale + 0.3, 7, "euclidean")
    assert sets_of(found) == by_definition(VOTES, None, 7)


def test_the_number_of_threads_does_not_choose():
    """The digits are integers from 0 to 16, and 23 rows have one more equal than places."""
    rows, graphs = gq.datasets.load_digits().features, []
    for n in (1, 2):
        with threadpool_limits(n):
            graphs.append(gq.graphs.knn_graph(rows).weights)
    assert abs(graphs[0] - graphs[1]).max() == 0


def test_a_longer_list_begins_with_the_shorter_one():
    """So added rows may extend lists, and lists may be cut."""
    long, short = (sets_of(nearest_neighbors(VOTES, k, "euclidean")) for k in (20, 7))
    assert all(few < many for few, many in zip(short, long, strict=True))
    _, grown = neighbors.add_rows(
        VOTES[:200],
        nearest_neighbors(VOTES[:200], 7, "euclidean").indices,
        VOTES[200:],
        "euclidean",
    )
    assert sets_of(grown) == by_definition(VOTES, None, 7)


def test_no_place_of_the_table_is_favoured():
    """Among equals, the mean place is the middle: within three standard errors."""
    rows = np.eye(200)
    found = nearest_neighbors(rows, 10, "euclidean").indices
    assert abs(found.mean() - 99.5) < 3 * 200 / np.sqrt(12 * found.size)
    counts = np.bincount(found.ravel(), minlength=200)
    assert counts.var() < 2 * counts.mean()  # 1 - 10/199 of it, were they drawn for each row


def test_too_many_equals_are_left_to_the_search(monkeypatch):
    monkeypatch.setattr(ties, "MAX_COMPARED", 10)
    found = nearest_neighbors(VOTES, 7, "euclidean")
    squares = ((VOTES[:, None] - VOTES) ** 2).sum(axis=2) + 99.0 * np.eye(300)
    np.testing.assert_allclose(found.distances, np.sqrt(np.sort(squares, axis=1)[:, :7]))
