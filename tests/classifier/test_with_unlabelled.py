"""Tools of scikit-learn that take every value of y as a class work on labelled rows alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

import graphuq as gq
from graphuq.errors import InvalidInput, MissingLabelWarning

N, N_GIVEN = 90, 18
CLASSES = np.arange(N) % 3
X = np.random.default_rng(0).normal(size=(N, 2)) + 5 * np.eye(3, 2)[CLASSES]
FEW = np.where(np.arange(N) < N_GIVEN, CLASSES, -1)
KNOWN, UNKNOWN, Y = X[:N_GIVEN], X[N_GIVEN:], CLASSES[:N_GIVEN]
CLASSIFIER = gq.GraphClassifier(model="largest-evidence", inference="expectation-propagation")
BOTH = gq.WithUnlabelled(CLASSIFIER, UNKNOWN)
OTHER = LogisticRegression()
TOOLS = {
    "calibrated": lambda each: CalibratedClassifierCV(each, cv=3),
    "voting": lambda each: VotingClassifier([("own", each), ("other", OTHER)], voting="soft"),
    "stacking": lambda each: StackingClassifier([("own", each), ("other", OTHER)], cv=3),
    "one against the rest": OneVsRestClassifier,
    "bagging": lambda each: BaggingClassifier(each, n_estimators=2, random_state=0),
    "search": lambda each: GridSearchCV(each, {"estimator__n_neighbors": [8, 15]}, cv=3),
}


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_the_fit_is_that_of_all_rows(kind):
    found = gq.WithUnlabelled(CLASSIFIER, kind(UNKNOWN)).fit(kind(KNOWN), Y)
    expected = gq.GraphClassifier(**CLASSIFIER.get_params(deep=False)).fit(kind(X), FEW)
    np.testing.assert_allclose(
        found.predict_proba(kind(X)), expected.label_distributions_, atol=1e-9
    )
    assert found.classes_.tolist() == [0, 1, 2]
    assert found.score(kind(X), CLASSES) > 0.9


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("tool", TOOLS)
def test_tools_see_the_classes_alone(tool):
    fitted = TOOLS[tool](BOTH).fit(KNOWN, Y)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.predict_proba(UNKNOWN).shape == (N - N_GIVEN, 3)
    assert (fitted.predict(UNKNOWN) == CLASSES[N_GIVEN:]).mean() > 0.85


def test_every_labelled_row_is_predicted_by_the_others():
    found = cross_val_predict(BOTH, KNOWN, Y, cv=3, method="predict_proba")
    assert found.shape == (N_GIVEN, 3)
    assert (found.argmax(axis=1) == Y).mean() > 0.8


def test_numbers_as_labels():
    truth = X.sum(axis=1)
    found = gq.WithUnlabelled(gq.GraphRegressor(), UNKNOWN).fit(KNOWN, truth[:N_GIVEN])
    expected = gq.GraphRegressor().fit(X, np.where(FEW >= 0, truth, np.nan))
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-9)
    assert not hasattr(found, "predict_proba")


def test_weights_are_those_of_the_labelled_rows():
    weights = np.linspace(0.2, 2, N_GIVEN)
    found = BOTH.fit(KNOWN, Y, weights).estimator_.label_distributions_
    expected = gq.GraphClassifier(**CLASSIFIER.get_params(deep=False))
    expected.fit(X, FEW, np.append(weights, np.ones(N - N_GIVEN)))
    np.testing.assert_allclose(found, expected.label_distributions_, atol=1e-9)


def test_rows_of_other_features_are_refused():
    for rows, said in [(UNKNOWN[:, :1], "1 columns, and X has 2"), (None, "shape ()")]:
        with pytest.raises(InvalidInput, match=f"^rows: {said}".replace("()", r"\(\)")):
            gq.WithUnlabelled(CLASSIFIER, rows).fit(KNOWN, Y)
    frames = pd.DataFrame(KNOWN, columns=["a", "b"]), pd.DataFrame(UNKNOWN, columns=["b", "a"])
    with pytest.raises(InvalidInput, match=r"give rows\[X.columns\]"):
        gq.WithUnlabelled(CLASSIFIER, frames[1]).fit(frames[0], Y)


def test_a_tool_that_numbered_unlabelled_rows_is_noticed():
    voting = VotingClassifier([("own", CLASSIFIER)])
    y = np.where(np.arange(N) < 12, CLASSES, -1)
    with pytest.warns(MissingLabelWarning, match="WithUnlabelled"):
        voting.fit(X, y)
