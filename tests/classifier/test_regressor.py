"""`GraphRegressor` as a scikit-learn estimator."""

import doctest
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import graphuq as gq
from graphuq.errors import (
    FarRowsWarning,
    GraphuqWarning,
    InvalidInput,
    StorageError,
    UnlabelledScoreWarning,
)

X = np.linspace(0, 6, 90)[:, None]
TRUTH = 3 * np.sin(X[:, 0]) + 20


def few_numbers(noise_std=0.3, every=4):
    y = np.full(90, np.nan)
    y[::every] = TRUTH[::every] + noise_std * np.random.default_rng(0).normal(size=len(y[::every]))
    return y


def expected_failures(_):
    reason = "a row of weight 0 stays in the graph, and a repeated row changes the graph"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks([gq.GraphRegressor()], expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphuqWarning)  # small odd graphs
        check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return gq.GraphRegressor().fit(X, few_numbers())


def test_field_and_measurements(fitted):
    error = fitted.transduction_ - TRUTH
    assert np.sqrt((error**2).mean()) < 0.3
    assert np.abs(error / fitted.transduction_std_).max() < 5
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, fitted.transduction_)
    np.testing.assert_allclose(std**2, fitted.transduction_std_**2 + fitted.noise_std_**2)
    np.testing.assert_array_equal(
        fitted.predict(X, return_std=True, quantity="field")[1], fitted.transduction_std_
    )
    np.testing.assert_array_equal(fitted.predict(X), mean)


def test_intervals(fitted):
    measurement = fitted.predict_interval(X)
    field = fitted.predict_interval(X, quantity="field")
    assert np.all(measurement[:, 0] < field[:, 0])
    assert np.all(measurement[:, 1] > field[:, 1])
    std = fitted.predict(X, return_std=True)[1]
    found = fitted.posterior_.latent("measurement")
    scale = std * np.sqrt(1 - 2 / found.degrees)
    np.testing.assert_allclose(np.diff(measurement)[:, 0], 2 * t.ppf(0.95, found.degrees) * scale)
    wide = np.diff(fitted.predict_interval(X, coverage=0.99))[:, 0]
    assert np.all(wide > 2 * norm.ppf(0.995) * std)  # tails are those of unknown hyperparameters
    fixed = gq.GraphRegressor(model=fitted.model_).fit(X, few_numbers())
    std = fixed.predict(X, return_std=True)[1]
    known = np.diff(fixed.predict_interval(X, coverage=0.99))[:, 0]
    np.testing.assert_allclose(known, 2 * norm.ppf(0.995) * std)


def test_new_rows(fitted):
    new = np.array([[0.51], [1.515], [4.77]])
    mean, std = fitted.predict(new, return_std=True)
    np.testing.assert_allclose(mean, 3 * np.sin(new[:, 0]) + 20, atol=0.5)
    assert np.all(std > fitted.noise_std_)
    with pytest.warns(FarRowsWarning, match="the mean of all numbers is predicted"):
        far = fitted.predict([[1e6]])
    assert abs(far[0] - np.nanmean(few_numbers())) < 1.0
    for rule in ("nearest", "combination"):
        other = clone(fitted).set_params(out_of_sample=rule).fit(X, few_numbers())
        np.testing.assert_allclose(other.predict(new), mean, atol=0.3)


def test_units_of_y(fitted):
    """A change of units changes every answer as it should."""
    y = 1000 * few_numbers() - 7e4
    other = gq.GraphRegressor().fit(X, y)
    np.testing.assert_allclose(other.transduction_, 1000 * fitted.transduction_ - 7e4, rtol=1e-6)
    np.testing.assert_allclose(other.transduction_std_, 1000 * fitted.transduction_std_, rtol=1e-5)
    np.testing.assert_allclose(other.noise_std_, 1000 * fitted.noise_std_, rtol=1e-5)
    n_given = int((~np.isnan(y)).sum())
    np.testing.assert_allclose(
        other.log_evidence_, fitted.log_evidence_ - n_given * np.log(1000), rtol=1e-6
    )


def test_known_hyperparameters_are_kept():
    regressor = gq.GraphRegressor(model=gq.models.Regression("Matern(tau=0.2, alpha=3)", 2.0, 0.5))
    regressor.fit(X, few_numbers())
    assert regressor.noise_std_ == pytest.approx(0.5)
    assert regressor.field_std_ == pytest.approx(2.0)
    assert regressor.prior_ == gq.priors.Matern(tau=0.2, alpha=3)
    learnt = gq.GraphRegressor(model="Regression(noise_std=0.5)").fit(X, few_numbers())
    pasted = gq.GraphRegressor(model=repr(learnt.model_)).fit(X, few_numbers())
    np.testing.assert_allclose(pasted.transduction_, learnt.transduction_, atol=0.1)
    assert pasted.log_evidence_ == pytest.approx(learnt.log_evidence_)
    nested = gq.GraphRegressor().set_params(model__noise_std=0.5)
    assert nested.model == gq.models.Regression(noise_std=0.5)
    assert learnt.noise_std_ == pytest.approx(0.5)
    assert learnt.log_evidence_ > regressor.log_evidence_


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, ""])
def test_unlabelled_in_every_spelling(missing, fitted):
    y = few_numbers()
    mixed = np.full(90, missing, dtype=object)
    mixed[~np.isnan(y)] = y[~np.isnan(y)]
    for given in (mixed, mixed.tolist(), pd.Series(mixed)):
        found = gq.GraphRegressor().fit(X, given)
        np.testing.assert_array_equal(found.transduction_, fitted.transduction_)


