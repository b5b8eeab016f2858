"""Fit the default hyperprior: probabilities of Matérn components, learnt from a corpus.

    python benchmarks/fit_hyperprior.py collect       # an hour: one file a data set
    python benchmarks/fit_hyperprior.py fit           # leave-one-data-set-out scores, and the table

`collect` computes, for each set, number of labels a class and draw of labels, the evidence of each
component and its class probabilities at 200 other nodes, from exact draws. `fit` maximises the mean
log probability that the mixture, weighted by evidence, gives to the true classes. Sets that are
kept for judging have no part in it (`corpus.KEPT_FOR_JUDGING`).

Labels are drawn class by class, so that their counts say nothing about class shares. The likelihood
that says so is ``∏ p(y_j | u_j) / ∏ s_k(u)^n_k``, with s_k the share of class k over the nodes and
n_k its number of labels. `collect` weighs draws by ``∏ s_k^(a − n_k)``, with a prior density of the
shares proportional to ``∏ s_k^a``, for some a.
"""

import argparse
import itertools
import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import corpus
import graphuq as gq
from corpus_scores import N_BINS
from graphuq.classifier.options import build_graph
from graphuq.inference.model_average.component_chains import ComponentChains
from graphuq.inference.model_average.proposals import Proposals
from graphuq.models.learnt_odds import eigenvalue_of_rank, features
from graphuq.results.summaries.random_label import random_label_shares
from peers import RESULTS, ROOT

RANKS, ALPHAS = (1, 2, 4, 8, 16, 32, 64), (2.0, 5.0)
NOISES, CONSTANTS = (0.03, 0.1, 0.3, 1.0, 3.0), (0, 1)
COMPONENTS = np.array(list(itertools.product(RANKS, ALPHAS, NOISES, CONSTANTS)))
PSEUDO_LABELS = (1.0, 2.0, np.inf)  # a; at a ≥ n_k the class shares are left in the likelihood
RATES, N_DRAWS, N_TEST = (1, 2, 5, 20), 4, 200
N_SAMPLES = {True: 128, False: 64}  # exact draws of a component, for two classes and for more
BEHIND = 12.0  # a component this far behind in log evidence has no draws
MAX_LABELS = 100
FOLDER = RESULTS / "hyperprior"
TABLE = ROOT / "src" / "graphuq" / "models" / "learnt_odds.json"
SMALLEST = 1e-5  # probabilities are at least this in the score
BASE_PENALTY, SLOPE_PENALTY = 4e-4, 2e-3  # ridge penalties of the two parts of the fit
KEPT_PROBABILITY = 1e-3  # largest prior probability in any run, below which a component is dropped


def collect(part, n_parts):
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in corpus.NAMES[part::n_parts]:
        path = FOLDER / f"{corpus.NAMES.index(name):02d}.pickle"
        if path.exists():
            continue
        X, classes = corpus.load(name)
        graph = X if isinstance(X, gq.graphs.Graph) else build_graph("knn", X, "auto", "auto", None)
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=min(150, graph.n_nodes))
        runs = [
            run(spectrum, classes, rate, draw)
            for rate in RATES
            if rate * (classes.max() + 1) <= MAX_LABELS
            for draw in range(N_DRAWS)
        ]
        path.write_bytes(pickle.dumps({"name": name, "runs": runs}))
        print(name, len(runs), flush=True)


def run(spectrum, classes, rate, draw):
    """Return evidence and predictive probabilities of every component for one draw of labels."""
    n_classes = int(classes.max()) + 1
    labelled = corpus.draw_labels(classes, rate, draw)
    others = np.setdiff1d(np.arange(len(classes)), labelled)
    test = np.random.default_rng(draw).permutation(others)[:N_TEST]
    terms = [
        gq.models.Term(
            1 / noise,
            gq.priors.Matern(
                tau=float(np.sqrt(eigenvalue_of_rank(spectrum, int(rank)))),
                alpha=float(alpha),
                include_constant=bool(constant) or None,
            ),
        )
        for rank, alpha, noise, constant in COMPONENTS
    ]
    prior = gq.models.Mixture(terms, gq.Categorical(np.ones(len(terms))))
    labels = classes[labelled] if n_classes > 2 else 2 * classes[labelled] - 1
    likelihood = gq.likelihoods.Probit(1.0, n_classes, random_labels=True)
    proposals = Proposals(gq.Posterior(spectrum, prior, likelihood, labelled, labels))
    rows = np.asarray(spectrum.eigenvectors[test]) * spectrum.node_scale[test, None]
    evidence = np.array([one.log_evidence for one in proposals.components])
    kept = np.flatnonzero(evidence >= evidence.max() - BEHIND)
    counts = np.bincount(classes[labelled], minlength=n_classes)
    found = [of_component(proposals, m, rows, counts, draw) for m in kept]
    logs, probability = (np.stack(arrays, axis=1) for arrays in zip(*found, strict=True))
    return {
        "rate": rate,
        "features": features(spectrum, n_classes, len(labelled)),
        "components": kept,
        "evidence": evidence[kept] + logs,  # (values of a, components)
        "probability": probability.astype(np.float32),  # (values of a, components, nodes, classes)
        "classes": classes[test],
    }


