"""Full disks, threads and workers, and many fits in one process."""

import multiprocessing
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphuq as gq
from robustness import hostile

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits and forks of POSIX")
RUN = "import sys\nfrom graphuq.cli import main\nmain(sys.argv[1:])\n"
N_FITS = int(os.environ.get("GRAPHUQ_FITS", "60"))
MAX_GROWTH_IN_USE = 2e6  # bytes that allocated memory may grow after the first third of the fits
MAX_GROWTH_RESIDENT = 3e7  # the same for memory that the process holds, in use or not
MAX_NEW_OBJECTS = 50  # Python objects


def classify(folder, n_bytes=None):
    """Run the command, in a process whose files may be no larger than a number of bytes."""
    # A limit set between fork and exec would need a fork of this process, which has threads.
    first = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, {(n_bytes, n_bytes)})\n"
    run = RUN if n_bytes is None else first + RUN
    command = [sys.executable, "-c", run, "classify", str(folder / "x.csv"), "--label-column"]
    options = [
        "label",
        "-o",
        str(folder / "out"),
        "--quiet",
        "--inference",
        "expectation-propagation",
    ]
    return subprocess.run([*command, *options], capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("n_bytes", [100, 2_000, 20_000, 100_000])
def test_a_file_that_cannot_grow(n_bytes, older, tmp_path):
    """No file may be larger than a limit of the system, as on a full disk."""
    hostile.write_csv(tmp_path / "x.csv")
    out = tmp_path / "out"
    if older:
        assert classify(tmp_path).returncode == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()} if older else {}
    found = classify(tmp_path, n_bytes)
    assert found.returncode == 2
    assert found.stderr.startswith("graphuq: error: cannot write")
    assert len(found.stderr.strip().splitlines()) == 1
    assert len(found.stderr) <= 301
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert classify(tmp_path).returncode == 0


MOONS = gq.datasets.two_moons(100, rng=0)
NEW_ROWS = MOONS.features + 0.01


def fitted(seed):
    y = np.full(100, -1)
    rows = np.random.default_rng(seed).permutation(100)[:20]
    y[rows] = MOONS.classes[rows]
    return gq.GraphClassifier(random_state=0).fit(MOONS.features, y)


def probabilities(seed):
    return fitted(seed).label_distributions_


@pytest.mark.slow
def test_threads_find_what_one_finds():
    expected = [probabilities(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(probabilities, range(3)))
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # BLAS adds up in another order


def of_new_rows(_):
    return FITTED[0].predict_proba(NEW_ROWS)


FITTED = []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("work", [probabilities, of_new_rows])
def test_a_fork_finds_what_its_parent_finds(work):
    """A process is forked after a fit, as a server does that loads a model before it forks."""
    FITTED[:] = [fitted(0)]
    expected = work(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.map_async(work, [0]).get(timeout=100)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


MANY_FITS = """
import ctypes, gc, os, sys, warnings
import numpy as np
import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning

class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks cost".split()]

count = ctypes.CDLL("libc.so.6").mallinfo2
count.restype = Mallinfo
warnings.simplefilter("ignore", DisconnectedGraphWarning)
sizes = np.linspace(200, 1200, int(sys.argv[1])).astype(int)
for number, n_rows in enumerate(np.random.default_rng(0).permutation(sizes)):
    data = gq.datasets.two_moons(int(n_rows), rng=number)
    y = np.full(len(data.classes), -1)
    y[:20] = data.classes[:20]
    gq.GraphClassifier(random_state=0).fit(data.features, y)
    gc.collect()
    info = count()
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    print(info.uordblks + info.hblkhd, resident, len(gc.get_objects()), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="reads the counts of glibc")
def test_many_fits_leave_memory_flat():
    """Fits of 200 to 1,200 rows in random order, each of which has arrays of other shapes.

    With one arena, glibc counts every byte that is in use. With many, free parts of each are kept
    for the threads that use it, and resident memory grows though nothing is in use.
    """
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", MANY_FITS, str(N_FITS)]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    in_use, resident, n_objects = np.array(
        [line.split() for line in found.stdout.splitlines()], int
    ).T
    early = N_FITS // 3
    assert in_use[early:].max() - in_use[early] < MAX_GROWTH_IN_USE
    assert resident[early:].max() - resident[:early].max() < MAX_GROWTH_RESIDENT
    assert n_objects[-1] - n_objects[early] < MAX_NEW_OBJECTS
