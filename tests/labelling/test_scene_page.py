"""Pixels of a scene on the labelling page: a click on the picture, a key, and a file of labels."""

import io

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.labelling.pixels import AROUND, ENLARGED, PixelItems
from labelling.browsing import keys, name, saved, start

rasterio = pytest.importorskip("rasterio", reason="pip install graphuq[raster]")
PIL = pytest.importorskip("PIL.Image", reason="pip install graphuq[label]")
N_ROWS, N_COLUMNS = 24, 36


def fields():
    """Return the class of each pixel: water on the left, a wood above, meadow below."""
    found = np.zeros((N_ROWS, N_COLUMNS), int)
    found[:10, 14:] = 1
    found[10:, 14:] = 2
    return found


@pytest.fixture
def scene(tmp_path):
    """A GeoTIFF of four bands, without data in one corner."""
    spectra = np.array([[20, 30, 60, 10], [20, 60, 25, 90], [60, 90, 40, 120]], float)
    noise = np.random.default_rng(0).normal(0, 4, (N_ROWS, N_COLUMNS, 4))
    values = np.moveaxis(spectra[fields()] + noise, -1, 0).astype(np.float32)
    values[:, :2, :3] = -1
    profile = {"driver": "GTiff", "count": 4, "height": N_ROWS, "width": N_COLUMNS, "nodata": -1,
               "dtype": "float32", "crs": "EPSG:32632",
               "transform": rasterio.Affine(10.0, 0.0, 5e5, 0.0, -10.0, 5e6)}  # fmt: skip
    with rasterio.open(tmp_path / "scene.tif", "w", **profile) as file:
        file.write(values)
    return tmp_path / "scene.tif"


@pytest.fixture
def page(scene, tmp_path):
    from graphuq.cli.scene_items import scene_items

    items, graph, _ = scene_items(scene, None)
    classifier = gq.GraphClassifier(
        graph, model="largest-evidence", inference="expectation-propagation"
    )
    with gq.label(None, items, classifier=classifier, labels=tmp_path / "labels.jsonl",
                  classes=["water", "wood", "meadow"], open_browser=False,
                  user="ada", title="Scene") as opened:  # fmt: skip
        yield opened


def click(tab, column, row):
    """Click on a pixel of the picture, which fills its canvas but for the margin."""
    box = tab.locator("#map").bounding_box()
    unit = min((box["width"] - 28) / (N_COLUMNS - 1), (box["height"] - 28) / (N_ROWS - 1))
    x = box["width"] / 2 + (column - (N_COLUMNS - 1) / 2) * unit
    y = box["height"] / 2 + (row - (N_ROWS - 1) / 2) * unit
    tab.mouse.click(box["x"] + x, box["y"] + y)
    shown = f"column {column}, row {row}"
    tab.wait_for_function("x => document.getElementById('item-name').textContent === x", arg=shown)


def test_a_click_on_the_picture_and_a_key_label_a_pixel(page, tab, scene, tmp_path):
    pytest.importorskip("playwright.sync_api")
    start(tab, page)
    tab.wait_for_function("() => document.getElementById('map').width > 300")
    given = {(5, 5): "water", (8, 20): "water", (20, 4): "wood", (30, 6): "wood",
             (20, 18): "meadow", (33, 20): "meadow"}  # fmt: skip
    for n, ((column, row), label) in enumerate(given.items(), start=1):
        click(tab, column, row)
        tab.keyboard.press(keys(tab)[label])
        saved(page, n)
    table = page.session.items.label_table(page.session.store.labels())
    found = {(c, r): label for c, r, label in table.itertuples(index=False)}
    assert found == given

    # The map renews itself: nearly all pixels have their class, and next places are named.
    page.session.wait_until_current()
    answer = page.session.map()
    places = page.session.items.map_places
    truth = np.array(["water", "wood", "meadow"])[fields()[-places[:, 1].astype(int),
                                                           places[:, 0].astype(int)]]  # fmt: skip
    shown = np.array(answer["classes"])[answer["color"]]
    assert (shown == truth).mean() > 0.95
    assert len(answer["next"]) > 0
    assert not set(answer["next"]) & set(answer["labelled"])
    tab.wait_for_function("() => document.getElementById('renewal').textContent === 'up to date'")

    def shades():
        script = """() => { const c = document.getElementById('map');
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const n = new Map();
            for (let i = 0; i < d.length; i += 4) {
              const k = `${d[i]},${d[i + 1]},${d[i + 2]}`; n.set(k, (n.get(k) ?? 0) + 1); }
            return [...n.values()].filter((v) => v > 2000).length; }"""
        return tab.evaluate(script)

    assert tab.get_attribute("#map-picture", "aria-pressed") == "true"
    tab.click("#map-picture")
    tab.wait_for_timeout(300)
    assert shades() == 4  # three classes and the ground
    assert name(tab) != ""

    # What was given is read by graphuq map.
    table.to_csv(tmp_path / "labels.csv", index=False)
    opened = gq.external.raster.read_scene(scene)
    known = gq.external.raster.read_labels(tmp_path / "labels.csv", opened)
    assert {(c, r): k for (r, c), k in zip(known.places.tolist(), known.classes, strict=True)
            } == given  # fmt: skip


