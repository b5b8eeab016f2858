"""Class shares that labels chosen class by class do not tell, but unlabelled nodes do."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference import GaussianMixture
from graphuq.inference.model_average import weigh_shares
from graphuq.results.summaries import NodeSummaries
from graphuq.results.unknown_shares import PRIOR_COUNT, label_shares, multiplied, shares_of

EP = "expectation-propagation"
EQUAL = np.full(3, 1 / 3)


def agreement_beyond_chance(p):
    n_classes = p.shape[1]
    return ((p**2).sum(axis=1).mean() * n_classes - 1) / (n_classes - 1)


@pytest.mark.parametrize("given", [EQUAL, np.array([0.5, 0.3, 0.2])])
def test_shares_are_the_mode_of_their_posterior(given):
    """Compare with the largest value on a grid: Dirichlet prior, and nodes that count as few.

    Each node has the likelihood ``Σ_k q_k s_k / t_k``, to the power of the nodes that it counts as.
    """
    rng = np.random.default_rng(0)
    q, n_labels = rng.dirichlet([0.4, 0.3, 0.9], size=80), 15
    found = shares_of(q, n_labels, given)
    p = q * found / given
    p /= p.sum(axis=1, keepdims=True)
    power = n_labels * agreement_beyond_chance(p) / len(q)
    steps = np.linspace(0, 1, 501)[1:-1]
    first, second = np.meshgrid(steps, steps, indexing="ij")
    third = 1 - first - second
    grid = np.stack([first, second, third], axis=-1)[third > 1e-9]
    density = power * np.log(grid @ (q / given).T).sum(axis=1) + PRIOR_COUNT * np.log(grid).sum(
        axis=1
    )
    assert np.abs(grid[density.argmax()] - found).max() < 0.002  # half the step of the grid


@pytest.mark.parametrize(("q", "expected"), [(np.full((30, 4), 0.25), 0.25), (np.eye(4), 0.25)])
def test_equal_shares_stay_equal(q, expected):
    assert np.abs(shares_of(q, 12, np.full(4, 0.25)) - expected).max() < 1e-12


def test_certain_nodes_tell_the_shares_as_well_as_the_labels_are_many():
    q = np.eye(3)[np.repeat([0, 1, 2], [70, 20, 10])]
    for n_labels in (6, 30, 3000):
        expected = (PRIOR_COUNT + n_labels * np.array([0.7, 0.2, 0.1])) / (
            3 * PRIOR_COUNT + n_labels
        )
        assert np.abs(shares_of(q, n_labels, EQUAL) - expected).max() < 1e-8


def test_errors_of_probabilities_change_with_them():
    """Against differences of the probabilities."""
    p, step = np.array([[0.5, 0.3, 0.2]]), 1e-6
    shares = np.array([0.6, 0.3, 0.1])
    zero = np.zeros_like(p)
    found = multiplied(NodeSummaries(p, np.full_like(p, step), zero, zero), shares)
    for k in range(3):
        moved = p.copy()
        moved[0, k] += step
        moved[0, np.arange(3) != k] *= (1 - moved[0, k]) / (1 - p[0, k])
        change = multiplied(NodeSummaries(moved, zero, zero, zero), shares).label_mean - (
            found.label_mean
        )
        assert abs(abs(change[0, k]) / found.label_mcse[0, k] - 1) < 1e-4
    certain = multiplied(NodeSummaries(np.eye(3), zero[[0] * 3], zero, zero), shares)
    assert (certain.label_mean == np.eye(3)).all()


@pytest.fixture(scope="module")
def unequal():
    """Three overlapping clouds of 400, 60 and 40 points with five labels each."""
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1, 2], [400, 60, 40])
    X = rng.normal(size=(500, 3)) + 2.5 * np.eye(3)[codes]
    y = np.full(500, -1)
    for k in range(3):
        y[rng.choice(np.flatnonzero(codes == k), 5, replace=False)] = k
    return X, y, codes


@pytest.fixture(scope="module")
def with_few_of_the_largest(unequal):
    """Return the same clouds with 4 labels of the largest class, 12 of each of the others."""
    X, _, codes = unequal
    y, rng = np.full(500, -1), np.random.default_rng(2)
    for k, n in enumerate([4, 12, 12]):
        y[rng.choice(np.flatnonzero(codes == k), n, replace=False)] = k
    return X, y, codes


@pytest.fixture(scope="module")
def of_two():
    """Return clouds of 400 and 80 points with 16 labels each."""
    rng = np.random.default_rng(3)
    codes = np.repeat([0, 1], [400, 80])
    X = rng.normal(size=(480, 3)) + 2.0 * np.eye(3)[codes]
    y = np.full(480, -1)
    for k in range(2):
        y[rng.choice(np.flatnonzero(codes == k), 16, replace=False)] = k
    return X, y, codes


def log_score(p, codes):
    return -np.log(np.maximum(p[np.arange(len(p)), codes], 1e-5)).mean()


def fitted(unequal, design="auto", **settings):
    X, y, _ = unequal
    model = gq.models.Average(label_design=design)
    return gq.GraphClassifier(model=model, inference=EP, **settings).fit(X, y)


def test_unequal_classes_are_answered_better(unequal):
    _, y, codes = unequal
    free = y < 0
    by_class = fitted(unequal).result_
    random = fitted(unequal, "random").result_
    scores = [log_score(r.probabilities[free], codes[free]) for r in (by_class, random)]
    assert scores[0] < scores[1] - 0.03
    shares = gq.results.estimated_shares(by_class)
    assert gq.results.estimated_shares(random) is None
    assert shares[0] > 0.5
    assert f"estimated from the unlabelled nodes: 0 {shares[0]:.2f}, " in str(by_class)
    assert "estimated from" not in str(random)
    expected = random.probabilities * shares
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.abs(by_class.probabilities[free] - expected[free]).max() < 1e-8
    assert (by_class.probabilities[~free] == random.probabilities[~free]).all()


def test_numbers_of_labels_that_someone_chose_are_no_shares(with_few_of_the_largest):
    """Probabilities are multiplied by the estimated shares, and divided by those of the labels."""
    _, y, codes = with_few_of_the_largest
    free = y < 0
    by_class = fitted(with_few_of_the_largest, "by-class").result_
    random = fitted(with_few_of_the_largest, "random").result_
    assert fitted(with_few_of_the_largest).result_.posterior.label_design == "random"
    given = label_shares(by_class.posterior)
    assert given * (28 + 3 * PRIOR_COUNT) == pytest.approx(PRIOR_COUNT + np.array([4, 12, 12]))
    expected = random.probabilities * gq.results.estimated_shares(by_class) / given
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.abs(by_class.probabilities[free] - expected[free]).max() < 1e-8
    scores = [log_score(r.probabilities[free], codes[free]) for r in (by_class, random)]
    assert scores[0] < scores[1] - 0.1


def test_many_labels_of_two_classes_leave_the_shares_to_unlabelled_nodes(of_two):
    """Fewer than fifteen labels of a class weigh fields, and there is no estimate."""
    X, y, codes = of_two
    free = y < 0
    by_class, random = fitted(of_two).result_, fitted(of_two, "random").result_
    odds = gq.results.estimated_shares(by_class) / label_shares(by_class.posterior)
    assert label_shares(by_class.posterior) == pytest.approx(0.5)
    expected = random.probabilities * odds
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.abs(by_class.probabilities[free] - expected[free]).max() < 1e-8
    assert (by_class.probabilities[~free] == random.probabilities[~free]).all()
    scores = [log_score(r.probabilities[free], codes[free]) for r in (by_class, random)]
    assert scores[0] < scores[1] - 0.02
    default = gq.GraphClassifier().fit(X, y).result_
    assert isinstance(default.answer, GaussianMixture)
    assert np.abs(default.probabilities - by_class.probabilities).max() < 2e-3
    few = y.copy()
    for k in range(2):
        few[np.flatnonzero(y == k)[14:]] = -1
    assert gq.results.estimated_shares(fitted((X, few, codes)).result_) is None
    assert weigh_shares(fitted((X, few, codes)).result_.posterior)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("labels", ["unequal", "of_two", "with_few_of_the_largest"])
def test_new_rows_and_files_have_the_same_shares(labels, request, tmp_path):
    clouds = request.getfixturevalue(labels)
    classifier = fitted(clouds, "by-class")
    new = clouds[0][:50] + 1e-6
    before, raw = classifier.predict_proba(new), fitted(clouds, "random").predict_proba(new)
    result = classifier.result_
    expected = raw * gq.results.estimated_shares(result) / label_shares(result.posterior)
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.abs(before - expected).max() < 1e-8
    classifier.save(tmp_path / "model.nc")
    assert np.abs(gq.load(tmp_path / "model.nc").predict_proba(new) - before).max() < 1e-6


def test_sets_of_both_kinds_use_the_shares(unequal):
    _, y, codes = unequal
    classifier, free = fitted(unequal), y < 0
    for method in ("posterior", "conformal"):
        sets = gq.prediction_sets(classifier.result_, 0.8, method)
        assert sets[np.arange(500), codes][free].mean() > 0.75


def test_known_proportions_of_two_classes_take_their_place(of_two):
    X, y, _ = of_two
    known = gq.GraphClassifier(class_proportions=[0.8, 0.2]).fit(X, y)
    assert gq.results.estimated_shares(known.result_) is None
    share = known.predict(X)[y < 0].mean()
    assert abs(share - 0.2) < 0.03


def test_known_proportions_take_their_place(unequal):
    X, y, _ = unequal
    known = gq.GraphClassifier(inference=EP, class_proportions=[0.8, 0.12, 0.08]).fit(X, y)
    assert gq.results.estimated_shares(known.result_) is None
    share = known.predict_proba(X)[y < 0].mean(axis=0)
    assert np.abs(share - [0.8, 0.12, 0.08]).max() < 1e-6