def test_codes_for_no_number_are_asked_about():
    y = few_numbers()
    gq.GraphRegressor().fit(X, y)  # warnings are errors
    y[[1, 2]] = -99
    with pytest.warns(GraphuqWarning, match="y: -99 is far from all other numbers; .* give NaN"):
        gq.GraphRegressor().fit(X, y)


def test_weights_of_numbers(fitted):
    y = few_numbers()
    same = gq.GraphRegressor().fit(X, y, sample_weight=np.ones(90))
    np.testing.assert_array_equal(same.transduction_, fitted.transduction_)
    spoilt = y.copy()
    spoilt[40] += 30
    without = y.copy()
    without[40] = np.nan
    weights = np.ones(90)
    fixed = {"model": gq.models.Regression("Matern(tau=0.2, alpha=3)", 2.0, 0.3, 0)}
    truth = gq.GraphRegressor(**fixed).fit(X, without).transduction_
    for weight, tolerance in ((0.0, 1e-12), (1e-6, 1e-3)):
        weights[40] = weight
        found = gq.GraphRegressor(**fixed).fit(X, spoilt, sample_weight=weights).transduction_
        np.testing.assert_allclose(found, truth, atol=tolerance)
    assert np.abs(gq.GraphRegressor(**fixed).fit(X, spoilt).transduction_ - truth).max() > 1


def test_a_graph_with_names_and_numbers_by_name():
    networkx = pytest.importorskip("networkx")
    path = networkx.path_graph([f"s{i}" for i in range(12)])
    regressor = gq.GraphRegressor("precomputed").fit(path, {"s0": 0.0, "s5": 5.5, "s11": 11.0})
    assert np.all(np.diff(regressor.transduction_) > 0)
    ready = gq.GraphRegressor(gq.graphs.from_adjacency(path)).fit(None, {"s0": 0.0, "s11": 11.0})
    assert ready.transduction_.shape == (12,)


def test_components_without_numbers_are_told():
    features = np.concatenate([X[:20], X[:20] + 1e4])
    y = np.full(40, np.nan)
    y[:20:2] = TRUTH[:20:2]
    with pytest.warns(gq.GraphuqWarning, match="component"):
        regressor = gq.GraphRegressor(n_neighbors=4).fit(features, y)
    assert regressor.has_evidence_.tolist() == [True] * 20 + [False] * 20
    assert regressor.transduction_std_[20:].min() > regressor.transduction_std_[:20].max()


def test_score_is_that_of_rows_with_a_number(fitted):
    rows = np.flatnonzero(~np.isnan(few_numbers()))
    with pytest.warns(UnlabelledScoreWarning, match="67 of 90 rows have no number"):
        partly = fitted.score(X, few_numbers())
    assert partly == pytest.approx(fitted.score(X[rows], few_numbers()[rows]))
    with pytest.warns(UnlabelledScoreWarning, match="the score is NaN"):
        assert np.isnan(fitted.score(X[:3], [np.nan] * 3))
    assert fitted.score(X, TRUTH) > 0.97


