"""Every reader of files: how to write a sound file for it, and how to read it."""

import collections
import importlib.util
import json

import networkx
import numpy as np
import pandas as pd
from PIL import Image
from scipy import sparse

import graphuq as gq
from graphuq.classifier.search.checkpoint import SearchCheckpoint
from graphuq.classifier.table_encoder import TableEncoder
from graphuq.cli.cells import read_cells
from graphuq.cli.columns import numbers_from, weights_from
from graphuq.cli.edges import EdgeKind, read_edges
from graphuq.cli.encoding import read_encoded
from graphuq.cli.graph_files import read_graph_file
from graphuq.cli.items import Columns, read_source
from graphuq.cli.label_files import read_labels
from graphuq.cli.readings import read_readings
from graphuq.cli.tables import read_table
from graphuq.cli.tags import tags_of_texts
from graphuq.engine.sources import open_source
from graphuq.engine.store import Stage
from graphuq.inference.checkpoint import Checkpoint
from graphuq.labelling.accounts import Accounts, set_password
from graphuq.labelling.campaign import campaign_lines, read_campaign
from graphuq.labelling.features import reduced_pixels
from graphuq.labelling.items import PictureFiles, TextItems
from graphuq.labelling.label_studio.config import label_config, parse_config
from graphuq.labelling.layouts import Labelled, write_labelled
from graphuq.labelling.store import LabelStore
from graphuq.spectrum import load_spectrum
from robustness import hostile

ITEMS = TextItems(["a", "b", "c"])
MOONS = hostile.MOONS.features
TABLE = pd.DataFrame(MOONS, columns=["a", "b"]).assign(label=hostile.LABELS)
MIXED = TABLE.assign(colour=np.array(["red", "blue", ""])[np.arange(hostile.N) % 3], day="2026-1-2")
EDGES = pd.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "a"], "weight": [1, 2, 0.5]})
CLUB = networkx.karate_club_graph().subgraph(range(8)).copy()
IDS = np.arange(hostile.N).astype(str)
EXPORT = [
    {
        "id": k,
        "data": {"text": f"text {k}"},
        "annotations": [
            {
                "result": [{"type": "choices", "value": {"choices": ["spam"]}, "from_name": "c"}],
                "completed_by": {"email": "a@b.c"},
                "was_cancelled": False,
                "created_at": "2026-01-01T00:00:00Z",
            }
        ],
        "predictions": [
            {
                "result": [{"type": "choices", "value": {"choices": ["spam"]}, "from_name": "c"}],
                "score": 0.9,
                "model_version": "graphuq-1",
            }
        ],
    }
    for k in range(3)
]


def write_label_store(path):
    store = LabelStore(path, ITEMS)
    store.append("me", {0: "x", 2: "y"})
    store.close()


def read_label_store(path):
    store = LabelStore(path, ITEMS)
    store.close()
    return store.labels(), store.disagreements(), store.to_array()


def save_classifier(path):
    classifier = gq.GraphClassifier(model="largest-evidence", inference="laplace", missing_label="")
    classifier.fit(MOONS, hostile.LABELS).save(path)


def save_regressor(path):
    gq.GraphRegressor().fit(MOONS, np.where(np.arange(hostile.N) < 8, MOONS[:, 0], np.nan)).save(
        path
    )


def save_counts(path):
    counts = np.where(np.arange(hostile.N) < 8, np.arange(hostile.N), np.nan)
    exposure = 1.0 + np.arange(hostile.N)
    gq.GraphRegressor(model="counts").fit(MOONS, counts, exposure=exposure).save(path)


def write_picture(path):
    picture = Image.fromarray((np.arange(432) % 256).astype(np.uint8).reshape(12, 12, 3))
    picture.save(path)
    picture.save(path.parent / "other.png")


def write_cells(path):
    import anndata

    types = np.where(hostile.LABELS == "", "Unknown", hostile.LABELS).astype(object)
    names = pd.Index([f"cell{k}" for k in range(hostile.N)], dtype=object)
    obs = pd.DataFrame({"label": pd.Categorical(types)}, index=names)
    var = pd.DataFrame(index=pd.Index(["gene"], dtype=object))
    X = sparse.csr_matrix(np.ones((hostile.N, 1), dtype=np.float32))
    anndata.AnnData(X, obs, var, obsm={"X_own": MOONS}).write_h5ad(path)


def read_h5ad(path):
    options = collections.defaultdict(type(None), label_column="label")
    return read_cells(path, options, None, "X_own")


def write_items(path):
    """Write three items as the tool writes them of which the file is named."""
    write_labelled(Labelled(ITEMS, {0: "x", 2: "y"}, {0: {"me": "x"}}), path.stem, path)


