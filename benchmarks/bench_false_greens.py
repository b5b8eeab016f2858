"""How often does a converged or a green answer lie outside its stated error?

Question: on random problems whose posterior is known, how many answers of `GraphClassifier` that
call themselves converged, close or green are farther from it than they say?

How to run:

    python benchmarks/bench_false_greens.py [--problems 600] [--first 0]

Problems: 4 to 24 nodes, 2 to 6 classes, 2 to 8 labels, which follow the graph or chance. Graphs are
those of random features (with clusters, rows at one place, features of other scales), and given
ones: paths, stars, joined stars, complete graphs, graphs in two parts, and weights over eight
orders of magnitude. Half of the answers are those of the default, on the average over its
components; the others are of one Matérn prior and a probit, by the default method, expectation
propagation or Laplace's.

The known posterior is that of `exact_posterior.py`. The prior of one Matérn is computed there, too.
The components of an average, their odds and the power of its probabilities are those of the fit.
Problems whose own standard error is above 0.004 are not judged.

The stated error: for chains five standard errors (`Result.mcse`). For draws of an average that says
it is approximate, 0.05 beside these. For an approximation `probability_error`: the largest error,
or the root mean square one for an average of several classes. Six standard errors of the known
posterior are allowed.

Prints: for each kind of answer the problems, those judged, those that claim to be right, those of
them outside, and those off by more than 0.05; the 95 % interval of the share that is outside
(Clopper & Pearson). "Green" are answers of which all checks are green.

Results go to ``benchmarks/results/false_greens.json``, after each problem.
"""

import argparse
import contextlib
import json
import time
import warnings

import numpy as np
from scipy import sparse
from scipy.stats import beta

import graphuq as gq
from exact_posterior import covariance_of, posterior_of
from graphuq.results.diagnostics import Diagnostics
from peers import RESULTS

PATH = RESULTS / "false_greens.json"
MAX_OWN_ERROR, N_OWN_ERRORS, ROUNDING = 4e-3, 6.0, 2e-4
N_ERRORS, CLOSE = 5.0, 0.05
N_POINTS, N_AVERAGED = 512, 256  # of one field, and of each component of an average
KINDS = ("features", "path", "star", "joined stars", "complete", "two parts", "magnitudes")
METHODS = ("auto", "auto", "auto", "expectation-propagation", "laplace")


