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
        (["--inference", "pcn"], "beside annotators, who have methods"),
        (["--likelihood", "softmax"], "beside soft labels; use 'auto' or a Probit"),
        (["--edges", "x,y"], "--annotator-columns: given beside --edges"),
    ],
)
def test_errors_are_one_line(csv, capsys, more, message):
    assert classify(csv, *more, "--quiet") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.fixture
def crowd(tmp_path):
    """Items with features, and a file with a line for each label of each person."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 60)
    items = pd.DataFrame(rng.normal(3 * truth[:, None], 1, (60, 2)), columns=["x", "y"])
    items.insert(0, "question", [f"q{n}" for n in range(60)])
    items.to_csv(tmp_path / "items.csv", index=False)
    lines = [
        (f"q{j}", name, NAMES[truth[j] if rng.uniform() < accuracy else 1 - truth[j]])
        for j in range(50)
        for name, accuracy in {"w1": 0.9, "w2": 0.8, "w3": 0.5}.items()
        if rng.uniform() < 0.8
    ]
    answers = pd.DataFrame(lines, columns=["question", "worker", "answer"])
    answers.sample(frac=1, random_state=0).to_csv(tmp_path / "answers.csv", index=False)
    return tmp_path, NAMES[truth], answers


LONG = ["--id-column", "question", "--label-column", "answer", "--annotator-column", "worker"]


def classify_crowd(folder, *more):
    command = ["classify", str(folder / "items.csv"), "--labels", str(folder / "answers.csv")]
    return run([*command, *LONG, "-o", str(folder / "out"), *more])


def test_a_line_for_each_label(crowd):
    folder, truth, answers = crowd
    assert classify_crowd(folder, "--inference", "expectation-propagation", "--quiet") == 0
    table = pd.read_csv(folder / "out" / "annotators.csv").set_index("annotator")
    counts = answers["worker"].value_counts()
    assert (table["n_labels"] == counts[table.index]).all()
    assert table["accuracy"].idxmin() == "w3"
    predictions = pd.read_csv(folder / "out" / "predictions.csv")
    assert (predictions["label"] == truth).mean() > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: pd.concat([t, t[:1]]), "labelled row 'q"),
        (lambda t: t.assign(worker=""), "--annotator-column: no name in "),
        (lambda t: t.assign(question="z"), "1 id(s) that the table lacks, such as ['z']"),
        (lambda t: t.rename(columns={"worker": "works"}), "did you mean 'works'?"),
    ],
)
def test_lines_that_cannot_be_used(crowd, change, message, capsys):
    folder, _, answers = crowd
    change(answers).to_csv(folder / "answers.csv", index=False)
    assert classify_crowd(folder) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--annotator-columns", "x,y"], "given beside"),
        (["--weight-column", "x"], "--weight-column: given beside --annotator-column"),
        (["--search", "n_neighbors=5,8"], "--search: given beside --annotator-column"),
    ],
)
def test_options_beside_a_column_of_people(crowd, more, message, capsys):
    assert classify_crowd(crowd[0], *more) == 2
    assert message in capsys.readouterr().err


def test_a_column_of_people_needs_a_file(crowd, capsys):
    folder = crowd[0]
    command = ["classify", str(folder / "items.csv"), "--label-column", "x"]
    assert run([*command, "--annotator-column", "worker", "-o", str(folder / "out")]) == 2
    assert "--annotator-column: given without --labels" in capsys.readouterr().err
