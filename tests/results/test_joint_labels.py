"""Labels drawn together: their frequencies are the reported probabilities."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.results.joint_labels import draws_that_lead, joint_labels
from known_fields import nodes_with_one_field


@pytest.fixture(scope="module")
def result():
    """Ten digits: draws of Gaussians alone would have other probabilities than those reported."""
    digits = gq.datasets.load_digits()
    y = np.full(400, -1)
    y[:40] = digits.target[:40]
    classifier = gq.GraphClassifier(inference="expectation-propagation", random_state=0)
    return classifier.fit(digits.data[:400], y).result_


def test_frequencies_are_the_probabilities_but_for_rounding(result):
    nodes, n_draws = np.arange(40, 400), 200
    labels = joint_labels(result, nodes, n_draws, np.random.default_rng(0))
    shares = (labels[:, :, None] == np.arange(10)).mean(axis=1)
    # Each of ten classes in turn takes a share of what is left, rounded to a whole number.
    assert abs(shares - result.probabilities[nodes]).max() < 10 / n_draws
    mean_error = (shares - result.probabilities[nodes]).mean(axis=0)
    assert abs(mean_error).max() < 4 / n_draws / np.sqrt(len(nodes))  # rounding has no bias


def test_given_probabilities_take_the_place_of_those_of_the_result(result):
    given = np.tile([0.25, 0.75, *[0.0] * 8], (3, 1))
    labels = joint_labels(result, np.arange(100, 103), 400, np.random.default_rng(0), given)
    assert ((labels == 0).sum(axis=1) == 100).all()
    assert ((labels == 1).sum(axis=1) == 300).all()


def test_nodes_of_one_field_have_one_label():
    result = nodes_with_one_field([-1.0, 1.0, 1.0])
    labels = joint_labels(result, np.arange(3, 42), 500, np.random.default_rng(0))
    assert ((labels == labels[0]).mean(axis=0) == 1).mean() > 1 - 2 / 500  # but for rounding


def test_draws_in_which_a_class_leads_most():
    u = np.array([[[3.0, 0.0], [2.0, 1.0], [1.0, 5.0], [9.0, 0.0]]])
    among = np.array([[True, True, True, False]])
    rng = np.random.default_rng(0)
    taken = draws_that_lead(u, np.array([0]), np.array([2 / 3]), among, rng)
    assert taken.tolist() == [[True, True, False, False]]
