"""Python, both commands, blocks of rows, cells and the labelling page write one table of answers.

One model is fitted by each: EP with a fixed prior and a fixed likelihood.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import graphuq as gq
from graphuq.cli.app import run
from graphuq.labelling.cards import predictions_of
from graphuq.labelling.items import TextItems
from graphuq.labelling.model import Model

PARTS = {"n_eigenpairs": 20, "n_neighbors": 10}
MODELS = {
    2: "Fixed(Matern(tau=0.3, alpha=3), Probit(noise_std=0.2))",
    3: "Fixed(Matern(tau=0.3, alpha=3), Softmax(noise_std=0.2))",
}
NAMES = np.array(["left", "right", "top"])
LATENT = ["latent_mean", "latent_std", "latent_lower", "latent_upper"]
FLOATS = {"probability", "margin", "entropy", "mcse", *LATENT}


def blobs(n_classes):
    """Return 150 rows in clusters, their classes, and the given ones, an empty text elsewhere."""
    rng = np.random.default_rng(n_classes)
    classes = rng.integers(n_classes, size=150)
    features = np.array([[0.0, 0.0], [2.5, 0.0], [1.2, 2.2]])[classes]
    features = (features + 0.8 * rng.normal(size=(150, 2))).astype(np.float32)
    return features, np.where(np.arange(150) < 18, NAMES[classes], "")


def options_of(n_classes):
    method = {"inference": "expectation-propagation", "missing_label": ""}
    return {**PARTS, **method, "model": MODELS[n_classes]}


def columns(n_classes):
    """Return the columns that docs/files.md describes."""
    shares = [f"probability_{name}" for name in NAMES[:n_classes]]
    start = ["id", "label", "probability", *shares, "margin", "entropy", "rank", "mcse"]
    return [*start, *(LATENT if n_classes == 2 else []), "has_evidence", "given"]


def command_options(n_classes):
    return ["--model", MODELS[n_classes], "--n-eigenpairs", "20", "--n-neighbors", "10", "--quiet"]


def by_python(features, given, n_classes, folder):
    result = gq.GraphClassifier(**options_of(n_classes)).fit(features, given).result_
    table = result.to_dataframe()
    gq.results.write_table(table, folder / "python.parquet")
    gq.results.write_table(table, folder / "python.csv")
    return folder / "python.parquet"


def by_command(features, given, n_classes, folder):
    frame = pd.DataFrame(features, columns=["a", "b"]).assign(y=given)
    frame.to_csv(folder / "x.csv", index=False)
    method = ["--inference", "expectation-propagation", "--format", "parquet"]
    start = ["classify", str(folder / "x.csv"), "--label-column", "y", "-o", str(folder / "out")]
    assert run([*start, *command_options(n_classes), *method]) == 0
    return folder / "out" / "predictions.parquet"


def by_predict(features, given, n_classes, folder):
    by_command(features, given, n_classes, folder)
    path = folder / "predicted.parquet"
    stored = str(folder / "out" / "posterior.nc")
    assert run(["predict", stored, str(folder / "x.csv"), "-o", str(path)]) == 0
    return path


def by_store(features, given, n_classes, folder):
    np.save(folder / "x.npy", features)
    store = gq.Store(folder / "store", n_parts=2, search="exact", tolerance=1e-5)
    classifier = gq.GraphClassifier(store=store, **PARTS, model=MODELS[n_classes])
    labels = {row: str(name) for row, name in enumerate(given) if name}
    return classifier.fit(folder / "x.npy", labels).to_parquet(folder / "stored")[0]


def by_cells(features, given, n_classes, folder):
    index = pd.Index([str(k) for k in range(len(given))])
    cells = SimpleNamespace(
        obs=pd.DataFrame({"few": given}, index=index), obs_names=index,
        obsm={"X_pca": features}, obsp={}, uns={},
    )  # fmt: skip
    settings = gq.GraphClassifier(**options_of(n_classes))
    gq.external.scanpy.label_cells(cells, "few", use_rep="X_pca", classifier=settings)
    names = [name for name in cells.obs if name.startswith("gq_") and name != "gq_novelty"]
    table = cells.obs[names].rename(columns=lambda name: name.removeprefix("gq_"))
    table.insert(0, "id", table.index)
    path = folder / "cells.parquet"
    gq.results.write_table(table.astype({"label": object, "given": object}), path)
    return path


def by_page(features, given, n_classes, folder):
    model = Model(features, gq.GraphClassifier(**options_of(n_classes)))
    model.prepare()
    labels = {row: str(name) for row, name in enumerate(given) if name}
    items = TextItems(["item"] * len(given), [str(k) for k in range(len(given))])
    table = predictions_of(items, model.renew(labels, 1), labels)
    gq.results.write_table(table, folder / "page.parquet")
    return folder / "page.parquet"


ROADS = [by_command, by_predict, by_store, by_cells, by_page]


@pytest.fixture(scope="module", params=[2, 3])
def python(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    path = by_python(*blobs(request.param), request.param, folder)
    return request.param, parquet.read_table(path), folder


def test_table_of_python_has_the_described_columns(python):
    n_classes, table, folder = python
    assert table.column_names == columns(n_classes)
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    shares = {f"probability_{name}" for name in NAMES[:n_classes]}
    wanted = dict.fromkeys({*FLOATS, *shares} & set(types), "double")
    wanted |= {"id": "int64", "label": "string", "rank": "int64", "given": "string"}
    assert types == {**wanted, "has_evidence": "bool"}
    frame = table.to_pandas()
    margin = frame["margin"].to_numpy()
    np.testing.assert_array_equal(frame["rank"], [1 + (margin < m).sum() for m in margin])
    given = blobs(n_classes)[1]
    assert frame["given"].fillna("").tolist() == given.tolist()
    assert frame["has_evidence"].all()
    np.testing.assert_allclose(frame[[*sorted(shares)]].sum(axis=1), 1)
    best = frame[sorted(shares)].idxmax(axis=1).str.removeprefix("probability_")
    assert (best == frame["label"]).all()
    np.testing.assert_array_equal(frame[sorted(shares)].max(axis=1), frame["probability"])
    text = pd.read_csv(folder / "python.csv", keep_default_na=False)
    assert text.columns.tolist() == table.column_names
    np.testing.assert_allclose(text["probability"], frame["probability"], rtol=1e-5)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.__name__)
def test_every_road_writes_that_table(road, python, tmp_path, monkeypatch):
    n_classes, expected, _ = python
    monkeypatch.chdir(tmp_path)
    features, given = blobs(n_classes)
    table = parquet.read_table(Path(road(features, given, n_classes, tmp_path)))
    assert table.column_names == expected.column_names
    for name in table.column_names[1:]:
        assert table.schema.field(name).type == expected.schema.field(name).type, name
        found, wanted = table.column(name).to_pylist(), expected.column(name).to_pylist()
        if name in ("label", "has_evidence", "given"):
            assert found == wanted, name
        elif name == "rank":  # two nearly equal margins may change places
            assert np.abs(np.subtract(found, wanted)).max() <= 2
        else:
            np.testing.assert_allclose(found, wanted, atol=1e-4, err_msg=name)
    assert [str(k) for k in table.column("id").to_pylist()] == [str(k) for k in range(150)]


@pytest.mark.parametrize("classes", [[3, 8], [False, True], ["=a", "b"]])
def test_types_of_classes_are_kept(classes, tmp_path):
    features, given = blobs(2)
    names = np.array(classes)
    y = np.array([None if not g else names[int(g == "right")] for g in given], dtype=object)
    options = {**options_of(2), "missing_label": None}
    classifier = gq.GraphClassifier(**options).fit(features, y)
    table = classifier.result_.to_dataframe()
    known = [name is not None for name in y]
    assert table["given"].notna().tolist() == known
    assert table["given"][known].tolist() == [name for name in y if name is not None]
    assert table["label"].dtype == pd.Series(classes).dtype
    gq.results.write_table(table, tmp_path / "x.parquet")
    schema = parquet.read_schema(tmp_path / "x.parquet")
    assert schema.field("given").type == schema.field("label").type
    pd.testing.assert_frame_equal(
        classifier.predict_table(features).drop(columns="id"), table.drop(columns="id")
    )


def test_new_rows_far_from_all_labels_have_no_evidence():
    features, given = blobs(2)
    far = np.vstack([features, features[:30] + 100])
    y = np.append(given, np.full(30, "", dtype=given.dtype))
    with pytest.warns(gq.errors.DisconnectedGraphWarning):
        classifier = gq.GraphClassifier(**options_of(2)).fit(far, y)
    table = classifier.predict_table(features[:3] + np.float32([[0.01], [0.01], [100.01]]))
    assert table["has_evidence"].tolist() == [True, True, False]
    assert table["given"].isna().all()
    assert table["probability"][2] == pytest.approx(0.5)


def test_a_name_of_another_format_is_refused(tmp_path):
    with pytest.raises(gq.errors.InvalidInput, match=r"ends in \.csv"):
        gq.results.write_table(pd.DataFrame({"id": [0]}), tmp_path / "x.txt")
    assert run(["predict", "posterior.nc", "x.csv", "-o", str(tmp_path / "x.txt")]) == 2
