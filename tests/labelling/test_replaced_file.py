"""A file of labels that others replace, change or delete while it is open: nothing is lost."""

import contextlib
import json
import os
import shutil
import subprocess
import time

import pytest

from graphuq.errors import StorageError
from graphuq.labelling import shared_file
from graphuq.labelling.items import TextItems
from graphuq.labelling.store import LabelStore
from labelling.programs import running

THREE = {1: "cat", 2: "dog", 3: "emu"}


@pytest.fixture
def path(store):
    """A file with three labels, of a store that stays open."""
    for row, label in THREE.items():
        store.append("ada", {row: label})
    return store.path


def on_disk(path):
    """Return the labels in a file, read without the store."""
    records = [json.loads(line) for line in path.read_bytes().splitlines()[1:] if line.strip()]
    return {record["row"]: record["label"] for record in records}


def by_a_copy(path):
    """As git, cloud programs and most editors do."""
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    os.replace(copy, path)


def by_an_older_copy(path):
    lines = path.read_bytes().splitlines(keepends=True)
    copy = path.with_suffix(".copy")
    copy.write_bytes(b"".join(lines[:3]))
    os.replace(copy, path)


def by_a_backup(path):
    """As vim: the old file gets another name, and a new one is written."""
    content = path.read_bytes()
    path.rename(path.with_suffix(".bak"))
    path.write_bytes(content)


def in_place(path):
    path.write_bytes(path.read_bytes())


def in_place_and_shorter(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))


def without_the_last_line_end(path):
    path.write_bytes(path.read_bytes()[:-1])


def with_windows_line_ends(path):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def with_empty_lines_and_a_mark(path):
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    path.write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\n\n") + b"\n")


def emptied(path):
    path.write_bytes(b"")


def full_of_zeros(path):
    """As after a power failure."""
    path.write_bytes(b"\0" * 500)


def deleted(path):
    path.unlink()


def moved(path):
    path.rename(path.with_suffix(".old"))


