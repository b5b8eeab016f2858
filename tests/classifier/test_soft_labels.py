"""``GraphClassifier.fit`` with a distribution over the classes for each row."""

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput

DIGITS = gq.datasets.load_digits((3, 5, 8))
KEPT = np.concatenate([np.flatnonzero(DIGITS.codes() == k)[:40] for k in range(3)])
X, CODES = DIGITS.data[KEPT], DIGITS.codes()[KEPT]
RNG = np.random.default_rng(0)
ROWS = np.concatenate([np.flatnonzero(k == CODES)[:6] for k in range(3)])
Q = np.full((len(CODES), 3), np.nan)
Q[ROWS] = 0.1
Q[ROWS, CODES[ROWS]] = 0.8
SOFTMAX = gq.models.LargestEvidence(likelihood="softmax")


@pytest.fixture(scope="module")
def fitted():
    return gq.GraphClassifier(inference=gq.inference.MCMC(n_samples=500)).fit(X, Q)


def test_classes_are_columns(fitted, tmp_path):
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert (fitted.transduction_ == CODES).mean() > 0.85
    named = pd.DataFrame(Q, columns=["three", "five", "eight"])
    again = gq.GraphClassifier(inference=gq.inference.MCMC(n_samples=500)).fit(X, named)
    assert again.classes_.tolist() == ["three", "five", "eight"]
    np.testing.assert_array_equal(again.label_distributions_, fitted.label_distributions_)
    again.save(tmp_path / "c.nc")
    loaded = gq.load(tmp_path / "c.nc")
    np.testing.assert_array_equal(loaded.predict(X), again.transduction_)


def test_zeros_and_nan_are_unlabelled(fitted):
    zeros = np.nan_to_num(Q)
    again = gq.GraphClassifier(inference=gq.inference.MCMC(n_samples=500)).fit(X, zeros)
    np.testing.assert_array_equal(again.label_distributions_, fitted.label_distributions_)
    dropped = gq.GraphClassifier(inference=gq.inference.MCMC(n_samples=500)).fit(
        X, Q, np.arange(len(Q)) != ROWS[0]
    )
    assert len(dropped.result_.posterior.labels) == len(ROWS) - 1


def test_certain_rows_are_labels():
    y = np.where(np.isin(np.arange(len(CODES)), ROWS) & (CODES > 0), CODES - 1, -1)
    rows = CODES > 0
    q = np.where(y[:, None] >= 0, np.eye(2)[y], 0)
    parameters = {
        "model": gq.models.Fixed(gq.priors.Matern(tau=0.3, alpha=3), gq.likelihoods.Probit(0.3)),
        "inference": "expectation-propagation",
    }
    hard = gq.GraphClassifier(**parameters).fit(X[rows], y[rows])
    almost = np.where(q == 1, 1 - 1e-12, np.where(y[:, None] >= 0, 1e-12, 0))
    soft = gq.GraphClassifier(**parameters).fit(X[rows], almost[rows])
    assert isinstance(soft.result_.posterior.likelihood, gq.likelihoods.SoftProbit)
    np.testing.assert_allclose(soft.label_distributions_, hard.label_distributions_, atol=1e-4)


@pytest.mark.slow
def test_a_fit_of_certain_rows_is_that_of_labels():
    """The model is that of labels, too, which is an average by default; names keep their order."""
    y = np.where(np.isin(np.arange(len(CODES)), ROWS), CODES, -1)
    q = pd.DataFrame(np.where(y[:, None] >= 0, np.eye(3)[y], np.nan), columns=["c", "a", "b"])
    soft, hard = (gq.GraphClassifier(random_state=0).fit(X, t) for t in (q, y))
    assert soft.classes_.tolist() == ["c", "a", "b"]
    np.testing.assert_array_equal(soft.label_distributions_, hard.label_distributions_)
    new = np.setdiff1d(np.arange(120), ROWS)[:2]
    soft.add_labels(new, ["a", "c"])
    hard.add_labels(new, [1, 0])
    order = [soft.classes_.tolist().index(name) for name in "cab"]
    found = soft.label_distributions_[:, order]
    np.testing.assert_allclose(found, hard.label_distributions_, atol=1e-3)


def test_expectation_propagation_of_three_classes_says_what_it_takes():
    with pytest.raises(IncompatibleParts, match="soft labels of two classes only"):
        gq.GraphClassifier(model="fixed", inference="expectation-propagation").fit(X, Q)


@pytest.mark.slow
def test_doubt_about_a_wrong_label_helps():
    """A wrong label that says so costs less than a wrong label that claims to be certain."""
    y, q = np.full(len(CODES), -1), Q.copy()
    y[ROWS] = CODES[ROWS]
    for row in ROWS[::6]:
        y[row] = (CODES[row] + 1) % 3
        q[row] = 1 / 3 - 0.1
        q[row, y[row]] = 1 / 3 + 0.2
    scores = []
    for labels in (q, y):
        classifier = gq.GraphClassifier(inference=gq.inference.MCMC(n_samples=2000)).fit(X, labels)
        probability = classifier.label_distributions_[np.arange(len(CODES)), CODES]
        scores.append(-np.log(np.delete(probability, ROWS)).mean())
    assert scores[0] < scores[1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"model": SOFTMAX}, "likelihood: Softmax.* beside soft labels; use 'auto' or a"),
        ({"max_classes": 5}, "max_classes: 5 beside soft labels; leave it out"),
        ({"class_proportions": "labels"}, "class_proportions: 'labels' beside soft labels"),
        ({"inference": "model-average"}, "of a Mixture, and Matern.* is none; use model='average'"),
        (
            {"model": "average"},
            "certain labels: use gq.models.LargestEvidence",
        ),
    ],
)
def test_parameters_without_meaning_are_refused(parameters, words):
    with pytest.raises((InvalidInput, IncompatibleParts), match=words):
        gq.GraphClassifier(**parameters).fit(X, Q)


def test_rows_that_are_no_probabilities_are_named():
    for value, words in (
        ([0.5, 0.5, 0.5], r"y: \[0.5, 0.5, 0.5\] in row 7, which are no probabilities; give"),
        ([1.5, -0.5, 0.0], "in row 7, which are no probabilities"),
        ([np.nan, 0.5, 0.5], "in row 7, which are no probabilities"),
    ):
        q = Q.copy()
        q[7] = value
        with pytest.raises(InvalidInput, match=words):
            gq.GraphClassifier().fit(X, q)
    with pytest.raises(InvalidInput, match="without a row of probabilities; give one label a row"):
        gq.GraphClassifier().fit(X, np.zeros_like(Q))
    with pytest.raises(InvalidInput, match="y: 5 rows; X has 120 rows"):
        gq.GraphClassifier().fit(X, Q[:5])
    with pytest.raises(InvalidInput, match="two columns or more that are not numbers"):
        gq.GraphClassifier().fit(X, np.full(Q.shape, "a"))


def test_new_labels_need_a_new_fit(fitted):
    with pytest.raises(InvalidInput, match=r"labels: added to a fit of soft labels; .*fit again"):
        fitted.add_labels([int(np.setdiff1d(np.arange(120), ROWS)[0])], [1])
