"""Spectra by residual, projector and closed form, never by sign."""

import jax
import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import (
    DisconnectedGraphWarning,
    InvalidInput,
    NotConvergedWarning,
    StorageError,
)
from graphuq.spectrum import block_operator_gpu, devices, lanczos, solve
from graphuq.spectrum.chebyshev import ChebyshevFilter
from graphuq.spectrum.laplacian import Laplacian


def matrix(weights, kind):
    degrees = weights.sum(axis=1)
    if kind == "unnormalized":
        return np.diag(degrees) - weights
    return np.eye(len(weights)) - weights / np.sqrt(np.outer(degrees, degrees))


@pytest.mark.parametrize("kind", ["symmetric", "unnormalized", "random-walk"])
@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_pairs_are_those_of_the_matrix(solver, kind):
    weights = random_adjacency(60, seed=2)
    graph = gq.graphs.from_adjacency(sparse.csr_array(weights))
    spectrum = gq.laplacian_spectrum(graph, kind, 15, solver=solver, tolerance=1e-9)
    truth, q = np.linalg.eigh(matrix(weights, kind))
    np.testing.assert_allclose(spectrum.eigenvalues, truth[:15], atol=1e-9)
    assert spectrum.residuals.max() < 1e-6
    basis = spectrum.eigenvectors
    np.testing.assert_allclose(basis.T @ basis, np.eye(15), atol=1e-9)
    np.testing.assert_allclose(basis @ basis.T, q[:, :15] @ q[:, :15].T, atol=1e-6)


def test_path_in_closed_form():
    """λ_k = 4 sin²(πk / 2n) and cos(π(i − ½)k / n): Hartog & van Zanten (4), corrected."""
    n = 30
    path = np.diag(np.ones(n - 1), 1)
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path + path.T), "unnormalized", n)
    k = np.arange(n)
    np.testing.assert_allclose(
        spectrum.eigenvalues, 4 * np.sin(np.pi * k / (2 * n)) ** 2, atol=1e-12
    )
    cosines = np.cos(np.pi * (k[:, None] + 0.5) * k / n)
    cosines /= np.linalg.norm(cosines, axis=0)
    np.testing.assert_allclose(np.abs((spectrum.eigenvectors * cosines).sum(axis=0)), 1, atol=1e-9)


def test_random_walk_eigenvectors():
    """node_scale turns the columns into right eigenvectors of I − D⁻¹W."""
    weights = random_adjacency(25)
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(weights), "random-walk")
    right = spectrum.node_scale[:, None] * spectrum.eigenvectors
    operator = np.eye(25) - weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(operator @ right, right * spectrum.eigenvalues, atol=1e-10)


@pytest.mark.parametrize("kind", ["symmetric", "unnormalized"])
@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_disconnected_graph_has_one_null_vector_a_component(solver, kind):
    blocks = [random_adjacency(20, seed=s) for s in range(3)] + [np.zeros((1, 1))]
    with pytest.warns(DisconnectedGraphWarning, match="4 connected"):
        graph = gq.graphs.from_adjacency(
            sparse.block_diag([*map(sparse.csr_array, blocks)], format="csr")
        )
    spectrum = gq.laplacian_spectrum(graph, kind, 12, solver=solver, tolerance=1e-9)
    assert (spectrum.eigenvalues == 0).sum() == 4
    assert spectrum.eigenvalues[4] > 0.01
    for component in range(4):
        outside = spectrum.components != component
        assert not spectrum.eigenvectors[outside, component].any()
    truth = np.sort(np.concatenate([np.linalg.eigvalsh(matrix(b, kind)) for b in blocks[:3]]))
    np.testing.assert_allclose(spectrum.eigenvalues[4:], truth[3:11], atol=1e-9)


