"""How right are maps of a scene, and how long do they take?

Questions: with 10 labelled pixels a class on Indian Pines, how right and how well calibrated is the
default at random pixels, and at separate places? How much time and memory does a scene of 4,000 ×
4,000 pixels take from file to maps?

How to run:

    python benchmarks/bench_scenes.py draws [--draws 10]
    python benchmarks/bench_scenes.py sampled [--draws 3]
    python benchmarks/bench_scenes.py parts [--draws 3]
    python benchmarks/bench_scenes.py far [--draws 2]
    python benchmarks/bench_scenes.py size [--side 4000]
    python benchmarks/bench_scenes.py --summary

Data: Indian Pines (Baumgardner, Biehl & Landgrebe 2015), which the package tensorly brings; "size"
is simulated. "draws" are random labels, tested at all other labelled pixels, and labels outside of
a fifth of the squares of 29 × 29 pixels, tested in these. "sampled" uses 5,000 and 10,000 of the
21,025 pixels as nodes; "parts" are the three graphs, each by itself.
"far" prints the check of places far from labels beside the truth, and stores nothing.

Prints accuracy, mean accuracy of a class, log score, calibration error (ten bins of the largest
probability) and seconds. Results go to ``benchmarks/results/scenes.json``.
"""

import argparse
import json
import os
import resource
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.ndimage import gaussian_filter, uniform_filter
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import graphuq as gq
from graphuq.classifier.separate_places import check_places, leave_places_out
from graphuq.datasets.packaged import CROPS
from graphuq.errors import UnlabelledScoreWarning
from graphuq.external.raster.fit import mean_over_nodes
from graphuq.graphs.pixels import PixelGraph, Pixels
from peers import RESULTS

PATH = RESULTS / "scenes.json"
N_EACH, BLOCK, N_FOLDS = 10, 29, 5
FLOOR = 1e-3


def indian_pines():
    """Return bands, and the class of each pixel, −1 without one."""
    scene = gq.datasets.load_indian_pines()
    code = {"": -1} | {name: k for k, name in enumerate(CROPS)}
    return scene.bands, np.array([code[name] for name in scene.classes])


def labels_of(truth, allowed, seed):
    """Return the classes of ten random pixels of each class, −1 elsewhere."""
    rng, y = np.random.default_rng(seed), np.full(len(truth), -1)
    for k in range(truth.max() + 1):
        own = rng.permutation(np.flatnonzero((truth == k) & allowed))[:N_EACH]
        y[own] = k
    return y


