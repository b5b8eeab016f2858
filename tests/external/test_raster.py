"""Scenes from files to maps, on small simulated rasters."""

import json
import warnings
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.errors import GraphuqWarning, InvalidInput, MissingLabelWarning, StorageError
from graphuq.external.raster import (
    PixelLabels,
    Tile,
    fit_scene,
    read_labels,
    read_scene,
    write_maps,
)
from graphuq.external.raster import scene as scenes
from graphuq.external.raster.attribute_table import write_attribute_table
from graphuq.external.raster.fit import graph_of_scene
from graphuq.graphs.pixels import Pixels

rasterio = pytest.importorskip("rasterio", reason="pip install graphuq[raster]")
from rasterio.errors import NotGeoreferencedWarning  # noqa: E402
from rasterio.warp import transform  # noqa: E402

UTM, LEFT, TOP, SIDE = "EPSG:32632", 500_000.0, 5_000_000.0, 10.0
ROWS, COLUMNS = 24, 30


def from_origin(left, top, width, height):
    return rasterio.Affine(width, 0.0, left, 0.0, -height, top)


def fields():
    """Return the class of each pixel: three fields."""
    found = np.zeros((ROWS, COLUMNS), int)
    found[:, 12:] = 1
    found[14:, 8:] = 2
    return found


def bands(seed=0, noise=0.3):
    spectra = np.random.default_rng(9).normal(size=(3, 4))
    values = spectra[fields()] + np.random.default_rng(seed).normal(0, noise, (ROWS, COLUMNS, 4))
    return np.moveaxis(values, -1, 0)


def write(path, values, crs=UTM, driver="GTiff", **more):
    profile = {"driver": driver, "count": len(values), "height": values.shape[1],
               "width": values.shape[2], "dtype": values.dtype.name, "crs": crs,
               "transform": from_origin(LEFT, TOP, SIDE, SIDE)} | more  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, "w", **profile) as file:
            file.write(values)
    return path


@pytest.fixture
def path(tmp_path):
    """Return a scene whose first two rows have no data."""
    values = bands()
    values[1, :2] = -9999.0
    return write(tmp_path / "scene.tif", values, nodata=-9999.0)


def some_places(n_each=3, seed=1):
    rng, codes = np.random.default_rng(seed), fields()
    codes[:2] = -1
    found = [rng.permutation(np.argwhere(codes == k))[:n_each] for k in range(3)]
    return np.concatenate(found)


def labels(**kwargs):
    places = some_places(**kwargs)
    places = places[np.lexsort(places.T[::-1])]
    return PixelLabels(places, np.array([f"crop {k}" for k in fields()[tuple(places.T)]]))


def coordinates(places):
    """Return x and y of the centres of pixels."""
    return LEFT + SIDE * (places[:, 1] + 0.5), TOP - SIDE * (places[:, 0] + 0.5)


@pytest.mark.parametrize(("driver", "name"), [("GTiff", "a.tif"), ("ENVI", "a.img")])
def test_geotiff_and_envi_are_read_with_their_georeference(driver, name, tmp_path):
    values = bands()
    scene = read_scene(write(tmp_path / name, values, driver=driver))
    found, mask = scene.read()
    np.testing.assert_array_equal(found, values)
    assert mask.all()
    assert scene.shape == (ROWS, COLUMNS)
    assert scene.crs.to_epsg() == 32632
    assert (scene.transform.c, scene.transform.f) == (LEFT, TOP)


def test_pixels_without_data_in_a_band_are_masked(path, tmp_path):
    mask = read_scene(path).mask()
    np.testing.assert_array_equal(
        mask, np.repeat([False, True], [2, ROWS - 2])[:, None].repeat(30, 1)
    )
    values = bands()
    values[3, 5, 6] = np.nan
    assert np.argwhere(~read_scene(write(tmp_path / "b.tif", values)).mask()).tolist() == [[5, 6]]


def test_tiles_cover_the_scene_once(path):
    scene, seen = read_scene(path), np.zeros((ROWS, COLUMNS), int)
    whole, _ = scene.read()
    for tile in scene.tiles(7):
        seen[tile.of_scene] += 1
        np.testing.assert_array_equal(scene.read(tile)[0], whole[:, *tile.of_scene])
    assert (seen == 1).all()
    assert len(list(scene.tiles(7))) == scene.n_tiles(7)