def test_same_input_same_signs(graph):
    first, second = (gq.laplacian_spectrum(graph, n_eigenpairs=8).eigenvectors for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.all(first[np.abs(first).argmax(axis=0), np.arange(8)] > 0)


def test_tails(graph):
    truth = gq.laplacian_spectrum(graph, n_eigenpairs=16).eigenvalues
    spectra = {
        t: gq.laplacian_spectrum(graph, n_eigenpairs=6, tail_eigenvalue=t)
        for t in (True, "mean", 0.7)
    }
    assert spectra[True].tail_eigenvalue == pytest.approx(truth[5])
    assert spectra["mean"].tail_eigenvalue == pytest.approx(truth[6:].mean())
    assert spectra[0.7].tail_eigenvalue == 0.7
    assert (
        gq.laplacian_spectrum(graph, n_eigenpairs=16, tail_eigenvalue=True).tail_eigenvalue is None
    )


def test_save_and_load(graph, tmp_path):
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=6, tail_eigenvalue=0.7)
    spectrum.save(tmp_path / "s.npz")
    again = gq.load_spectrum(tmp_path / "s.npz")
    for name in (
        "eigenvalues",
        "eigenvectors",
        "residuals",
        "components",
        "degrees",
        "tail_eigenvalue",
    ):
        np.testing.assert_array_equal(getattr(again, name), getattr(spectrum, name))
    assert again.settings == spectrum.settings


@pytest.mark.parametrize("damage", ["truncated", "missing", "other", "text"])
def test_damaged_files_are_refused(graph, tmp_path, damage):
    path = tmp_path / "s.npz"
    gq.laplacian_spectrum(graph, n_eigenpairs=6).save(path)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "missing":
        path.unlink()
    elif damage == "other":
        np.savez(path, a=1)
    else:
        path.write_text("eigenvalues")
    with pytest.raises(StorageError):
        gq.load_spectrum(path)


def test_nothing_half_written(graph, tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=6)
    spectrum.save(path)
    before = path.read_bytes()

    def full_disk(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        spectrum.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"laplacian": "heat"}, "'heat' is unknown; use one of symmetric"),
        ({"n_eigenpairs": 17}, "17 pairs of a graph of 16 nodes"),
        ({"n_eigenpairs": 1}, "use more than 1"),
        ({"solver": "magic"}, "solver: 'magic'"),
        ({"solver": "lanczos", "n_eigenpairs": 16}, "use solver='dense'"),
        ({"tail_eigenvalue": "median"}, "tail_eigenvalue: 'median'"),
        ({"tail_eigenvalue": -1.0}, "tail_eigenvalue: -1.0"),
    ],
)
def test_bad_options(graph, options, words):
    with pytest.raises(InvalidInput, match=words):
        gq.laplacian_spectrum(graph, **options)


def test_random_walk_refuses_isolated_nodes():
    w = np.zeros((4, 4))
    w[:3, :3] = 1 - np.eye(3)
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(w)
    with pytest.raises(InvalidInput, match="1 isolated"):
        gq.laplacian_spectrum(graph, "random-walk")


@pytest.mark.parametrize("kind", ["symmetric", "unnormalized", "random-walk"])
def test_extension_is_the_mean_over_neighbours(kind):
    """A new node with the edges of an old one: (1 − λ) q_old for the random walk's vectors."""
    weights = random_adjacency(25)
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(weights), kind)
    rows = spectrum.extend(sparse.csr_array(weights[[3, 8]]))
    degrees = weights.sum(axis=1)
    if kind == "unnormalized":
        truth = weights[[3, 8]] @ spectrum.eigenvectors / degrees[[3, 8], None]
    else:
        truth = (1 - spectrum.eigenvalues) * spectrum.eigenvectors[[3, 8]]
    np.testing.assert_allclose(rows, truth, atol=1e-10)
    np.testing.assert_allclose(
        spectrum.extend_scale(sparse.csr_array(weights[[3, 8]])), spectrum.node_scale[[3, 8]]
    )
    assert not spectrum.extend(sparse.csr_array((1, 25))).any()
    tiny = spectrum.extend(sparse.csr_array(np.full((1, 25), 1e-310)))  # its inverse overflows
    assert np.isfinite(tiny).all()


