"""Runs that are killed at random moments: nothing partial, the same result after, no litter.

Slow: each kill starts two processes. Set ``GRAPHUQ_KILLS`` to change the number of kills.
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from graphuq.utils.output_folder import COMMITTED, LOCK
from robustness import hostile

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="POSIX signals"),
]
N_KILLS = int(os.environ.get("GRAPHUQ_KILLS", "5"))
SIGNALS = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"]
RESULTS = {"predictions.csv", "posterior.nc", "report.html"}
HIDDEN = {".checkpoint.npz", ".search.json"}  # from which a run resumes
RUN = "import sys\nfrom graphuq.cli import main\nmain(sys.argv[1:])\n"
METHODS = {
    "pcn": ["--inference", "pcn", "--n-warmup", "2000", "--n-samples", "400"],
    "exact": ["--inference", "exact-hamiltonian", "--n-samples", "400"],
    "search": ["--search", "n_neighbors=5:20", "--inference", "laplace"],
}


def command(folder, method, *more):
    length = [] if "laplace" in METHODS[method] else ["--fixed-length"]
    return [sys.executable, "-c", RUN, "classify", str(folder / "x.csv"), "--label-column", "label",
            "-o", str(folder / "out"), "--quiet", *METHODS[method], *length, *more]  # fmt: skip


def finish(folder, method, *more):
    subprocess.run(command(folder, method, *more), check=True, capture_output=True)
    return (folder / "out" / "predictions.csv").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a function that gives the predictions of an undisturbed run, and its seconds."""
    found = {}

    def result(method):
        if method not in found:
            folder = tmp_path_factory.mktemp(method)
            hostile.write_csv(folder / "x.csv")
            finish(folder, method)  # compiles
            began = time.monotonic()
            found[method] = finish(folder, method), time.monotonic() - began
        return found[method]

    return result


@pytest.mark.parametrize("number", range(N_KILLS))
@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("method", METHODS)
def test_kills(method, name, number, whole, tmp_path):
    expected, seconds = whole(method)
    rng = np.random.default_rng([number, SIGNALS.index(name), list(METHODS).index(method)])
    hostile.write_csv(tmp_path / "x.csv")
    out = tmp_path / "out"
    older = number % 2 == 1
    if older:
        out.mkdir()
        for result in RESULTS:
            (out / result).write_text("older")
    with subprocess.Popen(command(tmp_path, method), stderr=subprocess.DEVNULL) as run:
        time.sleep(rng.uniform(0.3, 1.1) * seconds)
        run.send_signal(getattr(signal, name))
        code = run.wait(120)
    assert code in (0, -getattr(signal, name), 128 + getattr(signal, name))
    files = {path.name for path in out.iterdir()} if out.exists() else set()
    visible = {name for name in files if not name.startswith(".")}
    committed = (out / COMMITTED).is_dir()
    assert visible in (set(), RESULTS, RESULTS | {"search.csv"}) or committed
    if visible and not committed:
        ages = {(out / result).read_bytes() == b"older" for result in RESULTS}
        assert len(ages) == 1
    if name != "SIGKILL":  # a process that is told so clears up itself
        assert files - visible <= HIDDEN
    assert finish(tmp_path, method, "--resume") == expected
    left = {path.name for path in out.iterdir()}
    assert left == RESULTS | ({"search.csv"} if method == "search" else set())
    assert LOCK not in left


def test_two_runs_in_one_folder(tmp_path):
    """The second is refused, and says which process is at work; the first is not disturbed."""
    hostile.write_csv(tmp_path / "x.csv")
    with subprocess.Popen(command(tmp_path, "pcn"), stderr=subprocess.DEVNULL) as first:
        while not (tmp_path / "out" / LOCK).exists():
            time.sleep(0.05)
        time.sleep(0.2)
        second = subprocess.run(command(tmp_path, "pcn"), capture_output=True, text=True)
        assert second.returncode == 2
        assert f"in use by process {first.pid} on" in second.stderr
        assert first.wait(300) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == RESULTS
