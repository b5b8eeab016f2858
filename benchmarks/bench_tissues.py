"""What do places add to expression, when types of cells are inferred?

Questions: on simulated tissues, how right and how well calibrated is `label_cells` with expression
alone, places alone, and both? What do useless places or useless expression cost? Do intervals of
the composition of patches hold it?

How to run:

    python benchmarks/bench_tissues.py [--draws 5]
    python benchmarks/bench_tissues.py --first 5 --draws 10 --only-both
    python benchmarks/bench_tissues.py --summary

Data: `graphuq.datasets.simulated_tissue`, 2,000 cells of 5 types in 2 slides, 10 known a type.
"Knows expression" is the probability of the types given the expression of the cell alone, for
someone who knows how each type is expressed: the best answer without places.

Prints accuracy, log score, calibration error (ten bins of the largest probability) and CPU seconds,
and how many intervals of 90 % hold the share of a type in a square of a quarter of the side, with
their width and the error of the shares.
Results go to ``benchmarks/results/tissues.json``.
"""

import argparse
import json
import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import graphuq as gq
from graphuq.external.scanpy.places import space_graph
from peers import RESULTS

PATH = RESULTS / "tissues.json"
N_CELLS, N_TYPES, N_SLIDES, N_EACH, SIDE = 2000, 5, 2, 10, 0.25
TISSUES = {
    "patches, clear expression": {"contrast": 3.0, "patchiness": 0.9},
    "patches, faint expression": {"contrast": 2.0, "patchiness": 0.97},
    "mixed, clear expression": {"contrast": 2.5, "patchiness": 0.6},
    "useless places": {"contrast": 3.0, "patchiness": 0.0},
    "useless expression": {"contrast": 0.0, "patchiness": 0.97},
}
METHODS = ("expression", "places", "both")
FLOOR = 1e-3


def scores(probability, codes):
    hit, top = probability.argmax(axis=1) == codes, probability.max(axis=1)
    own = np.maximum(probability[np.arange(len(codes)), codes], FLOOR)
    part = np.minimum((10 * top).astype(int), 9)
    error = sum(abs(np.sum((hit - top)[part == k])) for k in range(10)) / len(codes)
    return [float(hit.mean()), float(-np.log(own).mean()), float(error)]


def patches(adata, fitted, codes):
    """Return how many intervals hold the true share, those of `per_patch` and of independent cells.

    And the mean width of the former, and the root mean square error of shares and of means.
    """
    table = gq.external.scanpy.per_patch(adata, fitted, side=SIDE)
    squares = adata.obs["gq_patch"].astype(str).to_numpy()
    p, rows = fitted.label_distributions_, []
    for row in table.itertuples():
        own, k = squares == row.patch, list(fitted.classes_).index(row.type)
        truth, mean = (codes[own] == k).mean(), p[own, k].mean()
        # A share that all draws agree on is compared to within half a cell.
        slack = 0.5 / own.sum()
        half = 1.645 * np.sqrt((p[own, k] * (1 - p[own, k])).sum()) / own.sum()
        rows.append(
            [
                row.lower - slack <= truth <= row.upper + slack,
                abs(truth - mean) <= half + slack,
                row.upper - row.lower,
                (row.share - truth) ** 2,
                (mean - truth) ** 2,
            ]
        )
    *first, new, old = np.mean(rows, axis=0).tolist()
    return [*first, new**0.5, old**0.5]


def label(adata, method):
    if method == "places":
        graph = space_graph(adata, "spatial", "library_id")
        values = adata.obs["few"].astype(object)
        y = np.where(values == "Unknown", None, values)
        return gq.GraphClassifier(graph, missing_label=None).fit(None, y)
    key = None if method == "expression" else "auto"
    return gq.external.scanpy.label_cells(adata, "few", use_rep="X", spatial_key=key)


def draw(seed, methods):
    rows = {}
    for name, numbers in TISSUES.items():
        tissue = gq.datasets.simulated_tissue(N_CELLS, N_TYPES, N_SLIDES, **numbers, rng=seed)
        few, codes = tissue.known(N_EACH, seed), tissue.codes()
        free = few == "Unknown"
        rows[name] = {"knows expression": scores(tissue.given_expression[free], codes[free])}
        for method in methods:
            adata, begin = tissue.to_anndata(few), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = label(adata, method)
                seconds = time.process_time() - begin
                row = [*scores(fitted.label_distributions_[free], codes[free]), seconds]
                if method == "both":
                    row += patches(adata, fitted, codes)
            rows[name][method] = row
            print(seed, name, method, np.round(row, 3), flush=True)
    return rows


def summary():
    stored = json.loads(PATH.read_text())
    print("| tissue | answer from | accuracy | log score | calibration error | CPU s |")
    print("|---" * 6 + "|")
    for name in TISSUES:
        for method in ("knows expression", *METHODS):
            found = [rows[name][method] for rows in stored.values() if method in rows[name]]
            if not found:
                continue
            table = np.array(found)
            mean, error = table.mean(axis=0), table[:, 0].std(ddof=1) / len(table) ** 0.5
            seconds = f"{mean[3]:.1f}" if len(mean) > 3 else ""
            print(f"| {name} | {method} | {mean[0]:.3f} ± {error:.3f} | {mean[1]:.3f} "
                  f"| {mean[2]:.3f} | {seconds} |")  # fmt: skip
    print("\n| tissue | intervals hold | of independent cells | width | error | of means |")
    print("|---" * 6 + "|")
    for name in TISSUES:
        table = np.array([rows[name]["both"] for rows in stored.values()])[:, 4:]
        mean, error = table.mean(axis=0), table[:, 0].std(ddof=1) / len(table) ** 0.5
        print(f"| {name} | {mean[0]:.2f} ± {error:.2f} | {mean[1]:.2f} | {mean[2]:.3f} "
              f"| {mean[3]:.3f} | {mean[4]:.3f} |")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--only-both", action="store_true", help="for intervals of patches")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if not given.summary:
        for seed in range(given.first, given.first + given.draws):
            found = draw(seed, ("both",) if given.only_both else METHODS)
            stored = json.loads(PATH.read_text()) if PATH.exists() else {}
            PATH.parent.mkdir(exist_ok=True)
            PATH.write_text(json.dumps(stored | {str(seed): found}, indent=1))
    summary()
