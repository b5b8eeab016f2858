"""What ``graphuq label`` shows, and the features of it: tables, pictures, arrays, AnnData."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from graphuq.classifier.table_encoder import TableEncoder
from graphuq.cli.columns import check_column
from graphuq.cli.encoding import read_encoded
from graphuq.cli.frames import as_text, format_of_file, read_frame
from graphuq.cli.label_files import read_labels
from graphuq.cli.tables import Table, check_ids, read_table
from graphuq.errors import InvalidInput, require
from graphuq.external.h5ad import read_h5ad
from graphuq.external.scanpy.cells import cell_graph, has_neighbors
from graphuq.external.scanpy.places import warn_of_unused_places
from graphuq.graphs.features import check_features
from graphuq.labelling.items import (
    PICTURES,
    Items,
    PictureArrays,
    PictureFiles,
    TableItems,
    TextItems,
)
from graphuq.labelling.layouts import ReadLayout, layout_of
from graphuq.results.formats import formats_of_reading
from graphuq.utils.checks import text_array
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import read_npy, require_file
from graphuq.utils.text_numbers import to_numbers

SCENES = (".tif", ".tiff", ".img", ".vrt", ".bsq", ".bil", ".bip")
OF_HEADER = ("", ".dat", ".raw")  # of scenes with an ENVI header beside them

TEXT_WORDS = "Features: words of the texts (tf-idf). Embeddings, given with --features, are better."
PIXEL_WORDS = (
    "Features: pixels, which are good for digits and scans but poor for photographs. For those "
    "give embeddings of an image model with --features."
)


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of columns of a table, and files beside it, as they were given."""

    text: str | None = None
    image: str | None = None
    label: str | None = None
    id: str | None = None
    dropped: Sequence[str] = ()
    images: Path | None = None
    features: Path | None = None
    encoder: TableEncoder | None = None
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """Items with features and known labels.

    Attributes
    ----------
    items : Items
    features : numpy.ndarray, scipy.sparse.csr_array or None
        None if they are to be computed from the items.
    labels : numpy.ndarray of str, shape (N,), or None
        Known classes, empty where unknown.
    words : str
        What the features are, if that is not obvious.
    is_graph : bool
        Whether the features are edge weights of a graph.
    line : str
        How a table was read.
    unnamed : sequence of str
        Columns of a table that are no names of its rows.
    """

    items: Items
    features: Any
    labels: np.ndarray | None = None
    words: str = ""
    is_graph: bool = False
    line: str = ""
    unnamed: Sequence[str] = ()


def read_source(
    file: Path | None,
    columns: Columns,
    labels: Path | None,
    told: Mapping[str, str] | None = None,
) -> Source:
    """Read what is to be labelled.

    Parameters
    ----------
    file : path or None
        Table, array or AnnData; None for the pictures of a folder.
    columns : Columns
    labels : path or None
        Second file with the columns id and label.
    told : dict of str to str, optional
        What the user says of how that file holds its table.

    Raises
    ------
    InvalidInput, StorageError
        If a file cannot be read or an option does not fit it; if labels have ids, and a column of
        ids of the table is not used.
    """
    if columns.encoder is not None:
        option = "--encode" if columns.encoder.encode else "--impute"
        require(columns.features is None, option, "given beside --features", "give one of the two")
        require(file is not None, option, "given beside --images without a table", "leave it out")
    if file is not None and is_scene(file):
        return _read_scene(file, columns, labels)
    source = _read(file, columns)
    if columns.features is not None:
        features = read_features(columns.features)
        n_items, n_rows = len(source.items), features.shape[0]
        require(n_rows == n_items, "--features", f"{n_rows} rows for {n_items} items",
                "give one row for each item, in the same order")  # fmt: skip
        source = dataclasses.replace(source, features=features, words="", is_graph=False)
    if labels is not None:
        ids = text_array(source.items.ids, "id")
        id_columns = [*([columns.id] if columns.id else []), "id"]
        given = read_labels(labels, ids, None, told, source.unnamed, id_columns)
        source = dataclasses.replace(source, labels=given)
    return source


