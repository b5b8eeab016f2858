"""``graphuq classify --edges``: a list of edges, with labels in a second file."""

import re

import networkx
import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.cli.app import run
from graphuq.cli.edges import EdgeKind, graph_of_rows

ONE_MODEL = ["--model", "fixed", "--inference", "expectation-propagation"]  # quick

CLUB = networkx.karate_club_graph()
EDGES = pd.DataFrame(
    [(f"p{a}", f"p{b}", w) for a, b, w in CLUB.edges(data="weight")],
    columns=["source", "target", "ties"],
)
EP = ["--inference", "expectation-propagation"]
TRUTH = pd.Series({f"p{node}": CLUB.nodes[node]["club"] for node in CLUB})


@pytest.fixture
def classify(tmp_path):
    labels = tmp_path / "labels.csv"
    pd.DataFrame({"id": ["p0", "p33"], "label": ["Mr. Hi", "Officer"]}).to_csv(labels, index=False)

    def command(edges, *options, columns="source,target,ties"):
        common = ["--labels", str(labels), "-o", str(tmp_path / "out"), "--quiet"]
        fast = ["--model", "fixed", *EP]
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
        ({}, ["--symmetrize", "both"], "--symmetrize: 'both' is unknown; use 'union'"),
        ({}, ["--groups"], "--edges: a column of weights beside --groups; name two"),
        (
            {"columns": "source,target"},
            ["--groups", "--symmetrize", "union"],
            "--symmetrize: given beside --groups",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(change, options, words, classify, tmp_path, capsys):
    EDGES.assign(note="strong").to_csv(tmp_path / "edges.csv", index=False)
    assert classify(tmp_path / "edges.csv", *options, **change) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(words, error)


def test_a_file_of_labels_has_columns_of_any_name(classify, tmp_path, capsys):
    """A column of another name than id was refused, and so was the option that names it."""
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    labels, named = tmp_path / "labels.csv", ["--id-column", "who", "--label-column", "side"]
    table = pd.read_csv(labels)
    assert classify(tmp_path / "edges.csv") == 0
    first = (tmp_path / "out" / "predictions.csv").read_bytes()
    table.set_axis(["who", "side"], axis=1).to_csv(labels, index=False)
    assert classify(tmp_path / "edges.csv", *named) == 0
    assert (tmp_path / "out" / "predictions.csv").read_bytes() == first
    assert classify(tmp_path / "edges.csv", "--label-column", "side") == 2
    assert "has the columns who, side, and none is 'id'; rename" in capsys.readouterr().err
    table.assign(id=["p0", "pp33"]).to_csv(labels, index=False)
    assert classify(tmp_path / "edges.csv") == 2
    assert "['pp33']; did you mean 'p33'?" in capsys.readouterr().err
    table.to_csv(labels, index=False)  # an option without effect is refused
    assert classify(tmp_path / "edges.csv", "--id-column", "who") == 2


def test_labels_of_a_table_may_have_its_column_of_ids(tmp_path):
    rows = pd.DataFrame({"who": list("abcdef"), "x": [0.0, 0.1, 0.2, 5.0, 5.1, 5.2]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    known = pd.DataFrame({"who": ["a", "f"], "label": ["low", "high"]})
    known.to_csv(tmp_path / "known.csv", index=False)
    given = ["--id-column", "who", "--labels", str(tmp_path / "known.csv"), "--quiet"]
    fast = [*ONE_MODEL, "-o", str(tmp_path / "out")]
    assert run(["classify", str(tmp_path / "rows.csv"), *given, *fast]) == 0
    found = pd.read_csv(tmp_path / "out" / "predictions.csv", index_col="id")
    assert found.loc["b", "label"] == "low"


@pytest.mark.filterwarnings("always::graphuq.errors.GraphRepairWarning")
def test_two_weights_of_an_edge_are_told(classify, tmp_path, capsys):
    back = EDGES.rename(columns={"source": "target", "target": "source"}).assign(ties=9)
    pd.concat([EDGES, back]).to_csv(tmp_path / "edges.csv", index=False)
    assert classify(tmp_path / "edges.csv") == 0
    assert "edges with two weights; the larger" in capsys.readouterr().err


@pytest.fixture
def rows(tmp_path):
    """Return a table of members in another order than in the edges, with two numbers each."""
    rng = np.random.default_rng(0)
    names = rng.permutation(TRUTH.index)
    table = pd.DataFrame(rng.normal(size=(len(names), 2)), columns=["age", "belts"])
    table.insert(0, "who", names)
    label = TRUTH[names].where(np.isin(names, ["p0", "p1", "p33", "p32"]), "").to_numpy()
    table["label"] = label
    table.to_csv(tmp_path / "members.csv", index=False)
    EDGES.to_csv(tmp_path / "ties.csv", index=False)
    EDGES.sample(frac=0.5, random_state=0).to_csv(tmp_path / "half.csv", index=False)
    command = ["classify", str(tmp_path / "members.csv"), "--id-column", "who", "--label-column"]
    fast = ["label", "-o", str(tmp_path / "out"), *EP]
    return lambda graph, *more: run([*command, *fast, "--graph", graph, *more])


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_rows_of_a_table_are_the_nodes_of_a_graph_by_their_names(rows, tmp_path, capsys):
    assert rows(str(tmp_path / "ties.csv"), "--edges", "source,target,ties") == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv", index_col="id")
    assert (table["label"] == TRUTH[table.index]).mean() > 0.85
    assert "features over graph" in (tmp_path / "out" / "report.html").read_text("utf-8")
    both = f"{tmp_path / 'ties.csv'},{tmp_path / 'half.csv'}"
    assert rows(both, "--quiet") == 0  # source and target are the default
    assert "ties" in (tmp_path / "out" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("graph", "options", "words"),
    [
        ("missing.csv", [], "there is no file"),
        ("ties.csv", ["--edges", "source,to"], "'to' is not among"),
        ("ties.csv", ["--n-neighbors", "5"], "n_neighbors: 5 beside Graph"),
        ("strange.csv", [], r"node \['p99'\] of 'strange.csv' has no row"),
        ("other.csv", [], "'source' is not among .* as in --edges a,b"),
    ],
)
def test_graph_of_rows_that_does_not_fit(graph, options, words, rows, tmp_path, capsys):
    pd.DataFrame({"source": ["p99"], "target": ["p0"]}).to_csv(tmp_path / "strange.csv")
    pd.DataFrame({"a": ["p1"], "b": ["p0"]}).to_csv(tmp_path / "other.csv", index=False)
    assert rows(str(tmp_path / graph), *options) == 2
    error = capsys.readouterr().err
    assert re.search(words, error), error


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_directions_and_groups_of_rows_are_those_of_python(rows, tmp_path):
    path, found = tmp_path / "ties.csv", []
    names = np.array(TRUTH.index)
    source, target = EDGES["source"].tolist(), EDGES["target"].tolist()
    walk = graph_of_rows([path], "source,target", names, EdgeKind("random-walk"))
    expected = gq.graphs.from_edges(source, target, nodes=names, symmetrize="random-walk")
    np.testing.assert_allclose(walk.weights.toarray(), expected.weights.toarray())
    teams = graph_of_rows([path], "source,target", names, EdgeKind(are_groups=True))
    members = [EDGES["source"][EDGES["target"] == team].tolist() for team in dict.fromkeys(target)]
    expected = gq.graphs.from_hyperedges(members, nodes=names)
    np.testing.assert_allclose(teams.weights.toarray(), expected.weights.toarray())
    for option in ([], ["--symmetrize", "random-walk"], ["--groups"]):
        assert rows(str(path), "--edges", "source,target", *option) == 0
        found.append(pd.read_csv(tmp_path / "out" / "predictions.csv")["probability"])
    assert np.abs(found[0] - found[1]).max() > 1e-3
    assert np.abs(found[0] - found[2]).max() > 1e-3


def test_rules_of_edges_without_edges_are_refused(tmp_path, capsys):
    pd.DataFrame({"x": range(9), "kind": list("ab") + [""] * 7}).to_csv(tmp_path / "rows.csv")
    for option in (["--groups"], ["--symmetrize", "union"]):
        path = str(tmp_path / "rows.csv")
        assert run(["classify", path, "--label-column", "kind", *option]) == 2
        assert "given without a list of edges" in capsys.readouterr().err


WRITERS = {
    "graphml": networkx.write_graphml,
    "gml": networkx.write_gml,
    "gexf": networkx.write_gexf,
}


def named_club():
    """Return the club with names of nodes, and the class of two as an attribute."""
    club = networkx.relabel_nodes(CLUB, {node: f"p{node}" for node in CLUB})
    for node in club:
        club.nodes[node]["known"] = TRUTH[node] if node in ("p0", "p33") else "?"
    return club


@pytest.mark.filterwarnings("ignore::graphuq.errors.MissingLabelWarning")
@pytest.mark.parametrize("kind", WRITERS)
def test_files_of_graphs_are_classified_by_an_attribute(kind, classify, tmp_path, capsys):
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    assert classify(tmp_path / "edges.csv") == 0
    expected = pd.read_csv(tmp_path / "out" / "predictions.csv", index_col="id")["probability"]
    WRITERS[kind](named_club(), tmp_path / f"club.{kind}")
    command = ["classify", str(tmp_path / f"club.{kind}"), "--label-column", "known"]
    command += [
        "--truth-column",
        "club",
        "--model",
        "fixed",
        "--inference",
        "expectation-propagation",
    ]
    assert run([*command, "-o", str(tmp_path / "graph")]) == 0
    assert f"club.{kind}: 34 nodes, 78 edges" in capsys.readouterr().out
    found = pd.read_csv(tmp_path / "graph" / "predictions.csv", index_col="id")["probability"]
    np.testing.assert_allclose(found[expected.index], expected, rtol=1e-5)


def test_tables_of_gephi(classify, tmp_path, capsys):
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    assert classify(tmp_path / "edges.csv") == 0
    expected = pd.read_csv(tmp_path / "out" / "predictions.csv")
    gephi = EDGES.set_axis(["Source", "Target", "Weight"], axis=1).assign(Type="Undirected")
    gephi.to_csv(tmp_path / "gephi.csv", index=False)
    known = [TRUTH[name] if name in ("p0", "p33") else "" for name in TRUTH.index]
    nodes = pd.DataFrame({"Id": TRUTH.index, "Label": [f"Person {k}" for k in range(34)]})
    nodes.assign(kind=known).to_csv(tmp_path / "nodes.csv", index=False)
    command = ["classify", str(tmp_path / "gephi.csv"), "--edges", "Source,Target,Weight"]
    command += ["--labels", str(tmp_path / "nodes.csv"), "-o", str(tmp_path / "gephi"), "--quiet"]
    command += ["--model", "fixed", *EP]
    assert run(command) == 2
    assert "labels: all of 'nodes.csv' are different, such as ['Person" in capsys.readouterr().err
    assert run([*command, "--label-column", "kind"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "gephi" / "predictions.csv"), expected)


@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_nodes_of_labels_without_an_edge(tmp_path, capsys):
    """Gephi's table of nodes has those without edges, too; only a label of one is lost."""
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    nodes = pd.DataFrame({"id": ["p0", "p33", "alone"], "label": ["Mr. Hi", "Officer", ""]})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    command = ["classify", str(tmp_path / "edges.csv"), "--edges", "source,target,ties", "--quiet"]
    command += ["--labels", str(tmp_path / "nodes.csv"), "-o", str(tmp_path / "out"), *ONE_MODEL]
    assert run(command) == 0
    assert "1 id(s) without a label that the table lacks, such as ['alone']; they get no" in (
        capsys.readouterr().err
    )
    assert len(pd.read_csv(tmp_path / "out" / "predictions.csv")) == 34
    nodes.assign(label=["Mr. Hi", "Officer", "Officer"]).to_csv(tmp_path / "nodes.csv", index=False)
    assert run(command) == 2
    assert "1 label(s) with ids that the table lacks, such as ['alone']" in capsys.readouterr().err


def test_a_file_of_a_graph_beside_a_table(tmp_path):
    people = pd.DataFrame({"name": TRUTH.index, "x": np.arange(34) % 5 + 0.5})
    people["known"] = [TRUTH[name] if name in ("p0", "p33") else "" for name in TRUTH.index]
    people.to_csv(tmp_path / "people.csv", index=False)
    networkx.write_gml(named_club(), tmp_path / "club.gml")
    edges = EDGES.rename(columns={"ties": "Weight", "source": "Source", "target": "Target"})
    edges.to_csv(tmp_path / "club.csv", index=False)
    found = []
    for kind in ("gml", "csv"):
        command = ["classify", str(tmp_path / "people.csv"), "--label-column", "known", "--quiet"]
        command += ["--id-column", "name", "--graph", str(tmp_path / f"club.{kind}")]
        command += [*EP, "-o", str(tmp_path / kind)]
        assert run(command) == 0
        found.append(pd.read_csv(tmp_path / kind / "predictions.csv"))
    pd.testing.assert_frame_equal(*found)


def test_signs_of_edges(tmp_path, capsys):
    """A file of a graph with signs, lists of edges, and a table beside either."""
    sides = TRUTH["p0"] == TRUTH
    opposed = sides[EDGES["source"]].to_numpy() != sides[EDGES["target"]].to_numpy()
    edges = EDGES[["source", "target"]].assign(sign=np.where(opposed, -1, 1))
    graph = networkx.from_pandas_edgelist(edges, edge_attr="sign")
    networkx.write_graphml(graph, tmp_path / "ties.graphml")
    edges.to_csv(tmp_path / "ties.csv", index=False)
    edges.assign(weight=2).to_csv(tmp_path / "both.csv", index=False)
    people = pd.DataFrame({"name": list(graph), "known": ""}).set_index("name")
    some = ["p0", "p1", "p2", "p31", "p32", "p33"]
    people.loc[some, "known"] = TRUTH[some]
    people.assign(x=np.arange(34) % 5).reset_index().to_csv(tmp_path / "people.csv", index=False)
    table = [str(tmp_path / "people.csv"), "--id-column", "name", "--label-column", "known"]
    known = people[people["known"] != ""].rename_axis("id").reset_index()
    known.rename(columns={"known": "label"}).to_csv(tmp_path / "labels.csv", index=False)
    labels = ["--labels", str(tmp_path / "labels.csv")]
    ways = {
        "file": [str(tmp_path / "ties.graphml"), *labels],
        "edges": [str(tmp_path / "ties.csv"), "--edges", "source,target,sign", *labels],
        "csv": [*table, "--graph", str(tmp_path / "ties.csv")],
        "graphml": [*table, "--graph", str(tmp_path / "ties.graphml")],
    }
    found = {}
    for name, arguments in ways.items():
        command = ["classify", *arguments, *EP, "--quiet"]
        assert run([*command, "-o", str(tmp_path / name)]) == 0, capsys.readouterr().err
        answer = pd.read_csv(tmp_path / name / "predictions.csv", index_col="id")
        assert (answer["label"] == TRUTH[answer.index]).all()
        found[name] = answer["probability"][TRUTH.index]
    np.testing.assert_allclose(found["file"], found["edges"], rtol=1e-5)
    np.testing.assert_allclose(found["csv"], found["graphml"], rtol=1e-5)
    both = ["classify", *table, "--graph", str(tmp_path / "both.csv"), "-o", str(tmp_path / "o")]
    assert run(both) == 2
    assert re.search("columns .'weight', 'sign'.*name one of them", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "content", "more", "words"),
    [
        ("a.graphml", "<graphml", [], "'.*a.graphml' is not a readable graphml file"),
        ("a.gml", "graph [ node [ id", [], "'.*a.gml' is not a readable gml file"),
        ("a.gml", None, ["--encode"], "--encode: given beside 'a.gml'; leave it out"),
        ("a.gml", None, ["--label-column", "clbu"], "'clbu' is not among .* did you mean 'club'"),
    ],
)
def test_what_is_no_graph_is_one_line(name, content, more, words, tmp_path, capsys):
    if content is None:
        networkx.write_gml(CLUB, tmp_path / name, stringizer=str)
    else:
        (tmp_path / name).write_text(content)
    command = ["classify", str(tmp_path / name), "--label-column", "club", "-o"]
    assert run([*command, str(tmp_path / "out"), *more]) == 2
    error = capsys.readouterr().err
    assert re.search(words, error)
    assert error.count("\n") == 1


def test_a_table_of_nodes_without_features_is_told_how_a_network_is_read(tmp_path, capsys):
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    nodes = pd.DataFrame({"id": ["p0", "p33", "p5"], "label": ["Mr. Hi", "Officer", ""]})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    command = ["classify", str(tmp_path / "nodes.csv"), "--label-column", "label"]
    command += ["--id-column", "id", "-o", str(tmp_path / "out"), "--quiet"]
    for more in ([], ["--encode"], ["--graph", str(tmp_path / "edges.csv")]):
        assert run([*command, *more]) == 2
        assert "--edges A,B --labels NODES.csv" in capsys.readouterr().err