def torus(n_a, n_b):
    """A grid of nodes tied to four neighbours, its edges joined."""

    def ring(n):
        nodes = np.arange(n)
        half = sparse.coo_array((np.ones(n), (nodes, (nodes + 1) % n)))
        return half + half.T

    eye_a, eye_b = sparse.eye_array(n_a), sparse.eye_array(n_b)
    return (sparse.kron(ring(n_a), eye_b) + sparse.kron(eye_a, ring(n_b))).tocsr()


def test_all_copies_of_multiple_eigenvalues_are_found():
    """On a square torus ``1 − (cos a + cos b)/2`` comes four or eight times."""
    n = 40
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(torus(n, n)), n_eigenpairs=37, solver="lanczos", tolerance=1e-8
    )
    waves = np.cos(2 * np.pi * np.arange(n) / n)
    expected = np.sort((1 - (waves[:, None] + waves[None, :]) / 2).ravel())[:37]
    assert (np.diff(expected) < 1e-12).sum() > 20, "they are multiple"
    np.testing.assert_allclose(spectrum.eigenvalues, expected, atol=1e-8)
    gram = spectrum.eigenvectors.T @ spectrum.eigenvectors
    np.testing.assert_allclose(gram, np.eye(37), atol=1e-8)


def only_below(n_most, monkeypatch):
    """Let Lanczos fail for more pairs than this."""
    inside = lanczos.nonnull_pairs

    def limited(laplacian, n_pairs, tolerance, progress=None):
        if n_pairs > n_most:
            raise lanczos.PairsNotConverged
        return inside(laplacian, n_pairs, tolerance, progress)

    monkeypatch.setattr(lanczos, "nonnull_pairs", limited)


def test_pairs_that_do_not_converge(monkeypatch):
    """A number that nobody gave is not blamed: the solver is dense, or there are fewer pairs."""
    graph = gq.graphs.from_adjacency(torus(40, 41))
    monkeypatch.setattr(solve, "DENSE_BELOW", 100)
    only_below(30, monkeypatch)
    dense = gq.laplacian_spectrum(graph, n_eigenpairs=60)
    assert dense.settings["solver"] == "dense, since lanczos did not converge"
    assert dense.residuals.max() < 1e-9
    monkeypatch.setattr(solve, "DENSE_AT_MOST", 100)
    with pytest.warns(NotConvergedWarning, match="150 eigenpairs did not conv.* so there are 19;"):
        found = gq.laplacian_spectrum(graph)
    assert found.n_eigenpairs == found.settings["n_eigenpairs"] == 19
    assert found.settings["solver"] == "lanczos, since 150 pairs did not converge"
    np.testing.assert_allclose(found.eigenvalues, dense.eigenvalues[:19], atol=1e-5)
    with pytest.raises(InvalidInput, match=r"n_eigenpairs: the 60 pairs did not .*; use fewer pai"):
        gq.laplacian_spectrum(graph, n_eigenpairs=60)
    only_below(0, monkeypatch)
    with pytest.raises(InvalidInput, match=r"graph: eigenpairs did not .* a tolerance above 0.001"):
        gq.laplacian_spectrum(graph)


def test_restarts_are_bounded(monkeypatch):
    monkeypatch.setattr(lanczos, "RESTARTS", 1)
    graph = gq.graphs.from_adjacency(torus(20, 21))
    with pytest.raises(InvalidInput, match="the 40 pairs did not converge in 1 restarts"):
        gq.laplacian_spectrum(graph, n_eigenpairs=40, solver="lanczos", tolerance=1e-9)