def _read(file: Path | None, columns: Columns) -> Source:
    if file is None:
        require(columns.images is not None, "FILE", "not given", "give a table, or --images FOLDER")
        assert columns.images is not None
        _refuse(columns, "--images without a table", "text", "image", "label", "id")
        return Source(PictureFiles.in_folder(columns.images), None, words=PIXEL_WORDS)
    layout = layout_of(file) if columns.encoder is None else None
    if layout is not None:
        return _read_layout(file, layout, columns)
    require_file(file)
    kind = file.suffix.lower()
    if columns.encoder is not None and kind not in formats_of_reading():
        read_encoded(file, [], (), columns.encoder)  # says why it cannot
    if kind == ".h5ad":
        return _read_anndata(file, columns)
    if kind in (".npy", ".npz"):
        return _read_arrays(file, columns)
    return _read_table(file, columns)


def _read_layout(file: Path, layout: ReadLayout, columns: Columns) -> Source:
    """Return items and labels of a file or folder of another tool."""
    beside = f"'{file.name}', a file of {layout.name}"
    _refuse(columns, beside, "image", "label", "id")
    require(columns.images is None, "--images", f"given beside {beside}", "leave it out")
    found = layout.read(file, columns.text)
    items, n_known = found.items(), int((found.labels != "").sum())
    words = PIXEL_WORDS if items.has_pictures else TEXT_WORDS
    line = f"{file.name}: {len(items)} items of {layout.name}, {n_known} with labels"
    return Source(items, None, found.labels if n_known else None, words, line=line)


def read_features(path: Path) -> Any:
    """Return features from a CSV, Parquet, NPY or NPZ file; a sparse matrix stays sparse."""
    return read_table(path).features


def _refuse(columns: Columns, beside: str, *names: str) -> None:
    """Refuse options that have no meaning beside another one."""
    for name in names:
        require(getattr(columns, name) is None, f"--{name}-column", f"given beside {beside}",
                "leave it out")  # fmt: skip


def _read_table(file: Path, columns: Columns) -> Source:
    """Return items from a CSV or Parquet file: texts, pictures, or its rows."""
    shown = [name for name in (columns.text, columns.image) if name is not None]
    require(len(shown) < 2, "--image-column", "given beside --text-column", "give one of the two")
    special = [name for name in (columns.label, columns.id) if name is not None]
    if not shown:
        return _read_rows(file, columns, special)
    found = format_of_file(file, columns.options)
    frame = read_frame(file, [*special, *shown], found)
    for name in (*special, *shown):
        check_column(name, [str(column) for column in frame.columns])
    beside = frame.drop(columns=[*special, *shown])
    labels = None if columns.label is None else as_text(frame[columns.label])
    values = as_text(frame[shown[0]])
    ids = np.arange(len(frame)).astype(str)
    if columns.id is not None:
        ids = as_text(frame[columns.id])
        check_ids(ids, columns.id)
    features = None
    if columns.encoder is not None:
        unused = [*columns.dropped, *([] if columns.image is None else [columns.image])]
        features = read_encoded(file, special, unused, columns.encoder, columns.options).features
    if columns.text is not None:
        items: Items = TextItems(values.tolist(), ids.tolist())
    else:
        folder = file.parent if columns.images is None else columns.images
        items = PictureFiles(folder, values.tolist(), ids.tolist())
    if len(beside.columns):
        items.beside = TableItems(beside, ids.tolist())
    words = TEXT_WORDS if columns.text is not None else PIXEL_WORDS
    line = f"{file.name}: {len(frame)} rows; {found}".removesuffix("; ")
    words = words if features is None else ""
    unnamed = _others(beside, columns)
    return Source(items, features, labels, words, line=line, unnamed=unnamed)


def _read_rows(file: Path, columns: Columns, special: list[str]) -> Source:
    """Return the rows of a table as items; its columns of numbers are the features."""
    require(columns.images is None, "--images", "given beside a table without --image-column",
            "name the column with the files")  # fmt: skip
    found = format_of_file(file, columns.options)
    frame = read_frame(file, special, found)
    features: Any = None
    line = f"{file.name}: {len(frame)} rows; {found}".removesuffix("; ")
    if columns.features is None:
        if columns.encoder is None or not columns.encoder.encode:
            _suggest_text(frame, [*special, *columns.dropped])
        table = read_table(
            file,
            columns.label,
            columns.id,
            dropped=columns.dropped,
            encoder=columns.encoder,
            options=columns.options,
        )
        features, labels, ids, line = table.features, table.labels, table.ids, table.line
    else:
        for name in special:
            check_column(name, [str(column) for column in frame.columns])
        labels = None if columns.label is None else as_text(frame[columns.label])
        ids = np.arange(len(frame)) if columns.id is None else as_text(frame[columns.id])
    rows = frame.drop(columns=special)
    items = TableItems(rows, ids.astype(str).tolist())
    return Source(items, features, labels, line=line, unnamed=_others(rows, columns))


