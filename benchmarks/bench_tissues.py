"""What do places add to expression, when types of cells are inferred?

Questions: on simulated tissues, how right and how well calibrated is `label_cells` with expression
alone, places alone, and both? What do useless places or useless expression cost? Do intervals of
the composition of patches hold it?

How to run:

    python benchmarks/bench_tissues.py [--draws 5]
    python benchmarks/bench_tissues.py --summary

Data: `graphuq.datasets.simulated_tissue`, 2,000 cells of 5 types in 2 slides, 10 known a type.
"Knows expression" is the probability of the types given the expression of the cell alone, for
someone who knows how each type is expressed: the best answer without places.

Prints accuracy, log score, calibration error (ten bins of the largest probability) and CPU seconds,
and how many intervals of 90 % hold the share of a type in a square of a quarter of the side.
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
FLOOR = 1e-3


def scores(probability, codes):
    hit, top = probability.argmax(axis=1) == codes, probability.max(axis=1)
    own = np.maximum(probability[np.arange(len(codes)), codes], FLOOR)
    part = np.minimum((10 * top).astype(int), 9)
    error = sum(abs(np.sum((hit - top)[part == k])) for k in range(10)) / len(codes)
    return [float(hit.mean()), float(-np.log(own).mean()), float(error)]


def held(adata, fitted, codes):
    """Return how many intervals hold the true share, joint ones and those of independent cells."""
    table = gq.external.scanpy.per_patch(adata, fitted, side=SIDE)
    patches = adata.obs["gq_patch"].astype(str).to_numpy()
    p, joint, apart = fitted.label_distributions_, [], []
    for row in table.itertuples():
        own, k = patches == row.patch, list(fitted.classes_).index(row.type)
        truth = (codes[own] == k).mean()
        # A share that all draws agree on is compared to within half a cell.
        slack = 0.5 / own.sum()
        joint.append(row.lower - slack <= truth <= row.upper + slack)
        half = 1.645 * np.sqrt((p[own, k] * (1 - p[own, k])).sum()) / own.sum()
        apart.append(abs(truth - row.share) <= half + slack)
    return [float(np.mean(joint)), float(np.mean(apart))]


def label(adata, method):
    if method == "places":
        graph = space_graph(adata, "spatial", "library_id")
        values = adata.obs["few"].astype(object)
        y = np.where(values == "Unknown", None, values)
        return gq.GraphClassifier(graph, missing_label=None).fit(None, y)
    key = None if method == "expression" else "auto"
    return gq.external.scanpy.label_cells(adata, "few", use_rep="X", spatial_key=key)


def draw(seed):
    rows = {}
    for name, numbers in TISSUES.items():
        tissue = gq.datasets.simulated_tissue(N_CELLS, N_TYPES, N_SLIDES, **numbers, rng=seed)
        few, codes = tissue.known(N_EACH, seed), tissue.codes()
        free = few == "Unknown"
        rows[name] = {"knows expression": scores(tissue.given_expression[free], codes[free])}
        for method in ("expression", "places", "both"):
            adata, begin = tissue.to_anndata(few), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = label(adata, method)
                seconds = time.process_time() - begin
                row = [*scores(fitted.label_distributions_[free], codes[free]), seconds]
                if method == "both":
                    row += held(adata, fitted, codes)
            rows[name][method] = row
            print(seed, name, method, np.round(row, 3), flush=True)
    return rows


def summary():
    stored = json.loads(PATH.read_text())
    print("| tissue | answer from | accuracy | log score | calibration error | CPU s |")
    print("|---" * 6 + "|")
    for name in TISSUES:
        for method in ("knows expression", "expression", "places", "both"):
            table = np.array([rows[name][method] for rows in stored.values()])
            mean, error = table.mean(axis=0), table[:, 0].std(ddof=1) / len(table) ** 0.5
            seconds = f"{mean[3]:.1f}" if len(mean) > 3 else ""
            print(f"| {name} | {method} | {mean[0]:.3f} ± {error:.3f} | {mean[1]:.3f} "
                  f"| {mean[2]:.3f} | {seconds} |")  # fmt: skip
    print("\n| tissue | joint intervals hold | those of independent cells |\n" + "|---" * 3 + "|")
    for name in TISSUES:
        table = np.array([rows[name]["both"] for rows in stored.values()]).mean(axis=0)
        print(f"| {name} | {table[4]:.2f} | {table[5]:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if not given.summary:
        for seed in range(given.first, given.first + given.draws):
            found = draw(seed)
            stored = json.loads(PATH.read_text()) if PATH.exists() else {}
            PATH.parent.mkdir(exist_ok=True)
            PATH.write_text(json.dumps(stored | {str(seed): found}, indent=1))
    summary()
