"""Experts from outside beside a model."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.results.leaving_out import leave_each_out
from graphuq.results.reported import powers

EP = "expectation-propagation"
MOONS = gq.datasets.two_moons(150, n_features=2, noise_std=0.15)


def labels_of(codes, per_class, seed=0):
    rng = np.random.default_rng(seed)
    y = np.full(len(codes), -1)
    for k in np.unique(codes):
        y[rng.choice(np.flatnonzero(codes == k), per_class, replace=False)] = k
    return y


def with_experts(experts, X, y, **settings):
    settings = {"inference": EP} | settings
    return gq.GraphClassifier(model=gq.models.Pooled(experts), **settings).fit(X, y)


def by_hand(expert, X, y):
    """Return an expert's probabilities at all rows, and of each label without itself."""
    nodes = np.flatnonzero(y >= 0)
    everywhere = expert.fit(X[nodes], y[nodes]).predict_proba(X)
    withheld = []
    for j in nodes:
        rest = nodes[nodes != j]
        withheld.append(expert.fit(X[rest], y[rest]).predict_proba(X[[j]])[0])
    return everywhere, np.array(withheld)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_the_average_by_leave_one_out(n_classes):
    rng = np.random.default_rng(3)
    codes = rng.integers(n_classes, size=120)
    X = rng.normal(size=(120, 2)) + 2 * np.eye(3)[codes][:, :2]
    y = labels_of(codes, 4)
    design = gq.models.Average("random")
    alone = gq.GraphClassifier(model=design, inference=EP).fit(X, y).result_
    power = alone.posterior.sharpness
    alone = gq.infer(dataclasses.replace(alone.posterior, sharpness=1.0), EP)
    expert = LogisticRegression()
    pooled = gq.models.Pooled([expert], design)
    found = gq.GraphClassifier(model=pooled, inference=EP).fit(X, y).result_
    everywhere, withheld = by_hand(LogisticRegression(), X, y)
    nodes = alone.posterior.labelled
    at = np.arange(len(nodes)), y[nodes]
    own = leave_each_out(alone.answer, alone.posterior).of_label
    weights = softmax([np.log(own[at]).sum(), np.log(withheld[at]).sum()])
    expected = weights[0] * alone.probabilities + weights[1] * everywhere
    assert np.abs(found.probabilities - powers(expected, power)).max() < 1e-6
    shown = gq.results.expert_weights(found)
    assert list(shown) == ["graphuq", "LogisticRegression"]
    assert list(shown.values()) == pytest.approx(weights, abs=1e-6)
    assert f"Weights: graphuq {weights[0]:.2f}, LogisticRegression" in str(found)
    left = gq.leave_one_out(found)
    assert np.abs(left.of_label - (weights[0] * own + weights[1] * withheld)).max() < 1e-6


def test_an_expert_that_knows_more_wins_and_one_that_knows_nothing_loses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    codes = (X.prod(axis=1) > 0).astype(int)  # of all variables, and of none alone
    y = labels_of(codes, 20)

    def knows(_, __, rows):
        sign = rows.prod(axis=1) > 0
        return np.stack([~sign, sign], axis=1) * 0.98 + 0.01

    def ignorant(_, __, rows):
        return np.full((len(rows), 2), 0.5)

    found = with_experts([knows, ignorant], X, y)
    weights = gq.results.expert_weights(found.result_)
    assert weights["knows"] > 0.9 > 0.1 > weights["ignorant"]
    assert (found.predict(X) == codes).mean() > 0.99


def test_draws_have_the_weights_of_their_own_answer():
    y = labels_of(MOONS.codes(), 8)
    expert = make_pipeline(StandardScaler(), LogisticRegression())
    quick = with_experts([expert], MOONS.features, y).result_
    sampled = with_experts([expert], MOONS.features, y, inference="auto").result_
    difference = np.abs(quick.probabilities - sampled.probabilities)
    assert difference.mean() < 0.03  # of expectation propagation alone, up to 0.02
    assert sampled.mcse.max() < 0.05


