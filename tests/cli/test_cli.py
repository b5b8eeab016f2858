"""Commands: the files they write, and errors as one line with exit code 2."""

import importlib
import os
import re
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.cli.app import run

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")

FAST = ["--n-samples", "60", "--n-chains", "2", "--n-warmup", "200", "--thin", "8"]
FAST += ["--stop", "none", "--quiet"]
MOONS = gq.datasets.two_moons(60, n_features=2, noise_std=0.05, rng=1)


QUICK = ["--model", "largest-evidence", "--inference", "laplace"]


def frame(n_labelled=8):
    names = np.array(["left", "right"])[MOONS.classes]
    table = pd.DataFrame(MOONS.features.copy(), columns=["a", "b"])
    table.insert(0, "name", [f"row{i}" for i in range(60)])
    table["truth"] = names
    table["label"] = np.where(np.arange(60) < n_labelled, names, "")
    return table


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "moons.csv"
    frame().to_csv(path, index=False)
    return path


COLUMNS = ["--label-column", "label", "--id-column", "name", "--truth-column", "truth"]


def classify(path, out, *more):
    options = ["--quiet"] if "laplace" in more else FAST  # an approximation draws no samples
    return run(["classify", str(path), *COLUMNS, "--output", str(out), *options, *more])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the bytes of a stored result."""
    folder = tmp_path_factory.mktemp("stored")
    frame().to_csv(folder / "moons.csv", index=False)
    assert classify(folder / "moons.csv", folder, *QUICK) == 0
    return (folder / "posterior.nc").read_bytes()


def test_classify_and_predict(figures, csv, tmp_path, capsys):
    out = tmp_path / "out"
    assert classify(csv, out, "--n-neighbors", "8", "--scaling", "standard") == 0
    assert sorted(p.name for p in out.iterdir()) == [
        "posterior.nc",
        "predictions.csv",
        "report.html",
    ]
    table = pd.read_csv(out / "predictions.csv")
    assert table["id"].tolist() == [f"row{i}" for i in range(60)]
    assert table["rank"].min() == 1
    assert table.sort_values("rank")["margin"].is_monotonic_increasing
    assert (table["label"] == frame()["truth"]).mean() > 0.85
    shares = table[["probability_left", "probability_right"]]
    np.testing.assert_allclose(table["probability"], shares.max(axis=1), rtol=1e-4)
    assert (table["latent_lower"] < table["latent_upper"]).all()
    with pytest.warns(gq.GraphuqWarning, match="transformed the features"):
        loaded = gq.load(out / "posterior.nc")
    assert len(loaded.result_.has_evidence) == 60
    assert loaded.result_.classes.tolist() == ["left", "right"]

    again = tmp_path / "again.csv"
    code = run(
        ["predict", str(out / "posterior.nc"), str(csv), "-o", str(again), "--id-column", "name"]
        + ["--drop", "label", "--drop", "truth"]
    )
    assert code == 0
    new = pd.read_csv(again)
    np.testing.assert_allclose(new["probability_right"], table["probability_right"], rtol=1e-4)


def test_printed_verdict_is_that_of_the_report(tmp_path, capsys):
    """A third of the true classes is flipped: calibration fails, and both verdicts say so."""
    table, path, out = frame(12), tmp_path / "moons.csv", tmp_path / "out"
    flipped = np.arange(60) % 3 == 1
    table.loc[flipped, "truth"] = table["truth"].map({"left": "right", "right": "left"})[flipped]
    table.to_csv(path, index=False)
    method = ["--inference", "expectation-propagation", "-o", str(out)]
    assert run(["classify", str(path), *COLUMNS, *method]) == 0
    printed = capsys.readouterr().out
    (headline,) = re.findall(r"^Verdict: .*", printed, re.MULTILINE)
    page = (out / "report.html").read_text()
    assert "RED" in headline
    assert f"<b>{headline}</b>" in page
    (reason,) = re.findall(r"^- (At 48 unlabelled nodes .*)$", printed, re.MULTILINE)
    assert f"<li>{reason.removesuffix('.')} or by add_labels(rows, classes).</li>" in page
    (left,) = re.findall(r"about (\d+) of 48 unlabelled nodes", printed)
    assert f"<b>{left}</b>errors left" in page


@pytest.mark.slow
def test_hyperparameters_are_learnt(csv, tmp_path, capsys):
    out = tmp_path / "out"
    prior = "Matern(tau=LogUniform(0.05, 2), truncation=DiscreteUniform(2, 12))"
    arguments = ["--prior", prior, "--likelihood", "Probit(noise_std=0.2)", "--n-eigenpairs", "12"]
    assert classify(csv, out, *arguments) == 0
    result = gq.results.load(out / "posterior.nc")
    assert set(result.hyperparameters) == {"tau", "truncation"}
    assert "truncation" in (out / "report.html").read_text()
    assert classify(csv, out, "--likelihood", "Probit(0.2)", "--model", "average") == 2
    assert "--likelihood: given beside --model average; leave it out" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", pytest.param("npz", marks=pytest.mark.slow)])
def test_other_formats_give_the_same(kind, csv, tmp_path):
    other = tmp_path / f"moons.{kind}"
    table = pd.read_csv(csv, keep_default_na=False)
    if kind == "parquet":
        table["label"] = table["label"].replace("", None)
        table.to_parquet(other)
    else:
        columns = {c: table[c].to_numpy(dtype=str) for c in ("name", "truth", "label")}
        np.savez(other, X=table[["a", "b"]].to_numpy(), **columns)
    assert classify(csv, tmp_path / "1", "--n-neighbors", "8") == 0
    assert classify(other, tmp_path / "2", "--n-neighbors", "8") == 0
    first, second = (pd.read_csv(tmp_path / i / "predictions.csv") for i in "12")
    pd.testing.assert_frame_equal(first, second)


def test_ready_made_graph_with_labels_of_its_own(tmp_path):
    graph = gq.graphs.knn_graph(MOONS.features, 8)
    sparse.save_npz(tmp_path / "w.npz", sparse.csr_matrix(graph.weights))
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "\n".join(f"{i},{MOONS.classes[i]}" for i in range(8)))
    arguments = [
        "classify",
        str(tmp_path / "w.npz"),
        "--labels",
        str(labels),
        *FAST,
        "--model",
        "largest-evidence",
    ]
    code = run([*arguments, "--graph", "precomputed", "--output", str(tmp_path / "out")])
    assert code == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert (table["label"] == MOONS.classes).mean() > 0.9


@pytest.mark.slow
def test_expectation_propagation_answers_without_chains(csv, tmp_path, capsys):
    arguments = ["classify", str(csv), *COLUMNS, "--n-neighbors", "8", "-o", str(tmp_path / "out")]
    assert run([*arguments, "--inference", "expectation-propagation"]) == 0
    assert "An approximation (expectation propagation" in " ".join(capsys.readouterr().out.split())
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert (table["label"] == frame()["truth"]).mean() > 0.85
    code = run(
        ["predict", str(tmp_path / "out" / "posterior.nc"), str(csv), "--drop", "label"]
        + ["--drop", "truth", "--id-column", "name", "-o", str(tmp_path / "new.csv")]
    )
    assert code == 0
    new = pd.read_csv(tmp_path / "new.csv")
    np.testing.assert_allclose(new["probability_right"], table["probability_right"], rtol=1e-4)


def one_line(capsys, code):
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if "warning" not in line]
    assert code == 2, captured.err
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("graphuq: error: ")
    return lines[0]


def changed(column=None, value=None, **options):
    def change(path):
        table = frame(**options)
        if column is not None:
            table[column] = table[column].astype(object)
            table.loc[3, column] = value
        table.to_csv(path, index=False)

    return change


@pytest.mark.parametrize(
    ("change", "more", "words"),
    [
        (changed("a", np.nan), [], "column 'a' has 1 empty cell, the first in row 3"),
        (changed("a", "inf"), [], "column 'a' holds 'inf' in row 3, which is no finite number"),
        (
            changed("a", "much"),
            [],
            "column 'a' has 1 cell without a number, such as 'much' in row 3; add --impute if",
        ),
        (changed("name", "row1"), [], "'row1'] occurs more than once"),
        (changed("name", ""), [], "name: missing in row [3]"),
        (changed(n_labelled=0), [], "no row has a label"),
        (changed(n_labelled=1), [], "only the class"),
        (changed(), ["--label-column", "party"], "'party' is not among"),
        (changed(), ["--positive", "middle"], "no row is labelled 'middle'"),
        (changed(), ["--n-neighbors", "60"], "60 neighbours asked of 60 rows"),
        (changed(), ["--graph", "ring"], "graph: 'ring' is unknown"),
        (changed(), ["--weights", "soft"], "weights: 'soft' is unknown"),
        (changed(), ["--laplacian", "heat"], "laplacian: 'heat' is unknown"),
        (changed(), ["--likelihood", "logit"], "likelihood: 'logit' is unknown"),
        (changed(), ["--likelihood", "Probit(-1)"], "noise_std: -1 is out of range"),
        (changed(), ["--tail-eigenvalue", "long"], "tail_eigenvalue: 'long' is unknown"),
        (changed(), ["--n-eigenpairs", "61"], "61 pairs of a graph of 60 nodes"),
        (
            changed(),
            ["--n-eigenpairs", "few"],
            "n_eigenpairs: 'few' is unknown",
        ),
        (changed(), ["--scaling", "log"], "--scaling: 'log' is unknown"),
        (changed(), ["--pca", "3"], "--pca: 3 components"),
        (changed(), ["--thin", "0"], "thin: 0"),
        (changed(), ["--n-chains", "two"], "n_chains: 'two'"),
        (changed(), ["--inference", "laplace", "--n-chains", "4"], "--n-chains: given beside"),
        (changed(), ["--frobnicate"], "--frobnicate"),
        (changed(), ["--labels", "x.csv"], "--label-column: given beside --labels"),
        (changed(), ["--drop", "nme"], "did you mean 'name'?"),
        (lambda p: p.write_text(""), [], "is not a readable csv file"),
        (lambda p: p.write_bytes(b"PAR1" + bytes(range(256))), [], "is not a readable csv file"),
        (lambda p: p.write_text("name,a,b,truth,label\n"), [], "no rows below the header"),
        (lambda p: p.unlink(), [], "there is no file"),
        (lambda p: p.write_text(frame().to_csv(index=False)[:-25]), [], "the last row of"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(change, more, words, csv, tmp_path, capsys):
    change(csv)
    out = tmp_path / "out"
    line = one_line(capsys, classify(csv, out, *more))
    assert words in line
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.csv.gz"])
def test_wrongly_typed_files(name, csv, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(csv.read_bytes())
    assert name in one_line(capsys, classify(path, tmp_path / "out"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,a\n60,b", "id 60, and it counts rows from 0 to 59"),
        ("0,a\n61,b", "ids that the table lacks, such as ['61']"),
        ("0,a\n0,b", "['0'] occurs more than once"),
    ],
)
def test_labels_on_nodes_that_are_not_there(rows, words, tmp_path, capsys):
    graph = gq.graphs.knn_graph(MOONS.features, 8)
    sparse.save_npz(tmp_path / "w.npz", sparse.csr_matrix(graph.weights))
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + rows)
    code = run(
        ["classify", str(tmp_path / "w.npz"), "--labels", str(labels), "--graph"]
        + ["precomputed", "-o", str(tmp_path / "out"), *FAST]
    )
    assert words in one_line(capsys, code)


@pytest.mark.parametrize("flaw", ["asymmetric", "nan"])
def test_bad_weights(flaw, tmp_path, capsys):
    weights = np.ones((6, 6)) - np.eye(6)
    weights[0, 1] = {"asymmetric": 3, "nan": np.nan}[flaw]
    sparse.save_npz(tmp_path / "w.npz", sparse.csr_matrix(weights))
    (tmp_path / "l.csv").write_text("id,label\n0,a\n3,b")
    code = run(
        ["classify", str(tmp_path / "w.npz"), "--labels", str(tmp_path / "l.csv")]
        + ["--graph", "precomputed", "-o", str(tmp_path / "out"), *FAST]
    )
    words = {"asymmetric": "asymmetric", "nan": "NaN"}[flaw]
    assert words in one_line(capsys, code)


@pytest.mark.skipif(os.name == "nt", reason="POSIX paths")
def test_folder_that_cannot_be_written(csv, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    line = one_line(capsys, classify(csv, tmp_path / "file" / "out"))
    assert "cannot write to folder" in line


def test_full_disk_leaves_nothing(csv, tmp_path, capsys, monkeypatch):
    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.cli import fitting as module

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(GraphClassifier, "save", full)
    line = one_line(capsys, classify(csv, tmp_path / "out"))
    assert "No space left" in line
    assert [p.name for p in (tmp_path / "out").iterdir()] == [module.CHECKPOINT]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("model", "sampler", "name", "at"),
    [
        ("largest-evidence", "pcn", "chains._run_block", 3),
        ("average", "pcn", "chains._run_block", 30),  # in the middle of a later component
        pytest.param("largest-evidence", "independence", "independence.base._metropolis", 7,
                     marks=pytest.mark.slow),
        pytest.param("largest-evidence", "sequential-independence",
                     "independence.base._metropolis", 7, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_interrupted_run_resumes_to_the_same_numbers(
    model, sampler, name, at, csv, tmp_path, capsys, monkeypatch
):
    module_name, name = name.rsplit(".", 1)
    module = importlib.import_module(f"graphuq.inference.{module_name}")
    options = ["--model", model, "--inference", sampler, "--n-samples", "500"]
    assert classify(csv, tmp_path / "whole", *options) == 0
    block, count = getattr(module, name), []

    def interrupt(*args):
        count.append(1)
        if len(count) == at:
            raise KeyboardInterrupt
        return block(*args)

    monkeypatch.setattr(module, name, interrupt)
    assert classify(csv, tmp_path / "cut", *options) == 130
    assert "--resume" in capsys.readouterr().err
    left = sorted(p.name for p in (tmp_path / "cut").iterdir())
    names = [".checkpoint.npz"]
    if model == "average":  # each component has a file
        names = [f".checkpoint.{number}.npz" for number in range(len(left))]
        assert len(left) > 1
    assert left == names
    count[:] = [1] * (at + 1)
    assert classify(csv, tmp_path / "cut", "--resume", *options) == 0
    first, second = (pd.read_csv(tmp_path / d / "predictions.csv") for d in ("whole", "cut"))
    pd.testing.assert_frame_equal(first, second)
    assert not [*(tmp_path / "cut").glob(".checkpoint*")]


@pytest.mark.parametrize("damage", ["truncated", "text", "missing"])
def test_predict_refuses_damaged_results(damage, stored, csv, tmp_path, capsys):
    path = tmp_path / "posterior.nc"
    if damage != "missing":
        path.write_bytes(stored[:500] if damage == "truncated" else b"hello")
    code = run(["predict", str(path), str(csv), "-o", str(tmp_path / "new.csv")])
    assert "posterior.nc" in one_line(capsys, code)
    assert not (tmp_path / "new.csv").exists()


def test_predict_wants_the_same_columns(stored, tmp_path, capsys):
    path = tmp_path / "posterior.nc"
    path.write_bytes(stored)
    other = tmp_path / "other.csv"
    other.write_text("a,b,c\n1,2,3\n")
    code = run(["predict", str(path), str(other), "--drop", "b"])
    assert "it lacks ['b'] of the 2 feature columns" in one_line(capsys, code)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("csv", marks=pytest.mark.slow), "parquet"])
def test_predict_finds_the_columns_by_name(kind, csv, tmp_path):
    assert classify(csv, tmp_path / "out", "--scaling", "standard") == 0
    table = frame().drop(columns="label").rename(columns={"name": "id"})
    files = {"same": table, "reversed": table[["truth", "b", "a", "id"]]}
    for name, rows in files.items():
        path = tmp_path / f"{name}.{kind}"
        rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
        output = str(tmp_path / f"{name}_new.csv")
        assert (
            run(["predict", str(tmp_path / "out" / "posterior.nc"), str(path), "-o", output]) == 0
        )
    found = [pd.read_csv(tmp_path / f"{name}_new.csv") for name in files]
    pd.testing.assert_frame_equal(*found)
    assert (found[0]["label"] == table["truth"]).mean() > 0.9


def test_datasets(tmp_path, capsys):
    assert run(["datasets"]) == 0
    assert "voting" in capsys.readouterr().out
    csv = tmp_path / "digits.csv"
    assert (
        run(
            [
                "datasets",
                "digits",
                "--classes",
                "4,9",
                "--label",
                "4=3",
                "--label",
                "9=3",
                "--csv",
                str(csv),
            ]
        )
        == 0
    )
    table = pd.read_csv(csv, dtype={"label": str}, keep_default_na=False)
    assert table.shape == (361, 67)
    assert (table["label"] == "4").sum() == 3
    capsys.readouterr()
    assert "'cats' is unknown" in one_line(capsys, run(["datasets", "cats"]))
    code = run(["datasets", "digits", "--label", "4=3000", "--csv", str(csv)])
    assert "at most" in one_line(capsys, code)


@pytest.mark.slow
def test_voting_from_its_csv(data_folder, tmp_path):
    """Bertozzi's setting, from the command line, in short."""
    csv = tmp_path / "votes.csv"
    assert (
        run(
            ["datasets", "voting", "--folder", str(data_folder), "--label", "democrat=3"]
            + ["--label", "republican=2", "--csv", str(csv)]
        )
        == 0
    )
    code = run(
        ["classify", str(csv), "--label-column", "label", "--truth-column", "class"]
        + ["--id-column", "id", "--graph", "complete", "--weights", "GaussianWeights(1.25)"]
        + ["--n-eigenpairs", "all", "-o", str(tmp_path / "out"), "--quiet"]
    )
    assert code == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert (table["label"] == pd.read_csv(csv)["class"]).mean() > 0.7


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], ["graphuq demo", "graphuq classify --help"]),
        (["demo"], ["report.html", "--random-state"]),
        (
            ["classify"],
            ["Sampling", "--missing-label", "Neighbours of each node, by default 15"],
        ),
        (["predict"], ["POSTERIOR", "--drop"]),
        (["datasets"], ["two-moons", "--n-each"]),
    ],
)
def test_help_names_options_and_defaults(command, words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert run([*command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert "Usage: graphuq" in printed
    assert all(word in printed for word in words), printed


def test_a_text_can_mean_unlabelled(csv, tmp_path):
    table = frame()
    table["label"] = table["label"].replace("", "?")
    table.to_csv(tmp_path / "marked.csv", index=False)
    options = [*QUICK]
    assert classify(csv, tmp_path / "1", *options) == 0
    code = classify(tmp_path / "marked.csv", tmp_path / "2", "--missing-label", "?", *options)
    assert code == 0
    first, second = (pd.read_csv(tmp_path / i / "predictions.csv") for i in "12")
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.slow
@pytest.mark.filterwarnings("default::graphuq.errors.MissingLabelWarning")
@pytest.mark.parametrize("mark", ["-1", pytest.param("none", marks=pytest.mark.slow)])
def test_a_class_that_may_mean_unlabelled_is_asked_about(mark, csv, tmp_path, capsys):
    table = frame()
    table["label"] = table["label"].replace("", mark)
    table.to_csv(csv, index=False)
    assert classify(csv, tmp_path / "out", *QUICK) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"graphuq: warning: y: the class '{mark}' holds 52 of 60 rows.")
    assert line.endswith(f"add --missing-label '{mark}'.")
    options = [*QUICK, "--missing-label", mark]
    assert classify(csv, tmp_path / "again", *options) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("default::graphuq.errors.FeatureScaleWarning")
def test_unequal_scales_are_a_warning_that_scaling_removes(csv, tmp_path, capsys):
    table = frame()
    table["b"] *= 1000
    table.to_csv(csv, index=False)
    options = [*QUICK]
    assert classify(csv, tmp_path / "1", *options) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("graphuq: warning: X: the scales of features differ by a factor of")
    assert line.endswith("; use --scaling standard")
    assert classify(csv, tmp_path / "2", *options, "--scaling", "standard") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("default::graphuq.errors.MissingLabelWarning")
@pytest.mark.parametrize("mark", ["?", "unknown", "Unassigned", "NA", "nan", "-"])
def test_words_for_unlabelled_are_taken_so_and_named(mark, csv, tmp_path, capsys):
    plain = tmp_path / "plain.csv"
    frame().to_csv(plain, index=False)
    table = frame()
    table["label"] = table["label"].replace("", mark)
    table.to_csv(csv, index=False)
    assert classify(plain, tmp_path / "1", *QUICK, "--quiet") == 0
    assert classify(csv, tmp_path / "2", *QUICK, "--quiet") == 0
    assert capsys.readouterr().err == (
        f"graphuq: warning: labels: '{mark}' (52 rows) is taken as unlabelled; --missing-label '' "
        "makes it a class\n"
    )
    first, second = (pd.read_csv(tmp_path / i / "predictions.csv") for i in "12")
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.filterwarnings("default::graphuq.errors.MissingLabelWarning")
def test_a_word_for_unlabelled_can_be_a_class(csv, tmp_path, capsys):
    table = frame(n_labelled=60)
    table.loc[table["label"] == "left", "label"] = "unknown"
    table.to_csv(csv, index=False)
    for texts in ([""], ["left"]):
        told = [word for text in texts for word in ("--missing-label", text)]
        assert classify(csv, tmp_path / "1", *QUICK, "--quiet", *told) == 0
        classes = pd.read_csv(tmp_path / "1" / "predictions.csv")["label"]
        assert sorted(set(classes)) == ["right", "unknown"]
    assert "unlabelled;" not in capsys.readouterr().err
    assert classify(csv, tmp_path / "2", *QUICK, "--quiet") == 2
    assert "only the class ['right']" in capsys.readouterr().err


def test_columns_can_be_dropped(csv, tmp_path):
    table = frame()
    table["note"] = "some text"
    table.to_csv(tmp_path / "more.csv", index=False)
    options = [*QUICK, "--drop", "note"]
    assert classify(tmp_path / "more.csv", tmp_path / "out", *options) == 0


def test_demo(figures, tmp_path, capsys):
    assert run(["demo", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "The chains have converged" in printed
    trust = gq.load(tmp_path / "posterior.nc").result_.trust
    assert str(trust) in printed
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"graphuq {gq.__version__}\n"


def test_starting_is_quick_because_little_is_imported():
    """Help imports neither JAX nor scikit-learn."""
    import subprocess

    code = "import sys, graphuq.cli.app; print([m for m in ('jax', 'sklearn') if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


@pytest.mark.slow
def test_diagnostics_load_where_no_cache_can_be_written(tmp_path):
    import subprocess

    (tmp_path / "file").write_text("")
    code = "from graphuq.results.arviz_data import import_arviz; import_arviz()"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "file" / "cache")}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, check=True)


@pytest.mark.slow
def test_several_classes(tmp_path, capsys):
    """Three classes from a table to files and back, a column of probabilities for each."""
    data = gq.datasets.load_digits((0, 1, 2))
    table = pd.DataFrame(data.features, columns=[f"x{i}" for i in range(64)])
    names = np.array(["zero", "one", "two"])[data.classes.astype(int)]
    table["class"] = names
    table["label"] = [
        name if (names[: i + 1] == name).sum() < 5 else "" for i, name in enumerate(names)
    ]
    table.to_csv(tmp_path / "digits.csv", index=False)
    arguments = ["classify", str(tmp_path / "digits.csv"), "--label-column", "label"]
    arguments += ["--truth-column", "class", "-o", str(tmp_path / "out")]
    assert run([*arguments, "--inference", "expectation-propagation"]) == 0
    printed = capsys.readouterr().out
    assert "accuracy 0.9" in printed
    predictions = pd.read_csv(tmp_path / "out" / "predictions.csv")
    columns = [f"probability_{name}" for name in ("one", "two", "zero")]
    np.testing.assert_allclose(predictions[columns].sum(axis=1), 1, atol=1e-5)
    assert (predictions["label"] == names).mean() > 0.9
    assert "<tr><td>zero</td>" in (tmp_path / "out" / "report.html").read_text()
    table.drop(columns=["class", "label"]).head(30).to_csv(tmp_path / "new.csv", index=False)
    stored = str(tmp_path / "out" / "posterior.nc")
    assert run(["predict", stored, str(tmp_path / "new.csv"), "-o", str(tmp_path / "p.csv")]) == 0
    again = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_allclose(again[columns], predictions[columns].head(30), atol=1e-5)
    assert run([*arguments, "--positive", "zero"]) == 2


ZHU = ["--prior", "regularized-laplacian", "--likelihood", "logistic", "--inference", "laplace"]
ZHU += ["--laplacian", "unnormalized", "--weights", "unweighted"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_search_and_proportions(csv, tmp_path, capsys):
    out = tmp_path / "out"
    options = [*ZHU, "--search", "n_neighbors=8:30", "--search", "prior__sigma=1,100"]
    options += ["--class-proportions", "left=0.25,right=0.75"]
    assert run(["classify", str(csv), *COLUMNS, "-o", str(out), *options]) == 0
    printed = capsys.readouterr().out
    assert "Largest log evidence" in printed
    assert "With the class proportions" in printed
    tried = pd.read_csv(out / "search.csv")
    assert tried["score"].is_monotonic_decreasing
    assert set(tried["prior__sigma"]) == {1, 100}
    assert gq.results.load(out / "posterior.nc").log_evidence == pytest.approx(
        tried["score"][0], abs=1e-4
    )
    table = pd.read_csv(out / "predictions.csv", keep_default_na=False)
    free = table["given"] == ""
    assert (table["label"][free] == "right").sum() == 39  # three quarters of 52
    assert table.loc[free, "probability_right"].mean() == pytest.approx(0.75, abs=1e-5)
    assert "Eigenvalues of the Laplacian" not in (out / "report.html").read_text()
    assert not list(out.glob(".*"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_other_graphs_by_the_command_line(csv, tmp_path):
    distances = np.linalg.norm(MOONS.features[:, None] - MOONS.features[None], axis=2)
    table = frame()[["name", "label", "truth"]]
    table[[f"d{i}" for i in range(60)]] = distances
    table.to_csv(tmp_path / "distances.csv", index=False)
    by_distance = tmp_path / "by_distance"
    options = ["--graph", "Epsilon(radius=0.4)", "--inference", "laplace", "--quiet"]
    options += ["--model", "largest-evidence"]  # distances have no functions of features
    assert run(["classify", str(csv), *COLUMNS, "-o", str(tmp_path / "near"), *options]) == 0
    options += ["--metric", "precomputed"]
    path = str(tmp_path / "distances.csv")
    assert run(["classify", path, *COLUMNS, "-o", str(by_distance), *options]) == 0
    same = [pd.read_csv(tmp_path / d / "predictions.csv") for d in ("near", "by_distance")]
    first, second = (table["probability_right"] for table in same)
    np.testing.assert_allclose(first, second, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--search", "n_neighbors"], "write NAME=low:high"),
        (["--search", "n_neighbors=a:b"], "two numbers"),
        (["--search", "neighbours=2:9"], "'neighbours' is unknown"),
        (["--class-proportions", "left=many"], "write CLASS=SHARE"),
        (["--class-proportions", "left=0.5,middle=0.5"], "give one share for each of"),
        (["--out-of-sample", "best"], "out_of_sample: 'best'"),
        (["--metric", "manhattan"], "metric: 'manhattan'"),
        (["--graph", "epsilon"], "use one of knn, complete, precomputed, a builder such as"),
        (["--graph", "Epsilon()"], "does not fit Epsilon; use its arguments radius"),
    ],
)
def test_bad_searches(csv, tmp_path, capsys, options, message):
    assert run(["classify", str(csv), *COLUMNS, "-o", str(tmp_path / "o"), *ZHU, *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_wrong_labels_are_named(tmp_path, capsys):
    table = frame(40)
    table.loc[4, "label"] = {"left": "right", "right": "left"}[table["label"][4]]
    table.to_csv(tmp_path / "wrong.csv", index=False)
    arguments = [*COLUMNS, "--inference", "expectation-propagation"]
    output = ["--output", str(tmp_path / "out")]
    assert run(["classify", str(tmp_path / "wrong.csv"), *arguments, *output]) == 0
    printed = capsys.readouterr().out
    assert printed.count("labels to check: ") == 1
    assert f"labels to check: row4 (given {table['label'][4]}; " in printed


def test_the_package_runs_as_a_module():
    import subprocess

    command = [sys.executable, "-m", "graphuq", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert gq.__version__ in printed
