"""Runs that are killed, or fill their disk: nothing partial, the same result after, no litter.

Slow: each case starts a command twice. ``GRAPHUQ_KILLS`` sets the number of kills,
``GRAPHUQ_LONG_KILLS`` that of kills of runs of about a minute, and ``GRAPHUQ_DISKS`` that of small
disks, which only an administrator may mount.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.utils.output_folder import COMMITTED, LOCK
from robustness import hostile
from robustness.fork_server import ForkServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="POSIX signals"),
]
N_KILLS = int(os.environ.get("GRAPHUQ_KILLS", "36"))
N_LONG_KILLS = int(os.environ.get("GRAPHUQ_LONG_KILLS", "2"))
N_DISKS = int(os.environ.get("GRAPHUQ_DISKS", "24"))
SIGNALS = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"]
FITTED = {"predictions.csv", "posterior.nc", "report.html"}
# From which a run resumes; chains of each component of an average have a file of their own.
CHECKPOINT = re.compile(r"\.checkpoint(\.\d+)?\.npz|\.search\.json")
RUN = "import sys\nfrom graphuq.cli import main\nmain(sys.argv[1:])\n"


class Command:
    """A command, and what it writes to the folder ``out``.

    Parameters
    ----------
    words : str
        Arguments, in which ``{folder}`` stands for a folder of inputs.
    files : set of str
        Names of the files that it writes.
    telling : str
        Name of the file that must be the same after a kill.
    resumes : bool
        Whether it has the option ``--resume``.
    """

    def __init__(self, words, files, telling, resumes=False):
        self.words, self.files, self.telling, self.resumes = words, files, telling, resumes

    def arguments(self, folder, resume=False):
        words = [word.format(folder=folder) for word in self.words.split()]
        return [*words, *(["--resume"] if resume and self.resumes else [])]


CLASSIFY = "classify {folder}/x.csv --label-column label -o {folder}/out --quiet "


def classify(options, *more):
    return Command(CLASSIFY + options, FITTED | set(more), "predictions.csv", resumes=True)


COMMANDS = {
    "pcn": classify("--inference pcn --n-warmup 400 --n-samples 200 --n-chains 2 --stop none"),
    "exact": classify("--inference exact-hamiltonian --n-samples 100 --stop none"),
    "default": classify(""),
    "search": classify("--search n_neighbors=5:20 --inference laplace", "search.csv"),
    "cells": Command(
        CLASSIFY.replace("x.csv", "x.h5ad") + "--use-rep X_own --inference laplace",
        FITTED | {"x.h5ad"},
        "predictions.csv",
        resumes=True,
    ),
    "store": Command(
        CLASSIFY.replace("x.csv", "rows.parquet")
        + "--store {folder}/store --n-eigenpairs 12 --n-neighbors 5",
        {"rows-00000.parquet", "settings.json"},
        "rows-00000.parquet",
    ),
    "regress": Command(
        "regress {folder}/x.csv --target-column c1 --drop label -o {folder}/out --quiet",
        {"predictions.csv", "posterior.nc", "report.html"},
        "predictions.csv",
    ),
    "predict": Command(
        "predict {folder}/good.nc {folder}/x.csv --drop label -o {folder}/out/new.csv",
        {"new.csv"},
        "new.csv",
    ),
    "map": Command(
        "map {folder}/scene.tif --labels {folder}/places.csv -o {folder}/out --quiet",
        {
            "classes.tif",
            "probabilities.tif",
            "entropy.tif",
            "rank.tif",
            "next.csv",
            "report.html",
            "settings.json",
        },
        "probabilities.tif",
    ),
    "datasets": Command(
        "datasets two-moons --csv {folder}/out/moons.csv", {"moons.csv"}, "moons.csv"
    ),
}
if importlib.util.find_spec("rasterio") is None:
    del COMMANDS["map"]
LONG = {
    "pcn": CLASSIFY + "--inference pcn --n-warmup 5000 --n-samples 5000 --stop none",
    "store": CLASSIFY.replace("x.csv", "many.parquet") + "--store {folder}/store",
}
N_MANY = 60_000  # rows of a long run out of core


def write_inputs(folder):
    hostile.write_csv(folder / "x.csv")
    moons = gq.datasets.two_moons(600, n_features=3, rng=0)
    table = pd.DataFrame(moons.features, columns=["a", "b", "c"])
    labels = np.where(np.arange(600) < 20, moons.classes.astype(str), "")
    table.assign(label=labels).to_parquet(folder / "rows.parquet")
    classifier = gq.GraphClassifier(model="largest-evidence", inference="laplace", missing_label="")
    classifier.fit(hostile.MOONS.features, hostile.LABELS).save(folder / "good.nc")
    return folder


def write_cells(path):
    anndata = pytest.importorskip("anndata", reason="pip install graphuq[anndata]")
    types = np.where(hostile.LABELS == "", "Unknown", hostile.LABELS).astype(object)
    names = pd.Index([f"cell{k}" for k in range(hostile.N)], dtype=object)
    obs = pd.DataFrame({"label": pd.Categorical(types)}, index=names)
    var = pd.DataFrame(index=pd.Index(["gene"], dtype=object))
    X = np.ones((hostile.N, 1), dtype=np.float32)
    anndata.AnnData(X, obs, var, obsm={"X_own": hostile.MOONS.features}).write_h5ad(path)


def write_scene(folder):
    """Write a scene of two fields, and four labelled places."""
    rasterio = pytest.importorskip("rasterio", reason="pip install graphuq[raster]")
    values = np.random.default_rng(0).normal(size=(3, 40, 40)).astype(np.float32)
    values[:, :, 20:] += 3.0
    where = rasterio.Affine(10.0, 0.0, 5e5, 0.0, -10.0, 5e6)
    with rasterio.open(folder / "scene.tif", "w", driver="GTiff", count=3, height=40, width=40,
                       dtype="float32", crs="EPSG:32632", transform=where) as file:  # fmt: skip
        file.write(values)
    places = {"x": [5e5 + 25, 5e5 + 35, 5e5 + 325, 5e5 + 355], "y": 5e6 - 75}
    table = pd.DataFrame(places | {"class": ["wheat", "wheat", "beans", "beans"]})
    table.to_csv(folder / "places.csv", index=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ForkServer(tmp_path_factory.mktemp("server") / "errors.txt") as started:
        yield started


@pytest.fixture(scope="module")
def whole(tmp_path_factory, server):
    """Return a function that gives what a command writes undisturbed, its seconds and its kB."""
    folder = write_inputs(tmp_path_factory.mktemp("inputs"))
    found = {}

    def result(name):
        if name not in found:
            if name == "cells":
                write_cells(folder / "x.h5ad")
            if name == "map":
                write_scene(folder)
            finish(server, name, folder)  # compiles
            clear(folder)
            began = time.monotonic()
            telling = finish(server, name, folder)
            seconds = time.monotonic() - began
            written = [p for part in ("out", "store") for p in (folder / part).rglob("*")]
            found[name] = telling, seconds, sum(path.stat().st_size for path in written) // 1000
            clear(folder)
        return folder, *found[name]

    return result


def clear(folder):
    for path in (folder / "out", folder / "store"):
        shutil.rmtree(path, ignore_errors=True)


def finish(server, name, folder, resume=False):
    arguments = COMMANDS[name].arguments(folder, resume)
    server.start(arguments)
    assert server.wait() == 0, (arguments, server.errors.read_text().splitlines()[-1])
    return (folder / "out" / COMMANDS[name].telling).read_bytes()


def wait_for_writing(out, seconds):
    """Wait until a process writes its results, at most for some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if out.exists() and any(".writing-" in path.name for path in out.iterdir()):
            return
        time.sleep(0.002)


