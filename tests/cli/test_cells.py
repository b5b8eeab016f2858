"""``graphuq classify cells.h5ad``: types of cells, in tables and in the file itself."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.cli.app import run
from graphuq.external.h5ad import read_h5ad

REASON = "pip install graphuq[anndata], to read .h5ad files"
FAST = ["--model", "fixed", "--inference", "expectation-propagation", "--quiet"]
DIGITS = gq.datasets.load_digits((4, 9))
NAMES = np.array(["four", "nine"])[DIGITS.target]


@pytest.fixture
def h5ad(tmp_path):
    anndata = pytest.importorskip("anndata", reason=REASON)
    few = np.where(np.arange(361) < 8, NAMES, "Unknown")
    names = pd.Index([f"cell{k}" for k in range(361)], dtype=object)
    graph = gq.graphs.knn_graph(DIGITS.data, 10)
    cells = anndata.AnnData(
        DIGITS.data.astype(np.float32),
        obs=pd.DataFrame({"few": pd.Categorical(few), "truth": NAMES}, index=names),
        obsm={"X_pca": DIGITS.data[:, ::2]},
        obsp={"connectivities": sparse.csr_matrix(graph.weights)},
        uns={"neighbors": {"connectivities_key": "connectivities"}},
    )
    cells.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("more", [[], ["--use-rep", "X_pca", "--n-neighbors", "8"]])
def test_cells_are_classified_and_written_back(more, h5ad, tmp_path):
    out = tmp_path / "out"
    columns = ["--label-column", "few", "--truth-column", "truth", "--positive", "four"]
    assert run(["classify", str(h5ad), *columns, "-o", str(out), *FAST, *more]) == 0
    table = pd.read_csv(out / "predictions.csv", index_col="id")
    written = read_h5ad(out / "cells.h5ad")
    assert written.obs_names.tolist() == table.index.tolist()
    labels = written.obs["gq_label"].astype(str)
    assert (labels.to_numpy() == table["label"].to_numpy()).all()
    assert (labels.to_numpy() == NAMES).mean() > 0.9
    np.testing.assert_allclose(written.obs["gq_probability"], table["probability"], rtol=1e-4)
    best = written.uns["gq"]["types"][written.obsm["gq_probabilities"].argmax(axis=1)]
    assert (best == labels.to_numpy()).all()
    assert written.uns["gq"]["n_labelled"] == 8
    assert written.obs["gq_given"].notna().sum() == 8


@pytest.mark.filterwarnings("default")
def test_places_that_are_not_used_are_named(h5ad, tmp_path, capsys):
    cells = read_h5ad(h5ad)
    cells.obsm["spatial"] = DIGITS.data[:, :2]
    cells.write_h5ad(h5ad)
    columns = ["--label-column", "few", "-o", str(tmp_path / "out")]
    assert run(["classify", str(h5ad), *columns, *FAST]) == 0
    message = " ".join(capsys.readouterr().err.split())
    assert "obsm['spatial']: graphuq classify does not use places of cells" in message


@pytest.mark.slow
def test_cells_are_in_the_set_of_outputs(h5ad, tmp_path, monkeypatch):
    """If they cannot be written, all older results stay."""
    out = tmp_path / "out"
    command = ["classify", str(h5ad), "--label-column", "few", "-o", str(out), *FAST]
    assert run(command) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("graphuq.cli.cells.write_h5ad", fail)
    assert run([*command, "--positive", "four"]) == 2
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.slow
def test_types_from_a_second_file(h5ad, tmp_path):
    labels = tmp_path / "labels.csv"
    frame = pd.DataFrame({"id": [f"cell{k}" for k in range(8)], "label": NAMES[:8]})
    frame.to_csv(labels, index=False)
    out = ["-o", str(tmp_path / "out")]
    assert run(["classify", str(h5ad), "--labels", str(labels), *out, *FAST]) == 0
    written = read_h5ad(tmp_path / "out" / "cells.h5ad")
    assert (written.obs["gq_given"].to_numpy()[:8] == NAMES[:8]).all()
    assert written.obs["gq_label"].astype(str).to_numpy()[0] == NAMES[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--n-neighbors", "5"], "--n-neighbors: given beside the graph of the cells"),
        (
            ["--use-rep", "X_vi"],
            "use_rep: 'X_vi' is not in adata.obsm; use 'X' or one of ['X_pca']",
        ),
        (["--neighbors-key", "mine"], "no graph 'mine' in adata.obsp; run scanpy.pp.neighbors"),
        (["--use-rep", "X", "--id-column", "a"], "--id-column: given beside an H5AD file"),
    ],
)
def test_what_does_not_fit_is_one_line(options, words, h5ad, tmp_path, capsys):
    out = ["-o", str(tmp_path / "out")]
    assert run(["classify", str(h5ad), "--label-column", "few", *out, *options]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out" / "predictions.csv").exists()


def test_options_of_cells_beside_a_table(tmp_path, capsys):
    pd.DataFrame(DIGITS.data).assign(few=NAMES).to_csv(tmp_path / "t.csv", index=False)
    options = ["--label-column", "few", "--use-rep", "X_pca", "-o", str(tmp_path / "out")]
    assert run(["classify", str(tmp_path / "t.csv"), *options]) == 2
    assert "--use-rep: given beside 't.csv'; leave it out, or give" in capsys.readouterr().err
