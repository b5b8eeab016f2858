"""Which function of the Laplacian: powers, diffusion, random walk or inverse cosine?

Question: with hyperparameters chosen by evidence, which prior gives the better probabilities?

How to run:

    python benchmarks/bench_kernels.py [--rates 2 10] [--draws 3] [--sets …]

Every prior has the same graph (15 neighbours), 50 eigenpairs, the same labels, a probit whose noise
is chosen with it, and expectation propagation. The largest evidence chooses all hyperparameters,
with their hyperpriors. Scores are those of the unlabelled rows, with probabilities of at least
1e-5.

Results go to ``benchmarks/results/kernels.json``. Prints, for each number of labels a class, the
mean over sets of accuracy, log score, and the log score's difference from Matérn's with its
standard error over sets.
"""

import argparse
import json
import warnings

import numpy as np

import corpus
import graphuq as gq
from corpus_peers import default_graph
from corpus_scores import evaluate
from peers import RESULTS

SETS = [
    "iris", "wine", "breast cancer", "digits", "banana", "segment", "ionosphere", "wisconsin",
    "gaussians, close", "moons, noisy", "spirals, three", "blocks, four", "GunPoint",
    "mnist 4, 9",
]  # fmt: skip
PRIORS = {
    "Matern": gq.priors.Matern(),
    "Diffusion": gq.priors.Diffusion(),
    "RandomWalk": gq.priors.RandomWalk(),
    "InverseLaplacian": gq.priors.InverseLaplacian(),
    "InverseCosine": gq.priors.InverseCosine(),
}


def probabilities(spectrum, prior, labelled, codes):
    n_classes = int(codes.max()) + 1
    likelihood = gq.likelihoods.Probit(0.1, n_classes) if n_classes > 2 else gq.likelihoods.Probit()
    labels = codes[labelled] if n_classes > 2 else 2 * codes[labelled] - 1
    start = gq.Posterior(spectrum, prior, likelihood, labelled, labels)
    best = gq.maximize_evidence(start).posterior
    mean = np.asarray(gq.results.label_mean(gq.infer(best, gq.inference.ExpectationPropagation())))
    return mean if n_classes > 2 else np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=1)


def compute(options):
    rows = []
    for name in options.sets:
        X, codes = corpus.load(name)
        spectrum = gq.laplacian_spectrum(default_graph(X), n_eigenpairs=50)
        for rate in options.rates:
            for draw in range(options.draws):
                labelled = np.sort(corpus.draw_labels(codes, rate, draw))
                for prior, start in PRIORS.items():
                    found = probabilities(spectrum, start, labelled, codes)
                    scores = evaluate(np.maximum(found, 1e-5), codes, labelled)
                    kept = {key: scores[key] for key in ("accuracy", "log")}
                    rows.append({"set": name, "rate": rate, "draw": draw, "prior": prior} | kept)
        print(f"{name}: {len(rows)} rows", flush=True)
    return rows


def means_by_set(rows, prior, rate, score):
    chosen = [row for row in rows if row["prior"] == prior and row["rate"] == rate]
    names = sorted({row["set"] for row in chosen})
    return np.array([np.mean([r[score] for r in chosen if r["set"] == name]) for name in names])


def show(rows):
    for rate in sorted({row["rate"] for row in rows}):
        base = means_by_set(rows, "Matern", rate, "log")
        print(f"\n{rate} labels a class, {len(base)} sets\n")
        print("| prior | accuracy | log score | against Matern |")
        print("|---|---|---|---|")
        for prior in PRIORS:
            log = means_by_set(rows, prior, rate, "log")
            accuracy, gap = means_by_set(rows, prior, rate, "accuracy").mean(), log - base
            error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            print(
                f"| {prior} | {accuracy:.3f} | {log.mean():.3f} | {gap.mean():+.3f} ± {error:.3f} |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[2, 10])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="SET")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = compute(options)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "kernels.json").write_text(json.dumps(rows))
    show(rows)


if __name__ == "__main__":
    main()
