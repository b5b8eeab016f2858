"""Nyström spectra against the exact ones of graphs small enough to store."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput


def features(n_nodes=600, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.2, 1, (3, n_features))
    return centres[rng.integers(3, size=n_nodes)] + 0.05 * rng.normal(size=(n_nodes, n_features))


def test_cosine_weights_of_few_features_are_exact():
    X = features()
    exact = gq.laplacian_spectrum(gq.graphs.complete_graph(X, "cosine"), n_eigenpairs=6)
    found = gq.nystrom_spectrum(X, "cosine", n_eigenpairs=6, n_landmarks=40)
    np.testing.assert_allclose(found.degrees, exact.degrees, rtol=1e-8)
    # Not to rounding: the zero diagonal is seen in the span of the landmarks only.
    np.testing.assert_allclose(found.eigenvalues, exact.eigenvalues, atol=1e-5)
    overlap = np.linalg.svd(found.eigenvectors.T @ exact.eigenvectors, compute_uv=False)
    assert overlap.min() > 0.998
    assert np.abs(found.eigenvectors.T @ found.eigenvectors - np.eye(6)).max() < 1e-10


def test_more_landmarks_come_closer_and_residuals_say_so():
    X = features()
    exact = gq.laplacian_spectrum(
        gq.graphs.complete_graph(X, "gaussian", scale=0.5), n_eigenpairs=8
    )
    errors, residuals = [], []
    for n_landmarks in (15, 60, 240):
        found = gq.nystrom_spectrum(
            X, "gaussian", scale=0.5, n_eigenpairs=8, n_landmarks=n_landmarks
        )
        errors.append(np.abs(found.eigenvalues - exact.eigenvalues).max())
        residuals.append(found.residuals.max())
        # L as applied by the true weights, at all nodes instead of 300.
        degrees, q = found.degrees, found.eigenvectors
        weights = np.asarray(gq.graphs.complete_graph(X, "gaussian", scale=0.5).weights)
        applied = q - (weights @ (q / np.sqrt(degrees)[:, None])) / np.sqrt(degrees)[:, None]
        true = np.linalg.norm(applied - found.eigenvalues * q, axis=0)
        np.testing.assert_allclose(found.residuals, true, rtol=0.5, atol=1e-9)
    assert errors[0] > errors[1] > errors[2]
    assert residuals[0] > residuals[1] > residuals[2]
    assert errors[2] < 1e-4


def test_blocks_change_nothing(monkeypatch):
    X = features()
    whole = gq.nystrom_spectrum(X, n_eigenpairs=5, n_landmarks=20, tail_eigenvalue=1.0)
    monkeypatch.setattr("graphuq.spectrum.nystrom.BLOCK_ELEMENTS", 20 * 37)
    seen = []
    parts = gq.nystrom_spectrum(
        X,
        n_eigenpairs=5,
        n_landmarks=20,
        tail_eigenvalue=1.0,
        progress=lambda *step: seen.append(step),
    )
    np.testing.assert_allclose(parts.eigenvectors, whole.eigenvectors, atol=1e-8)
    assert parts.tail_eigenvalue == 1.0
    assert {step[0] for step in seen} == {"degrees", "spectrum", "eigenvectors", "residuals"}


def test_same_posterior_as_the_exact_graph():
    X = features()
    labelled, labels = np.arange(30), np.where(X[:30, 0] > np.median(X[:, 0]), 1, -1)
    means = []
    for spectrum in (
        gq.laplacian_spectrum(gq.graphs.complete_graph(X, "cosine"), n_eigenpairs=3),
        gq.nystrom_spectrum(X, n_eigenpairs=3, n_landmarks=50),
    ):
        posterior = gq.Posterior(
            spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(0.3), labelled, labels
        )
        means.append(
            gq.results.label_mean(gq.infer(posterior, gq.inference.ExpectationPropagation()))
        )
    assert np.abs(means[0] - means[1]).max() < 0.02


def test_centres_come_closer_than_rows_drawn():
    X = np.random.default_rng(0).normal(size=(900, 4))
    exact = gq.laplacian_spectrum(
        gq.graphs.complete_graph(X, "gaussian", scale=1.0), n_eigenpairs=10
    )
    errors = {}
    for choice in ("k-means", "uniform"):
        errors[choice] = [
            np.abs(
                gq.nystrom_spectrum(
                    X, "gaussian", scale=1.0, n_eigenpairs=10, landmarks=choice, rng=seed
                ).eigenvalues
                - exact.eigenvalues
            ).max()
            for seed in range(5)
        ]
    assert max(errors["k-means"]) < min(errors["uniform"])


def test_features_on_disk_in_single_precision(tmp_path):
    X = features(5000)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = {"weights": "gaussian", "scale": 0.3, "n_eigenpairs": 6}
    found, again = (gq.nystrom_spectrum(mapped, **options) for _ in range(2))
    whole = gq.nystrom_spectrum(X.astype(np.float32).astype(float), **options)
    np.testing.assert_allclose(found.eigenvalues, whole.eigenvalues, atol=1e-9)
    np.testing.assert_array_equal(found.eigenvectors, again.eigenvectors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"landmarks": "leverage"}, "landmarks: 'leverage' is unknown"),
        ({"landmarks": "k-means"}, "landmarks: 'k-means' needs dense features"),
        ({"weights": "self-tuning"}, "neighbours of every node"),
        ({"n_eigenpairs": 1}, "n_landmarks"),
        ({"n_landmarks": 3}, "3 landmarks for 5 eigenpairs"),
        ({"n_landmarks": 1000}, "1000 landmarks"),
        ({"n_eigenpairs": 20, "n_landmarks": 40}, "n_eigenpairs: 20 pairs of weights whose rank"),
        ({"weights": "gaussian"}, "weights: .gaussian. has no length"),
    ],
)
def test_refusals(arguments, message):
    settings = {"n_eigenpairs": 5} | arguments
    with pytest.raises(InvalidInput, match=message):
        gq.nystrom_spectrum(features(), **settings)


def test_bad_features():
    X = features()
    X[3, 2] = np.nan
    with pytest.raises(InvalidInput, match="NaN"):
        gq.nystrom_spectrum(X, n_eigenpairs=5)
    with pytest.raises(InvalidInput, match="negative"):
        gq.nystrom_spectrum(features() - 0.6, n_eigenpairs=5)


def test_named_algorithms():
    graph = gq.graphs.complete_graph(features(60), "cosine")
    full = gq.laplacian_spectrum(graph, algorithm="full")
    assert (full.n_eigenpairs, full.tail_eigenvalue) == (60, None)
    projection = gq.laplacian_spectrum(graph, n_eigenpairs=9, algorithm="projection")
    assert (projection.n_eigenpairs, projection.tail_eigenvalue) == (9, None)
    last = gq.laplacian_spectrum(graph, n_eigenpairs=9, algorithm="approximation")
    assert last.tail_eigenvalue == last.eigenvalues[-1]
    chosen = gq.laplacian_spectrum(
        graph, n_eigenpairs=9, algorithm="approximation", tail_eigenvalue=0.9
    )
    assert chosen.tail_eigenvalue == 0.9
    for settings, message in (
        ({"algorithm": "nystrom"}, "'nystrom' is unknown"),
        ({"algorithm": "full", "n_eigenpairs": 9}, "'full' beside n_eigenpairs=9"),
        ({"algorithm": "projection", "tail_eigenvalue": True}, "'projection' beside"),
    ):
        with pytest.raises(InvalidInput, match=message):
            gq.laplacian_spectrum(graph, **settings)


def test_fiedler_signs_find_two_blobs():
    rng = np.random.default_rng(1)
    truth = np.where(np.arange(80) % 2 == 0, 1, -1)
    X = truth[:, None] + 0.5 * rng.normal(size=(80, 2))
    signs = gq.fiedler_signs(gq.laplacian_spectrum(gq.graphs.knn_graph(X, 10)))
    assert abs((signs * truth).mean()) > 0.9
