"""The report of a regression: its numbers, its verdict, and hostile names."""

import re

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import graphuq as gq
from graphuq.classifier.regressor.trust import (
    Predicted,
    check_graph,
    check_intervals,
    held_out,
    left_out,
    trust_of,
)
from graphuq.errors import InvalidInput
from graphuq.models.predictive import StudentT
from graphuq.report import data, figures, numbers
from report.test_data import HOSTILE, column, payload_of
from report.test_report import GUIDE, cards_of

X = np.linspace(0, 6, 120)[:, None]
TRUTH = 300 * np.sin(X[:, 0]) + 2000
RNG = np.random.default_rng(0)
GIVEN = np.sort(RNG.choice(120, 40, replace=False))
Y = np.full(120, np.nan)
Y[GIVEN] = TRUTH[GIVEN] + 30 * RNG.normal(size=40)


@pytest.fixture(scope="module")
def fitted():
    return gq.GraphRegressor().fit(X, Y)


@pytest.fixture
def no_figures(monkeypatch):
    monkeypatch.setattr(figures, "themed_pictures", lambda picture: {"light": "", "dark": ""})


def test_the_page_has_the_numbers_of_the_regressor(fitted, tmp_path):
    gq.write_report(fitted, tmp_path / "r.html", title="<waves & co>")
    page = (tmp_path / "r.html").read_text()
    assert "<h1>&lt;waves &amp; co&gt;</h1>" in page
    assert page.count('src="data:image/png;base64,') == 3
    assert not re.search(r'(src|href)="(?!data:)', page)
    mean, _ = fitted.leave_one_out()
    inside = left_out(fitted).holds(0.9)
    cards = cards_of(page)
    assert cards["rows, 40 of them with a given number"][0] == "120"
    assert cards["noise"][0] == f"{fitted.noise_std_:.0f}"
    assert cards["leave-one-out error"][0] == f"{np.sqrt(np.mean((Y[GIVEN] - mean) ** 2)):.0f}"
    assert cards["leave-one-out coverage of 90 % intervals"] == (
        f"{100 * inside.mean():.1f} %",
        f"leave-one-out coverage of 90 % intervals: {inside.sum()} of 40 numbers",
    )
    row = re.search(r"<td>50.0 %</td><td>(.*?) %</td></tr>", page)
    half = left_out(fitted).holds(0.5)
    assert row[1] == f"{100 * half.mean():.1f}"
    free = np.setdiff1d(np.arange(120), GIVEN)
    predicted, deviation = fitted.predict(X, return_std=True)
    widest = fitted.posterior_.engine.most_uncertain(free, 20)
    assert deviation[widest[0]] == deviation[free].max()
    listed = re.findall(r"<tr><td>(\d+)</td>\s*((?:<td>[^<]*</td>)+)", page)
    assert [int(name) for name, _ in listed] == widest.tolist()
    low, high = fitted.predict_interval(X[widest[:1]])[0]
    shown = [f"{x:,.0f}" for x in (predicted[widest[0]], deviation[widest[0]], low, high)]
    assert re.findall("<td>([^<]*)</td>", listed[0][1]) == shown
    assert f"Log evidence: {fitted.log_evidence_:.3f}" in page
    for name in ("field_std", "noise_std", "tau", "alpha"):
        assert f"<td>{name}<br>" in page
    assert page.count("weighed by the evidence") == 5
    assert trust_of(fitted).headline in page
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page, re.DOTALL)
    assert all(re.sub(r"<[^>]*>", "", cell).strip() for cell in cells)


def test_the_map_has_every_row(fitted, no_figures, tmp_path):
    gq.write_report(fitted, tmp_path / "r.html")
    payload = payload_of((tmp_path / "r.html").read_text())
    std = fitted.predict(X, return_std=True)[1]
    for name, values in {"mean": fitted.transduction_, "std": std, "given": Y}.items():
        np.testing.assert_array_equal(column(payload, name).view(np.float64), values)
        if name != "given":
            np.testing.assert_allclose(payload["ends"][name], np.quantile(values, [0.02, 0.98]))
    low, high = fitted.predict_interval(X).T
    np.testing.assert_array_equal(column(payload, "low").view(np.float64), low)
    np.testing.assert_array_equal(column(payload, "high").view(np.float64), high)
    assert not payload["is_whole"]
    assert payload["ids"] is None
    free = np.setdiff1d(np.arange(120), GIVEN)
    assert payload["next"] == fitted.posterior_.engine.most_uncertain(free, 20).tolist()


