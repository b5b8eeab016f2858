"""Answers stay what they were, to 1e-6, unless the model itself is meant to change.

Approximations repeat on every machine. Chains repeat to the last digit on the same kind of
processor only, so that the default run compares them within their Monte-Carlo error.
"""

import json

import numpy as np
import pytest

from frozen.cases import ANSWERS, DATA, IS_SAMPLED, SETTINGS, fitted, shown

FROZEN = json.loads(ANSWERS.read_text(encoding="utf-8"))
MONTE_CARLO = 0.1  # five Monte-Carlo errors of a probability at which sampling stops
SAMPLED = [setting for setting in SETTINGS if IS_SAMPLED[setting]]
APPROXIMATE = [setting for setting in SETTINGS if not IS_SAMPLED[setting]]


def differences(data: str, setting: str) -> np.ndarray:
    """Return how far today's answer is from the frozen one."""
    found = shown(fitted(data, setting).label_distributions_)
    return np.abs(np.array(found) - np.array(FROZEN[f"{data} | {setting}"]))


@pytest.mark.parametrize("setting", APPROXIMATE)
@pytest.mark.parametrize("data", DATA)
def test_approximations_are_the_frozen_ones(data, setting):
    assert differences(data, setting).max() < 1e-6


@pytest.mark.parametrize("data", ["iris", "network"])
def test_samples_agree_within_their_error(data):
    assert differences(data, SAMPLED[0]).max() < MONTE_CARLO


@pytest.mark.slow
@pytest.mark.parametrize("setting", SAMPLED)
@pytest.mark.parametrize("data", DATA)
def test_samples_are_the_frozen_ones(data, setting):
    assert differences(data, setting).max() < 1e-6
