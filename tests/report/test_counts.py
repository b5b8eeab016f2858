"""The report and the notebook's summary of a regressor of counts."""

import re

import numpy as np
import pytest

import graphuq as gq
from graphuq.classifier.regressor.trust import trust_of
from graphuq.errors import InvalidInput
from graphuq.report import figures
from report.test_data import column, payload_of
from report.test_report import cards_of

N = 150
X = np.linspace(0, 6, N)[:, None]
RNG = np.random.default_rng(0)
PEOPLE = RNG.uniform(100, 2000, N)
COUNTS = RNG.poisson(PEOPLE * 0.01 * np.exp(np.sin(X[:, 0]))).astype(float)
GIVEN = np.arange(0, N, 3)
Y = np.full(N, np.nan)
Y[GIVEN] = COUNTS[GIVEN]


@pytest.fixture(scope="module")
def fitted():
    return gq.GraphRegressor(model="counts").fit(X, Y, exposure=PEOPLE)


@pytest.fixture(scope="module")
def without():
    return gq.GraphRegressor(model="counts").fit(X, Y)


@pytest.fixture
def no_figures(monkeypatch):
    monkeypatch.setattr(figures, "themed_pictures", lambda picture: {"light": "", "dark": ""})


def test_the_page_has_counts_and_their_intervals(fitted, tmp_path):
    gq.write_report(fitted, tmp_path / "r.html", truth=COUNTS)
    page = (tmp_path / "r.html").read_text()
    assert page.count('src="data:image/png;base64,') == 4
    cards = cards_of(page)
    assert cards["noise of log rates"][0] == f"{fitted.noise_std_:.2f}"
    free = np.setdiff1d(np.arange(N), GIVEN)
    low, high = fitted.predict_interval(X, exposure=PEOPLE).T
    inside = ((low <= COUNTS) & (high >= COUNTS))[free]
    value, words = cards["true coverage of 90 % intervals"]
    assert value == f"{100 * inside.mean():.1f} %"
    assert f"{inside.sum()} of {len(free)} numbers" in words
    mean, std = fitted.predict(X, return_std=True, exposure=PEOPLE)
    error = np.sqrt(np.mean((mean - COUNTS)[free] ** 2))
    assert cards["true error"][0] == f"{error:.1f}"
    listed = re.findall(r"<tr><td>(\d+)</td>\s*((?:<td>[^<]*</td>)+)", page)
    assert len(listed) == 20
    first = int(listed[0][0])
    shown = [f"{x:,.1f}" for x in (mean[first], std[first])]
    shown += [f"{x:.0f}" for x in (low[first], high[first])]
    assert re.findall("<td>([^<]*)</td>", listed[0][1]) == shown
    assert "Rows of uncertain rate" in page
    assert "by expectation propagation" in page
    assert "predicted value, exposure 1" in page
    assert trust_of(fitted, COUNTS).headline in page


def test_the_map_shows_rates_and_the_details_counts(fitted, without, no_figures, tmp_path):
    gq.write_report(fitted, tmp_path / "r.html")
    payload = payload_of((tmp_path / "r.html").read_text())
    low, high = fitted.predict_interval(X, exposure=PEOPLE).T
    mean, std = fitted.predict(X, return_std=True, exposure=PEOPLE)
    expected = {"mean": mean, "std": std, "given": Y, "low": low, "high": high}
    for name, values in (expected | {"field": fitted.transduction_}).items():
        np.testing.assert_array_equal(column(payload, name).view(np.float64), values)
    ends = np.quantile(fitted.transduction_, [0.02, 0.98])
    np.testing.assert_allclose(payload["ends"]["mean"], ends)
    assert (payload["decimals"], payload["field_decimals"]) == (1, 5)
    gq.write_report(without, tmp_path / "w.html")
    page = (tmp_path / "w.html").read_text()
    assert "field" not in payload_of(page)["columns"]
    assert "exposure" not in page.partition("<script")[0]


def test_true_numbers_must_be_counts(fitted, tmp_path):
    with pytest.raises(InvalidInput, match=r"truth: .* in row 0 is no count"):
        gq.write_report(fitted, tmp_path / "r.html", truth=COUNTS + 0.5)
    assert not (tmp_path / "r.html").exists()


def test_the_notebook_says_what_the_colours_are(fitted, without):
    shown = re.sub("<[^>]*>", "", fitted._repr_html_())
    assert f"noise of log rates {fitted.noise_std_:.2f}" in shown
    low, high = np.quantile(fitted.transduction_, [0.02, 0.98])
    assert f"Predicted for an exposure of 1: {low:.5f} ●●●●● {high:.5f}" in shown
    assert "Predicted: " in re.sub("<[^>]*>", "", without._repr_html_())


def test_equal_counts_have_a_report(no_figures, tmp_path):
    """All counts are 4: there is no deviation by which to round, nor to explain."""
    y = np.where(np.isnan(Y), np.nan, 4.0)
    regressor = gq.GraphRegressor(model="counts").fit(X, y)
    np.testing.assert_allclose(regressor.transduction_, 4, rtol=0.15)
    gq.write_report(regressor, tmp_path / "r.html")
    assert trust_of(regressor).headline in (tmp_path / "r.html").read_text()
