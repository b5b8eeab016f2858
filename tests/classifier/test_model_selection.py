"""Cross-validation and scores with rows that have no label."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.errors import InvalidInput, UnlabelledScoreWarning

MOONS = gq.datasets.two_moons(200, n_features=2, noise_std=0.12, rng=1)
QUESTION = "?"
QUICK = gq.GraphClassifier(n_neighbors=12, model="fixed", inference="expectation-propagation")


def partly(truth, n_each, seed=0):
    """Return labels of n rows of each class, and −1 for all others."""
    rng, y = np.random.default_rng(seed), np.full(len(truth), -1)
    for name in np.unique(truth):
        rows = rng.choice(np.flatnonzero(truth == name), n_each, replace=False)
        y[rows] = name
    return y


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("n_each", [2, 3, 7, 20])
def test_folds_hold_out_labelled_rows_only(n_each, shuffle):
    truth = np.arange(90) % 3
    y, n_splits = partly(truth, n_each), 5
    folds = list(gq.LabelledKFold(n_splits, shuffle=shuffle).split(np.zeros((90, 1)), y))
    assert len(folds) == n_splits == gq.LabelledKFold(n_splits).get_n_splits()
    held_out = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(held_out), np.flatnonzero(y >= 0))
    for train, test in folds:
        assert len(test) > 0
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(90))
        per_class = np.bincount(y[test], minlength=3)
        assert per_class.max() - per_class.min() <= 1
        assert set(y[train]) == {-1, 0, 1, 2}, "each class must be left to learn from"


@pytest.mark.parametrize("missing", [-1, np.nan, None, "", pd.NA, QUESTION])
def test_every_spelling_of_a_missing_label(missing):
    names = np.array(["a", "b"] * 10, dtype=object)
    y = names.copy()
    y[8:] = missing
    split = gq.LabelledKFold(4, missing_label="?" if missing is QUESTION else -1)
    held_out = np.concatenate([test for _, test in split.split(np.zeros((20, 1)), y)])
    assert sorted(held_out) == list(range(8))

    class Model:
        classes_ = np.array(["a", "b"])

        def predict(self, X):
            return names[X]

        def predict_proba(self, X):
            return np.where(names[X][:, None] == self.classes_, 0.9, 0.1)

    scorer = gq.LabelledScorer("log_score", missing_label=split.missing_label)
    assert scorer(Model(), np.arange(20), y) == pytest.approx(np.log(0.9))


def test_hidden_labels_stay_in_the_graph():
    y = partly(MOONS.classes, 10)
    distances = np.linalg.norm(MOONS.features[:, None] - MOONS.features[None], axis=2)
    model = clone(QUICK).set_params(metric="precomputed")
    held_out, right = [], []
    for y_train, test in gq.LabelledKFold().hide(y):
        assert [value is None for value in y_train] == np.isin(np.arange(200), test).tolist()
        np.testing.assert_array_equal(np.delete(y_train, test), np.delete(y, test))
        model.fit(distances, y_train)
        assert len(model.result_.posterior.labelled) == 20 - len(test)
        assert model.graph_.n_nodes == 200
        held_out += test.tolist()
        right += (model.transduction_[test] == y[test]).tolist()
    assert sorted(held_out) == np.flatnonzero(y >= 0).tolist()
    assert np.mean(right) > 0.9


def test_folds_depend_on_the_seed_alone():
    y = partly(np.arange(60) % 2, 10)
    first, again, other = (
        [test.tolist() for _, test in gq.LabelledKFold(random_state=seed).split(y, y)]
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_numbers_are_dealt_without_classes():
    """Numbers of a regression, most of which occur once, are all held out."""
    rng = np.random.default_rng(0)
    y = np.full(300, np.nan)
    y[:100] = rng.integers(0, 400, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folds = [test for _, test in gq.LabelledKFold().split(y[:, None], y)]
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(100))
    assert [len(test) for test in folds] == [20] * 5
    few = np.where(np.arange(300) < 10, y, np.nan)
    few[:10] = np.arange(10)
    with pytest.raises(InvalidInput, match="stratify=False for numbers"):
        next(gq.LabelledKFold().split(few[:, None], few))
    folds = [test for _, test in gq.LabelledKFold(stratify=False).split(few[:, None], few)]
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(10))
    with pytest.raises(InvalidInput, match="stratify: 'no'"):
        gq.LabelledKFold(stratify="no")


@pytest.mark.slow
def test_regression_is_scored_as_on_the_other_rows():
    X = np.random.default_rng(1).uniform(size=(300, 2))
    truth = np.sin(4 * X[:, 0]) + X[:, 1]
    y = np.where(np.arange(300) < 80, truth, np.nan)
    scores = cross_val_score(gq.GraphRegressor(), X, y, cv=gq.LabelledKFold())
    others = gq.GraphRegressor().fit(X, y)
    true = 1 - np.var(others.predict(X)[80:] - truth[80:]) / np.var(truth[80:])
    assert abs(scores.mean() - true) < 0.1


def test_soft_labels_are_no_labels_of_folds():
    q = np.where(np.arange(40)[:, None] < 10, [0.7, 0.3], np.nan)
    with pytest.raises(InvalidInput, match="soft labels serve a fit"):
        next(gq.LabelledKFold().split(q, q))


def test_too_few_labels():
    y = partly(np.arange(60) % 2, 2)
    with pytest.raises(InvalidInput, match=r"5 folds for 4 labelled rows .* use at most 4.*Evid"):
        list(gq.LabelledKFold().split(y, y))
    assert [len(test) for _, test in gq.LabelledKFold(4).split(y, y)] == [1, 1, 1, 1]
    with pytest.raises(InvalidInput, match="for 0 labelled rows that can be held out; label more"):
        list(gq.LabelledKFold().split(y, partly(np.arange(60) % 2, 1)))
    with pytest.raises(InvalidInput, match="no label among 60 rows"):
        list(gq.LabelledKFold().split(y, np.full(60, -1)))
    with pytest.raises(InvalidInput, match="n_splits: 1; use 2 or more"):
        gq.LabelledKFold(1)
    y[np.flatnonzero(y == -1)[0]] = 7
    with pytest.warns(UnlabelledScoreWarning, match=r"one label only of the classes \[7\]"):
        folds = list(gq.LabelledKFold(2).split(y, y))
    assert all(7 in y[train] for train, _ in folds)


def test_score_leaves_unlabelled_rows_out():
    """Accuracy would be about 0.1 if unlabelled rows counted as a class."""
    y = partly(MOONS.classes, 10)
    fitted = clone(QUICK).fit(MOONS.features, y)
    with pytest.warns(UnlabelledScoreWarning, match=r"180 of 200 rows .*cv=graphuq.LabelledKFold"):
        assert fitted.score(MOONS.features, y) > 0.9
    right = fitted.predict(MOONS.features) == MOONS.classes
    assert fitted.score(MOONS.features, MOONS.classes) == right.mean()
    weights = np.arange(200.0)
    assert fitted.score(MOONS.features, MOONS.classes, weights) == pytest.approx(
        np.average(right, weights=weights)
    )
    with pytest.warns(UnlabelledScoreWarning, match="none of the 200 rows has a label"):
        assert np.isnan(fitted.score(MOONS.features, np.full(200, -1)))
    with pytest.warns(UnlabelledScoreWarning, match="none of the 200 rows has a label"):
        assert np.isnan(gq.LabelledScorer()(fitted, MOONS.features, np.full(200, -1)))


def test_plain_splitter_warns():
    """A warning names the splitter, whose test folds contain unlabelled rows."""
    y = partly(MOONS.classes, 20)
    with pytest.warns(UnlabelledScoreWarning, match=r"left out of the score; .*LabelledKFold"):
        scores = cross_val_score(QUICK, MOONS.features, y, cv=3)
    assert scores.mean() > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnlabelledScoreWarning)
        scores = cross_val_score(QUICK, MOONS.features, y, cv=gq.LabelledKFold(3))
    assert scores.mean() > 0.9


def test_scorers_agree_with_scikit_learn():
    y = partly(MOONS.classes, 30)
    fitted = clone(QUICK).fit(MOONS.features, partly(MOONS.classes, 3, seed=1))
    rows = np.flatnonzero(y >= 0)
    probability = fitted.predict_proba(MOONS.features[rows])
    scores = {
        name: gq.LabelledScorer(name)(fitted, MOONS.features, y)
        for name in ("accuracy", "log_score", "neg_log_loss", "roc_auc")
    }
    assert scores["accuracy"] == (probability.argmax(axis=1) == y[rows]).mean()
    loss = log_loss(y[rows], np.maximum(probability, 1e-6))
    assert scores["log_score"] == pytest.approx(-loss, abs=1e-5)
    assert 0.9 < scores["roc_auc"] <= 1
    named = gq.LabelledScorer(lambda model, X, y: len(y))
    assert named(fitted, MOONS.features, y) == 60
    assert repr(gq.LabelledScorer("accuracy")) == "LabelledScorer('accuracy', missing_label=-1)"


def test_evidence_search_scores_labelled_rows():
    y = partly(MOONS.classes, 10)
    search = gq.EvidenceSearch(QUICK, {"n_neighbors": [12]}).fit(MOONS.features, y)
    with pytest.warns(UnlabelledScoreWarning):
        assert search.score(MOONS.features, y) > 0.9


def assert_near_the_best(estimator, grid, X, truth, n_each, scores, seed=0):
    """Check that parameters chosen by labelled rows are nearly the best for hidden labels."""
    y = partly(truth, n_each, seed)
    hidden, name = y == -1, "graphclassifier__n_neighbors"
    pipeline = make_pipeline(StandardScaler(with_std=X.max() > 16), estimator)
    accuracy = {}
    for k in grid:
        fitted = clone(pipeline).set_params(**{name: k}).fit(X, y)
        accuracy[k] = (fitted[-1].transduction_ == truth)[hidden].mean()
    for score in scores:
        search = GridSearchCV(
            pipeline,
            {name: grid},
            cv=gq.LabelledKFold(),
            scoring=None if score is None else gq.LabelledScorer(score),
            refit=False,
        ).fit(X, y)
        assert search.best_score_ > (0.85 if score != "log_score" else -0.5)
        # 24 labels of wine tell k apart up to four or five of 154 rows.
        assert accuracy[search.best_params_[name]] >= max(accuracy.values()) - 0.03
    return accuracy


MULTICLASS = gq.GraphClassifier(
    inference="expectation-propagation", model=gq.models.Fixed(likelihood="softmax")
)


@pytest.mark.slow
def test_grid_search_on_wine():
    X, truth = load_wine(return_X_y=True)
    accuracy = assert_near_the_best(MULTICLASS, [3, 15, 60], X, truth, 8, [None, "log_score"], 1)
    assert max(accuracy.values()) - min(accuracy.values()) > 0.03, "else any choice would do"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")  # of 3 neighbours
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("load", [load_wine, load_digits])
def test_grid_search(load, seed):
    X, truth = load(return_X_y=True)
    X, truth = X[:600], truth[:600]
    estimator = MULTICLASS
    if load is load_wine:
        estimator = gq.GraphClassifier(inference="expectation-propagation")
    assert_near_the_best(estimator, [3, 10, 20, 60], X, truth, 8, ["accuracy", "log_score"], seed)
