"""How good are types of single cells from a few known ones?

700 blood cells of ``scanpy.datasets.pbmc68k_reduced()``, which is part of the package scanpy, and
their ten types. 1, 3 or 5 random cells of each type are known. All methods see the same known
cells; those on a graph see the neighbours that the data set stores. Run with scanpy installed.

    python benchmarks/bench_cells.py [splits]
    python benchmarks/bench_cells.py picture FILE
"""

import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

import graphuq as gq

TRUTH = "bulk_labels"
QUICK = gq.GraphClassifier(
    model=gq.models.LargestEvidence(likelihood="softmax"), inference="expectation-propagation"
)


def load():
    """Return the cells, with principal components as `scanpy.tl.ingest` needs them."""
    import scanpy

    adata = scanpy.datasets.pbmc68k_reduced()
    scanpy.pp.pca(adata, n_comps=50, random_state=0)
    return adata


def split(codes, n_each, seed):
    """Return which cells are known: n_each random ones of each type."""
    rng = np.random.default_rng(seed)
    known = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        known[rng.choice(np.flatnonzero(codes == code), n_each, replace=False)] = True
    return known


def label_cells(adata, known, **options):
    """Return probabilities by graphuq, with columns in the order of the types."""
    truth = adata.obs[TRUTH]
    adata.obs["few"] = truth.where(known).astype(object)
    options.setdefault("classifier", QUICK)
    gq.external.scanpy.label_cells(adata, "few", **options)
    return adata.obsm["gq_probabilities"]


def label_spreading(adata, known, codes, alpha):
    """Return probabilities by scikit-learn's LabelSpreading on the stored graph."""
    weights = adata.obsp["connectivities"].toarray()
    model = LabelSpreading(kernel=lambda *_: weights, alpha=alpha, max_iter=5000)
    return model.fit(adata.obsm["X_pca"], np.where(known, codes, -1)).label_distributions_


def logistic_regression(adata, known, codes):
    """Return probabilities by regression on all genes, the model that CellTypist fits."""
    model = LogisticRegression(max_iter=1000).fit(adata.X[known], codes[known])
    return model.predict_proba(adata.X)


def ingest(adata, known, codes, k):
    """Return codes by scanpy.tl.ingest: a vote of k known cells in principal components."""
    import scanpy

    reference, query = adata[known].copy(), adata[~known].copy()
    # ingest centres the query at the mean of the reference
    centred = reference.X - reference.X.mean(axis=0)
    reference.obsm["X_pca"] = centred @ reference.varm["PCs"]
    scanpy.pp.neighbors(reference, n_neighbors=min(10, known.sum() - 1), use_rep="X_pca")
    reference.uns["umap"] = {"params": {"a": 0.58, "b": 1.33}}  # read, but not used here
    scanpy.tl.ingest(query, reference, obs=TRUTH, embedding_method="pca", k=k)
    names = sorted(adata.obs[TRUTH].cat.categories)
    found = codes.copy()
    found[~known] = [names.index(name) for name in query.obs[TRUTH].astype(str)]
    return found


def measured(answer, codes, known):
    """Return accuracy, log score and expected calibration error at the cells not known."""
    if answer.ndim == 1:
        return (answer == codes)[~known].mean(), np.nan, np.nan
    return (
        gq.scores.accuracy(answer, codes, np.flatnonzero(known)),
        gq.scores.log_score(answer, codes, np.flatnonzero(known)),
        gq.scores.expected_calibration_error(answer, codes, np.flatnonzero(known)),
    )


def compare(adata, codes, n_each, n_splits):
    """Print one row a method: means over splits, and standard errors of the accuracy.

    Returns the probabilities of the first method at the cells not known, and the true codes.
    """
    answers = []
    methods = {
        "label_cells": lambda known: label_cells(adata, known, classifier=None),
        "quick": lambda known: label_cells(adata, known),
        "quick, of X_pca": lambda known: label_cells(adata, known, use_rep="X_pca"),
        "LabelSpreading, alpha 0.2": lambda known: label_spreading(adata, known, codes, 0.2),
        "LabelSpreading, alpha 0.9": lambda known: label_spreading(adata, known, codes, 0.9),
        "LabelSpreading, alpha 0.99": lambda known: label_spreading(adata, known, codes, 0.99),
        "logistic regression": lambda known: logistic_regression(adata, known, codes),
        "scanpy.tl.ingest": lambda known: ingest(adata, known, codes, n_each),
    }
    print(f"\n{n_each} known cells of each type, {n_splits} splits\n")
    print("| method | accuracy | log score | calibration | seconds |\n|---|---|---|---|---|")
    for name, method in methods.items():
        method(split(codes, n_each, 0))  # compiles
        rows, begin = [], time.perf_counter()
        for seed in range(n_splits):
            known = split(codes, n_each, seed)
            answer = method(known)
            rows.append(measured(answer, codes, known))
            if name == "label_cells":
                answers.append((answer[~known], codes[~known]))
        seconds = (time.perf_counter() - begin) / n_splits
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(n_splits)
        shown = [f"{mean[0]:.3f} ± {error[0]:.3f}", f"{mean[1]:.2f}", f"{mean[2]:.3f}"]
        print(f"| {name} | {' | '.join(shown)} | {seconds:.2f} |".replace("nan", "—"), flush=True)
    return answers


def compare_thresholds(answers):
    """Print how many cells are decided, and how many of these rightly, at each threshold."""
    print("\n| known | threshold | decided | right |\n|---|---|---|---|")
    for n_each, pairs in answers.items():
        p, codes = map(np.concatenate, zip(*pairs, strict=True))
        for threshold in (0.5, 0.7, 0.9):
            chosen = p.max(axis=1) >= threshold
            right = (p.argmax(axis=1) == codes)[chosen].mean() if chosen.any() else np.nan
            print(f"| {n_each} | {threshold} | {chosen.mean():.2f} | {right:.2f} |")


