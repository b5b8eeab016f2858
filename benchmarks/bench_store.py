"""Fits in a store beside fits in memory: time, memory, disk, accuracy and calibration.

Question: what do tables beyond memory cost, on threads and on a Dask cluster, and is the answer
that of the library in memory?

How to run:

    python benchmarks/bench_store.py [--rows 200000 1000000] [--modes threads workers memory]

The data are the mixture of `mixture.py` with ten classes and 50 features, made and written as
Parquet by blocks, and 20 labels per class. The graph has 15 neighbours, the spectrum 50 eigenpairs,
and inference is expectation propagation, at a tolerance of 1e-2 of the eigenpairs in every mode.
Each fit has a process of its own, which `--memory` limits; "workers" are two processes of Dask, of
which "killed-neighbours" and "killed-eigenpairs" kill one in that stage.

Prints: for each fit, wall and processor seconds of each stage; the largest memory of all processes
that no file backs; the size of the store; recall, accuracy and calibration error, beside those of
Bayes' rule with known clusters; and how far probabilities are from those in memory.

Results go to ``benchmarks/results/store.json``.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy.special import logsumexp

import graphuq as gq
from graphuq.engine.cluster import dask_client
from graphuq.engine.resources import used
from graphuq.engine.store import Stage
from mixture import NOISE, RANK, SPREAD
from peers import RESULTS

WIDTH, CLASSES, CLUSTERS, PAIRS, TOLERANCE = 50, 10, 4, 50, 1e-2
BLOCK, FILE_ROWS = 100_000, 500_000
BINS = 20  # of the calibration error


def block_of_mixture(number, n_rows, seed=0):
    """Return rows, classes, and log probabilities of classes by Bayes' rule with known clusters."""
    rng = np.random.default_rng(seed)
    centres = SPREAD * rng.normal(size=(CLASSES * CLUSTERS, RANK)).astype(np.float32)
    into = np.linalg.qr(rng.normal(size=(WIDTH, RANK)))[0].T.astype(np.float32)
    rng = np.random.default_rng([seed, number])
    cluster = rng.integers(len(centres), size=n_rows)
    inner = centres[cluster] + rng.standard_normal((n_rows, RANK), dtype=np.float32)
    features = inner @ into + NOISE * rng.standard_normal((n_rows, WIDTH), dtype=np.float32)
    seen = features @ into.T
    square = ((seen[:, None, :] - centres) ** 2).sum(axis=2) / (1 + NOISE**2)
    logs = logsumexp(-square.reshape(n_rows, CLUSTERS, CLASSES) / 2, axis=1)
    return features, cluster % CLASSES, logs - logsumexp(logs, axis=1, keepdims=True)


def write_data(folder, n_rows):
    """Write the rows as Parquet files, and return labels and the scores of Bayes' rule."""
    (folder / "rows").mkdir(parents=True)
    found, scores, blocks = [], Scores(), []
    for number, begin in enumerate(range(0, n_rows, BLOCK)):
        size = min(BLOCK, n_rows - begin)
        features, classes, logs = block_of_mixture(number, size)
        np.save(folder / f"classes-{number:05d}.npy", classes.astype(np.int8))
        scores.add(np.exp(logs), classes)
        found += [(begin + row, int(classes[row])) for row in range(min(size, 2000))]
        columns = {f"x{k}": features[:, k] for k in range(WIDTH)}
        blocks.append(pa.table(columns))
        if sum(map(len, blocks)) >= FILE_ROWS or begin + size == n_rows:
            path = folder / "rows" / f"{number:05d}.parquet"
            parquet.write_table(pa.concat_tables(blocks), path, row_group_size=BLOCK)
            blocks = []
    rng, labels = np.random.default_rng(1), {}
    rows, codes = np.array(found).T
    for k in range(CLASSES):
        for row in rng.choice(np.flatnonzero(codes == k), 20, replace=False):
            labels[int(rows[row])] = k
    return labels, scores.summary()


