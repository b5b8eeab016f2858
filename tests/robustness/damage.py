"""Random damage to the content of a file, of which some kinds stay well-formed inside."""

import copy
import hashlib
import io
import json
import zipfile
from xml.etree import ElementTree

import h5py
import numpy as np

from graphuq.results.storage import END, MARK

TOKENS = [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"nan", b"1e999", b"-1", b"\n",
          b'"', b",", b"{", b"[", b"null", b"1e-320", b"99999999999999999999", b"\xff\xfe",
          b"<", b"'", b"\\", b"\r"]  # fmt: skip
VALUES = [None, True, -1, 0, 1e308, float("nan"), 10**30, "", "x", "\0", [], {}, [[]], {"a": 1}]
CELLS = [word.encode() for word in (
    "", "?", "NA", "nan", "inf", "-999", "1e400", "1e-320", "1,5", "1.234,5", "$12.50", "12 %",
    "<0.1", "2026-01-02", "1.5.2026", "Jan 5, 2012", "20260102", "03:04", "2026-13-45", "True",
    "0x1F", "1_000", "9007199254740993", "99999999999999999999", "½", "٣", "a\0", '"', '"a', "'1",
    "=1+1", "x" * 300, "#", "id", "label", "source", "user", "Unnamed: 0", "\u2028", "\ufeff",
    "1 kg", "1e5 €", "(5)", "-",
)]  # fmt: skip
OF_HDF5 = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid"}
"""Attributes at whose damage HDF5 itself may end the process, which is not promised."""

OF_JSON = (".json", ".jsonl", ".geojson")


def damaged(content, name, rng):
    """Return content with random damage; half of what has parts inside stays well-formed."""
    if rng.uniform() < 0.5:
        for suffixes, change in INSIDE.items():
            if name.endswith(suffixes):
                return change(content, rng)
    return damaged_bytes(content, rng)


def damaged_bytes(content, rng):
    """Return content with a few bytes changed, added, removed or repeated."""
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(content) + 1))
        length = int(rng.integers(1, 65))
        kind = rng.integers(7)
        if kind == 0:
            new = rng.bytes(int(rng.integers(1, 13)))
            content = content[:at] + new + content[at + len(new) :]
        elif kind == 1:
            content = content[:at] + rng.bytes(int(rng.integers(1, 13))) + content[at:]
        elif kind == 2:
            content = content[:at] + content[at + length :]
        elif kind == 3:
            content = content[:at] + content[at : at + length] * 3 + content[at + length :]
        elif kind == 4:
            token = TOKENS[rng.integers(len(TOKENS))]
            content = content[:at] + token + content[at + len(token) :]
        elif kind == 5 and at < len(content):
            content = content[:at] + bytes([content[at] ^ 1 << rng.integers(8)]) + content[at + 1 :]
        elif rng.uniform() < 0.2:
            content = content[:at]
    return content


