"""``graphuq query`` and ``explain``: rows to label next, and why a row has its class."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run

MOONS = gq.datasets.two_moons(60, n_features=2, noise_std=0.05, rng=1)
NAMES = np.array(["left", "right"])[MOONS.classes]
IDS = np.array([f"row{k}" for k in range(60)])


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """Return the folder of a fit by the command."""
    folder = tmp_path_factory.mktemp("fit")
    table = pd.DataFrame(MOONS.features, columns=["a", "b"])
    table["name"], table["label"] = IDS, np.where(np.arange(60) < 8, NAMES, "")
    table.to_csv(folder / "moons.csv", index=False)
    command = ["classify", str(folder / "moons.csv"), "--label-column", "label"]
    options = ["--id-column", "name", "--inference", "expectation-propagation", "--quiet"]
    assert run([*command, *options, "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture
def said(capsys):
    def ask(*arguments):
        code = run([*map(str, arguments), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return ask


def test_the_help_says_how_rows_that_were_proposed_are_classified_again(said, capsys, tmp_path):
    """Both classes have four labels, which look as if someone had chosen so many of each."""
    assert run(["query", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    [model] = re.findall(r"--model '([^']+)'", words)
    table = pd.DataFrame(MOONS.features, columns=["a", "b"]).assign(label="")
    for name in ("left", "right"):
        table.loc[np.flatnonzero(name == NAMES)[:4], "label"] = name
    table.to_csv(tmp_path / "moons.csv", index=False)
    command = ["classify", tmp_path / "moons.csv", "--label-column", "label", "--quiet"]
    for more, design in ([], "by-class"), (["--model", model], "random"):
        assert said(*command, *more, "-o", tmp_path / design)[0] == 0
        stored = gq.load(tmp_path / design / "posterior.nc")
        assert stored.result_.posterior.label_design == design


@pytest.mark.parametrize("rule", ["auto", "entropy"])
def test_query_names_the_rows_of_the_classifier(rule, fit, said):
    code, found = said("query", fit / "posterior.nc", "--n", "4", "--rule", rule)
    assert code == 0
    expected = gq.load(fit / "posterior.nc").query(4, rule)
    assert [row["id"] for row in found["next"]] == IDS[expected].tolist()
    answers = pd.read_csv(fit / "predictions.csv").iloc[expected]
    assert [row["label"] for row in found["next"]] == answers["label"].tolist()
    np.testing.assert_allclose(
        [row["probability"] for row in found["next"]], answers["probability"], rtol=1e-5
    )


def test_explain_says_the_verdict_and_the_closest_labels(fit, said):
    """The correlation of a Matérn field, from the matrix of its covariances."""
    node = 33
    code, found = said("explain", fit / "posterior.nc", IDS[node])
    assert code == 0
    loaded = gq.load(fit / "posterior.nc")
    assert found["verdict"]["headline"] == loaded.result_.trust.headline
    answers = pd.read_csv(fit / "predictions.csv")
    assert found["row"]["label"] == answers["label"][node]
    assert found["row"]["rank"] == answers["rank"][node]
    shares = {one["class"]: one["probability"] for one in found["classes"]}
    assert shares["left"] == pytest.approx(answers["probability_left"][node], rel=1e-5)
    assert sum(shares.values()) == pytest.approx(1)

    basis = loaded.result_.posterior.spectrum.spectrum
    rows = np.asarray(basis.basis) * basis.node_scale[:, None]
    variances = (0.25**2 + basis.eigenvalues) ** -4.0
    variances[basis.eigenvalues == 0] = 0.0  # without the constant
    covariance = rows @ np.diag(variances) @ rows.T
    std = np.sqrt(np.diag(covariance))
    correlation = (covariance / np.outer(std, std))[node, :8]
    order = np.argsort(-correlation)[:5]
    assert [one["id"] for one in found["closest"]] == IDS[order].tolist()
    assert [one["given"] for one in found["closest"]] == NAMES[order].tolist()
    closeness = [one["closeness"] for one in found["closest"]]
    np.testing.assert_allclose(closeness, correlation[order], atol=1e-6)


def test_without_predictions_rows_have_numbers(fit, said, tmp_path):
    alone = tmp_path / "posterior.nc"
    alone.write_bytes((fit / "posterior.nc").read_bytes())
    named = said("query", fit / "posterior.nc", "--n", "3")[1]["next"]
    numbers = said("query", alone, "--n", "3")[1]["next"]
    assert [IDS[int(row["id"])] for row in numbers] == [row["id"] for row in named]
    assert said("explain", alone, "7")[1]["row"]["id"] == "7"

    (tmp_path / "predictions.csv").write_text("id,label\na,left\n")
    code, found = said("query", alone)
    assert code == 2
    assert "has 60 rows, and 'predictions.csv' beside it 1" in found["error"]["problem"]


def test_unknown_rows_and_rules(fit, said):
    code, found = said("explain", fit / "posterior.nc", "row99")
    assert (code, found["error"]["argument"]) == (2, "ID")
    assert list(found) == ["graphuq", "command", "exit_status", "error", "warnings"]
    code, found = said("query", fit / "posterior.nc", "--rule", "foo")
    assert (code, found["error"]["argument"]) == (2, "rule")
    code, found = said("query", fit / "posterior.nc", "--n", "0")
    assert code == 2
