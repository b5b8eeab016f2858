"""How commands end: exit codes, signals, cells that a spreadsheet would run."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from graphuq.cli import app
from graphuq.cli.label_files import read_labels
from graphuq.errors import GraphuqWarning
from graphuq.utils.csv_files import write_csv
from graphuq.utils.spreadsheets import FORMULA, without_formulas
from robustness import hostile


def fail(*_, **__):
    raise RuntimeError("a fault\nin two lines \x1b[31m" + hostile.LONG)


@pytest.mark.parametrize("debug", [None, "option", "variable"])
def test_a_fault_of_ours_is_one_line_and_exit_code_70(debug, tmp_path, capsys, monkeypatch):
    path = hostile.write_csv(tmp_path / "x.csv")
    monkeypatch.setattr("graphuq.cli.fitting.fit_and_write", fail)
    monkeypatch.setenv("GRAPHUQ_DEBUG", "1" if debug == "variable" else "0")
    before = ["--debug"] if debug == "option" else []
    command = ["classify", str(path), "--label-column", "label", "-o", str(tmp_path / "out")]
    assert app.run([*before, *command]) == 70
    printed = capsys.readouterr().err
    *others, last = printed.splitlines()
    assert "unexpected RuntimeError in test_endings.py line" in last or "in classify.py" in last
    assert "report it" in last
    assert len(last) <= 300
    assert last.isprintable()
    assert bool(others) == (debug is not None)
    assert ("Traceback" in printed) == (debug is not None)


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left"),
        MemoryError(),
        ImportError("libjax_common.so: failed to map segment from shared object"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 80 bytes."),
    ],
)
def test_the_system_says_no(error, tmp_path, capsys, monkeypatch):
    path = hostile.write_csv(tmp_path / "x.csv")

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("graphuq.cli.fitting.fit_and_write", refuse)
    assert app.run(["classify", str(path), "--label-column", "label", "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


SLEEP = (
    "import sys, time\n"
    "from graphuq.cli import app, demo\n"
    "def wait(*_, **__):\n    print('ready', flush=True)\n    time.sleep(60)\n"
    "import graphuq.datasets\n"
    "graphuq.datasets.load_digits = wait\n"
    "app.main(['demo', '-o', sys.argv[1]])\n"
)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    "name", ["SIGTERM", *(pytest.param(s, marks=pytest.mark.slow) for s in ("SIGINT", "SIGHUP"))]
)
def test_signals_end_a_command_as_ctrl_c_does(name, tmp_path):
    command = [sys.executable, "-c", SLEEP, str(tmp_path / "out")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout.readline() == "ready\n"
        run.send_signal(getattr(signal, name))
        assert run.wait(30) == 128 + getattr(signal, name)
        assert "interrupted; repeat the command with --resume" in run.stderr.read()
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_nohup_stays_in_force(tmp_path):
    command = ["nohup", sys.executable, "-c", SLEEP, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout.readline() == b"ready\n"
        run.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        assert run.poll() is None
        run.kill()


@pytest.mark.parametrize("start", FORMULA)
def test_cells_that_a_spreadsheet_would_run(start):
    frame = pd.DataFrame({f"{start}a": ["x", f"{start}cmd|' /C calc'!A0", ""], "n": [1.5, -2, 3]})
    with pytest.warns(GraphuqWarning, match="1 cells begin with"):
        safe = without_formulas(frame)
    assert safe.iloc[:, 0].tolist() == ["x", f"'{start}cmd|' /C calc'!A0", ""]
    assert safe.columns.tolist() == [f"'{start}a", "n"]
    assert safe["n"].tolist() == [1.5, -2, 3]


def test_numbers_as_text_stay_as_they_are(tmp_path):
    frame = pd.DataFrame({"id": ["-1", "+1", "-1e5", "a=b"], "label": ["-1", "+1", "-inf", ""]})
    pd.testing.assert_frame_equal(without_formulas(frame), frame)
    write_csv(frame, tmp_path / "x.csv")
    assert read_labels(tmp_path / "x.csv", frame["id"].to_numpy(str)).tolist() == [
        "-1", "+1", "-inf", ""]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_hostile_names_of_classes_and_rows(tmp_path, capsys):
    """Markup of terminals, mathematics, formulas, pages: all are only names."""
    names = np.array(["[/b]", r"$\frac$", "=cmd()", "<script>alert(1)</script>", "\x1b[31m"])
    labels = np.where(np.arange(40) < 15, names[np.arange(40) % 5], "")
    path = hostile.write_csv(tmp_path / "x.csv", labels=labels, id=[f"@{k}$" for k in range(40)])
    options = ["--label-column", "label", "--id-column", "id", "--inference", "laplace"]
    options += ["--model", "largest-evidence"]
    assert app.run(["classify", str(path), *options, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "[/b]" in printed.out
    assert "an apostrophe was written before each" in printed.err
    predictions = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert predictions["id"].tolist() == [f"'@{k}$" for k in range(40)]
    assert set(predictions["given"].dropna()) == {n.strip() for n in names} - {"=cmd()"} | {
        "'=cmd()"
    }
    assert "<script>alert(1)</script>" not in (tmp_path / "out" / "report.html").read_text()


def test_labels_of_ids_that_look_like_formulas_come_back(tmp_path):
    ids = ["=1+1", "@a", "'=x", "'plain'", "-1.5"]
    frame = pd.DataFrame({"id": ids, "label": ["=a", "b", "'=c", "'d", "-2"]})
    with pytest.warns(GraphuqWarning, match="cells begin with"):
        write_csv(frame, tmp_path / "x.csv")
    found = read_labels(tmp_path / "x.csv", np.array(ids)).tolist()
    assert found == frame["label"].tolist()
