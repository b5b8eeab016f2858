"""``graphuq regress`` and ``graphuq predict`` of numbers."""

import re

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run

X = np.linspace(0, 2 * np.pi, 80)
TRUTH = 3 * np.cos(X) + 20  # flat at both ends, as smooth fields on a path are


@pytest.fixture
def csv(tmp_path):
    frame = pd.DataFrame({"home": [f"h{i}" for i in range(80)], "x": X, "double": 2 * X + 1})
    frame["price"] = [f"{t:.4f}" if i % 4 == 0 else "" for i, t in enumerate(TRUTH)]
    frame.to_csv(tmp_path / "homes.csv", index=False)
    return tmp_path / "homes.csv"


def regress(csv, out, *more):
    columns = ["--target-column", "price", "--id-column", "home"]
    return run(["regress", str(csv), *columns, "--output", str(out), *more])


def test_regress_and_predict(csv, tmp_path, capsys):
    out = tmp_path / "out"
    assert regress(csv, out, "--scaling", "standard") == 0
    printed = capsys.readouterr().out
    assert "price: 20 of 80 rows have a number" in printed
    assert "Verdict: " in printed
    files = ["posterior.nc", "predictions.csv", "report.html"]
    assert sorted(path.name for path in out.iterdir()) == files
    assert all(str(out / name) in printed for name in files)
    table = pd.read_csv(out / "predictions.csv")
    columns = ["id", "mean", "std", "lower", "upper", "has_evidence", "given"]
    assert table.columns.tolist() == columns
    assert table["id"].tolist() == [f"h{i}" for i in range(80)]
    assert table["given"].notna().sum() == 20
    np.testing.assert_allclose(table["mean"], TRUTH, atol=0.4)
    assert ((table["lower"] < TRUTH) & (table["upper"] > TRUTH)).mean() > 0.8

    new = tmp_path / "new.csv"
    pd.DataFrame({"double": 2 * X[10:13] + 1.02, "x": X[10:13] + 0.01}).to_csv(new, index=False)
    predicted = tmp_path / "p.csv"
    assert run(["predict", str(out / "posterior.nc"), str(new), "-o", str(predicted)]) == 0
    predictions = pd.read_csv(predicted)
    assert predictions.columns.tolist() == columns
    np.testing.assert_allclose(predictions["mean"], 3 * np.cos(X[10:13] + 0.01) + 20, atol=0.3)


def test_the_command_gives_what_the_estimator_gives(csv, tmp_path):
    assert regress(csv, tmp_path / "out", "--quiet", "--quantity", "field", "--coverage", ".5") == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    frame = pd.read_csv(csv)
    features = frame[["x", "double"]].to_numpy()
    regressor = gq.GraphRegressor().fit(features, frame["price"])
    np.testing.assert_allclose(table["mean"], regressor.transduction_, rtol=1e-5)
    np.testing.assert_allclose(table["std"], regressor.transduction_std_, rtol=1e-4)
    interval = regressor.predict_interval(features, 0.5, quantity="field")
    np.testing.assert_allclose(table[["lower", "upper"]], interval, rtol=1e-5)
    read = gq.load(tmp_path / "out" / "posterior.nc")
    np.testing.assert_array_equal(read.transduction_, regressor.transduction_)


@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_codes_for_no_number_are_asked_about(csv, tmp_path, capsys):
    frame = pd.read_csv(csv)
    frame.loc[[1, 2, 3], "price"] = -999
    frame.to_csv(csv, index=False)
    assert "-999.0" in csv.read_text()
    assert regress(csv, tmp_path / "out") == 0
    told = capsys.readouterr().err
    assert "y: -999 is far from all other numbers" in told
    assert "or --missing-label=-999 at" in told
    assert regress(csv, tmp_path / "told", "--missing-label=-999") == 0
    told = capsys.readouterr()
    assert "-999" not in told.err
    assert "price: 20 of 80 rows have a number" in told.out


def test_report_and_true_numbers(csv, tmp_path, capsys):
    frame = pd.read_csv(csv, dtype=str, keep_default_na=False)
    frame["sold"] = [f"{t:.4f}" if i % 2 else "" for i, t in enumerate(TRUTH)]
    frame.loc[0, "home"] = "<script>alert(1)</script>"
    frame.to_csv(csv, index=False)
    assert regress(csv, tmp_path / "out", "--truth-column", "sold") == 0
    printed = capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>graphuq: homes.csv</h1>" in page
    assert "root mean square at 40 rows of known number" in page
    assert re.search(r"<b>(Verdict: .*?)</b>", page)[1] in printed
    assert "<script>alert" not in page
    read = gq.load(tmp_path / "out" / "posterior.nc")
    features = frame[["x", "double"]].apply(pd.to_numeric)
    expected = gq.GraphRegressor().fit(features, pd.to_numeric(frame["price"]))
    np.testing.assert_allclose(read.transduction_, expected.transduction_)  # never used to fit
    frame.loc[1, "sold"] = "dear"
    frame.to_csv(csv, index=False)
    assert regress(csv, tmp_path / "no", "--truth-column", "sold") == 2
    assert "sold: 'dear' is not a number" in capsys.readouterr().err


