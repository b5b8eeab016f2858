"""Expectation propagation beside long chains: its errors and its time.

Question: how far are the label means of expectation propagation from those of long chains, and how
long does each take? How far is its log evidence from that of 40,000 draws of importance sampling?
Cases are voting records, MNIST (4, 9) and two moons, each with four likelihoods.

How to run:

    python benchmarks/bench_ep.py

Chains are those of the automatic sampler until R-hat < 1.01 and 4,000 effective samples. The time
of expectation propagation is that of a second run, without compilation.

Prints: one line for each case and likelihood. The columns are milliseconds of expectation
propagation; seconds and R-hat of the chains; the mean and largest difference of label means; the
Monte-Carlo error of the chains; both accuracies; the log evidence of expectation propagation; that
of importance sampling, its standard error, and the effective share of its draws.

Results go to ``benchmarks/results/ep.json``.
"""

import json
import time
import warnings

import numpy as np

import graphuq as gq
from graphuq.errors import InvalidInput
from peers import DATA, RESULTS

LIKELIHOODS = (
    gq.likelihoods.Probit(0.1),
    gq.likelihoods.LevelSet(0.1),
    gq.likelihoods.AtomicNoise(0.9, 0.9),
    gq.likelihoods.NoiseFree(),
)


def cases():
    """Yield name, spectrum, true signs and labelled nodes of each case."""
    rng = np.random.default_rng(0)
    moons = gq.datasets.two_moons(2000, noise_std=0.06)
    graph = gq.graphs.knn_graph(moons.features, 20)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=150)
    yield "two moons", spectrum, moons.signs(1), rng.choice(2000, 60, replace=False)
    if not DATA.exists():
        print(f"voting and MNIST skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    voting = gq.datasets.load_voting(DATA)
    graph = gq.graphs.complete_graph(voting.features, "gaussian", scale=1.25)
    truth = voting.signs("democrat")
    labelled = np.concatenate(
        [rng.choice(np.flatnonzero(truth == s), k, False) for s, k in ((1, 3), (-1, 2))]
    )
    yield "voting", gq.laplacian_spectrum(graph, n_eigenpairs=435), truth, labelled
    mnist = gq.datasets.load_mnist((4, 9), 2000, n_components=50, folder=DATA)
    graph = gq.graphs.knn_graph(mnist.features, 20)
    labelled = rng.choice(4000, 160, replace=False)
    for tail in (False, True):
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=300, tail_eigenvalue=tail)
        yield "mnist49, tail" if tail else "mnist49", spectrum, mnist.signs(4), labelled


def main():
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    rows = []
    print(
        f"{'case':14} {'likelihood':26} {'EP ms':>8} {'chains s':>8} {'R-hat':>7} {'mean diff':>9} "
        f"{'largest':>8} {'MC error':>8} {'accuracy EP':>11} {'chains':>7} {'EP evidence':>12} "
        f"{'sampled':>9} {'± error':>7} {'share':>6}"
    )
    for name, spectrum, truth, labelled in cases():
        for likelihood in LIKELIHOODS:
            prior = gq.priors.InverseLaplacian()
            posterior = gq.Posterior(spectrum, prior, likelihood, labelled, truth[labelled])
            method = gq.inference.ExpectationPropagation()
            try:
                gq.infer(posterior, method)  # the first run compiles
            except InvalidInput as error:
                print(f"{name:14} {likelihood!r:26} {error}")
                rows.append({"case": name, "likelihood": repr(likelihood), "error": str(error)})
                continue
            began = time.perf_counter()
            fast = gq.infer(posterior, method)
            ep_seconds = time.perf_counter() - began
            began = time.perf_counter()
            slow = gq.infer(
                posterior, n_samples=20_000, stop=gq.Converged(ess=4000), precision="float32"
            )
            chains_seconds = time.perf_counter() - began
            evidence = gq.estimate_evidence(posterior, n_draws=40_000)
            gap = np.abs(gq.results.label_mean(fast) - gq.results.label_mean(slow))
            row = {
                "case": name,
                "likelihood": repr(likelihood),
                "sampler": slow.settings["inference"],
                "ep_ms": ep_seconds * 1e3,
                "chains_s": chains_seconds,
                "rhat": slow.diagnostics.rhat,
                "mean_difference": float(gap.mean()),
                "largest_difference": float(gap.max()),
                "mean_mcse": float(gq.results.label_mcse(slow).mean()),
                "accuracy_ep": gq.scores.accuracy(gq.results.label_mean(fast), truth, labelled),
                "accuracy_chains": gq.scores.accuracy(gq.results.label_mean(slow), truth, labelled),
                "log_evidence_ep": evidence.expectation_propagation,
                "log_evidence": evidence.log_evidence,
                "log_evidence_error": evidence.std_error,
                "evidence_share": evidence.effective_share,
            }
            rows.append(row)
            print(
                f"{name:14} {likelihood!r:26} {row['ep_ms']:8.0f} {row['chains_s']:8.1f} "
                f"{row['rhat']:7.4f} {row['mean_difference']:9.4f} "
                f"{row['largest_difference']:8.4f} {row['mean_mcse']:8.4f} "
                f"{row['accuracy_ep']:11.4f} {row['accuracy_chains']:7.4f} "
                f"{evidence.expectation_propagation:12.3f} {evidence.log_evidence:9.3f} "
                f"{evidence.std_error:7.3f} {evidence.effective_share:6.2f}",
                flush=True,
            )
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "ep.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
