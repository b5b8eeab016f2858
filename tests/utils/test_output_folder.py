"""Results appear together or not at all, whenever a run dies; one run writes at a time."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from graphuq.errors import StorageError
from graphuq.utils import files, output_folder
from graphuq.utils.files import atomic_write
from graphuq.utils.output_folder import COMMITTED, LOCK, atomic_folder, newest
from graphuq.utils.output_folder import output_folder as held

OLD, NEW = {"a.txt": "old", "b.txt": "old"}, {"a.txt": "new", "b.txt": "new"}


def write(folder, contents):
    with held(folder), atomic_folder(folder) as writing:
        for name, text in contents.items():
            (writing / name).write_text(text)


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_all_files_and_nothing_else(tmp_path):
    write(tmp_path, OLD)
    assert contents(tmp_path) == OLD
    write(tmp_path, NEW)
    assert contents(tmp_path) == NEW


def test_an_error_leaves_the_older_results(tmp_path):
    write(tmp_path, OLD)
    with pytest.raises(TypeError):
        write(tmp_path, {"a.txt": "new", "b.txt": 5})
    assert contents(tmp_path) == OLD


def test_links_to_the_file_that_is_in_place(tmp_path):
    """A rename does nothing if both names are links to one file, as those of a store are."""
    (tmp_path / "store.txt").write_text("one")
    out = tmp_path / "out"
    for _ in range(2):
        with held(out), atomic_folder(out) as writing:
            os.link(tmp_path / "store.txt", writing / "a.txt")
        assert contents(out) == {"a.txt": "one"}


def test_older_files_that_are_void_are_removed_with_the_commit(tmp_path, monkeypatch):
    """Also by the next run, if this one dies after the commit."""
    older = {"rows-0.txt": "old", "rows-1.txt": "old", "notes.txt": "mine"}
    newer = {"rows-0.txt": "new", "notes.txt": "mine"}
    for dies in (False, True):
        folder = tmp_path / str(dies)
        write(folder, older)
        with monkeypatch.context() as patch:
            if dies:
                patch.setattr(output_folder, "complete", lambda output: None)
            with held(folder), atomic_folder(folder, "rows-*.txt") as writing:
                (writing / "rows-0.txt").write_text("new")
        if dies:
            assert (folder / "rows-1.txt").read_text() == "old"
            with held(folder):
                pass
        assert contents(folder) == newer


class Died(BaseException):
    """The end of a process, as far as a test can stop one."""


@pytest.mark.parametrize("step", range(12))
def test_a_death_at_any_step_leaves_one_set(step, tmp_path, monkeypatch):
    """The run dies before its n-th call of the system; the next one finds one whole set."""
    write(tmp_path, OLD)
    calls = []

    def counted(function):
        def call(*arguments, **options):
            if len(calls) == step:
                raise Died
            calls.append(function)
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(output_folder.os, "rename", counted(os.rename))
    monkeypatch.setattr(files.os, "fsync", counted(os.fsync))
    monkeypatch.setattr(output_folder.Path, "replace", counted(output_folder.Path.replace))
    monkeypatch.setattr(output_folder.Path, "rmdir", counted(output_folder.Path.rmdir))
    monkeypatch.setattr(output_folder.shutil, "rmtree", lambda *_, **__: None)
    died = False
    try:
        write(tmp_path, NEW)
    except Died:
        died = True
    assert died or step >= 9
    monkeypatch.undo()
    committed = (tmp_path / COMMITTED).is_dir()
    wanted = {newest(tmp_path / name).read_text() for name in NEW}
    monkeypatch.setattr(files, "is_running", lambda _: False)  # the process that died
    with held(tmp_path):
        pass
    assert len(set(contents(tmp_path).values())) == 1
    assert contents(tmp_path) in (OLD, NEW)
    assert not committed or contents(tmp_path) == NEW
    assert wanted == set(contents(tmp_path).values())


def test_everything_is_on_the_disk_before_it_replaces_the_old(tmp_path, monkeypatch):
    order = []
    fsync, rename = os.fsync, os.rename

    def synced(handle):
        order.append(os.readlink(f"/proc/self/fd/{handle}").split("/")[-1])
        fsync(handle)

    monkeypatch.setattr(files.os, "fsync", synced)
    monkeypatch.setattr(
        output_folder.os, "rename", lambda *names: (order.append("commit"), rename(*names))
    )
    write(tmp_path, NEW)
    commit = order.index("commit")
    assert {"a.txt", "b.txt"} <= set(order[:commit])
    assert tmp_path.name in order[commit:]


def test_litter_of_dead_runs_is_removed_and_nothing_else(tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    mine, theirs = files.unfinished(), files.unfinished().replace(str(os.getpid()), "{}")
    left = tmp_path / theirs.format(int(dead.stdout))
    left.mkdir()
    (left / "a.txt").write_text("partial")
    (tmp_path / f".c.txt{theirs.format(int(dead.stdout))}x.txt").write_text("partial")
    kept = [tmp_path / f"{mine}x", tmp_path / "mine.txt", tmp_path / ".writing-elsewhere-1-x"]
    for path in kept:
        path.write_text("kept")
    with held(tmp_path):
        assert {p.name for p in tmp_path.iterdir()} == {LOCK, *(p.name for p in kept)}
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in kept}


def test_another_run_is_told_who_holds_the_folder(tmp_path):
    holder = f"in use by process {os.getpid()} on"
    with held(tmp_path), pytest.raises(StorageError, match=holder), held(tmp_path):
        pass
    with held(tmp_path):
        assert (tmp_path / LOCK).exists()
    assert not (tmp_path / LOCK).exists()


HOLD = (
    "import sys, time\n"
    "from graphuq.utils.output_folder import output_folder\n"
    "with output_folder(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(60)\n"
)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_the_lock_of_a_killed_run_is_no_lock(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"held\n"
        with pytest.raises(StorageError, match=f"process {run.pid} "), held(tmp_path):
            pass
        run.send_signal(signal.SIGKILL)
        run.wait()
    with held(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_file_as_it_was(call, number, tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, call, full)
    with pytest.raises(StorageError, match="cannot write"), atomic_write(path) as temporary:
        temporary.write_text("new")
    assert contents(tmp_path) == {"x.txt": "old"}


def test_names_of_any_length(tmp_path):
    name = "é" * 120 + ".csv"  # 244 bytes of at most 255
    with atomic_write(tmp_path / name) as temporary:
        temporary.write_text("new")
    assert contents(tmp_path) == {name: "new"}
    with pytest.raises(StorageError, match="cannot write"), atomic_write(tmp_path / ("x" * 300)):
        pass