def settings(truth, seed):
    """Yield a name, labels, and the pixels that are tested, for both ways to draw."""
    y = labels_of(truth, np.ones(len(truth), bool), seed)
    yield "random pixels", y, (truth >= 0) & (y < 0)
    side = int(len(truth) ** 0.5)
    places = np.argwhere(np.ones((side, side)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlabelledScoreWarning)
        folds = gq.PlaceKFold(places, BLOCK, N_FOLDS, random_state=seed)
        _, test = next(folds.split(places, truth))
    held_out = np.isin(np.arange(len(truth)), test)
    y = labels_of(truth, ~held_out, seed)
    yield "separate places", y, held_out & np.isin(truth, np.unique(y[y >= 0]))


def scores(probability, truth):
    hit, top = probability.argmax(axis=1) == truth, probability.max(axis=1)
    own = np.maximum(probability[np.arange(len(truth)), truth], FLOOR)
    part = np.minimum((10 * top).astype(int), 9)
    error = sum(abs(np.sum((hit - top)[part == k])) for k in range(10)) / len(truth)
    each = np.mean([hit[truth == k].mean() for k in np.unique(truth)])
    return [float(x) for x in (hit.mean(), each, -np.log(own).mean(), error)]


def wide(probability, classes, n_classes):
    found = np.zeros((len(probability), n_classes))
    found[:, classes] = probability
    return found


def mapped(values, y, n_nodes=None, part=None, seed=0):
    """Return probabilities of all pixels, from a graph of some or all of them."""
    mask, n = np.ones(values.shape[1:], bool), len(y)
    chosen = np.ones(n, bool)
    if n_nodes is not None:
        others = np.random.default_rng(seed).permutation(np.flatnonzero(y < 0))
        chosen[others[n_nodes - int((y >= 0).sum()) :]] = False
    pixel_graph = PixelGraph(Pixels.of(values, chosen.reshape(mask.shape), mask))
    graph = pixel_graph.graph
    if part is not None:
        import dataclasses

        graph = graph.others.get(part) or dataclasses.replace(graph, others={})
    fitted = gq.GraphClassifier(graph).fit(None, y[chosen])
    found = np.empty((n, len(fitted.classes_)))
    found[chosen] = fitted.label_distributions_
    if not chosen.all():
        others = Pixels.of(values, ~chosen.reshape(mask.shape), mask)
        weights = pixel_graph.connect(others)
        found[~chosen] = mean_over_nodes(weights, fitted.label_distributions_)
    evidence = getattr(fitted.result_, "log_evidence", float("nan"))
    return wide(found, fitted.classes_, int(y.max()) + 1), float(evidence)


def support_vectors(values, y):
    """Return scores by a support vector machine on means of 5 × 5 pixels, without probabilities."""
    means = np.stack([uniform_filter(band, 5) for band in values]).reshape(len(values), -1).T
    known = y >= 0
    model = make_pipeline(StandardScaler(), SVC(C=100)).fit(means[known], y[known])
    return np.eye(int(y.max()) + 1)[model.predict(means)], float("nan")


def measure(group, name, seed, method, values, truth, y, test):
    begin, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probability, evidence = method(values, y)
    seconds = [time.perf_counter() - begin, time.process_time() - cpu]
    n_more = max(0, int(truth.max()) + 1 - probability.shape[1])
    probability = np.pad(probability, ((0, 0), (0, n_more)))
    keep(group, name, seed, [*scores(probability[test], truth[test]), *seconds, evidence])


def keep(group, name, seed, row):
    stored = json.loads(PATH.read_text()) if PATH.exists() else {}
    stored.setdefault(group, {}).setdefault(name, {})[str(seed)] = row
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(stored, indent=1))
    print(group, name, seed, [round(x, 3) for x in row], flush=True)


METHODS = {
    "draws": {"graph of places and spectra": mapped, "support vectors": support_vectors},
    "sampled": {f"{n:,} nodes": lambda v, y, n=n: mapped(v, y, n) for n in (5_000, 10_000)},
    "parts": {
        name: lambda v, y, name=name: mapped(v, y, part=name)
        for name in ("places and spectra", "places", "spectra")
    },
}


def draws(which, n_draws, first):
    values, truth = indian_pines()
    for seed in range(first, first + n_draws):
        for group, y, test in settings(truth, seed):
            for name, method in METHODS[which].items():
                measure(group, name, seed, method, values, truth, y, test)


