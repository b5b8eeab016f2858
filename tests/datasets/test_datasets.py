"""Data sets as scikit-learn users expect them: keys, attributes and a short representation."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

import graphuq as gq
from graphuq.errors import InvalidInput


def test_attributes_and_keys_are_those_of_a_bunch():
    bunch, digits = load_digits(), gq.datasets.load_digits()
    for name in ("data", "target", "target_names"):
        np.testing.assert_array_equal(digits[name], bunch[name])
        np.testing.assert_array_equal(getattr(digits, name), bunch[name])
    assert set(digits) >= {"data", "target", "target_names", "feature_names", "DESCR"}
    assert len(digits.feature_names) == digits.data.shape[1]
    assert dict(digits).keys() == digits.keys()
    assert "data" in digits
    assert "frame" not in digits
    with pytest.raises(KeyError):
        digits["frame"]


def test_target_codes_index_the_names():
    pair = gq.datasets.load_digits((4, 9))
    assert pair.data is pair.features
    assert pair.target.tolist() == pair.codes().tolist()
    np.testing.assert_array_equal(pair.target_names[pair.target], pair.classes)


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        (gq.datasets.two_moons(50, 3), "Dataset('two moons', shape (50, 3), classes 0, 1)"),
        (
            gq.datasets.load_digits((4, 9)).pair(9, 4, n_each=5),
            "Dataset('digits (4, 9): 9 and 4', shape (10, 64), classes 4, 9)",
        ),
        (gq.datasets.load_digits(), "Dataset('digits', shape (1797, 64), 10 classes)"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_the_representation_is_short(dataset, text):
    assert repr(dataset) == text


def test_the_description_names_size_content_and_source():
    text = gq.datasets.two_moons(50, 3).DESCR
    for words in ("two moons: 50 rows, 3 features", "Two half circles", "Source: made by graphuq"):
        assert words in text


def test_data_sets_are_immutable_values():
    moons = gq.datasets.two_moons(20, 2)
    with pytest.raises(AttributeError):
        moons.data = np.zeros(3)
    assert moons == moons
    assert moons != gq.datasets.two_moons(20, 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(moons)).data, moons.data)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gq.datasets.load_digits(4), "digits: 4; use a tuple of digits"),
        (lambda: gq.datasets.load_digits(("4", "9")), "digits: .* from 0 to 9"),
        (lambda: gq.datasets.two_moons(np.zeros((3, 2))), r"n_nodes: ndarray of shape \(3, 2\)"),
        (lambda: gq.datasets.two_moons(10.5), "n_nodes: 10.5 is not an integer"),
        (lambda: gq.datasets.two_moons(1), "n_nodes: 1; use 2 or more"),
        (lambda: gq.datasets.two_moons(noise_std=None), "noise_std: None is not a number"),
        (lambda: gq.datasets.load_digits((4, 9)).of_classes([4, 11]), "classes: .* class 11"),
        (
            lambda: gq.datasets.load_digits((4, 9)).signs("4"),
            r"positive: .*'4'; use one of \[4, 9\]",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_wrong_arguments_are_refused_by_name(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()