def test_no_report_no_files(csv, tmp_path, capsys, monkeypatch):
    """A report that cannot be written leaves what was there before."""
    assert regress(csv, tmp_path / "out", "--quiet") == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def full(path, *_args, **_options):
        path.write_text("a half")
        raise gq.errors.StorageError("no space left")

    monkeypatch.setattr("graphuq.report.numbers.write_page", full)
    assert regress(csv, tmp_path / "out", "--quiet", "--noise-std", "0.5") != 0
    assert "no space left" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--coverage", "90"], "coverage: 90.0; use a probability"),
        (["--noise-std", "-1"], "noise_std: -1.0 is not positive"),
        (["--drop", "prise"], "did you mean 'price'?"),
        (
            ["--n-eigenpairs", "few"],
            "n_eigenpairs: 'few' is unknown",
        ),
    ],
)
def test_errors_are_one_line(csv, tmp_path, capsys, more, message):
    assert regress(csv, tmp_path / "out", *more, "--quiet") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out" / "predictions.csv").exists()


def test_text_in_the_target_is_named(csv, tmp_path, capsys):
    csv.write_text(csv.read_text().replace(",\n", ",dear\n", 1))
    assert regress(csv, tmp_path / "out", "--quiet") == 2
    assert "price: 'dear' is not a number; leave the cell empty, or add" in capsys.readouterr().err
    assert regress(csv, tmp_path / "out", "--quiet", "--missing-label", "dear") == 0


@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_targets_however_they_are_written(csv, tmp_path, capsys):
    """Prices in dollars, and words in place of those that are not known."""
    assert regress(csv, tmp_path / "plain", "--quiet") == 0
    table = pd.read_csv(csv, dtype=str, keep_default_na=False)
    price = table["price"]
    table["price"] = np.where(price == "", "NA", "$" + price)
    table.to_csv(csv, index=False)
    assert regress(csv, tmp_path / "written", "--quiet") == 0
    assert "count as empty: 'NA' (60 in price)" in capsys.readouterr().err
    plain, written = (pd.read_csv(tmp_path / n / "predictions.csv") for n in ("plain", "written"))
    pd.testing.assert_frame_equal(plain, written)
    table["price"] = price.str.replace(".", ",")
    table.to_csv(csv, index=False, sep=";", decimal=",")
    assert regress(csv, tmp_path / "commas", "--quiet") == 0
    commas = pd.read_csv(tmp_path / "commas" / "predictions.csv")
    pd.testing.assert_frame_equal(plain, commas)


def test_weights_of_numbers(csv, tmp_path):
    frame = pd.read_csv(csv, dtype=str, keep_default_na=False)
    frame["sure"] = np.where(frame["price"] == "", "", "1")
    frame.loc[40, ["price", "sure"]] = ["90", "0"]
    frame.to_csv(csv, index=False)
    more = ["--weight-column", "sure", "--quiet"]
    assert regress(csv, tmp_path / "out", *more) == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    weights = pd.to_numeric(frame["sure"]).fillna(1.0)
    features = frame[["x", "double"]].apply(pd.to_numeric)  # ties break by the last digit
    regressor = gq.GraphRegressor().fit(features, pd.to_numeric(frame["price"]), weights)
    np.testing.assert_allclose(table["mean"], regressor.transduction_, rtol=1e-5)
    assert table["mean"].max() < 30


@pytest.mark.slow
def test_weights_of_classes(csv, tmp_path, capsys):
    frame = pd.read_csv(csv, dtype=str, keep_default_na=False)
    frame["label"] = np.where(np.arange(80) % 5 == 0, np.where(np.pi > X, "low", "high"), "")
    frame.loc[10, "label"] = "high"  # wrong
    frame["sure"] = "1"
    frame.loc[10, "sure"] = "0.001"
    frame.drop(columns="price").to_csv(csv, index=False)
    command = ["classify", str(csv), "--label-column", "label", "--id-column", "home", "--quiet"]
    command += ["--inference", "expectation-propagation", "--weight-column", "sure"]
    assert run([*command, "--output", str(tmp_path / "out")]) == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert table["label"][:20].tolist() == ["low"] * 20
    posterior = gq.load(tmp_path / "out" / "posterior.nc").result_.posterior
    assert posterior.label_weights[posterior.labelled == 10] == [0.001]
    search = ["--search", "n_neighbors=5,8", "--output", str(tmp_path / "no")]
    assert run([*command, *search]) == 2
    assert "--weight-column: given beside --search" in capsys.readouterr().err
    frame.loc[5, "sure"] = ""
    frame.drop(columns="price").to_csv(csv, index=False)
    assert run([*command, "--output", str(tmp_path / "no")]) == 2
    assert "sure: no weight >= 0 in row [5]" in capsys.readouterr().err
