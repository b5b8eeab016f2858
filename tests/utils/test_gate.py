"""Files that lie about their size never fill the memory; what is sound passes unchanged."""

import io
import os
import signal
import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pytest
from scipy import sparse

from graphuq.errors import InvalidInput, StorageError
from graphuq.utils import gate
from graphuq.utils.gate import check_sparse, read_npz, reading, sparse_from
from robustness import hostile


@pytest.mark.parametrize("name", gate.SPARSE_FORMATS)
def test_sound_matrices_pass(name, tmp_path):
    rng = np.random.default_rng(0)
    matrix = sparse.coo_array(rng.uniform(size=(30, 30)) * (rng.uniform(size=(30, 30)) < 0.1))
    stored = matrix.asformat(name)
    check_sparse(stored, "X")
    sparse.save_npz(tmp_path / "x.npz", stored)
    again = sparse_from(read_npz(tmp_path / "x.npz"), "x.npz")
    np.testing.assert_array_equal(again.toarray(), matrix.toarray())


def test_arrays_pass(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.array("text"), "c": np.zeros((0, 3)),
              "d": np.asfortranarray(np.ones((2, 3))), "e": np.array(3.5)}  # fmt: skip
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        again = read_npz(tmp_path / "x.npz")
        assert again.keys() == arrays.keys()
        for name, values in arrays.items():
            np.testing.assert_array_equal(again[name], values)
            assert again[name].dtype == values.dtype


def test_an_archive_larger_than_the_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    """Ten kilobytes of zeros, compressed, claim ten megabytes."""
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((1250, 1000)))
    assert (tmp_path / "x.npz").stat().st_size < 20_000
    monkeypatch.setattr(gate, "memory_bytes", lambda: 9_000_000)
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(StorageError, match="more than the memory"):
        read_npz(tmp_path / "x.npz")


def test_a_member_that_is_longer_than_it_says(tmp_path):
    """The directory states 136 bytes, the stream holds a megabyte; no more than stated is read."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", hostile.npy_header((1,)) + bytes(1_000_000))
    content = buffer.getvalue()
    size = (1_000_000 + 128).to_bytes(4, "little")
    assert content.count(size) == 2
    path = tmp_path / "x.npz"
    path.write_bytes(content.replace(size, (136).to_bytes(4, "little")))
    with pytest.raises(StorageError, match="not a readable npz file"):
        read_npz(path)


@pytest.mark.parametrize(
    "error", [ValueError("x" * 10_000), KeyError("a"), RecursionError(), OSError(5, "Input/output"),
              MemoryError(), AssertionError(), OverflowError("big")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_any_error_of_a_reader_is_one_line(error):
    with pytest.raises(StorageError) as caught, reading("some/file.bin", "sort of file"):
        raise error
    assert "file.bin" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_own_errors_and_interruptions_pass():
    for error in (InvalidInput("a", "b", "c"), KeyboardInterrupt()):
        with pytest.raises(type(error)), reading("x", "file"):
            raise error


CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(5.0)
        file["scalar"], file["text"], file["empty"] = 3, "word", h5py.Empty("f")
        file.create_dataset("rows", data=np.ones((7, 3)), chunks=(2, 3), compression="gzip")
        file.create_dataset("huge", shape=(1 << 60,), dtype="f8", chunks=(1024,))
        file.create_group("group").attrs["name"] = "a"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("code", [CRASH, "import time; time.sleep(100)"])
def test_an_hdf5_file_that_another_process_cannot_read_is_refused(code, monkeypatch, tmp_path):
    write_hdf5(tmp_path / "x.h5")
    monkeypatch.setattr(gate, "READ_HDF5", code)
    monkeypatch.setattr(gate, "READ_SECONDS", 0.5)
    with pytest.raises(StorageError, match=r"x\.h5' is a damaged HDF5 file, or takes"):
        gate.require_sound_hdf5(tmp_path / "x.h5")


def test_a_sound_hdf5_file_is_read_whole_by_another_process(monkeypatch, tmp_path):
    write_hdf5(tmp_path / "x.h5")
    count = "\nprint(len(seen), file=open(sys.argv[1] + '.seen', 'w'))\n"
    code = gate.READ_HDF5.replace("    for key", "    seen.append(name)\n    for key")
    monkeypatch.setattr(gate, "READ_HDF5", "seen = []\n" + code + count)
    gate.require_sound_hdf5(tmp_path / "x.h5")
    assert (tmp_path / "x.h5.seen").read_text() == "8\n"  # the file, 6 arrays and a group


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_other_process_ends_itself_if_it_is_left_alone(tmp_path):
    write_hdf5(tmp_path / "x.h5")
    code = gate.READ_HDF5 + "import time\ntime.sleep(100)\n"
    words = [sys.executable, "-c", code, str(tmp_path / "x.h5"), "1000000", "1"]
    assert subprocess.run(words, check=False).returncode == -signal.SIGALRM


def test_an_unreadable_hdf5_file_is_left_to_its_reader(tmp_path):
    (tmp_path / "x.h5").write_bytes(b"no HDF5")
    gate.require_sound_hdf5(tmp_path / "x.h5")
