"""``--encode`` and ``--impute`` of ``graphuq classify`` and ``graphuq regress``."""

import shlex

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run

ONE_MODEL = ["--model", "fixed", "--inference", "expectation-propagation"]  # quick

N = 120
RNG = np.random.default_rng(1)
CLASS = RNG.integers(0, 2, N)
WORDS = np.array([["storm", "rain", "cold", "wind"], ["sun", "beach", "warm", "sand"]])
TABLE = pd.DataFrame(
    {
        "id": [f"p{i}" for i in range(N)],
        "size": np.where(np.arange(N) % 7 == 0, np.nan, RNG.normal(CLASS, 1).round(3)),
        "zip": [f"0{k}" for k in RNG.integers(0, 3, N)],
        "colour": np.where(np.arange(N) % 11 == 0, "?", np.where(CLASS, "red", "blue")),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 60, N), "D"),
        "member": RNG.uniform(size=N) < 0.3 + 0.4 * CLASS,
        "note": [" ".join(RNG.choice(WORDS[k], 5)) for k in CLASS],
    }
)
LABELS = pd.DataFrame({"id": TABLE["id"][:12], "label": np.where(CLASS[:12], "hot", "cold")})
ENCODE = ["--encode", "--impute", "--kind", "zip=category", "--missing-value", "?", "--quiet"]


@pytest.fixture
def folder(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    TABLE.to_parquet(tmp_path / "t.parquet")
    LABELS.to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path


def classify(folder, *more, file="t.csv"):
    command = [
        "classify",
        str(folder / file),
        "--labels",
        str(folder / "labels.csv"),
        "--id-column",
    ]
    command += [
        "id",
        "--model",
        "fixed",
        "--inference",
        "expectation-propagation",
        "-o",
        str(folder / "out"),
        *more,
    ]
    code = run(command)
    return pd.read_csv(folder / "out" / "predictions.csv") if code == 0 else code


def encoder():
    return gq.TableEncoder(impute=True, kinds={"zip": "category"}, missing_values=["?"])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("file", ["t.csv", "t.parquet"])
def test_the_command_encodes_as_the_encoder_does(folder, file):
    predictions = classify(folder, *ENCODE, file=file)
    features = encoder().fit_transform(TABLE.drop(columns="id"))
    y = np.where(np.arange(N) < 12, CLASS, -1)
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation").fit(
        features, y
    )
    probability = classifier.label_distributions_.max(axis=1)
    np.testing.assert_allclose(predictions["probability"], probability, rtol=1e-5)
    assert (predictions["label"] == np.where(CLASS, "hot", "cold")).mean() > 0.95


@pytest.mark.slow
@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_predict_encodes_new_rows(folder, capsys):
    predictions = classify(folder, *ENCODE)
    capsys.readouterr()
    new = TABLE.iloc[:20, ::-1].copy()
    new.loc[0, "colour"] = "mauve"
    new.to_csv(folder / "new.csv", index=False)
    command = ["predict", str(folder / "out" / "posterior.nc"), str(folder / "new.csv")]
    assert run([*command, "--id-column", "id", "-o", str(folder / "p.csv")]) == 0
    assert (
        "did not have (colour 'mauve') count as none of the known ones" in capsys.readouterr().err
    )
    found = pd.read_csv(folder / "p.csv")
    np.testing.assert_allclose(
        found["probability"][1:], predictions["probability"][1:20], rtol=1e-5
    )
    new.drop(columns="day").to_csv(folder / "new.csv", index=False)
    assert run([*command, "--id-column", "id", "-o", str(folder / "p.csv")]) == 2
    assert "file: it lacks ['day'] of the 6 feature columns" in capsys.readouterr().err


@pytest.mark.slow
def test_components_of_encoded_columns(folder):
    classify(folder, *ENCODE, "--pca", "3")
    command = ["predict", str(folder / "out" / "posterior.nc"), str(folder / "t.csv")]
    assert run([*command, "--id-column", "id", "-o", str(folder / "p.csv")]) == 0
    found = pd.read_csv(folder / "p.csv")["label"]
    fitted = pd.read_csv(folder / "out" / "predictions.csv")["label"]
    assert (found == fitted).mean() > 0.95
    assert (found == np.where(CLASS, "hot", "cold")).mean() > 0.8


