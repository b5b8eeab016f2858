"""``--json``: one object with the facts of the text, and errors with codes."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import typer

import graphuq as gq
from graphuq.cli import app as commands
from graphuq.cli.app import app, run
from graphuq.cli.facts import Facts, plain, the_facts
from graphuq.cli.remedies import at_command_line
from graphuq.errors import InvalidInput
from robustness import hostile

QUICK = ["--model", "largest-evidence", "--inference", "laplace"]


@pytest.fixture
def csv(tmp_path):
    moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.05, rng=1)
    names = np.array(["left", "right"])[moons.classes]
    table = pd.DataFrame(moons.features, columns=["a", "b"])
    table["truth"], table["label"] = names, np.where(np.arange(60) < 8, names, "")
    table.to_csv(tmp_path / "moons.csv", index=False)
    return tmp_path / "moons.csv"


@pytest.fixture
def said(capsys):
    """Return a function that runs a command with ``--json``: exit code, object, text of stderr."""

    def ask(*arguments):
        capsys.readouterr()
        code = run([*map(str, arguments), "--json"])
        printed = capsys.readouterr()
        return code, json.loads(printed.out), printed.err

    return ask


def test_every_command_has_the_option():
    group = typer.main.get_command(app)
    names = group.list_commands(None)
    names.remove("mcp")  # all that it prints is JSON, of the protocol
    assert {"classify", "map", "label-user", "track"} <= set(names)
    for name in names:
        options = [o for p in group.get_command(None, name).params for o in p.opts]
        assert options.count("--json") == 1, name


def test_the_object_has_what_the_text_says_and_the_file_holds(csv, said, capsys):
    command = ["classify", csv, "--label-column", "label", "--truth-column", "truth", *QUICK]
    out = csv.parent / "out"
    assert run([*map(str, command), "-o", str(out)]) == 0
    text = capsys.readouterr().out
    code, found, _ = said(*command, "-o", csv.parent / "again")
    assert (code, found["exit_status"], found["command"]) == (0, 0, "classify")
    assert found["graphuq"] == gq.__version__
    result = gq.load(out / "posterior.nc").result_

    assert found["read"] == text.splitlines()[0]
    assert found["verdict"]["headline"] in text
    checks = found["verdict"]["checks"]
    assert checks.pop("calibration")["level"] in ("green", "amber", "red")
    expected = plain(dict(result.trust.checks))
    for check in expected.values():  # what to do is said by options
        check["sentence"] = at_command_line(check["sentence"], {})
    assert checks == expected
    for check in checks.values():
        assert (f"- {check['sentence']}" in text) == (check["level"] != "green")

    rows = pd.DataFrame(found["classes"]).set_index("class")
    answers = pd.read_csv(out / "predictions.csv")
    assert rows["inferred"].to_dict() == answers["label"].value_counts().to_dict()
    assert rows["given"].to_dict() == answers["given"].value_counts().to_dict()
    means = answers.groupby("label")["probability"].mean()
    np.testing.assert_allclose(rows["mean_probability"], means[rows.index], rtol=1e-5)

    hidden = answers["given"].isna()
    truth = pd.read_csv(csv)["truth"]
    accuracy = (answers["label"] == truth)[hidden].mean()
    assert found["scores"]["accuracy"] == pytest.approx(accuracy)
    assert f"accuracy {accuracy:.4f}" in text
    left = found["errors_left"]
    assert f"about {left['expected']:.0f} of {left['n']} unlabelled nodes" in text
    assert left["expected"] == pytest.approx((1 - answers["probability"][hidden]).sum(), rel=1e-4)
    assert found["settings"] == plain(dict(result.settings))
    written = {str(path) for path in (csv.parent / "again").iterdir()}
    assert set(found["files"]) == written
    assert sorted(re.findall(r"^  (\S.*)$", text, re.M)) == sorted(
        path.replace("again", "out") for path in written
    )


@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_progress_and_warnings_are_beside_the_object(csv, said):
    command = ["classify", csv, "--label-column", "label", "--drop", "truth", *QUICK]
    table = pd.read_csv(csv, keep_default_na=False)
    table.insert(0, "row", range(60))
    table.to_csv(csv, index=False)
    code, found, errors = said(*command, "-o", csv.parent / "out")
    assert code == 0
    assert "error" not in found
    by_code = {one["code"]: one["message"] for one in found["warnings"]}
    assert "'row' numbers the rows" in by_code["graphuq-warning"]
    assert by_code["graphuq-warning"] in errors
    quiet = said(*command, "-o", csv.parent / "out", "--quiet")[1]
    assert quiet["verdict"] == found["verdict"]  # it is a matter of lines


def test_regress_and_predict(csv, said):
    out = csv.parent / "out"
    columns = ["--target-column", "a", "--drop", "truth", "--drop", "label"]
    table = pd.read_csv(csv)
    table.loc[30:, "a"] = np.nan
    table.to_csv(csv, index=False)
    code, found, _ = said("regress", csv, *columns, "-o", out)
    assert code == 0
    assert (found["n_given"], found["n_rows"]) == (30, 60)
    loaded = gq.load(out / "posterior.nc")
    assert found["noise_std"] == pytest.approx(loaded.noise_std_)
    assert set(found["verdict"]["checks"]) == {"numbers", "graph", "intervals", "components"}

    new = csv.parent / "new.csv"
    code, found, _ = said("predict", out / "posterior.nc", csv, "-o", new)
    assert (code, found["n_rows"], found["files"]) == (0, 60, [str(new)])
    assert len(pd.read_csv(new)) == 60


def test_small_commands(tmp_path, said, monkeypatch):
    code, found, _ = said("datasets")
    assert code == 0
    assert {row["name"] for row in found["datasets"]} >= {"digits", "voting"}
    csv = tmp_path / "digits.csv"
    found = said("datasets", "digits", "--n-each", "3", "--csv", csv)[1]
    assert (found["n_rows"], found["files"]) == (30, [str(csv)])

    monkeypatch.setattr("graphuq.cli.labelling_team._password", lambda name: "a long password")
    found = said("label-user", tmp_path / "users.json", "ada")[1]
    assert (found["user"], found["removed"]) == ("ada", False)
    assert said("label-user", tmp_path / "users.json", "ada", "--remove")[1]["removed"] is True


def test_added_commands_say_what_they_wrote(tmp_path, said):
    code, found, _ = said("moving-ball", tmp_path / "ball")
    assert code == 0
    assert found["n_frames"] == len(found["files"]) == len(list((tmp_path / "ball").iterdir()))
    rows = said("reproduce", "chen", "--list")[1]["experiments"]
    assert {"paper": "chen", "name": "figure1"}.items() <= rows[0].items()


@pytest.mark.parametrize(
    ("arguments", "code", "argument"),
    [
        (["classify", "a.csv"], "invalid-input", "--label-column"),
        (["classify", "--nonsense"], "usage", "--nonsense"),
        (["classify"], "usage", "FILE"),
        (["demo", "--random-state", "x"], "usage", "--random-state"),
        (["nothing"], "usage", None),
        (["predict", "a.nc", "b.csv"], "storage-error", None),
    ],
)
def test_errors(arguments, code, argument, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, found, errors = said(*arguments)
    assert status == found["exit_status"] == 2
    error = found["error"]
    assert (error["code"], error["argument"]) == (code, argument)
    assert error["message"] in errors
    if code == "invalid-input":
        parts = (error["argument"], error["problem"], error["remedy"])
        assert error["message"] == str(InvalidInput(*parts))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (OSError(28, "No space left"), "system", 2),
        (MemoryError(), "no-memory", 2),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), "no-memory", 2),
        (RuntimeError("a fault"), "fault", 70),
        (KeyboardInterrupt(), "interrupted", 130),
        (gq.errors.IncompatibleParts("no"), "incompatible-parts", 2),
        (gq.errors.MissingPackage("faiss-cpu", "neighbors"), "missing-package", 2),
    ],
)
def test_errors_of_a_run(error, code, status, said, tmp_path, monkeypatch):
    path = hostile.write_csv(tmp_path / "x.csv")

    def fail(*_, **__):
        raise error

    monkeypatch.setattr("graphuq.cli.fitting.fit_and_write", fail)
    found = said("classify", path, "--label-column", "label", "-o", tmp_path / "out")
    assert found[0] == found[1]["exit_status"] == status
    assert found[1]["error"]["code"] == code
    if code == "missing-package":
        assert found[1]["error"]["remedy"] == "run pip install 'graphuq[neighbors]'"
    assert code in {*commands.CODES, error.code if hasattr(error, "code") else ""}


def test_help_stays_text(capsys):
    assert run(["predict", "--help", "--json"]) == 0
    assert "Usage: graphuq predict" in capsys.readouterr().out


def test_values_that_json_lacks():
    values = {"a": float("nan"), "b": np.array([[1, 2]]), "c": {1: (np.float32(0.5),)}}
    assert json.loads(json.dumps(plain(values), allow_nan=False)) == {
        "a": None,
        "b": [[1, 2]],
        "c": {"1": [0.5]},
    }


def test_a_line_can_name_facts_only():
    with pytest.raises(KeyError):
        Facts().say("{b}", a=1)
    assert the_facts().found == {}  # no command runs


def test_a_reader_that_closes_the_pipe_is_no_fault(tmp_path):
    """As in ``graphuq … --json | head -c 1``: no traceback, and the exit code of the command."""
    command = [sys.executable, "-c", "from graphuq.cli import main; main()", "classify"]
    options = ["nowhere.csv", "--label-column", "kind", "--json"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as running:
        running.stdout.close()
        error = running.stderr.read().decode()
    assert running.returncode == 2
    assert "there is no file" in error
    assert "Traceback" not in error
    assert "BrokenPipe" not in error
