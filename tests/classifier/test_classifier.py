"""`GraphClassifier` as a scikit-learn estimator."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import graphuq as gq
from graphuq.errors import (
    FarRowsWarning,
    FeatureScaleWarning,
    GraphuqWarning,
    IncompatibleParts,
    InvalidInput,
    NotConvergedWarning,
    StorageError,
)

SHORT = gq.inference.MCMC(n_samples=40, n_chains=2, n_warmup=200, thin=2, stop=None)
MOONS = gq.datasets.two_moons(120, n_features=2, noise_std=0.05, rng=1)


def expected_failures(_):
    weights = "a row of weight 0 stays in the graph, and a repeated row changes the graph"
    return {
        "check_classifiers_classes": "its target {-1, 1} means unlabelled here, as in "
        "scikit-learn's own semi-supervised estimators, which it exempts by name",
        "check_sample_weight_equivalence_on_dense_data": weights,
        "check_sample_weight_equivalence_on_sparse_data": weights,
    }


# The first result without a search suffices, as the estimator is checked.
@parametrize_with_checks(
    [gq.GraphClassifier(model="fixed", inference="expectation-propagation")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphuqWarning)  # short runs, small odd graphs
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [gq.GraphClassifier(inference="expectation-propagation")],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract_with_evidence(estimator, check):
    test_scikit_learn_contract(estimator, check)


def few_labels(missing, classes=MOONS.classes):
    y = np.full(len(classes), missing, dtype=object if missing in (None, "") else None)
    y[:12] = classes[:12]
    return y


@pytest.fixture(scope="module")
def fitted():
    return gq.GraphClassifier(n_neighbors=8, random_state=0).fit(MOONS.features, few_labels(-1))


@pytest.mark.parametrize("missing", [-1, np.nan, None, ""])
def test_unlabelled_in_every_spelling(missing, fitted):
    names = np.array(["a", "b"], dtype=object)[MOONS.classes]
    classes = names if missing in (None, "") else MOONS.classes
    y = few_labels(missing, classes)
    classifier = gq.GraphClassifier(n_neighbors=8, random_state=0).fit(MOONS.features, y)
    assert classifier.classes_.tolist() == (["a", "b"] if missing in (None, "") else [0, 1])
    assert (classifier.transduction_ == classes).mean() > 0.95
    np.testing.assert_array_equal(classifier.label_distributions_, fitted.label_distributions_)


def test_minus_one_can_be_a_class():
    y = few_labels(np.nan, 2.0 * MOONS.classes - 1)
    with pytest.raises(InvalidInput, match="missing_label=None makes it a class"):
        gq.GraphClassifier(inference=SHORT).fit(MOONS.features, y)
    classifier = gq.GraphClassifier(n_neighbors=8, missing_label=None).fit(MOONS.features, y)
    assert classifier.classes_.tolist() == [-1, 1]


def test_rows_of_the_graph_keep_their_posterior(fitted):
    np.testing.assert_array_equal(fitted.predict_proba(MOONS.features), fitted.label_distributions_)
    np.testing.assert_array_equal(fitted.predict(MOONS.features), fitted.transduction_)
    np.testing.assert_array_equal(
        fitted.predict_interval(MOONS.features), gq.credible_interval(fitted.result_)
    )


def test_new_rows(fitted):
    new = gq.datasets.two_moons(300, n_features=2, noise_std=0.05, rng=2)
    probability = fitted.predict_proba(new.features)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert (fitted.predict(new.features) == new.classes).mean() > 0.95
    with pytest.warns(FarRowsWarning, match="1 of 1 rows, such as row 0, are too far"):
        far = fitted.predict_proba([[1e6, 1e6]])
    np.testing.assert_array_equal(far, [[0.5, 0.5]])
    assert fitted.predict_interval(new.features[:3]).shape == (3, 2)


def test_precomputed_graph_stays_sparse():
    graph = gq.graphs.knn_graph(MOONS.features, 8)
    classifier = gq.GraphClassifier("precomputed").fit(graph.weights, few_labels(-1))
    assert sparse.issparse(classifier.graph_.weights)
    assert (classifier.transduction_ == MOONS.classes).mean() > 0.95
    assert classifier.predict(graph.weights[:7]).shape == (7,)


def test_pipeline_clone_and_search():
    quick = gq.GraphClassifier(n_neighbors=8, inference="expectation-propagation")
    pipeline = make_pipeline(StandardScaler(), quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphuqWarning)
        assert pipeline.fit(MOONS.features, few_labels(-1)).predict(MOONS.features).shape == (120,)
        likelihoods = [gq.likelihoods.Probit(0.1), gq.likelihoods.Probit(5.0), "level-set"]
        models = [gq.models.Fixed(likelihood=one) for one in likelihoods]
        search = GridSearchCV(clone(pipeline), {"graphclassifier__model": models}, cv=2)
        search.fit(MOONS.features, MOONS.classes)
    assert search.best_score_ > 0.9


def test_file_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "c.nc")
    again = gq.GraphClassifier.load(tmp_path / "c.nc")
    new = gq.datasets.two_moons(50, n_features=2, noise_std=0.05, rng=3).features
    # Products of arrays at other memory addresses may be summed in another order.
    np.testing.assert_allclose(again.predict_proba(new), fitted.predict_proba(new), rtol=1e-8)
    np.testing.assert_array_equal(again.transduction_, fitted.transduction_)
    fitted.result_.save(tmp_path / "r.nc")
    with pytest.raises(StorageError, match="no classifier"):
        gq.GraphClassifier.load(tmp_path / "r.nc")


@pytest.mark.slow
def test_expectation_propagation_agrees_with_sampling():
    slow = gq.GraphClassifier(n_neighbors=8, inference="exact-hamiltonian")
    slow.fit(MOONS.features, few_labels(-1))
    fast = gq.GraphClassifier(n_neighbors=8, inference="expectation-propagation")
    fast.fit(MOONS.features, few_labels(-1))
    assert fast.n_iter_ < 100
    np.testing.assert_allclose(
        fast.predict_proba(MOONS.features), slow.label_distributions_, atol=0.05
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"graph": "ring"}, "graph: 'ring' is unknown"),
        ({"n_neighbors": "many"}, "n_neighbors: 'many'"),
        ({"n_neighbors": 120}, "use at most 119"),
        ({"model": "average-of-all"}, "model: 'average-of-all' is unknown"),
        ({"model": "Fixed('flat')"}, "prior: 'flat' is unknown"),
        (
            {"model": "LargestEvidence(likelihood='logit')"},
            "use one of auto, probit, softmax, level-set, atomic-noise, noise-free, ginzburg",
        ),
        ({"inference": "exact"}, "inference: 'exact'"),
        ({"random_state": "lucky"}, "random_state"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(InvalidInput, match=words):
        gq.GraphClassifier(**{"inference": SHORT, **options}).fit(MOONS.features, few_labels(-1))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(120, -1), "no label among 120 rows"),
        (np.where(np.arange(120) < 5, 1, -1), "one class only"),
        (np.zeros((120, 2)), "one label a row"),
    ],
)
def test_bad_labels(y, words):
    with pytest.raises(InvalidInput, match=words):
        gq.GraphClassifier(inference=SHORT).fit(MOONS.features, y)


def test_without_evidence_the_medians_are_kept(monkeypatch):
    def not_converged(posterior, names):
        raise InvalidInput(
            "posterior", "expectation propagation does not converge", "use another prior"
        )

    monkeypatch.setattr("graphuq.models.evidence.maximize_evidence", not_converged)
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0, 0], [2, 2]], 20, axis=0)
    y = np.full(40, -1)
    y[[0, 5, 25, 30]] = [0, 0, 1, 1]
    settings = {"model": "largest-evidence", "inference": "expectation-propagation"}
    classifier = gq.GraphClassifier(n_neighbors=8, **settings)
    with pytest.warns(NotConvergedWarning, match="could not choose tau, alpha, include_constant"):
        classifier.fit(X, y)
    assert classifier.result_.posterior.prior == gq.priors.Matern(tau=0.25, alpha=4.0)


@pytest.mark.slow
def test_hyperparameters_are_learnt_with_the_labels(tmp_path):
    prior = gq.priors.Matern(tau=gq.LogUniform(0.05, 2.0), truncation=gq.DiscreteUniform(3, 20))
    noise = gq.likelihoods.Probit(noise_std=gq.LogNormal(0.1, 0.5))
    classifier = gq.GraphClassifier(
        n_neighbors=8,
        n_eigenpairs=20,
        model=gq.models.Fixed(prior, noise),
        inference=gq.inference.MCMC(n_samples=200, n_chains=8),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        classifier.fit(MOONS.features, few_labels(-1))
    assert (classifier.transduction_ == MOONS.classes).mean() > 0.9
    learnt = classifier.result_.hyperparameters
    assert {name: draws.shape[0] for name, draws in learnt.items()} == {
        "tau": 8,
        "truncation": 8,
        "noise_std": 8,
    }
    assert "tau" in gq.results.convergence_table(classifier.result_)
    classifier.save(tmp_path / "c.nc")
    again = gq.GraphClassifier.load(tmp_path / "c.nc")
    assert again.result_.posterior.prior == prior
    new = MOONS.features[:3] + 0.01
    np.testing.assert_array_equal(again.predict_proba(new), classifier.predict_proba(new))
    for name, draws in again.result_.hyperparameters.items():
        np.testing.assert_array_equal(draws, learnt[name])
    gq.write_report(classifier.result_, tmp_path / "r.html")
    assert "LogUniform(0.05, 2)" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_added_labels_are_equal_to_fitted_labels(n_classes):
    """The result is that of a fit with all labels and the hyperparameters of the first fit."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_classes), 60)
    features = rng.normal(size=(len(truth), 2)) + 3.0 * truth[:, None]
    names = np.array(["c", "a", "b"])[truth]
    y = np.full(len(truth), "", dtype="U1")
    first = np.concatenate([np.flatnonzero(truth == k)[:3] for k in range(n_classes)])
    y[first] = names[first]
    options = {"missing_label": None, "inference": "expectation-propagation", "n_neighbors": 8}
    options["model"] = "largest-evidence"
    classifier = gq.GraphClassifier(**options).fit(features, y)
    posterior = classifier.result_.posterior
    more = np.append(np.flatnonzero(truth == 0)[10:80:10], first[0])  # the last changes its class
    given = np.append(names[more[:-1]], names[-1])
    assert classifier.add_labels(more, given) is classifier
    y[more] = given
    known = gq.models.Fixed(posterior.prior, posterior.likelihood)
    assert known == classifier.model_
    expected = gq.GraphClassifier(**options | {"model": known}).fit(features, y)
    # Three classes use 2,000 draws in other coordinates; the bound is four standard errors.
    bound = 1e-4 if n_classes == 2 else 4 * np.sqrt(2 * 0.25 / 2000)
    np.testing.assert_allclose(
        classifier.label_distributions_, expected.label_distributions_, atol=bound
    )
    with pytest.raises(InvalidInput, match=r"row .999. does not exist"):
        classifier.add_labels([999], ["a"])


