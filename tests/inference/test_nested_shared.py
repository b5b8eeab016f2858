"""Sites that far classes share, and the covariance of many classes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from graphuq.errors import InvalidInput
from graphuq.inference import nested_coordinates
from graphuq.inference.class_covariance import ClassCovariance
from graphuq.inference.dense_covariance import DenseCovariance
from graphuq.inference.label_leads import Leads
from graphuq.inference.near_classes import far_classes, groups_of
from graphuq.inference.nested_answer import fit_quickest
from graphuq.inference.nested_low_rank import fit_low_rank_sites
from graphuq.inference.nested_shared import MAX_BYTES, fit_shared_sites, shares_sites
from graphuq.inference.settings import check_memory
from graphuq.results.summaries.tilted import both_positive

K, EACH, NOISE = 12, 3, 0.3


def problem(rank=25, n_classes=K, seed=0):
    """Return F and labels: classes are clusters, and covariances fall with the distance."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), EACH)
    places = rng.normal(size=(n_classes, 6))[labels] + 0.4 * rng.normal(size=(len(labels), 6))
    squares = ((places[:, None] - places) ** 2).sum(axis=2)
    values, vectors = np.linalg.eigh(np.exp(-squares / 8))
    rank = min(rank, len(labels))
    return vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0)), labels


def fitted(factor, labels, n_near, n_classes=K, tolerance=1e-7):
    return fit_shared_sites(factor, labels, n_classes, NOISE, 100, tolerance, n_near=n_near)


@pytest.fixture(scope="module")
def few_near():
    factor, labels = problem()
    return factor, labels, fitted(factor, labels, 4)


@pytest.mark.parametrize("more", [0, 30])
def test_without_far_classes_the_fixed_point_is_that_of_own_sites(more):
    """Also with more coordinates than labels."""
    factor, labels = problem()
    factor = np.hstack([factor, 0.1 * np.random.default_rng(1).normal(size=(len(labels), more))])
    own = fit_low_rank_sites(factor, labels, K, NOISE, 100, 1e-7)
    shared = fitted(factor, labels, K - 1)
    assert shared.converged
    assert shared.log_evidence == pytest.approx(own.log_evidence, abs=1e-9)
    np.testing.assert_allclose(shared.white_mean, own.white_mean, atol=1e-9)
    np.testing.assert_allclose(shared.weights, own.weights, rtol=1e-8)
    np.testing.assert_allclose(np.asarray(shared.covariance), own.covariance, atol=1e-9)


def test_classes_without_a_label_share_exactly():
    """They are exchangeable, so that sharing their sites changes nothing."""
    factor, labels = problem()
    own = fit_low_rank_sites(factor, labels, 3 * K, NOISE, 100, 1e-7)
    shared = fitted(factor, labels, K - 1, n_classes=3 * K)
    assert shared.log_evidence == pytest.approx(own.log_evidence, abs=1e-9)
    np.testing.assert_allclose(shared.white_mean, own.white_mean, atol=1e-9)


def test_more_near_classes_are_closer_to_own_sites():
    """The error of the means falls; that of the evidence is below a hundredth with 9 of 11."""
    factor, labels = problem()
    own = fit_low_rank_sites(factor, labels, K, NOISE, 100, 1e-6)
    found = [fitted(factor, labels, n, tolerance=1e-6) for n in (2, 5, 9)]
    errors = [np.abs(one.white_mean - own.white_mean).max() for one in found]
    assert errors[0] > errors[1] > errors[2]
    assert abs(found[2].log_evidence - own.log_evidence) < 0.01


def test_the_gaussian_is_that_of_its_sites(few_near):
    """Mean and covariance of all coordinates, by dense matrices with the same sites."""
    factor, _, found = few_near
    r, w = factor.shape[1], found.weights
    precision = np.eye(K * r).reshape(K, r, K, r)
    for j, row in enumerate(w):
        between = np.diag(row) - np.outer(row, row) / row.sum()
        precision += np.einsum("kl,r,s->krls", between, factor[j], factor[j])
    covariance = np.linalg.inv(precision.reshape(K * r, K * r))
    np.testing.assert_allclose(np.asarray(found.covariance), covariance, atol=1e-9)
    mean = covariance @ (found.pull.T @ factor).ravel()
    np.testing.assert_allclose(found.white_mean.ravel(), mean, atol=1e-8)


