"""Files and values that nobody should be able to harm a program with."""

import io
import json
import os
import zipfile

import numpy as np
import pandas as pd

import graphuq as gq

N = 40
MOONS = gq.datasets.two_moons(N, n_features=2, noise_std=0.05, rng=1)
LABELS = np.where(np.arange(N) < 8, np.array(["left", "right"])[MOONS.classes], "")
RING = gq.graphs.ring_graph(N).weights.tocsr()
TWENTY_DIGITS = "99999999999999999999"
LONG = "x" * 5000


def write_csv(path, features=MOONS.features, labels=LABELS, **columns):
    """Write features c0, c1, …, further columns, and the column label."""
    table = pd.DataFrame(features)
    table.columns = [f"c{k}" for k in range(table.shape[1])]
    table.assign(**columns, label=labels).to_csv(path, index=False)
    return path


def write_labels(path):
    """Write the labels to a file of their own."""
    pd.DataFrame({"id": range(N), "label": LABELS}).to_csv(path, index=False)
    return path


def sparse_npz(path, **changed):
    """Write the weights of a ring as ``scipy.sparse.save_npz`` does, with some parts changed."""
    parts = {"indices": RING.indices, "indptr": RING.indptr, "data": RING.data}
    parts |= {"shape": np.array([N, N]), "format": np.array(b"csr")} | changed
    np.savez(path, **{name: part for name, part in parts.items() if part is not None})
    return path


def replaced(values, where, value):
    """Return a copy of an array with some elements replaced."""
    copy = values.copy()
    copy[where] = value
    return copy


SPARSE_LIES = {
    "index too large": {"indices": replaced(RING.indices, 3, 10**6)},
    "index just too large": {"indices": replaced(RING.indices, 3, N)},
    "index negative": {"indices": replaced(RING.indices, 3, -5_000_000)},
    "indices too few": {"indices": RING.indices[:-1]},
    "indices of two axes": {"indices": RING.indices.reshape(2, -1)},
    "indices are floats": {"indices": RING.indices.astype(float)},
    "indices are missing": {"indices": None},
    "pointers too large": {"indptr": replaced(RING.indptr, slice(5, 20), 10**7)},
    "last pointer too large": {"indptr": replaced(RING.indptr, -1, 10**6)},
    "pointers decrease": {"indptr": replaced(RING.indptr, 5, 0)},
    "pointer negative": {"indptr": replaced(RING.indptr, 5, -3)},
    "first pointer not 0": {"indptr": replaced(RING.indptr, 0, 1)},
    "pointers too few": {"indptr": RING.indptr[:-5]},
    "pointers too many": {"indptr": np.append(RING.indptr, 80)},
    "pointers are floats": {"indptr": RING.indptr.astype(float)},
    "shape huge": {"shape": np.array([10**12, 10**12])},
    "shape negative": {"shape": np.array([-40, 40])},
    "shape zero": {"shape": np.array([0, 0])},
    "shape of one number": {"shape": np.array([40])},
    "shape of three numbers": {"shape": np.array([40, 40, 40])},
    "shape of floats": {"shape": np.array([40.0, 40.0])},
    "not square": {"shape": np.array([40, 41])},
    "columns lie": {"format": np.array(b"csc"), "indices": replaced(RING.indices, 3, 10**6)},
    "blocks without size": {"format": np.array(b"bsr")},
    "blocks lie": {
        "format": np.array(b"bsr"),
        "data": np.ones((80, 1, 1)),
        "indices": replaced(RING.indices, 3, 10**6),
    },
    "format unknown": {"format": np.array(b"lil")},
    "format hostile": {"format": np.array("__class__")},
    "coordinates lie": {
        "format": np.array(b"coo"),
        "row": np.array([0, 10**7]),
        "col": np.array([1, 2]),
        "data": np.ones(2),
    },
    "diagonals lie": {"format": np.array(b"dia"), "offsets": np.array([1, 1])},
    "data complex": {"data": RING.data * 1j},
    "data text": {"data": RING.data.astype(str)},
    "data dates": {"data": RING.data.astype("M8[D]")},
    "data NaN": {"data": RING.data * np.nan},
    "data infinite": {"data": RING.data * np.inf},
    "data zero": {"data": 0 * RING.data},
    "data denormal": {"data": RING.data * 5e-324},
    "data too small": {"data": RING.data * 1e-300},
    "data too large": {"data": RING.data * 1e308},
    "data asymmetric": {"data": np.arange(80.0)},
}


