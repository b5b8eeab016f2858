"""The learnt mixture of rings, which have eigenvalues in closed form, against its table."""

import itertools
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
ODDS = json.loads(files("graphuq.models").joinpath("block_odds.json").read_text("utf-8"))
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
@pytest.mark.parametrize(("n_classes", "n_labels"), [(2, 4), (3, 12), (5, 200), (32, 64)])
def test_components_and_their_probabilities_are_those_of_the_table(sizes, n_classes, n_labels):
    """Probabilities depend on K, on J/K, and on the ratio of the eigenvalues of ranks K, K − 1.

    Beyond 26 classes, log K stays and ranks grow.
    """
    found = learnt_mixture(spectrum_of_rings(sizes), n_classes, n_labels)
    values = positive_eigenvalues(sizes)
    gap = values[n_classes - 1] / values[n_classes - 2]  # rank 1 is the first
    k, share = np.log(min(n_classes, 26)), np.log(n_labels / n_classes)
    probability = np.exp(BASE + SLOPES @ [k, k**2, share, share**2, np.log(gap)])
    probability /= probability.sum()
    kept = probability >= 1e-4
    assert kept.sum() > 20
    ranks = np.round(RANK[kept] * max(1, n_classes / 26)).astype(int)
    of_rank = values[np.minimum(ranks, len(values)) - 1]
    assert all(len(terms) == 1 for terms in found.components)
    terms, logs = [own[0] for own in found.components], found.log_probabilities
    # A graph without features has ten steep ones more, with odds of their own.
    steep, terms = terms[-10:], terms[:-10]
    assert {(term.prior.alpha, 1 / term.scale) for term in steep} == set(
        itertools.product((16.0, 64.0), (0.03, 0.1, 0.3, 1.0, 3.0))
    )
    np.testing.assert_allclose([term.prior.tau**2 for term in steep], values[0], rtol=1e-8)
    odds = np.exp(ODDS["steep"] @ np.array([1.0, share, k]))
    np.testing.assert_allclose(np.exp(logs[-10:]), odds / 10 / (1 + odds))
    priors = [term.prior for term in terms]
    np.testing.assert_allclose([prior.tau**2 for prior in priors], of_rank, rtol=1e-8)
    np.testing.assert_array_equal([prior.alpha for prior in priors], ALPHA[kept])
    constants = [bool(prior.include_constant) for prior in priors]
    np.testing.assert_array_equal(constants, CONSTANT[kept])
    np.testing.assert_allclose([term.scale for term in terms], 1 / NOISE[kept])
    expected = probability[kept] / probability[kept].sum() / (1 + odds)
    np.testing.assert_allclose(np.exp(logs[:-10]), expected, rtol=1e-6)


@pytest.mark.parametrize(("n_classes", "n_labels"), [(2, 2), (3, 45), (2, 400)])
def test_odds_of_blocks_are_those_of_their_table(n_classes, n_labels):
    """``exp(a + b log(J/K) + c log K)`` against the graph; components of a block share them."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    basis = gq.Basis(spectrum_of_rings((60,))).with_functions(rows)
    found = learnt_mixture(basis, n_classes, n_labels)
    probability, blocks = np.exp(found.log_probabilities), np.array(found.blocks)
    table = {block: own for block, own in ODDS.items() if block != "steep"}
    assert set(blocks) == {"eigenpairs", *table}
    share = np.log(n_labels / n_classes)
    for block, (a, b, c) in table.items():
        own = probability[blocks == block]
        odds = own.sum() / probability[blocks == "eigenpairs"].sum()
        np.testing.assert_allclose(odds, np.exp(a + b * share + c * np.log(n_classes)))
        if block != "whitened graph":
            np.testing.assert_allclose(own, own[0])
    assert len(found.on_features) - found.on_features.sum() == (
        np.isin(blocks, ["eigenpairs", "whitened graph"]).sum()
    )


def test_a_second_graph_has_the_same_components_on_its_own_eigenvalues():
    rows = np.random.default_rng(0).normal(size=(60, 2)) @ [[1.0, 0.95], [0.0, 0.1]]
    basis = gq.Basis.of(gq.graphs.knn_graph(rows))
    found = learnt_mixture(basis, 2, 6)
    second = [terms[0] for terms in found.components if terms[0].block == "whitened graph"]
    alone = learnt_mixture(basis.blocks[-1].spectrum, 2, 6)
    priors = [terms[0].prior for terms in alone.components]
    assert [term.prior for term in second] == priors[:-10]  # without the ten steep ones
    own = np.exp(found.log_probabilities)[np.array(found.blocks) == "whitened graph"]
    expected = np.exp(alone.log_probabilities[:-10])
    np.testing.assert_allclose(own / own.sum(), expected / expected.sum())
