"""Random series: effective samples per second of the paper's reversible jump and of graphuq.

Question: on the same posterior, how many effective samples per second does each sampler give, and
has it converged? The number is that of the slowest of k, c, the log likelihood and the field at 50
nodes.

How to run (GRAPHUQ_DATA names the folder of MNIST):

    python benchmarks/bench_series.py [--samples 2000] [--case MNIST]

The sampler of the paper is Algorithm 1 with its acceptance ratio corrected: z at every node, a
binomial walk of k, a conjugate update of c alone, and coefficients redrawn at each step (which
favours it). Each sampler has 16 chains that start from the prior; time includes a warm-up of a
quarter of the run. `MetropolisWithinGibbs(Hamiltonian(), joint=True)`, the sampler of graphuq for
any learnt prior, runs with compilation included.

Prints: one line for each case and sampler. The columns are seconds, largest R-hat, effective
samples per second, and their ratio to those of the paper's sampler. The last are the 5, 50 and 95 %
quantiles of k.

Results go to ``benchmarks/results/series.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np
from scipy.special import ndtr

import graphuq as gq
from graphuq.inference import Hamiltonian, MetropolisWithinGibbs, ReversibleJump
from peers import RESULTS

PAPERS = ReversibleJump(
    proposal="binomial", form="plain", interweave=False, jump=False, whitened=False
)
METHODS = {
    "the paper's": PAPERS,
    "without jumps": ReversibleJump(jump=False, whitened=False),
    "without whitened moves": ReversibleJump(whitened=False),
    "default": ReversibleJump(),
    "Metropolis within Gibbs": MetropolisWithinGibbs(Hamiltonian(), joint=True),
}


def path_case(n_labels, rate):
    """Return the posterior on the path of the paper's §5.1, with 500 nodes."""
    n_nodes, rng = 500, np.random.default_rng(0)
    graph = gq.graphs.path_graph(n_nodes)
    spectrum = gq.laplacian_spectrum(graph, "unnormalized", n_nodes)
    k = np.arange(1, n_nodes)
    f = spectrum.eigenvectors @ np.append(0.0, np.sqrt(n_nodes) * k**-1.5 * np.sin(k))
    nodes = np.sort(rng.choice(n_nodes, n_labels, replace=False))
    labels = np.where(rng.uniform(size=n_nodes) < ndtr(f), 1, -1)[nodes]
    prior = gq.priors.RandomSeries(truncation_rate=rate)
    return gq.Posterior(spectrum, prior, gq.likelihoods.Probit(1.0), nodes, labels)


def digits_case(n_nodes):
    """Return the posterior of 4s and 9s of MNIST, six of seven labelled (the paper's §5.2)."""
    data = gq.datasets.load_mnist((4, 9), n_components=50)
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(len(data.features), n_nodes, replace=False))
    nodes = np.sort(rng.permutation(n_nodes)[: 6 * n_nodes // 7])
    graph = gq.graphs.knn_graph(data.features[chosen], 15, "unweighted")
    spectrum = gq.laplacian_spectrum(graph, "unnormalized", min(n_nodes, 600))
    labels = data.signs(4)[chosen][nodes]
    prior = gq.priors.RandomSeries()
    return gq.Posterior(spectrum, prior, gq.likelihoods.Probit(1.0), nodes, labels)


CASES = {
    "path of 500, 400 labels, ρ = 0": lambda: path_case(400, 0.0),
    "path of 500, 400 labels, ρ = 0.04": lambda: path_case(400, 0.04),
    "path of 500, 20 labels, ρ = 0.04": lambda: path_case(20, 0.04),
    "MNIST (4, 9), 500 images, 428 labels": lambda: digits_case(500),
    "MNIST (4, 9), 2,000 images, 1,714 labels": lambda: digits_case(2000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--case", default="", help="run cases whose name contains this text")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    print(f"{'':36}{'seconds':>9}{'R-hat':>8}{'min. ESS/s':>13}{'ratio':>8}   k: 5, 50, 95 %")
    for name, case in CASES.items():
        if options.case not in name:
            continue
        posterior, base = case(), None
        print(name)
        for method, sampler in METHODS.items():
            n = options.samples // (10 if method == "Metropolis within Gibbs" else 1)
            began = time.perf_counter()
            result = gq.infer(posterior, sampler, n_samples=n, n_chains=16, n_warmup=n // 4)
            seconds = time.perf_counter() - began
            min_ess = min(row["ess_bulk"] for row in gq.results.convergence_table(result).values())
            base = min_ess / seconds if base is None else base
            k = np.quantile(result.hyperparameters["truncation"], [0.05, 0.5, 0.95])
            rhat = result.diagnostics.rhat
            print(
                f"  {method:34}{seconds:9.1f}{rhat:8.3f}{min_ess / seconds:13.1f}"
                f"{min_ess / seconds / base:8.1f}   {', '.join(f'{x:.0f}' for x in k)}",
                flush=True,
            )
            rows.append(
                {
                    "case": name,
                    "method": method,
                    "seconds": seconds,
                    "rhat": rhat,
                    "ess per second": min_ess / seconds,
                    "k": k.tolist(),
                }
            )
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "series.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
