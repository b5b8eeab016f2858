"""Types of cells in AnnData objects.

Most tests use a stand-in with the four attributes that are read, so that they run without anndata.
"""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import InvalidInput, MissingLabelWarning
from graphuq.external.h5ad import read_h5ad, write_h5ad

label_cells, suggest_cells, transfer, per_cluster = (
    gq.external.scanpy.label_cells,
    gq.external.scanpy.suggest_cells,
    gq.external.scanpy.transfer,
    gq.external.scanpy.per_cluster,
)
ONE_MODEL = {"model": "largest-evidence", "inference": "expectation-propagation"}
QUICK = gq.GraphClassifier(**ONE_MODEL)
TYPES = np.array(["T cell", "B cell", "NK"])
SUFFIXES = ["_label", "_probability", "_entropy", "_margin", "_rank", "_has_evidence", "_novelty"]


def blobs(n=40, seed=0, shift=0.0):
    """Return three well separated types of n cells each, and their types."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(3), n)
    centres = np.array([[0.0, 0], [4, 0], [0, 4]])
    return centres[codes] + rng.normal(size=(3 * n, 2)) + shift, TYPES[codes]


def cells(n=40, n_known=3, seed=0, shift=0.0, make=SimpleNamespace):
    X, truth = blobs(n, seed, shift)
    few = np.full(3 * n, "Unknown", dtype=object)
    for name in TYPES:
        few[np.flatnonzero(truth == name)[:n_known]] = name
    names = pd.Index([f"cell{k}" for k in range(3 * n)], dtype=object)
    obs = pd.DataFrame({"truth": truth, "few": pd.Categorical(few)}, index=names)
    graph = gq.graphs.knn_graph(X, 10)
    obs["cluster"] = pd.Categorical(np.repeat(["2", "0", "1"], n), categories=["0", "1", "2"])
    parts = {
        "obs": obs,
        "obsm": {"X_pca": X},
        "obsp": {"connectivities": sparse.csr_matrix(graph.weights)},
        "uns": {"neighbors": {"connectivities_key": "connectivities"}},
    }
    if make is SimpleNamespace:
        genes = pd.Index([f"g{k}" for k in range(2)])
        return make(**parts, X=X, obs_names=names, var_names=genes)
    return make(X=X.astype(np.float32), **parts)


def probabilities(adata):
    """Return the stored probabilities as a table."""
    types = [str(name) for name in adata.uns["gq"]["types"]]
    return pd.DataFrame(adata.obsm["gq_probabilities"], index=adata.obs_names, columns=types)


def test_every_cell_gets_its_type_and_how_sure_that_is():
    adata = cells()
    fitted = label_cells(adata, "few", classifier=QUICK)
    obs = adata.obs
    assert (obs["gq_label"].astype(str) == obs["truth"]).mean() > 0.9
    is_open = obs["gq"] == "Unknown"
    np.testing.assert_array_equal(is_open, obs["gq_probability"] < 0.5)
    assert (obs["gq"].astype(str) == obs["gq_label"].astype(str))[~is_open].all()
    table = probabilities(adata)
    assert table.columns.tolist() == sorted(TYPES)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    np.testing.assert_allclose(table.max(axis=1), obs["gq_probability"])
    assert (table.idxmax(axis=1) == obs["gq_label"].astype(str)).all()
    entropy = -(table * np.log(table)).sum(axis=1)
    np.testing.assert_allclose(obs["gq_entropy"], entropy, atol=1e-12)
    top = np.sort(table.to_numpy(), axis=1)
    np.testing.assert_allclose(obs["gq_margin"], top[:, 2] - top[:, 1])
    assert obs.sort_values("gq_rank")["gq_margin"].is_monotonic_increasing
    assert obs["gq_margin"].iloc[obs["gq_rank"].argmin()] == obs["gq_margin"].min()
    assert obs["gq_given"].notna().sum() == 9
    assert obs["gq_has_evidence"].all()
    stored = adata.uns["gq"]
    assert stored["verdict"] == fitted.result_.trust.level
    assert stored["n_labelled"] == 9
    assert stored["n_unknown"] == is_open.sum()
    np.testing.assert_array_equal(fitted.graph_.names, adata.obs_names)


def test_a_threshold_leaves_uncertain_cells_open():
    strict, lax = cells(), cells()
    label_cells(strict, "few", min_probability=0.95, key_added="t", classifier=QUICK)
    label_cells(lax, "few", min_probability=0.0, classifier=QUICK)
    assert (strict.obs["t"] == "Unknown").sum() > 5
    assert (lax.obs["gq"] == "Unknown").sum() == 0
    np.testing.assert_array_equal(strict.obs["t_label"], lax.obs["gq_label"])


def test_cells_without_evidence_stay_open():
    adata = cells()
    joined = adata.obsp["connectivities"].tolil()
    joined[0, :] = joined[:, 0] = 0
    joined[1, :] = joined[:, 1] = 0
    joined[0, 1] = joined[1, 0] = 1.0
    adata.obsp["connectivities"] = joined.tocsr()
    adata.obs["few"] = adata.obs["few"].astype(object)
    adata.obs.loc[["cell0", "cell1"], "few"] = None
    with pytest.warns(gq.GraphuqWarning, match="connected components"):
        label_cells(adata, "few", min_probability=0.0, classifier=QUICK)
    assert not adata.obs["gq_has_evidence"].iloc[:2].any()
    assert (adata.obs["gq"].iloc[:2] == "Unknown").all()


def test_the_graph_is_found_as_scanpy_stores_it():
    adata, named = cells(), cells()
    named.obsp = {"mine_connectivities": named.obsp["connectivities"]}
    named.uns = {"mine": {"connectivities_key": "mine_connectivities"}}
    old = cells()
    old.uns = {"neighbors": {"params": {"n_neighbors": np.array([10])}}}  # of old files
    label_cells(adata, "few", classifier=QUICK)
    label_cells(named, "few", neighbors_key="mine", classifier=QUICK)
    label_cells(old, "few", classifier=QUICK)
    for other in (named, old):
        pd.testing.assert_frame_equal(probabilities(other), probabilities(adata))
    features = cells()
    fitted = label_cells(features, "few", use_rep="X_pca", classifier=QUICK)
    assert fitted.graph_.settings["graph"] == "knn"
    direct = gq.GraphClassifier(missing_label="Unknown", **ONE_MODEL)
    direct.fit(features.obsm["X_pca"], features.obs["few"].astype(str).to_numpy())
    np.testing.assert_allclose(features.obsm["gq_probabilities"], direct.label_distributions_)


def test_colours_are_those_of_the_known_types():
    adata = cells()
    assert adata.obs["few"].cat.categories.tolist() == ["B cell", "NK", "T cell", "Unknown"]
    adata.uns["few_colors"] = np.array(["#111111", "#222222", "#333333", "#444444"])
    label_cells(adata, "few", min_probability=0.99, classifier=QUICK)
    assert adata.uns["gq_label_colors"].tolist() == ["#111111", "#222222", "#333333"]
    given = ["#111111", "#222222", "#333333", "#444444"]
    own = dict(zip(adata.obs["few"].cat.categories, given, strict=True))
    found = adata.obs["gq"].cat.categories
    assert found[-1] == "Unknown"
    assert adata.uns["gq_colors"].tolist() == [own[name] for name in found]
    bare = cells()
    label_cells(bare, "few", min_probability=0.99, classifier=QUICK)
    own = dict(zip(bare.obs["few"].cat.categories, bare.uns["few_colors"], strict=True))
    assert bare.uns["gq_colors"].tolist() == [own[name] for name in bare.obs["gq"].cat.categories]
    assert len(set(bare.uns["few_colors"])) == 4


def test_order_of_categories_is_kept():
    adata = cells()
    order = ["T cell", "Unknown", "NK", "B cell"]
    adata.obs["few"] = adata.obs["few"].cat.reorder_categories(order)
    label_cells(adata, "few", classifier=QUICK)
    assert adata.obs["gq_label"].cat.categories.tolist() == ["T cell", "NK", "B cell"]
    table = probabilities(adata)
    assert (table.idxmax(axis=1) == adata.obs["gq_label"].astype(str)).all()


@pytest.mark.parametrize("empty", ["", None, float("nan"), "Unknown", "?"])
def test_values_that_mean_no_type(empty):
    adata, expected = cells(), cells()
    few = adata.obs["few"].astype(object).to_numpy(copy=True)
    few[few == "Unknown"] = empty
    adata.obs["few"] = few
    words = ("?", None) if empty == "?" else ("", None, "Unknown")
    label_cells(adata, "few", unlabelled=words, min_probability=1.0, classifier=QUICK)
    label_cells(expected, "few", classifier=QUICK)
    found, wanted = probabilities(adata), probabilities(expected)
    pd.testing.assert_frame_equal(found, wanted)
    assert adata.obs["gq"].cat.categories[-1] == ("?" if empty == "?" else "Unknown")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("word", ["unknown", "Unassigned", "NA", "nan", "-"])
def test_words_for_no_type_are_taken_so_and_named(word):
    adata, expected = cells(12), cells(12)
    few = adata.obs["few"].astype(object).to_numpy(copy=True)
    few[few == "Unknown"] = word
    adata.obs["few"] = few
    named = rf"adata.obs\['few'\]: '{word}' \(\d+ rows\) is taken as unlabelled; unlabelled=\("
    with pytest.warns(MissingLabelWarning, match=named):
        label_cells(adata, "few", classifier=QUICK)
    label_cells(expected, "few", classifier=QUICK)
    pd.testing.assert_frame_equal(probabilities(adata), probabilities(expected))
    with pytest.warns(MissingLabelWarning, match=f"the class '{word}' holds 27 of 36 rows"):
        label_cells(adata, "few", unlabelled=("", "Unknown"), classifier=QUICK)
    assert word in adata.obs["gq_label"].cat.categories


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_unseen_types_take_their_share():
    adata = cells()
    rows = (adata.obs["truth"] == "NK").to_numpy()
    adata.obs["few"] = np.where(rows, "Unknown", adata.obs["few"].astype(str))
    short = gq.inference.MCMC(n_samples=60, n_chains=2, n_warmup=100, thin=4, stop=None)
    label_cells(adata, "few", classifier=gq.GraphClassifier(max_classes=3, inference=short))
    total = probabilities(adata).sum(axis=1)
    assert (total < 1 + 1e-12).all()
    assert total.mean() < 0.999
    fitted = adata.obs["gq_probability"]
    assert (fitted <= total + 1e-12).all()


BAD = {
    "array": (lambda _: label_cells(np.eye(3), "few"), "adata: an object of type ndarray"),
    "column": (lambda a: label_cells(a, "fwe"), "labels_key: 'fwe' is not in adata.obs; use one"),
    "rep": (lambda a: label_cells(a, "few", use_rep="X"), None),
    "no rep": (lambda a: label_cells(a, "few", use_rep="X_vi"), "use_rep: 'X_vi' is not in adata"),
    "both": (
        lambda a: label_cells(a, "few", use_rep="X", neighbors_key="neighbors"),
        "use_rep: 'X' beside neighbors_key='neighbors'",
    ),
    "key": (
        lambda a: label_cells(a, "few", neighbors_key="mine"),
        r"no graph 'mine' in adata.obsp; run scanpy.pp.neighbors\(adata, key_added='mine'\).*"
        r"or one of \['neighbors'\]",
    ),
    "one type": (
        lambda a: label_cells(a, "few", unlabelled=("Unknown", "NK", "T cell")),
        r"'few' has the types \['B cell'\]",
    ),
    "threshold": (lambda a: label_cells(a, "few", min_probability=2), "min_probability: 2"),
    "clusters": (lambda a: per_cluster(a, "cluster"), "no gq_probabilities in adata.obsm"),
    "widths": (
        lambda a: transfer(a, SimpleNamespace(**{**vars(a), "obsm": {"X_pca": np.eye(120)}}),
                           "truth", use_rep="X_pca"),
        "'X_pca' has 2 columns in reference and 120 in query",
    ),
    "genes": (
        lambda a: transfer(a, SimpleNamespace(**{**vars(a), "var_names": pd.Index(["x", "y"])}),
                           "truth"),
        "query: 0 genes in common",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "words"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("unchecked_types")
def test_what_cannot_be_used_is_told(call, words):
    if words is None:
        pytest.skip("a representation that can be used")
    with pytest.raises(InvalidInput, match=words):
        call(cells())


def test_suggested_cells_are_those_of_query():
    adata = cells()
    fitted = label_cells(adata, "few", classifier=QUICK)
    table = suggest_cells(adata, "few", 5, classifier=fitted)
    rows = gq.acquisition.query(fitted.result_, 5)
    assert table.index.tolist() == adata.obs_names[rows].tolist()
    assert adata.obs["gq_next"].iloc[rows].tolist() == [1, 2, 3, 4, 5]
    assert (adata.obs["gq_next"] > 0).sum() == 5
    of_cells = probabilities(adata).loc[table.index]
    np.testing.assert_allclose(table["probability"], of_cells.max(axis=1))
    second = np.sort(of_cells.to_numpy(), axis=1)[:, 1]
    np.testing.assert_allclose(table["runner_up_probability"], second)
    again = suggest_cells(cells(), "few", 5, classifier=QUICK)
    assert again.index.tolist() == table.index.tolist()
    by_default = suggest_cells(cells(), "few", 5)
    model = gq.models.LargestEvidence(likelihood="softmax")
    settings = gq.GraphClassifier(model=model, inference="expectation-propagation")
    softmax = suggest_cells(cells(), "few", 5, classifier=settings)
    assert by_default.index.tolist() == softmax.index.tolist()
    with pytest.raises(InvalidInput, match="classifier: 120 nodes for 60 cells"):
        suggest_cells(cells(20), "few", classifier=fitted)


def test_types_of_clusters_are_the_means_of_their_cells():
    adata = cells()
    label_cells(adata, "few", classifier=QUICK)
    table = per_cluster(adata, "cluster")
    assert table.index.tolist() == ["0", "1", "2"]
    assert table["label"].tolist() == ["B cell", "NK", "T cell"]
    assert table["n_cells"].tolist() == [40, 40, 40]
    assert table["n_labelled"].tolist() == [3, 3, 3]
    rows = (adata.obs["cluster"] == "1").to_numpy()
    mean = adata.obsm["gq_probabilities"][rows].mean(axis=0)
    assert table.loc["1", "probability"] == pytest.approx(mean.max())
    assert table.loc["1", "entropy"] == pytest.approx(adata.obs["gq_entropy"][rows].mean())
    assert table.loc["1", "n_unknown"] == (adata.obs["gq"] == "Unknown")[rows].sum()
    assert (adata.obs["gq_cluster"].astype(str) == adata.obs["truth"]).all()
    assert len(adata.uns["gq_cluster_colors"]) == 3
    mixed = cells()
    label_cells(mixed, "few", classifier=QUICK)
    mixed.obs["all"] = "x"
    assert per_cluster(mixed, "all")["label"].notna().all()
    assert (mixed.obs["gq_cluster"] == "Unknown").all()


@pytest.mark.parametrize("use_rep", ["X_pca", None])
def test_types_are_transferred_with_uncertainty(use_rep):
    reference, query = cells(), cells(seed=1)
    reference.X = np.c_[reference.X, np.zeros(120)]
    reference.var_names = pd.Index(["g0", "g1", "only here"])
    before = reference.obs.copy()
    query.X, query.var_names = query.X[:, ::-1], pd.Index(["g1", "g0"])
    reference.uns["truth_colors"] = ["#111111", "#222222", "#333333"]
    reference.obs["truth"] = pd.Categorical(reference.obs["truth"])
    fitted = transfer(reference, query, "truth", use_rep=use_rep, max_per_type=10,
                      classifier=QUICK)  # fmt: skip
    assert (query.obs["gq_label"].astype(str) == query.obs["truth"]).mean() > 0.85
    assert len(fitted.result_.has_evidence) == 240
    assert len(fitted.result_.posterior.labels) == 30
    assert query.obs["gq_given"].isna().all()
    assert query.obs.sort_values("gq_rank")["gq_margin"].is_monotonic_increasing
    assert query.uns["gq_label_colors"].tolist() == ["#111111", "#222222", "#333333"]
    pd.testing.assert_frame_equal(reference.obs.drop(columns="truth"), before.drop(columns="truth"))


def test_a_type_that_the_reference_lacks_is_novel():
    reference, query = cells(), cells(seed=1)
    kept = (reference.obs["truth"] != "NK").to_numpy()
    part = SimpleNamespace(
        obs=reference.obs[kept], obsm={"X_pca": reference.obsm["X_pca"][kept]}, obsp={}, uns={},
        obs_names=reference.obs_names[kept],
    )  # fmt: skip
    transfer(part, query, "truth", use_rep="X_pca", classifier=QUICK)
    is_new = (query.obs["truth"] == "NK").to_numpy()
    novelty = query.obs["gq_novelty"].to_numpy()
    assert novelty[is_new].mean() > novelty[~is_new].mean() + 0.2


def test_novelty_compares_with_known_cells_left_out():
    adata = cells()
    result = label_cells(adata, "few", classifier=QUICK).result_
    entropies = []
    for row in range(9):
        p = gq.leave_one_out(result).of_class[row]
        entropies.append(-(p * np.log(p)).sum())
    expected = [(np.array(entropies) < e).mean() for e in adata.obs["gq_entropy"]]
    np.testing.assert_allclose(adata.obs["gq_novelty"], expected)
    assert 0 < adata.obs["gq_novelty"].mean() < 1
    two = ("Unknown", "NK")
    point = gq.GraphClassifier(model="largest-evidence", inference="map")
    label_cells(adata, "few", unlabelled=two, classifier=point)
    assert adata.obs["gq_novelty"].isna().all()


def test_annotated_data_can_be_written_and_read(tmp_path):
    anndata = pytest.importorskip("anndata", reason="pip install graphuq[anndata], to test files")
    adata = cells(make=anndata.AnnData)
    fitted = label_cells(adata, "few", classifier=QUICK)
    suggest_cells(adata, "few", 3, classifier=fitted)
    per_cluster(adata, "cluster")
    write_h5ad(adata, tmp_path / "cells.h5ad")
    again = read_h5ad(tmp_path / "cells.h5ad")
    for suffix in ["", "_next", "_cluster", *SUFFIXES]:
        left, right = again.obs["gq" + suffix], adata.obs["gq" + suffix]
        assert (left.astype(str) == right.astype(str)).all() or np.allclose(left, right)
    assert again.uns["gq"]["verdict"] == adata.uns["gq"]["verdict"]
    assert again.uns["gq"]["hyperparameters"]["tau"] > 0
    assert again.uns["gq_colors"].tolist() == adata.uns["gq_colors"].tolist()
    own = {"check_index_type": False}  # names are text, or Python objects
    pd.testing.assert_frame_equal(probabilities(again), probabilities(adata), **own)
    part = again[again.obs["truth"] != "NK"]
    with pytest.warns(anndata.ImplicitModificationWarning):
        label_cells(part, "few", use_rep="X_pca", classifier=QUICK)
    assert part.obs["gq_label"].cat.categories.tolist() == ["B cell", "T cell"]


@pytest.mark.parametrize("is_sparse", [True, False])
def test_an_object_that_is_backed_by_its_file_is_read(tmp_path, is_sparse):
    anndata = pytest.importorskip("anndata", reason="pip install graphuq[anndata], to test files")
    adata = cells(make=anndata.AnnData)
    adata.X = sparse.csr_matrix(adata.obsm["X_pca"]) if is_sparse else adata.obsm["X_pca"]
    write_h5ad(adata, tmp_path / "cells.h5ad")
    before = (tmp_path / "cells.h5ad").read_bytes()
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    other = cells(seed=1, make=anndata.AnnData)
    other.X = other.obsm["X_pca"]
    label_cells(adata, "few", use_rep="X", classifier=QUICK)
    label_cells(backed, "few", use_rep="X", classifier=QUICK)
    own = {"check_index_type": False}
    pd.testing.assert_frame_equal(probabilities(backed), probabilities(adata), **own)
    transfer(backed, other, "few", classifier=QUICK)
    assert other.obs["gq_label"].notna().all()
    backed.file.close()
    assert (tmp_path / "cells.h5ad").read_bytes() == before


def test_no_other_package_is_imported_before_it_is_needed():
    script = (
        "import sys, graphuq; graphuq.external.scanpy.label_cells; "
        "print([name for name in ('anndata', 'scanpy', 'networkx', 'igraph', 'torch', 'dgl') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_every_category_has_cells():
    """Tools of scanpy, such as rank_genes_groups, fail at a category without cells."""
    sure, open_ = cells(), cells()
    label_cells(sure, "few", min_probability=0.0, classifier=QUICK)
    label_cells(open_, "few", min_probability=1.0, classifier=QUICK)
    assert (sure.obs["gq"] != "Unknown").all()
    assert (open_.obs["gq"] == "Unknown").any()
    for adata in (sure, open_):
        per_cluster(adata, "cluster", min_probability=0.0)
        for name in ("gq", "gq_label", "gq_given", "gq_cluster"):
            column = adata.obs[name]
            assert (column.value_counts() > 0).all()
            if name != "gq_given":
                colors = adata.uns[f"{name}_colors"]
                own = dict(
                    zip(adata.uns["gq"]["types"], adata.uns["gq"]["type_colors"], strict=True)
                )
                expected = [own.get(kind, "#c8c8c8") for kind in column.cat.categories]
                assert colors.tolist() == expected


def test_neighbours_in_old_files_are_found():
    """Before scanpy 1.5 the matrix was in ``uns``."""
    adata, old = cells(), cells()
    old.uns = {"neighbors": {"connectivities": old.obsp["connectivities"], "params": {}}}
    old.obsp = {}
    for each in (adata, old):
        label_cells(each, "few", classifier=QUICK)
    pd.testing.assert_frame_equal(probabilities(old), probabilities(adata))


def test_cells_whose_types_are_all_known_are_checked():
    adata = cells()
    adata.obs["all"] = pd.Categorical(adata.obs["truth"])
    fitted = label_cells(adata, "all", classifier=QUICK)
    assert adata.obs["gq_given"].notna().all()
    assert len(fitted.suspect_labels()) == len(adata.obs)
    assert adata.obs["gq_novelty"].between(0, 1).all()
    assert len(suggest_cells(adata, "all", 3, classifier=fitted)) == 0
    assert per_cluster(adata, "cluster")["n_labelled"].sum() == len(adata.obs)