def test_covariances_at_nodes_are_those_of_the_matrix(few_near):
    """Variances, differences and their covariances, means over classes, and stored arrays."""
    factor, _, found = few_near
    rng = np.random.default_rng(2)
    loadings = rng.normal(size=(9, factor.shape[1]))
    mean = loadings @ found.white_mean.T
    top = mean.argmax(axis=1)
    a, b = (top + 1) % K, (top + 5) % K
    stored = ClassCovariance.of_arrays(found.covariance.arrays())
    dense = DenseCovariance(np.asarray(found.covariance), K)
    one, other = stored.at(loadings), dense.at(loadings)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-6)  # single precision
    np.testing.assert_allclose(one.apart(top), other.apart(top), rtol=1e-5, atol=1e-6)
    shared = [fields.shared_with(top, a, b) for fields in (one, other)]
    np.testing.assert_allclose(*shared, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(stored.mean_of_classes(), dense.mean_of_classes(), atol=1e-12)
    assert other.leads() is None


def test_draws_have_the_covariance(few_near):
    *_, found = few_near
    n = 20_000
    draws = found.covariance.draws(np.random.default_rng(3), n).reshape(n, -1)
    matrix = np.asarray(found.covariance)
    scale = np.sqrt(np.multiply.outer(matrix.diagonal(), matrix.diagonal()) + matrix**2)
    assert np.abs((draws.T @ draws / n - matrix) / scale).max() < 6 / np.sqrt(n)


def test_leads_at_nodes_are_those_of_the_matrix(few_near):
    """Covariance of ``u_t − u_k`` at a node with ``v − u_k`` at the label that tells most of it."""
    factor, labels, found = few_near
    loadings = factor[::4] + 0.1
    own = Leads.of(labels, found.weights, found.shifts, factor @ found.white_mean.T, NOISE)
    fields = found.covariance.with_leads(own, factor, len(loadings)).at(loadings)
    top = (loadings @ found.white_mean.T).argmax(axis=1)
    fields.apart(top)
    leads = fields.leads()
    blocks = np.asarray(found.covariance).reshape(K, factor.shape[1], K, -1)
    toward, known = loadings @ found.covariance.toward, found.covariance.at_labels.diagonal()
    for i, t in enumerate(top):
        own = np.flatnonzero(labels == t)
        j = own[(toward[i, own] ** 2 / known[own]).argmax()]
        share = found.weights[j] / found.weights[j].sum()
        across = np.einsum("r,krls,s->kl", loadings[i], blocks, factor[j])
        within = np.einsum("r,krls,s->kl", factor[j], blocks, factor[j])
        variance = share @ within @ share + 1 / found.weights[j].sum()
        variance += within.diagonal() - 2 * within @ share
        covariance = (across @ share)[t] - across @ share - across[t] + across.diagonal()
        others = np.arange(K) != t
        np.testing.assert_allclose(leads.variance[i, others], variance[others], atol=1e-9)
        np.testing.assert_allclose(leads.covariance[i, others], covariance[others], atol=1e-9)
        np.testing.assert_array_equal(leads.precision[i, others], found.weights[j, others])


@pytest.mark.parametrize(
    ("a", "b", "r"), [(0.3, -2, 0.5), (-1, 2, -0.9), (0, 0, 0.3), (3, -0.5, 0.999), (-2, -2, 0.2)]
)
def test_orthants_of_two_normals(a, b, r):
    found = both_positive(np.array(float(a)), np.array(float(b)), np.array(r))
    exact = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([a, b])
    assert float(found) == pytest.approx(exact, abs=1e-8)


def test_groups_have_every_class_once_with_the_labels_near_it():
    factor, labels = problem()
    is_far = far_classes(factor @ factor.T, labels, K + 2, 3)
    assert (~is_far).sum(axis=1).tolist() == [4] * len(labels)
    assert not is_far[np.arange(len(labels)), labels].any()
    seen = {}
    for classes, places, used in groups_of(is_far):
        for k, own, kept in zip(classes, places, used, strict=True):
            seen[int(k)] = sorted(own[kept].tolist())
    assert seen == {k: np.flatnonzero(~is_far[:, k]).tolist() for k in range(K + 2)}


def test_sites_are_shared_where_classes_are_many_or_the_matrix_is_large():
    assert not shares_sites(500, 150, 10)
    assert not shares_sites(100, 100, 100)
    assert shares_sites(120, 120, 120)
    assert shares_sites(1_000, 1_000, 1_000)
    assert shares_sites(800, 500, 40)  # a covariance matrix of 3 GB
    assert not shares_sites(50_000, 300, 60)  # J × J matrices would not fit


def test_too_many_labels_are_refused_with_a_number_that_works():
    labels = np.arange(30_000) % 600
    with pytest.raises(InvalidInput, match=r"30000 labels of 600 classes fills \d+ GB") as caught:
        fit_shared_sites(np.zeros((30_000, 2)), labels, 600, NOISE, 1, 1e-3)
    n_labels = int(str(caught.value).split("at most ")[1].split()[0])
    assert 8.0 * n_labels * (6 * n_labels + 20 * 600) <= MAX_BYTES
    assert n_labels > 10_000


def test_too_many_coordinates_are_refused_with_a_number_of_labels_that_works():
    """With so many labels, far classes share sites, and nothing of that size is made."""
    labels = np.arange(20_000) % 200
    with pytest.raises(InvalidInput, match=r"in 150 coordinates each, fills 22 GB") as caught:
        nested_coordinates.fit_coordinate_sites(np.zeros((20_000, 150)), labels, 200, 1, 1, 1)
    n_labels = int(str(caught.value).split("at most ")[1].split()[0])
    assert n_labels > 5_000
    assert not shares_sites(20_000, 150, 200)
    assert shares_sites(n_labels, 150, 200)


def test_the_number_of_draws_in_the_error_fits():
    """Where not even four fit, the remedy is a method without draws."""
    with pytest.raises(InvalidInput, match="fill 40 GB; keep 800 or fewer") as caught:
        check_memory(4, 4_000, 312_500, np.dtype(float))
    check_memory(4, int(str(caught.value).split("keep ")[1].split()[0]), 312_500, np.dtype(float))
    with pytest.raises(InvalidInput, match="expectation-propagation"):
        check_memory(4, 4_000, 10**9, np.dtype(float))


def test_a_large_matrix_of_all_coordinates_is_refused(few_near):
    *_, found = few_near
    large = found.covariance._replace(base=np.eye(3_000))
    with pytest.raises(InvalidInput, match="fills 10 GB"):
        np.asarray(large)


@pytest.mark.parametrize("n_labels", [40, 200])
def test_sweeps_in_coordinates_have_the_fixed_point_of_sweeps_at_the_labels(n_labels, monkeypatch):
    """Also if a part of the labels is fitted first."""
    rng = np.random.default_rng(4)
    factor = 0.5 * rng.normal(size=(n_labels, 12))
    fields = factor @ rng.normal(size=(12, 4)) + 0.3 * rng.normal(size=(n_labels, 4))
    settings = fields.argmax(axis=1), 4, NOISE, 200, 1e-7
    own = fit_low_rank_sites(factor, *settings)
    for many in (1_000, 20):
        monkeypatch.setattr(nested_coordinates, "MANY_LABELS", many)
        found = nested_coordinates.fit_coordinate_sites(factor, *settings)
        assert found.converged
        assert found.log_evidence == pytest.approx(own.log_evidence, abs=1e-8)
        np.testing.assert_allclose(found.white_mean, own.white_mean, atol=1e-6)
        np.testing.assert_allclose(found.covariance, own.covariance, atol=1e-7)


def test_draws_of_sites_in_coordinates_have_their_mean_and_covariance():
    rng, n = np.random.default_rng(5), 20_000
    factor = rng.normal(size=(60, 4))
    labels = (factor @ rng.normal(size=(4, 3))).argmax(axis=1)
    found = nested_coordinates.fit_coordinate_sites(factor, labels, 3, NOISE, 200, 1e-6)
    draws = found.white_draws(rng, n)
    assert draws.shape == (3, n, 4)
    flat = draws.transpose(1, 0, 2).reshape(n, 12)
    std = np.sqrt(np.diag(found.covariance))
    off = (flat.mean(axis=0) - found.white_mean.ravel()) / std
    assert np.abs(off).max() < 5 / np.sqrt(n)
    off = (np.cov(flat.T) - found.covariance) / np.outer(std, std)
    assert np.abs(off).max() < 5 * np.sqrt(2 / n)


@pytest.mark.parametrize(
    ("n_labels", "n_classes", "kind"),
    [(60, 3, "LowRank"), (400, 10, "LowRank"), (400, 2, "Coordinate"), (2_000, 10, "Coordinate")],
)
def test_sweeps_are_those_with_fewer_operations(n_labels, n_classes, kind):
    """They are in coordinates if labels outnumber these, the sooner the fewer the classes."""
    rng = np.random.default_rng(6)
    factor = 0.1 * rng.normal(size=(n_labels, 80))
    labels = rng.integers(n_classes, size=n_labels)
    found = fit_quickest(factor, labels, n_classes, NOISE, 1, 1.0)
    assert type(found).__name__ == f"{kind}Sites"
