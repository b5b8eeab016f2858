"""Data sets of Hugging Face: Parquet with class names, saved Arrow files, folders of pictures."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphuq.errors import StorageError, require
from graphuq.labelling.items import PICTURES, Items, PictureFiles
from graphuq.labelling.layouts.base import (
    FILE,
    ID,
    LABEL,
    Imported,
    Labelled,
    ReadLayout,
    cell_text,
    table_of,
)
from graphuq.labelling.layouts.label_studio import text_column
from graphuq.labelling.picture_bytes import PictureBytes
from graphuq.results.formats import formats_of_reading
from graphuq.results.formats.parquet import arrow_table
from graphuq.utils.checks import text_array
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading
from graphuq.utils.parquet_columns import check_repeated

if TYPE_CHECKING:
    import pandas as pd

KEY = b"huggingface"  # of the metadata of a schema, as the package ``datasets`` writes it
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # of a folder of pictures
FILE_NAME = "file_name"  # its column of files
IMAGE = "image"


class HuggingFace(ReadLayout):
    """What ``datasets.load_dataset`` and ``load_from_disk`` read; written as one Parquet file."""

    name: ClassVar[str] = "huggingface"
    title: ClassVar[str] = "Hugging Face"
    file: ClassVar[str] = "huggingface.parquet"

    def fits(self, path: Path) -> bool:
        """Return whether it is a folder, or a Parquet file whose schema names its features."""
        if path.is_dir():
            return True
        if path.suffix.lower() != ".parquet":
            return False
        require_extra("parquet")
        from pyarrow import parquet

        with reading(path, "parquet file"):
            return KEY in (parquet.read_schema(path).metadata or {})

    def read(self, path: Path, text: str | None = None) -> Imported:
        """Return the rows of all files; the first column of class labels has the labels."""
        tables = [path] if path.is_file() else _files(path)
        return _read_tables(tables, text) if tables else _read_pictures(path)

    def write(self, labelled: Labelled, path: Path) -> None:
        """Write all items; ``label`` is −1 where there is no label."""
        require_extra("parquet")
        import pyarrow as pa
        from pyarrow import parquet

        items, table, classes = labelled.items, table_of(labelled.items), labelled.classes
        if FILE in table:
            table = table.drop(columns=FILE)
        plain = {name: table[name].to_numpy() for name in table}
        columns = {ID: np.array(items.ids, dtype=object), **plain}
        made = arrow_table({str(name): np.asarray(values) for name, values in columns.items()})
        features: dict[str, Any] = {f.name: _feature(f.type) for f in made.schema}
        if items.has_pictures:
            pictures = [{"bytes": items.picture(row)[0], "path": None} for row in range(len(items))]
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            made = made.append_column(IMAGE, pa.array(pictures, type=kind))
            features[IMAGE] = {"_type": "Image"}
        codes = [classes.index(labelled.labels[row]) if row in labelled.labels else -1
                 for row in range(len(items))]  # fmt: skip
        made = made.append_column(LABEL, pa.array(codes, type=pa.int64()))
        features[LABEL] = {"names": classes, "_type": "ClassLabel"}
        info = json.dumps({"info": {"features": features}})
        parquet.write_table(made.replace_schema_metadata({KEY: info}), path)


def _feature(kind: Any) -> dict[str, str]:
    """Return the feature of a type of Arrow."""
    names = {"double": "float64", "float": "float32"}
    return {"dtype": names.get(str(kind), str(kind)), "_type": "Value"}


def _files(folder: Path) -> list[Path]:
    """Return the Parquet files, or else the Arrow files, in a folder and below it."""
    for suffix in (".parquet", ".arrow"):
        found = [p for p in folder.rglob(f"*{suffix}") if p.name not in METADATA]
        if found:
            return sorted(found)
    return []


def _read_tables(paths: list[Path], text: str | None) -> Imported:
    """Return the rows of Parquet or Arrow files."""
    require_extra("parquet")
    import pyarrow as pa

    tables = [_arrow(path) for path in paths]
    require(all(t.schema.names == tables[0].schema.names for t in tables), "FILE",
            "files with different columns", "give one of them")  # fmt: skip
    features = _features_of(tables[0])
    with reading(paths[0], f"{paths[0].suffix[1:]} file"):
        frame = pa.concat_tables([t.replace_schema_metadata(None) for t in tables]).to_pandas()
    check_repeated(list(frame.columns), paths[0])
    coded = [n for n, f in features.items() if f.get("_type") == "ClassLabel" and n in frame]
    labels = np.full(len(frame), "", dtype=object)
    if coded:
        labels = _names_of_codes(frame.pop(coded[0]), features[coded[0]].get("names"))
    images = [n for n, f in features.items() if f.get("_type") == "Image" and n in frame]
    ids = [cell_text(value) for value in frame.pop(ID)] if ID in frame else None
    pictures: Items | None = None
    if images and text is None:
        pictures = PictureBytes([_bytes(value) for value in frame.pop(images[0])], ids)
    frame = frame.drop(columns=[name for name in images if name in frame])
    shown = None if pictures is not None else text_column(frame, text)
    return Imported(frame, shown, text_array(labels, "FILE"), ids, pictures)


def _names_of_codes(codes: "pd.Series", names: Any) -> np.ndarray:
    """Return the name of each row's class, empty where it has no code or −1."""
    words, remedy = "a code without a name", "write the data set again"
    numbers = np.full(len(codes), -1.0)
    known = codes.notna().to_numpy(dtype=bool)
    is_number = codes.dtype.kind in "iuf"
    require(isinstance(names, list) and (is_number or not known.any()), "labels", words, remedy)
    if is_number:
        numbers[known] = codes[known]
    known = numbers >= 0
    found = set(numbers[known].tolist())
    require(found <= set(range(len(names))), "labels", words, remedy)
    labels = np.full(len(codes), "", dtype=object)
    labels[known] = [str(names[int(code)]) for code in numbers[known]]
    return labels