def npz_bytes(**arrays):
    """Return an NPZ file with features and labels."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **({"X": MOONS.features, "label": LABELS} | arrays))
    return buffer.getvalue()


def with_member(name, content):
    """Return a zip file with one member more."""
    buffer = io.BytesIO(npz_bytes())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def npy_header(shape, dtype="<f8"):
    """Return the header of an NPY file of the given shape, without its data."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def with_method(method):
    """Return an NPZ file whose members claim another method of compression."""
    content = bytearray(npz_bytes())
    for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        begin = content.find(mark)
        while begin >= 0:
            content[begin + at : begin + at + 2] = method.to_bytes(2, "little")
            begin = content.find(mark, begin + 4)
    return bytes(content)


def twice():
    """Return an NPZ file with two members of one name."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return with_member("X.npy", npy_header((0,)))


NPZ_LIES = {
    "npy as npz": lambda: npy_header((1,)) + bytes(8),
    "broken stream": lambda: npz_bytes()[:60] + bytes(30) + npz_bytes()[90:],
    "unknown method": lambda: with_method(99),
    "text member": lambda: with_member("hello", "hello"),
    "folder member": lambda: with_member("a/b.txt", "hello"),
    "member of five bytes": lambda: with_member("Y.npy", "hello"),
    "empty member": lambda: with_member("Y.npy", ""),
    "two of one name": twice,
    "objects": lambda: with_member("Y.npy", npy_header((1,), "|O") + bytes(8)),
    "records": lambda: npz_bytes(X=np.zeros(N, [("a", float), ("b", int)])),
    "eight terabytes": lambda: with_member("Y.npy", npy_header((10**12,)) + bytes(8)),
    "huge shape": lambda: with_member("Y.npy", npy_header((2**62, 2**62)) + bytes(8)),
    "negative shape": lambda: with_member("Y.npy", npy_header((-1,)) + bytes(8)),
    "no shape": lambda: with_member("Y.npy", npy_header("None") + bytes(8)),
    "hostile header": lambda: with_member("Y.npy", npy_header("__import__('os')") + bytes(8)),
    "too much data": lambda: with_member("Y.npy", npy_header((1,)) + bytes(80)),
    "no features": lambda: with_member("Y.npy", npy_header((1,)) + bytes(8)).replace(b"X.", b"Z."),
    "complex": lambda: npz_bytes(X=MOONS.features * 1j),
    "dates": lambda: npz_bytes(X=(100 * MOONS.features).astype("M8[D]")),
    "times": lambda: npz_bytes(X=(100 * MOONS.features).astype("m8[s]")),
    "text": lambda: npz_bytes(X=MOONS.features.astype(str)),
    "bytes": lambda: npz_bytes(X=MOONS.features.astype("S")),
    "NaN": lambda: npz_bytes(X=MOONS.features * np.nan),
    "infinite": lambda: npz_bytes(X=MOONS.features * np.inf),
    "too large": lambda: npz_bytes(X=MOONS.features * 1e200),
    "too large for single": lambda: npz_bytes(X=np.float32(MOONS.features) * np.float32(1e30)),
    "too small": lambda: npz_bytes(X=MOONS.features * 1e-310),
    "one axis": lambda: npz_bytes(X=MOONS.features.ravel()),
    "three axes": lambda: npz_bytes(X=MOONS.features[..., None]),
    "no rows": lambda: npz_bytes(X=MOONS.features[:0], label=LABELS[:0]),
    "no columns": lambda: npz_bytes(X=MOONS.features[:, :0]),
    "one row": lambda: npz_bytes(X=MOONS.features[:1], label=LABELS[:1]),
    "fewer labels": lambda: npz_bytes(label=LABELS[:-1]),
    "a graph": lambda: npz_bytes(X=RING.toarray()),
}

DAMAGES = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "half": lambda content: content[: len(content) // 2],
    "all but ten bytes": lambda content: content[:-10],
    "zeros": lambda content: bytes(len(content)),
    "begins with zeros": lambda content: bytes(64) + content[64:],
    "text": lambda content: b"hello\n",
    "noise": lambda content: np.random.default_rng(0).bytes(len(content)),
    "a page": lambda content: b"<!DOCTYPE html><html><script>alert(1)</script></html>",
    "JSON": lambda content: json.dumps({"format": 1}).encode(),
    "binary text": lambda content: bytes(range(256)) * 8,
}


def damaged_paths(folder, name):
    """Return paths that are no files: nothing, a folder, a pipe, a device, a very long name."""
    (folder / f"folder_{name}").mkdir()
    os.mkfifo(folder / f"pipe_{name}")
    return [
        folder / f"missing_{name}",
        folder / f"folder_{name}",
        folder / f"pipe_{name}",
        folder / ("y" * 5000 + name),
    ]