def test_a_plane_is_found_by_the_linear_part():
    """Ten numbers of a plane in six dimensions, where no row is near another one."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 6))
    truth = features @ np.arange(6) + 30
    y = np.where(np.arange(200) < 10, truth + 0.1 * rng.normal(size=200), np.nan)
    found = gq.GraphRegressor().fit(features, y)
    assert found.score(features[10:], truth[10:]) > 0.9
    assert found.linear_std_ > 2
    without = gq.GraphRegressor(model="Regression(linear_std=0)").fit(features, y)
    assert without.score(features[10:], truth[10:]) < found.score(features[10:], truth[10:]) - 0.2
    assert without.linear_std_ == 0.0
    assert gq.GraphRegressor("precomputed").fit(found.graph_.weights, y).linear_std_ == 0.0


@pytest.mark.slow
def test_in_a_pipeline_and_a_search():
    data = load_diabetes()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), gq.GraphRegressor()),
        {"graphregressor__n_neighbors": [8, 15]},
        cv=KFold(2),
    )
    search.fit(data.data[:150], data.target[:150])
    assert search.best_score_ > 0.2


def test_diabetes():
    """With 100 numbers, the other 342 are predicted, and 90 % intervals hold about nine in ten."""
    data = load_diabetes()
    y = np.full(442, np.nan)
    rows = np.random.default_rng(0).choice(442, 100, replace=False)
    y[rows] = data.target[rows]
    features = StandardScaler().fit_transform(data.data)
    regressor = gq.GraphRegressor().fit(features, y)
    rest = np.setdiff1d(np.arange(442), rows)
    assert regressor.score(features[rest], data.target[rest]) > 0.3
    interval = regressor.predict_interval(features[rest])
    inside = (interval[:, 0] < data.target[rest]) & (data.target[rest] < interval[:, 1])
    assert abs(inside.mean() - 0.9) < 4 * np.sqrt(0.09 / len(rest)) + 0.03


@pytest.mark.parametrize("arguments", [{}, {"out_of_sample": "nearest"}, {"tail_eigenvalue": 2.0}])
def test_a_file_holds_all_that_predicts(arguments, tmp_path):
    frame = pd.DataFrame({"x": X[:, 0]})
    regressor = gq.GraphRegressor(n_eigenpairs=40, **arguments)
    regressor.fit(frame, few_numbers(), sample_weight=np.linspace(0.5, 2, 90))
    regressor.save(tmp_path / "numbers.nc")
    new = pd.DataFrame({"x": [0.515, 3.03]})
    for read in (gq.load(tmp_path / "numbers.nc"), gq.GraphRegressor.load(tmp_path / "numbers.nc")):
        assert isinstance(read, gq.GraphRegressor)
        assert read.get_params() == regressor.get_params()
        np.testing.assert_array_equal(read.predict(new), regressor.predict(new))
        np.testing.assert_array_equal(
            read.predict_interval(frame), regressor.predict_interval(frame)
        )
        assert read.log_evidence_ == regressor.log_evidence_
        assert read.feature_names_in_.tolist() == ["x"]


def test_files_of_other_kinds_are_refused(fitted, tmp_path):
    classifier = gq.GraphClassifier(inference="expectation-propagation")
    classifier.fit(X, np.where(np.arange(90) % 3 == 0, TRUTH > 20, -1))
    classifier.save(tmp_path / "classes.nc")
    fitted.save(tmp_path / "numbers.nc")
    with pytest.raises(StorageError, match=r"holds no regressor; use graphuq\.load"):
        gq.GraphRegressor.load(tmp_path / "classes.nc")
    with pytest.raises(StorageError, match=r"no classifier; use graphuq\.load"):
        gq.GraphClassifier.load(tmp_path / "numbers.nc")


WRONG_INPUT = [
    ({}, {"y": ["a"] + [1.0] * 89}, "y: 'a' is not a number; give numbers, or use GraphClassifier"),
    ({}, {"y": None}, "y: requires y to be passed"),
    ({}, {"y": [np.nan] * 90}, "y: no number with a weight above zero among 90 rows"),
    ({}, {"y": [3.0] + [np.nan] * 89}, r"y: 3 is the only number at 1 row\(s\)"),
    ({}, {"y": TRUTH[:5]}, "y: 5 values; X has 90 rows"),
    ({}, {"y": [np.inf] + [1.0] * 89}, r"y: infinite values, such as row \[0\]"),
    ({}, {"sample_weight": [1.0]}, r"sample_weight: shape \(1,\) for 90 rows"),
    ({}, {"sample_weight": [-1.0] + [1.0] * 89}, r"sample_weight: \[-1.0\] in row \[0\]"),
    ({}, {"sample_weight": ["a"] * 90}, "sample_weight: type <U1"),
    ({"model": "Regression(noise_std=0.0)"}, {}, "noise_std: 0.0 is not positive"),
    ({"model": "Regression(field_std='large')"}, {}, "field_std: 'large' is not a number"),
    ({"model": "Regression(linear_std=-1)"}, {}, "linear_std: -1 is not positive; .* 0 for no"),
    ({"n_eigenpairs": "few"}, {}, "n_eigenpairs: 'few' is unknown"),
    ({"graph": "tree"}, {}, "graph: 'tree' is unknown"),
    (
        {"model": "Regression(Matern(tau=LogUniform(0.1, 1)))"},
        {},
        "prior: tau of .* is a distribution",
    ),
    ({"laplacian": "odd"}, {}, "laplacian: 'odd'"),
]


@pytest.mark.parametrize(("arguments", "data", "message"), WRONG_INPUT)
def test_wrong_input_is_refused_in_words(arguments, data, message):
    with pytest.raises(InvalidInput, match=message):
        gq.GraphRegressor(**arguments).fit(**({"X": X, "y": few_numbers()} | data))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coverage": 90.0}, r"coverage: 90\.0; use a probability"),
        ({"quantity": "noise"}, "quantity: 'noise' is unknown"),
    ],
)
def test_wrong_questions_are_refused(fitted, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        fitted.predict_interval(X, **arguments)


@pytest.mark.slow
def test_the_examples_of_the_guide_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "regression.md"
    tried = doctest.testfile(str(page), module_relative=False)
    assert tried.attempted > 10
    assert tried.failed == 0
