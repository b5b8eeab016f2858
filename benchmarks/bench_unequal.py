"""A rare class at the sizes of scikit-learn's issue 6555, from a Parquet file, by one command.

Question: how long does it take, how much memory does it need, and are the probabilities of the rare
class calibrated?

How to run (arguments after ``--`` go to ``graphuq classify``):

    python benchmarks/bench_unequal.py [--rows 697526] [-- --tail-eigenvalue mean]

In that issue, label propagation did not finish, or ran out of 32 GB of memory. It had 697,526 rows
of 15 features, with 13,469 and 262 labels. The data here are those of `mixture.unequal`, whose true
probabilities are known; no method can have better scores than those.

Prints: seconds, memory and the number of rows with NaN; then the scores of graphuq and of the true
probabilities on the unlabelled rows.

Results go to ``benchmarks/results/unequal.json``.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import graphuq as gq
from mixture import unequal
from peers import RESULTS

ROWS, COMMON, RARE = 697_526, 13_469, 262  # rows, and labels of both classes, in issue 6555


def rare_class_scores(probability, rare):
    """Return scores of the probability of the rare class; `rare` is the truth."""
    called = probability > 0.5
    certain = probability > 0.99
    scores = {
        "recall": float(called[rare].mean()),
        "precision": float(rare[called].mean()),
        "rows with p > 0.99": int(certain.sum()),
        "share of them that is rare": float(rare[certain].mean()),
        "accuracy": float((called == rare).mean()),
        "log score": gq.scores.log_score(2 * probability - 1, np.where(rare, 1, -1)),
        "calibration error": gq.scores.expected_calibration_error(
            2 * probability - 1, np.where(rare, 1, -1)
        ),
    }
    return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--output", type=Path, default=RESULTS / "unequal.json")
    parser.add_argument("more", nargs="*", help="arguments of graphuq classify")
    options = parser.parse_args()
    features, rare, bayes = unequal(options.rows)
    rng, part = np.random.default_rng(1), options.rows / ROWS
    label = np.full(options.rows, "", dtype="U6")
    for name, rows, count in (("common", ~rare, COMMON), ("rare", rare, RARE)):
        label[rng.choice(np.flatnonzero(rows), max(2, round(part * count)), replace=False)] = name
    unlabelled = label == ""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "rows.parquet", Path(folder) / "out"
        frame = pd.DataFrame(features, columns=[f"x{i}" for i in range(features.shape[1])])
        frame.assign(label=label).to_parquet(path)
        command = [str(Path(sys.executable).parent / "graphuq"), "classify", str(path)]
        command += ["--label-column", "label", "--output", str(out), *options.more]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        answer = pd.read_csv(out / "predictions.csv")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    probability = answer["probability_rare"].to_numpy()
    found = {
        "seconds": seconds,
        "GB": memory,
        "NaN": int(answer.select_dtypes("number").isna().any(axis=1).sum()),
    }
    print({name: round(value, 3) for name, value in found.items()})
    for name, p in (("graphuq", probability), ("true probability", bayes)):
        found[name] = rare_class_scores(p[unlabelled], rare[unlabelled])
        print(f"{name:16}", {key: round(value, 4) for key, value in found[name].items()})
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(found | {"rows": options.rows}, indent=1))


if __name__ == "__main__":
    main()