def test_class_proportions_hold_after_labels_were_added():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 2))
    y = np.full(200, -1)
    y[[0, 1, 2, 3]] = features[[0, 1, 2, 3], 0] > np.median(features[:4, 0])
    options = {"inference": "expectation-propagation", "n_neighbors": 8}
    classifier = gq.GraphClassifier(class_proportions={0: 0.3, 1: 0.7}, **options)
    classifier.fit(features, y).add_labels(np.arange(10, 30), (features[10:30, 0] > 0).astype(int))
    rest = ~np.isin(np.arange(200), np.r_[:4, 10:30])
    assert abs((classifier.transduction_[rest] == 1).mean() - 0.7) <= 1 / rest.sum()


def test_names_of_columns_are_kept_and_named(tmp_path):
    rows = pd.DataFrame(MOONS.features * [1, 1000], columns=["small", "large"])
    y = np.where(np.arange(120) < 12, MOONS.classes, -1)
    with pytest.warns(FeatureScaleWarning, match=r"\(column 'large': .*; column 'small': "):
        classifier = gq.GraphClassifier(inference="expectation-propagation").fit(rows, y)
    classifier.save(tmp_path / "saved.nc")
    loaded = gq.load(tmp_path / "saved.nc")
    assert loaded.feature_names_in_.tolist() == ["small", "large"]
    np.testing.assert_array_equal(loaded.predict(rows), classifier.predict(rows))
    with pytest.raises(ValueError, match="same order"):
        loaded.predict(rows[["large", "small"]])


