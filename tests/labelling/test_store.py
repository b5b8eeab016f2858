"""The file of labels: nothing acknowledged is lost, whatever happens to the process."""

import json
import os
import random
import signal
import time

import numpy as np
import pytest

from graphuq.errors import InvalidInput, StorageError
from graphuq.labelling.items import TextItems
from graphuq.labelling.names import check_name
from graphuq.labelling.store import LabelStore
from labelling.programs import running

WRITER = """
import sys
from graphuq.labelling.items import TextItems
from graphuq.labelling.store import LabelStore
path, user, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = LabelStore(path, TextItems([f"text {row}" for row in range(10)]))
for k in range(n):
    store.append(user, {k % 10: f"{user} {k}"}, probabilities={k % 10: 0.5}, model=k)
    print(k, flush=True)
"""


def test_labels_are_read_again(tmp_path, items, store):
    store.append("ada", {3: "cat"}, probabilities={3: 0.75}, model=2, expected_errors=4.5)
    store.append("ada", {3: "dog", 5: "cat"})
    store.append("bob", {5: "dog"})
    store.append("ada", {7: "emu"})
    store.append("ada", {7: None})
    assert store.labels() == {3: "dog", 5: "dog"}
    again = LabelStore(tmp_path / "labels.jsonl", items)
    assert again.records == store.records
    assert again.labels() == {3: "dog", 5: "dog"}
    first = json.loads((tmp_path / "labels.jsonl").read_text().splitlines()[1])
    kept = {name: first[name] for name in ("user", "row", "item", "label", "probability", "model")}
    assert kept == {
        "user": "ada", "row": 3, "item": "3", "label": "cat", "probability": 0.75, "model": 2
    }  # fmt: skip
    table = items.label_table(again.labels())
    assert table.to_dict("list") == {"id": ["3", "5"], "label": ["dog", "dog"]}
    assert np.flatnonzero(again.to_array() == "dog").tolist() == [3, 5]


def test_two_people_are_both_kept(store):
    store.append("ada", {1: "cat", 2: "cat"})
    store.append("bob", {1: "dog", 2: "cat"})
    (found,) = store.disagreements()
    assert (found.row, dict(found.labels)) == (1, {"ada": "cat", "bob": "dog"})
    store.append("bob", {1: "cat"})
    assert store.disagreements() == []


def test_undo_goes_back_step_by_step(tmp_path, items, store):
    store.append("ada", {1: "cat"})
    store.append("ada", {1: "dog"})
    store.append("ada", {1: "emu", 2: "emu", 3: "emu"})
    store.append("bob", {4: "cat"})
    assert store.undo("ada") == {1: "dog", 2: None, 3: None}
    assert store.labels() == {1: "dog", 4: "cat"}
    again = LabelStore(tmp_path / "labels.jsonl", items)
    assert again.undo("ada") == {1: "cat"}
    assert again.undo("ada") == {1: None}
    assert again.undo("ada") == {}
    assert again.labels() == {4: "cat"}
    assert store.refresh()
    assert store.labels() == {4: "cat"}
    store.append("ada", {5: "cat"})
    assert store.undo("ada") == {5: None}


@pytest.mark.parametrize("torn", [b'{"time": "2026', b"\x00\x00\x00", b"{" + b"x" * 9000])
def test_an_incomplete_last_line_is_removed(tmp_path, items, store, torn):
    store.append("ada", {1: "cat"})
    whole = (tmp_path / "labels.jsonl").read_bytes()
    with open(tmp_path / "labels.jsonl", "ab") as file:
        file.write(torn)
    again = LabelStore(tmp_path / "labels.jsonl", items)
    assert again.labels() == {1: "cat"}
    assert (tmp_path / "labels.jsonl").read_bytes() == whole
    again.append("ada", {2: "dog"})
    store.append("bob", {3: "dog"})  # an open store sees what the other wrote
    assert store.labels() == {1: "cat", 2: "dog", 3: "dog"}


def test_damage_elsewhere_is_an_error(tmp_path, items, store):
    store.append("ada", {1: "cat"})
    path = tmp_path / "labels.jsonl"
    path.write_bytes(path.read_bytes() + b"rubbish\n")
    with pytest.raises(StorageError, match=r"line 3 of .* is damaged"):
        LabelStore(path, items)


def test_a_file_of_other_items_is_refused(tmp_path, items, store):
    store.append("ada", {1: "cat"})
    path = tmp_path / "labels.jsonl"
    texts = items.texts
    with pytest.raises(StorageError, match="labels of other items"):
        LabelStore(path, TextItems(["changed", *texts[1:]]))
    with pytest.raises(StorageError, match="labels of other items"):
        LabelStore(path, TextItems(texts[:5]))
    assert LabelStore(path, TextItems([*texts, "one more"])).labels() == {1: "cat"}
    (tmp_path / "other.txt").write_text("id,label\n")
    with pytest.raises(StorageError, match="not a file of labels"):
        LabelStore(tmp_path / "other.txt", items)


def test_rows_and_names_are_checked(store):
    with pytest.raises(InvalidInput, match="row: 10; use 0 to 9"):
        store.append("ada", {3: "cat", 10: "cat"})
    assert store.labels() == {}
    assert check_name("  Fußball ", "label") == "Fußball"
    for wrong in ("", " ", "a\nb", "x" * 101, "\ud800", 3):
        with pytest.raises(InvalidInput):
            check_name(wrong, "label")


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, store, monkeypatch):
    store.append("ada", {1: "cat"})
    before, write = (tmp_path / "labels.jsonl").read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:10]))
    with pytest.raises(StorageError, match="the disk is full"):
        store.append("ada", {2: "cat"})
    monkeypatch.undo()
    assert (tmp_path / "labels.jsonl").read_bytes() == before
    assert store.labels() == {1: "cat"}


def test_labels_wait_for_the_disk(store, monkeypatch):
    synced, fsync = [], os.fsync

    def noted(file):
        synced.append(os.fstat(file).st_size)
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    store.append("ada", {1: "cat"})
    assert synced == [os.path.getsize(store.path)]


@pytest.mark.parametrize("n_kills", [2, pytest.param(15, marks=pytest.mark.slow)])
def test_kill_loses_no_acknowledged_label(tmp_path, items, n_kills):
    """A writer is killed at random moments; each label that it had reported is in the file."""
    generator = random.Random(0)
    acknowledged = 0
    for k in range(n_kills):
        path = tmp_path / f"labels{k}.jsonl"
        with running(WRITER, path, "ada", 1_000_000) as process:
            process.stdout.readline()
            time.sleep(generator.uniform(0.0, 0.05))
            process.send_signal(signal.SIGKILL)
            last = process.stdout.read().splitlines()[-1:]
        n_reported = int(last[0]) + 1 if last else 1
        records = LabelStore(path, items).records
        assert [record.model for record in records][:n_reported] == list(range(n_reported))
        assert len(records) <= n_reported + 1  # at most one was written and not yet reported
        acknowledged += n_reported
    assert acknowledged > n_kills


def test_two_processes_write_to_the_same_file(tmp_path, items):
    path = tmp_path / "labels.jsonl"
    with running(WRITER, path, "ada", 40) as first, running(WRITER, path, "bob", 40) as second:
        for process in (first, second):
            process.communicate(timeout=120)
            assert process.returncode == 0
    records = LabelStore(path, items).records
    for user in ("ada", "bob"):
        assert [r.model for r in records if r.user == user] == list(range(40))