def read_items(path):
    source = read_source(path, Columns(), None)
    return [source.items.summary(row) for row in range(len(source.items))]


def read_studio(path):
    try:
        export = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return  # the user decodes the export
    gq.label_studio.annotations(export)
    gq.label_studio.predictions(export, label_config(["spam", "mail"]))


def read_config(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    return parse_config(text)


def read_encoded_table(path):
    return read_encoded(path, ["label"], ["day"], TableEncoder(impute=True, missing_values=["?"]))


def written():
    """Return a table as people write it, with prices, odd cells and dates."""
    price = [f"{1000 * value:.2f} €" for value in MOONS[:, 0]]
    day = [f"{1 + k % 28}.1.2026" for k in range(hostile.N)]
    return MIXED.assign(price=price, dose=np.where(MOONS[:, 1] > 1, "<0,1", "0,5"), day=day)


def write_told(path):
    """Write tags, a price and a weight for each row."""
    columns = {"tags": np.where(hostile.LABELS == "", "", "comedy;drama"), "weight": 1}
    TABLE.assign(price=MOONS[:, 0], **columns).drop(columns="label").to_csv(path, index=False)


def read_told(path):
    table = read_table(path, "price", weight_column="weight", annotator_columns=["tags"])
    decimal = table.settings.get("decimal")
    numbers = numbers_from(table.labels, "price", "leave it empty", decimal)
    weights_from(table.weights, "weight", ~np.isnan(numbers), decimal)
    return tags_of_texts(table.annotations, ["tags"])


def write_answers(path):
    path.write_text("id,user,label\n0,ada,x\n0,bob,y\n3,ada,x\n")


def read_club(path):
    return read_graph_file(path, {"label_column": "club", "truth_column": None})


def read_blocks(path):
    source = open_source(path, ["label"] if path.suffix == ".parquet" else [])
    for block in source.blocks:
        block.features(source.names)
        if path.suffix == ".parquet":
            block.texts("label")


def write_stage(path):
    Stage(str(path.parent)).finish({"starts": [0, 3]}, temporary=["list"])


def read_stage(path):
    stage = Stage(str(path.parent))
    return stage.record, stage.clear()


def read_pictures(path):
    return reduced_pixels(PictureFiles(path.parent, [path.name, "other.png"], ["a", "b"]))


def write_scene(path):
    """Write a scene of nine pixels, which places and shapes label."""
    import rasterio

    where = rasterio.Affine(10.0, 0.0, 5e5, 0.0, -10.0, 5e6)
    with rasterio.open(path, "w", driver="GTiff", count=2, height=3, width=3, dtype="float32",
                       crs="EPSG:32632", transform=where) as file:  # fmt: skip
        file.write(np.arange(18, dtype=np.float32).reshape(2, 3, 3))


def read_scene(path):
    from graphuq.external import raster

    return raster.read_scene(path).read()


def write_places(path):
    write_scene(path.parent / "scene.tif")
    path.write_text("x,y,class\n500005,4999995,wheat\n500025,4999975,beans\n")


def write_codes(path):
    """Write a raster of labels on the grid of the scene."""
    import rasterio

    write_scene(path.parent / "scene.tif")
    with rasterio.open(path.parent / "scene.tif") as scene:
        form = scene.profile | {"count": 1, "dtype": "int32", "nodata": 0}
    with rasterio.open(path, "w", **form) as file:
        file.write(np.eye(3, dtype=np.int32)[None])


def write_shapes(path):
    write_scene(path.parent / "scene.tif")
    ring = [[5e5, 5e6], [5e5 + 20, 5e6], [5e5 + 20, 5e6 - 20], [5e5, 5e6]]
    shapes = [("Point", [500025, 4999975], "beans"), ("Polygon", [ring], "wheat")]
    features = [
        {"type": "Feature", "properties": {"class": name},
         "geometry": {"type": kind, "coordinates": at}}
        for kind, at, name in shapes
    ]  # fmt: skip
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def read_places_of_raster(path):
    from graphuq.external import raster

    return raster.read_labels(path, raster.read_scene(path.parent / "scene.tif"))


def read_places(path):
    from graphuq.external import raster

    scene = raster.read_scene(path.parent / "scene.tif")
    return raster.read_labels(path, scene, crs="EPSG:32632")


FILES = {
    "table.csv": (lambda path: TABLE.to_csv(path, index=False), lambda p: read_table(p, "label")),
    "table.tsv": (
        lambda path: TABLE.to_csv(path, index=False, sep="\t", encoding="utf-16"),
        lambda path: read_table(path, "label"),
    ),
    "german.csv": (
        lambda path: written().to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252"),
        read_encoded_table,
    ),
    "table.parquet": (TABLE.to_parquet, lambda p: read_table(p, "label")),
    "table.npz": (
        lambda path: path.write_bytes(hostile.npz_bytes()),
        lambda path: read_table(path, "label"),
    ),
    "plain.npz": (lambda path: np.savez(path, X=MOONS), read_table),
    "sparse.npz": (
        hostile.sparse_npz,
        lambda path: gq.graphs.from_adjacency(read_table(path).features),
    ),
    "array.npy": (lambda path: np.save(path, MOONS), read_table),
    "mixed.csv": (lambda path: MIXED.to_csv(path, index=False), read_encoded_table),
    "mixed.parquet": (MIXED.to_parquet, read_encoded_table),
    "edges.csv": (
        lambda path: EDGES.to_csv(path, index=False),
        lambda path: read_edges(path, "source,target,weight", {}, EdgeKind()),
    ),
    "edges.parquet": (
        EDGES.to_parquet,
        lambda path: read_edges(path, "source,target,weight", {}, EdgeKind()),
    ),
    "club.graphml": (lambda path: networkx.write_graphml(CLUB, path), read_club),
    "club.gml": (lambda path: networkx.write_gml(CLUB, path), read_club),
    "club.gexf": (lambda path: networkx.write_gexf(CLUB, path), read_club),
    "index.parquet": (
        TABLE.set_axis(range(1, len(TABLE) + 1)).to_parquet,
        lambda path: read_table(path, "label"),
    ),
    "labels.csv": (hostile.write_labels, lambda path: read_labels(path, IDS)),
    "labels.parquet": (
        pd.DataFrame({"id": IDS, "label": hostile.LABELS}).to_parquet,
        lambda path: read_labels(path, IDS),
    ),
    "told.csv": (
        hostile.write_labels,
        lambda path: read_labels(path, IDS, told={"separator": ",", "encoding": "utf-8"}),
    ),
    "answers.csv": (write_answers, lambda path: read_readings(path, IDS, "user")),
    "tags.csv": (write_told, read_told),
    "users.json": (
        lambda path: set_password(path, "ada", "a password of ada"),
        lambda path: Accounts(path).users,
    ),
    "scene.tif": (write_scene, read_scene),
    "places.csv": (write_places, read_places),
    "codes.tif": (write_codes, read_places_of_raster),
    "places.geojson": (write_shapes, read_places),
    "items.csv": (
        lambda path: MIXED.to_csv(path, index=False),
        lambda path: read_source(path, Columns(text="colour", label="label"), None),
    ),
    "label-studio.json": (write_items, read_items),
    "prodigy.jsonl": (write_items, read_items),
    "huggingface.parquet": (write_items, read_items),
    "items.parquet": (
        MIXED.to_parquet,
        lambda path: read_source(path, Columns(text="colour", label="label"), None),
    ),
    "rows.jsonl": (
        lambda path: MIXED.to_json(path, orient="records", lines=True),
        lambda path: read_source(path, Columns(text="colour", label="label"), None),
    ),
    "labels.jsonl": (write_label_store, read_label_store),
    "campaign.jsonl": (write_label_store, lambda path: campaign_lines(read_campaign(path))),
    "studio.json": (lambda path: path.write_text(json.dumps(EXPORT)), read_studio),
    "config.xml": (lambda path: path.write_text(label_config(["spam", "mail"])), read_config),
    "result.nc": (save_classifier, gq.load),
    "regressor.nc": (save_regressor, gq.load),
    "counts.nc": (save_counts, gq.load),
    "cells.h5ad": (write_cells, read_h5ad),
    "chains.npz": (
        lambda path: Checkpoint(path, (), "a").save({"x": np.arange(9.0)}),
        lambda path: Checkpoint(path, (), "a").load(),
    ),
    "search.json": (
        lambda path: SearchCheckpoint(path, "this").add({"a": 1}, [{"a": 1, "objective": 0.5}]),
        lambda path: SearchCheckpoint(path, "this").rows({"a": 1}),
    ),
    "spectrum.npz": (
        lambda path: gq.laplacian_spectrum(gq.graphs.ring_graph(12)).save(path),
        load_spectrum,
    ),
    "picture.png": (write_picture, read_pictures),
    "blocks.parquet": (TABLE.to_parquet, read_blocks),
    "blocks.npy": (lambda path: np.save(path, MOONS), read_blocks),
    "stage/done.json": (write_stage, read_stage),
}
"""For each kind of file, a function that writes a sound one and one that reads it."""

READ_TWICE = {"cells.h5ad"}  # first by another process, which HDF5 may crash
if importlib.util.find_spec("anndata") is None:
    del FILES["cells.h5ad"]
if importlib.util.find_spec("rasterio") is None:
    for name in ("scene.tif", "codes.tif", "places.csv", "places.geojson"):
        del FILES[name]
