"""`GraphRegressor` of counts."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, poisson
from sklearn.base import clone
from sklearn.metrics import mean_poisson_deviance as d2_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import graphuq as gq
from graphuq.classifier.regressor.answers import columns_of_fit, columns_of_rows
from graphuq.classifier.regressor.trust import held_out, left_out, trust_of
from graphuq.errors import FarRowsWarning, InvalidInput, UnlabelledScoreWarning

RNG = np.random.default_rng(0)
N = 240
X = np.linspace(0, 6, N)[:, None]
RATE = 5 * np.exp(np.sin(X[:, 0]))
EXPOSURE = RNG.uniform(1, 5, N)
ALL = RNG.poisson(RATE * EXPOSURE * np.exp(0.3 * RNG.normal(size=N) - 0.045)).astype(float)
GIVEN = np.arange(0, N, 3)
REST = np.setdiff1d(np.arange(N), GIVEN)
Y = np.full(N, np.nan)
Y[GIVEN] = ALL[GIVEN]


@pytest.fixture(scope="module")
def fitted():
    return gq.GraphRegressor(model="counts").fit(X, Y, exposure=EXPOSURE)


def test_rates_counts_and_noise(fitted):
    """Rates for an exposure of 1; counts for a given one, with the variance of Poisson."""
    assert abs(np.log(fitted.transduction_ / RATE)).mean() < 0.12
    assert 0.15 < fitted.noise_std_ < 0.45
    assert isinstance(fitted.model_, gq.models.Counts)
    rate, rate_std = fitted.predict(X, return_std=True, quantity="field")
    np.testing.assert_array_equal(rate, fitted.transduction_)
    np.testing.assert_array_equal(rate_std, fitted.transduction_std_)
    mean, std = fitted.predict(X, return_std=True, exposure=EXPOSURE)
    np.testing.assert_allclose(mean, EXPOSURE * rate)
    relative = (1 + (rate_std / rate) ** 2) * np.exp(fitted.noise_std_**2) - 1
    np.testing.assert_allclose(std**2, mean + mean**2 * relative)
    np.testing.assert_allclose(fitted.predict(X, exposure=2.0), 2 * rate)
    np.testing.assert_array_equal(fitted.exposure_, EXPOSURE)


def test_intervals_end_in_counts_and_hold_what_they_say(fitted):
    low, high = fitted.predict_interval(X, exposure=EXPOSURE).T
    assert np.all(low == np.floor(low))
    assert np.all(low >= 0)
    held = ((low <= ALL) & (high >= ALL))[REST].mean()
    assert held > 0.9 - 4 * np.sqrt(0.09 / len(REST)) - 0.03
    assert held < 0.99
    lower, upper = fitted.predict_interval(X, quantity="field").T
    assert ((lower < RATE) & (upper > RATE)).mean() > 0.75


def test_new_rows(fitted):
    new = np.array([[0.51], [1.515], [4.77]])
    mean, std = fitted.predict(new, return_std=True, exposure=[1.0, 10.0, 100.0])
    expected = 5 * np.exp(np.sin(new[:, 0])) * [1, 10, 100]
    assert np.all(np.abs(np.log(mean / expected)) < 0.4)
    assert np.all(std > np.sqrt(mean))
    with pytest.warns(FarRowsWarning, match="the mean of all numbers is predicted"):
        far = fitted.predict([[1e6]], quantity="field")
    assert 1 < far[0] < 60


def test_units_of_exposure(fitted):
    """People in thousands: rates are a thousand times as large, and counts are the same."""
    other = gq.GraphRegressor(model="counts").fit(X, Y, exposure=EXPOSURE / 1000)
    np.testing.assert_allclose(other.transduction_, 1000 * fitted.transduction_, rtol=1e-5)
    np.testing.assert_allclose(
        other.predict(X, exposure=EXPOSURE / 1000), fitted.predict(X, exposure=EXPOSURE), rtol=1e-5
    )
    assert other.log_evidence_ == pytest.approx(fitted.log_evidence_, abs=1e-4)


def test_an_exposure_of_one_is_none():
    without = gq.GraphRegressor(model="counts").fit(X, Y)
    ones = gq.GraphRegressor(model="counts").fit(X, Y, exposure=np.ones(N))
    np.testing.assert_array_equal(without.transduction_, ones.transduction_)
    assert without.exposure_ is None
    np.testing.assert_allclose(without.predict(X), without.transduction_)
    np.testing.assert_allclose(without.predict(X, exposure=3.0), 3 * without.transduction_)


def test_known_hyperparameters_are_kept():
    model = "Counts(prior=Matern(tau=0.2, alpha=3), field_std=0.7, noise_std=0)"
    found = gq.GraphRegressor(model=model).fit(X, Y, exposure=EXPOSURE)
    assert (found.noise_std_, found.field_std_) == (0.0, 0.7)
    mean, std = found.predict(X, return_std=True, exposure=EXPOSURE)
    variance = mean + (EXPOSURE * found.transduction_std_) ** 2
    np.testing.assert_allclose(std**2, variance)
    nested = gq.GraphRegressor(model="counts").set_params(model__noise_std=0.5)
    assert nested.model == gq.models.Counts(noise_std=0.5)
    pasted = clone(nested).fit(X, Y, exposure=EXPOSURE)
    again = gq.GraphRegressor(model=repr(pasted.model_)).fit(X, Y, exposure=EXPOSURE)
    np.testing.assert_allclose(again.transduction_, pasted.transduction_, rtol=0.05)


def test_leave_one_out_is_what_the_other_counts_predict(fitted):
    """Refits with the same hyperparameters and one count less."""
    fixed = gq.GraphRegressor(model=fitted.model_)
    mean, std = fixed.fit(X, Y, exposure=EXPOSURE).leave_one_out()
    for j in (0, 17, 79):
        y = Y.copy()
        y[GIVEN[j]] = np.nan
        row = slice(GIVEN[j], GIVEN[j] + 1)
        refit = fixed.fit(X, y, exposure=EXPOSURE)
        expected = refit.predict(X[row], return_std=True, exposure=EXPOSURE[row])
        assert abs(mean[j] - expected[0][0]) < 0.03 * std[j]
        assert std[j] == pytest.approx(expected[1][0], rel=0.02)


def test_the_score_is_the_mean_log_probability(fitted):
    """Over draws of the rate, which the model says is log-normal."""
    latent, rng = fitted.posterior_.latent("measurement"), np.random.default_rng(3)
    log_rate, std = np.log(EXPOSURE) + latent.mean, latent.std
    rates = np.exp(log_rate + std * rng.normal(size=(20_000, N)))
    mass = poisson.pmf(ALL, rates)
    expected = np.log(mass.mean(axis=0))[REST]
    error = (mass.std(axis=0) / mass.mean(axis=0))[REST] / np.sqrt(20_000)
    found = fitted.score(X[REST], ALL[REST], exposure=EXPOSURE[REST])
    assert abs(found - expected.mean()) < 4 * np.sqrt((error**2).mean() / len(REST)) + 1e-3
    with pytest.warns(UnlabelledScoreWarning, match="160 of 240 rows have no number"):
        partly = fitted.score(X, Y, exposure=EXPOSURE)
    assert partly == pytest.approx(fitted.score(X[GIVEN], Y[GIVEN], exposure=EXPOSURE[GIVEN]))
    twice = np.where(np.arange(len(REST)) < 2, 2.0, 0.0)
    first = fitted.score(X[REST[:2]], ALL[REST[:2]], exposure=EXPOSURE[REST[:2]])
    weighted = fitted.score(X[REST], ALL[REST], sample_weight=twice, exposure=EXPOSURE[REST])
    assert weighted == pytest.approx(first)


def test_counts_by_name_with_exposures_by_name():
    networkx = pytest.importorskip("networkx")
    path = networkx.path_graph([f"s{i}" for i in range(12)])
    people = {f"s{i}": 10.0 + i for i in range(12)}
    regressor = gq.GraphRegressor("precomputed", model="counts")
    regressor.fit(path, {"s0": 0, "s5": 30, "s11": 90}, exposure=people)
    log_rate = regressor.posterior_.latent("field").mean
    assert log_rate[0] < log_rate[5] < log_rate[11]
    np.testing.assert_array_equal(regressor.exposure_, 10.0 + np.arange(12))
    expected = regressor.predict(path, exposure=10.0 + np.arange(12))
    np.testing.assert_array_equal(regressor.predict(path, exposure=people), expected)
    by_name = regressor.score(path, dict.fromkeys(people, 4), exposure=people)
    assert by_name == regressor.score(path, [4] * 12, exposure=10.0 + np.arange(12))
    with pytest.raises(InvalidInput, match="exposure: 's12' is not a node"):
        regressor.fit(path, {"s0": 0, "s5": 30}, exposure=people | {"s12": 1.0})
    with pytest.raises(InvalidInput, match="exposure: unknown in row 11"):
        regressor.fit(path, {"s0": 0, "s5": 30}, exposure={f"s{i}": 1.0 for i in range(11)})


def test_verdict(fitted):
    """Four checks, of which the intervals are those of counts."""
    trust = trust_of(fitted)
    assert trust.level == "green"
    assert set(trust.checks) == {"numbers", "graph", "intervals", "components"}
    known, by_others = ALL[GIVEN], fitted.leave_one_out()[0]
    others = (known.sum() - known + 0.5) / (EXPOSURE[GIVEN].sum() - EXPOSURE[GIVEN])

    explained = 1 - d2_loss(known, by_others) / d2_loss(known, others * EXPOSURE[GIVEN])
    assert trust.checks["graph"].value == pytest.approx(explained)
    assert "of the deviance of the given numbers" in trust.checks["graph"].sentence
    assert trust_of(fitted, ALL).level == "green"
    shuffled = np.full(N, np.nan)
    shuffled[REST] = np.random.default_rng(0).permutation(ALL[REST])
    assert trust_of(fitted, shuffled).checks["intervals"].level == "red"
    with pytest.raises(InvalidInput, match=r"truth: 0\.5 in row 0 is no count"):
        trust_of(fitted, ALL + 0.5 - ALL[0])


def test_shares_of_few_small_counts_are_not_those_of_whole_intervals():
    """Intervals of small counts hold more than they say; the shares take that into account."""
    rng = np.random.default_rng(5)
    counts = rng.poisson(0.3, 600).astype(float)
    x = np.arange(600.0)[:, None] / 50
    y = np.where(np.arange(600) % 2 == 0, counts, np.nan)
    regressor = gq.GraphRegressor(model="counts").fit(x, y)
    found = held_out(regressor, counts)
    error = 4 * np.sqrt(0.25 / 300)
    assert found.holds(0.5).mean() > 0.5 + 2 * error
    np.testing.assert_allclose(found.shares(), [0.5, 0.8, 0.9, 0.95], atol=error)
    assert trust_of(regressor).checks["intervals"].level == "green"


def test_chance_is_that_of_simulated_counts(fitted):
    found = held_out(fitted, ALL)
    simulated = found.shares_by_chance()
    error = simulated.std(axis=0) / np.sqrt(len(simulated))
    assert np.all(np.abs(simulated.mean(axis=0) - [0.5, 0.8, 0.9, 0.95]) < 5 * error)
    assert np.all(left_out(fitted).shares_by_chance().std(axis=0) < 0.07)


def test_next_rows_have_uncertain_rates(fitted):
    free = np.setdiff1d(np.arange(N), GIVEN)
    std = fitted.posterior_.latent("field").std
    found = fitted.posterior_.most_uncertain(free, 3, np.ones(N)[free])
    assert found[0] == free[std[free].argmax()]
    seen = np.linspace(1e-3, 10, len(free))
    found = fitted.posterior_.most_uncertain(free, 9, seen)
    expected = seen * fitted.predict(X[free], quantity="field") / np.exp(fitted.noise_std_**2 / 2)
    noise = fitted.noise_std_**2 + 1 / expected  # of the logarithm of a count
    by_hand = fitted.posterior_.engine.regression.most_uncertain(free, 9, noise)
    np.testing.assert_array_equal(found, by_hand)


def test_a_file_holds_all_that_predicts(tmp_path, fitted):
    fitted.save(tmp_path / "counts.nc")
    read = gq.load(tmp_path / "counts.nc")
    assert read.get_params() == fitted.get_params()
    for exposure in (EXPOSURE, 1.0):
        np.testing.assert_array_equal(
            read.predict_interval(X, exposure=exposure),
            fitted.predict_interval(X, exposure=exposure),
        )
    assert read.log_evidence_ == fitted.log_evidence_
    np.testing.assert_array_equal(read.exposure_, EXPOSURE)
    np.testing.assert_array_equal(read.leave_one_out(), fitted.leave_one_out())
    without = gq.GraphRegressor(model="counts").fit(X, Y)
    without.save(tmp_path / "without.nc")
    assert gq.load(tmp_path / "without.nc").exposure_ is None


def test_the_table_has_counts(fitted):
    table = columns_of_fit(fitted, np.arange(N), 0.8, "measurement")
    np.testing.assert_allclose(table["mean"], fitted.predict(X, exposure=EXPOSURE))
    np.testing.assert_array_equal(table["lower"], np.floor(table["lower"]))
    np.testing.assert_array_equal(table["given"], Y)
    rates = columns_of_fit(fitted, np.arange(N), 0.8, "field")
    np.testing.assert_array_equal(rates["mean"], fitted.transduction_)
    new = columns_of_rows(fitted, X[:2] + 0.01, np.arange(2), np.array([1.0, 2.0]))
    assert np.all(np.isnan(new["given"]))
    assert np.all(new["has_evidence"])


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_a_search_and_folds():
    y = Y[GIVEN].astype(int)
    random = KFold(2, shuffle=True, random_state=0)  # in whose training rows all rows are near
    search = GridSearchCV(
        gq.GraphRegressor(model="counts"), {"n_neighbors": [5, 10]}, cv=random, error_score="raise"
    )
    search.fit(X[GIVEN], y)
    assert search.best_score_ < 0
    folds = gq.LabelledKFold(2, stratify=False)
    scores = cross_val_score(gq.GraphRegressor(model="counts"), X, Y, cv=folds)
    assert np.all(np.isfinite(scores))
    both = gq.WithUnlabelled(gq.GraphRegressor(model="counts"), X[REST]).fit(X[GIVEN], y)
    whole = gq.GraphRegressor(model="counts").fit(
        np.concatenate([X[GIVEN], X[REST]]), np.concatenate([y, np.full(len(REST), np.nan)])
    )
    np.testing.assert_allclose(both.predict(X[:5]), whole.predict(X[:5]))


@pytest.mark.parametrize("n_data", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_calibration_of_the_whole(n_data):
    """Places of counts that are not given, over simulated data with hyperparameters learnt."""
    rng, places = np.random.default_rng(7), []
    for _ in range(n_data):
        seen = rng.uniform(0.5, 4, N)
        counts = rng.poisson(RATE * seen * np.exp(0.4 * rng.normal(size=N))).astype(float)
        y = np.where(rng.uniform(size=N) < 0.4, counts, np.nan)
        found = held_out(gq.GraphRegressor(model="counts").fit(X, y, exposure=seen), counts)
        own = found.predictive
        low, high = own.up_to(found.known - 1), own.up_to(found.known)
        places.append(rng.choice(low + rng.uniform(size=len(low)) * (high - low), 40))
    assert kstest(np.concatenate(places), "uniform").pvalue > 1e-3


WRONG_INPUT = [
    (
        {"y": ALL - 0.5},
        r"y: .* in row 0 is no count; give whole numbers 0, 1, 2, …, or model='auto'",
    ),
    ({"y": -ALL - 1}, r"y: -\d+ in row 0 is no count"),
    ({"y": np.where(np.arange(N) == 4, 1e10, Y)}, r"y: 1e\+10 in row 4 is above 1e\+09; take log"),
    ({"y": 0 * Y}, "y: all 80 counts are 0, which bound no rate from below; give a count above 0"),
    ({"y": np.where(np.arange(N) == 3, Y, np.nan)}, "y: 1 counts among 240 rows"),
    ({"y": np.full(N, np.nan)}, "y: 0 counts among 240 rows"),
    (
        {"sample_weight": np.ones(N)},
        "sample_weight: given for counts, whose variance is their mean",
    ),
    (
        {"exposure": np.zeros(N)},
        r"exposure: 0 in row 0; give a number > 0 for every row, also where",
    ),
    (
        {"exposure": np.where(np.arange(N) == 7, np.nan, 1)},
        "exposure: unknown in row 7; give a numb",
    ),
    ({"exposure": np.where(np.arange(N) == 7, -2.0, 1)}, "exposure: -2 in row 7"),
    ({"exposure": np.full(N, np.inf)}, r"exposure: infinite values, such as row \[0\]"),
    ({"exposure": np.ones(3)}, "exposure: 3 values for 240 rows"),
    ({"exposure": ["many"] * N}, "exposure: 'many' is not a number; give a number > 0"),
]


@pytest.mark.parametrize(("data", "message"), WRONG_INPUT)
def test_wrong_input_is_refused_in_words(data, message):
    with pytest.raises(InvalidInput, match=message):
        gq.GraphRegressor(model="counts").fit(**({"X": X, "y": Y} | data))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("Counts(noise_std=-1)", "noise_std: -1 is not positive"),
        ("Counts(field_std=0)", "field_std: 0 is not positive"),
        ("Counts(field_std='large')", "field_std: 'large' is not a number"),
        ("Counts(Matern(tau=LogUniform(0.1, 1)))", "prior: tau of .* is a distribution"),
        ("count", "model: 'count' is unknown; use one of auto, counts"),
    ],
)
def test_wrong_models_are_refused(model, message):
    with pytest.raises(InvalidInput, match=message):
        gq.GraphRegressor(model=model).fit(X, Y)


def test_hyperparameters_that_leave_no_digits_are_refused():
    """Counts from 0 to 10⁶ at every row, a field of e^±30 and no noise."""
    y = np.random.default_rng(0).poisson(np.exp(np.linspace(0, 14, N) * (np.arange(N) % 2)))
    model = "Counts(Matern(tau=1.0, alpha=0.5), field_std=30, noise_std=0, linear_std=0)"
    with pytest.raises(InvalidInput, match=r"model: field_std 30 beside noise_std 0: variances"):
        gq.GraphRegressor(model=model).fit(X, y)


def test_wrong_questions_are_refused(fitted):
    with pytest.raises(InvalidInput, match=r"exposure: none, and counts of the fit have one; give"):
        fitted.predict(X)
    with pytest.raises(
        InvalidInput, match="exposure: given for the field, which is for an exposur"
    ):
        fitted.predict(X, quantity="field", exposure=EXPOSURE)
    with pytest.raises(InvalidInput, match="exposure: 2 values for 3 rows"):
        fitted.predict_interval(X[:3], exposure=[1.0, 2.0])
    with pytest.raises(InvalidInput, match="exposure: 0 in row 0"):
        fitted.predict(X, exposure=0)
    with pytest.raises(InvalidInput, match=r"y: .* is no count"):
        fitted.score(X, ALL + 0.5, exposure=EXPOSURE)
    numbers = gq.GraphRegressor().fit(X, Y)
    with pytest.raises(InvalidInput, match=r"exposure: given for numbers, which have none; leave"):
        numbers.predict(X, exposure=EXPOSURE)
    with pytest.raises(InvalidInput, match="exposure: given for numbers, which have none"):
        gq.GraphRegressor().fit(X, Y, exposure=EXPOSURE)


def test_counts_of_any_type_are_taken(fitted):
    mixed = pd.Series([None if np.isnan(v) else str(int(v)) for v in Y], dtype=object)
    found = gq.GraphRegressor(model="counts").fit(X, mixed, exposure=pd.Series(EXPOSURE))
    np.testing.assert_array_equal(found.transduction_, fitted.transduction_)
