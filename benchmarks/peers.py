"""Draws of labels, data sets and peer methods that several benchmarks share.

This module is not a benchmark.
"""

import os
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

import graphuq as gq

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GRAPHUQ_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results"


def load(name):
    """Return features and true signs of a data set."""
    if name == "two-moons":
        data = gq.datasets.two_moons()
        return data.features, data.signs(1)
    if name == "voting":
        data = gq.datasets.load_voting(DATA)
        return data.features, data.signs("democrat")
    if name.startswith("digits"):  # not used to choose the defaults
        pair = int(name[-2]), int(name[-1])
        data = gq.datasets.load_digits(pair)
        return data.features, data.signs(pair[0])
    pair = int(name[-2]), int(name[-1])
    data = gq.datasets.load_mnist(pair, 2000, folder=DATA)
    return data.features, data.signs(pair[0])


def label_draws(truth, n_labels, n_draws, seed=0):
    """Draw sets of labelled nodes at random, with both classes in each set."""
    rng = np.random.default_rng([seed, n_labels])
    draws = []
    while len(draws) < n_draws:
        nodes = rng.choice(len(truth), n_labels, replace=False)
        if len(np.unique(truth[nodes])) == 2:
            draws.append(nodes)
    return draws


def graphlearning_weights(features, n_neighbors=10):
    """Return the default graph of GraphLearning, with exact neighbours."""
    import graphlearning

    index = NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(features)
    distances, indices = index.kneighbors(features)
    return graphlearning.weightmatrix.knn(features, n_neighbors, knn_data=(indices, distances))


def peers(features, truth):
    """Return the peer methods by name.

    A method is a function of labelled nodes and their signs; it returns label means in [−1, 1].
    Each method has its own default graph. LabelSpreading gives probabilities. Laplace learning
    gives scores that sum to one. Scores of Poisson learning have any sign and size; see
    `best_slope`.
    """

    def spreading(n_neighbors):
        def run(nodes, signs):
            y = np.full(len(features), -1)
            y[nodes] = signs > 0
            model = LabelSpreading(kernel="knn", n_neighbors=n_neighbors).fit(features, y)
            share = np.nan_to_num(model.label_distributions_, nan=0.5)
            total = share.sum(axis=1)
            positive = np.where(total > 0, share[:, 1] / np.where(total > 0, total, 1), 0.5)
            return 2 * positive - 1

        return run

    methods = {
        "LabelSpreading (7)": spreading(7),
        "LabelSpreading (20)": spreading(min(20, len(features) - 1)),
    }
    try:
        import graphlearning
    except ImportError:
        print("GraphLearning is not installed: pip install graphlearning annoy")
        return methods
    weights = graphlearning_weights(features)

    def laplace(nodes, signs):
        scores = graphlearning.ssl.laplace(weights).fit(nodes, (signs > 0).astype(int))
        return np.clip(scores[:, 1] - scores[:, 0], -1, 1)

    def poisson(nodes, signs):
        scores = graphlearning.ssl.poisson(weights).fit(nodes, (signs > 0).astype(int))
        return best_slope(scores[:, 1] - scores[:, 0], truth, nodes)

    return methods | {"Laplace learning": laplace, "Poisson learning": poisson}


def best_slope(margin, truth, labelled):
    """Return ``tanh(t margin)`` with the t that minimises the log score against the truth.

    This favours the peer, because the truth is unknown in practice.
    """
    margin = margin / (np.abs(margin).mean() or 1.0)
    found = minimize_scalar(
        lambda t: gq.scores.log_score(np.tanh(np.exp(t) * margin), truth, labelled),
        bounds=(-5, 5),
        method="bounded",
    )
    return np.tanh(np.exp(found.x) * margin)


def first_label_means(spectrum, labelled, signs):
    """Return label means by expectation propagation, with fixed hyperparameters."""
    prior, likelihood = gq.priors.Matern(tau=0.25, alpha=4.0), gq.likelihoods.Probit()
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, signs)
    return gq.results.label_mean(gq.infer(posterior, gq.inference.ExpectationPropagation()))
