"""What a default fit imports beside scikit-learn, in seconds, and what Numba compiles first.

Question: how much longer is the import of all that a default fit needs than that of scikit-learn's
own part of it?

How to run:

    python benchmarks/bench_imports.py [--runs 5]

One process fits and prints which modules it has imported. Each run then imports these modules in a
process of its own, those of scikit-learn and what they need first. The last two lines are first
fits, without and with Numba's compiled functions on disk; the first of these runs once, with an
empty folder as Numba's cache.

Prints: processor seconds, the least over all runs, and their ratio to those of scikit-learn's own
modules. Bytecode must be kept (no ``PYTHONDONTWRITEBYTECODE``).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

FIT = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import graphuq as gq
rng = np.random.default_rng(0)
classes = np.arange(500) % 2
X = rng.normal(size=(500, 8)) + 3 * classes[:, None]
y = np.where(np.arange(500) < 20, classes, -1)
began = time.process_time()
gq.GraphClassifier().fit(X, y).predict_proba(X[:1])
seconds = time.process_time() - began
tops = ("sklearn", "numba", "llvmlite", "jaxtyping", "graphuq", "jax", "equinox")
names = [name for name in sys.modules if name.partition(".")[0] in tops]
print(json.dumps({"seconds": seconds, "names": names}))
"""
IMPORTS = """
import json, sys, time
from importlib import import_module

def timed(names):
    began = time.process_time()
    for name in names:
        try:
            import_module(name)
        except ImportError:  # made by its package, not by an import
            pass
    return time.process_time() - began

names = json.loads(sys.argv[1])
from graphuq.utils.lazy_imports import paused_collection
seconds = {"scikit-learn": timed([n for n in names if n.startswith("sklearn")])}
with paused_collection():
    for top in ("numba", "graphuq"):
        seconds[top] = timed([n for n in names if n.startswith(top)])
    seconds["others"] = timed(names)
print(json.dumps(seconds))
"""


def run(code, *arguments, **variables):
    """Return what a new process prints last."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | variables,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    n_runs = parser.parse_args().runs
    names = run(FIT)["names"]
    runs = [run(IMPORTS, json.dumps(names)) for _ in range(n_runs)]
    seconds = {name: min(found[name] for found in runs) for name in runs[0]}
    own = seconds["scikit-learn"]
    seconds["all beside scikit-learn"] = sum(seconds.values()) - own
    with tempfile.TemporaryDirectory() as folder:
        seconds["first fit, nothing compiled"] = run(FIT, NUMBA_CACHE_DIR=folder)["seconds"]
    seconds["first fit"] = min(run(FIT)["seconds"] for _ in range(n_runs))
    print(f"{len(names)} modules; JAX among them: {'jax' in names}")
    for name, value in seconds.items():
        print(f"{name:30} {value:6.2f} s {value / own:6.2f}")


if __name__ == "__main__":
    main()
