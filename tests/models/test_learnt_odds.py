"""The learnt mixture of rings, which have eigenvalues in closed form, against its table."""

import json
from importlib.resources import files

import numpy as np
import pytest
from scipy.linalg import block_diag

import graphuq as gq
from graphuq.models.learnt_odds import learnt_mixture

TABLE = json.loads(files("graphuq.models").joinpath("learnt_odds.json").read_text("utf-8"))
RANK, ALPHA, NOISE, CONSTANT, BASE, SLOPES = (
    np.array(TABLE[name]) for name in ("rank", "alpha", "noise", "constant", "base", "slopes")
)
KEPT = 40  # eigenpairs
pytestmark = pytest.mark.filterwarnings("ignore:.*components")


def spectrum_of_rings(sizes):
    rings = [np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0) for n in sizes]
    graph = gq.graphs.from_adjacency(block_diag(*rings))
    return gq.laplacian_spectrum(graph, n_eigenpairs=KEPT)


def positive_eigenvalues(sizes):
    """Return ``1 − cos(2πk/n)`` of all rings in increasing order, as many as are computed."""
    values = np.concatenate([1 - np.cos(2 * np.pi * np.arange(1, n) / n) for n in sizes])
    return np.sort(values)[: KEPT - len(sizes)]


@pytest.mark.parametrize("sizes", [(60,), (40, 27)], ids=["connected", "two components"])
@pytest.mark.parametrize(("n_classes", "n_labels"), [(2, 4), (3, 12), (5, 200)])
def test_components_and_their_probabilities_are_those_of_the_table(sizes, n_classes, n_labels):
    """Probabilities depend on K, on J/K, and on the ratio of the eigenvalues of ranks K, K − 1."""
    found = learnt_mixture(spectrum_of_rings(sizes), n_classes, n_labels)
    values = positive_eigenvalues(sizes)
    gap = values[n_classes - 1] / values[n_classes - 2]  # rank 1 is the first
    k, share = np.log(n_classes), np.log(n_labels / n_classes)
    probability = np.exp(BASE + SLOPES @ [k, k**2, share, share**2, np.log(gap)])
    probability /= probability.sum()
    kept = probability >= 1e-4
    assert kept.sum() > 20
    of_rank = values[np.minimum(RANK[kept], len(values)) - 1]
    assert all(len(terms) == 1 for terms in found.components)
    priors = [terms[0].prior for terms in found.components]
    np.testing.assert_allclose([prior.tau**2 for prior in priors], of_rank, rtol=1e-8)
    np.testing.assert_array_equal([prior.alpha for prior in priors], ALPHA[kept])
    constants = [bool(prior.include_constant) for prior in priors]
    np.testing.assert_array_equal(constants, CONSTANT[kept])
    scales = [terms[0].scale for terms in found.components]
    np.testing.assert_allclose(scales, 1 / NOISE[kept])
    expected = probability[kept] / probability[kept].sum()
    np.testing.assert_allclose(np.exp(found.log_probabilities), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("n_classes", "n_labels", "odds"), [(2, 10, 0.25), (3, 45, 0.75), (2, 400, 10.0)]
)
def test_odds_of_features_are_a_twentieth_of_the_labels_a_class(n_classes, n_labels, odds):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    basis = gq.Basis(spectrum_of_rings((60,))).with_functions(rows)
    found = learnt_mixture(basis, n_classes, n_labels)
    of_each = np.exp(found.log_probabilities)[found.on_features]
    np.testing.assert_allclose(of_each, odds / (1 + odds) / 5)
