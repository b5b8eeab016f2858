"""Is the automatic choice of a sampler right? All applicable samplers on many posteriors.

Question: which sampler does graphuq choose, and how many seconds does each one take? The time is
that from a spectrum to a Monte-Carlo error of 0.01 in every label mean.

How to run:

    python benchmarks/bench_automatic.py [--only "J = 160"]

Posteriors are binary: MNIST (4, 9) (4,000 nodes; 300 eigenpairs, or 100 and a tail), with a
twentieth of the labels flipped, and the voting records. Each sampler makes a fixed number of draws,
including the summaries of all nodes; its time is scaled by the square of the error. A shorter run
comes before it, for compilation.

Samplers: "sequential" is `SequentialIndependence`, and "exact" is `ExactHamiltonian`. "about EP" is
`Hamiltonian` about expectation propagation; with a tail and more labels than eigenpairs, it is
plain `Hamiltonian`.

Prints: for each posterior, the chosen sampler and the scaled seconds of each one; in brackets, the
seconds of its first run, its acceptance, and R-hat if it is above 1.01. In that case the true time
is longer.

Results go to ``benchmarks/results/automatic.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np

import graphuq as gq
from graphuq.run.choose_sampler import choose_sampler, first_approximation
from peers import DATA, RESULTS

EP = gq.inference.ExpectationPropagation()
LIKELIHOODS = {
    "probit 0.1": gq.likelihoods.Probit(0.1),
    "probit 0.3": gq.likelihoods.Probit(0.3),
    "probit 1": gq.likelihoods.Probit(1.0),
    "level set 0.5": gq.likelihoods.LevelSet(0.5),
    "level set 1": gq.likelihoods.LevelSet(1.0),
    "atomic 0.9": gq.likelihoods.AtomicNoise(0.9, 0.9),
}
PRIORS = {"matern": gq.priors.Matern(tau=0.3, alpha=4.0), "inverse": gq.priors.InverseLaplacian()}
DRAWS = 300  # draws of each of 32 chains


def cases():
    """Return functions that construct the posteriors, by name; each call constructs a new one."""
    data = gq.datasets.load_mnist((4, 9), 2000, n_components=50, folder=DATA)
    graph = gq.graphs.knn_graph(data.features, 20)
    forms = {
        "300 pairs": (gq.laplacian_spectrum(graph, n_eigenpairs=300), (10, 40, 160, 551, 1000)),
        "tail": (gq.laplacian_spectrum(graph, n_eigenpairs=100, tail_eigenvalue=True), (160, 551)),
    }
    found = {}
    for form, (spectrum, counts) in forms.items():
        for n_labels in counts:
            for name, prior in (
                PRIORS.items() if form != "tail" else [("inverse", PRIORS["inverse"])]
            ):
                parts = spectrum, prior, data.signs(4), n_labels, 0.05
                found |= by_likelihood(f"MNIST, J = {n_labels}, {form}, {name}", parts)
    data = gq.datasets.load_voting(DATA)
    graph = gq.graphs.complete_graph(data.features, "gaussian", scale=1.25)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=435)
    for n_labels in (5, 20, 80):
        parts = spectrum, PRIORS["inverse"], data.signs("democrat"), n_labels, 0.0
        found |= by_likelihood(f"voting, J = {n_labels}", parts)
    return found


def by_likelihood(name, parts):
    """Return one constructor for each likelihood, by name."""
    spectrum, prior, truth, n_labels, flipped = parts
    rng = np.random.default_rng(n_labels)
    labelled = rng.choice(len(truth), n_labels, replace=False)
    labels = np.where(rng.uniform(size=n_labels) < flipped, -1, 1) * truth[labelled]
    return {
        f"{name}, {kind}": lambda part=part: gq.Posterior(spectrum, prior, part, labelled, labels)
        for kind, part in LIKELIHOODS.items()
    }


def samplers(posterior, chosen):
    """Return the samplers that apply to the posterior, by name; the chosen one is among them."""
    likelihood, n_labels = posterior.likelihood, len(posterior.labels)
    found = {}
    if gq.inference.SequentialIndependence.target_refusal(posterior.target) is None:
        found["sequential"] = gq.inference.SequentialIndependence(reference=EP)
    found["exact"] = gq.inference.ExactHamiltonian()
    if likelihood.has_gradient:
        projected = posterior.dimension < n_labels or posterior.spectrum.tail_eigenvalue is None
        found["about EP"] = gq.inference.Hamiltonian(reference=EP if projected else None)
    if not any(type(sampler) is type(chosen) for sampler in found.values()):
        found["chosen"] = chosen
    return found


def timed(make, sampler):
    """Return seconds to the error, R-hat, acceptance, and seconds of the first, shorter run."""
    began = time.perf_counter()
    gq.infer(make(), sampler, n_samples=100, precision="float32", rng=1)
    first = time.perf_counter() - began
    posterior = make()
    posterior.field  # noqa: B018  cached here, before the clock starts
    began = time.perf_counter()
    found = gq.infer(posterior, sampler, n_samples=DRAWS, precision="float32", rng=0).diagnostics
    seconds = time.perf_counter() - began
    return {
        "seconds": seconds * (found.label_mcse / 0.01) ** 2,
        "rhat": found.rhat,
        "acceptance": found.acceptance,
        "first": first,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="run cases whose name contains this text")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    rows = []
    for name, make in cases().items():
        if options.only not in name:
            continue
        posterior = make()
        chosen = choose_sampler(posterior, first_approximation(posterior))
        row = {"case": name, "chosen": type(chosen).__name__}
        for kind, sampler in samplers(posterior, chosen).items():
            row[kind] = timed(make, sampler)
        rows.append(row)
        cells = [
            f"{kind} {one['seconds']:.2f} s (first run {one['first']:.1f} s, acceptance "
            f"{one['acceptance']:.2f}"
            + (f", R-hat {one['rhat']:.2f})" if one["rhat"] > 1.01 else ")")
            for kind, one in row.items()
            if isinstance(one, dict)
        ]
        print(f"{name}: chosen {row['chosen']}; " + "; ".join(cells), flush=True)
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "automatic.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