def check_nothing_partial(out, command, older):
    """Older files or newer ones are visible, and not some of each, unless all are committed."""
    files = {path.name for path in out.iterdir()} if out.exists() else set()
    visible = {name for name in files if not name.startswith(".")}
    if (out / COMMITTED).is_dir():
        return files - visible
    assert visible in (set(), command.files)
    ages = {(out / name).read_bytes() == b"older" for name in visible}
    assert len(ages) == (1 if visible else 0)
    assert visible or not older
    return files - visible


def litter(folder):
    """Return the hidden files in a folder and below."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))


def kill(server, name, rng, whole):
    """Kill a command once, and run it again; return what is left of the first run."""
    folder, expected, seconds, _ = whole(name)
    clear(folder)
    command, out = COMMANDS[name], folder / "out"
    sent, older = getattr(signal, rng.choice(SIGNALS)), rng.uniform() < 0.5
    if older:
        out.mkdir()
        for file in command.files:
            (out / file).write_text("older")
    process = server.start(command.arguments(folder))
    if rng.uniform() < 0.5:
        time.sleep(rng.uniform(0.0, 1.1) * seconds)
    else:
        wait_for_writing(out, 2 * seconds)
        time.sleep(rng.uniform(0.0, 0.3) * seconds)
    os.kill(process, sent)
    assert server.wait() in (0, -sent, 128 + sent)
    hidden = check_nothing_partial(out, command, older)
    if sent != signal.SIGKILL:  # a process that is told so clears up itself
        assert all(map(CHECKPOINT.fullmatch, hidden))
    assert finish(server, name, folder, resume=rng.uniform() < 0.7) == expected
    assert {path.name for path in out.iterdir()} == command.files
    assert litter(folder) == []


@pytest.mark.parametrize("number", range(N_KILLS))
def test_kills(number, server, whole):
    rng = np.random.default_rng([39, number])
    names = list(COMMANDS)
    kill(server, names[number % len(names)], rng, whole)


@pytest.fixture
def disk():
    """Return a function that mounts a file system of some kB at a folder, or makes it larger."""
    mounted = []

    def mount(folder, kilobytes, *more):
        folder.mkdir(exist_ok=True)
        options = ",".join([f"size={kilobytes}k", *more])
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            subprocess.run(words, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("only an administrator may mount a file system")
        mounted.append(folder)

    yield mount
    for folder in dict.fromkeys(mounted):
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("number", range(N_DISKS))
def test_a_disk_that_is_full(number, server, whole, disk):
    """A disk with room for a part of the results, or for all of them but not twice."""
    rng = np.random.default_rng([41, number])
    name = list(COMMANDS)[number % len(COMMANDS)]
    folder, expected, _, size = whole(name)
    clear(folder)
    command, out = COMMANDS[name], folder / "out"
    small = folder / "store" if name == "store" and rng.uniform() < 0.5 else out
    disk(small, int(rng.uniform(0.02, 2.2) * size) + 8)
    older = small == out and rng.uniform() < 0.3
    if older:
        for file in command.files:
            (out / file).write_text("older")
    before = server.errors.stat().st_size
    server.start(command.arguments(folder))
    code = server.wait()
    if code:
        (line,) = server.errors.read_text()[before:].strip().splitlines()[-1:]
        assert (code, line[:15]) == (2, "graphuq: error:")
        assert "No space left" in line or "GB of disk are needed" in line
        assert len(line) <= 301
        hidden = check_nothing_partial(out, command, older)
        assert all(map(CHECKPOINT.fullmatch, hidden))
    disk(small, 64_000, "remount")
    assert finish(server, name, folder, resume=rng.uniform() < 0.7) == expected
    assert {path.name for path in out.iterdir()} == command.files
    assert litter(folder) == []


def process_of(name, folder, resume=False):
    """Return the words that start a long run in a process of its own."""
    words = [word.format(folder=folder) for word in LONG[name].split()]
    more = ["--resume"] if resume and COMMANDS[name].resumes else []
    return [sys.executable, "-c", RUN, *words, *more]


def finish_process(name, folder, resume=False):
    subprocess.run(process_of(name, folder, resume), check=True, capture_output=True)
    return (folder / "out" / COMMANDS[name].telling).read_bytes()


def write_long_inputs(name, folder):
    if name == "pcn":
        hostile.write_csv(folder / "x.csv")
        return
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 8, N_MANY)
    table = pd.DataFrame(rng.normal(size=(N_MANY, 8)) + 4 * np.eye(8)[centres])
    labels = np.where(np.arange(N_MANY) < 80, centres.astype(str), "")
    table.rename(columns=str).assign(label=labels).to_parquet(folder / "many.parquet")


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """Return a function that gives the telling file of an undisturbed long run, and its seconds."""
    found = {}

    def result(name):
        if name not in found:
            folder = tmp_path_factory.mktemp("long")
            write_long_inputs(name, folder)
            began = time.monotonic()
            found[name] = finish_process(name, folder), time.monotonic() - began
        return found[name]

    return result


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("number", range(N_LONG_KILLS))
def test_kills_of_long_runs(number, name, long_run, tmp_path):
    """Checkpoints are 10 seconds apart; a run is killed up to twice before it may end."""
    expected, seconds = long_run(name)
    rng = np.random.default_rng([40, number])
    write_long_inputs(name, tmp_path)
    command, out = COMMANDS[name], tmp_path / "out"
    for resume in (False, True):
        sent = getattr(signal, SIGNALS[number % 4])
        words = process_of(name, tmp_path, resume)
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as run:
            time.sleep(rng.uniform(0.1, 0.7) * seconds)
            run.send_signal(sent)
            assert run.wait(120) in (0, -sent, 128 + sent)
        check_nothing_partial(out, command, older=False)
    assert finish_process(name, tmp_path, resume=True) == expected
    assert {path.name for path in out.iterdir()} == command.files


def test_two_runs_in_one_folder(tmp_path):
    """The second is refused, and says which process is at work; the first is not disturbed."""
    hostile.write_csv(tmp_path / "x.csv")
    with subprocess.Popen(process_of("pcn", tmp_path), stderr=subprocess.DEVNULL) as first:
        while not (tmp_path / "out" / LOCK).exists():
            time.sleep(0.05)
        time.sleep(0.2)
        second = subprocess.run(process_of("pcn", tmp_path), capture_output=True, text=True)
        assert second.returncode == 2
        assert f"in use by process {first.pid} on" in second.stderr
        assert first.wait(300) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == FITTED
