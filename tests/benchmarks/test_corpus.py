"""Scores, peers and tables of the corpus benchmark, against results got without them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import corpus
import corpus_peers
import corpus_summary
import graphuq as gq
from corpus_scores import (
    certainty_auc,
    compare,
    evaluate,
    floored,
    pooled_curve,
)


def random_probabilities(rng, n_rows, n_classes):
    return rng.dirichlet(np.ones(n_classes), size=n_rows)


def test_floored_probabilities():
    floor = floored(np.array([[1.0, 0.0], [np.nan, 1.0], [0.0, 0.0], [2.0, 6.0]]))
    np.testing.assert_allclose(floor.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(floor[0, 1], 1e-5 / (1 + 1e-5))
    np.testing.assert_allclose(floor[1:], [[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]])


def test_auc_is_share_of_ordered_pairs():
    rng = np.random.default_rng(1)
    probability = random_probabilities(rng, 40, 3).round(1)
    probability /= probability.sum(axis=1, keepdims=True)
    codes = rng.integers(3, size=40)
    certainty, right = probability.max(axis=1), probability.argmax(axis=1) == codes
    pairs = certainty[right][:, None] - certainty[~right][None, :]
    expected = (pairs > 0).mean() + (pairs == 0).mean() / 2
    assert certainty_auc(probability, codes) == pytest.approx(expected)
    assert np.isnan(certainty_auc(np.array([[0.9, 0.1]]), np.array([0])))


def test_evaluate_by_hand():
    probability = np.array([[0.95, 0.05], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])
    found = evaluate(probability, np.array([0, 1, 1, 0]), labelled=[3])
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["log"] == pytest.approx(-np.log([0.95, 0.4, 0.8]).mean())
    assert found["brier"] == pytest.approx(np.mean([0.05**2, 0.6**2, 0.2**2]))
    assert found["ece"] == pytest.approx((0.05 + 0.6 + 0.2) / 3)
    assert (found["coverage"], found["set size"]) == (1, pytest.approx(4 / 3))
    assert found["auc"] == 1


def test_pooled_curve_is_that_of_all_rows():
    rng = np.random.default_rng(2)
    draws = [(random_probabilities(rng, 300, 3), rng.integers(3, size=300)) for _ in range(4)]
    rows = [evaluate(probability, codes, []) for probability, codes in draws]
    together = evaluate(*map(np.concatenate, zip(*draws, strict=True)), [])
    assert pooled_curve(rows).expected_calibration_error == pytest.approx(together["ece"], abs=1e-9)


def test_compare():
    base = np.array([0.5, 0.6, 0.7, 0.8])
    assert compare(base - 0.1, base) == 1
    assert compare(base - 0.1, base, larger_is_better=True) == -1
    assert compare(base + 0.004, base) == 0  # a small difference, although certain
    assert compare(base + [0.2, -0.1, 0.1, -0.1], base) == 0  # within two standard errors
    assert compare([0.5], [0.4]) == -1


@pytest.mark.parametrize("name", corpus.GAUSSIANS)
def test_bayes_posterior(name):
    """The posterior follows from densities, and its frequencies from the data."""
    X, codes = corpus.load(name)
    probability = corpus.bayes_posterior(name, X)
    settings = corpus.GAUSSIANS[name]
    shares = settings.get("shares", (0.5, 0.5))
    centres = corpus._centres(**settings)
    joint = [s * multivariate_normal(c).pdf(X) for s, c in zip(shares, centres, strict=True)]
    np.testing.assert_allclose(probability, np.transpose(joint / np.sum(joint, axis=0)), atol=1e-12)
    right = codes == probability.argmax(axis=1)
    error = 4 * np.sqrt(right.var() / len(codes))
    assert abs(probability.max(axis=1).mean() - right.mean()) < error
    residual = (np.eye(len(shares))[codes] - probability).mean(axis=0)
    assert np.abs(residual).max() < 4 * 0.5 / np.sqrt(len(codes))


def problem(n_rows=90, per_class=3):
    X, codes = corpus._gaussians(np.random.default_rng(5), 2.5, 2, (0.4, 0.3, 0.3), n_rows)
    labelled = corpus.draw_labels(codes, per_class, 0)
    return corpus_peers.Problem("gaussians", X, codes, corpus_peers.default_graph(X), labelled)


@pytest.mark.parametrize(
    "scores",
    [
        corpus_peers.laplace_scores,
        corpus_peers.poisson_scores,
        lambda p: corpus_peers.spreading_scores(p, own_graph=True),
        lambda p: corpus_peers.spreading_scores(p, own_graph=False),
    ],
    ids=["laplace", "poisson", "spreading", "spreading, same graph"],
)
def test_leave_one_out_is_refit(scores):
    """The closed form is the score of a fit without the label, up to the common scale."""
    full = problem()
    everywhere, left_out = scores(full)
    size, sizes = 1.0, []
    for i, node in enumerate(full.labelled):
        rest = np.delete(full.labelled, i)
        part = corpus_peers.Problem(full.name, full.features, full.codes, full.graph, rest)
        refit = scores(part)[0][node]
        if scores is corpus_peers.poisson_scores:
            size = left_out[i] @ refit / (refit @ refit)
            sizes.append(size)
        np.testing.assert_allclose(left_out[i], size * refit, rtol=1e-4, atol=1e-5)
    assert all(0.3 < size < 3 for size in sizes)
    assert everywhere.shape == (90, 3)


def test_scores_are_those_of_other_implementations():
    """LabelSpreading iterates to the closed form; harmonic values are means of neighbours."""
    full = problem()
    for own_graph in (True, False):
        shares = np.exp(corpus_peers.spreading_scores(full, own_graph)[0])
        theirs = floored(corpus_peers.label_spreading(full, own_graph))
        np.testing.assert_allclose(shares, theirs, atol=1e-3)
    shares = np.exp(corpus_peers.laplace_scores(full)[0])
    weights = full.weights.toarray()
    means = weights @ shares / weights.sum(axis=1, keepdims=True)
    unknown = np.setdiff1d(np.arange(90), full.labelled)
    np.testing.assert_allclose(shares[unknown], means[unknown], atol=1e-4)
    scores = corpus_peers.poisson_scores(full)[0]
    flow = weights.sum(axis=1)[:, None] * scores - weights @ scores  # Poisson's equation
    source = np.zeros((90, 3))
    source[full.labelled] = full.one_hot - full.one_hot.mean(axis=0)
    size = (flow * source).sum() / (source**2).sum()
    np.testing.assert_allclose(flow, size * source, atol=1e-6 * size)


def test_graphlearning_agrees():
    pytest.importorskip("graphlearning")
    full = problem()
    shares = floored(corpus_peers.laplace_learning(full))
    np.testing.assert_allclose(shares, np.exp(corpus_peers.laplace_scores(full)[0]), atol=1e-3)
    theirs = np.log(corpus_peers.poisson_learning(full))
    ours = corpus_peers.poisson_scores(full)[0]
    centre = theirs.mean(axis=1, keepdims=True) - ours.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(theirs, ours + centre, atol=0.02)


def test_temperature_is_the_best_of_a_grid():
    full = problem()
    everywhere, left_out = corpus_peers.spreading_scores(full, own_graph=False)
    found = corpus_peers.with_temperature(full, lambda p: (everywhere, left_out))

    def probabilities(slope, scores):
        power = np.exp(slope * scores)
        return power / power.sum(axis=1, keepdims=True)

    def loss(slope):
        p = np.log(probabilities(slope, left_out))
        return -(p[np.arange(9), full.given].sum() + p.mean())

    best = min(np.exp(np.linspace(-6, 3, 4001)), key=loss)
    np.testing.assert_allclose(found, probabilities(best, everywhere), atol=0.005)
    assert corpus_peers.with_temperature(problem(per_class=1), None) is None


def test_all_sets_together_have_equal_weight():
    """One set is too sure by 0.2 and another too unsure by 0.2, in one bin and in two."""
    few, many = np.array([10]), np.array([1000])
    sure = SimpleNamespace(confidence=np.array([0.7]), accuracy=np.array([0.5]), count=few)
    unsure = SimpleNamespace(confidence=np.array([0.7]), accuracy=np.array([0.9]), count=many)
    other = SimpleNamespace(confidence=np.array([0.9]), accuracy=np.array([1.0]), count=many)
    assert corpus_summary.all_sets_error([sure, unsure]) == pytest.approx(0.0, abs=1e-12)
    assert corpus_summary.all_sets_error([sure, other]) == pytest.approx((0.2 + 0.1) / 2)


def test_differences_are_paired_by_set():
    sets = [
        {"graphuq": [{"log": ours}], "a": [{"log": ours + gap}, {"log": ours + gap}]}
        for ours, gap in ((0.2, 0.1), (5.0, 0.3))
    ]
    assert corpus_summary.paired(sets, "graphuq", "a", "log") == "-0.200 ± 0.100"


def test_best_peer_is_chosen_afterwards():
    def rows(method, values):
        return [{"draw": i, "log": value} for i, value in enumerate(values)]

    methods = {
        "graphuq": rows("graphuq", [0.5, 0.6, 0.7]),
        "a": rows("a", [0.4, 0.5, 0.7]),
        "b": rows("b", [0.6, 0.6, 0.6, 9.0]),  # the fourth draw is not one of ours
        "c": rows("c", [0.1]),  # too few draws to compare
        corpus_peers.BOUND: rows("bound", [0.0, 0.0, 0.0]),
    }
    assert corpus_summary.best_peer(methods, "graphuq", "log")[0] == "a"
    name, verdict, mine, peer, theirs = corpus_summary.comparisons(
        {"set": methods}, "graphuq", "log"
    )[0]
    assert (name, verdict, peer) == ("set", 0, "a")
    assert (mine, theirs) == (pytest.approx(0.6), pytest.approx(1.6 / 3))


def test_peer_of_a_draw_is_chosen_on_the_others():
    """Draws 0 and 1 have "b", as the others tell, and draw 2 has "a", which is worse there."""
    values = {"graphuq": [0.0, 0.0, 0.0], "a": [0.1, 0.5, 0.5], "b": [0.4, 0.4, 0.1]}
    methods = {
        name: [{"draw": i, "log": value} for i, value in enumerate(own)]
        for name, own in values.items()
    }
    name, theirs, mine = corpus_summary.best_peer(methods, "graphuq", "log", afterwards=False)
    assert name == "b"
    np.testing.assert_array_equal(theirs, [0.4, 0.4, 0.5])
    np.testing.assert_array_equal(mine, [0.0, 0.0, 0.0])
    alone = {name: rows[:1] for name, rows in methods.items()}
    assert corpus_summary.best_peer(alone, "graphuq", "log", afterwards=False) is None


def test_graph_without_features():
    """Methods that need features do not apply to a graph; the others do."""
    X, codes = corpus.load("blocks, two")
    labelled = corpus.draw_labels(codes, 2, 0)
    graph = corpus_peers.default_graph(X)
    assert isinstance(graph, gq.graphs.Graph)
    given = corpus_peers.Problem("blocks, two", X, codes, graph, labelled)
    assert corpus_peers.logistic_regression(given) is None
    assert corpus_peers.bayes_posterior(given) is None
    assert corpus_peers.label_spreading(given, own_graph=True).shape == (800, 2)


def test_classes_of_the_prior_follow_the_graph():
    """Neighbours share a class more often than chance, and every class has rows enough."""
    X, _ = corpus.load("moons, clean")
    graph = gq.graphs.knn_graph(X, 15)
    agreement = []
    for seed in range(8):
        classes = corpus.classes_of_prior(graph, 2, 5, seed)
        shares = np.bincount(classes) / len(classes)
        assert np.bincount(classes).min() >= 10
        rows, columns = graph.weights.nonzero()
        same = (classes[rows] == classes[columns]).mean()
        agreement.append((same - (shares**2).sum()) / (1 - (shares**2).sum()))
    assert np.mean(agreement) > 0.2  # 1: neighbours always agree; 0: chance
