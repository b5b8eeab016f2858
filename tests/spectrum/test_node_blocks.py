"""Blocks of a given graph against dense covariances, and evidence against orthant probabilities."""

import dataclasses
import json
import warnings
from importlib.resources import files

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning, InvalidInput
from graphuq.inference.model_average.components import Components
from graphuq.inference.nested_sites import fit_sites
from graphuq.models import Mixture, Term
from graphuq.models.learnt_odds import FEATURE_NOISES, learnt_mixture
from graphuq.priors import Matern
from graphuq.spectrum.smoothed import columns_of, smoothed, unit_rows

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")

BLOCKS = json.loads(files("graphuq.models").joinpath("block_odds.json").read_text("utf-8"))
N = 30
RNG = np.random.default_rng(0)
UPPER = np.triu(RNG.random((N, N)) < 0.15, 1) * RNG.uniform(0.5, 2, (N, N))
UPPER[:, [4, 5]] = UPPER[[4, 5]] = 0  # isolated nodes
W = UPPER + UPPER.T
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DisconnectedGraphWarning)
    GRAPH = gq.graphs.from_adjacency(sparse.csr_array(W))
OTHER = gq.graphs.ring_graph(N)
WORDS = (RNG.random((N, 12)) < 0.3) * 1.0
WORDS[5] = 0  # neither edges nor words
KINDS = {"dense": RNG.normal(size=(N, 4)) + 3, "sparse": sparse.csr_array(WORDS)}


def dense_smoothed(X, restart):
    """Return ``a Σ_k (1 − a)^k S^k X``, summed; an isolated node keeps its own features."""
    d = W.sum(axis=1)
    root = np.where(d > 0, 1 / np.sqrt(np.where(d > 0, d, 1)), 0)
    S = root[:, None] * W * root + np.diag((d == 0) * 1.0)
    found, term = np.zeros_like(X), restart * X
    for _ in range(2000):
        found, term = found + term, (1 - restart) * (S @ term)
    return found


def dense_covariance(features, restart, power=2):
    """Return ``1 + c (H Hᵀ)^p`` with a mean diagonal of 2."""
    X = features.toarray() if sparse.issparse(features) else features
    present = X.any(axis=1) | (not sparse.issparse(features))
    X = np.where(present[:, None], X - X[present].mean(axis=0), 0)
    H = dense_smoothed(X, restart)
    present = np.abs(H).max(axis=1) > 0
    H = np.where(present[:, None], H - H[present].mean(axis=0), 0)
    length = np.sqrt((H**2).sum(axis=1))
    H = H / np.where(length > 0, length, 1)[:, None]
    K = np.linalg.matrix_power(H @ H.T, power)
    return 1 + K * N / np.trace(K)


