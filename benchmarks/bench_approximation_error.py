"""What expectation propagation says of its own error, beside long chains.

Question: is the stated error of probabilities (`Result.diagnostics.probability_error`) at least the
true one, and how far above it is it?

How to run:

    python benchmarks/bench_approximation_error.py [--nodes 300]

Data: two moons with 4, 12 and 30 labels, right ones or a third of them flipped, under five
likelihoods; four digits of scikit-learn with 4, 12 and 40 labels under three likelihoods. The prior
is the default `Matern` with 30 eigenpairs. Chains run until the Monte-Carlo error of label means is
0.004.

Prints: for each posterior, the share of draws that would be accepted, the stated error, and the
largest difference from chains at the same nodes; then in how many the stated one is at least as
large, and their mean ratio.

Results go to ``benchmarks/results/approximation_error.json``.
"""

import argparse
import json
import warnings

import numpy as np

import graphuq as gq
from graphuq.results.diagnostics import ERROR_NODES, monitored_nodes
from peers import RESULTS

BINARY = {
    "probit, γ = 1": gq.likelihoods.Probit(1.0),
    "probit, γ = 0.1": gq.likelihoods.Probit(0.1),
    "probit, γ = 0.02": gq.likelihoods.Probit(0.02),
    "level set": gq.likelihoods.LevelSet(0.3),
    "atomic noise": gq.likelihoods.AtomicNoise(),
}
SEVERAL = {
    "softmax": gq.likelihoods.Softmax(n_classes=4),
    "probit, γ = 0.5": gq.likelihoods.Probit(0.5, 4),
    "probit, γ = 0.1": gq.likelihoods.Probit(0.1, 4),
}


def draw(codes, n_labels):
    """Return as many random nodes of each class."""
    rng, classes = np.random.default_rng(n_labels), np.unique(codes)
    n = n_labels // len(classes)
    return np.concatenate([rng.choice(np.flatnonzero(codes == k), n, False) for k in classes])


def posteriors(n_nodes):
    moons = gq.datasets.two_moons(n_nodes)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=30)
    signs, prior = moons.signs(1), gq.priors.Matern()
    for n_labels in (4, 12, 30):
        nodes = draw(signs, n_labels)
        flipped = signs[nodes].copy()
        flipped[::3] *= -1
        for name, likelihood in BINARY.items():
            for kind, labels in (("right", signs[nodes]), ("flipped", flipped)):
                posterior = gq.Posterior(spectrum, prior, likelihood, nodes, labels)
                yield f"two moons, {n_labels} {kind}, {name}", posterior
    digits = gq.datasets.load_digits((1, 4, 7, 9))
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(digits.features), n_eigenpairs=30)
    codes = np.unique(digits.classes, return_inverse=True)[1]
    for n_labels in (4, 12, 40):
        nodes = draw(codes, n_labels)
        for name, likelihood in SEVERAL.items():
            posterior = gq.Posterior(spectrum, prior, likelihood, nodes, codes[nodes])
            yield f"digits, {n_labels}, {name}", posterior


def compare(posterior):
    first = gq.infer(posterior, gq.inference.ExpectationPropagation())
    chains = gq.infer(
        posterior, n_samples=20_000, n_chains=8, stop=gq.Converged(label_mcse=0.004), rng=1
    )
    n_unlabelled = posterior.spectrum.n_nodes - len(posterior.observed_nodes)
    nodes = monitored_nodes(posterior, min(ERROR_NODES, n_unlabelled))
    unit = 1 if posterior.likelihood.is_multiclass else 2
    found = np.abs(gq.results.label_mean(first) - gq.results.label_mean(chains))[nodes].max() / unit
    return {
        "acceptance": first.diagnostics.acceptance,
        "stated": first.diagnostics.probability_error,
        "found": float(found),
        "rhat": chains.diagnostics.rhat,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=300)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, posterior in posteriors(arguments.nodes):
        row = {"posterior": name, **compare(posterior)}
        rows.append(row)
        stated = "unknown" if row["stated"] is None else f"{row['stated']:.3f}"
        numbers = f"accepted {row['acceptance']:.2f}  stated {stated}  found {row['found']:.3f}"
        print(f"{name:38s} {numbers}", flush=True)
    known = [row for row in rows if row["stated"] is not None]
    held = sum(row["stated"] >= row["found"] for row in known)
    ratio = np.exp(np.mean([np.log(row["stated"] / row["found"]) for row in known]))
    print(f"stated at least found: {held} of {len(known)}; mean ratio {ratio:.2f}; ", end="")
    print(f"unknown: {len(rows) - len(known)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "approximation_error.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
