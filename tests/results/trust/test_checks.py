"""Every check of the verdict, with a case that passes and one that fails."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.inference import Point
from graphuq.results.approximation_error import ApproximationError
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.leaving_out import given_classes
from graphuq.results.trust import Check, Trust
from graphuq.results.trust.agreement import (
    MANY_LABELS,
    MIN_P_VALUE,
    SIMULATIONS,
    _of_gaussian,
    p_value_of,
    surplus_of,
)
from graphuq.results.trust.labels import log_chance

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
EP = gq.inference.ExpectationPropagation()
PROBIT = gq.likelihoods.Probit(0.5)


def clusters(n_labels=10, n_classes=2, separation=3.0, method=EP, likelihood=None, **options):
    """Return the result of Gaussian clusters on a line, with labels of random nodes of each."""
    rng = np.random.default_rng(1)
    classes = np.repeat(np.arange(n_classes), 40)
    features = rng.normal(size=(len(classes), 2)) + separation * classes[:, None]
    graph = gq.graphs.knn_graph(features, options.pop("n_neighbors", 8))
    labelled = np.concatenate(
        [
            rng.choice(np.flatnonzero(classes == k), n_labels // n_classes, replace=False)
            for k in range(n_classes)
        ]
    )
    codes = classes[labelled]
    if options.pop("shuffled", False):
        codes = rng.permutation(codes)
    posterior = gq.Posterior(
        gq.laplacian_spectrum(graph, n_eigenpairs=options.pop("n_eigenpairs", 20)),
        options.pop("prior", gq.priors.Matern()),
        likelihood or (PROBIT if n_classes == 2 else gq.likelihoods.Softmax(n_classes=n_classes)),
        labelled,
        2 * codes - 1 if n_classes == 2 else codes,
    )
    return gq.infer(posterior, method, **options)


@pytest.fixture(scope="module")
def clear():
    """Return a result of two clusters with many labels, on which every check holds."""
    return clusters(20)


def test_remedies_name_calls_that_work(clear):
    """The one against a poor approximation samples; others name functions and parameters."""
    from graphuq.inference import MCMC  # noqa: F401, named by the remedy
    from graphuq.results.diagnostics import SAMPLE

    call = SAMPLE.split("inference=")[1].rstrip(".")
    sampled = gq.infer(clear.posterior, eval(call))
    assert gq.results.is_sampled(sampled)
    moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.1, rng=1)
    y = np.where(np.arange(60) < 10, moons.classes, -1)
    for inference in (eval(call), call):  # a value, and text as the command line has it
        fitted = gq.GraphClassifier(inference=inference).fit(moons.features, y)
        assert gq.results.is_sampled(fitted.result_)
    sure = gq.likelihoods.Probit(0.1)
    reasons = clusters(20, shuffled=True, likelihood=sure).trust.reasons
    assert any("gq.suspect_labels(result)" in reason for reason in reasons)
    assert len(gq.suspect_labels(clear, 3)) == 3
    assert len(gq.acquisition.query(clear, 20)) == 20
    assert callable(gq.GraphClassifier.add_labels)


def test_all_checks_hold_on_clear_clusters(clear):
    assert clear.trust.level == "green", str(clear.trust)
    assert clear.trust.reasons == []
    assert str(clear.trust) == "Verdict: GREEN (every check of the answer holds)."
    assert str(clear).startswith(str(clear.trust))


def test_the_worst_level_counts_and_comes_first():
    checks = {
        "a": Check(1.0, 0.0, "green", "fine"),
        "b": Check(1.0, 2.0, "amber", "care"),
        "c": Check(1.0, 2.0, "red", "wrong"),
    }
    trust = Trust(checks)
    assert (trust.level, trust.reasons) == ("red", ["wrong", "care"])
    assert [check.ok for check in checks.values()] == [True, False, False]
    assert str(trust).splitlines()[1:] == ["- wrong", "- care"]


@pytest.mark.parametrize(("error", "level"), [(0.04, "green"), (0.06, "amber"), (None, "amber")])
def test_convergence_of_an_approximation(clear, error, level):
    changed = {"estimate_error": lambda: ApproximationError(0.5, error)}
    diagnostics = dataclasses.replace(clear.diagnostics, **changed)
    check = dataclasses.replace(clear, diagnostics=diagnostics).trust.checks["convergence"]
    assert (check.level, check.value) == (level, error)


def test_convergence_of_chains():
    result = clusters(20, method=None, n_samples=1000, n_chains=4, rng=0)
    diagnostics = dataclasses.replace(result.diagnostics, rhat=1.0, ess_bulk=900.0, ess_tail=900.0)
    for rhat, level in ((1.001, "green"), (1.2, "red")):
        changed = dataclasses.replace(diagnostics, rhat=rhat)
        found = dataclasses.replace(result, diagnostics=changed).trust
        assert found.checks["convergence"].level == level
        assert (changed.verdict in found.reasons) == (level == "red")


def test_a_point_is_red():
    result = clusters(10, method=gq.inference.MAP())
    assert isinstance(result.answer, Point)
    assert result.trust.level == "red"
    assert result.trust.checks["agreement"].value is None


def test_one_label_of_a_class_cannot_be_confirmed(clear):
    assert clear.trust.checks["labels_per_class"].value == 10
    check = clusters(2).trust.checks["labels_per_class"]
    assert (check.value, check.level) == (1, "amber")
    assert "2 classes have only one label" in check.sentence
    assert clusters(2).trust.checks["agreement"].value is None


def test_evidence_of_labels_that_the_graph_does_not_explain(clear):
    good = clear.trust.checks["evidence"]
    assert good.ok
    assert good.value == pytest.approx(clear.log_evidence - 20 * np.log(0.5))
    doubtful = clusters(20, shuffled=True).trust.checks["evidence"]
    assert -np.log(100) < doubtful.value < 2
    assert doubtful.level == "amber"
    sure = gq.likelihoods.Probit(0.1)
    bad = clusters(20, shuffled=True, likelihood=sure).trust.checks["evidence"]
    assert bad.value < -np.log(100)
    assert bad.level == "red"
    words = f"A model without the graph has the larger evidence (by {-bad.value:.1f}). Check the"
    assert bad.sentence.startswith(words)


def test_few_labels_cannot_tell():
    """With one label each of two classes, the gain is at most log 2."""
    check = clusters(2).trust.checks["evidence"]
    assert check.value <= np.log(2)
    assert not check.ok


def test_evidence_is_normalised_over_labels():
    """A likelihood times a constant gives the same gain."""

    class Tripled(gq.likelihoods.Probit):
        def log_prob(self, u, y):
            return super().log_prob(u, y) + np.log(3.0)

        def tilt(self, mean, variance, y):
            tilted = super().tilt(mean, variance, y)
            return tilted._replace(log_partition=tilted.log_partition + np.log(3.0))

    plain, tripled = clusters(20), clusters(20, likelihood=Tripled(0.5))
    assert tripled.log_evidence == pytest.approx(plain.log_evidence + 20 * np.log(3.0))
    expected = plain.trust.checks["evidence"].value
    assert tripled.trust.checks["evidence"].value == pytest.approx(expected)


def test_evidence_without_an_estimate_is_the_leave_one_out_score(clear):
    answer = clear.answer._replace(log_evidence=None)
    changed = dataclasses.replace(clear, answer=answer)
    given = (clear.posterior.labels > 0).astype(int)
    scores = np.log(gq.leave_one_out(clear).of_label[np.arange(20), given])
    expected = scores.sum() + 20 * np.log(2)
    assert changed.trust.checks["evidence"].value == pytest.approx(expected)


def test_chance_models_are_distributions_of_labels():
    """The probabilities of all label sequences under the model of class shares add up to 1."""
    counts = [np.bincount(y, minlength=3) for y in itertools.product(range(3), repeat=4)]
    orders = {tuple(c): 0 for c in counts}
    for c in counts:
        orders[tuple(c)] += 1
    shares = {c: 1 / 15 / n for c, n in orders.items()}  # 15 counts, equally probable
    assert len(orders) == 15
    for c in counts:
        expected = max(shares[tuple(c)], 3.0**-4)
        assert log_chance(c) == pytest.approx(np.log(expected))


def test_certainty(clear):
    check = clear.trust.checks["certainty"]
    free = np.setdiff1d(np.arange(80), clear.posterior.labelled)
    mean = clear.probabilities[free].max(axis=1).mean()
    assert check.ok
    assert check.value == pytest.approx(2 * mean - 1)
    vague = dataclasses.replace(clear, probabilities=0.4 + 0.2 * clear.probabilities)
    assert vague.trust.checks["certainty"].level == "amber"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_agreement(n_classes):
    options = {"likelihood": PROBIT}
    if n_classes > 2:
        options = {"likelihood": gq.likelihoods.Softmax(0.3, 3), "method": None, "n_samples": 1000}
    good = clusters(24, n_classes, **options).trust.checks["agreement"]
    bad = clusters(24, n_classes, shuffled=True, **options).trust.checks["agreement"]
    assert good.ok
    assert bad.level == "red"
    assert "disagree" in bad.sentence


@pytest.mark.parametrize(("p", "level"), [(0.46, "amber"), (0.44, "red")])
def test_a_small_disagreement_is_amber_however_sure(p, level):
    """All 24 labels have the less probable class: 0.09 and 0.12 nats a label above the mean."""
    result = clusters(24)
    given = given_classes(result.posterior)
    probabilities = np.full((24, 2), 1 - p)
    probabilities[np.arange(24), given] = p
    expected = -(p * np.log(p) + (1 - p) * np.log(1 - p))
    assert surplus_of(probabilities, given) == pytest.approx(-np.log(p) - expected)
    found = kept_leave_one_out(result)._replace(of_label=probabilities)
    vars(result)["_kept_leave_one_out"] = found
    check = result.trust.checks["agreement"]
    assert check.value < MIN_P_VALUE
    assert check.level == level
    assert "gq.suspect_labels(result)" in check.sentence
    assert ("0.09 below the expected one" in check.sentence) == (level == "amber")


def test_what_cannot_be_computed_is_amber():
    """Draws of noise-free labels do not show what the other labels say."""
    options = {"likelihood": gq.likelihoods.NoiseFree(), "method": None}
    result = clusters(20, n_samples=1000, n_chains=4, **options)
    check = result.trust.checks["agreement"]
    assert (check.value, check.level) == (None, "amber")
    assert "was not computed: leave-one-out probabilities" in check.sentence


@pytest.mark.parametrize("is_learnt", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_agreement_where_importance_weights_are_unreliable(is_learnt):
    """A Gaussian takes the place of the draws; the p-value is that of expectation propagation."""
    tau = gq.LogUniform(0.29, 0.31) if is_learnt else 0.3
    options = {"n_samples": 500, "n_chains": 8, "method": None}
    result = clusters(24, prior=gq.priors.Matern(tau=tau), **options)
    unreliable = kept_leave_one_out(result)._replace(pareto_shape=np.full(24, 0.9))
    vars(result)["_kept_leave_one_out"] = unreliable
    expected = clusters(24, prior=gq.priors.Matern(tau=0.3)).trust.checks["agreement"]
    found = result.trust.checks["agreement"]
    assert found.ok
    assert found.value == pytest.approx(expected.value, abs=0.05)
    words = found.sentence.split("left out")[1].split("and")[0]
    assert words == expected.sentence.split("left out")[1].split("and")[0]


def test_the_p_value_equals_enumeration():
    """The bound is four standard errors of the simulation."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), size=5)
    given = np.array([0, 2, 1, 1, 0])
    rows = np.arange(5)
    observed = np.log(probabilities[rows, given]).sum()
    exact = 0.0
    for y in itertools.product(range(3), repeat=5):
        log = np.log(probabilities[rows, list(y)]).sum()
        exact += np.exp(log) * (log <= observed + 1e-9)
    error = np.sqrt(exact * (1 - exact) / SIMULATIONS)
    assert p_value_of(probabilities, given) == pytest.approx(exact, abs=4 * error)