@pytest.mark.parametrize(
    "window", [None, pytest.param((0.01, 60.0), marks=pytest.mark.slow)]
)  # the second begins too low, and grows
def test_lanczos_where_eigenvalues_lie_close(window, monkeypatch):
    """Eigenpairs of the unnormalised Laplacian of random points agree with LAPACK."""
    points = np.random.default_rng(3).normal(size=(600, 5))
    graph = gq.graphs.knn_graph(points, 10, "unweighted")
    if window is not None:
        monkeypatch.setattr(lanczos, "window_of", lambda *_: ChebyshevFilter(*window))
    found, exact = (
        gq.laplacian_spectrum(graph, "unnormalized", 100, solver=solver, tolerance=1e-9)
        for solver in ("lanczos", "dense")
    )
    np.testing.assert_allclose(found.eigenvalues, exact.eigenvalues, atol=1e-8)
    overlaps = np.linalg.svd(found.eigenvectors.T @ exact.eigenvectors, compute_uv=False)
    np.testing.assert_allclose(overlaps, 1, atol=1e-8)


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
@pytest.mark.parametrize("n_components", [1, 60])
def test_the_polynomial_grows_on_all_wanted_eigenvalues(n_components):
    """Null vectors, many with as many components, are not among the computed ones."""
    rng = np.random.default_rng(4)
    points = [rng.normal(size=(1200 // n_components, 3)) for _ in range(n_components)]
    parts = [gq.graphs.knn_graph(part, 5).weights for part in points]
    graph = gq.graphs.from_adjacency(sparse.block_diag([*map(sparse.csr_array, parts)]).tocsr())
    laplacian = Laplacian(graph)
    exact = np.sort(np.linalg.eigvalsh(laplacian.dense()))[graph.n_components :]
    window = lanczos._Problem(laplacian, 40, 1e-3, np.float64, None).window
    assert exact[40] < window.low < exact[200]


def points_graph(n_nodes=1600, seed=5):
    points = np.random.default_rng(seed).normal(size=(n_nodes, 6))
    return gq.graphs.knn_graph(points, 12)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_residuals_are_as_small_as_asked_for(tolerance):
    """Eigenvalues lie as near to the exact ones as the residuals say (Parlett 1980, 4.5)."""
    graph = points_graph()
    found = gq.laplacian_spectrum(graph, n_eigenpairs=60, solver="lanczos", tolerance=tolerance)
    exact = gq.laplacian_spectrum(graph, n_eigenpairs=60, solver="dense")
    assert found.residuals.max() <= tolerance * found.eigenvalues[-1]
    misfit = Laplacian(graph) @ found.eigenvectors - found.eigenvectors * found.eigenvalues
    np.testing.assert_allclose(np.linalg.norm(misfit, axis=0), found.residuals, atol=1e-12)
    assert np.abs(found.eigenvalues - exact.eigenvalues).max() <= found.residuals.max()
    gram = found.eigenvectors.T @ found.eigenvectors
    np.testing.assert_allclose(gram, np.eye(60), atol=1e-10)


def test_more_copies_than_a_block_has_columns():
    """Forty equal components have each of their eigenvalues forty times."""
    part = gq.graphs.knn_graph(np.random.default_rng(0).normal(size=(40, 3)), 6).weights
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(sparse.block_diag([sparse.csr_array(part)] * 40).tocsr())
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=40 + 100, solver="lanczos", tolerance=1e-7)
    own = np.linalg.eigvalsh(matrix(part.toarray(), "symmetric"))[1:4]
    np.testing.assert_allclose(spectrum.eigenvalues[40:], np.repeat(own, 40)[:100], atol=1e-8)


@pytest.mark.slow
def test_a_ring_wants_double_precision():
    """Eigenvalues of a millionth of the largest: single precision sees none of them."""
    n = 2000
    nodes = np.arange(n)
    ring = sparse.coo_array((np.ones(n), (nodes, (nodes + 1) % n)))
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(ring + ring.T), n_eigenpairs=9, solver="lanczos", tolerance=1e-5
    )
    truth = 1 - np.cos(2 * np.pi * np.repeat(np.arange(5), 2)[1:] / n)
    np.testing.assert_allclose(spectrum.eigenvalues, truth, atol=1e-9 * truth[-1] + 1e-14)


@pytest.mark.parametrize("kind", ["symmetric", "unnormalized"])
def test_order_of_nodes_makes_no_difference(kind, monkeypatch):
    graph = points_graph()
    options = {"n_eigenpairs": 30, "solver": "lanczos", "tolerance": 1e-8}
    plain = gq.laplacian_spectrum(graph, kind, **options)
    monkeypatch.setattr(lanczos, "MANY_NODES", 1)
    ordered = gq.laplacian_spectrum(graph, kind, **options)
    np.testing.assert_allclose(ordered.eigenvalues, plain.eigenvalues, atol=1e-9)
    overlap = np.abs((ordered.eigenvectors * plain.eigenvectors).sum(axis=0))
    np.testing.assert_allclose(overlap, 1, atol=1e-6)


def test_an_accelerator_takes_a_connected_graph(monkeypatch):
    """Then the null part is removed on the device; restarts too, with little room."""
    graph = points_graph()
    plain = gq.laplacian_spectrum(graph, n_eigenpairs=40, solver="lanczos", tolerance=1e-6)
    monkeypatch.setattr(devices, "has_accelerator", lambda: True)
    monkeypatch.setattr(lanczos, "SPARE_SHARE", 0.1)
    found = gq.laplacian_spectrum(graph, n_eigenpairs=40, solver="lanczos", tolerance=1e-6)
    np.testing.assert_allclose(found.eigenvalues, plain.eigenvalues, atol=1e-10)
    assert found.eigenvectors.dtype == np.float64
    np.testing.assert_allclose(found.eigenvectors.T @ found.eigenvectors, np.eye(40), atol=1e-10)
    assert found.residuals.max() <= 1e-6 * found.eigenvalues[-1]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("tolerance", [1e-4, 1e-7])
@pytest.mark.parametrize("kind", ["symmetric", "unnormalized"])
def test_an_accelerator_finds_the_same(kind, tolerance, monkeypatch):
    """Its arithmetic, here on the processor; isolated nodes and rows of all lengths too."""
    monkeypatch.setattr(devices, "has_accelerator", lambda: True)
    hub = sparse.coo_array((np.ones(700), (np.zeros(700, int), np.arange(1, 701))), (1602, 1602))
    knn = sparse.block_diag([points_graph().weights, sparse.csr_array((2, 2))])
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency((knn + 0.01 * (hub + hub.T)).tocsr())
    laplacian = Laplacian(graph, kind)
    operator, _ = devices.on_device(laplacian, np.float32)
    assert isinstance(operator, block_operator_gpu.DeviceOperator)
    x, before = np.random.default_rng(0).normal(size=(2, 1602, 5)).astype(np.float32)
    expected = 0.5 * (laplacian @ x) - 2.0 * x - before
    error = np.abs(np.asarray(operator.step(x, 0.5, -2.0, before)) - expected)
    assert error.max() < 1e-6 * np.abs(expected).max() * 10
    x, before = x.astype(np.float64), before.astype(np.float64)
    expected = 0.5 * (laplacian @ x) - 2.0 * x - before
    with jax.enable_x64(True):
        precise, _ = devices.on_device(laplacian, np.float64)
        error = np.abs(np.asarray(precise.step(x, 0.5, -2.0, before)) - expected)
        assert error.max() < 1e-12 * np.abs(expected).max()
    options = {"n_eigenpairs": 60, "tolerance": tolerance}
    found = gq.laplacian_spectrum(graph, kind, solver="lanczos", **options)
    exact = gq.laplacian_spectrum(graph, kind, solver="dense", **options)
    assert found.residuals.max() <= tolerance * found.eigenvalues[-1]
    assert np.abs(found.eigenvalues - exact.eigenvalues).max() <= found.residuals.max()