@pytest.mark.parametrize("restart", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_smoothed_features_are_the_series_of_walks(kind, restart):
    columns = columns_of(KINDS[kind])
    found = smoothed(columns, GRAPH, restart)
    expected = dense_smoothed(columns, restart)
    np.testing.assert_allclose(found, expected, atol=3e-5 * np.abs(expected).max())
    np.testing.assert_allclose(found[4], columns[4], atol=1e-5)


@pytest.mark.parametrize("restart", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_have_the_covariance_of_smoothed_features(kind, restart):
    F = gq.SmoothedFeatures(KINDS[kind], GRAPH, restart).values
    np.testing.assert_allclose(F @ F.T, dense_covariance(KINDS[kind], restart), atol=2e-3)
    if kind == "sparse":
        assert not F[5, :-1].any()


@pytest.mark.parametrize("power", [1, 3, 17])
@pytest.mark.parametrize("kind", KINDS)
def test_powers_of_features_have_their_covariance(kind, power):
    block = gq.SmoothedFeatures(KINDS[kind], GRAPH, 1.0, power=power)
    expected = dense_covariance(KINDS[kind], 1.0, power)
    np.testing.assert_allclose(block.values @ block.values.T, expected, atol=1e-3)


def test_rows_of_large_features_are_those_of_their_main_directions(monkeypatch):
    X = RNG.normal(size=(N, 3)) @ RNG.normal(size=(3, 60))
    plain = gq.SmoothedFeatures(X, GRAPH).values
    monkeypatch.setattr("graphuq.spectrum.smoothed.MAX_NUMBERS", 100)
    monkeypatch.setattr("graphuq.spectrum.smoothed.N_DIRECTIONS", 4)
    reduced = gq.SmoothedFeatures(X, GRAPH).values
    np.testing.assert_allclose(reduced @ reduced.T, plain @ plain.T, atol=1e-6)


def matern_covariance(graph, tau, alpha):
    """Return the covariance ``(L + τ²)^−α`` of trace N, from all eigenpairs.

    Null vectors have the variance of the smoothest other mode; the only one has none.
    """
    values, vectors = np.linalg.eigh(gq.Laplacian(graph).dense())
    null = values < 1e-9
    variances = (np.where(null, values[~null].min(), values) + tau**2) ** -alpha
    variances = np.where(null & (null.sum() == 1), 0, variances)
    K = vectors @ np.diag(variances) @ vectors.T
    return K * N / np.trace(K)


def orthant(K, y):
    """Return ``log p(y)``, y = sign(u + noise), u ~ N(0, K)."""
    signed = y[:, None] * (K + np.eye(len(y))) * y
    cdf = multivariate_normal(np.zeros(len(y)), signed).cdf(np.zeros(len(y)))
    return float(np.log(cdf))


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_is_that_of_the_dense_covariance(kind):
    """Six labels, given features, smoothed features, another graph, and sums with the first."""
    features = KINDS[kind]
    joined = dataclasses.replace(OTHER, settings={"graph": "weights"})
    graph = gq.graphs.node_graph({"own": joined, "other": GRAPH}, features)
    basis = gq.Basis.of(graph)
    nodes, y = np.array([0, 3, 9, 14, 20, 26]), np.array([1, 1, -1, 1, -1, -1])
    rough = Matern(0.5, 2.0)
    matern = matern_covariance(joined, 0.5, 2.0)
    parts = {
        "features": dense_covariance(features, 1.0) / 2,
        "features over other, 0.1": dense_covariance(features, 0.1) / 2,
        "other": matern_covariance(GRAPH, 0.5, 2.0),
    }
    components, expected = [], []
    for name, K in parts.items():
        prior = rough if name == "other" else None
        for scale in (0.5, 3.0):
            components += [
                [Term(scale, prior, name)],
                [Term(0.7 * scale, rough), Term(scale, prior, name)],
            ]
            expected += [scale**2 * K, (0.7 * scale) ** 2 * matern + scale**2 * K]
    uniform = gq.Categorical(np.ones(len(components)))
    prior = Mixture(components, uniform)
    posterior = gq.Posterior(basis, prior, gq.likelihoods.Probit(1.0), nodes, y)
    given = Components.of(posterior)
    found = np.array([one.log_evidence for one in given.fit(1e-6)])
    dense = np.array([K[np.ix_(nodes, nodes)] for K in expected])
    codes = (y > 0).astype(np.int64)
    same = [one.log_evidence for one in fit_sites(dense, codes, 2, 1.0, 200, 1e-6, None)]
    np.testing.assert_allclose(found, same, atol=2e-3)
    exact = np.array([orthant(K, y) for K in dense])
    np.testing.assert_allclose(found, exact, atol=0.03)  # of expectation propagation
    assert np.ptp(exact) > 0.3  # components differ


def test_blocks_of_a_given_graph_and_their_sums_are_as_probable_as_the_graph():
    """Blocks of tables have odds of their own, and a graph of features those of a second graph."""
    graph = gq.graphs.node_graph(GRAPH, KINDS["sparse"])
    basis = gq.Basis.of(graph)
    prior = learnt_mixture(basis, 2, 10)
    total = {}
    for name, log in zip(prior.blocks, prior.log_probabilities, strict=True):
        total[name] = total.get(name, 0.0) + np.exp(log)
    names = [block.name for block in basis.blocks]
    powers = [f"features, power {p}" for p in (3, 17)]
    over = [f"features over graph, {a}" for a in (0.05, 0.1, 0.2)]
    given = ["feature graph", "features", *powers, *over]
    assert names == ["whitened linear", *given]
    assert set(total) == {"eigenpairs", *names, *(f"eigenpairs + {name}" for name in given)}
    known = [1, np.log(5), np.log(2)]
    own = {"whitened linear": "whitened linear", "feature graph": "whitened graph"}
    for name, share in total.items():
        odds = np.exp(np.dot(BLOCKS[own[name]], known)) if name in own else 1.0
        odds = 2.0 if name == "eigenpairs" else odds  # learnt components, and steep ones
        np.testing.assert_allclose(share, odds * total["features"], rtol=1e-6)
    steep = [terms for terms in prior.components if terms[0].prior and terms[0].prior.alpha > 10]
    assert {terms[0].prior.alpha for terms in steep if len(terms) == 1} == {16, 64}
    sums = [terms for terms in prior.components if len(terms) == 2]
    for one, other in sums:
        assert one.scale == other.scale
        assert np.isclose(2 * one.scale**2, [1 / g**2 for g in FEATURE_NOISES]).any()


def test_what_smoothing_refuses():
    with pytest.raises(InvalidInput, match="restart: 0; use a number"):
        gq.SmoothedFeatures(WORDS, GRAPH, 0)
    with pytest.raises(InvalidInput, match="29 rows, and the graph has 30 nodes"):
        gq.SmoothedFeatures(WORDS[1:], GRAPH)
    with pytest.raises(InvalidInput, match="power: 0"):
        gq.SmoothedFeatures(WORDS, GRAPH, power=0)
    assert not unit_rows(np.zeros((3, 2))).any()