def simulated(path, side, n_bands=10, n_classes=6, seed=0):
    """Write a scene of smooth fields with noisy spectra; return their classes, 8 pixels each."""
    import rasterio
    from rasterio.transform import from_origin

    rng = np.random.default_rng(seed)
    coarse = gaussian_filter(rng.normal(size=(n_classes, side // 8 + 1, side // 8 + 1)), (0, 4, 4))
    field = coarse.argmax(axis=0).astype(np.uint8)
    spectra = rng.uniform(0.1, 0.5, (n_classes, n_bands))
    profile = {"driver": "GTiff", "height": side, "width": side, "count": n_bands, "nodata": 0,
               "dtype": "uint16", "crs": "EPSG:32632", "transform": from_origin(5e5, 5e6, 10, 10),
               "tiled": True, "blockxsize": 256, "blockysize": 256}  # fmt: skip
    with rasterio.open(path, "w", **profile) as file:
        for top in range(0, side, 256):
            rows = np.arange(top, min(side, top + 256))
            codes = field[rows // 8][:, np.arange(side) // 8]
            band = spectra[codes] + rng.normal(0, 0.08, (*codes.shape, n_bands))
            window = ((int(rows[0]), int(rows[-1]) + 1), (0, side))
            numbers = np.clip(1e4 * np.moveaxis(band, -1, 0), 1, 65535).astype(np.uint16)
            file.write(numbers, window=window)
    return field


def size(side):
    """Map a simulated scene from file to files."""
    raster = gq.external.raster
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.tif"
        field = simulated(path, side)
        rng = np.random.default_rng(1)
        places = rng.integers(0, side, (3000, 2))
        codes = field[places[:, 0] // 8, places[:, 1] // 8]
        first = np.concatenate([np.flatnonzero(codes == k)[:N_EACH] for k in np.unique(codes)])
        lines = [f"{places[i, 1]},{places[i, 0]},crop {codes[i]}" for i in first]
        csv = Path(folder) / "labels.csv"
        csv.write_text("\n".join(["column,row,class", *lines]))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        begin, cpu = time.perf_counter(), time.process_time()
        scene = raster.read_scene(path)
        fitted = raster.fit_scene(scene, raster.read_labels(csv, scene))
        middle = time.perf_counter(), time.process_time()
        raster.write_maps(fitted, Path(folder) / "out")
        end = time.perf_counter(), time.process_time()
        import rasterio

        right = 0
        with rasterio.open(Path(folder) / "out" / "classes.tif") as file:
            names = file.tags(1)
            of_code = np.array([-1] + [int(names[str(k)].split()[1]) for k in range(1, 7)])
            for top in range(0, side, 256):
                rows = np.arange(top, min(side, top + 256))
                found = file.read(1, window=((int(rows[0]), int(rows[-1]) + 1), (0, side)))
                right += int((of_code[found] == field[rows // 8][:, np.arange(side) // 8]).sum())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        files = sum(f.stat().st_size for f in (Path(folder) / "out").iterdir()) / 1e9
        row = {"fit s": middle[0] - begin, "fit CPU s": middle[1] - cpu,
               "maps s": end[0] - middle[0], "maps CPU s": end[1] - middle[1],
               "GB before": before, "GB peak": peak, "GB of files": files,
               "accuracy": right / side**2}  # fmt: skip
    stored = json.loads(PATH.read_text()) if PATH.exists() else {}
    stored.setdefault("size", {})[str(side)] = row
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(stored, indent=1))
    print(side, {k: round(v, 3) for k, v in row.items()})


def far(n_draws, first):
    """Print what labels of squares that are left out say, beside the test pixels."""
    values, truth = indian_pines()
    graph = gq.graphs.pixel_graph(values)
    places = np.argwhere(np.ones(values.shape[1:]))
    for seed in range(first, first + n_draws):
        for group, y, test in settings(truth, seed):
            fitted = gq.GraphClassifier(graph).fit(None, y)
            p = wide(fitted.label_distributions_, fitted.classes_, int(truth.max()) + 1)[test]
            begin = time.process_time()
            found = leave_places_out(fitted, places)
            check = check_places(found, "pixels")
            print(seed, group, fitted.result_.trust.level, check.level,
                  f"test {(p.argmax(axis=1) == truth[test]).mean():.3f}",
                  f"probability {p.max(axis=1).mean():.3f}; {check.sentence}",
                  f"log score {found.log_score:.2f} ({found.one_by_one[1]:.2f} one by one),",
                  f"{time.process_time() - begin:.0f} CPU s", flush=True)  # fmt: skip


def summary():
    stored = json.loads(PATH.read_text())
    print("| labels | method | draws | accuracy | mean of classes | log score | calibration error "
          "| s | CPU s | log evidence |\n" + "|---" * 10 + "|")  # fmt: skip
    for group, methods in stored.items():
        for name, rows in methods.items() if group != "size" else ():
            table = np.array(list(rows.values()))
            mean, error = table.mean(axis=0), table[:, 0].std(ddof=1) / len(table) ** 0.5
            print(f"| {group} | {name} | {len(table)} | {mean[0]:.3f} ± {error:.3f} "
                  f"| {mean[1]:.3f} | {mean[2]:.3f} | {mean[3]:.3f} "
                  f"| {mean[4]:.0f} | {mean[5]:.0f} | {mean[6]:.1f} |")  # fmt: skip
    for side, row in stored.get("size", {}).items():
        print(side, {k: round(v, 3) for k, v in row.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=[*METHODS, "far", "size"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--side", type=int, default=4000)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary or given.part is None:
        summary()
    elif given.part == "size":
        size(given.side)
    elif given.part == "far":
        far(given.draws, given.first)
    else:
        draws(given.part, given.draws, given.first)
