"""Figures of Chen: all are registered, and one of each kind is run."""

import numpy as np
import pytest

from graphuq.experiments import PAPERS, Context
from graphuq.experiments.base import write_outcome


def test_all_figures_are_registered():
    assert list(PAPERS["chen"]) == [f"figure{k}" for k in range(1, 21)]


def test_eigenvectors_of_voting(data_folder, tmp_path):
    outcome = PAPERS["chen"]["figure1"].run(Context(quick=True, folder=data_folder))
    correlations = [row["|correlation with the class|"] for row in outcome.rows]
    assert len(correlations) == 9
    assert np.argmax(correlations) == 1
    assert [p.suffix for p in write_outcome(outcome, tmp_path, "figure1")] == [
        ".csv",
        ".txt",
        ".png",
    ]


@pytest.mark.slow
def test_tau_on_voting(data_folder):
    outcome = PAPERS["chen"]["figure8"].run(Context(quick=True, folder=data_folder))
    rows = {row["quantity"]: row for row in outcome.rows}
    assert rows["seconds"]["R-hat"] < 1.015
    posterior = rows["median of tau"]
    assert 0 <= posterior["5 %"] < posterior["converged"] < posterior["95 %"] <= 40
    assert rows["accuracy"]["converged"] > 0.6
