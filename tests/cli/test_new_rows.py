"""Files of new rows that differ from that of the fit: what is wrong, by column, row and cell."""

import numpy as np
import pandas as pd
import pytest

from graphuq.cli.app import run

RNG = np.random.default_rng(0)
SEX = np.arange(60) % 2
HEIGHT, AGE = 165 + 12 * SEX + RNG.normal(0, 6, 60), RNG.uniform(20, 60, 60)
FIT = pd.DataFrame({"Height": HEIGHT, "Age": AGE})
NEW = FIT.iloc[:12] + 0.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit")
    FIT.assign(sex=np.where(np.arange(60) < 20, SEX.astype(str), "")).to_csv(path / "t.csv")
    for name, more in (("plain", []), ("encoded", ["--encode"])):
        command = ["classify", path / "t.csv", "--label-column", "sex", "-o", path / name, *more]
        command += ["--model", "fixed", "--inference", "expectation-propagation", "--quiet"]
        assert run([str(word) for word in command]) == 0
    return path


def with_cell(text):
    changed = NEW.astype(object)
    changed.iloc[3, 0] = text
    return changed


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (with_cell("171 cm"), "column 'Height' holds '171 cm' in row 3, which is no finite number"),
        (with_cell("tall"), "column 'Height' holds 'tall' in row 3, which is no finite number"),
        (with_cell("inf"), "column 'Height' holds 'inf' in row 3, which is no finite number"),
        (with_cell(""), "column 'Height' has 1 empty cell, the first in row 3"),
        (NEW.rename(columns=str.lower), "it lacks ['Height', 'Age'] of the 2 feature columns, but"),
        (NEW.drop(columns="Age"), "it lacks ['Age'] of the 2"),
    ],
)
@pytest.mark.parametrize("fit", ["plain", "encoded"])
def test_what_is_wrong_is_named(folder, fit, table, words, capsys):
    table.to_csv(folder / "new.csv", index=False)
    command = ["predict", folder / fit / "posterior.nc", folder / "new.csv", "-o", folder / "n.csv"]
    assert run([str(word) for word in command]) == 2
    said = capsys.readouterr().err
    if fit == "plain" or not words.startswith("it lacks"):
        assert words in said
    assert not (folder / "n.csv").exists()


@pytest.mark.parametrize("fit", ["plain", "encoded"])
@pytest.mark.filterwarnings("default::graphuq.errors.FarRowsWarning")
def test_metres_in_place_of_centimetres_are_named(folder, fit, capsys):
    NEW.assign(Height=NEW.Height / 100).to_csv(folder / "metres.csv", index=False)
    command = ["predict", folder / fit / "posterior.nc", folder / "metres.csv"]
    assert run([str(word) for word in [*command, "-o", folder / f"{fit}.csv"]]) == 0
    assert "12 of 12 rows, such as row 0, have values far outside those of the fit, in column " + (
        "'Height'; if units"
    ) in (capsys.readouterr().err)


@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_edges_that_are_given_as_features_are_suspected(folder, capsys):
    ends = pd.DataFrame(RNG.integers(0, 20, (60, 2)), columns=["Source", "Target"])
    ends.assign(Weight=1.5, kind=["a", "b", ""] * 20).to_csv(folder / "e.csv", index=False)
    command = ["classify", str(folder / "e.csv"), "--label-column", "kind", "-o", str(folder / "e")]
    assert run([*command, "--model", "fixed", "--inference", "expectation-propagation"]) == 0
    assert "if each row is an edge, add --edges Source,Target,Weight" in capsys.readouterr().err