def test_the_p_value_of_many_labels_is_uniform():
    """Labels from the model are rejected as often as the level says, within four errors."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, MANY_LABELS + 1)
    probabilities = np.stack([1 - p, p], axis=1)
    values = [p_value_of(probabilities, (rng.random(len(p)) < p).astype(int)) for _ in range(400)]
    assert np.mean(np.array(values) < 0.1) == pytest.approx(0.1, abs=4 * 0.015)
    assert p_value_of(probabilities, (p < 0.5).astype(int)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_agreement_of_a_true_model_is_rarely_rejected(n_classes):
    """Labels drawn from the model are called contradictory in about 1 % of 100 problems.

    Six or more of 100 have probability 0.0005 if the level holds.
    """
    spectrum = clusters(4, n_classes, separation=2.0).posterior.spectrum
    prior, rng = gq.priors.Matern(), np.random.default_rng(0)
    std = prior.spectral_std(spectrum).modes
    likelihood = PROBIT if n_classes == 2 else gq.likelihoods.Softmax(0.5, n_classes)
    rejected = 0
    for _ in range(100):
        u = spectrum.eigenvectors @ (std[:, None] * rng.normal(size=(len(std), n_classes)))
        nodes = rng.choice(len(u), 20, replace=False)
        if n_classes == 2:
            labels = np.where(u[nodes, 0] + 0.5 * rng.normal(size=20) > 0, 1, -1)
        else:
            noise = 0.5 * np.sqrt(6) / np.pi * rng.gumbel(size=(20, n_classes))
            labels = (u[nodes] + noise).argmax(axis=1)
        if len(np.unique(labels)) < n_classes:
            continue
        result = gq.infer(gq.Posterior(spectrum, prior, likelihood, nodes, labels), EP)
        rejected += result.trust.checks["agreement"].value < MIN_P_VALUE
    assert rejected < 6


def test_components_without_labels(clear):
    assert clear.trust.checks["components"].value == 0
    block = np.ones((10, 10)) - np.eye(10)
    graph = gq.graphs.from_adjacency(sparse.block_diag([sparse.csr_array(block)] * 3).tocsr())
    posterior = gq.Posterior(
        gq.laplacian_spectrum(graph), gq.priors.Matern(), PROBIT, [0, 1, 10, 11], [-1, -1, 1, 1]
    )
    check = gq.infer(posterior, EP).trust.checks["components"]
    assert (check.value, check.level) == (1 / 3, "amber")
    assert "10 of 30 nodes" in check.sentence


def test_a_saved_result_has_the_same_verdict(clear, tmp_path):
    clear.save(tmp_path / "result.nc")
    assert gq.load(tmp_path / "result.nc").trust == clear.trust


CLOUDS = np.random.default_rng(0).normal(size=(120, 2)), np.repeat(np.arange(3), 40)
GIVEN = np.flatnonzero(np.arange(120) % 40 < 5)  # five labels of each of three clouds


def of_clouds(distance, **more):
    """Return the result for three clouds on a diagonal."""
    noise, codes = CLOUDS
    graph = gq.graphs.knn_graph(noise + distance * codes[:, None], 10)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=40)
    prior, likelihood = gq.priors.Matern(0.3, 2.0), gq.likelihoods.Probit(0.3, 3)
    posterior = gq.Posterior(spectrum, prior, likelihood, GIVEN, codes[GIVEN], **more)
    return gq.infer(posterior, gq.inference.Laplace())


@pytest.mark.parametrize(("distance", "level"), [(3.0, "green"), (1.0, "amber")])
def test_what_hangs_on_class_shares_is_said(distance, level):
    result = of_clouds(distance, label_design="by-class")
    check = result.trust.checks["class_shares"]
    assert check.level == level
    free = np.delete(result.probabilities, GIVEN, axis=0)
    doubled = [free * np.where(np.arange(3) == k, 2.0, 1.0) for k in range(3)]
    changed = [(other.argmax(axis=1) != free.argmax(axis=1)).mean() for other in doubled]
    assert check.value == pytest.approx(max(changed))
    assert ("class_proportions" in check.sentence) == (level == "amber")
    assert of_clouds(distance).trust.checks["class_shares"].ok  # labels drawn at random


def test_shares_that_are_given_leave_nothing_to_say():
    noise, codes = CLOUDS
    y = np.full(120, -1)
    y[GIVEN] = codes[GIVEN]
    settings = {"model": "likeliest", "inference": "laplace", "n_eigenpairs": 40}
    levels = {}
    for shares in (None, [1 / 3] * 3):
        classifier = gq.GraphClassifier("precomputed", class_proportions=shares, **settings)
        graph = gq.graphs.knn_graph(noise + codes[:, None], 10)
        levels[shares is None] = classifier.fit(graph, y).result_.trust.checks["class_shares"].level
    assert levels == {True: "amber", False: "green"}
    # A label that is given again changes nothing of what hangs on the shares.
    classifier.set_params(class_proportions=None).fit(graph, y).add_labels([0], [codes[0]])
    assert classifier.result_.trust.checks["class_shares"].level == "amber"


def test_unreliable_weights_of_an_average_give_way_to_expectation_propagation():
    """Also where someone chose how many labels of each class, as single posteriors never know."""
    moons = gq.datasets.two_moons(80, n_features=2, noise_std=0.1)
    known = np.concatenate([np.flatnonzero(moons.codes() == k)[:12:4] for k in (0, 1)])
    y = np.where(np.isin(np.arange(80), known), moons.codes(), -1)
    result = (
        gq.GraphClassifier(inference=gq.inference.MCMC(n_samples=400))
        .fit(moons.features, y)
        .result_
    )
    assert result.posterior.is_weighted
    assert result.posterior.label_design == "by-class"
    expected = gq.infer(result.posterior, gq.inference.ExpectationPropagation())
    found = _of_gaussian(result)
    np.testing.assert_allclose(found.of_label, kept_leave_one_out(expected).of_label, atol=1e-6)
