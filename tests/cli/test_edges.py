"""``graphuq classify --edges``: a list of edges, with labels in a second file."""

import re

import networkx
import numpy as np
import pandas as pd
import pytest

from graphuq.cli.app import run

CLUB = networkx.karate_club_graph()
EDGES = pd.DataFrame(
    [(f"p{a}", f"p{b}", w) for a, b, w in CLUB.edges(data="weight")],
    columns=["source", "target", "ties"],
)
TRUTH = pd.Series({f"p{node}": CLUB.nodes[node]["club"] for node in CLUB})


@pytest.fixture
def classify(tmp_path):
    labels = tmp_path / "labels.csv"
    pd.DataFrame({"id": ["p0", "p33"], "label": ["Mr. Hi", "Officer"]}).to_csv(labels, index=False)

    def command(edges, *options, columns="source,target,ties"):
        common = ["--labels", str(labels), "-o", str(tmp_path / "out"), "--quiet"]
        fast = ["--inference", "expectation-propagation"]
        return run(["classify", str(edges), "--edges", columns, *common, *fast, *options])

    return command


@pytest.mark.parametrize("kind", ["csv", pytest.param("parquet", marks=pytest.mark.slow)])
def test_nodes_of_edges_are_classified_under_their_names(kind, classify, tmp_path):
    path = tmp_path / f"edges.{kind}"
    EDGES.to_csv(path, index=False) if kind == "csv" else EDGES.to_parquet(path)
    assert classify(path) == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv", index_col="id")
    assert sorted(table.index) == sorted(TRUTH.index)
    assert (table["label"] == TRUTH[table.index]).mean() > 0.9
    assert classify(path, columns="source,target") == 0
    unweighted = pd.read_csv(tmp_path / "out" / "predictions.csv", index_col="id")
    assert np.abs(unweighted["probability"] - table["probability"]).max() > 1e-3


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, ["--n-neighbors", "5"], "--n-neighbors: given beside --edges; leave it out"),
        ({}, ["--scaling", "standard"], "--scaling: given beside --edges"),
        ({"columns": "source"}, [], "--edges: 'source'; name two columns, or three"),
        ({"columns": "source,targte"}, [], "'targte' is not among .* did you mean 'target'"),
        ({"columns": "source,target,note"}, [], "weight: 'strong' in row 0; give a number"),
    ],
)
def test_what_does_not_fit_is_one_line(change, options, words, classify, tmp_path, capsys):
    EDGES.assign(note="strong").to_csv(tmp_path / "edges.csv", index=False)
    assert classify(tmp_path / "edges.csv", *options, **change) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(words, error)


@pytest.mark.filterwarnings("always::graphuq.errors.GraphRepairWarning")
def test_two_weights_of_an_edge_are_told(classify, tmp_path, capsys):
    back = EDGES.rename(columns={"source": "target", "target": "source"}).assign(ties=9)
    pd.concat([EDGES, back]).to_csv(tmp_path / "edges.csv", index=False)
    assert classify(tmp_path / "edges.csv") == 0
    assert "edges with two weights; the larger" in capsys.readouterr().err