def weights_of(kind, n, rng):
    """Return a dense matrix of weights."""
    W = np.zeros((n, n))
    if kind == "path":
        W[np.arange(n - 1), np.arange(1, n)] = 1.0
    elif kind == "star":
        W[0, 1:] = rng.uniform(0.1, 1.0, n - 1)
    elif kind == "joined stars":
        W[0, 1 : n // 2] = W[n // 2, n // 2 + 1 :] = 1.0
        W[0, n // 2] = 10.0 ** rng.uniform(-4, 0)
    elif kind == "complete":
        W = np.triu(np.full((n, n), 1.0) if rng.uniform() < 0.5 else rng.uniform(size=(n, n)), 1)
    elif kind == "two parts":
        W = np.triu(rng.uniform(size=(n, n)), 1)
        W[: n // 2, n // 2 :] = 0
    else:
        W = np.triu(10.0 ** rng.uniform(-8, 0, (n, n)), 1)
    return W + W.T


def problem(seed):
    """Return kind, data, labels as codes or −1, number of classes, and a random generator."""
    rng = np.random.default_rng([seed, 63])
    n_classes = int(rng.choice([2, 2, 2, 3, 3, 4, 5, 6]))
    n = int(rng.integers(max(4, n_classes + 1), 25))
    kind = str(rng.choice(KINDS))
    if kind == "features":
        data = rng.normal(size=(n, int(rng.integers(1, 4))))
        if rng.uniform() < 0.4:
            data += 5.0 * rng.integers(0, n_classes, n)[:, None]
        if rng.uniform() < 0.3:
            data[rng.integers(0, n, n // 3)] = data[0]
        if rng.uniform() < 0.3:
            data *= 10.0 ** rng.uniform(-3, 3, data.shape[1])
    else:
        data = weights_of(kind, n, rng)
    n_labels = int(rng.integers(n_classes, min(n, 9)))
    nodes = np.sort(rng.permutation(n)[:n_labels])
    codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_labels - n_classes))
    codes = np.sort(codes) if rng.uniform() < 0.5 else rng.permutation(codes)
    y = np.full(n, -1)
    y[nodes] = codes
    return kind, data, y, n_classes, rng


def fitted(kind, data, y, rng, seed):
    """Return a fitted classifier and a word for what was asked of it."""
    graph = "knn" if kind == "features" else "precomputed"
    if rng.uniform() < 0.5:
        given = {"model": gq.models.Average("random")}
        word = "average"
    else:
        tau, alpha = float(rng.uniform(0.1, 1.0)), float(rng.uniform(1, 4))
        likelihood = gq.likelihoods.Probit(float(rng.choice([0.03, 0.1, 0.3, 1.0])))
        given = {"model": gq.models.Fixed(gq.priors.Matern(tau, alpha), likelihood)}
        given["inference"] = word = str(rng.choice(METHODS))
    return gq.GraphClassifier(graph, random_state=seed, **given).fit(data, y), word


def exact(classifier, y, n_classes, seed):
    """Return the probabilities that should have been found, and the largest of their errors."""
    posterior = classifier.result_.posterior
    labelled = np.flatnonzero(y >= 0)
    own = labelled, y[labelled], n_classes
    if not posterior.is_weighted:
        prior, noise_std = posterior.prior, float(posterior.likelihood.latent_noise_std)
        weights = classifier.graph_.weights
        weights = weights.toarray() if sparse.issparse(weights) else np.asarray(weights)
        covariances = [covariance_of(weights, float(prior.tau), float(prior.alpha))]
        return posterior_of(covariances, [0.0], noise_std, *own, False, N_POINTS, seed)
    stds, odds = np.asarray(posterior.modes.stds), posterior.prior.log_probabilities
    used = np.flatnonzero(odds > -np.inf)
    basis = posterior.spectrum
    rows = np.asarray(basis.basis) * basis.node_scale[:, None]
    covariances = [(rows * stds[m] ** 2) @ rows.T for m in used]
    noise_std = float(posterior.likelihood.latent_noise_std)
    found = posterior_of(covariances, odds[used], noise_std, *own, True, N_AVERAGED, seed)
    p = found.probabilities**posterior.sharpness
    return found._replace(
        probabilities=p / p.sum(axis=1, keepdims=True), errors=posterior.sharpness * found.errors
    )


def compare(seed):
    """Return what one problem shows, as plain data."""
    kind, data, y, n_classes, rng = problem(seed)
    row = {"seed": seed, "kind": kind, "classes": n_classes, "nodes": len(y)}
    try:
        classifier, word = fitted(kind, data, y, rng, seed)
    except gq.errors.GraphuqError as error:
        return row | {"refused": str(error)[:200]}
    result = classifier.result_
    diagnostics, level = result.diagnostics, result.trust.checks["convergence"].level
    row |= {"asked": word, "close": level == "green", "green": result.trust.level == "green"}
    known = exact(classifier, y, n_classes, seed)
    if not known.errors.max() <= MAX_OWN_ERROR:
        return row | {"judged": False}
    away = np.abs(result.probabilities - known.probabilities)
    allowed = N_OWN_ERRORS * known.errors + ROUNDING
    if isinstance(diagnostics, Diagnostics):
        approximate = diagnostics.is_approximate
        row["answer"] = "approximate draws" if approximate else "chains"
        claims = bool(diagnostics.converged)
        outside = bool((away > N_ERRORS * result.mcse + approximate * CLOSE + allowed).any())
    else:
        row["answer"], stated = "approximation", diagnostics.probability_error
        claims = row["close"]
        if result.posterior.is_weighted and n_classes > 2:
            size = float(np.sqrt((away**2).sum(axis=1).mean() / 2))
        else:
            size = float((away - allowed).max())
        outside = stated is not None and size > stated + ROUNDING
        row["stated"] = stated
    return row | {
        "judged": True, "claims": claims, "outside": outside,
        "largest": float(away.max()), "own_error": float(known.errors.max()),
        "far": bool((away > CLOSE + allowed).any()), "mcse": float(result.mcse.max()),
    }  # fmt: skip


def share(wrong, n):
    """Return the 95 % interval of a share as text."""
    low = beta.ppf(0.025, wrong, n - wrong + 1) if wrong else 0.0
    high = beta.ppf(0.975, wrong + 1, n - wrong) if wrong < n else 1.0
    return f"{low:.4f} to {high:.4f}"


def table(rows):
    """Print the counts."""
    print(f"{len(rows)} problems, {sum('refused' in row for row in rows)} refused")
    print("answer | fits | judged | claim | outside | off by > 0.05 | 95 % interval of outside")
    fits = [row for row in rows if "refused" not in row]
    names = sorted({(row["asked"], row["answer"]) for row in fits if row.get("judged")})
    groups = [
        (f"{asked}: {answer}, {word}", [
            row for row in fits if row["asked"] == asked and row.get("answer") == answer
            and (row["classes"] == 2) == (word == "two classes")
        ])
        for asked, answer in names for word in ("two classes", "several classes")
    ]  # fmt: skip
    for name, own in [*groups, ("all", fits)]:
        judged = [row for row in own if row.get("judged")]
        claim = [row for row in judged if row["claims"]]
        wrong, far = (sum(row[key] for row in claim) for key in ("outside", "far"))
        if claim:
            interval = share(wrong, len(claim))
            print(name, len(own), len(judged), len(claim), wrong, far, interval, sep=" | ")
    green = [row for row in fits if row.get("judged") and row["claims"] and row["green"]]
    wrong = sum(row["outside"] for row in green)
    print("green", len(green), wrong, sum(row["far"] for row in green), sep=" | ")


def main():
    """Compute the problems and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = {row["seed"]: row for row in json.loads(PATH.read_text())} if PATH.exists() else {}
    with contextlib.suppress(KeyboardInterrupt):
        for seed in range(arguments.first, arguments.first + arguments.problems):
            began = time.perf_counter()
            rows[seed] = compare(seed)
            rows[seed]["seconds"] = time.perf_counter() - began
            PATH.write_text(json.dumps(list(rows.values()), indent=1))
            if rows[seed].get("outside") and rows[seed]["claims"]:
                print("outside:", json.dumps(rows[seed]), flush=True)
    table(list(rows.values()))


if __name__ == "__main__":
    main()
