"""Label means by the papers' formulas, in code that shares nothing with the package."""

import itertools

import numpy as np
from scipy.stats import multivariate_normal


def covariance(weights, n_eigenpairs, tail, laplacian="symmetric"):
    """Return the prior covariance of u on a connected graph.

    Bertozzi et al. 2018, (4), (5), (13).
    """
    n_nodes = len(weights)
    degrees = weights.sum(axis=1)
    if laplacian == "unnormalized":
        operator = np.diag(degrees) - weights
    else:
        operator = np.eye(n_nodes) - weights / np.sqrt(np.outer(degrees, degrees))
    eigenvalues, q = np.linalg.eigh(operator)
    inverse = np.zeros(n_nodes)
    inverse[1:n_eigenpairs] = 1 / eigenvalues[1:n_eigenpairs]
    if tail is not None:
        inverse[n_eigenpairs:] = 1 / tail
    matrix = (q * inverse) @ q.T
    if laplacian == "random-walk":
        scale = 1 / np.sqrt(degrees)
        matrix = scale[:, None] * matrix * scale
    return n_nodes / np.trace(matrix) * matrix


def orthant(matrix, signs, error=1e-6):
    """Return P(signs * x > 0) for x ~ N(0, matrix), to an error that SciPy estimates."""
    signs = np.asarray(signs, dtype=float)
    flipped = signs[:, None] * matrix * signs
    return normal_cdf(np.zeros(len(signs)), flipped, abseps=error, releps=error, maxpts=400_000)


def normal_cdf(limits, matrix, **accuracy):
    """Return P(x < limits) for x ~ N(0, matrix); SciPy 1.17 repeats it exactly, 1.13 does not."""
    law = type(multivariate_normal)(seed=0)  # SciPy 1.13 lets no frozen one have an accuracy
    mean = np.zeros(len(limits))
    return float(law.cdf(limits, mean, matrix, allow_singular=True, **accuracy))


def probit_label_mean(prior, labelled, labels, noise_std, node):
    """Return E sign(u_node), a ratio of orthant probabilities of (u_node, u_L + γ ε)."""
    index = [*labelled, node]
    noisy = prior[np.ix_(index, index)] + np.diag([noise_std**2] * len(labelled) + [0.0])
    evidence = orthant(noisy[:-1, :-1], labels)
    return 2 * orthant(noisy, [*labels, 1]) / evidence - 1


def step_label_mean(prior, labelled, labels, levels, node):
    """Return E sign(u_node), a sum over the signs that u may have at the labelled nodes.

    ``levels[sign, y]`` is the likelihood of a label y where u has that sign.
    """
    if node in labelled:
        index, new = list(labelled), list(labelled).index(node)
    else:
        index, new = [*labelled, node], len(labelled)
    block = prior[np.ix_(index, index)]
    total = mean = 0.0
    for signs in itertools.product([-1, 1], repeat=len(index)):
        likelihood = np.prod([levels[s, y] for s, y in zip(signs, labels, strict=False)])
        weight = likelihood * orthant(block, signs) if likelihood else 0.0
        total += weight
        mean += weight * signs[new]
    return mean / total


def level_set_label_mean(prior, labelled, labels, noise_std, node):
    """Return E sign(u_node) for a level set, where a label on the wrong side costs 2/γ²."""
    wrong = np.exp(-2 / noise_std**2)
    levels = {(1, 1): 1, (-1, -1): 1, (1, -1): wrong, (-1, 1): wrong}
    return step_label_mean(prior, labelled, labels, levels, node)