@pytest.mark.parametrize("names", [("x", "y"), ("lon", "lat"), ("column", "row")])
def test_labels_of_a_table(names, path, tmp_path):
    places = some_places()
    x, y = coordinates(places)
    if names[0] == "lon":
        x, y = transform(UTM, "EPSG:4326", x, y)
    elif names[0] == "column":
        x, y = places[:, 1], places[:, 0]
    given = [f"crop {k}" for k in fields()[tuple(places.T)]]
    csv = tmp_path / "labels.csv"
    pd.DataFrame({names[0]: x, names[1]: y, "class": given}).to_csv(csv, index=False)
    found, expected = read_labels(csv, read_scene(path)), labels()
    np.testing.assert_array_equal(found.places, expected.places)
    np.testing.assert_array_equal(found.classes, expected.classes)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("places.csv", {"sep": ";", "decimal": ","}),
        ("places.tsv", {"sep": "\t"}),
        ("places.txt", {"sep": ";", "encoding": "utf-16"}),
        ("places.csv", {"encoding": "cp1252"}),
    ],
)
def test_a_table_is_read_as_it_is_written(name, options, path, tmp_path):
    places = some_places()
    x, y = coordinates(places)
    given = np.array([f"Käse {k}" for k in fields()[tuple(places.T)]])
    pd.DataFrame({"x": x, "y": y, "class": given}).to_csv(tmp_path / name, index=False, **options)
    found, expected = read_labels(tmp_path / name, read_scene(path)), labels()
    np.testing.assert_array_equal(found.places, expected.places)
    np.testing.assert_array_equal(found.classes, np.char.replace(expected.classes, "crop", "Käse"))


def test_a_table_in_another_projection_is_reprojected(path, tmp_path):
    places = some_places()
    x, y = transform(UTM, "EPSG:3857", *coordinates(places))
    pd.DataFrame({"x": x, "y": y, "crop": "a"}).to_csv(tmp_path / "l.csv", index=False)
    found = read_labels(tmp_path / "l.csv", read_scene(path), "crop", "EPSG:3857")
    np.testing.assert_array_equal(found.places, labels().places)


def geojson(path, features, **more):
    content = {"type": "FeatureCollection", "features": features} | more
    path.write_text(json.dumps(content))
    return path


def feature(kind, where, name):
    geometry = {"type": kind, "coordinates": where}
    return {"type": "Feature", "geometry": geometry, "properties": {"class": name}}


def corners(top, left, bottom, right):
    """Return a polygon around pixels, in degrees."""
    rows, columns = (
        np.array([top, bottom, bottom, top, top]),
        np.array([left, left, right, right, left]),
    )
    x, y = transform(UTM, "EPSG:4326", LEFT + SIDE * columns, TOP - SIDE * rows)
    return [[list(pair) for pair in zip(x, y, strict=True)]]


def test_points_and_polygons_of_geojson(path, tmp_path):
    point = np.array([[20, 25]])
    (x,), (y,) = transform(UTM, "EPSG:4326", *coordinates(point))
    file = geojson(tmp_path / "l.geojson", [
        feature("Polygon", corners(4, 2, 7, 5), "wheat"),
        feature("Point", [x, y], "beans"),
        feature("Point", [x, y], None),
    ])  # fmt: skip
    found = read_labels(file, read_scene(path))
    expected = [[r, c] for r in range(4, 7) for c in range(2, 5)]
    assert found.places.tolist() == [*expected, [20, 25]]
    assert found.classes.tolist() == ["wheat"] * 9 + ["beans"]