def test_sets_of_classes_in_and_out_of_the_graph():
    data = gq.datasets.two_moons(200, n_features=2, noise_std=0.15)
    names = np.array(["low", "high"])[data.classes]
    y = np.where(np.arange(200) < 30, names, "")
    classifier = gq.GraphClassifier(inference="expectation-propagation").fit(data.features, y)
    rows = np.vstack([data.features[:50], data.features[:50] + 1e-3])
    probabilities = classifier.predict_proba(rows)
    sets = classifier.predict_set(rows, coverage=0.97)
    assert sets.any(axis=1).all()
    assert probabilities[sets].min() > probabilities[~sets].max()  # one threshold for all rows
    every = gq.prediction_sets(classifier.result_, 0.97)[30:]
    held = (classifier.result_.probabilities[30:] * every).sum(axis=1).mean()
    assert 0.97 - 1e-9 <= held < 0.97 + 1 / 170  # one class more or less of 170 unlabelled nodes
    np.testing.assert_array_equal(sets[30:50], every[:20])
    conformal = classifier.predict_set(rows, coverage=0.9, method="conformal")
    assert conformal.shape == (100, 2)
    assert conformal.any(axis=1).all()
    np.testing.assert_array_equal(
        conformal[:50], gq.prediction_sets(classifier.result_, 0.9, "conformal")[:50]
    )
    with pytest.raises(InvalidInput, match="at least 99 labels"):
        classifier.predict_set(rows, coverage=0.99, method="conformal")
    with pytest.raises(InvalidInput, match="method"):
        classifier.predict_set(rows, method="other")
    assert set(classifier.suspect_labels(3)["given"]) <= {"low", "high"}
    moved = gq.GraphClassifier(
        inference="expectation-propagation", class_proportions={"low": 0.5, "high": 0.5}
    ).fit(data.features, y)
    with pytest.raises(IncompatibleParts, match="class_proportions"):
        moved.predict_set(rows, method="conformal")
