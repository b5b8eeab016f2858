"""``graphuq classify --annotator-columns``: labels by several people."""

import numpy as np
import pandas as pd
import pytest

from graphuq.cli.app import run

MOONS_SEED, N_ROWS = 0, 40
NAMES = np.array(["left", "right"])


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(MOONS_SEED)
    truth = rng.integers(0, 2, 100)
    frame = pd.DataFrame(rng.normal(3 * truth[:, None], 1, (100, 2)), columns=["x", "y"])
    for name, accuracy in {"ann": 0.95, "bob": 0.2}.items():
        right = rng.uniform(size=N_ROWS) < accuracy
        labels = np.full(100, "", dtype=object)
        labels[:N_ROWS] = NAMES[np.where(right, truth[:N_ROWS], 1 - truth[:N_ROWS])]
        frame[name] = labels
    frame.loc[0, "bob"] = "?"
    frame["truth"] = NAMES[truth]
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def classify(csv, *more):
    columns = ["--annotator-columns", "ann, bob", "--truth-column", "truth"]
    out = str(csv.parent / "out")
    return run(["classify", str(csv), *columns, "--missing-label", "?", "-o", out, *more])


@pytest.mark.slow
def test_accuracies_and_classes_are_written(csv, capsys):
    assert classify(csv, "--n-samples", "300", "--n-warmup", "200", "--thin", "4") == 0
    out = csv.parent / "out"
    table = pd.read_csv(out / "annotators.csv")
    assert table.columns.tolist() == ["annotator", "n_labels", "accuracy", "lower", "upper"]
    assert table["annotator"].tolist() == ["ann", "bob"]
    assert table["n_labels"].tolist() == [N_ROWS, N_ROWS - 1]
    np.testing.assert_allclose(table["accuracy"], [0.95, 0.2], atol=0.15)
    assert "ann: " in capsys.readouterr().out
    frame, predictions = pd.read_csv(csv), pd.read_csv(out / "predictions.csv")
    assert (predictions["label"] == frame["truth"]).mean() > 0.9
    assert predictions["given"][1] == f"{frame['ann'][1]}; {frame['bob'][1]}"
    assert predictions["given"][0] == frame["ann"][0]

    command = ["predict", str(out / "posterior.nc"), str(csv), "-o", str(csv.parent / "p.csv")]
    assert run(command) == 0
    assert (pd.read_csv(csv.parent / "p.csv")["label"] == predictions["label"]).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--label-column", "truth"], "--label-column: given beside --annotator-columns"),
        (["--labels", "x.csv"], "--labels: given beside --annotator-columns"),
        (["--weight-column", "x"], "--weight-column: given beside --annotator-columns"),
        (["--search", "n_neighbors=5,8"], "--search: given beside --annotator-columns"),
        (["--max-classes", "4"], "--max-classes: given beside --annotator-columns"),
        (["--annotator-columns", "ann,ann"], "--annotator-columns: 'ann,ann'; name different"),
        (["--annotator-columns", "ann,bub"], "did you mean 'bob'?"),
        (["--inference", "pcn"], "beside annotators, who have a sampler"),
        (["--likelihood", "softmax"], "beside soft labels; use 'auto' or a Probit"),
        (["--edges", "x,y"], "--annotator-columns: given beside --edges"),
    ],
)
def test_errors_are_one_line(csv, capsys, more, message):
    assert classify(csv, *more, "--quiet") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