def _in_archive(content, rng):
    """Damage one member of a zip file, whose checksums are then right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[rng.integers(len(members))]
    members[name] = damaged_bytes(members[name], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def _in_json(content, rng):
    """Replace or remove a random value in one line, or in the whole file if it is one value."""
    try:
        lines = [json.loads(content)]
    except ValueError:
        lines = [json.loads(line) for line in content.splitlines()]
    places = [(lines, k) for k in range(len(lines))]
    for holder, key in places:
        value = holder[key]
        keys = value if isinstance(value, dict) else range(len(value) if _is(value, list) else 0)
        places.extend((value, k) for k in list(keys))
    holder, key = places[rng.integers(len(places))]
    way = rng.uniform()
    if way < 0.2 and holder is not lines:
        del holder[key]
    elif way < 0.5:
        other, where = places[rng.integers(len(places))]
        holder[key] = json.loads(json.dumps(other[where]))
    else:
        holder[key] = VALUES[rng.integers(len(VALUES))]
    return b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"


def _is(value, kind):
    return isinstance(value, kind)


def _in_hdf5(content, rng):
    """Change an attribute or an array of an HDF5 file; a checksum of ours is then right."""
    is_ours = content[-END:].startswith(MARK)
    buffer = io.BytesIO(content[:-END] if is_ours else content)
    with h5py.File(buffer, "r+") as file:
        parts = [file]
        file.visititems(lambda _, part: parts.append(part))
        places = [(part, key) for part in parts for key in part.attrs if key not in OF_HDF5]
        places += [(part, None) for part in parts if isinstance(part, h5py.Dataset)]
        part, key = places[rng.integers(len(places))]
        if key is not None:
            _in_attribute(part, key, rng)
        elif part.shape and part.dtype.kind in "iuf" and rng.uniform() < 0.5:
            part[tuple(rng.integers(part.shape))] = [-1, 0, 1, 7, 10**4, 100][rng.integers(6)]
        else:
            _replace(part, rng)
    content = buffer.getvalue()
    return content + MARK + hashlib.sha256(content).hexdigest().encode() if is_ours else content


def _in_attribute(part, key, rng):
    value = part.attrs[key]
    if isinstance(value, str) and rng.uniform() < 0.8:
        try:
            part.attrs[key] = _in_json(value.encode(), rng)[:-1].decode()
            return
        except ValueError:  # no JSON
            pass
    if rng.uniform() < 0.2:
        del part.attrs[key]
    else:
        part.attrs[key] = ["", "x", "[]", "null", -1, 10**9, [1, 2], 0.5][rng.integers(8)]


def _replace(part, rng):
    """Put another array in the place of one: shorter, longer, of another type or shape."""
    values, parent, name, attributes = part[()], part.parent, part.name, dict(part.attrs)
    ways = [
        lambda: values[:-1], lambda: values[:0], lambda: np.concatenate([values, values]),
        lambda: values[..., None], lambda: values.ravel()[::-1], lambda: -values, lambda: 0,
        lambda: np.full(np.shape(values), np.nan), lambda: values * 10**6, lambda: "x",
        lambda: np.full(np.shape(values), "x").astype(object), lambda: values.astype(np.int8),
        lambda: values.astype(np.float32),
    ]  # fmt: skip
    try:
        new = ways[rng.integers(len(ways))]()
    except (TypeError, ValueError, IndexError, AttributeError):  # a number or texts
        new = np.zeros(3)
    del parent[name]
    if rng.uniform() < 0.9:
        made = parent.create_dataset(name, data=new)
        kept = attributes.keys() - (OF_HDF5 if made.ndim != np.ndim(values) else set())
        made.attrs.update({key: attributes[key] for key in kept})


def _in_parquet(content, rng):
    """Change a column or the metadata of a Parquet file, which stays one."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.ParquetFile(io.BytesIO(content)).read()
    place, n = int(rng.integers(max(1, table.num_columns))), table.num_rows
    columns = [
        lambda: pa.array([None] * n), lambda: pa.array([[1, 2]] * n),
        lambda: pa.array([b"\xff"] * n), lambda: pa.array(["1.5"] * n).cast(pa.decimal128(9, 2)),
        lambda: pa.array([{"a": 1}] * n), lambda: pa.array(["x", None] * n)[:n],
        lambda: pa.array([-1, 10**12] * n)[:n], lambda: pa.array([float("nan"), 1e300] * n)[:n],
        lambda: pa.array([True, None] * n)[:n], lambda: pa.array([1] * n, pa.duration("s")),
        lambda: pa.array([1] * n, pa.timestamp("ns", "UTC")),
        lambda: pa.array([1] * n, pa.uint64()),
        lambda: pa.array(["a", "b"] * n)[:n].dictionary_encode(),
    ]  # fmt: skip
    way, name = rng.integers(6), table.schema.names[place]
    if way < 3:
        new = columns[rng.integers(len(columns))]()
        table = table.set_column(place, name, new)
    elif way == 3:
        table = table.remove_column(place) if rng.uniform() < 0.5 else table[: rng.integers(n + 1)]
    elif way == 4:
        other = table.schema.names[rng.integers(table.num_columns)]
        table = table.rename_columns([other if k == name else k for k in table.schema.names])
    else:
        known = dict(table.schema.metadata or {b"pandas": b"{}"})
        key = sorted(known)[rng.integers(len(known))]
        table = table.replace_schema_metadata(known | {key: _in_json(known[key], rng)[:-1]})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _in_xml(content, rng):
    """Remove, repeat, move or change an element of an XML file."""
    root = ElementTree.fromstring(content)
    parents = {child: parent for parent in root.iter() for child in parent}
    parts = list(root.iter())
    one, other = (parts[rng.integers(len(parts))] for _ in range(2))
    way, word = rng.integers(5), str(VALUES[rng.integers(len(VALUES))]).replace("\0", "&")
    if way == 0 and one in parents:
        parents[one].remove(one)
    elif way == 1:
        one.append(copy.deepcopy(other))
    elif way == 2:
        one.text = [word, "1.5", "a", other.text][rng.integers(4)]
    elif one.attrib:
        key = sorted(one.attrib)[rng.integers(len(one.attrib))]
        values = [word, "a", *other.attrib.values(), *one.attrib.values()]
        one.attrib[key] = values[rng.integers(len(values))]
        if way == 4:
            del one.attrib[key]
    return ElementTree.tostring(root)


def _in_table(content, rng):
    """Change a cell, a row or a column of a file of text, in which no cell is quoted."""
    separator = max(b",;\t", key=content.count).to_bytes()
    rows = [line.split(separator) for line in content.split(b"\n")]
    place = int(rng.integers(len(rows)))
    row, way = rows[place], rng.integers(6)
    column = int(rng.integers(len(row)))
    if way == 0:
        rows.insert(place, list(rows[rng.integers(len(rows))]))
    elif way == 1:
        for one in rows:
            del one[column : column + 1]
    elif way == 2:
        for one in rows[1:]:
            one[column : column + 1] = [CELLS[rng.integers(len(CELLS))]]
    else:
        row[column] = CELLS[rng.integers(len(CELLS))]
    return b"\n".join(separator.join(row) for row in rows)


INSIDE = {
    ".npz": _in_archive, OF_JSON: _in_json, (".nc", ".h5ad"): _in_hdf5, ".parquet": _in_parquet,
    (".graphml", ".gexf", ".xml"): _in_xml, ".csv": _in_table,
}  # fmt: skip
"""By the ends of names: how the inside of a file is damaged."""