def of_component(proposals, m, rows, counts, seed):
    """Return log factors of the evidence, and class probabilities, for each value of a."""
    one, n_classes = proposals.components[m], len(counts)
    rng, n = np.random.default_rng([seed, m]), N_SAMPLES[n_classes == 2]
    only, place = np.zeros(1), np.zeros(1, dtype=int)
    chains = ComponentChains(
        [one], only, place, proposals.codes, n_classes, proposals.noise_std, seed
    )
    _, draws = chains.propose(rng, chains.start(rng), n)
    u = np.einsum("skl,nl->nks", draws.coefficients.reshape(n, -1, rows.shape[1]), rows)
    if n_classes == 2:  # one field: as two of opposite sign, with noise of half the variance
        u = np.concatenate([-u, u], axis=1) / np.sqrt(2.0)
    shares = random_label_shares(u, np.ones((len(u), 1)), n)  # (nodes, draws, classes)
    powers = np.minimum(np.array(PSEUDO_LABELS)[:, None] - counts, 0.0)
    logs = powers @ np.log(np.maximum(shares.mean(axis=0), SMALLEST)).T
    p = np.maximum(np.einsum("as,nsk->ank", softmax(logs, axis=1), shares), SMALLEST)
    return logsumexp(logs, axis=1) - np.log(n), p / p.sum(axis=2, keepdims=True)


def design():
    """Return what the log probabilities are linear in: constants, and multiples of features."""
    rank, alpha, noise, constant = (np.unique(c, return_inverse=True)[1] for c in COMPONENTS.T)
    r, a, n, c = rank / 3 - 1, alpha - 0.5, noise / 2 - 1, constant - 0.5
    pairs = [r * n, r * a, n * a, c * r, c * n, c * a]
    base = [np.eye(len(RANKS))[rank], np.eye(len(NOISES))[noise], np.stack([a, c, *pairs], axis=1)]
    return np.hstack(base), np.stack([r, r**2, n, n**2, a, c], axis=1)


def read(path, pseudo_labels):
    """Return the runs of a data set with the value a of two classes, or that of more."""
    stored = pickle.loads(path.read_bytes())
    for run in stored["runs"]:
        place = PSEUDO_LABELS.index(pseudo_labels[run["probability"].shape[-1] > 2])
        chosen = {key: run[key][place] for key in ("evidence", "probability")}
        yield {**run, **chosen, "name": stored["name"]}