CHANGES = [
    by_a_copy,
    by_an_older_copy,
    by_a_backup,
    in_place,
    in_place_and_shorter,
    without_the_last_line_end,
    with_windows_line_ends,
    with_empty_lines_and_a_mark,
    emptied,
    full_of_zeros,
    deleted,
    moved,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_labels_before_and_after_are_in_the_file(store, path, items, change):
    change(path)
    store.append("bob", {7: "cat"})
    assert on_disk(path) == {**THREE, 7: "cat"}
    change(path)  # and no label comes after it
    store.close()
    assert on_disk(path) == {**THREE, 7: "cat"}
    again = LabelStore(path, items)
    assert again.labels() == {**THREE, 7: "cat"}
    assert len(again.records) == 4
    again.close()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_undo_goes_on(store, path, change):
    change(path)
    assert store.undo("ada") == {3: None}
    assert store.labels() == {1: "cat", 2: "dog"}
    assert on_disk(path) == {1: "cat", 2: "dog", 3: None}


def test_a_label_that_an_editor_changed_counts(store, path, items):
    if shutil.which("sed") is None:
        pytest.skip("needs sed")
    subprocess.run(["sed", "-i", "s/cat/lion/", str(path)], check=True)
    assert store.refresh()
    assert store.labels() == {**THREE, 1: "lion"}
    assert not store.refresh()
    subprocess.run(["sed", "-i", "s/lion/puma/", str(path)], check=True)
    store.append("ada", {4: "fox"})
    assert store.labels() == {**THREE, 1: "puma", 4: "fox"} == on_disk(path)
    assert store.n_restored == 0


def test_restored_records_are_counted(store, path):
    by_an_older_copy(path)
    assert store.refresh()
    assert store.n_restored == 1
    assert store.labels() == THREE


def test_two_stores_restore_a_label_once(store, path, items):
    other = LabelStore(path, items)
    other.append("bob", {8: "cat"})
    store.refresh()
    emptied(path)
    store.refresh()
    other.refresh()
    other.append("bob", {9: "cat"})
    store.append("ada", {0: "cat"})
    assert on_disk(path) == {**THREE, 8: "cat", 9: "cat", 0: "cat"}
    assert len(path.read_bytes().splitlines()) == 1 + 6
    other.close()


@pytest.mark.parametrize("content", [b"rubbish\n", b'{"format": "other"}\n', b"notes"])
def test_a_file_that_cannot_be_continued_leaves_a_rescue(store, path, items, content, tmp_path):
    copy = tmp_path / "copy"
    copy.write_bytes(content)
    os.replace(copy, path)
    with pytest.raises(StorageError):
        store.append("ada", {5: "cat"})  # not acknowledged
    with pytest.raises(StorageError, match=r"All labels of this page are in '.*rescued-"):
        store.close()
    (rescued,) = tmp_path.glob("*.rescued-*")
    assert path.read_bytes() == content
    assert LabelStore(rescued, items).labels() == THREE


def test_a_file_of_other_items_leaves_a_rescue(store, path, items, tmp_path):
    other = LabelStore(tmp_path / "other", TextItems(["a", "b"]))
    other.close()
    os.replace(tmp_path / "other", path)
    with pytest.raises(StorageError, match="labels of other items"):
        store.refresh()
    with pytest.raises(StorageError, match="rescued"):
        store.close()
    assert LabelStore(next(tmp_path.glob("*.rescued-*")), items).labels() == THREE


def test_damage_after_all_labels_needs_no_rescue(store, path, tmp_path):
    with open(path, "ab") as file:
        file.write(b"rubbish\n")
    with pytest.raises(StorageError, match="damaged"):
        store.append("ada", {5: "cat"})
    store.close()
    assert list(tmp_path.glob("*.rescued-*")) == []


WRITER = """
import sys
from graphuq.labelling.items import TextItems
from graphuq.labelling.store import LabelStore
store = LabelStore(sys.argv[1], TextItems([f"text {row}" for row in range(10)]))
for k in range(int(sys.argv[3])):
    store.append(sys.argv[2], {k % 10: f"{sys.argv[2]} {k}"}, model=k)
open(sys.argv[4], "w").close()
sys.stdin.read()
store.close()
"""


def test_two_processes_and_a_file_that_is_replaced_all_the_time(tmp_path, items):
    """Copies that are older than the latest label take its place hundreds of times a second."""
    path, n, users = tmp_path / "labels.jsonl", 60, ("ada", "bob")
    LabelStore(path, items).close()
    ends = [tmp_path / f"{user} is done" for user in users]
    n_replaced = 0
    with contextlib.ExitStack() as programs:
        writers = [
            programs.enter_context(running(WRITER, path, user, n, end, stdin=subprocess.PIPE))
            for user, end in zip(users, ends, strict=True)
        ]
        while not all(end.exists() for end in ends):
            assert all(
                writer.poll() is None for writer in writers
            )  # `running` ends those that hang
            by_a_copy(path)
            n_replaced += 1
            time.sleep(0.002)
        for writer in writers:
            writer.communicate(timeout=60)
            assert writer.returncode == 0
    found = LabelStore(path, items)
    for user in users:
        assert {r.model for r in found.records if r.user == user} == set(range(n))
    assert n_replaced > 10
    found.close()


HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "r+b")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")
def test_a_lock_that_is_never_released_is_an_error(path, store, monkeypatch):
    """Such as of a program that was stopped with Ctrl+Z; the label is not acknowledged."""
    monkeypatch.setattr(shared_file, "HELD_S", 0.1)
    with running(HOLDER, path) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(
            StorageError, match=r"is locked by another process for 0\.1 s; end that"
        ):
            store.append("ada", {4: "cat"})
    store.append("ada", {5: "cat"})
    assert store.labels() == {**THREE, 5: "cat"} == on_disk(path)
