"""Checking labels is a main road: every row, or every row of a component, may be labelled."""

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import main

N = 40
CLASSES = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 3)) + 4 * CLASSES[:, None]
WRONG = 8
GIVEN = np.where(np.arange(N) == WRONG, 1 - CLASSES, CLASSES)
APART = X + 80 * CLASSES[:, None]
METHODS = {
    "expectation propagation": {"inference": "expectation-propagation"},
    "default": {},
    "laplace": {"model": "largest-evidence", "inference": "laplace"},
    "draws": {
        "model": "largest-evidence",
        "inference": gq.inference.MCMC("exact-hamiltonian", n_samples=60),
    },
}
LABELS = {
    "all": (X, GIVEN),
    "a component": (APART, np.where(np.arange(N) < 12, CLASSES, np.where(CLASSES == 0, 0, -1))),
}
pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("method", METHODS)
def test_every_output_works(method, labels, tmp_path):
    features, y = LABELS[labels]
    classifier = gq.GraphClassifier(n_neighbors=8, **METHODS[method]).fit(features, y)
    result, n_labels = classifier.result_, int((y >= 0).sum())
    assert "Verdict" in str(result)
    assert result.trust.level in ("green", "amber", "red")
    table = result.to_dataframe()
    assert table["given"].notna().sum() == n_labels
    suspects = classifier.suspect_labels()
    assert len(suspects) == n_labels
    if labels == "all":
        assert suspects["node"].iloc[0] == WRONG
        assert len(classifier.query(3)) == 0
        assert gq.expected_errors(result).expected == 0
    for name in ("plot_certainty", "plot_embedding", "plot_order"):
        getattr(gq.plots, name)(result)
    gq.write_report(result, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert gq.to_arviz(result) is not None
    classifier.save(tmp_path / "fit.nc")
    again = gq.load(tmp_path / "fit.nc")
    assert str(again.result_) == str(result)
    assert classifier.predict_table(features[:3] + 0.01)["label"].notna().all()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["classify", "regress"])
def test_commands_work(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    label = np.array(["a", "b"])[GIVEN] if command == "classify" else X[:, 0]
    pd.DataFrame(X, columns=list("xyz")).assign(label=label).to_csv("all.csv", index=False)
    column = "--label-column" if command == "classify" else "--target-column"
    with pytest.raises(SystemExit) as ended:
        main([command, "all.csv", column, "label", "--output", "out"])
    assert ended.value.code == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert table["given"].notna().all()
    assert (tmp_path / "out" / "report.html").exists()


def test_numbers_at_every_row(tmp_path):
    regressor = gq.GraphRegressor().fit(X, X[:, 0])
    gq.write_report(regressor, tmp_path / "report.html")
    assert np.isfinite(regressor.predict(X + 0.01)).all()