def test_a_page_of_many_rows_has_the_widest_and_the_given_ones(
    fitted, no_figures, monkeypatch, tmp_path
):
    monkeypatch.setattr(data, "MAX_BYTES", 4500)
    monkeypatch.setattr(numbers, "N_WIDE", 10)
    gq.write_report(fitted, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    nodes = column(payload_of(page), "node")
    assert 60 < len(nodes) < 120
    assert set(GIVEN) <= set(nodes)
    assert f"{len(nodes)} of 120 rows are shown" in page


def test_true_numbers_are_scored(fitted, tmp_path):
    truth = TRUTH + 30 * np.random.default_rng(1).normal(size=120)
    truth[3] = np.nan
    images = np.random.default_rng(0).uniform(size=(120, 4, 4))
    gq.write_report(fitted, tmp_path / "r.html", truth=truth, images=images)
    page = (tmp_path / "r.html").read_text()
    free = np.setdiff1d(np.arange(120), [*GIVEN, 3])
    lower, upper = fitted.predict_interval(X[free]).T
    inside = (lower <= truth[free]) & (truth[free] <= upper)
    cards = cards_of(page)
    error = np.sqrt(np.mean((fitted.transduction_ - truth)[free] ** 2))
    assert cards["true error"][0] == f"{error:.0f}"
    value, words = cards["true coverage of 90 % intervals"]
    assert value == f"{100 * inside.mean():.1f} %"
    assert f"{inside.sum()} of {len(free)} numbers" in words
    assert page.count('src="data:image/png;base64,') == 4
    assert payload_of(page)["thumbnails"]["count"] == 120
    assert f"At {len(free)} rows of known number" in page


def test_the_guide_names_every_part_of_the_page(fitted, no_figures, tmp_path):
    gq.write_report(fitted, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    parts = re.findall(r"<h2[^>]*>(.*?)</h2>|<summary>(.*?)</summary>", page)
    guide = (GUIDE.parent / "regression.md").read_text(encoding="utf-8")
    named = [heading or summary for heading, summary in parts]
    assert len(named) > 6
    assert [name for name in named if f"**{name}**" not in guide] == []


def test_hostile_names_stay_text(fitted, no_figures, tmp_path):
    ids = [HOSTILE[i % len(HOSTILE)] + str(i) for i in range(120)]
    gq.write_report(fitted, tmp_path / "r.html", title=HOSTILE[2], ids=ids)
    page = (tmp_path / "r.html").read_text()
    assert page.count("<script") == 2  # the data and the script
    assert page.count("</script>") == 2
    assert "<img src=x" not in page
    assert "<svg" not in page
    assert page.count("{{ 7 * 7 }}") >= 15  # no template reads it
    assert payload_of(page)["ids"] == ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_names": ["a", "b"]}, "class_names: given for a regressor, which has no classes"),
        ({"ids": ["a", "b"]}, "ids: 2 entries for 120 rows"),
        ({"truth": np.ones(2)}, "truth: 2 entries for 120 nodes"),
        ({"truth": np.full(120, np.inf)}, "truth: infinite values, such as row"),
        ({"images": np.zeros((5, 8, 8))}, "images: 5 entries"),
    ],
)
def test_bad_arguments_are_named(fitted, tmp_path, options, message):
    with pytest.raises(InvalidInput, match=message):
        gq.write_report(fitted, tmp_path / "r.html", **options)
    assert not (tmp_path / "r.html").exists()


def test_only_a_fitted_regressor_has_a_report(tmp_path):
    with pytest.raises(NotFittedError):
        gq.write_report(gq.GraphRegressor(), tmp_path / "r.html")