def test_regress_encodes(folder):
    price = np.where(np.arange(N) < 40, 3.0 * CLASS + RNG.normal(0, 0.1, N), np.nan)
    TABLE.assign(price=price).to_csv(folder / "t.csv", index=False)
    columns = ["--target-column", "price", "--id-column", "id"]
    command = ["regress", str(folder / "t.csv"), *columns, "-o", str(folder / "out"), *ENCODE]
    assert run(command) == 0
    features = encoder().fit_transform(TABLE.drop(columns="id"))
    regressor = gq.GraphRegressor().fit(features, price)
    mean = pd.read_csv(folder / "out" / "predictions.csv")["mean"]
    np.testing.assert_allclose(mean, regressor.transduction_, rtol=1e-4, atol=1e-5)
    posterior = str(folder / "out" / "posterior.nc")
    assert run(["predict", posterior, str(folder / "t.csv"), "-o", str(folder / "p.csv")]) == 0
    np.testing.assert_allclose(pd.read_csv(folder / "p.csv")["mean"], mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            [],
            "features: empty cells in 'size'; text or dates in 'colour', 'day', 'note'; add "
            "--encode --impute\n",
        ),
        (["--drop", "size"], "text or dates in 'colour', 'day', 'note'; add --encode\n"),
        (["--impute"], "text or dates in 'colour', 'day', 'member', 'note'; add --encode\n"),
        (["--encode"], "column 'size' has 18 empty cells, the first in row 0; fill them, or add"),
        (["--kind", "zip=text"], "--kind: given without --encode; add --encode"),
        (["--missing-value", "?"], "--missing-value: given without --encode or --impute"),
        (["--encode", "--kind", "zip"], "--kind: 'zip'; write COLUMN=KIND, as in zip=text"),
        (["--encode", "--kind", "zap=text"], "kinds: no column 'zap'"),
    ],
)
def test_errors_name_column_and_remedy(folder, capsys, more, message):
    assert classify(folder, *more) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_arrays_and_edges_have_no_such_columns(folder, capsys):
    command = ["classify", str(folder / "t.csv"), "--labels", str(folder / "labels.csv")]
    command += ["--edges", "id,zip", "--encode", "-o", str(folder / "out")]
    assert run(command) == 2
    assert "--encode: given beside --edges; leave it out" in capsys.readouterr().err
    np.save(folder / "x.npy", np.ones((N, 2)))
    assert classify(folder, "--impute", file="x.npy") == 2
    assert (
        "--impute: given beside 'x.npy'; give a .csv or .jsonl or .parquet"
        in capsys.readouterr().err
    )


def test_all_columns_that_stop_a_run_are_named_at_once(tmp_path, capsys):
    """The table of the Titanic's passengers needed three runs."""
    names = {"name": [f"Mr. {k}" for k in range(N)], "ticket": [f"A/5 {k}" for k in range(N)]}
    table = TABLE[["size", "colour", "zip"]].assign(**names, label=np.where(CLASS, "x", "y"))
    table.loc[:, "cabin no"] = [f"C{k}" if k % 3 else "" for k in range(N)]
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ["classify", str(tmp_path / "t.csv"), "--label-column", "label", "--quiet"]
    command += [*ONE_MODEL, "-o", str(tmp_path / "out")]
    assert run(command) == 2
    told = "--encode --impute --drop name --drop ticket --drop 'cabin no'"
    assert capsys.readouterr().err == (
        "graphuq: error: features: empty cells in 'size'; text or dates in 'colour'; texts like "
        f"names in 'name', 'ticket', 'cabin no'; add {told}\n"
    )
    assert run([*command, *shlex.split(told)]) == 0


@pytest.mark.parametrize(
    ("texts", "remedy"),
    [
        ([f"N{k}" for k in range(N)], "--drop a, or say what it is: --id-column a, --kind a=categ"),
        ([f"N{min(k, 90)}" for k in range(N)], "or say what it is: --kind a=categ"),
        ([""] * N, "no value in any row; add --drop a\n"),
    ],
)
def test_a_column_is_offered_as_ids_only_if_it_may_hold_them(tmp_path, capsys, texts, remedy):
    """The penguins' 'Individual ID' repeats: --id-column was offered, and refused then."""
    table = TABLE[["zip"]].assign(a=texts, label=np.where(CLASS, "x", "y"))
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ["classify", str(tmp_path / "t.csv"), "--label-column", "label", "--quiet"]
    assert run([*command, "--encode", "--impute", "-o", str(tmp_path / "out")]) == 2
    assert remedy in capsys.readouterr().err
