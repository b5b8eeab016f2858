"""Learnt priors beside fixed ones: Chen's models A, B, C, D, E and G, and maximum evidence.

Question: on the same labels, how accurate and how well calibrated is each model, and how long does
it take until R-hat < 1.01, hyperparameters included?

How to run:

    python benchmarks/bench_hierarchy.py [--draws 20] [--data voting moons0.1 mnist49 mnist3459]

The likelihood is probit with γ = 0.1, and softmax for four digits. There are 50 eigenpairs of a
graph of 15 nearest neighbours with self-tuning weights; voting records have the paper's complete
graph. Hyperpriors are log-uniform. The paper has uniform ones, with most of their mass at values
that give all eigenvectors the same variance; `graphuq reproduce chen` uses those.

Prints: for each data set and model, means over draws of labels, with standard errors, of accuracy,
expected calibration error, log score and seconds; the number of runs that converged; and medians
of the learnt hyperparameters.

Results go to ``benchmarks/results/hierarchy.json``.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import graphuq as gq
from peers import RESULTS

DATA = None  # use the folder that GRAPHUQ_DATA names
TAU, ALPHA = gq.LogUniform(0.02, 3.0), gq.LogUniform(0.5, 30.0)
M = gq.DiscreteUniform(3, 50)
FIXED = {"tau": 0.25, "alpha": 4.0}
MODELS = {
    "A: fixed": gq.priors.Matern(**FIXED),
    "B: τ, α": gq.priors.Matern(tau=TAU, alpha=ALPHA),
    "C: τ, α, M": gq.priors.Matern(tau=TAU, alpha=ALPHA, truncation=M),
    "D: scales": gq.priors.EigenScales(**FIXED),
    "E: scales, M": gq.priors.EigenScales(**FIXED, truncation=M),
    "G: f": gq.priors.LearnedSpectrum(),
    "evidence": gq.priors.Matern(**FIXED),
    "evidence, hyperprior": gq.priors.Matern(**FIXED),
}
DATA_SETS = ["voting", "moons0.06", "moons0.1", "moons0.2", "mnist49", "mnist3459"]
# Labels per draw, by the beginning of the data set's name.
LABELS = {"voting": 13, "moons": 20, "mnist49": 40, "mnist3459": 40}


def spectrum_of(name):
    """Return the spectrum, and true signs (two classes) or codes (more classes)."""
    if name == "voting":
        data = gq.datasets.load_voting(DATA)
        graph = gq.graphs.complete_graph(data.features, "gaussian", scale=1.25)
        truth = data.signs("democrat")
    elif name.startswith("moons"):
        data = gq.datasets.two_moons(2000, 100, float(name[5:] or 0.15), rng=0)
        graph, truth = gq.graphs.knn_graph(data.features, 15), data.signs(1)
    else:
        digits = tuple(int(digit) for digit in name.removeprefix("mnist"))
        data = gq.datasets.load_mnist(digits, 4000 // len(digits), n_components=50, folder=DATA)
        graph = gq.graphs.knn_graph(data.features, 15)
        truth = data.signs(digits[0]) if len(digits) == 2 else data.codes()
    return gq.laplacian_spectrum(graph, n_eigenpairs=50), truth


def fit(model, prior, spectrum, labelled, labels, seed):
    """Run the default sampler until it has converged."""
    multiclass = labels.dtype.kind == "i"
    likelihood = gq.likelihoods.Softmax(0.1, 4) if multiclass else gq.likelihoods.Probit(0.1)
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, labels)
    if model.startswith("evidence"):
        hyperprior = model.endswith("hyperprior")  # model="largest-evidence"
        posterior = gq.maximize_evidence(
            posterior, ["tau", "alpha"], hyperprior=hyperprior
        ).posterior
    return gq.infer(posterior, n_samples=4000, rng=seed, precision="float32", stop=gq.Converged())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--data", nargs="+", default=DATA_SETS)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--output", type=Path, default=RESULTS / "hierarchy.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    print(
        "data, labels, model: accuracy, expected calibration error, log score, seconds, each "
        "± standard error; runs that converged; medians of learnt hyperparameters"
    )
    for name in options.data:
        spectrum, truth = spectrum_of(name)
        n_labels = next(n for key, n in LABELS.items() if name.startswith(key))
        for model in options.models:
            found, learnt, converged = [], [], 0
            for draw in range(options.draws):
                rng = np.random.default_rng(draw)
                while True:
                    labelled = rng.choice(len(truth), n_labels, replace=False)
                    if len(np.unique(truth[labelled])) == len(np.unique(truth)):
                        break
                began = time.perf_counter()
                result = fit(model, MODELS[model], spectrum, labelled, truth[labelled], draw)
                seconds = time.perf_counter() - began
                known = gq.scores.where_known(gq.results.label_mean(result), truth, labelled)
                found.append(
                    [
                        gq.scores.accuracy(*known),
                        gq.scores.expected_calibration_error(*known),
                        gq.scores.log_score(*known),
                        seconds,
                    ]
                )
                converged += result.diagnostics.converged
                learnt.append(
                    {
                        k: float(np.median(v))
                        for k, v in result.hyperparameters.items()
                        if v.ndim == 2
                    }
                )
            mean = np.mean(found, axis=0)
            error = np.std(found, axis=0, ddof=1) / np.sqrt(options.draws)
            medians = {k: float(np.median([d[k] for d in learnt])) for k in learnt[0]}
            words = ", ".join(f"{k} {v:.2f}" for k, v in medians.items())
            print(
                f"{name:10} {n_labels:3} {model:21}"
                + "  ".join(f"{m:.4f} ±{e:.4f}" for m, e in zip(mean, error, strict=True))
                + f"  {converged}/{options.draws}  {words}",
                flush=True,
            )
            rows.append(
                {
                    "data": name,
                    "labels": n_labels,
                    "model": model,
                    "converged": converged,
                    "draws": options.draws,
                    **dict(zip(("accuracy", "ece", "log", "seconds"), mean, strict=True)),
                    **{
                        f"{k} s.e.": float(e)
                        for k, e in zip(("accuracy", "ece", "log", "seconds"), error, strict=True)
                    },
                    **medians,
                }
            )
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