def _arrow(path: Path) -> Any:
    """Return a file as a table of Arrow."""
    import pyarrow as pa
    from pyarrow import parquet

    with reading(path, f"{path.suffix[1:]} file"):
        if path.suffix == ".parquet":
            table = parquet.read_table(path, partitioning=None)
        else:
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)  # texts that are no UTF-8 would fail when they are used
        return table


def _features_of(table: Any) -> dict[str, Any]:
    """Return the features that a schema names."""
    try:
        info = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
        features = info.get("info", {}).get("features", {})
        return {n: f for n, f in features.items() if isinstance(f, dict)}
    except (ValueError, AttributeError, RecursionError):
        return {}


def _bytes(value: Any) -> bytes:
    content = value.get("bytes") if isinstance(value, dict) else None
    if not isinstance(content, bytes):
        raise StorageError("a picture is a path and not in the file; save the data set with them")
    return content


def _read_pictures(folder: Path) -> Imported:
    """Return the pictures of a folder, with a table of metadata or with folders as classes."""
    require_extra("label")
    import pandas as pd

    found = [folder / name for name in METADATA if (folder / name).is_file()]
    if not found:
        pictures = PictureFiles.in_folder(folder)
        parts = [path.relative_to(pictures.folder).parts for path in pictures.paths]
        labels = np.array([p[-2] if len(p) > 1 else "" for p in parts], dtype=str)
        return Imported(pd.DataFrame(index=range(len(parts))), None, labels, None, pictures)
    path = found[0]
    with reading(path, f"{path.suffix[1:]} file"):
        frame = formats_of_reading()[path.suffix].for_file(path).read(path, [FILE_NAME, LABEL])
    require(FILE_NAME in frame, "FILE", f"'{path.name}' has no column {FILE_NAME}",
            f"name files, which end in {', '.join(PICTURES)}, there")  # fmt: skip
    files = [cell_text(value) for value in frame.pop(FILE_NAME)]
    known = frame.pop(LABEL) if LABEL in frame else [""] * len(files)
    classes = text_array((cell_text(value) for value in known), "FILE")
    return Imported(frame, None, classes, None, PictureFiles(folder, files))
