"""Votes of labelling functions as a crowd, with contradictions among them and without."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.evidence.hyperpriors import HYPERPRIORS

MOONS = gq.datasets.two_moons(120, n_features=2, noise_std=0.1)
CODES = MOONS.codes()
KINDS = {  # share of rows with a vote, accuracy, number of functions
    "no contradiction": (0.4, 1.0, 3),
    "all right, on all rows": (1.0, 1.0, 3),
    "one alone": (0.5, 1.0, 1),
    "one alone that errs": (0.5, 0.8, 1),
    "contradictions": (0.5, 0.75, 3),
}


def votes(share, accuracy, n_functions, truth=CODES, n_classes=2):
    rng = np.random.default_rng(0)
    shape = len(truth), n_functions
    away = rng.integers(1, n_classes, shape)
    right = rng.random(shape) < accuracy
    found = np.where(right, truth[:, None], (truth[:, None] + away) % n_classes)
    return np.where(rng.random(shape) < share, found, -1)


def crowd(labels):
    classifier = gq.AnnotatorClassifier(inference="expectation-propagation", random_state=0)
    return classifier.fit(MOONS.features, labels)


@pytest.mark.parametrize(
    "kind", ["no contradiction", *(pytest.param(k, marks=pytest.mark.slow) for k in [*KINDS][1:])]
)
def test_answers_are_near_those_of_the_votes(kind):
    """Where nothing contradicts the field, the evidence rises to a limit as γ goes to 0."""
    labels = votes(*KINDS[kind])
    given = labels >= 0
    fitted = crowd(labels)
    right = fitted.transduction_ == CODES
    assert right.mean() >= (labels == CODES[:, None])[given].mean() - 0.05
    largest = fitted.result_.probabilities.max(axis=1)
    assert abs(right.mean() - largest.mean()) < 0.1
    _, _, lower, upper = HYPERPRIORS["noise_std"]
    assert lower <= fitted.result_.posterior.likelihood.noise_std <= upper


def test_a_function_that_never_votes():
    labels = votes(0.5, 0.8, 2)
    labels[:, 1] = -1
    with pytest.raises(InvalidInput, match="annotator '1' has no label; leave the column out"):
        crowd(labels)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # few draws do here
def test_three_classes_are_sampled():
    truth = CODES + (MOONS.features[:, 0] > 1)
    labels = votes(0.4, 1.0, 3, truth, 3)
    with pytest.raises(InvalidInput, match="3 classes of a crowd; give features, and leave"):
        crowd(labels)
    inference = gq.inference.MCMC(n_samples=200, n_warmup=100, thin=2)
    fitted = gq.AnnotatorClassifier(inference=inference, random_state=0)
    assert (fitted.fit(MOONS.features, labels).transduction_ == truth).mean() > 0.9