def test_a_saved_regressor_has_the_same_report(fitted, no_figures, tmp_path):
    fitted.save(tmp_path / "r.nc")
    for name, regressor in {"a": fitted, "b": gq.load(tmp_path / "r.nc")}.items():
        gq.write_report(regressor, tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    ("factor", "n", "level"),
    [(1.0, 1000, "green"), (0.75, 1000, "amber"), (0.5, 1000, "red"), (2.0, 1000, "red"),
     (0.75, 20, "green")],
)  # fmt: skip
def test_verdict_sees_the_width_of_intervals(factor, n, level):
    """Numbers at the quantiles of a normal distribution; intervals ``factor`` times as wide."""
    known = norm.ppf((np.arange(n) + 0.5) / n)
    predicted = Predicted(known, StudentT(np.zeros(n), np.full(n, factor), np.full(n, np.inf)))
    check = check_intervals(predicted, "numbers")
    assert check.level == level
    p = np.array([0.5, 0.8, 0.9, 0.95])
    off = np.abs(2 * norm.cdf(factor * norm.ppf((1 + p) / 2)) - 1 - p).max()
    assert check.value == pytest.approx(off, abs=1.5 / n)
    assert ("too narrow" in check.sentence) == (level != "green" and factor < 1)
    assert ("too wide" in check.sentence) == (level != "green" and factor > 1)


def test_chance_is_that_of_rows_that_err_together(fitted):
    """The model's errors have variance 1 and the correlations of its posterior."""
    draws = held_out(fitted, TRUTH).draws
    model = fitted.posterior_.engine
    free = np.setdiff1d(np.arange(120), GIVEN)
    phi = np.column_stack([np.asarray(model.spectrum.basis[free]), np.ones(len(free))])
    expected = phi @ model.coefficients[1] @ phi.T + model.noise_std**2 * np.eye(len(free))
    deviation = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(
        np.corrcoef(draws.T), expected / np.outer(deviation, deviation), atol=5 / np.sqrt(2000)
    )
    np.testing.assert_allclose(draws.std(axis=0), 1, atol=5 / np.sqrt(4000))


def test_leave_one_out_is_in_units_of_y(fitted):
    """Refits with the same hyperparameters and one number less."""
    fixed = gq.GraphRegressor(model=fitted.model_)
    found = left_out(fixed.fit(X, Y))
    np.testing.assert_allclose(found.known, Y[GIVEN])
    for j in (0, 17, 39):
        y = Y.copy()
        y[GIVEN[j]] = np.nan
        mean, std = fixed.fit(X, y).predict(X[GIVEN[j]][None], return_std=True)
        # The constant's prior follows mean and spread of the numbers, which a refit has without j.
        np.testing.assert_allclose(found.predictive.mean[j], mean[0], atol=0.02 * std[0])
        np.testing.assert_allclose(found.predictive.std[j], std[0], rtol=1e-3)


def test_the_graph_explains_what_the_mean_of_the_others_leaves(fitted):
    found = trust_of(fitted).checks["graph"]
    others = np.array([np.delete(Y[GIVEN], j).mean() for j in range(40)])
    left = np.sum((Y[GIVEN] - fitted.leave_one_out()[0]) ** 2)
    assert found.value == pytest.approx(1 - left / np.sum((Y[GIVEN] - others) ** 2))
    assert found.level == check_graph(0.1, "variance").level == "green"
    assert "10% of the variance" in check_graph(0.1, "variance").sentence
    assert check_graph(-0.1, "variance").level == "amber"


def test_few_numbers_and_lonely_rows_are_amber():
    apart = np.concatenate([X, X + 1000])
    y = np.concatenate([Y, np.full(120, np.nan)])
    y[GIVEN[10:]] = np.nan
    with pytest.warns(gq.errors.GraphuqWarning):
        trust = trust_of(gq.GraphRegressor().fit(apart, y))
    assert trust.checks["numbers"].level == trust.checks["components"].level == "amber"
    assert "120 of 240 rows (50.0%) have no number" in trust.checks["components"].sentence
