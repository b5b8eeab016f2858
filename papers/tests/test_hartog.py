"""Figures of Hartog and van Zanten: all are registered, and one of each kind is run."""

import numpy as np
import pandas as pd
import pytest

from graphuq.cli.app import run
from graphuq_papers.base import Context
from graphuq_papers.catalogue import PAPERS
from graphuq_papers.hartog import digits, tracking


def test_all_figures_are_registered():
    assert list(PAPERS["hartog"]) == [f"figure{k}" for k in range(1, 11)]


def test_one_figure_from_the_command_line(tmp_path, capsys):
    assert run(["reproduce", "hartog", "figure1", "--quick", "-o", str(tmp_path)]) == 0
    assert pd.read_csv(tmp_path / "figure1.csv")["labels"].tolist() == [400]
    assert (tmp_path / "figure1.png").stat().st_size > 10_000
    assert "figure1.csv" in capsys.readouterr().out


@pytest.mark.slow
def test_soft_labels_on_the_path():
    outcome = PAPERS["hartog"]["figure2"].run(Context(quick=True))
    rows = {(row["ρ"], row["quantity"]): row["converged"] for row in outcome.rows}
    for rate in (0.0, 0.1, 1.0):
        assert rows[rate, "R-hat"] < 1.05  # the text reports any value above 1.01
        assert rows[rate, "mean |soft label − ℓ₀|"] < 0.1
    k = [rows[rate, "median k"] for rate in (0.0, 0.1, 1.0)]
    assert k[0] > 5 * k[1] > 5 * k[2]
    assert rows[0.0, "coverage of 95 % intervals"] > 0.9


@pytest.mark.slow
def test_time_and_accuracy(data_folder, monkeypatch):
    def pick(self, quick, full):
        return (300, 600) if isinstance(quick, tuple) else full

    monkeypatch.setattr(Context, "pick", pick)
    monkeypatch.setattr(digits, "MAX_PAIRS", 100)
    monkeypatch.setattr(digits, "STEPS", 90)
    outcome = PAPERS["hartog"]["figure5"].run(Context(quick=True, folder=data_folder))
    converged = [row for row in outcome.rows if not row["method"].startswith("the paper's")]
    assert len(converged) == 6
    assert len(outcome.rows) == 10
    # There are 43 and 87 test images, and 0.8 is four standard errors above chance. The paper's
    # chain is too short to be compared.
    assert all(row["accuracy"] > 0.8 for row in converged)
    bounds = {"truncated, default": 1.05, "Matérn, default": 1.01, "Matérn, EP": np.inf}
    # Series end at a largest number of draws if k mixes slowly (1.018 with 300 images).
    assert all(np.nan_to_num(row["R-hat"]) < bounds[row["method"]] for row in converged)
    assert all(np.isfinite(r["exponent of time in N"]) for r in outcome.rows)


@pytest.mark.slow
def test_ball_is_tracked(monkeypatch):
    def pick(self, quick, full):
        return quick if isinstance(quick, tuple) else 100

    monkeypatch.setattr(Context, "pick", pick)
    context = Context(quick=True)
    tracking.tracked.cache_clear()
    outcomes = {k: PAPERS["hartog"][f"figure{k}"].run(context) for k in range(6, 11)}
    tracking.tracked.cache_clear()
    assert all(outcome.figure is not None for outcome in outcomes.values())
    assert np.mean([row["share in error"] for row in outcomes[9].rows]) < 0.05
    width = {row["where"]: row["mean width"] for row in outcomes[10].rows}
    assert width["outline of the ball"] > max(width["inside the ball"], width["outside the ball"])
