"""Scores agree with numbers computed by hand, and with scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

import graphuq as gq
from graphuq.errors import InvalidInput

RNG = np.random.default_rng(0)
LABEL_MEAN = RNG.uniform(-1, 1, 4000)
TRUTH = np.where(RNG.uniform(size=4000) < (1 + LABEL_MEAN) / 2, 1.0, -1.0)  # calibrated


def test_proper_scores_are_those_of_scikit_learn():
    probability = (1 + LABEL_MEAN) / 2
    assert gq.scores.brier_score(LABEL_MEAN, TRUTH) == pytest.approx(
        brier_score_loss(TRUTH > 0, probability)
    )
    assert gq.scores.log_score(LABEL_MEAN, TRUTH, floor=1e-15) == pytest.approx(
        log_loss(TRUTH > 0, probability)
    )


def test_a_sure_mistake_is_charged_the_floor():
    found = gq.scores.log_score(np.array([1.0, -1.0]), np.array([-1.0, -1.0]))
    assert found == pytest.approx(-np.log(1e-6) / 2)


def test_calibrated_probabilities_are_found_calibrated():
    """Each bin is within four binomial standard errors; halved label means are not calibrated."""
    curve = gq.scores.reliability_curve(LABEL_MEAN, TRUTH)
    error = np.sqrt(curve.confidence * (1 - curve.confidence) / curve.count) + 1e-9
    assert (np.abs(curve.accuracy - curve.confidence) < 4 * error).all()
    assert curve.count.sum() == 4000
    assert gq.scores.expected_calibration_error(LABEL_MEAN / 2, TRUTH) > 0.1


def test_ties_are_half_right_and_labelled_nodes_left_out():
    label_mean, truth = np.array([0.0, 0.0, 0.8]), np.array([1.0, -1.0, 1.0])
    curve = gq.scores.reliability_curve(label_mean, truth, labelled=[2])
    assert curve.accuracy.tolist() == [0.5]
    assert curve.count.tolist() == [2]


def test_labelled_nodes_are_indices_or_a_mask():
    label_mean, truth = np.array([0.9, -0.2, 0.4]), np.array([1.0, 1.0, -1.0])
    for labelled in ([1, 2], np.array([False, True, True])):
        assert gq.scores.accuracy(label_mean, truth, labelled) == 1.0
    assert gq.scores.accuracy(label_mean, truth, []) == pytest.approx(1 / 3)


@pytest.mark.usefixtures("unchecked_types")
def test_bad_input():
    assert gq.scores.accuracy([0.9, -0.2], [1, 1]) == 0.5
    with pytest.raises(InvalidInput, match=r"truth: true labels of type <U1; give −1 or \+1"):
        gq.scores.accuracy(np.array([0.5, -0.5]), np.array(["a", "b"]))
    with pytest.raises(InvalidInput, match="labelled: index 7 is out of bounds"):
        gq.scores.brier_score(LABEL_MEAN[:3], TRUTH[:3], labelled=[7])
    with pytest.raises(InvalidInput, match="labelled: every node is labelled"):
        gq.scores.log_score(LABEL_MEAN[:2], TRUTH[:2], labelled=[0, 1])
    with pytest.raises(InvalidInput, match="n_bins: 0"):
        gq.scores.reliability_curve(LABEL_MEAN, TRUTH, n_bins=0)
    with pytest.raises(InvalidInput, match="truth: shape"):
        gq.scores.brier_score(LABEL_MEAN, TRUTH[:5])