def _others(frame: pd.DataFrame, columns: Columns) -> list[str]:
    """Return the columns that have no other use and are not dropped."""
    return [name for name in map(str, frame.columns) if name not in columns.dropped]


def _suggest_text(frame: pd.DataFrame, used: Sequence[str]) -> None:
    """Refuse a table with a column of texts or files that no option names."""
    for name in frame.columns:
        if name in used or pd.api.types.is_numeric_dtype(frame[name]):
            continue
        values = as_text(frame[name])
        numbers = to_numbers(pd.Series(values)).to_numpy()
        texts = values[np.isnan(numbers) & (values != "")]
        if len(texts):
            option = "image" if Path(texts[0]).suffix.lower() in PICTURES else "text"
            remedy = (
                f"add --{option}-column {name} to label these, --encode to compare rows by them, "
                f"or --drop {name}"
            )
            raise InvalidInput("columns", f"'{name}' holds texts ({texts[0][:20]!r})", remedy)


def _read_arrays(file: Path, columns: Columns) -> Source:
    """Return rows of numbers, or arrays of pixels, from an NPY or NPZ file."""
    _refuse(columns, f"'{file.name}'", "text", "image")
    if file.suffix.lower() == ".npy":
        _refuse(columns, f"'{file.name}'", "label", "id")
        pixels = read_npy(file)
        if pixels.ndim > 2:
            flat = pixels.reshape(len(pixels), -1)
            features = check_features(flat, "features")
            return Source(PictureArrays(pixels), features, words=PIXEL_WORDS)
    table = read_table(file, columns.label, columns.id)
    require(not sparse.issparse(table.features), "file", f"'{file.name}' holds a sparse matrix",
            "give it with --features, beside a table of what a person sees")  # fmt: skip
    return Source(_numbers(table), table.features, table.labels)


def _numbers(table: Table) -> TableItems:
    frame = pd.DataFrame(np.asarray(table.features), columns=table.feature_names)
    return TableItems(frame, table.ids.tolist())


def is_scene(file: Path) -> bool:
    """Return whether a file is a raster of several bands by its name, or by its ENVI header."""
    kind = file.suffix.lower()
    return kind in SCENES or (kind in OF_HEADER and file.with_suffix(".hdr").is_file())


def _read_scene(file: Path, columns: Columns, labels: Path | None) -> Source:
    """Return the pixels of a scene with their graph."""
    from graphuq.cli.scene_items import scene_items  # imports what reads rasters

    require_extra("raster")
    _refuse(columns, "a scene", "text", "image", "label", "id")
    others = {"--features": columns.features, "--drop": columns.dropped, "--read": columns.options,
              "--images": columns.images, "--encode or --impute": columns.encoder}  # fmt: skip
    for option, value in others.items():
        require(not value, option, "given beside a scene", "leave it out")
    items, graph, y = scene_items(file, labels)
    line = f"{file.name}: {len(items):,} pixels are items"
    return Source(items, graph, y, "Graph: neighbours in place and of similar spectra.", True, line)


def _read_anndata(file: Path, columns: Columns) -> Source:
    """Return cells: their graph or components, and their annotations as items."""
    data = read_h5ad(file)
    warn_of_unused_places(data, "graphuq label")
    _refuse(columns, f"'{file.name}'", "text", "image", "id")
    annotations = data.obs
    if columns.label is not None:
        check_column(columns.label, [str(name) for name in annotations.columns])
    labels = None if columns.label is None else as_text(annotations[columns.label])
    rest = annotations.drop(columns=[] if columns.label is None else [columns.label])
    items = TableItems(rest, [str(name) for name in data.obs_names])
    if columns.features is None and has_neighbors(data):
        weights = cell_graph(data).weights
        return Source(items, weights, labels, "Graph: connectivities of the file.", True)
    if "X_pca" in data.obsm:
        return Source(items, np.asarray(data.obsm["X_pca"]), labels, "Features: X_pca of the file.")
    return Source(items, data.X, labels, "Features: X of the file, as it is.")