def test_new_rows_files_and_later_labels(tmp_path):
    codes = MOONS.codes()
    y = labels_of(codes, 6)
    expert = RandomForestClassifier(20, random_state=0)
    classifier = with_experts([expert, LogisticRegression()], MOONS.features, y)
    new = MOONS.features[:20] + 1e-9
    at_nodes = classifier.predict_proba(MOONS.features)
    near = classifier.predict_proba(MOONS.features[:20] + 0.01)
    assert np.abs(near - at_nodes[:20]).mean() < 0.1
    assert np.allclose(near.sum(axis=1), 1)
    before = classifier.predict_proba(new)
    table = classifier.predict_table(new)
    assert np.abs(table["probability_1"] - before[:, 1]).max() < 1e-9
    classifier.save(tmp_path / "model.nc")
    again = gq.load(tmp_path / "model.nc")
    assert np.abs(again.predict_proba(new) - before).max() < 1e-6
    assert gq.results.expert_weights(again.result_) == pytest.approx(
        gq.results.expert_weights(classifier.result_), abs=1e-6
    )
    rows = np.flatnonzero(y < 0)[:4]
    with pytest.raises(gq.errors.InvalidInput, match="the file does not hold"):
        again.add_labels(rows, codes[rows])
    again.set_params(model=classifier.model).add_labels(rows, codes[rows])
    classifier.add_labels(rows, codes[rows])
    assert np.abs(again.predict_proba(new) - classifier.predict_proba(new)).max() < 0.02
    y[rows] = codes[rows]
    fitted = with_experts([expert, LogisticRegression()], MOONS.features, y)
    # added labels keep the blocks and the design of the first ones
    assert np.abs(classifier.predict_proba(new) - fitted.predict_proba(new)).max() < 0.04
    classifier.add_rows(MOONS.features[:3] + 0.02)
    assert classifier.result_.probabilities.shape == (153, 2)
    assert len(classifier.result_.posterior.experts) == 2


def test_a_class_without_labels_in_a_fold_has_no_probability_there():
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([0, 4, 8], 20)[:, None]
    codes = np.repeat([0, 1, 2], 20)
    y = labels_of(codes, 3)
    y[np.flatnonzero(y == 2)[1:]] = -1
    found = with_experts([LogisticRegression()], X, y)
    single = np.flatnonzero(y[found.result_.posterior.labelled] == 2)
    assert found.result_.posterior.experts[0].withheld[single, 2] == 0
    assert gq.results.expert_weights(found.result_)["LogisticRegression"] > 1e-3


def test_text_names_a_class():
    y = labels_of(MOONS.codes(), 5)
    path = "sklearn.naive_bayes:GaussianNB"
    found = with_experts([path, path], MOONS.features, y)
    names = [expert.name for expert in found.result_.posterior.experts]
    assert names == ["GaussianNB", "GaussianNB 2"]
    assert repr(found.model_) == f"Pooled(experts=({path!r}, {path!r}), model=Average())"


@pytest.mark.parametrize(
    ("experts", "message"),
    [
        ([], "experts"),
        ("LogisticRegression", "experts"),
        ([LogisticRegression], "experts: "),
        ([3], "experts: 3"),
        (["sklearn.linear_model:Lost"], "not found"),
        (["forest"], "the file does not hold"),
        ([lambda X, y, rows: np.zeros((len(rows), 2))], "no probabilities of 2 classes"),
        ([lambda X, y, rows: np.ones((len(rows), 3))], "no probabilities of 2 classes"),
    ],
)
def test_bad_experts_are_refused(experts, message):
    y = labels_of(MOONS.codes(), 4)
    with pytest.raises(gq.errors.GraphuqError, match=re.escape(message)):
        with_experts(experts, MOONS.features, y)


def test_experts_need_features_and_certain_labels():
    graph = gq.graphs.from_adjacency(np.eye(40, k=1) + np.eye(40, k=-1))
    y = np.where(np.arange(40) % 10 == 0, np.arange(40) // 20, -1)
    model = gq.models.Pooled([LogisticRegression()])
    with pytest.raises(gq.errors.IncompatibleParts, match="experts need features"):
        gq.GraphClassifier("precomputed", model=model).fit(graph, y)
    q = np.full((150, 2), np.nan)
    q[:10] = [0.3, 0.7]
    with pytest.raises(gq.errors.IncompatibleParts, match="experts need certain labels"):
        gq.GraphClassifier(model=model).fit(MOONS.features, q)
    one = labels_of(MOONS.codes(), 1)
    with pytest.raises(gq.errors.IncompatibleParts, match="another label of their class"):
        gq.GraphClassifier(model=model).fit(MOONS.features, one)
    y, weights = labels_of(MOONS.codes(), 4), np.full(150, 2.0)
    with pytest.raises(gq.errors.IncompatibleParts, match="no weights"):
        gq.GraphClassifier(model=model).fit(MOONS.features, y, weights)
