"""``AnnotatorClassifier``: rows that several people have labelled."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.classifier.annotator_rounds import _of_largest_evidence, soft_posterior
from graphuq.errors import InvalidInput, StorageError

DIGITS = gq.datasets.load_digits((3, 5, 8))
KEPT = np.concatenate([np.flatnonzero(DIGITS.codes() == k)[:60] for k in range(3)])
X, CODES = DIGITS.data[KEPT], DIGITS.codes()[KEPT]
NAMES = np.array(["three", "five", "eight"])
RNG = np.random.default_rng(1)
ROWS = RNG.choice(180, 60, replace=False)
ACCURACIES = np.array([0.95, 0.6, 0.1])  # the last one is nearly always wrong


def annotations():
    labels = np.full((180, 3), "", dtype=object)
    for a, accuracy in enumerate(ACCURACIES):
        right = RNG.uniform(size=60) < accuracy
        shift = np.where(right, 0, RNG.integers(1, 3, 60))
        labels[ROWS, a] = NAMES[(CODES[ROWS] + shift) % 3]
    labels[ROWS[:5], 1] = ""
    return pd.DataFrame(labels, columns=["ann", "bob", "cyd"])


LABELS = annotations()


@pytest.fixture(scope="module")
def fitted():
    return gq.AnnotatorClassifier(
        inference=gq.inference.MCMC(n_samples=400, n_warmup=200, thin=6)
    ).fit(X, LABELS)


@pytest.mark.slow
def test_accuracies_are_learnt(fitted):
    table = fitted.annotators_
    assert table["annotator"].tolist() == ["ann", "bob", "cyd"]
    assert table["n_labels"].tolist() == [60, 55, 60]
    true = [(LABELS[n][ROWS] == NAMES[CODES[ROWS]])[LABELS[n][ROWS] != ""].mean() for n in LABELS]
    np.testing.assert_allclose(table["accuracy"], true, atol=0.12)
    assert (table["lower"] < table["accuracy"]).all()
    assert (table["upper"] > table["accuracy"]).all()
    assert fitted.confusion_.shape == (3, 3, 3)
    np.testing.assert_allclose(fitted.confusion_.sum(axis=2), 1)


def test_classes_and_new_rows(fitted):
    assert fitted.classes_.tolist() == sorted(NAMES)
    assert (fitted.transduction_ == NAMES[CODES]).mean() > 0.9
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1)
    assert (fitted.predict(X) == fitted.transduction_).all()
    assert (fitted.predict(X + 0.01) == NAMES[CODES]).mean() > 0.85


def test_better_than_the_majority(fitted):
    votes = np.stack([(name == LABELS).sum(axis=1) for name in fitted.classes_], axis=1)[ROWS]
    majority = fitted.classes_[votes.argmax(axis=1)]
    truth = NAMES[CODES[ROWS]]
    assert (fitted.transduction_[ROWS] == truth).mean() > (majority == truth).mean()


def test_true_classes_are_more_certain_than_new_labels(fitted):
    """At an annotated row, readings of the row itself count beside the field."""
    drawn = fitted.result_.hyperparameters["true_class"]
    members = np.eye(3)[drawn].mean(axis=(0, 1))
    labelled = fitted.result_.posterior.labelled
    np.testing.assert_allclose(fitted.label_distributions_[labelled], members, atol=1e-12)


def test_stored(fitted, tmp_path):
    fitted.save(tmp_path / "a.nc")
    again = gq.load(tmp_path / "a.nc")
    assert type(again) is type(gq.GraphClassifier.load(tmp_path / "a.nc")) is type(fitted)
    for name in ("accuracy_", "accuracy_interval_", "confusion_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))
    pd.testing.assert_frame_equal(again.annotators_, fitted.annotators_)
    again.save(tmp_path / "b.nc")
    pd.testing.assert_frame_equal(gq.load(tmp_path / "b.nc").annotators_, fitted.annotators_)
    np.testing.assert_array_equal(again.transduction_, fitted.transduction_)
    np.testing.assert_array_equal(again.predict(X + 0.01), fitted.predict(X + 0.01))
    drawn = again.result_.hyperparameters["accuracy_0"]
    np.testing.assert_array_equal(drawn, fitted.result_.hyperparameters["accuracy_0"])
    assert "accuracy_2: median" in str(again.result_)


class Own(gq.GraphClassifier):
    """A classifier of a user."""


def test_the_class_is_stored(tmp_path):
    class Local(gq.GraphClassifier):
        pass

    options = {"model": "fixed", "inference": "laplace"}
    y = np.where(np.arange(180) % 9 == 0, CODES > 0, -1)
    Own(**options).fit(X, y).save(tmp_path / "own.nc")
    assert type(gq.load(tmp_path / "own.nc")) is Own
    assert type(gq.GraphClassifier.load(tmp_path / "own.nc")) is Own
    with pytest.raises(StorageError, match=r"holds no AnnotatorClassifier; use graphuq\.load"):
        gq.AnnotatorClassifier.load(tmp_path / "own.nc")
    with pytest.raises(StorageError, match=r"class .*Local is local to a function; define it at"):
        Local(**options).fit(X, y).save(tmp_path / "local.nc")
    assert not (tmp_path / "local.nc").exists()


def test_two_classes_and_codes():
    truth = (CODES > 0).astype(int)
    labels = np.full((180, 3), -1)
    for a, accuracy in enumerate([0.9, 0.8, 0.5]):
        right = RNG.uniform(size=60) < accuracy
        labels[ROWS, a] = np.where(right, truth[ROWS], 1 - truth[ROWS])
    classifier = gq.AnnotatorClassifier(
        inference=gq.inference.MCMC(n_samples=300, n_warmup=200, thin=4)
    ).fit(X, labels)
    assert classifier.classes_.tolist() == [0, 1]
    assert (classifier.transduction_ == truth).mean() > 0.85
    assert classifier.annotators_["annotator"].tolist() == ["0", "1", "2"]
    assert classifier.annotators_["accuracy"].argmax() == 0


@pytest.mark.parametrize(
    ("parameters", "labels", "words"),
    [
        ({}, LABELS["ann"], r"y: shape \(180,\); give one row for each row of X"),
        ({}, LABELS.assign(dan=""), "y: annotator 'dan' has no label; leave the column out"),
        ({}, LABELS[:5], "y: 5 rows; X has 180 rows"),
        ({}, LABELS.replace({"three": "", "five": ""}), "labels of one class only"),
        ({"inference": "pcn"}, LABELS, "inference: .pcn. beside annotators"),
        ({"max_classes": 5}, LABELS, "max_classes: 5 beside soft labels"),
    ],
)
def test_refusals(parameters, labels, words):
    with pytest.raises(InvalidInput, match=words):
        gq.AnnotatorClassifier(**parameters).fit(X, labels)


def test_a_crowd_of_rows_that_are_all_labelled(tmp_path):
    """Without features; the verdict, too, has no row left to speak of."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 80)
    right = rng.uniform(size=(80, 7)) < [0.95, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5]
    crowd = gq.AnnotatorClassifier().fit(None, np.where(right, truth[:, None], 1 - truth[:, None]))
    assert (crowd.transduction_ == truth).mean() > 0.9
    assert crowd.result_.trust.level in ("green", "amber")
    assert crowd.share_right_.argmax() == 0
    assert (np.diff(crowd.share_right_interval_, axis=1) >= 0).all()
    crowd.save(tmp_path / "crowd.nc")
    again = gq.load(tmp_path / "crowd.nc")
    np.testing.assert_array_equal(again.share_right_interval_, crowd.share_right_interval_)


def test_without_contradictions_the_noise_does_not_vanish():
    """The evidence grows for ever as the noise falls to 0, but hardly."""
    rng = np.random.default_rng(0)
    classes = rng.integers(2, size=90)
    X = np.outer(2.0 * classes, [1.0, 0.0]) + 0.5 * rng.normal(size=(90, 2))
    basis = gq.Basis.of(gq.graphs.knn_graph(X), n_eigenpairs=30)
    nodes = np.arange(60)
    labels = gq.models.Labels(nodes, classes[nodes], 2)
    posterior = gq.models.LargestEvidence().posterior(basis, labels)
    method = gq.inference.ExpectationPropagation(tolerance=1e-3)
    said = np.full((60, 2), 1e-6)
    said[nodes, classes[nodes]] = 1 - 1e-6
    found, answer = _of_largest_evidence([posterior], said, method, True)
    noise = found.likelihood.latent_noise_std
    assert noise > 1e-3
    less = dataclasses.replace(found, likelihood=gq.likelihoods.Probit(noise / 100))
    evidence = method.fit(soft_posterior(less, said).plain_target).log_evidence
    assert evidence == pytest.approx(answer.log_evidence, abs=0.05)
