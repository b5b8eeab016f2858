"""Learnt hyperparameters with a level set: kernels of the field, with and without interweaving.

Question: how many effective samples per second does `MetropolisWithinGibbs` give with each kernel,
and how many without interweaving? Interweaving updates a hyperparameter twice: with the white
coordinates held fixed, as in Chen's paper, and with the field held fixed.

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_interweaving.py [--samples 1000] [--cases "two moons"]

Case "two moons" has the posterior of Chen's figure 9: σ = 0.15, 20 labels, M = 50, α is learnt.
Case "MNIST (4, 9)" has that of figure 5: 40 labels, M = 50, τ and α are learnt. Each sampler has 16
chains.

Prints: one line for each case, kernel and setting. The columns are seconds, largest R-hat, and
effective samples per second of the slowest functional, including warm-up and compilation.

Results go to ``benchmarks/results/interweaving.json``.
"""

import argparse
import json
import time
import warnings

import graphuq as gq
from graphuq.inference import PCN, EllipticalSlice, ExactHamiltonian, MetropolisWithinGibbs
from graphuq_papers.base import Context
from graphuq_papers.problems import mnist, moons, share
from peers import DATA, RESULTS

KERNELS = {"exact Hamiltonian": ExactHamiltonian(), "elliptical slice": EllipticalSlice()}
KERNELS |= {"pCN": PCN()}


def two_moons():
    """Return the posterior of Chen's figure 9."""
    problem = moons(0.15, 0)
    prior = gq.priors.Matern(tau=0.0, alpha=gq.Uniform(0.1, 60.0), truncation=50)
    labelled = share(problem.truth, 0.01, 0)
    return problem.posterior(gq.likelihoods.LevelSet(0.15), labelled, prior)


def digits():
    """Return the posterior of Chen's figure 5."""
    problem = mnist(Context(folder=DATA), (4, 9))
    prior = gq.priors.Matern(
        tau=gq.Uniform(0.01, 20.0),
        alpha=gq.Uniform(0.1, 60.0),
        truncation=50,
        include_constant=True,
    )
    labelled = share(problem.truth, 0.01, 0)
    return problem.posterior(gq.likelihoods.LevelSet(1e-4), labelled, prior)


CASES = {"two moons": two_moons, "MNIST (4, 9)": digits}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000, help="draws per chain")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    rows = []
    print(f"{'case':13} {'kernel':18} {'interweaving':12} {'seconds':>8} {'R-hat':>7} {'ESS/s':>7}")
    for case in options.cases:
        if case != "two moons" and not DATA.exists():
            print(f"{case} skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
            continue
        posterior = CASES[case]()
        for name, kernel in KERNELS.items():
            for interweave in (True, False):
                sampler = MetropolisWithinGibbs(kernel, interweave=interweave)
                began = time.perf_counter()
                result = gq.infer(
                    posterior,
                    sampler,
                    n_samples=options.samples,
                    n_chains=16,
                    precision="float32",
                )
                seconds = time.perf_counter() - began
                ess = min(row["ess_bulk"] for row in gq.results.convergence_table(result).values())
                row = {
                    "case": case,
                    "kernel": name,
                    "interweaving": interweave,
                    "seconds": seconds,
                    "rhat": result.diagnostics.rhat,
                    "ess per second": ess / seconds,
                }
                rows.append(row)
                print(
                    f"{case:13} {name:18} {'yes' if interweave else 'no':12} {seconds:8.1f} "
                    f"{row['rhat']:7.3f} {row['ess per second']:7.1f}",
                    flush=True,
                )
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "interweaving.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
