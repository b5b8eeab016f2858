"""Voting records on the command line: accuracy, and the effect of fewer eigenvectors.

Question: over 20 draws of 3 democrats and 2 republicans, how accurate are the labels? If all chains
have converged, how far are label means of an incomplete spectrum from those of the full one? The
incomplete spectra are projection (ℓ = 150) and approximation (λ̄ = the last computed eigenvalue), as
in Bertozzi et al. 2018, Figure 9.

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_voting.py [--draws 20]

Prints: for each draw of labels, accuracy, the mean absolute difference of label means for
projection and approximation, and the largest R-hat; then means and standard errors.

Results go to ``benchmarks/results/voting.json``.
"""

import argparse
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from graphuq.cli.app import run
from graphuq.results.loading import load

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GRAPHUQ_DATA", ROOT.parent / "shared" / "data"))
FORMS = {
    "full": ["--n-eigenpairs", "all"],
    "projection": ["--n-eigenpairs", "150"],
    "approximation": ["--n-eigenpairs", "150", "--tail-eigenvalue", "true"],
}


def classify(csv, form, folder, seed):
    """Run ``graphuq classify``; return its predictions and diagnostics."""
    command = ["classify", str(csv), "--id-column", "id", "--label-column", "label"]
    command += ["--truth-column", "class", "--positive", "democrat", "--graph", "complete"]
    command += ["--weights", "GaussianWeights(scale=1.25)", *FORMS[form]]
    command += ["--model", "Fixed(InverseLaplacian(), Probit(0.1))", "--inference", "pcn"]
    command += ["--n-chains", "8", "--n-samples", "3000", "--thin", "20", "--stop", "none"]
    command += ["--random-state", str(seed)]
    if run([*command, "--output", str(folder), "--quiet"]) != 0:
        raise SystemExit("graphuq classify failed")
    return pd.read_csv(folder / "predictions.csv"), load(folder / "posterior.nc").diagnostics


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--output", default=ROOT / "benchmarks" / "results" / "voting.json")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    rows = []
    print(f"{'draw':>4} {'accuracy':>9} {'projection':>12} {'approx.':>12} {'R-hat':>7}")
    for seed in range(options.draws):
        with tempfile.TemporaryDirectory() as name:
            csv = Path(name) / "votes.csv"
            command = ["datasets", "voting", "--folder", str(DATA), "--csv", str(csv)]
            command += ["--label", "democrat=3", "--label", "republican=2"]
            command += ["--random-state", str(seed)]
            with contextlib.redirect_stdout(io.StringIO()):
                run(command)
            table = pd.read_csv(csv)
            unlabelled = table["label"].isna()
            found = {f: classify(csv, f, Path(name) / f, seed) for f in FORMS}
        full, republican = found["full"][0], "probability_republican"
        gap = {
            f: float(2 * (found[f][0][republican] - full[republican]).abs().mean())
            for f in ("projection", "approximation")
        }
        row = {
            "accuracy": float((full["label"] == table["class"])[unlabelled].mean()),
            **gap,
            "rhat": max(d.rhat for _, d in found.values()),
            "label_mcse": max(d.label_mcse for _, d in found.values()),
        }
        rows.append(row)
        print(
            f"{seed:4} {row['accuracy']:9.4f} {gap['projection']:12.4f} "
            f"{gap['approximation']:12.4f} {row['rhat']:7.4f}",
            flush=True,
        )
    frame = pd.DataFrame(rows)
    error = frame.std(ddof=1) / np.sqrt(len(frame))
    for name in ("accuracy", "projection", "approximation"):
        print(f"{name:14} {frame[name].mean():.4f} ± {error[name]:.4f} (standard error)")
    print("paper, one unconverged run each: projection 0.1577, approximation 0.0261")
    Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    Path(options.output).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