class Fit:
    """Mixture weights of all runs as a function of the coefficients."""

    def __init__(self, pseudo_labels):
        self.base, self.slope = design()
        self.rows = [
            row for path in sorted(FOLDER.glob("*.pickle")) for row in read(path, pseudo_labels)
        ]
        n_rows = len(self.rows)
        x = np.array([row["features"] for row in self.rows])
        self.center, self.unit = x.mean(axis=0), x.std(axis=0)
        self.x = (x - self.center) / self.unit
        self.evidence = np.full((n_rows, len(COMPONENTS)), -1e3)
        self.true = np.ones((n_rows, len(COMPONENTS), N_TEST // 2))
        self.weight = np.zeros((n_rows, N_TEST // 2))
        for i, row in enumerate(self.rows):
            self.evidence[i, row["components"]] = row["evidence"]
            at = np.arange(len(row["classes"]))
            own = row["probability"][:, at, row["classes"]][:, ::2]
            self.true[i, row["components"], : own.shape[1]] = own
            self.weight[i, : own.shape[1]] = 1 / own.shape[1]
        keys = [(row["name"], row["rate"]) for row in self.rows]
        self.weight /= np.array([keys.count(key) for key in keys])[:, None]
        self.names = np.array([row["name"] for row in self.rows])

    def log_prior(self, theta, x):
        n_base = self.base.shape[1]
        slopes = theta[n_base:].reshape(x.shape[1], -1)
        return self.base @ theta[:n_base] + (x @ slopes) @ self.slope.T

    def fit(self, kept):
        arrays = [jnp.asarray(a[kept]) for a in (self.x, self.evidence, self.true, self.weight)]
        n_base, total = self.base.shape[1], self.weight[kept].sum()

        @jax.jit
        @jax.value_and_grad
        def loss(theta):
            x, evidence, true, weight = arrays
            log_weights = jax.nn.log_softmax(self.log_prior(theta, x) + evidence, axis=1)
            score = jnp.log(jnp.einsum("rm,rmt->rt", jnp.exp(log_weights), true))
            penalty = BASE_PENALTY * (theta[:n_base] ** 2).sum()
            penalty += SLOPE_PENALTY * (theta[n_base:] ** 2).sum()
            return -(weight * score).sum() / total + penalty

        def value(theta):
            found, slope = loss(jnp.asarray(theta))
            return float(found), np.asarray(slope, dtype=float)

        start = np.zeros(n_base + self.x.shape[1] * self.slope.shape[1])
        return minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x

    def probabilities(self, theta, i):
        logs = np.asarray(self.log_prior(theta, self.x[i : i + 1]))[0] + self.evidence[i]
        weights = softmax(logs[self.rows[i]["components"]])
        return np.tensordot(weights, self.rows[i]["probability"], 1)


def fit(pseudo_labels):  # minutes
    jax.config.update("jax_enable_x64", True)
    problem = Fit(pseudo_labels)
    names = np.unique(problem.names)
    fold = dict(zip(names, np.random.default_rng(0).permutation(len(names)) % 8, strict=True))
    own_fold = np.array([fold[name] for name in problem.names])
    held_out = [problem.fit(own_fold != k) for k in range(8)]
    scores, pooled = {}, {rate: np.zeros(N_BINS) for rate in RATES}
    for i, row in enumerate(problem.rows):
        p, codes = problem.probabilities(held_out[own_fold[i]], i), row["classes"]
        curve = gq.scores.reliability_curve(p, codes, n_bins=N_BINS)
        found = (
            gq.scores.log_score(p, codes, floor=0.0),
            gq.scores.accuracy(p, codes),
            curve.expected_calibration_error,
        )
        scores.setdefault((row["rate"], row["name"]), []).append(found)
        confidence, right = p.max(axis=1), p.argmax(axis=1) == codes
        bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
        surplus = np.bincount(bins, confidence - right, N_BINS) / len(codes)
        pooled[row["rate"]] += surplus
    print("leave-sets-out, mean over sets, of draws' means")
    print("labels a class | sets | log score | accuracy | calibration error | of all sets pooled")
    for rate in RATES:
        of_sets = [np.mean(found, axis=0) for key, found in scores.items() if key[0] == rate]
        n_runs = sum(row["rate"] == rate for row in problem.rows)
        error = np.abs(pooled[rate]).sum() / n_runs
        numbers = [*np.mean(of_sets, axis=0), error]
        print(rate, len(of_sets), *np.round(numbers, 3), sep=" | ")
    write(problem, problem.fit(np.ones(len(problem.names), bool)), len(names))


def write(problem, theta, n_sets):
    """Write the table, in terms of features that are not standardised."""
    n_base = problem.base.shape[1]
    slopes = problem.slope @ theta[n_base:].reshape(len(problem.center), -1).T / problem.unit
    base = problem.base @ theta[:n_base] - slopes @ problem.center
    logs = base + np.array([row["features"] for row in problem.rows]) @ slopes.T
    probability = np.exp(logs - logs.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    kept = probability.max(axis=0) >= KEPT_PROBABILITY
    rank, alpha, noise, constant = COMPONENTS[kept].T
    content = {
        "about": f"written by benchmarks/fit_hyperprior.py from {n_sets} data sets",
        "rank": rank.astype(int).tolist(),
        "alpha": alpha.tolist(),
        "noise": noise.tolist(),
        "constant": constant.astype(int).tolist(),
        "base": base[kept].round(4).tolist(),
        "slopes": slopes[kept].round(4).tolist(),
    }
    lines = ",\n".join(f'"{name}": {json.dumps(value)}' for name, value in content.items())
    TABLE.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    print(f"{TABLE.name}: {kept.sum()} components of {len(kept)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("collect", "fit"))
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="part, number of parts")
    parser.add_argument(
        "--pseudo-labels",
        type=float,
        nargs=2,
        default=(1.0, np.inf),
        help="a, for two and for more",
    )
    arguments = parser.parse_args()
    fit(arguments.pseudo_labels) if arguments.step == "fit" else collect(*arguments.part)