def test_a_geojson_may_name_its_system(path, tmp_path):
    x, y = coordinates(np.array([[20, 25]]))
    named = {"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}}}
    file = geojson(tmp_path / "l.json", [feature("Point", [x[0], y[0]], "a")], **named)
    assert read_labels(file, read_scene(path)).places.tolist() == [[20, 25]]


def test_labels_of_a_raster_on_this_grid_and_on_another(path, tmp_path):
    codes = (fields() + 1).astype(np.uint8)
    codes[np.random.default_rng(0).random(codes.shape) < 0.9] = 0
    scene = read_scene(path)
    same = read_labels(write(tmp_path / "same.tif", codes[None], nodata=0), scene)
    np.testing.assert_array_equal(same.places, np.argwhere(codes))
    np.testing.assert_array_equal(same.classes, codes[codes > 0].astype(str))
    shifted = np.zeros((1, ROWS + 6, COLUMNS + 6), np.uint8)
    shifted[0, 2 : ROWS + 2, 3 : COLUMNS + 3] = codes
    wide = from_origin(LEFT - 3 * SIDE, TOP + 2 * SIDE, SIDE, SIDE)
    other = read_labels(write(tmp_path / "other.tif", shifted, nodata=0, transform=wide), scene)
    np.testing.assert_array_equal(other.places, same.places)
    np.testing.assert_array_equal(other.classes, same.classes)


def test_codes_of_a_raster_that_have_too_many_bits_are_refused(path, tmp_path):
    codes = np.zeros((1, ROWS, COLUMNS), np.uint32)
    codes[0, 3, 4] = 2**32 - 1  # as an integer of 32 bits, this is -1
    with pytest.raises(InvalidInput, match=r"the code \[4294967295\]; give codes of 31 bits"):
        read_labels(write(tmp_path / "large.tif", codes), read_scene(path))


def test_what_does_not_fit_is_refused_in_words(path, tmp_path):
    scene = read_scene(path)
    plain = write(tmp_path / "plain.tif", bands(), crs=None, transform=rasterio.Affine.identity())

    def table(**columns):
        pd.DataFrame(columns).to_csv(tmp_path / "l.csv", index=False)
        return tmp_path / "l.csv"

    x, y = coordinates(np.array([[5, 5], [-1, 3]]))
    with pytest.raises(InvalidInput, match=r"1 of 2 places of 'l.csv' lie outside of the scene"):
        read_labels(table(x=x, y=y, **{"class": ["a", "b"]}), scene)
    with pytest.raises(InvalidInput, match=r"has the classes 'a' and 'b'"):
        read_labels(table(row=[3, 3], column=[4, 4], **{"class": ["a", "b"]}), scene)
    with pytest.raises(InvalidInput, match=r"'plain.tif' has no georeference"):
        read_labels(table(x=x, y=y, **{"class": ["a", "b"]}), read_scene(plain))
    with pytest.raises(InvalidInput, match=r"has the columns x, y"):
        read_labels(table(x=x, y=y), scene)
    with pytest.raises(InvalidInput, match=r"row 1 of 'l.csv' has no numbers"):
        read_labels(table(x=[x[0], None], y=y, **{"class": ["a", "b"]}), scene)
    with pytest.raises(InvalidInput, match=r"crs: 'EPSG:9' is unknown"):
        read_labels(table(x=x, y=y, **{"class": ["a", "b"]}), scene, crs="EPSG:9")
    with pytest.raises(InvalidInput, match=r"labels no pixel"):
        read_labels(table(x=[], y=[], **{"class": []}), scene)
    line = geojson(tmp_path / "l.geojson", [feature("LineString", [[0, 0], [1, 1]], "a")])
    with pytest.raises(InvalidInput, match=r"feature 0 of 'l.geojson' is a LineString"):
        read_labels(line, scene)
    point = geojson(tmp_path / "l.geojson", [feature("Point", [x[0], y[0]], "a")])
    with pytest.raises(InvalidInput, match=r"'l.geojson' has coordinates .* EPSG:4326 .*--crs"):
        read_labels(point, scene)
    degrees = table(lon=x, lat=y, **{"class": ["a", "b"]})
    with pytest.raises(InvalidInput, match=r"'l.csv' has coordinates that are no places of"):
        read_labels(degrees, scene)
    with pytest.raises(InvalidInput, match=r"no 'crop'; its properties are class; .*column"):
        read_labels(point, scene, "crop", crs=UTM)
    far = geojson(tmp_path / "l.geojson", [feature("Polygon", corners(90, 90, 95, 95), "a")])
    with pytest.raises(InvalidInput, match=r"polygon 0 of 'l.geojson' holds no centre"):
        read_labels(far, scene)
    with pytest.raises(InvalidInput, match=r"values of the type float64"):
        read_labels(path, scene)
    bare = np.ones((1, 5, 5), np.uint8)
    other = write(tmp_path / "o.tif", bare, crs=None, transform=rasterio.Affine.identity())
    with pytest.raises(InvalidInput, match=r"on another grid"):
        read_labels(other, scene)
    away = write(tmp_path / "w.tif", bare, nodata=0, transform=from_origin(9e5, 6e6, 10, 10))
    with pytest.raises(InvalidInput, match=r"all labels of 'w.tif' lie outside"):
        read_labels(away, scene)


@pytest.mark.parametrize(
    "feature",
    [
        {"properties": "x", "geometry": {"type": "Point", "coordinates": [5e5, 5e6]}},
        {"properties": {"class": "a"}, "geometry": {"type": [], "coordinates": [5e5, 5e6]}},
        {"properties": {"class": "a"}, "geometry": {"type": "Point", "coordinates": None}},
        {"properties": {"class": "a"}, "geometry": {"type": "Polygon", "coordinates": [5]}},
        {"properties": {"class": "a"}, "geometry": {"type": "Point"}},
    ],
)
def test_a_feature_of_another_form_is_refused(feature, path, tmp_path):
    """Found by damage at random: only the file as a whole had passed the gate."""
    json_file = tmp_path / "l.geojson"
    json_file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises((StorageError, InvalidInput), match=r"l\.geojson|feature 0"):
        read_labels(json_file, read_scene(path), crs="EPSG:32632")


def test_a_file_that_claims_too_many_bands_is_refused(tmp_path, monkeypatch):
    """Found by coverage: GDAL took more than a minute for 65,535 bands in 204 bytes."""
    assert scenes.MAX_BANDS == 10_000  # a file of as many takes seconds to write
    monkeypatch.setattr(scenes, "MAX_BANDS", 20)
    path = write(tmp_path / "many.tif", np.zeros((21, 1, 2), dtype=np.uint8))
    with pytest.raises(StorageError, match="has 21 bands, more than 20"):
        read_scene(path)


def test_damaged_files_are_refused_in_words(path, tmp_path):
    whole = path.read_bytes()
    for name, content in {
        "empty": b"",
        "text": b"no raster",
        "cut": whole[: len(whole) // 2],
    }.items():
        damaged = tmp_path / f"{name}.tif"
        damaged.write_bytes(content)
        with pytest.raises(StorageError, match=r"is not a readable raster"):
            read_scene(damaged).read()
        if name != "cut":
            json_file = tmp_path / f"{name}.geojson"
            json_file.write_bytes(content)
            with pytest.raises(StorageError, match=r"is not a readable GeoJSON"):
                read_labels(json_file, read_scene(path))
    with pytest.raises(StorageError, match=r"there is no file"):
        read_scene(tmp_path / "missing.tif")
    write(tmp_path / "e.img", bands(), driver="ENVI")
    with pytest.raises(InvalidInput, match=r"is the header of an ENVI image"):
        read_scene(tmp_path / "e.hdr")
    with pytest.raises(InvalidInput, match=r"complex values"):
        read_scene(write(tmp_path / "c.tif", bands().astype(np.complex64)))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    values = bands()
    values[1, :2] = -9999.0
    file = write(tmp_path_factory.mktemp("scene") / "scene.tif", values, nodata=-9999.0)
    return fit_scene(read_scene(file), labels())


def test_a_small_scene_is_that_of_the_classifier(fitted):
    """All pixels with data are nodes, and the maps are its probabilities."""
    values, mask = fitted.scene.read()
    y = np.full(mask.shape, None, object)
    y[tuple(fitted.labels.places.T)] = fitted.labels.classes
    graph = gq.graphs.pixel_graph(values, mask)
    expected = gq.GraphClassifier(graph, missing_label=None).fit(None, y[mask])
    answer = fitted.predict(Tile(0, 0, ROWS, COLUMNS))
    np.testing.assert_array_equal(answer.chosen, mask)
    np.testing.assert_allclose(answer.probabilities, expected.label_distributions_, atol=1e-9)
    names = np.array(fitted.classes)[answer.probabilities.argmax(axis=1)]
    truth = np.array([f"crop {k}" for k in fields()[mask]])
    assert (names == truth).mean() > 0.9


def test_the_verdict_has_a_check_of_places_far_from_labels(fitted, path):
    few = fitted.trust
    assert set(few.checks) == {*fitted.classifier.result_.trust.checks, "places"}
    assert few.checks["places"].level == "amber"  # of nine labels
    assert "far from labels are is unknown" in few.checks["places"].sentence
    many = fit_scene(read_scene(path), labels(n_each=8))
    check = many.trust.checks["places"]
    assert "% if each is left out alone) and their mean probability is" in check.sentence
    assert check.value is not None


def test_classes_have_names_where_gdal_and_qgis_look_for_them(fitted, tmp_path):
    """Category names from 0 on, and a table of values, names, numbers of pixels and colours."""
    mapped = write_maps(fitted, tmp_path / "out")
    band = ElementTree.parse(tmp_path / "out" / "classes.tif.aux.xml").find("PAMRasterBand")
    names = fitted.classes
    assert [one.text for one in band.iter("Category")] == ["no data", *names]
    columns = [field.findtext("Name") for field in band.iter("FieldDefn")]
    rows = [dict(zip(columns, (f.text for f in row), strict=True)) for row in band.iter("Row")]
    assert [(int(row["Value"]), row["Class"]) for row in rows] == [*enumerate(names, start=1)]
    assert [int(row["Count"]) for row in rows] == mapped.counts.tolist()
    with rasterio.open(tmp_path / "out" / "classes.tif") as file:
        colours, codes = file.colormap(1), file.read(1)
        assert file.tags(1)["1"] == names[0]
    assert [int((codes == k).sum()) for k in (1, 2, 3)] == mapped.counts.tolist()
    for row in rows:
        colour = tuple(int(row[name]) for name in ("Red", "Green", "Blue"))
        assert (*colour, 255) == colours[int(row["Value"])]


def test_any_name_of_a_class_is_xml(tmp_path):
    names, colours = ["wood & <water>", "gr\x0bün", "a" * 300], np.zeros((3, 3), int)
    write_attribute_table(tmp_path / "a.tif", names, np.ones(3, int), colours)
    band = ElementTree.parse(tmp_path / "a.tif.aux.xml").find("PAMRasterBand")
    shown = ["no data", "wood & <water>", "grün", "a" * 300]
    assert [one.text for one in band.iter("Category")] == shown


def test_maps_keep_georeference_and_no_data(fitted, tmp_path):
    mapped = write_maps(fitted, tmp_path / "out")
    _, mask = fitted.scene.read()
    answer = fitted.predict(Tile(0, 0, ROWS, COLUMNS))
    read = {}
    for name in ("classes", "probabilities", "entropy", "rank"):
        with rasterio.open(tmp_path / "out" / f"{name}.tif") as file:
            assert (file.crs, file.transform) == (fitted.scene.crs, fitted.scene.transform)
            read[name] = file.read()
            np.testing.assert_array_equal(file.read_masks(1) > 0, mask)
            if name == "probabilities":
                assert list(file.descriptions) == fitted.classes
            if name == "classes":
                tags = file.tags(1)
                assert [tags[str(k)] for k in (1, 2, 3)] == fitted.classes
                assert len(set(map(tuple, (file.colormap(1)[k] for k in (1, 2, 3))))) == 3
    p = answer.probabilities
    np.testing.assert_allclose(read["probabilities"][:, mask].T, p, atol=1e-6)
    np.testing.assert_array_equal(read["classes"][0][mask], p.argmax(axis=1) + 1)
    np.testing.assert_allclose(read["entropy"][0][mask], -(p * np.log(p)).sum(axis=1), atol=1e-5)
    first, second = np.sort(p, axis=1)[:, ::-1][:, :2].T
    order = np.argsort(read["rank"][0][mask], kind="stable")
    assert np.diff((first - second)[order]).min() > -1 / 65000
    assert read["rank"][0][mask].min() == 1
    np.testing.assert_array_equal(mapped.counts, np.bincount(p.argmax(axis=1), minlength=3))
    table = pd.read_csv(tmp_path / "out" / "next.csv")
    places = table[["row", "column"]].to_numpy()
    np.testing.assert_allclose(table[["x", "y"]].to_numpy().T, coordinates(places))
    assert not {tuple(p) for p in places} & {tuple(p) for p in fitted.labels.places}
    with pytest.raises(InvalidInput, match="give class"):  # what is inferred there is no label
        read_labels(tmp_path / "out" / "next.csv", fitted.scene)
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert settings["labels"] == {"crop 0": 3, "crop 1": 3, "crop 2": 3}


def test_a_sample_of_the_pixels_answers_for_all(path):
    """Other pixels have the mean over the nodes they are joined to, tile by tile or at once."""
    scene = read_scene(path)
    fitted = fit_scene(scene, labels(), max_pixels=200)
    assert len(fitted.places) == 200
    assert {tuple(p) for p in fitted.labels.places} <= {tuple(p) for p in fitted.places}
    whole = fitted.predict(Tile(0, 0, ROWS, COLUMNS))
    found = np.full((ROWS, COLUMNS, 3), np.nan)
    for tile in scene.tiles(8):
        answer = fitted.predict(tile)
        part = np.full((*tile.shape, 3), np.nan)
        part[answer.chosen] = answer.probabilities
        found[tile.of_scene] = part
    np.testing.assert_allclose(found[whole.chosen], whole.probabilities, atol=1e-9)
    values, mask = scene.read()
    new = mask.copy()
    new[tuple(fitted.places.T)] = False
    weights = fitted.pixel_graph.connect(Pixels.of(values, new, mask)).toarray()
    mean = weights / weights.sum(axis=1, keepdims=True) @ fitted.classifier.label_distributions_
    np.testing.assert_allclose(found[new], mean, atol=1e-9)
    fields_mean = fitted.classifier.predict_proba(weights)  # averages fields, not probabilities
    assert abs(found[new] - fields_mean).mean() < 0.05
    right = found[mask].argmax(axis=1) == fields()[mask]
    assert right.mean() > 0.85


def test_many_labels_are_thinned_and_those_without_data_left_out(path):
    scene = read_scene(path)
    places = np.argwhere(np.ones((ROWS, COLUMNS)))
    every = PixelLabels(places, np.array([f"crop {k}" for k in fields().ravel()]))
    with pytest.warns(GraphuqWarning) as caught:
        fitted = fit_scene(scene, every, max_labels=30)
    words = " ".join(str(one.message) for one in caught)
    assert "60 of 720 are of pixels without data" in words
    assert "30 of 660 are used" in words
    assert np.unique(fitted.labels.classes, return_counts=True)[1].tolist() == [10, 10, 10]


def test_one_class_and_no_data_are_refused(path):
    scene = read_scene(path)
    one = PixelLabels(np.array([[5, 5], [6, 6]]), np.array(["a", "a"]))
    with pytest.raises(InvalidInput, match=r"only the class"):
        fit_scene(scene, one)
    empty = PixelLabels(np.array([[0, 5], [1, 6]]), np.array(["a", "b"]))
    with pytest.raises(InvalidInput, match=r"all are of pixels without data"):
        fit_scene(scene, empty)


def test_maps_are_written_whole_or_not_at_all(fitted, tmp_path, monkeypatch):
    write_maps(fitted, tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("graphuq.external.raster.maps.next_table", fail)
    with pytest.raises(StorageError, match=r"no space left"):
        write_maps(fitted, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_no_data_that_the_file_does_not_declare_is_suspected(tmp_path):
    values = bands()
    values[:, :2] = -9999.0
    scene = read_scene(write(tmp_path / "scene.tif", values))
    with pytest.warns(GraphuqWarning, match="-9999 is far from .* -a_nodata -9999 scene.tif"):
        graph_of_scene(scene, scene.mask(), labels(), 10**4, np.random.default_rng(0))
    declared = read_scene(write(tmp_path / "declared.tif", values, nodata=-9999.0))
    graph_of_scene(declared, declared.mask(), labels(), 10**4, np.random.default_rng(0))


def test_words_of_a_table_mean_unlabelled_and_label_names_the_class_too(path, tmp_path):
    places, csv = some_places(), tmp_path / "labels.csv"
    given = [f"crop {k}" for k in fields()[tuple(places.T)]]
    table = pd.DataFrame({"column": places[:, 1], "row": places[:, 0], "label": given})
    table.loc[len(table)] = [7, 7, "unknown"]
    table.to_csv(csv, index=False)
    with pytest.warns(MissingLabelWarning, match="'unknown' .1 row. is taken as unlabelled"):
        found = read_labels(csv, read_scene(path))
    np.testing.assert_array_equal(found.places, labels().places)
    np.testing.assert_array_equal(found.classes, labels().classes)
    with pytest.raises(InvalidInput, match=r"give kind \(or name another by"):
        read_labels(csv, read_scene(path), "kind")
