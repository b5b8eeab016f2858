"""How often is a verdict "converged" wrong?

Question: of the runs whose diagnostics say that the chains have converged, how many have label
means that a long run contradicts?

How to run:

    python benchmarks/bench_verdicts.py [--problems 200] [--first 0]

The file of results grows with each problem, so that a run may be ended by Ctrl-C at any time.
``--first`` is the number of the first problem. Problems of earlier runs in the file are counted,
too; those that are run again are replaced.

Data: random problems of 12, 30 or 60 nodes, 2 to 4 classes, and 4, 8 or 12 labels, half of them
with labels at random, which no smooth field follows. Likelihood, noise (0.03 to 1), prior and
sampler are random too: the one that the rules choose, pCN, elliptical slices, collapsed Gibbs. Each
runs until R-hat < 1.01, 400 effective draws and a Monte-Carlo error of label means of 0.02, as
`GraphClassifier` does, at most 4,000 draws a chain. The long run has 8 chains of 10,000 draws of
`CollapsedGibbs` for a probit, and 16 chains of 4,000 draws of the chosen sampler otherwise, with
another seed.

A verdict is contradicted if a label mean differs by more than 5 standard errors, those of both runs
together, and by more than 0.02.

Prints: for each sampler, the runs, those that converged, those that are contradicted, and the 95 %
interval of their share (Clopper & Pearson).

Results go to ``benchmarks/results/verdicts.json``.
"""

import argparse
import collections
import contextlib
import json
import warnings

import numpy as np
from scipy.stats import beta

import graphuq as gq
from peers import RESULTS

N_ERRORS, LEAST = 5.0, 0.02
SAMPLERS = {
    "chosen by the rules": None,
    "pCN": gq.inference.PCN(),
    "elliptical slices": gq.inference.EllipticalSlice(),
    "collapsed Gibbs": gq.inference.CollapsedGibbs(),
}


def problem(seed):
    """Return a random posterior and the name of a sampler."""
    rng = np.random.default_rng([seed, 39])
    n_nodes, n_classes = int(rng.choice([12, 30, 60])), int(rng.choice([2, 2, 3, 4]))
    X = rng.normal(size=(n_nodes, 2)) + 4.0 * rng.integers(0, 2, n_nodes)[:, None]
    graph = gq.graphs.knn_graph(X, n_neighbors=int(rng.integers(2, 11)))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=int(rng.choice([6, 12])))
    n_labels = int(rng.choice([4, 8, 12]))
    nodes = np.sort(rng.permutation(n_nodes)[:n_labels])
    order = np.argsort(X[nodes, 0]) if rng.uniform() < 0.5 else rng.permutation(n_labels)
    codes = np.empty(n_labels, dtype=int)
    codes[order] = np.arange(n_labels) * n_classes // n_labels
    noise_std = float(10 ** rng.uniform(-1.5, 0))
    name = str(rng.choice(list(SAMPLERS)))
    probit = name == "collapsed Gibbs" or rng.uniform() < 0.6
    if probit:
        likelihood = gq.likelihoods.Probit(noise_std, n_classes)
    elif n_classes == 2:
        likelihood = rng.choice([gq.likelihoods.LevelSet(noise_std), gq.likelihoods.AtomicNoise()])
    else:
        likelihood = gq.likelihoods.Softmax(noise_std, n_classes=n_classes)
    prior = gq.priors.Matern(tau=float(rng.uniform(0.1, 1)), alpha=float(rng.uniform(1, 5)))
    labels = codes if n_classes > 2 else 2 * codes - 1
    return gq.Posterior(spectrum, prior, likelihood, nodes, labels), name, probit


def compare(seed):
    try:
        posterior, name, probit = problem(seed)
    except gq.errors.InvalidInput as error:  # a graph with more components than eigenpairs
        return {"seed": seed, "sampler": "none", "refused": str(error)[:100]}
    sampler = SAMPLERS[name]
    try:
        found = gq.infer(
            posterior, sampler, n_samples=4000, stop=gq.Converged(label_mcse=0.02), rng=seed
        )
    except gq.errors.IncompatibleParts as error:  # pCN and the like for a step likelihood
        return {"seed": seed, "sampler": name, "refused": str(error)[:100]}
    if not found.diagnostics.converged:
        return {"seed": seed, "sampler": name, "converged": False}
    long = gq.inference.CollapsedGibbs() if probit else sampler
    n_samples, n_chains = (10_000, 8) if probit else (4_000, 16)
    reference = gq.infer(posterior, long, n_samples=n_samples, n_chains=n_chains, rng=seed + 10**6)
    difference = np.abs(gq.results.label_mean(found) - gq.results.label_mean(reference))
    errors = np.hypot(gq.results.label_mcse(found), gq.results.label_mcse(reference))
    return {
        "seed": seed,
        "sampler": name,
        "likelihood": repr(posterior.likelihood),
        "converged": True,
        "reference_converged": bool(reference.diagnostics.converged),
        "largest": float(difference.max()),
        "contradicted": bool(((difference > N_ERRORS * errors) & (difference > LEAST)).any()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "verdicts.json"
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = {row["seed"]: row for row in json.loads(path.read_text())} if path.exists() else {}
    with contextlib.suppress(KeyboardInterrupt):
        for seed in range(arguments.first, arguments.first + arguments.problems):
            rows[seed] = compare(seed)
            path.write_text(json.dumps(list(rows.values()), indent=1))
            if rows[seed].get("contradicted"):
                print("contradicted:", json.dumps(rows[seed]), flush=True)
    print("sampler | runs | converged | contradicted | 95 % interval of the share")
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for row in rows.values():
        for key in (row["sampler"], "all"):
            added = (
                "refused" not in row,
                row.get("converged", False),
                row.get("contradicted", False),
            )
            counts[key] = [a + b for a, b in zip(counts[key], added, strict=True)]
    for name, (runs, converged, wrong) in counts.items():
        low = beta.ppf(0.025, wrong, converged - wrong + 1) if wrong else 0.0
        high = beta.ppf(0.975, wrong + 1, converged - wrong)
        print(name, runs, converged, wrong, f"{low:.3f} to {high:.3f}", sep=" | ")


if __name__ == "__main__":
    main()
