"""How far answers are calibrated when the labels choose few variables of a table."""

import numpy as np
import pytest
from few_variables import simulated

RUNS = {4: 300, 10: 300, 40: 80}  # by the number of labels
# What the chosen set alone, beside functions of all variables, is too certain by, and loses.
TOO_CERTAIN, WORSE = 0.03, 0.004


def differences(n_labels, free=False):
    """Return mean and standard error of what graphuq's answers have less than the average.

    The average over all sets is calibrated up to four standard errors.
    """
    found = simulated(n_labels, RUNS[n_labels], free)
    error = found.std(axis=1) / np.sqrt(RUNS[n_labels])
    assert abs(found[0, :, 0].mean()) < 4 * error[0, 0]
    apart = found[1] - found[0]
    return apart.mean(axis=0), apart.std(axis=0) / np.sqrt(len(apart))


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", RUNS)
def test_the_chosen_set_is_hardly_too_certain(n_labels):
    (certainty, log_score), error = differences(n_labels)
    assert -TOO_CERTAIN - 4 * error[0] < certainty < 4 * error[0]
    assert log_score < WORSE + 4 * error[1]


@pytest.mark.slow
def test_a_set_without_its_price_is_far_too_certain():
    """Negative control: the prior probability of the set is no part of its evidence."""
    (certainty, log_score), error = differences(10, free=True)
    assert certainty < -TOO_CERTAIN - 4 * error[0]
    assert log_score > WORSE + 4 * error[1]
