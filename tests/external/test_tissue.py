"""Cells with places in a tissue: the graph of space, slides, containers, patches."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning, GraphRepairWarning, InvalidInput
from graphuq.external.scanpy.places import space_graph

label_cells, per_patch = gq.external.scanpy.label_cells, gq.external.scanpy.per_patch
EP = gq.GraphClassifier(inference="expectation-propagation")


def cells(tissue, n_each=8, seed=0):
    """Return a stand-in of an AnnData object, with neighbours of the expression."""
    names = pd.Index([f"cell{k}" for k in range(len(tissue.classes))], dtype=object)
    obs = pd.DataFrame({"few": tissue.known(n_each, seed)}, index=names)
    obs["library_id"] = tissue.slides
    return SimpleNamespace(
        obs=obs,
        obs_names=names,
        obsm={"spatial": tissue.places, "X_pca": tissue.features},
        obsp={"connectivities": gq.graphs.knn_graph(tissue.features, 15).weights},
        uns={},
    )


def accuracy(adata, tissue):
    free = (adata.obs["few"] == "Unknown").to_numpy()
    return float((adata.obs["gq_label"].astype(str) == tissue.classes)[free].mean())


def log_score(adata, tissue):
    free = np.flatnonzero((adata.obs["few"] == "Unknown").to_numpy())
    types = adata.uns["gq"]["types"].tolist()
    codes = np.array([types.index(name) for name in tissue.classes])
    return float(-np.log(adata.obsm["gq_probabilities"][free, codes[free]]).mean())


SMALL = gq.datasets.simulated_tissue(180, 3, 2, contrast=3.0, patchiness=0.9, rng=1)
PATCHY = gq.datasets.simulated_tissue(600, 3, 2, contrast=2.0, patchiness=0.97, rng=1)


def test_places_help_where_types_make_patches():
    both, alone = cells(PATCHY), cells(PATCHY)
    fitted = label_cells(both, "few", classifier=EP)
    label_cells(alone, "few", spatial_key=None, classifier=EP)
    assert accuracy(both, PATCHY) > accuracy(alone, PATCHY) + 0.05
    assert log_score(both, PATCHY) < log_score(alone, PATCHY) - 0.1
    known = PATCHY.given_expression.argmax(axis=1) == PATCHY.codes()
    assert accuracy(both, PATCHY) > known.mean()  # better than all that expression can say
    assert both.uns["gq"]["source"] == "neighbours of neighbors, and places"
    assert alone.uns["gq"]["source"] == "neighbours of neighbors"
    assert any("space" in name for name in gq.results.block_weights(fitted.result_))


def test_places_that_say_nothing_cost_little():
    tissue = gq.datasets.simulated_tissue(600, 3, contrast=3.0, patchiness=0.0, rng=2)
    both, alone = cells(tissue), cells(tissue)
    label_cells(both, "few", classifier=EP)
    label_cells(alone, "few", spatial_key=None, classifier=EP)
    assert accuracy(both, tissue) > accuracy(alone, tissue) - 0.01
    assert log_score(both, tissue) < log_score(alone, tissue) + 0.05


@pytest.mark.parametrize("is_joined", [True, False])
def test_parts_of_expression_are_told_where_places_do_not_join_them(is_joined):
    half = np.arange(180) < 90
    features = np.random.default_rng(0).normal(size=(180, 3)) + 50 * half[:, None]
    adata = cells(SMALL)
    adata.obsm["X_pca"] = features
    if not is_joined:
        adata.obsm["spatial"] = np.where(half[:, None], 0, 1e6) + SMALL.places
        adata.obs["library_id"] = np.where(half, "a", "b")
    told = contextlib.nullcontext() if is_joined else pytest.warns(DisconnectedGraphWarning)
    with told:
        label_cells(adata, "few", use_rep="X_pca", classifier=EP)


def test_slides_are_not_joined_in_space():
    adata = cells(PATCHY)
    graph = space_graph(adata, "auto", "auto")
    ends = graph.weights.tocoo()
    assert (PATCHY.slides[ends.row] == PATCHY.slides[ends.col]).all()
    assert graph.n_components == 2
    joined = space_graph(adata, "spatial", None)
    assert joined.n_components == 1
    # Each slide has the graph that it has alone.
    own = np.flatnonzero(PATCHY.slides == "slide 1")
    alone = gq.graphs.knn_graph(PATCHY.places[own], 10)
    np.testing.assert_allclose(
        graph.weights[own][:, own].toarray(), alone.weights.toarray(), rtol=1e-12
    )


def test_the_graph_of_squidpy_is_taken_and_its_edges_between_slides_are_not():
    adata = cells(PATCHY)
    # As squidpy stores it without library_key: 6 neighbours, in one direction, weight 1.
    tree_of = pytest.importorskip("scipy.spatial").cKDTree(PATCHY.places)
    near = tree_of.query(PATCHY.places, 7)[1][:, 1:]
    rows = np.repeat(np.arange(len(near)), 6)
    stored = sparse.csr_matrix((np.ones(near.size), (rows, near.ravel())))
    adata.obsp["spatial_connectivities"] = stored
    with pytest.warns(GraphRepairWarning, match=r"\d+ entries of 'spatial_connectivities' join"):
        graph = space_graph(adata, "auto", "auto")
    same = PATCHY.slides[:, None] == PATCHY.slides
    expected = np.maximum(stored.toarray(), stored.toarray().T) * same
    np.testing.assert_array_equal(graph.weights.toarray(), expected)
    whole = space_graph(adata, "spatial_connectivities", None)
    np.testing.assert_array_equal(
        whole.weights.toarray(), np.maximum(stored.toarray(), stored.toarray().T)
    )


def test_the_column_of_slides():
    adata = cells(PATCHY)
    adata.obs = adata.obs.rename(columns={"library_id": "core"})
    named = space_graph(adata, "spatial", "core")
    np.testing.assert_array_equal(
        named.weights.toarray(), space_graph(cells(PATCHY), "spatial", "auto").weights.toarray()
    )
    adata.uns["spatialdata_attrs"] = {"region_key": "core"}
    found = space_graph(adata, "spatial", "auto")
    np.testing.assert_array_equal(found.weights.toarray(), named.weights.toarray())
    adata.uns = {"spatial": {"slide 0": {}, "slide 1": {}}}
    with pytest.raises(InvalidInput, match=r"library_key: 2 slides in adata\.uns"):
        space_graph(adata, "spatial", "auto")
    assert space_graph(adata, "spatial", None).n_components == 1


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"spatial_key": "places"}, r"'places' is neither in adata\.obsp nor in adata\.obsm"),
        ({}, {"library_key": "slide"}, r"library_key: 'slide' is not in adata\.obs"),
        ({"spatial": np.full((600, 2), np.nan)}, {}, "'spatial' is NaN or infinite for 600 cell"),
        ({"spatial": np.zeros((600, 5))}, {}, r"'spatial' has the shape \(600, 5\)"),
    ],
)
def test_places_that_cannot_be_used(change, options, words):
    adata = cells(PATCHY)
    adata.obsm |= change
    with pytest.raises(InvalidInput, match=words):
        label_cells(adata, "few", **options)


def test_a_slide_is_empty_for_some_cells():
    adata = cells(PATCHY)
    adata.obs.loc["cell3", "library_id"] = None
    with pytest.raises(InvalidInput, match="'library_id' is empty for 1 cell"):
        label_cells(adata, "few")


def test_spatialdata_and_mudata_objects_have_the_same_answers():
    expected = cells(SMALL)
    label_cells(expected, "few", use_rep="X_pca", classifier=EP)
    table = cells(SMALL)
    label_cells(SimpleNamespace(tables={"table": table}), "few", use_rep="X_pca", classifier=EP)
    np.testing.assert_array_equal(table.obsm["gq_probabilities"], expected.obsm["gq_probabilities"])
    with pytest.raises(InvalidInput, match=r"the tables \['a', 'b'\]; give one of them"):
        label_cells(SimpleNamespace(tables={"a": table, "b": table}), "few")
    several = cells(SMALL)
    rna = cells(SMALL)
    several.mod, several.obsm, several.obsp = {"rna": rna}, {}, {}
    keys = {"use_rep": "rna:X_pca", "spatial_key": "rna:spatial"}
    label_cells(several, "few", classifier=EP, **keys)
    np.testing.assert_array_equal(
        several.obsm["gq_probabilities"], expected.obsm["gq_probabilities"]
    )
    with pytest.raises(InvalidInput, match=r"'X_umap' is not in adata\.obsm.*such as 'rna:X_pca'"):
        label_cells(several, "few", use_rep="X_umap")
    rna.obs_names = rna.obs_names[::-1]
    with pytest.raises(InvalidInput, match="modality 'rna' has other cells, or another order"):
        label_cells(several, "few", **keys)


def test_a_real_mudata_object():
    mudata = pytest.importorskip("mudata", reason="pip install mudata, to test its objects")
    adata = SMALL.to_anndata(SMALL.known(8))
    mudata.set_options(pull_on_update=False)
    mdata = mudata.MuData({"rna": adata})
    mdata.obs["few"] = adata.obs["few"]
    mdata.obs["library_id"] = adata.obs["library_id"]
    label_cells(mdata, "few", use_rep="rna:X", spatial_key="rna:spatial", classifier=EP)
    label_cells(adata, "few", use_rep="X", classifier=EP)
    np.testing.assert_allclose(mdata.obsm["gq_probabilities"], adata.obsm["gq_probabilities"])
    assert (mdata.obs["gq_label"] == adata.obs["gq_label"]).all()


def test_suggestions_use_places():
    adata, blind = cells(SMALL), cells(SMALL)
    suggest = gq.external.scanpy.suggest_cells
    table = suggest(adata, "few", 3)
    fitted = label_cells(cells(SMALL), "few")
    again = suggest(cells(SMALL), "few", 3, classifier=fitted)
    pd.testing.assert_frame_equal(table, again)
    assert table.index.tolist() != suggest(blind, "few", 3, spatial_key=None).index.tolist()


def test_patches_have_shares_with_intervals():
    adata = cells(SMALL)
    fitted = label_cells(adata, "few", classifier=EP)
    table = per_patch(adata, fitted, side=0.5)
    assert adata.obs["gq_patch"].nunique() == 8
    assert table["n_cells"].groupby(table["patch"]).first().sum() == 180
    own = (adata.obs["gq_patch"] == "1 0 1").to_numpy()
    assert (SMALL.slides[own] == "slide 1").all()
    above = SMALL.places[own] - SMALL.places.min(axis=0)
    assert (above[:, 0] < 0.5).all()
    assert (above[:, 1] >= 0.5).all()
    rows = table[table["patch"] == "1 0 1"].set_index("type")
    # A part of the posterior without places takes patches for unknown compositions.
    mean = adata.obsm["gq_probabilities"][own].mean(axis=0)
    np.testing.assert_allclose(rows["share"], mean, atol=0.01)
    assert (rows["lower"] <= rows["share"]).all()
    assert (rows["share"] <= rows["upper"]).all()
    adata.obs["region"] = np.where(np.arange(180) < 90, "a", None)
    named = per_patch(adata, fitted, "region")
    assert named["patch"].unique().tolist() == ["a"]
    assert named["n_cells"].tolist() == [90] * 3
    mean = adata.obsm["gq_probabilities"][:90].mean(axis=0)
    np.testing.assert_allclose(named["share"], mean, atol=1e-9)


def test_answers_from_expression_alone_learn_what_patches_consist_of():
    """Squares tell more of types than expression does; the mean probability does not use them."""
    adata = cells(PATCHY)
    fitted = label_cells(adata, "few", spatial_key=None, classifier=EP)
    squares = per_patch(adata, fitted, side=0.25)
    named = per_patch(adata, fitted, "gq_patch")
    assert (squares["patch"] == named["patch"]).all()
    patches = adata.obs["gq_patch"].astype(str).to_numpy()
    truth = np.array([
        (PATCHY.classes[patches == row.patch] == row.type).mean() for row in squares.itertuples()
    ])  # fmt: skip
    errors = [np.sqrt(((table["share"] - truth) ** 2).mean()) for table in (squares, named)]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "patch_key: None beside side=None"),
        ({"patch_key": "few", "side": 0.2}, "patch_key: 'few' beside side=0.2"),
        ({"patch_key": "region"}, "'region' is not in adata.obs"),
        ({"side": -1.0}, "side: -1.0 is not positive"),
        ({"side": 0.2, "spatial_key": "X"}, "'X' is not in adata.obsm"),
    ],
)
def test_patches_that_cannot_be_made(options, words):
    fitted = SimpleNamespace(result_=SimpleNamespace(has_evidence=np.ones(600, bool)))
    with pytest.raises(InvalidInput, match=words):
        per_patch(cells(PATCHY), fitted, **options)
    with pytest.raises(InvalidInput, match="classifier: 3 nodes for 600 cells"):
        per_patch(cells(PATCHY), SimpleNamespace(result_=SimpleNamespace(has_evidence=[1, 1, 1])))
