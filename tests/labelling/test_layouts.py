"""Files of other tools: what is read, and what is written is read back."""

import csv
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import graphuq as gq
from graphuq.cli.items import Columns, read_source
from graphuq.errors import GraphuqWarning, InvalidInput, StorageError
from graphuq.labelling.campaign import log_table
from graphuq.labelling.items import PictureArrays, PictureFiles, TextItems, items_of
from graphuq.labelling.layouts import LAYOUTS, Labelled, layout_of, layouts_of, write_labelled
from graphuq.labelling.notebook import page_text

TEXTS = ['=1+1, and a "quote"', "zwei\nZeilen ü", "", "three", "four"]
LABELS = {0: "spam & co", 1: "mail", 3: "mail"}
ROWS = list(range(5))


def texts():
    items = TextItems(TEXTS, [f"t{row}" for row in ROWS])
    items.beside = items_of(pd.DataFrame({"sender": list("abcde"), "label": [1.5, None, 3, 4, 5]}))
    return items


def labelled(items):
    readings = {0: {"ada": "mail", "bob": "spam & co"}, 1: {"ada": "mail"}}  # row 3 was known
    return Labelled(items, LABELS, readings)


@pytest.mark.filterwarnings("ignore:.*spreadsheet:graphuq.errors.GraphuqWarning")
@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_written_is_read_back(name, tmp_path):
    """All layouts hold all texts and labels, but Prodigy's only items that have a label."""
    path = tmp_path / LAYOUTS[name].file
    write_labelled(labelled(texts()), name, path)
    columns = Columns()
    if name in ("csv", "parquet", "jsonl"):
        assert layout_of(path) is None
        columns = Columns(text="text", label="label", id="id")
    source = read_source(path, columns, None)
    kept = [row for row in ROWS if row in LABELS] if name == "prodigy" else ROWS
    marks = "'" if name == "csv" else ""  # before what a spreadsheet would run
    assert [text.lstrip(marks) for text in source.items.texts] == [TEXTS[row] for row in kept]
    assert source.labels.tolist() == [LABELS.get(row, "") for row in kept]
    assert "sender" in source.items.beside.names
    senders = dict(source.items.beside.columns())["sender"]
    assert list(senders) == [list("abcde")[row] for row in kept]
    if name not in ("label-studio", "prodigy"):
        assert list(source.items.ids) == [f"t{row}" for row in kept]