class Scores:
    """Accuracy, log score and calibration error of blocks of probabilities."""

    def __init__(self):
        self.right = self.log = 0.0
        self.bins = np.zeros((3, BINS))

    def add(self, shares, classes):
        top, at = shares.max(axis=1), shares.argmax(axis=1)
        right = at == classes
        self.right += right.sum()
        self.log -= np.log(np.maximum(shares[np.arange(len(at)), classes], 1e-12)).sum()
        place = np.minimum((top * BINS).astype(int), BINS - 1)
        for k, weights in enumerate((None, top, right)):
            self.bins[k] += np.bincount(place, weights, BINS)

    def summary(self):
        n = self.bins[0].sum()
        gap = np.abs(self.bins[1] - self.bins[2]).sum() / n
        return {"accuracy": self.right / n, "calibration error": gap, "log score": self.log / n}


class Watch:
    """Wall and processor seconds of stages, and the largest memory without files, sampled."""

    def __init__(self, client=None):
        self.client, self.stages, self.peak = client, {}, 0
        self.pids = [os.getpid(), *(client.run(os.getpid).values() if client else ())]
        self.last = time.perf_counter(), self.processor()
        threading.Thread(target=self._sample, daemon=True).start()

    def processor(self):
        here = time.process_time()
        return here + sum(self.client.run(time.process_time).values() if self.client else ())

    def stage(self, name):
        now = time.perf_counter(), self.processor()
        self.stages[name] = [b - a for a, b in zip(self.last, now, strict=True)]
        self.last = now

    def _sample(self):
        while True:
            total = 0
            for pid in self.pids:
                with suppress(FileNotFoundError, ProcessLookupError):  # a process that has ended
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                    total += sum(int(s.split()[1]) for s in lines if s.startswith("RssAnon"))
            self.peak = max(self.peak, total / 1e6)
            time.sleep(0.1)


def fit_in_store(folder, labels, n_workers, memory, killed_in=None):
    """Return figures of a fit in a store, and its files."""
    store = folder / "store"
    with dask_client(n_workers) if n_workers else nullcontext() as client:
        watch, disk, finish = Watch(client), [], Stage.finish

        def timed(stage, record, temporary=()):
            finish(stage, record, temporary)
            watch.stage(stage.name.split("-")[0])
            disk.append(used(store))

        def kill(phase, *_):
            nonlocal killed_in
            if phase == killed_in:
                killed_in = None
                os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

        Stage.finish = timed
        settings = gq.Store(store, tolerance=TOLERANCE, memory=memory)
        classifier = gq.GraphClassifier(
            store=settings, client=client, progress=kill, n_eigenpairs=PAIRS
        )
        began = time.perf_counter()
        files = classifier.fit(folder / "rows", labels).to_parquet(folder / "out")
        watch.stage("files")
        found = {"seconds": time.perf_counter() - began, "estimate": str(classifier.estimate_)}
    stages = classifier._stored.stages.first
    pairs, graph = stages.pairs.record, stages.graph.record
    found |= {
        "recall": classifier.recall_,
        "lists searched": stages.neighbors.record["n_searched"],
        "steps": pairs["n_steps"],
        "passes": pairs["n_passes"],
        "residual": max(pairs["residuals"]) / pairs["eigenvalues"][-1],
        "halo": graph["halo"],
        "store GB": max(disk) / 1e9,
    }
    tables = (parquet.read_table(path) for path in files if path.suffix == ".parquet")
    shares = (
        np.stack([t[f"probability_{k}"].to_numpy() for k in range(CLASSES)], axis=1) for t in tables
    )
    return found, watch, shares


