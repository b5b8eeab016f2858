"""``graphuq map``: a scene and labelled places to maps and a report."""

import json

import numpy as np
import pandas as pd
import pytest

from graphuq.cli.app import run
from graphuq.external import raster

rasterio = pytest.importorskip("rasterio", reason="pip install graphuq[raster]")

FILES = {"classes.tif", "classes.tif.aux.xml", "probabilities.tif", "entropy.tif", "rank.tif",
         "next.csv", "report.html", "settings.json"}  # fmt: skip


@pytest.fixture
def scene(tmp_path):
    """Write a scene of two fields and four labelled places."""
    values = np.random.default_rng(0).normal(size=(3, 16, 18)).astype(np.float32)
    values[:, :, 9:] += 3.0
    where = rasterio.Affine(10.0, 0.0, 5e5, 0.0, -10.0, 5e6)
    with rasterio.open(tmp_path / "scene.tif", "w", driver="GTiff", count=3, height=16, width=18,
                       dtype="float32", crs="EPSG:32632", transform=where) as file:  # fmt: skip
        file.write(values)
    table = {"x": [5e5 + 25, 5e5 + 35, 5e5 + 125, 5e5 + 155], "y": 5e6 - 75}
    pd.DataFrame(table | {"class": ["wheat", "wheat", "beans", "beans"]}).to_csv(
        tmp_path / "places.csv", index=False
    )
    return tmp_path


def command(folder, *options, labels="places.csv", output="out"):
    given = ["--labels", str(folder / labels), "-o", str(folder / output), "--quiet"]
    return run(["map", str(folder / "scene.tif"), *given, *options])


def test_a_scene_becomes_maps_and_a_report(scene, capsys, figures):
    assert command(scene) == 0
    assert {path.name for path in (scene / "out").iterdir()} == FILES
    with rasterio.open(scene / "out" / "classes.tif") as file:
        found, names = file.read(1), file.tags(1)
    half = np.broadcast_to(np.arange(18) >= 9, (16, 18))
    assert names["1"] == "beans"
    assert ((found == 1) == half).mean() > 0.95
    page = (scene / "out" / "report.html").read_text()
    assert page.count("data:image/png") == 6
    assert "wheat" in page
    places = pd.read_csv(scene / "out" / "next.csv")
    assert all(f"<td>{y:,.0f}</td>" in page for y in places["y"])  # to the metre, not 5e+06
    assert "How right places far from labels are was not computed" in page
    assert capsys.readouterr().out == ""


def test_the_object_of_json(scene, capsys):
    assert command(scene, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {path.rpartition("/")[2] for path in found["files"]} == FILES
    with rasterio.open(scene / "out" / "classes.tif") as file:
        codes, names = file.read(1), file.tags(1)
    shares = {row["class"]: row["share"] for row in found["classes"]}
    counted = {names[str(k)]: (codes == k).mean() for k in (1, 2)}
    assert shares == pytest.approx(counted)
    assert (found["n_pixels"], found["n_labelled"]) == (288, 4)
    assert found["verdict"]["checks"]["places"]["sentence"] == found["places"]
    assert found["settings"] == json.loads((scene / "out" / "settings.json").read_text())


def test_places_to_label_next_become_labels(scene):
    """Without a georeference, too, where x and y are refused."""
    with rasterio.open(scene / "scene.tif") as file:
        values = file.read()
    with (
        pytest.warns(rasterio.errors.NotGeoreferencedWarning),
        rasterio.open(scene / "scene.tif", "w", driver="GTiff", count=3, height=16, width=18,
                      dtype="float32") as file,
    ):  # fmt: skip
        file.write(values)
    known = {"row": [7, 7], "column": [2, 15], "class": ["wheat", "beans"]}
    pd.DataFrame(known).to_csv(scene / "places.csv", index=False)
    assert command(scene) == 0
    found = pd.read_csv(scene / "out" / "next.csv")
    found["class"] = np.where(found["column"] < 9, "wheat", "beans")
    found.to_csv(scene / "more.csv", index=False)
    read = raster.read_labels(scene / "more.csv", raster.read_scene(scene / "scene.tif"))
    assert len(read.classes) == len(found) == 20


def test_what_it_reads_is_never_written(scene, capsys):
    (scene / "scene.tif").rename(scene / "classes.tif")
    (scene / "scene.tif").symlink_to(scene / "classes.tif")
    before = (scene / "classes.tif").read_bytes()
    assert command(scene, output=".") == 2
    assert "would replace" in capsys.readouterr().err
    assert (scene / "classes.tif").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--crs", "EPSG:9"], "crs: 'EPSG:9' is unknown"),
        (["--label-column", "crop"], "has the columns x, y, class"),
        (["--max-pixels", "5"], "max_pixels: 5"),
    ],
)
def test_what_does_not_fit_is_one_line(options, words, scene, capsys):
    assert command(scene, *options) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (scene / "out" / "classes.tif").exists()
