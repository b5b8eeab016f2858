"""Pools whose numbers tests recompute. This module holds no tests."""

import numpy as np

import graphuq as gq
from graphuq.acquisition.joint_covariance import JointCovariance
from graphuq.acquisition.pool import SHARPNESS, Pool


def random_pool(n_rows=12, n_classes=3, noise_std=0.4, seed=0, scale=1.0):
    """Return a pool whose targets are its candidates and five more rows."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_rows + 5, 6)) * scale
    covariance = root @ root.T + 0.1 * scale**2 * np.eye(n_rows + 5)
    sharpness = SHARPNESS / np.sqrt(np.diagonal(covariance) + noise_std**2)
    p = rng.dirichlet(np.ones(n_classes), n_rows + 5)
    return Pool(
        rows=np.arange(100, 100 + n_rows),
        n_represented=rng.integers(1, 5, n_rows).astype(float),
        probabilities=p[:n_rows],
        target_rows=np.arange(100, 105 + n_rows),
        target_probabilities=p,
        sharpness=sharpness[:n_rows],
        target_sharpness=sharpness,
        joint=JointCovariance(
            factor=np.hstack([root, 0.1**0.5 * scale * np.eye(n_rows + 5)])[:n_rows],
            target_factor=np.hstack([root, 0.1**0.5 * scale * np.eye(n_rows + 5)]),
            own=np.zeros(n_rows),
        ),
        noise_std=noise_std,
        rng=np.random.default_rng(seed),
    )


def softmax(logits):
    """Return exp(logits), normalised over the last axis."""
    shares = np.exp(logits)
    return shares / shares.sum(axis=-1, keepdims=True)


def moved(pool, at, label, known=True):
    """Return probabilities of the targets after a label, one target and class at a time.

    Row ``at`` itself is known, if wished.
    """
    p, new = pool.target_probabilities, np.empty_like(pool.target_probabilities)
    own = pool.probabilities[at]
    information = pool.sharpness[at] ** 2 * max(own * (1 - own))
    left = 1 / (1 / pool.covariance[at, at] + information)  # variance of the field at the row
    for i in range(len(p)):
        logits = np.empty(p.shape[1])
        share = pool.cross_covariance[at, i] / pool.covariance[at, at]
        lost = share**2 * (pool.covariance[at, at] - left)
        later = SHARPNESS / np.sqrt((SHARPNESS / pool.target_sharpness[i]) ** 2 - lost)
        for k in range(p.shape[1]):
            pull = pool.sharpness[at] * ((k == label) - own[k])
            mean = np.log(p[i, k]) / pool.target_sharpness[i]
            logits[k] = later * (mean + pool.cross_covariance[at, i] * pull)
        new[i] = np.eye(p.shape[1])[label] if known and i == at else softmax(logits)
    return new


def result_of(n_classes=2, method="expectation-propagation", labelled=None, **more):
    """Return a result for two moons; every eighth node is labelled by default."""
    moons = gq.datasets.two_moons(80, n_features=2, noise_std=0.05)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=20)
    labelled = np.arange(0, 80, 8) if labelled is None else labelled
    codes = (3 * moons.classes + (moons.features[:, 0] > 0.5)) % n_classes
    signs = 2 * moons.classes - 1
    several = n_classes > 2
    likelihood = gq.likelihoods.Probit(0.5, n_classes)
    labels = (codes if several else signs)[labelled]
    posterior = gq.Posterior(spectrum, gq.priors.Matern(), likelihood, labelled, labels)
    return gq.infer(posterior, method, **more)
