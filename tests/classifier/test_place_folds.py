"""Folds of blocks of places."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphuq as gq
from graphuq.errors import InvalidInput, UnlabelledScoreWarning

PLACES = np.argwhere(np.ones((24, 24)))


def labels(share=0.2, seed=0):
    """Return classes of stripes, most of them unknown."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(PLACES)) < share, PLACES[:, 1] // 3 % 2, -1)


def test_each_labelled_row_is_tested_once_and_far_from_training_rows():
    y, folds = labels(), gq.PlaceKFold(PLACES, 6.0, n_splits=4)
    tested = []
    for train, test in folds.split(PLACES, y):
        assert (y[test] >= 0).all()
        squares = [{tuple(p) for p in PLACES[rows] // 6} for rows in (train, test)]
        assert not squares[0] & squares[1]
        tested.append(test)
    tested = np.concatenate(tested)
    np.testing.assert_array_equal(np.sort(tested), np.flatnonzero(y >= 0))


def test_squares_without_labels_stay_in_all_training_folds():
    y = np.where((PLACES < 12).all(axis=1), labels(1.0), -1)
    for train, _ in gq.PlaceKFold(PLACES, 6.0, n_splits=2).split(PLACES, y):
        assert np.isin(np.flatnonzero((PLACES >= 12).any(axis=1)), train).all()


def test_hide_keeps_all_rows():
    y = labels()
    for hidden, test in gq.PlaceKFold(PLACES, 6.0, random_state=2).hide(y):
        assert [value is None for value in hidden[test]] == [True] * len(test)
        rest = np.delete(np.arange(len(y)), test)
        np.testing.assert_array_equal(hidden[rest].astype(int), y[rest])


def test_neighbouring_copies_promise_more_than_separate_places():
    """Rows of a square are copies, and squares have random classes, so that nothing is learnt."""
    rng = np.random.default_rng(1)
    square = PLACES[:, 0] // 6 * 4 + PLACES[:, 1] // 6
    y = rng.permutation(np.arange(16) % 2)[square]
    X = rng.normal(size=(16, 3))[square] + 0.01 * rng.normal(size=(len(y), 3))
    mean = {
        name: cross_val_score(KNeighborsClassifier(1), X, y, cv=cv).mean()
        for name, cv in (("rows", gq.LabelledKFold(4)), ("places", gq.PlaceKFold(PLACES, 6, 4)))
    }
    assert mean["rows"] > 0.95
    assert mean["places"] < 0.8


def test_a_class_in_one_fold_is_named():
    y = np.where(labels(0.5) >= 0, 0, -1)
    y[:3] = 1
    with pytest.warns(UnlabelledScoreWarning, match=r"classes \['1'\] are in one fold"):
        next(gq.PlaceKFold(PLACES, 6).split(PLACES, y))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"places": np.ones(5)}, "places: shape"),
        ({"places": np.full((5, 2), np.nan)}, "places: NaN"),
        ({"block_size": 0}, "block_size: 0"),
        ({"n_splits": 1}, "n_splits: 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        gq.PlaceKFold(**{"places": PLACES, "block_size": 6.0} | arguments)


@pytest.mark.parametrize(
    ("y", "size", "words"),
    [(labels()[:5], 6, "y: 5 rows beside 576 places"), (labels(), 20, "n_splits: 5 folds for 4")],
)
def test_labels_that_do_not_fit_are_refused(y, size, words):
    with pytest.raises(InvalidInput, match=words):
        next(gq.PlaceKFold(PLACES, size).split(PLACES, y))
