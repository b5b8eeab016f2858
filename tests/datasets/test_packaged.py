"""Data sets that other packages bring, and a simulated tissue."""

import importlib.util

import numpy as np
import pytest
from scipy.spatial import cKDTree

import graphuq as gq
from graphuq.datasets import packaged
from graphuq.errors import InvalidInput, StorageError

load_indian_pines, load_penguins = gq.datasets.load_indian_pines, gq.datasets.load_penguins


def test_indian_pines():
    pytest.importorskip("tensorly", reason="pip install tensorly, which brings the scene")
    scene = load_indian_pines()
    assert repr(scene) == "PixelDataset('Indian Pines', shape (21025, 200), 17 classes)"
    counts = dict(zip(*np.unique(scene.classes, return_counts=True), strict=True))
    # As published with the scene.
    published = {"Alfalfa": 46, "Corn-notill": 1428, "Hay-windrowed": 478, "Soybean-mintill": 2455}
    assert {name: counts[name] for name in published} == published
    assert counts[""] == 21025 - 10249
    bands = scene.bands
    assert bands.shape == (200, 145, 145)
    row, column = scene.places[400]
    np.testing.assert_array_equal(bands[:, row, column], scene.features[400])
    few = scene.of_classes(["Oats", "Wheat"], n_each=5)
    np.testing.assert_array_equal(bands[:, *few.places.T].T, few.features)
    assert np.isnan(few.bands).any()


def test_penguins():
    pytest.importorskip("palmerpenguins", reason="pip install palmerpenguins, which brings them")
    birds = load_penguins()
    names, counts = np.unique(birds.classes, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "Adelie": 151, "Chinstrap": 68, "Gentoo": 123
    }  # fmt: skip
    assert birds.features.shape == (342, 4)
    assert np.isfinite(birds.features).all()
    assert birds.features[0].tolist() == [39.1, 18.7, 181.0, 3750.0]


@pytest.mark.parametrize(
    ("load", "package"), [(load_indian_pines, "tensorly"), (load_penguins, "palmerpenguins")]
)
def test_what_is_missing_or_damaged_is_named(load, package, tmp_path, monkeypatch):
    with pytest.raises(StorageError, match=f"is missing; install {package} again"):
        load(tmp_path)
    for file in (packaged.BANDS, packaged.TRUTH, packaged.PENGUINS):
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.path).write_bytes(b"truncated")
    with pytest.raises(StorageError, match="wrong checksum"):
        load(tmp_path)
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    with pytest.raises(StorageError, match=f"not installed; run pip install {package}"):
        load()


def test_tissues_are_as_their_numbers_say():
    tissue = gq.datasets.simulated_tissue(3000, 4, 2, contrast=2.0, patchiness=0.8, rng=0)
    assert tissue.features.shape == (3000, 20)
    assert set(tissue.slides.tolist()) == {"slide 0", "slide 1"}
    # Given expression, the probability of the likeliest type is how often it is right.
    p = tissue.given_expression
    np.testing.assert_allclose(p.sum(axis=1), 1)
    right = p.argmax(axis=1) == tissue.codes()
    error = np.sqrt((p.max(axis=1) * (1 - p.max(axis=1))).sum()) / 3000
    assert abs(right.mean() - p.max(axis=1).mean()) < 4 * error
    # The expression of a type is a constant and noise of variance 1.
    for k in range(4):
        own = tissue.features[tissue.codes() == k]
        assert abs(own.var(axis=0, ddof=1).mean() - 1) < 4 * np.sqrt(2 / own.size)
        assert abs(np.linalg.norm(own.mean(axis=0)) - 2) < 4 * np.sqrt(20 / len(own))


@pytest.mark.parametrize(("patchiness", "alike"), [(0.0, False), (0.97, True)])
def test_patchiness_says_how_alike_neighbours_are(patchiness, alike):
    tissue = gq.datasets.simulated_tissue(2000, 4, patchiness=patchiness, rng=0)
    nearest = cKDTree(tissue.places).query(tissue.places, 2)[1][:, 1]
    same = (tissue.classes == tissue.classes[nearest]).mean()
    by_chance = ((np.unique(tissue.classes, return_counts=True)[1] / 2000) ** 2).sum()
    error = np.sqrt(by_chance * (1 - by_chance) / 1000)
    assert same > by_chance + 0.3 if alike else abs(same - by_chance) < 4 * error


def test_cells_keep_their_places():
    tissue = gq.datasets.simulated_tissue(300, 3, 2, rng=1)
    few = tissue.of_classes(["type 0", "type 2"], n_each=20)
    rows = [int(np.flatnonzero((tissue.features == x).all(axis=1))[0]) for x in few.features]
    np.testing.assert_array_equal(few.places, tissue.places[rows])
    np.testing.assert_array_equal(few.slides, tissue.slides[rows])
    np.testing.assert_array_equal(few.given_expression, tissue.given_expression[rows])
    known = tissue.known(4, rng=0)
    for name in tissue.target_names:
        own = known == name
        assert own.sum() == 4
        assert (tissue.classes[own] == name).all()
    assert (known == "Unknown").sum() == 300 - 12


def test_tissues_as_anndata():
    if importlib.util.find_spec("anndata") is None:
        pytest.skip("pip install anndata")
    tissue = gq.datasets.simulated_tissue(60, 2, 2, rng=1)
    adata = tissue.to_anndata(tissue.known(3))
    assert adata.obs.columns.tolist() == ["type", "library_id", "few"]
    np.testing.assert_array_equal(adata.obsm["spatial"], tissue.places)
    np.testing.assert_array_equal(adata.X, tissue.features)
    assert tissue.to_anndata().obs.columns.tolist() == ["type", "library_id"]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"n_types": 1}, "n_types"),
        ({"patchiness": 1.5}, "patchiness: 1.5; use a number from 0 to 1"),
        ({"contrast": -1.0}, "contrast"),
        ({"patch_size": 0.0}, "patch_size: 0.0 is not positive"),
    ],
)
def test_numbers_out_of_range(numbers, words):
    with pytest.raises(InvalidInput, match=words):
        gq.datasets.simulated_tissue(20, **numbers)
