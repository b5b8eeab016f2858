"""Graphs of pixels against weights computed pixel by pixel."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.graphs.pixels import (
    CONTRAST,
    N_DIRECTIONS,
    N_PLACES,
    N_SPECTRA,
    NOISE_FLOOR,
    SPECTRAL_SHARE,
    PixelGraph,
    Pixels,
)


def scene(shape=(3, 9, 8), seed=0):
    """Return two fields that differ in their spectra."""
    values = np.random.default_rng(seed).normal(size=shape)
    values[:, :, shape[2] // 2 :] += 3.0
    return values


def holes(shape=(9, 8)):
    """Return a mask without a corner and two more pixels."""
    mask = np.ones(shape, bool)
    mask[:2, :3] = mask[4, 4] = mask[8, 7] = False
    return mask


def means_by_hand(values, mask):
    found = []
    for row, column in np.argwhere(mask):
        window = slice(max(0, row - 1), row + 2), slice(max(0, column - 1), column + 2)
        found.append(values[:, *window][:, mask[window]].mean(axis=1))
    return np.array(found)


def test_means_are_those_of_the_window_without_pixels_that_have_no_data():
    values, mask = scene(), holes()
    pixels = Pixels.of(np.where(mask, values, np.nan), mask, mask)
    np.testing.assert_allclose(pixels.means, means_by_hand(values, mask), rtol=1e-12)
    np.testing.assert_array_equal(pixels.places, np.argwhere(mask))
    np.testing.assert_array_equal(pixels.spectra, values[:, mask].T)


def joint_by_hand(values, mask):
    """Return dense weights of all pairs, and the parts of places and spectra."""
    places, spectra = np.argwhere(mask), values[:, mask].T
    spectra = spectra / spectra.std(axis=0)
    apart = cdist(places, places)
    np.fill_diagonal(apart, np.inf)
    order = np.argsort(apart, axis=1, kind="stable")[:, :N_PLACES]
    near = np.zeros(apart.shape, bool)
    np.put_along_axis(near, order, True, axis=1)
    squares = cdist(spectra, spectra, "sqeuclidean")
    middle = np.median(squares[near])
    in_place = np.where(near | near.T, np.exp(-squares / (CONTRAST * middle)), 0.0)

    means = means_by_hand(values, mask) / values[:, mask].std(axis=1)
    noise = spectra - means
    quiet = (noise**2).sum(axis=1) <= np.median((noise**2).sum(axis=1))
    of_noise = noise[quiet].T @ noise[quiet] / quiet.sum() + NOISE_FLOOR * np.eye(len(values))
    whiten = np.linalg.inv(np.linalg.cholesky(of_noise)).T
    scores = (means - means.mean(axis=0)) @ whiten
    _, vectors = np.linalg.eigh(np.cov(scores.T, bias=True))
    scores = scores @ vectors[:, ::-1][:, :N_DIRECTIONS]
    in_spectra = gq.graphs.knn_graph(scores, N_SPECTRA).weights.toarray()
    parts = [part / part.sum(axis=1).mean() for part in (in_place, in_spectra)]
    return parts[0] + SPECTRAL_SHARE * parts[1], *parts


@pytest.fixture(scope="module")
def untied():
    """Return pixels of a random place, so that no two neighbours are equally far."""
    rng = np.random.default_rng(3)
    values, mask = scene((3, 30, 30), 1), rng.random((30, 30)) < 0.1
    return values, mask


def test_edges_are_those_of_places_and_of_spectra(untied):
    """Ties, as of two neighbours whose windows are the same, may be broken either way."""
    values, mask = untied
    pixels = Pixels.of(values, mask, mask)
    graph = PixelGraph(pixels).graph
    joint, places, spectra = joint_by_hand(values, mask)
    for found, expected in (
        (graph, joint),
        (graph.others["places"], places),
        (graph.others["spectra"], spectra),
    ):
        differ = abs(found.weights.toarray() - expected) > 0.05 * expected.max()
        assert differ.mean() < 0.01
    assert graph.degrees.mean() == pytest.approx(1 + SPECTRAL_SHARE)


def test_a_full_grid_has_eight_neighbours():
    values = scene((2, 6, 7))
    graph = gq.graphs.pixel_graph(values)
    weights = graph.others["places"].weights.toarray()
    places = np.argwhere(np.ones((6, 7)))
    inside = ((places > 0) & (places < [5, 6])).all(axis=1)
    near = cdist(places, places, "chebyshev") == 1
    assert (weights[inside][:, inside] > 0)[near[inside][:, inside]].all()
    assert ((weights > 0).sum(axis=1)[inside] >= 8).all()
    assert (weights == weights.T).all()


def test_neighbours_of_other_spectra_have_a_small_weight():
    weights = gq.graphs.pixel_graph(scene((3, 9, 8))).others["places"].weights.toarray()
    field = np.argwhere(np.ones((9, 8)))[:, 1] >= 4
    across = weights[field][:, ~field]
    within = weights[field][:, field]
    assert across[across > 0].mean() < 0.25 * within[within > 0].mean()


def test_other_pixels_are_joined_as_their_neighbours_are(untied):
    values, mask = untied
    others = ~mask & (np.random.default_rng(4).random(mask.shape) < 0.05)
    nodes, new = Pixels.of(values, mask, mask), Pixels.of(values, others, mask | others)
    pixel_graph = PixelGraph(nodes)
    weights = pixel_graph.connect(new).toarray()
    for m in (0, 7):
        spectra = nodes.spectra / nodes.spectra.std(axis=0)
        own = new.spectra[m] / nodes.spectra.std(axis=0)
        near = np.argsort(np.linalg.norm(nodes.places - new.places[m], axis=1), kind="stable")
        likeness = np.exp(-((own - spectra) ** 2).sum(axis=1) / (CONTRAST * pixel_graph._contrast))
        clear = near[: N_PLACES - 2]  # the last ones may be tied
        in_place = weights[m, clear] * pixel_graph._mean_degrees[0]
        apart = pixel_graph._in_noise(new.means[[m]]) - pixel_graph._in_noise(nodes.means)
        distances = np.linalg.norm(apart, axis=1)
        closest = np.argsort(distances)
        only_place = distances[clear] > distances[closest[N_SPECTRA - 1]] + 1e-9
        assert only_place.sum() >= 2
        np.testing.assert_allclose(in_place[only_place], likeness[clear][only_place], rtol=1e-9)
        assert (weights[m, closest[: N_SPECTRA - 2]] > 0).all()
        assert np.count_nonzero(weights[m]) <= N_PLACES + N_SPECTRA


def test_a_node_is_joined_to_itself_most():
    values = scene()
    pixels = Pixels.of(values, np.ones((9, 8), bool), np.ones((9, 8), bool))
    weights = PixelGraph(pixels).connect(pixels).toarray()
    assert (weights.argmax(axis=1) == np.arange(72)).mean() > 0.95


def test_constant_bands_and_tiny_scenes_are_no_reason_to_stop():
    values = scene((4, 2, 3))
    values[1] = 5.0
    assert gq.graphs.pixel_graph(values).n_nodes == 6
    assert gq.graphs.pixel_graph(np.ones((2, 4, 4))).n_nodes == 16


@pytest.mark.parametrize(
    ("values", "mask", "words"),
    [
        (np.ones((4, 4)), None, "values: shape"),
        (np.ones((1, 4, 4), complex), None, "values: .* type complex"),
        (np.ones((1, 4, 4)), np.ones((4, 5)), "mask: shape"),
        (np.full((1, 4, 4), np.nan), None, "no pixel has data"),
        (np.ones((1, 1, 1)), None, "1 pixel"),
        (np.where(np.eye(4), np.nan, 1.0)[None], np.ones((4, 4)), "values: NaN or infinite"),
    ],
)
def test_bad_input_is_refused_in_words(values, mask, words):
    with pytest.raises(InvalidInput, match=words):
        gq.graphs.pixel_graph(values, mask)
