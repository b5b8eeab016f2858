"""``graphuq label``: what it reads, shows and writes; errors as one line."""

import builtins
import gc
import json
import signal
import subprocess
import sys
import time
import urllib.request
from functools import partial

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import sparse

import graphuq as gq
from graphuq.cli.app import run
from graphuq.cli.items import Columns, read_source

pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")
DIGITS = gq.datasets.load_digits((0, 1))
X, NAMES = DIGITS.features[:40], np.array(["zero", "one"])[DIGITS.target[:40].astype(int)]


def text_of(row):
    """Four of six words of the class, and two of six words that both classes use."""
    rng = np.random.default_rng(row)
    own = [f"{NAMES[row]}{k}" for k in range(6)]
    return " ".join([*rng.choice(own, 4), *rng.choice([f"both{k}" for k in range(6)], 2)])


ITEMS = [text_of(row) for row in range(40)]


@pytest.fixture
def opened(monkeypatch):
    """Pages that were opened; the person gives the classes of the first two and last two rows."""
    pages = []

    def person(page):
        pages.append(page)
        for row in (0, 1, -1, -2):
            rows = [row % len(page.session.items)]
            page.session.label("ada", rows, str(NAMES[row]))
        page.session.wait_until_current()
        raise KeyboardInterrupt

    monkeypatch.setattr(gq.LabellingPage, "wait", person)
    return pages


@pytest.fixture
def label(tmp_path, opened):
    """Run the command; return its page and what it wrote."""

    def act(*arguments, out="out"):
        arguments = [str(argument) for argument in arguments]
        folder = tmp_path / out
        code = run(["label", *arguments, "--no-browser", "--user", "ada", "-o", str(folder)])
        assert code == 0
        table = pd.read_csv(folder / "predictions.csv", keep_default_na=False, dtype={"id": str})
        return opened[-1], table, pd.read_csv(folder / "labels.csv", dtype=str)

    return act


@pytest.fixture
def csv(tmp_path):
    table = pd.DataFrame(X).add_prefix("pixel")
    table["body"] = ITEMS
    table["known"] = np.where(np.arange(40) == 5, NAMES, "?")
    table["name"] = [f"row{i}" for i in range(40)]
    table.to_csv(tmp_path / "items.csv", index=False)
    return tmp_path / "items.csv"


def test_the_object_of_json_comes_at_the_end(label, csv, tmp_path, capsys):
    options = ["--drop", "body", "--drop", "known", "--id-column", "name", "--json"]
    page, table, labels = label(csv, *options)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert page.address in printed.err  # at once, so that somebody can open it
    assert found["address"] == page.address
    assert (found["n_labelled"], found["n_items"]) == (len(labels), len(table)) == (4, 40)
    assert set(found["files"]) == {
        str(tmp_path / "out" / name) for name in ("labels.jsonl", "labels.csv", "predictions.csv")
    }


def test_the_predictions_know_the_last_labels(csv, tmp_path, monkeypatch):
    """Labels that are given faster than the model takes them, and then Ctrl+C at once."""

    def person(page):
        for row in (0, 1):
            page.session.label("ada", [row], str(NAMES[row]))
        page.forecasts.wait()
        for row, name in ((2, "other"), (38, NAMES[38]), (39, NAMES[39])):
            page.session.label("ada", [row], str(name))
        raise KeyboardInterrupt

    monkeypatch.setattr(gq.LabellingPage, "wait", person)
    arguments = [str(csv), "--text-column", "body", "--no-browser", "-o", str(tmp_path / "out")]
    assert run(["label", *arguments]) == 0
    table = pd.read_csv(tmp_path / "out" / "predictions.csv")
    classes = {f"probability_{name}" for name in ("one", "other", "zero")}
    assert classes <= set(table.columns)
    assert table["given"].dropna().tolist() == [*NAMES[:2], "other", *NAMES[38:]]