def fit_in_memory(folder, labels):
    """Return figures of a fit in memory."""
    watch, began = Watch(), time.perf_counter()
    features = np.concatenate(
        [
            np.stack([c.to_numpy() for c in parquet.read_table(path).columns], axis=1)
            for path in sorted((folder / "rows").glob("*.parquet"))
        ]
    )
    watch.stage("rows")
    graph = gq.graphs.knn_graph(features, 15, gq.graphs.SelfTuning(4.0))
    watch.stage("graph")
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=PAIRS, tolerance=TOLERANCE)
    watch.stage("pairs")
    rows, codes = np.array(list(labels)), np.array(list(labels.values()))
    likelihood = gq.likelihoods.Probit(n_classes=CLASSES)
    prior = gq.priors.Matern(tau=0.25, alpha=4.0)
    posterior = gq.Posterior(spectrum, prior, likelihood, rows, codes)
    posterior = gq.maximize_evidence(
        posterior, ["tau", "alpha", "include_constant", "noise_std"]
    ).posterior
    watch.stage("evidence")
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    watch.stage("probabilities")
    found = {"seconds": time.perf_counter() - began, "recall": graph.settings["recall"]}
    means = gq.results.label_mean(result)
    return found, watch, (means[b : b + BLOCK] for b in range(0, len(means), BLOCK))


def one_fit(mode, folder, memory):
    """Return the figures of one mode; keep its probabilities, and compare those of memory."""
    labels = {int(k): v for k, v in json.loads((folder / "labels.json").read_text()).items()}
    if mode == "memory":
        found, watch, shares = fit_in_memory(folder, labels)
    else:
        n_workers = None if mode == "threads" else 2
        killed_in = mode.removeprefix("killed-") if mode.startswith("killed-") else None
        found, watch, shares = fit_in_store(folder, labels, n_workers, memory, killed_in)
    found["stages"], found["GB without files"] = watch.stages, watch.peak
    scores, apart, largest, flips, n = Scores(), 0.0, 0.0, 0, 0
    for number, block in enumerate(shares):
        classes = np.load(folder / f"classes-{number:05d}.npy").astype(int)
        scores.add(block, classes)
        kept = folder / f"shares-{number:05d}.npy"
        if mode == "memory":
            np.save(kept, block.astype(np.float32))
        elif kept.exists():
            other = np.load(kept)
            move = np.abs(other - block).max(axis=1)
            apart, largest = apart + move.sum(), max(largest, float(move.max()))
            flips, n = flips + (other.argmax(axis=1) != block.argmax(axis=1)).sum(), n + len(move)
    if n:
        found |= {"mean move": float(apart / n), "largest move": largest, "other class": flips / n}
    return found | scores.summary()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[200_000])
    parser.add_argument(
        "--modes", nargs="*", default=["memory", "threads", "workers"], help="in this order"
    )
    parser.add_argument("--memory", type=float, help="GB that a fit by blocks may use")
    parser.add_argument("--folder", type=Path, help="for data and store; by default temporary")
    parser.add_argument("--alone", nargs=2, help="run one mode in this process and print JSON")
    parser.add_argument("--output", type=Path, default=RESULTS / "store.json")
    options = parser.parse_args()
    memory = None if options.memory is None else int(options.memory * 1e9)
    if options.alone:
        print(json.dumps(one_fit(options.alone[0], Path(options.alone[1]), memory), default=float))
        return
    found = json.loads(options.output.read_text()) if options.output.exists() else {}
    for n_rows in options.rows:
        folder = Path(tempfile.mkdtemp(dir=options.folder))
        try:
            labels, bayes = write_data(folder, n_rows)
            (folder / "labels.json").write_text(json.dumps(labels))
            rows = found.setdefault(str(n_rows), {})
            rows["bayes"] = bayes
            for mode in options.modes:
                load = os.getloadavg()[0]
                command = [sys.executable, __file__, "--alone", mode, str(folder)]
                if options.memory is not None:
                    command += ["--memory", str(options.memory)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                rows[mode] = json.loads(done.stdout.splitlines()[-1]) | {"load before": load}
                print(n_rows, mode, json.dumps(rows[mode], indent=1), flush=True)
                shutil.rmtree(folder / "store", ignore_errors=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        options.output.parent.mkdir(exist_ok=True)
        options.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