def test_known_places_are_labels_from_the_start(scene, tmp_path):
    from graphuq.cli.scene_items import scene_items

    frame = pd.DataFrame({"column": [5, 30], "row": [5, 20], "class": ["water", "meadow"]})
    frame.to_csv(tmp_path / "known.csv", index=False)
    items, graph, y = scene_items(scene, tmp_path / "known.csv")
    assert len(items) == graph.n_nodes == N_ROWS * N_COLUMNS - 6
    assert {items.ids[row]: y[row] for row in np.flatnonzero(y != "")} == {
        "column 5, row 5": "water", "column 30, row 20": "meadow"}  # fmt: skip
    values = dict(items.shown(int(np.flatnonzero(y == "water")[0]))["fields"])
    assert (values["x"], values["y"]) == ("500055", "4.99994e+06")


def test_the_command_writes_labels_that_graphuq_map_reads(scene, tmp_path, monkeypatch):
    from graphuq.cli.app import run

    def person(page):
        ids = list(page.session.items.ids)
        for place, label in (("column 5, row 5", "water"), ("column 30, row 6", "wood")):
            page.session.label("ada", [ids.index(place)], label)
        raise KeyboardInterrupt

    monkeypatch.setattr(gq.LabellingPage, "wait", person)
    command = ["label", str(scene), "--no-browser", "--user", "ada", "-o", str(tmp_path / "out")]
    assert run(command) == 0
    known = gq.external.raster.read_labels(
        tmp_path / "out/labels.csv", gq.external.raster.read_scene(scene)
    )
    assert known.places.tolist() == [[5, 5], [6, 30]]
    assert known.classes.tolist() == ["water", "wood"]
    assert len(pd.read_csv(tmp_path / "out/predictions.csv")) == N_ROWS * N_COLUMNS - 6


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"features": "emb.npy"}, "--features: given beside a scene"),
        ({"text": "body"}, "--text-column: given beside a scene"),
        ({"dropped": ["band 1"]}, "--drop: given beside a scene"),
    ],
)
def test_options_that_a_scene_does_not_have_are_refused(scene, columns, words):
    from graphuq.cli.items import Columns, read_source

    with pytest.raises(InvalidInput, match=words):
        read_source(scene, Columns(**columns), None)


def test_a_pixel_is_shown_in_its_surroundings():
    picture = np.zeros((60, 50, 3), np.uint8)
    picture[30, 10] = (250, 10, 20)
    items = PixelItems(picture, np.array([[30, 10], [0, 49]]))
    content, kind = items.picture(0)
    assert kind == "image/png"
    shown = np.asarray(PIL.open(io.BytesIO(content)))
    assert shown.shape == ((2 * AROUND + 1) * ENLARGED, (10 + AROUND + 1) * ENLARGED, 3)
    middle = AROUND * ENLARGED + ENLARGED // 2, 10 * ENLARGED + ENLARGED // 2
    assert tuple(shown[middle]) == (250, 10, 20)
    assert tuple(shown[middle[0] - ENLARGED // 2 - 1, middle[1]]) == (255, 0, 200)
    assert items.map_colors[0] == "#f80810"
    assert items.map_places.tolist() == [[10, -30], [49, 0]]
    with pytest.raises(InvalidInput, match="outside of the picture"):
        PixelItems(picture, np.array([[60, 10], [0, 0]]))
