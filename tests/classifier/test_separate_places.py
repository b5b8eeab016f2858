"""Labels of whole squares that are left out, and the check of places far from labels."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.classifier.separate_places import PlacesLeftOut, check_places, leave_places_out
from graphuq.errors import InvalidInput

ROWS, COLUMNS = 16, 16
PLACES = np.argwhere(np.ones((ROWS, COLUMNS)))
TRUTH = (PLACES[:, 1] >= COLUMNS // 2).astype(int)
RNG = np.random.default_rng(0)
Y = np.full(len(TRUTH), -1)
for k in range(2):
    own = RNG.permutation(np.flatnonzero(k == TRUTH))[:14]
    Y[own] = k


def fitted(y=Y, truth=TRUTH, shift=1.5):
    spectra = shift * truth[:, None] * np.array([1.0, -1.0, 0.5]) + RNG_SPECTRA
    graph = gq.graphs.pixel_graph(spectra.T.reshape(3, ROWS, COLUMNS))
    return gq.GraphClassifier(graph, inference="expectation-propagation").fit(None, y)


RNG_SPECTRA = np.random.default_rng(1).normal(0, 0.7, (len(TRUTH), 3))


def test_labels_of_a_square_are_left_out_together():
    classifier = fitted()
    before = classifier.label_distributions_.copy()
    found = leave_places_out(classifier, PLACES, side=8, n_splits=2)
    np.testing.assert_array_equal(classifier.label_distributions_, before)
    alone = gq.results.leave_one_out(classifier.result_).of_class
    given = Y[classifier.result_.posterior.labelled]
    own = alone[np.arange(28), given]
    assert found.one_by_one[0] == pytest.approx((alone.argmax(axis=1) == given).mean())
    assert found.one_by_one[1] == pytest.approx(-np.log(np.maximum(own, 1e-3)).mean())
    assert found.log_score > found.one_by_one[1]
    assert len(classifier.result_.posterior.labels) == 28
    assert len(found.is_right) == 28
    # The same by fits of one's own, of the same folds.
    labelled = np.asarray(classifier.result_.posterior.labelled)
    corner = PLACES[labelled] - PLACES[labelled].min(axis=0)
    tops, rights, near = [], [], []
    for train, test in gq.PlaceKFold(corner, 8, 2).split(corner, Y[labelled]):
        y = Y.copy()
        y[labelled[test]] = -1
        own = fitted(y).label_distributions_[labelled[test]]
        tops.append(own.max(axis=1))
        rights.append(own.argmax(axis=1) == Y[labelled[test]])
        apart = corner[test][:, None] - corner[train][None]
        near.append(np.sqrt((apart**2).sum(axis=2)).min(axis=1))
    np.testing.assert_allclose(found.probability, np.concatenate(tops), atol=0.02)
    assert (found.is_right == np.concatenate(rights)).mean() > 0.95
    assert found.distance == pytest.approx(np.median(np.concatenate(near)))


def test_the_side_of_a_square_has_nine_of_ten_nodes_within():
    found = leave_places_out(fitted(), PLACES)
    labelled = PLACES[Y >= 0]
    apart = np.sqrt(((PLACES[:, None] - labelled) ** 2).sum(axis=2)).min(axis=1)
    assert found.side == pytest.approx(2 * np.quantile(apart, 0.9))


def outcome(probability, is_right, group, alone=np.nan):
    probability, one_by_one = np.asarray(probability, dtype=float), (alone, 0.1)
    is_right, group = np.asarray(is_right), np.asarray(group)
    return PlacesLeftOut(probability, is_right, 0.5, one_by_one, group, 7.0, 12.0)


def test_probabilities_that_are_too_high_are_amber():
    n = 200
    right = np.arange(n) < 0.6 * n
    sure = check_places(outcome(np.full(n, 0.9), right, np.arange(n)), "pixels")
    assert sure.level == "amber"
    assert sure.value == pytest.approx(0.3)
    for words in (
        "all labels of squares of 12 pixels left out",
        "60% of them are right",
        "mean probability is 90%",
        "median of 7 pixels",
        "Rely on places near",
    ):
        assert words in sure.sentence
    honest = check_places(outcome(np.full(n, 0.62), right, np.arange(n)), "pixels")
    assert honest.level == "green"
    cautious = check_places(outcome(np.full(n, 0.3), right, np.arange(n)), "pixels")
    assert cautious.level == "green"  # not too sure


def test_labels_that_confirm_each_other_are_amber():
    n = 200
    right = np.arange(n) < 0.6 * n
    near = check_places(outcome(np.full(n, 0.62), right, np.arange(n), alone=0.95), "pixels")
    assert near.level == "amber"
    assert near.value == pytest.approx(0.35)
    assert "Labels near each other confirm each other" in near.sentence
    assert "60% of them are right (95% if each is left out alone)" in near.sentence
    same = check_places(outcome(np.full(n, 0.62), right, np.arange(n), alone=0.7), "pixels")
    assert same.level == "green"


def test_chance_counts_squares_and_not_labels():
    """40 labels of four squares and classes are four chances, which are wrong at 0.9 by luck."""
    right = np.arange(40) >= 10
    apart = check_places(outcome(np.full(40, 0.95), right, np.arange(40)), "pixels")
    together = check_places(outcome(np.full(40, 0.95), right, np.arange(40) // 10), "pixels")
    assert apart.level == "amber"
    assert together.level == "green"
    assert "so few labels can have by chance" in together.sentence


def test_few_labels_tell_nothing():
    check = check_places(outcome(np.full(19, 0.9), np.ones(19, bool), np.arange(19)), "pixels")
    assert check.level == "amber"
    assert "Only 19 labels" in check.sentence


def test_what_cannot_be_left_out():
    classifier = fitted()
    with pytest.raises(InvalidInput, match=r"places: shape \(3, 2\) for 256 nodes"):
        leave_places_out(classifier, PLACES[:3])
    with pytest.raises(InvalidInput, match="all labels are in one square; reduce it"):
        leave_places_out(classifier, PLACES, side=100)
    with pytest.raises(InvalidInput, match="n_splits"):
        leave_places_out(classifier, PLACES, n_splits=1)