def test_the_garbage_collector_leaves_out_what_stays(csv, tmp_path, monkeypatch):
    """A full collection visits no module while the page is open; afterwards it does again."""
    counts = []

    def person(page):
        page.session.wait_until_current()
        until = time.monotonic() + 60
        while gc.get_freeze_count() == 0 and time.monotonic() < until:
            time.sleep(0.01)
        counts.append(gc.get_freeze_count())
        raise KeyboardInterrupt

    gc.unfreeze()  # the tests freeze what they have loaded
    assert gc.get_freeze_count() == 0
    monkeypatch.setattr(gq.LabellingPage, "wait", person)
    arguments = [str(csv), "--text-column", "body", "--no-browser", "-o", str(tmp_path / "out")]
    assert run(["label", *arguments]) == 0
    assert counts[0] > 100_000
    assert gc.get_freeze_count() == 0


def test_nobody_waits_for_a_model_that_does_not_come(csv, tmp_path, monkeypatch, capsys):
    """A second Ctrl+C writes what is known."""

    def person(page):
        for row in (0, 1):
            page.session.label("ada", [row], str(NAMES[row]))
        page.session.wait_until_current()
        raise KeyboardInterrupt

    def never(forecasts, timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr(gq.LabellingPage, "wait", person)
    monkeypatch.setattr("graphuq.labelling.forecast.Forecasts.wait", never)
    monkeypatch.setattr("graphuq.labelling.forecast.Forecasts.is_current", False)
    arguments = [str(csv), "--text-column", "body", "--no-browser", "-o", str(tmp_path / "out")]
    assert run(["label", *arguments]) == 0
    assert "The predictions do not know the last labels." in capsys.readouterr().out
    assert (tmp_path / "out" / "labels.csv").exists()


@pytest.mark.slow
def test_rows_of_a_table(label, csv, tmp_path, capsys):
    options = ("--label-column", "known", "--missing-label", "?", "--id-column", "name")
    page, table, labels = label(csv, "--drop", "body", *options)
    printed = capsys.readouterr().out
    assert page.address in printed
    assert "5 of 40 items are labelled" in printed
    assert table["id"].tolist() == [f"row{i}" for i in range(40)]
    assert labels["id"].tolist() == ["row0", "row1", "row5", "row38", "row39"]
    assert labels["label"].tolist() == NAMES[[0, 1, 5, 38, 39]].tolist()
    assert (table["label"] == NAMES).mean() > 0.9
    p = table[["probability_one", "probability_zero"]].to_numpy()
    np.testing.assert_allclose(p, page.session.result.probabilities, atol=1e-5)
    assert page.session.items.names[-2:] == ["pixel63", "body"]  # shown, though no feature
    code = run(["classify", str(csv), "--labels", str(tmp_path / "out" / "labels.csv"), "--quiet"]
               + ["--id-column", "name", "--drop", "body", "--drop", "known", "--inference"]
               + ["laplace", "-o", str(tmp_path / "classified")])  # fmt: skip
    assert code == 0


@pytest.mark.filterwarnings("ignore:X. 'ID' is named like an id")
@pytest.mark.parametrize("text", [None, "body"])
def test_a_column_of_ids_that_is_not_used_is_named(text, tmp_path):
    """Labels by id would be taken as labels by row number, as in ``graphuq classify``."""
    table = pd.DataFrame({"ID": np.arange(40)[::-1], "size": X[:, 20]})
    if text is not None:
        table.insert(0, text, ITEMS)
    table.to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame({"id": [3, 4], "label": ["a", "b"]}).to_csv(tmp_path / "l.csv", index=False)
    read = partial(read_source, tmp_path / "t.csv", labels=tmp_path / "l.csv")
    words = r"column \['ID'\] of the table .* add --id-column ID, or --drop ID"
    with pytest.raises(gq.GraphuqError, match=words):
        read(columns=Columns(text=text))
    named = read(columns=Columns(text=text, id="ID"))
    assert np.flatnonzero(named.labels).tolist() == [35, 36]
    dropped = read(columns=Columns(text=text, dropped=["ID"]))
    assert np.flatnonzero(dropped.labels).tolist() == [3, 4]


def test_texts_are_shown_and_compared_by_their_words(label, csv, capsys):
    page, table, _ = label(csv, "--text-column", "body")
    assert page.session.items.content(0) == {"kind": "text", "text": ITEMS[0]}
    assert (table["label"] == NAMES).mean() > 0.9
    assert "tf-idf" in capsys.readouterr().out


@pytest.fixture
def mixed(tmp_path):
    """A table of numbers with gaps, categories that tell the class, and texts."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=40), "body": ITEMS})
    table.loc[3, "size"] = np.nan
    table["colour"] = np.where(rng.uniform(size=40) < 0.9, NAMES, "none")
    table.to_csv(tmp_path / "mixed.csv", index=False)
    return tmp_path / "mixed.csv"


def test_encoded_columns_are_features_of_rows_and_texts(label, mixed):
    page, table, _ = label(mixed, "--encode", "--impute")
    assert page.session.items.names == ["size", "body", "colour"]
    assert (table["label"] == NAMES).mean() > 0.9
    page, table, _ = label(mixed, "--encode", "--impute", "--text-column", "body", out="texts")
    assert page.session.items.texts == ITEMS
    assert (table["label"] == NAMES).mean() > 0.9


@pytest.mark.parametrize("text", [None, "body"])
def test_encoded_features_are_those_of_the_encoder(text, mixed):
    frame = pd.read_csv(mixed)
    expected = gq.TableEncoder(impute=True).fit_transform(frame)
    source = read_source(mixed, Columns(text=text, encoder=gq.TableEncoder(impute=True)), None)
    np.testing.assert_allclose(as_dense(source.features), as_dense(expected))
    assert source.words == ""
    imputed = gq.TableEncoder(False, impute=True, scale=False)
    source = read_source(mixed, Columns(dropped=["body", "colour"], encoder=imputed), None)
    assert source.features.shape == (40, 2)  # and where the cell was empty


def as_dense(features):
    return features.toarray() if sparse.issparse(features) else np.asarray(features)


def test_other_columns_are_shown_beside_a_text(mixed):
    columns = pd.read_csv(mixed).columns.drop("body").tolist()
    items = read_source(mixed, Columns(text="body"), None).items
    shown = items.shown(0)
    assert shown["kind"] == "text"
    assert [name for name, _ in shown["fields"]] == columns
    assert (
        read_source(mixed, Columns(text="body", label=columns[0]), None).items.beside.names
        == (columns[1:])
    )


def test_the_same_command_goes_on(label, csv):
    label(csv, "--text-column", "body")
    page, _, labels = label(csv, "--text-column", "body", "--class", "neither")
    assert len(page.session.store.records) == 8
    assert len(labels) == 4
    assert page.session._offered_classes == ("neither",)


def test_exports_are_read_again(label, csv, tmp_path):
    """What one campaign wrote is the source of another, with its labels."""
    exports = [part for name in ("prodigy", "huggingface", "jsonl") for part in ("--export", name)]
    page, _, labels = label(csv, "--text-column", "body", *exports)
    known = dict(zip(labels["id"].astype(int), labels["label"], strict=True))
    page, _, _ = label(tmp_path / "out" / "huggingface.parquet", out="second")
    assert page.session.items.texts == ITEMS
    assert page.session.given == known
    table = tmp_path / "out" / "labelled.jsonl"
    columns = ["--text-column", "text", "--label-column", "label", "--id-column", "id"]
    page, _, _ = label(table, *columns, out="third")
    assert page.session.items.texts == ITEMS
    assert page.session.given == known
    page, _, _ = label(tmp_path / "out" / "prodigy.jsonl", out="fourth")
    assert page.session.items.texts == [ITEMS[row] for row in sorted(known)]


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "sparse"])
def test_features_in_a_file_of_their_own(label, csv, tmp_path, kind):
    path = tmp_path / f"emb.{'npz' if kind == 'sparse' else kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "csv":
        pd.DataFrame(X).to_csv(path, index=False)
    elif kind == "npz":
        np.savez(path, X=X)
    else:
        sparse.save_npz(path, sparse.csr_matrix(X))
    page, table, _ = label(csv, "--text-column", "body", "--features", path)
    assert (table["label"] == NAMES).mean() > 0.9
    assert page.session.items.content(1)["kind"] == "text"


@pytest.fixture
def folder(tmp_path):
    """Digits as files."""
    (tmp_path / "pictures").mkdir()
    for row, pixels in enumerate(X.reshape(-1, 8, 8)):
        picture = Image.fromarray((pixels * 255 / 16).astype(np.uint8)).resize((40, 40))
        picture.save(tmp_path / "pictures" / f"{row:02}.png")
    return tmp_path / "pictures"


def test_pictures_of_a_folder(label, folder, capsys):
    page, table, _ = label("--images", folder)
    assert table["id"][3] == "03.png"
    assert (table["label"] == NAMES).mean() > 0.9
    assert page.session.items.picture(3)[1] == "image/png"
    assert "poor for photographs" in capsys.readouterr().out


def test_pictures_of_a_column(label, folder, tmp_path):
    frame = pd.DataFrame({"file": [f"{row:02}.png" for row in range(40)], "known": NAMES})
    frame.loc[2:, "known"] = ""
    frame.to_csv(folder / "list.csv", index=False)
    first = label(folder / "list.csv", "--image-column", "file", "--label-column", "known")
    frame.to_parquet(tmp_path / "list.parquet")
    second = label(tmp_path / "list.parquet", "--image-column", "file", "--images", folder, out="2")
    for _, table, _ in (first, second):
        assert (table["label"] == NAMES).mean() > 0.9
        assert table["id"][3] == "3"


def test_arrays_of_pixels_and_of_numbers(label, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    page, table, _ = label(tmp_path / "rows.npy", "--scaling", "standard", "--pca", 20)
    assert page.session.items.content(0)["kind"] == "fields"
    assert (table["label"] == NAMES).mean() > 0.9
    np.save(tmp_path / "pixels.npy", X.reshape(-1, 8, 8))
    page, table, _ = label(tmp_path / "pixels.npy", out="2")
    assert page.session.items.content(0) == {"kind": "picture", "pixelated": True}
    assert (table["label"] == NAMES).mean() > 0.9


def test_cells_of_anndata(label, tmp_path):
    anndata = pytest.importorskip(
        "anndata", reason="pip install graphuq[anndata], to read .h5ad files"
    )
    graph = gq.graphs.knn_graph(X, 12)  # 8 make two components
    names = pd.Index([f"cell{i}" for i in range(40)], dtype=object)
    cells = anndata.AnnData(
        X.astype(np.float32),
        obs=pd.DataFrame({"depth": np.arange(40)}, index=names),
        var=pd.DataFrame(index=pd.Index([f"gene{i}" for i in range(64)], dtype=object)),
        obsp={"connectivities": sparse.csr_matrix(graph.weights)},
    )
    cells.write_h5ad(tmp_path / "cells.h5ad")
    page, table, _ = label(tmp_path / "cells.h5ad")
    assert table["id"][3] == "cell3"
    assert (table["label"] == NAMES).mean() > 0.9
    assert page.session.items.content(3)["fields"] == [["depth", "3"]]


def test_without_anndata_the_remedy_is_told(tmp_path, capsys, monkeypatch):
    (tmp_path / "cells.h5ad").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "anndata", None)
    assert run(["label", str(tmp_path / "cells.h5ad"), "-o", str(tmp_path / "out")]) == 2
    assert "run pip install 'graphuq[anndata]'" in capsys.readouterr().err


def test_without_the_extra_the_remedy_is_told_at_once(csv, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("graphuq.utils.extras._is_installed", lambda name: name != "uvicorn")
    monkeypatch.setattr(builtins, "open", None)  # nothing is read before
    assert run(["label", str(csv), "-o", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert "run pip install 'graphuq[label]'" in captured.err
    assert len(captured.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("order", [["--class-order", "zero,half,one"], ["--ordered"]])
def test_grades(label, csv, tmp_path, monkeypatch, order):
    is_listed = len(order) == 2
    if not is_listed:
        table = pd.read_csv(csv)
        table["known"] = table["known"].map({"zero": "10", "one": "9"})
        table.to_csv(csv, index=False)
        monkeypatch.setattr(sys.modules[__name__], "NAMES", np.where(NAMES == "zero", "10", "9"))
    page, table, _ = label(csv, "--text-column", "body", "--label-column", "known",
                           "--missing-label", "?", *order)  # fmt: skip
    names = ["zero", "half", "one"] if is_listed else ["9", "10"]
    assert [c["name"] for c in page.session.state("ada")["classes"]] == names
    assert [name for name in table if name.startswith("probability_")] == [
        f"probability_{name}" for name in names
    ]
    given = page.session.latest[1]
    assert set(given.values()) == set(names) - {"half"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_ctrl_c_ends_the_page_and_writes_the_tables(csv, tmp_path):
    code = "from graphuq.cli import main; main()"
    arguments = ["label", str(csv), "--text-column", "body", "--no-browser", "-o", str(tmp_path)]
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        lines = [p.stdout.readline() for _ in range(3)]
        with urllib.request.urlopen(lines[1].strip(), timeout=60) as answer:
            assert answer.status == 200
        p.send_signal(signal.SIGINT)
        _, told = p.communicate(timeout=60)
    assert "Traceback" not in told
    assert p.returncode == 0
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 40


@pytest.mark.filterwarnings("ignore::graphuq.errors.MissingLabelWarning")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "FILE: not given; give a table, or --images FOLDER"),
        (["{csv}"], "); add --text-column body to label these, --encode to"),
        (["{pictures}"], "'file' holds texts ('a.png'); add --image-column file"),
        (["{csv}", "--text-column", "boddy"], "did you mean 'body'?"),
        (["{csv}", "--text-column", "body", "--image-column", "name"], "give one of the two"),
        (["{csv}", "--images", "."], "name the column with the files"),
        (["{csv}", "--image-column", "name"], "'row0' is not of a known type"),
        (["--images", ".", "--text-column", "x"], "--text-column: given beside --images"),
        (["--images", "nowhere"], "there is no folder 'nowhere'"),
        (["{texts}"], ", but .txt; use .png, .jpg, .jpeg, .gif, .webp, .bmp; texts are rows of a"),
        (["nowhere.csv"], "there is no file 'nowhere.csv'"),
        (["{csv}", "--text-column", "body", "--features", "{short}"], "2 rows for 40 items"),
        (["{csv}", "--text-column", "body", "--pca", "2"], "given beside words"),
        (["{csv}", "--label-column", "known", "--labels", "{csv}"], "give one of the two"),
        (["{weights}"], "'w.npz' holds a sparse matrix"),
        (["{short}", "--label-column", "x"], "--label-column: given beside 'short.npy'"),
        (["{broken}"], "is not a readable npy file"),
        (["{short}", "--encode"], "--encode: given beside 'short.npy'"),
        (
            ["{csv}", "--text-column", "body", "--ordered", "--class-order", "a,b"],
            "--ordered: given",
        ),
        (["{csv}", "--text-column", "body", "--class-order", "a"], "--class-order: 'a'"),
        (
            ["{csv}", "--text-column", "body", "--class-order", "a,b", "--label-column", "known"],
            "is no grade; use a, b",
        ),
        (["{csv}", "--text-column", "body", "--ordered", "--model", "average"], "beside ordered"),
        (["--images", ".", "--encode"], "--encode: given beside --images without a table"),
        (["{csv}", "--encode", "--features", "{short}"], "--encode: given beside --features"),
        (["{csv}", "--text-column", "body", "--export", "coco"], "use one of csv, parquet, jsonl"),
        (["{pixels}", "--export", "prodigy"], "'prodigy' for pictures without files"),
        (["{csv}", "--kind", "body=text"], "--kind: given without --encode"),
        (["{csv}", "--image-column", "name", "--encode", "--pca", "2"], "of a known type"),
    ],
)
def test_errors(arguments, message, csv, tmp_path, capsys, opened):
    pd.DataFrame({"file": ["a.png", "b.png"], "x": [1, 2]}).to_csv(tmp_path / "list.csv")
    files = {name: tmp_path / f"{name}.npy" for name in ("short", "broken", "pixels")}
    np.save(files["pixels"], np.zeros((4, 2, 2)))
    np.save(files["short"], np.zeros((2, 2)))
    files["broken"].write_bytes(b"broken")
    files["pictures"] = tmp_path / "list.csv"
    files["texts"] = tmp_path / "texts"
    files["texts"].mkdir()
    (files["texts"] / "a.txt").write_text("a text")
    files["weights"] = tmp_path / "w.npz"
    sparse.save_npz(files["weights"], sparse.eye_array(3, format="csr"))
    arguments = [argument.format(csv=csv, **files) for argument in arguments]
    assert run(["label", *arguments, "--no-browser", "-o", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1
    assert opened == []
