"""Functions of few variables beside those of all: the truth is drawn from their prior.

A component is drawn by its prior probability: functions of all variables, or of a set of them, its
rate, and a noise. The average over all sets is the posterior. graphuq has the set that the labels
choose, and its prior probability.
"""

from itertools import combinations

import numpy as np
from scipy.special import comb, log_ndtr, logsumexp, ndtr

import graphuq as gq
from graphuq.models import Labels, Mixture, Term
from graphuq.models.few_variables import with_few_variables

N_ROWS, N_VARIABLES = 80, 5
NOISES = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
RATES = [0.5, 2.0, 8.0]
TABLE = np.random.default_rng(0).random((N_ROWS, N_VARIABLES))


def differences():
    """Return |x_v − x'_v| of each variable, 1 on average over pairs."""
    apart = np.abs(TABLE.T[:, :, None] - TABLE.T[:, None, :])
    return apart / apart.sum(axis=(1, 2), keepdims=True) * (N_ROWS * (N_ROWS - 1))


def covariances_of_all():
    """Return covariances and prior probabilities: of all variables first, then of each set."""
    apart = differences()
    found, shares = [np.exp(-0.5 * apart.mean(axis=0))], [0.5]
    for size in range(1, N_VARIABLES + 1):
        for some in combinations(range(N_VARIABLES), size):
            for rate in RATES:
                found.append(np.exp(-rate * apart[list(some)].mean(axis=0)))
                shares.append(0.5 / (N_VARIABLES * comb(N_VARIABLES, size) * len(RATES)))
    return np.array(found), np.array(shares)


def averaged_over_sets(covariances, shares, labelled, signs):
    """Return the probability of the class +1 in each row, averaged over components and noises."""
    logs, answers = [], []
    for noise in NOISES:
        scaled = covariances / noise**2
        evidence, pull, inner = propagated(scaled[:, labelled][:, :, labelled], signs)
        to_labels = scaled[:, :, labelled]
        mean = np.einsum("mtn,mn->mt", to_labels, pull)
        variance = 1 / noise**2 - np.einsum("mtn,mtn->mt", to_labels @ inner, to_labels)
        logs.append(evidence + np.log(shares))
        answers.append(ndtr(mean / np.sqrt(1 + np.maximum(variance, 0.0))))
    weights = np.exp(np.array(logs) - logsumexp(logs))
    return np.einsum("gm,gmt->t", weights, answers)


def propagated(k, y, n_sweeps=60):
    """Return log evidences, α and A of a probit by expectation propagation, without the library.

    With k* = K(x, labels) the mean at x is k* α, and the variance K(x, x) − k* A k*ᵀ.
    """
    eye, (n_components, n) = np.eye(len(y)), k.shape[:2]
    tau, nu = np.zeros((2, n_components, n))
    for sweep in range(n_sweeps):
        root = np.sqrt(tau)
        inner = root[:, :, None] * np.linalg.inv(eye + root[:, :, None] * k * root[:, None, :])
        inner = inner * root[:, None, :]
        spread = np.einsum("mii->mi", k) - np.einsum("mij,mji->mi", k @ inner, k)
        pull = nu - np.einsum("mij,mj->mi", inner, np.einsum("mij,mj->mi", k, nu))
        mean = np.einsum("mij,mj->mi", k, pull)
        cavity = np.maximum(1 / spread - tau, 1e-10)
        v, m = 1 / cavity, (mean / spread - nu) / cavity
        z = y * m / np.sqrt(1 + v)
        log_z = log_ndtr(z)
        ratio = np.exp(-(z**2) / 2 - log_z) / np.sqrt(2 * np.pi)
        tilted = v - v**2 * ratio * (z + ratio) / (1 + v)
        new_tau = np.maximum(1 / tilted - cavity, 1e-12)
        new_nu = (m + y * v * ratio / np.sqrt(1 + v)) / tilted - m * cavity
        moved = max(np.abs(new_tau - tau).max(), np.abs(new_nu - nu).max())
        if moved < 1e-4:
            break
        share = 0.7 if sweep else 1.0
        tau, nu = tau + share * (new_tau - tau), nu + share * (new_nu - nu)
    at, width = nu / tau, v + 1 / tau
    sites = log_z + 0.5 * np.log(2 * np.pi * width) + 0.5 * (m - at) ** 2 / width
    whole = k + eye / tau[:, :, None]
    quadratic = (at * np.linalg.solve(whole, at[:, :, None])[:, :, 0]).sum(axis=1)
    gaussian = np.linalg.slogdet(whole)[1] + quadratic + n * np.log(2 * np.pi)
    return sites.sum(axis=1) - 0.5 * gaussian, pull, inner


def of_chosen_set(basis, labelled, signs, free):
    """Return the same of graphuq, with the set that labels choose; it has no price if ``free``."""
    own = with_few_variables(basis, Labels(labelled, (signs > 0).astype(int), 2))
    odds = [1.0, 1.0 if free else np.exp(own.blocks[-1].log_prior)]
    terms = [Term(1 / noise, block=block.name) for block in own.blocks for noise in NOISES]
    prior = Mixture(terms, gq.Categorical(np.repeat(odds, len(NOISES))))
    likelihood = gq.likelihoods.Probit(1.0, 2, random_labels=True)
    posterior = gq.Posterior(own, prior, likelihood, labelled, signs)
    return gq.infer(posterior, "expectation-propagation").probabilities[:, 1]


def simulated(n_labels, n_runs, free=False):
    """Return accuracy less certainty, and log score, of both answers in each run, shape (2, n, 2).

    The first answer is the average over all sets, the second that of graphuq.
    """
    basis = gq.Basis.of(gq.graphs.knn_graph(TABLE), n_eigenpairs=5).with_blocks(["exponential"])
    covariances, shares = covariances_of_all()
    roots = np.linalg.cholesky(covariances + 1e-9 * np.eye(N_ROWS))
    rng, found = np.random.default_rng(n_labels), []
    while len(found) < n_runs:
        u = roots[rng.choice(len(shares), p=shares)] @ rng.normal(size=N_ROWS)
        classes = np.where(u + rng.choice(NOISES) * rng.normal(size=N_ROWS) > 0, 1.0, -1.0)
        labelled = np.sort(rng.choice(N_ROWS, n_labels, replace=False))
        signs, others = classes[labelled], np.setdiff1d(np.arange(N_ROWS), labelled)
        if len(np.unique(signs)) < 2:  # refused; what is drawn depends on the labels alone
            continue
        answers = [
            averaged_over_sets(covariances, shares, labelled, signs),
            of_chosen_set(basis, labelled, signs, free),
        ]
        right = [np.where(classes > 0, p, 1 - p)[others] for p in answers]
        certain = [np.maximum(p, 1 - p)[others].mean() for p in answers]
        found.append(
            [[(p > 0.5).mean() - c, -np.log(p).mean()] for p, c in zip(right, certain, strict=True)]
        )
    return np.swapaxes(found, 0, 1)