def test_spreadsheets_run_no_cell(tmp_path):
    with pytest.warns(GraphuqWarning, match="spreadsheet"):
        write_labelled(labelled(texts()), "csv", tmp_path / "labelled.csv")
    with (tmp_path / "labelled.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["text"] == "'" + TEXTS[0]


def test_prodigy_has_an_example_a_person(tmp_path):
    write_labelled(labelled(texts()), "prodigy", tmp_path / "x.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [(e.get("_annotator_id"), e["accept"], e["answer"]) for e in lines] == [
        ("ada", ["mail"], "accept"),
        ("bob", ["spam & co"], "accept"),
        ("ada", ["mail"], "accept"),
        (None, ["mail"], "accept"),
    ]
    assert lines[0]["meta"] == {"id": "t0", "sender": "a", "label 2": 1.5}
    assert lines[0]["options"][1] == {"id": "spam & co", "text": "spam & co"}


def test_examples_of_prodigy_itself(tmp_path):
    """Binary labels count if they were accepted; ignored ones are items without a label."""
    lines = [
        {"text": "a", "label": "SPORT", "answer": "reject", "_task_hash": 1},
        {"text": "a", "label": "NEWS", "answer": "accept", "_task_hash": 2},
        {"text": "b", "options": [{"id": "X", "text": "x"}], "accept": ["X"], "answer": "accept"},
        {"text": "c", "label": "NEWS", "answer": "ignore"},
        {"text": "d", "accept": ["X", "Y"], "answer": "accept"},
    ]
    path = tmp_path / "db.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    source = read_source(path, Columns(), None)
    assert source.items.texts == ["a", "b", "c", "d"]
    assert source.labels.tolist() == ["NEWS", "X", "", ""]


def test_exports_of_label_studio(tmp_path):
    """The long export, of which the latest annotation counts, and JSON-MIN."""
    choice = {"from_name": "label", "type": "choices"}

    def done(label, at):
        return {"result": [{**choice, "value": {"choices": [label]}}], "updated_at": at}

    long = [
        {"id": 7, "data": {"text": "one", "n": 1}, "annotations": [done("b", "2"), done("a", "1")]},
        {"id": 9, "data": {"text": "two", "n": 2}, "annotations": []},
    ]
    (tmp_path / "long.json").write_text(json.dumps(long))
    source = read_source(tmp_path / "long.json", Columns(), None)
    assert (source.items.texts, source.labels.tolist()) == (["one", "two"], ["b", ""])
    assert list(source.items.ids) == ["7", "9"]
    assert source.items.shown(1)["fields"] == [["n", "2"]]
    short = [{"id": 1, "body": "one", "label": "a", "annotator": 1, "lead_time": 2.5},
             {"id": 2, "body": "two", "label": "b", "annotator": 1, "lead_time": 3.5}]  # fmt: skip
    (tmp_path / "short.json").write_text(json.dumps(short))
    source = read_source(tmp_path / "short.json", Columns(), None)
    assert (source.items.texts, source.labels.tolist()) == (["one", "two"], ["a", "b"])
    (tmp_path / "bad.json").write_text("[{")
    with pytest.raises(StorageError, match="no JSON"):
        read_source(tmp_path / "bad.json", Columns(), None)


def test_pictures_of_hugging_face(tmp_path):
    """Pixels are in the Parquet file; folders are classes, or a table of metadata has them."""
    pixels = np.random.default_rng(0).integers(0, 255, (4, 6, 5)).astype(np.uint8)
    items = PictureArrays(pixels)
    write_labelled(Labelled(items, {0: "cat", 2: "dog"}), "huggingface", tmp_path / "x.parquet")
    source = read_source(tmp_path / "x.parquet", Columns(), None)
    assert source.labels.tolist() == ["cat", "", "dog", ""]
    for row in range(4):
        assert source.items.picture(row) == items.picture(row)
    assert source.items.digest(4) != source.items.digest(3)
    folder = tmp_path / "pets"
    for row, name in enumerate(("cat/a", "dog/b", "c")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[row]).save(folder / f"{name}.png")
    source = read_source(folder, Columns(), None)
    found = dict(zip(source.items.ids, source.labels.tolist(), strict=True))
    assert found == {"cat/a.png": "cat", "dog/b.png": "dog", "c.png": ""}
    table = "file_name,label,age\ncat/a.png,1,3\nc.png,,4\n"
    (folder / "metadata.csv").write_text(table)
    source = read_source(folder, Columns(), None)
    assert list(source.items.ids) == ["cat/a.png", "c.png"]
    assert source.labels.tolist() == ["1", ""]
    assert source.items.beside.names == ["age"]
    (folder / "metadata.csv").write_text("file,label\na,1\n")
    with pytest.raises(InvalidInput, match="file_name"):
        read_source(folder, Columns(), None)


def test_a_data_set_that_was_saved(tmp_path):
    """Arrow files of ``save_to_disk``, in order of their names, with codes as classes."""
    import pyarrow as pa

    features = {"body": {"dtype": "string", "_type": "Value"},
                "topic": {"names": ["x", "y"], "_type": "ClassLabel"}}  # fmt: skip
    schema = pa.schema(
        [("body", pa.string()), ("topic", pa.int64())],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    for part, rows in enumerate(([["a", "b"], [1, -1]], [["c"], [0]])):
        path = tmp_path / "set" / f"data-0000{part}-of-00002.arrow"
        path.parent.mkdir(exist_ok=True)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(pa.table(dict(zip(("body", "topic"), rows, strict=True)), schema))
    source = read_source(tmp_path / "set", Columns(), None)
    assert (source.items.texts, source.labels.tolist()) == (["a", "b", "c"], ["y", "", "x"])


def test_layouts_without_pixels_refuse_arrays(tmp_path):
    arrays = Labelled(PictureArrays(np.ones((3, 4, 4))), {})
    for name in ("label-studio", "prodigy"):
        with pytest.raises(InvalidInput, match="huggingface, which holds pixels"):
            write_labelled(arrays, name, tmp_path / "x.json")
    with pytest.raises(InvalidInput, match="label-studio, prodigy"):
        write_labelled(arrays, "coco", tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_files_of_pictures_are_named(tmp_path):
    for name in ("a", "b"):
        Image.new("L", (3, 3)).save(tmp_path / f"{name}.png")
    items = PictureFiles.in_folder(tmp_path)
    write_labelled(Labelled(items, {1: "cat"}), "label-studio", tmp_path / "x.json")
    tasks = json.loads((tmp_path / "x.json").read_text())
    assert [task["data"]["image"] for task in tasks] == ["a.png", "b.png"]
    write_labelled(Labelled(items, {1: "cat"}), "prodigy", tmp_path / "x.jsonl")
    assert json.loads((tmp_path / "x.jsonl").read_text())["image"] == "b.png"


def test_the_page_links_to_layouts_that_hold_the_items(tmp_path):
    """Label Studio and Prodigy cannot show pixels without a file, and CSV has names alone."""
    pixels = np.random.default_rng(0).random((12, 4, 4))
    with gq.label(pixels.reshape(12, -1), pixels, labels=tmp_path / "a", open_browser=False) as a:
        assert [one.title for one in layouts_of(a.session.items)] == [
            "CSV", "Parquet", "JSON lines", "Hugging Face",
        ]  # fmt: skip
        text = page_text("t", "ada", a.session.items)
        assert re.findall(r'href="/export/([a-z-]+)"', text) == ["csv", "parquet", "jsonl",
                                                                 "huggingface"]  # fmt: skip
        with pytest.raises(InvalidInput, match="layout: 'prodigy' for pictures without files"):
            a.export("prodigy", tmp_path / "prodigy.jsonl")
        assert not (tmp_path / "prodigy.jsonl").exists()
        for one in layouts_of(a.session.items):
            a.export(one.name, tmp_path / one.file)
            assert (tmp_path / one.file).stat().st_size > 0
    assert len(layouts_of(items_of([f"text {k}" for k in range(3)]))) == 6


def test_a_campaign_goes_on_on_another_machine(tmp_path):
    """A copy of the folder has the same labels, the same items next and the same log."""
    moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.1)
    names = np.array(["left", "right"])[moons.classes.astype(int)]
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()

    def open_page(folder):
        options = {"labels": folder / "labels.jsonl", "open_browser": False, "overlap": 0.3}
        page = gq.label(moons.features, **options)
        page.session.wait_until_current()
        return page

    with open_page(here) as page:
        for _ in range(8):
            (card,) = page.session.queue("ada", 1)
            page.session.label("ada", [card["row"]], names[card["row"]])
            page.session.wait_until_current()
        page.session.write("ada", {5: None}, kind="note", texts={5: "look at this"})
        page.session.undo("ada")
    shutil.copytree(here, there)

    def state(page):
        session = page.session
        return (
            page.labels.tolist(),
            [card["row"] for card in session.queue("ada", 8)],
            [(c["row"], c.get("blind")) for c in session.queue("bob", 8)],
            log_table(session.store.records).astype(str).to_dict("records"),
            session.store.standing.notes,
        )

    with open_page(here) as page:
        first = state(page)
    with open_page(there) as page:
        assert state(page) == first
        assert page.session.undo("ada")
    assert sum(label != "" for label in first[0]) == 7
    assert first[4] == {5: {"ada": "look at this"}}
