"""``graphuq classify --ordered`` and ``--class-order``: grades in a file."""

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run

GRADES = ["low", "mid", "high"]


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 90)
    codes = np.digitize(x + 0.2 * rng.normal(size=90), [-0.7, 0.7])
    given = rng.uniform(size=90) < 0.25
    frame = pd.DataFrame({"x": x, "z": 0.3 * rng.normal(size=90)})
    frame["grade"] = np.where(given, np.array(GRADES)[codes], "")
    frame["stars"] = np.where(given, np.array(["2", "9", "10"])[codes], "")
    frame["truth"] = np.array(GRADES)[codes]
    frame["true_stars"] = np.array(["2", "9", "10"])[codes]
    frame.to_csv(tmp_path / "grades.csv", index=False)
    return tmp_path / "grades.csv"


def classify(csv, *more, column="grade", truth="truth"):
    other = {"grade": "stars", "stars": "grade"}[column]
    left = {"truth": "true_stars", "true_stars": "truth"}[truth]
    columns = ["--label-column", column, "--truth-column", truth, "--drop", other, "--drop", left]
    return run(["classify", str(csv), *columns, "-o", str(csv.parent / "out"), *more])


def test_grades_of_a_file(csv, capsys):
    assert classify(csv, "--class-order", "low,mid, high") == 0
    out, frame = csv.parent / "out", pd.read_csv(csv)
    table = pd.read_csv(out / "predictions.csv")
    shown = [name for name in table.columns if name.startswith("probability_")]
    assert shown == [f"probability_{name}" for name in GRADES]
    assert (table["label"] == frame["truth"]).mean() > 0.8
    assert "accuracy" in capsys.readouterr().out.lower()
    assert (out / "report.html").is_file()
    again = gq.load(out / "posterior.nc")
    assert again.ordered == GRADES
    assert again.classes_.tolist() == GRADES
    features = frame[["x", "z"]].to_numpy()
    y = np.where(frame["grade"].isna(), None, frame["grade"])
    direct = gq.GraphClassifier(ordered=GRADES).fit(features, y)
    assert table[shown].to_numpy() == pytest.approx(direct.label_distributions_, abs=1e-4)
    command = ["predict", str(out / "posterior.nc"), str(csv), "-o", str(csv.parent / "p.csv")]
    assert run([*command, *(f"--drop={n}" for n in frame.columns[2:])]) == 0
    assert (pd.read_csv(csv.parent / "p.csv")["label"] == table["label"]).all()


def test_numbers_have_their_own_order(csv):
    assert classify(csv, "--ordered", "--quiet", column="stars", truth="true_stars") == 0
    again = gq.load(csv.parent / "out" / "posterior.nc")
    assert again.classes_.tolist() == ["2", "9", "10"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--ordered"], "--ordered: given beside classes that are text: ['high', 'low', 'mid']"),
        (["--class-order", "low,high"], "without the label ['mid']"),
        (["--class-order", "low,low"], "name different classes"),
        (["--class-order", "low,mid,high", "--positive", "high"], "--positive: given beside"),
        (["--class-order", "low,mid,high", "--search", "tau=0.1:1"], "--search: given beside"),
        (["--class-order", "low,mid,high", "--inference", "pcn"], "inference"),
        (["--class-order", "low,mid,high", "--prior", "matern"], "model"),
        (["--class-order", "low,mid,high", "--store", "s"], "--class-order"),
    ],
)
def test_wrong_options_are_refused(csv, capsys, more, words):
    assert classify(csv, *more) == 2
    assert words in capsys.readouterr().err
    assert not (csv.parent / "out" / "predictions.csv").exists()
