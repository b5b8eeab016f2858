"""``graphuq regress --counts`` and ``graphuq predict`` of counts."""

import re

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run

N = 120
X = np.linspace(0, 2 * np.pi, N)
RNG = np.random.default_rng(0)
PEOPLE = np.round(RNG.uniform(1, 20, N), 2)
RATE = 4 * np.exp(np.cos(X))
CASES = RNG.poisson(PEOPLE * RATE)
COLUMNS = ["--target-column", "cases", "--id-column", "district"]


@pytest.fixture
def csv(tmp_path):
    frame = pd.DataFrame({"district": [f"d{i}" for i in range(N)], "x": X, "double": 2 * X + 1})
    frame["people"] = PEOPLE
    frame["cases"] = [str(c) if i % 3 == 0 else "" for i, c in enumerate(CASES)]
    frame["later"] = CASES
    frame.to_csv(tmp_path / "districts.csv", index=False)
    return tmp_path / "districts.csv"


def regress(csv, out, *more):
    return run(["regress", str(csv), *COLUMNS, "--output", str(out), *more])


COUNTS = ["--counts", "--exposure-column", "people", "--truth-column", "later"]


def test_regress_and_predict(csv, tmp_path, capsys):
    out = tmp_path / "out"
    assert regress(csv, out, *COUNTS) == 0
    printed = capsys.readouterr().out
    assert "cases: 40 of 120 rows have a number" in printed
    assert re.search(r"noise of log rates 0\.\d+, field", printed)
    assert "prior Matern(" in printed
    assert "Verdict: " in printed
    table = pd.read_csv(out / "predictions.csv")
    frame = pd.read_csv(csv)
    features = frame[["x", "double"]].to_numpy()
    expected = gq.GraphRegressor(model="counts")
    expected.fit(features, frame["cases"], exposure=frame["people"])
    mean, std = expected.predict(features, return_std=True, exposure=PEOPLE)
    np.testing.assert_allclose(table["mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(table["std"], std, rtol=1e-5)
    interval = expected.predict_interval(features, exposure=PEOPLE)
    np.testing.assert_array_equal(table[["lower", "upper"]], interval)
    np.testing.assert_array_equal(table["given"].dropna(), CASES[::3])
    page = (out / "report.html").read_text()
    assert re.search(r"<b>(Verdict: .*?)</b>", page)[1] in printed

    new = pd.DataFrame({"people": [1.0, 10.0, 100.0], "double": 2 * X[10:13] + 1, "x": X[10:13]})
    new.to_csv(tmp_path / "new.csv", index=False)
    command = ["predict", str(out / "posterior.nc"), str(tmp_path / "new.csv")]
    command += ["-o", str(tmp_path / "p.csv")]
    assert run([*command, "--exposure-column", "people"]) == 0
    found = pd.read_csv(tmp_path / "p.csv")
    again = expected.predict(features[10:13], exposure=[1.0, 10.0, 100.0])
    np.testing.assert_allclose(found["mean"], again, rtol=1e-5)
    assert run(command) == 2
    assert "--exposure-column: none, and counts of the fit have exposures; name the column" in (
        capsys.readouterr().err
    )
    new.assign(people=["1", "", "3"]).to_csv(tmp_path / "new.csv", index=False)
    assert run([*command, "--exposure-column", "people"]) == 2
    assert "people: no exposure > 0 in row [1]; give a number > 0" in capsys.readouterr().err


def test_rates_in_place_of_counts(csv, tmp_path):
    more = ["--model", "Counts(noise_std=0)", "--exposure-column", "people", "--drop", "later"]
    assert regress(csv, tmp_path / "out", *more, "--quantity", "field", "--quiet") == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    read = gq.load(tmp_path / "out" / "posterior.nc")
    np.testing.assert_allclose(table["mean"], read.transduction_, rtol=1e-5)
    assert np.abs(np.log(table["mean"] / RATE)).mean() < 0.2
    assert read.noise_std_ == 0


def test_without_exposures_and_with_parts(csv, tmp_path):
    more = ["--drop", "people", "--drop", "later", "--counts", "--noise-std", "0.3", "--quiet"]
    assert regress(csv, tmp_path / "out", *more) == 0
    read = gq.load(tmp_path / "out" / "posterior.nc")
    assert (read.noise_std_, read.exposure_) == (0.3, None)
    assert read.model == gq.models.Counts(noise_std=0.3)
    command = ["predict", str(tmp_path / "out" / "posterior.nc"), str(csv)]
    command += ["-o", str(tmp_path / "p.csv"), "--id-column", "district"]
    assert run(command) == 0
    np.testing.assert_allclose(
        pd.read_csv(tmp_path / "p.csv")["mean"],
        pd.read_csv(tmp_path / "out" / "predictions.csv")["mean"],
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--exposure-column", "people"],
            "--exposure-column: given for numbers, which have none; leave it out, or use --counts",
        ),
        (
            ["--counts", "--weight-column", "people"],
            "--weight-column: given for counts, which have none; leave it out, or use --exposure",
        ),
        (["--counts", "--model", "auto"], "--counts: given beside --model auto; leave one"),
        (["--counts", "--exposure-column", "folk"], "'folk' is not among"),
        (["--counts", "--exposure-column", "district"], "district: 'd0' is not a number; give a"),
        (["--counts", "--field-std", "-1"], "field_std: -1.0 is not positive"),
    ],
)
def test_errors_are_one_line(csv, tmp_path, capsys, more, message):
    columns = ["--target-column", "cases", "--output", str(tmp_path / "out")]
    assert run(["regress", str(csv), *columns, *more, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out" / "predictions.csv").exists()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("cases", "2.5", "y: 2.5 in row 1 is no count; give whole numbers"),
        ("cases", "-3", "y: -3 in row 1 is no count"),
        ("people", "", "people: no exposure > 0 in row [1]"),
        ("people", "0", "people: no exposure > 0 in row [1]"),
        ("later", "2.5", "truth: 2.5 in row 1 is no count"),
    ],
)
def test_wrong_cells_are_named(csv, tmp_path, capsys, column, value, message):
    frame = pd.read_csv(csv, dtype=str, keep_default_na=False)
    frame.loc[1, column] = value
    frame.to_csv(csv, index=False)
    assert regress(csv, tmp_path / "out", *COUNTS, "--quiet") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "predictions.csv").exists()


def test_exposures_serve_counts_only(csv, tmp_path, capsys):
    more = ["--drop", "later", "--drop", "people", "--quiet"]
    assert regress(csv, tmp_path / "out", *more) == 0
    command = ["predict", str(tmp_path / "out" / "posterior.nc"), str(csv)]
    command += ["-o", str(tmp_path / "p.csv"), "--exposure-column", "people"]
    assert run(command) == 2
    assert "--exposure-column: given, but the fit has no counts" in capsys.readouterr().err