def compare_transfer(adata, codes, n_splits):
    """Print accuracies of types transferred from one half of the cells to the other."""
    rows = []
    for seed in range(n_splits):
        known = np.random.default_rng(seed).permutation(len(codes)) < len(codes) // 2
        reference, query = adata[known].copy(), adata[~known].copy()
        gq.external.scanpy.transfer(reference, query, TRUTH, use_rep="X_pca", classifier=QUICK)
        names = sorted(adata.obs[TRUTH].cat.categories)
        p = np.zeros((len(query), len(names)))
        p[:, np.searchsorted(names, query.uns["gq"]["types"])] = query.obsm["gq_probabilities"]
        none = np.zeros(len(p), dtype=bool)
        nearest = KNeighborsClassifier(10).fit(adata.obsm["X_pca"][known], codes[known])
        rows.append(
            [
                *measured(p, codes[~known], none),
                *measured(nearest.predict_proba(query.obsm["X_pca"]), codes[~known], none),
                *measured(ingest(adata, known, codes, 10), codes, known)[:1],
            ]
        )
    mean = np.mean(rows, axis=0)
    print(f"\nTransfer from 350 cells to 350, {n_splits} splits\n")
    print("| method | accuracy | log score | calibration |\n|---|---|---|---|")
    for name, at in ("transfer", 0), ("10 nearest neighbours", 3):
        print(f"| {name} | {mean[at]:.3f} | {mean[at + 1]:.2f} | {mean[at + 2]:.3f} |")
    print(f"| scanpy.tl.ingest, k 10 | {mean[6]:.3f} | — | — |")


def compare_novelty(adata, codes, n_splits):
    """Print how well novelty tells cells of a type of which none is known from all others."""
    print("\n| type without known cells | area under the curve |\n|---|---|")
    areas = []
    for code, name in enumerate(sorted(adata.obs[TRUTH].cat.categories)):
        found = []
        for seed in range(n_splits):
            known = split(codes, 5, seed) & (codes != code)
            adata.obs["few"] = adata.obs[TRUTH].where(known).astype(object)
            gq.external.scanpy.label_cells(adata, "few", classifier=QUICK)
            novelty = adata.obs["gq_novelty"].to_numpy()
            found.append(roc_auc_score((codes == code)[~known], novelty[~known]))
        areas.append(np.mean(found))
        print(f"| {name} | {areas[-1]:.2f} |", flush=True)
    print(f"| mean | {np.mean(areas):.2f} |")


def best_possible(adata, codes):
    """Print what neighbours predict if the types of all other cells are known."""
    found = [
        KNeighborsClassifier(15)
        .fit(np.delete(adata.obsm["X_pca"], row, axis=0), np.delete(codes, row))
        .predict(adata.obsm["X_pca"][[row]])[0]
        for row in range(len(codes))
    ]
    print(f"15 neighbours with all other types known: accuracy {(found == codes).mean():.3f}")


def picture(adata, codes, file):
    """Draw the known cells, the inferred types and their probabilities."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    known = split(codes, 3, 0)
    adata.obs["few"] = adata.obs[TRUTH].where(known)
    adata.uns["few_colors"] = [gq.plots.class_colors(10)(k) for k in range(10)]
    gq.external.scanpy.label_cells(adata, "few", classifier=QUICK)
    x, y = adata.obsm["X_umap"].T
    style = {"s": 9, "linewidths": 0}
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    colors = gq.plots.class_colors(10)
    given = codes[known]
    axes[0].scatter(x, y, color="#c8c8c8", **style)
    axes[0].scatter(x[known], y[known], c=given, cmap=colors, vmin=-0.5, vmax=9.5, s=26)
    names = sorted(adata.obs[TRUTH].cat.categories)
    inferred = [names.index(name) for name in adata.obs["gq_label"]]
    is_open = (adata.obs["gq"] == "Unknown").to_numpy()
    axes[1].scatter(x[is_open], y[is_open], color="#c8c8c8", **style)
    shown = np.array(inferred)[~is_open]
    axes[1].scatter(x[~is_open], y[~is_open], c=shown, cmap=colors, vmin=-0.5, vmax=9.5, **style)
    points = axes[2].scatter(x, y, c=adata.obs["gq_probability"], cmap="viridis", **style)
    figure.colorbar(points, ax=axes[2], label="probability of the type", shrink=0.8)
    titles = "30 known cells of 700", "types, grey below 0.5", "how certain they are"
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xticks=[], yticks=[])
    handles = [plt.Line2D([], [], marker="o", ls="", color=colors(k)) for k in range(10)]
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(file, dpi=110)


def main():
    if find_spec("scanpy") is None:
        print("bench_cells needs the package scanpy, which holds the data: pip install scanpy")
        return None
    adata = load()
    adata.obs[TRUTH] = adata.obs[TRUTH].astype(str).astype("category")
    codes = adata.obs[TRUTH].cat.codes.to_numpy().astype(int)
    if sys.argv[1:2] == ["picture"]:
        return picture(adata, codes, sys.argv[2])
    n_splits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    best_possible(adata, codes)
    compare_transfer(adata, codes, min(n_splits, 5))
    compare_novelty(adata, codes, min(n_splits, 3))
    compare_thresholds({n: compare(adata, codes, n, n_splits) for n in (1, 3, 5)})
    print(f"\n{adata.uns['gq']['likelihood']}")
    return None


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
