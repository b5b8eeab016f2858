"""Search by evidence: what it finds, where it stores that, and what it refuses."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import graphuq as gq
from graphuq.errors import (
    DisconnectedGraphWarning,
    IncompatibleParts,
    InvalidInput,
    StorageError,
)
from graphuq.graphs import GaussianWeights, TanhWeights

MOONS = gq.datasets.two_moons(160, n_features=2, noise_std=0.08, rng=1)
X = MOONS.features
LABELLED = np.random.default_rng(2).choice(160, 16, replace=False)
Y = np.where(np.isin(np.arange(160), LABELLED), MOONS.classes, -1)
SETTINGS = {
    "laplacian": "unnormalized",
    "model": gq.models.Fixed("regularized-laplacian", "logistic"),
    "inference": "laplace",
}

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")


def classifier(graph="knn", **changes):
    weights = "unweighted" if graph == "knn" else "auto"
    return gq.GraphClassifier(**({"graph": graph, "weights": weights} | SETTINGS | changes))


def evidence_of(estimator, x=X):
    return estimator.fit(x, Y).result_.log_evidence


@pytest.mark.slow
def test_equal_rows_count_once_as_in_the_graph():
    x = X.round(0)  # 8 distinct rows
    search = gq.EvidenceSearch(classifier(), {"n_neighbors": [5, 12]}, refit=False).fit(x, Y)
    for row in search.results_:
        own = evidence_of(classifier(n_neighbors=row["n_neighbors"]), x)
        assert row["score"] == pytest.approx(own, abs=1e-5)


def test_a_list_is_tried_one_value_at_a_time():
    """Each score is the evidence of a fit, and the best value is fitted."""
    search = gq.EvidenceSearch(classifier(), {"n_neighbors": [3, 6, 12]}).fit(X, Y)
    for row in search.results_:
        own = evidence_of(classifier(n_neighbors=row["n_neighbors"]))
        assert row["score"] == pytest.approx(own, abs=1e-5)
    best = max(search.results_, key=lambda row: row["score"])
    assert search.best_params_ == {"n_neighbors": best["n_neighbors"]}
    assert search.best_estimator_.result_.log_evidence == pytest.approx(
        search.best_score_, abs=1e-5
    )
    assert search.score(X, MOONS.classes) > 0.8
    np.testing.assert_allclose(search.predict_proba(X).sum(axis=1), 1)


def test_a_range_of_neighbours_is_stepped_through():
    search = gq.EvidenceSearch(classifier(), {"n_neighbors": (2, 100)}, refit=False).fit(X, Y)
    tried = {row["n_neighbors"]: row["score"] for row in search.results_}
    assert len(tried) == len(search.results_) > 16
    every = gq.EvidenceSearch(classifier(), {"n_neighbors": range(2, 101)}, refit=False).fit(X, Y)
    assert search.best_score_ > every.best_score_ - 0.1


@pytest.mark.parametrize(
    ("graph", "weights", "parameters"),
    [
        (
            "complete",
            TanhWeights(4.0, 0.5),
            {"weights__steepness": (1.0, 60.0), "weights__cutoff": (0.1, 2.0)},
        ),
        (
            "complete",
            GaussianWeights(0.3),
            {"weights__scale": (0.03, 2.0), "prior__sigma": (1.0, 1e3)},
        ),
        ("knn", GaussianWeights((0.3, 0.3)), {"weights__scale": (0.05, 5.0)}),
    ],
)
def test_climbing_reaches_the_top_of_a_grid(graph, weights, parameters):
    estimator = classifier(graph, weights=weights)
    search = gq.EvidenceSearch(estimator, parameters, n_starts=2).fit(X, Y)
    if isinstance(weights.__dict__.get("scale"), tuple):
        assert len(search.best_params_["weights__scale"]) == 2
    else:
        grids = {k: np.geomspace(*ends, 7) for k, ends in parameters.items()}
        values = search.surface(grids)
        assert values.shape == (7,) * len(grids)
        assert values.max() <= search.best_score_ + 1e-6
        ax = gq.plots.panels()[1][0]
        gq.plots.plot_evidence(grids, values, search.best_params_, ax=ax)
        assert len(ax.figure.axes) == 2  # the surface and its colour bar
    fitted = search.best_estimator_.result_.log_evidence
    assert fitted == pytest.approx(search.best_score_, abs=1e-4)


def test_a_distribution_weights_the_evidence():
    """A narrow distribution decides the value; the score is still the evidence alone."""
    law = gq.LogNormal(0.7, 0.01)
    estimator = classifier("complete", weights=GaussianWeights(0.3))
    search = gq.EvidenceSearch(estimator, {"weights__scale": law}, n_starts=1).fit(X, Y)
    assert search.best_params_["weights__scale"] == pytest.approx(0.7, rel=0.03)
    (row,) = search.results_
    density = law.frozen.logpdf(row["weights__scale"]) + np.log(row["weights__scale"])
    assert row["objective"] - row["score"] == pytest.approx(density, abs=1e-6)


def test_other_priors_other_likelihoods_and_a_ready_made_graph():
    """Matérn series and a level set are searched by expectation propagation."""
    estimator = gq.GraphClassifier(
        model="fixed", inference="expectation-propagation", n_eigenpairs=40
    )
    parameters = {
        "prior__tau": (0.05, 2.0),
        "likelihood__noise_std": (0.05, 2.0),
        "n_neighbors": [8, 15],
    }
    search = gq.EvidenceSearch(estimator, parameters, n_starts=1).fit(X, Y)
    fitted = search.best_estimator_.result_.log_evidence
    assert fitted == pytest.approx(search.best_score_, abs=1e-5)
    weights = sparse.csr_array(gq.graphs.knn_graph(X, 8).weights)
    ready = gq.GraphClassifier(
        "precomputed",
        model=gq.models.Fixed(likelihood="level-set"),
        inference="expectation-propagation",
    )
    found = gq.EvidenceSearch(
        ready, {"prior__alpha": [1.0, 3.0], "likelihood__noise_std": [0.4, 1.0]}
    )
    found.fit(weights, Y)
    assert len(found.results_) == 4
    fitted = found.best_estimator_.result_.log_evidence
    assert fitted == pytest.approx(found.best_score_, abs=1e-5)


def test_a_curve_and_refused_plots():
    search = gq.EvidenceSearch(classifier(), {"n_neighbors": [3, 6, 12]}, refit=False).fit(X, Y)
    grids = {"n_neighbors": [3, 6, 12]}
    values = search.surface(grids)
    np.testing.assert_allclose(values, [row["score"] for row in search.results_], atol=1e-8)
    ax = gq.plots.panels()[1][0]
    assert gq.plots.plot_evidence(grids, values, search.best_params_, ax=ax) is ax
    assert len(ax.figure.axes) == 1
    with pytest.raises(InvalidInput, match="draw one or two"):
        gq.plots.plot_evidence({}, values, search.best_params_)


@pytest.mark.slow
def test_three_classes_and_alignment():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 2)) + 3 * np.eye(3)[np.arange(90) % 3][:, :2]
    y = np.where(np.arange(90) < 12, np.arange(90) % 3, -1)
    for criterion in ("expectation-propagation", "alignment"):
        estimator = classifier(
            model=gq.models.Fixed("regularized-laplacian", "softmax"), n_neighbors=10
        )
        search = gq.EvidenceSearch(estimator, {"n_neighbors": [5, 10, 20]}, criterion=criterion)
        search.fit(x, y)
        assert search.predict(x).shape == (90,)
        assert np.isfinite([row["score"] for row in search.results_]).all()


@pytest.mark.slow
def test_an_interrupted_search_resumes(tmp_path, monkeypatch):
    path = tmp_path / "search.json"
    parameters = {"n_neighbors": [3, 5, 9, 14], "prior__sigma": (1.0, 1e3)}
    whole = gq.EvidenceSearch(classifier(), parameters, n_starts=2, refit=False).fit(X, Y)
    seen = []

    def interrupt(phase, done, total, best):
        seen.append((phase, done, total))
        if done == 2:
            raise KeyboardInterrupt

    search = gq.EvidenceSearch(
        classifier(), parameters, n_starts=2, refit=False, checkpoint=path, progress=interrupt
    )
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert seen == [("searching", 1, 4), ("searching", 2, 4)]
    search.progress = False
    search.fit(X, Y)
    assert [r["score"] for r in search.results_] == [r["score"] for r in whole.results_]
    assert search.best_params_ == whole.best_params_
    relabelled = np.where(Y == -1, -1, 1 - Y)
    others = [
        (gq.EvidenceSearch(classifier(), {"n_neighbors": [3]}, checkpoint=path), X, Y),
        (search, X + 1e-6, Y),
        (search, X, relabelled),
        (clone(search).set_params(random_state=1), X, Y),
        (clone(search).set_params(estimator__laplacian="symmetric"), X, Y),
    ]
    for other, x, y in others:
        with pytest.raises(StorageError, match="another search"):
            other.fit(x, y)
    path.write_text("{")
    with pytest.raises(StorageError, match="not a readable checkpoint"):
        search.fit(X, Y)


def test_a_failed_combination_has_its_own_row():
    """A radius without any neighbour is reported as an error in its row."""
    estimator = classifier(gq.graphs.Epsilon(0.4))
    search = gq.EvidenceSearch(estimator, {"graph__radius": [1e-9, 0.3]}, refit=False).fit(X, Y)
    assert "no pair within" in search.results_[0]["error"]
    assert search.best_params_ == {"graph__radius": 0.3}
    with pytest.raises(InvalidInput, match="no combination has an evidence"):
        gq.EvidenceSearch(estimator, {"graph__radius": [1e-9]}).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "give a dict"),
        (None, "give a dict"),
        ({"neighbours": [1]}, "'neighbours' is unknown"),
        ({"kernel__gamma": (1, 2)}, "'kernel__gamma' is unknown"),
        ({"n_neighbors": []}, "give a list"),
        ({"laplacian": ("symmetric", "unnormalized")}, "no gradient"),
        ({"prior__sigma": (3.0, 1.0)}, "low < high"),
        ({"n_neighbors": (9, 3)}, "low < high"),
        ({"n_neighbors": [200]}, "no combination"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(InvalidInput, match=message):
        gq.EvidenceSearch(classifier(), parameters).fit(X, Y)


def test_models_without_evidence_are_refused():
    learnt = gq.GraphClassifier(
        model=gq.models.LargestEvidence(gq.priors.Matern(tau=gq.LogUniform(0.1, 1)))
    )
    with pytest.raises(InvalidInput, match="learnt by sampling"):
        gq.EvidenceSearch(learnt, {"n_neighbors": [5]}).fit(X, Y)
    with pytest.raises(InvalidInput, match="weights__cutoff"):
        gq.EvidenceSearch(classifier(), {"weights__cutoff": (0.1, 1.0)}).fit(X, Y)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("outside", ["mean", "nearest", "combination"])
@pytest.mark.parametrize("graph", ["knn", "complete", gq.graphs.Epsilon(0.4)])
def test_classifier_on_any_graph_predicts_other_rows(graph, outside, tmp_path):
    estimator = classifier(graph, out_of_sample=outside)
    weights = gq.graphs.GaussianWeights(0.15) if graph == "complete" else "unweighted"
    estimator.set_params(weights=weights).fit(X, Y)
    fresh = gq.datasets.two_moons(80, n_features=2, noise_std=0.08, rng=5)
    predicted = estimator.predict(fresh.features)
    assert (predicted == fresh.classes).mean() > 0.8
    np.testing.assert_allclose(
        estimator.predict_proba(X), estimator.label_distributions_, atol=1e-12
    )
    if outside == "nearest":
        nearest = np.argmin(((fresh.features[:, None] - X[None]) ** 2).sum(axis=2), axis=1)
        np.testing.assert_allclose(
            estimator.predict_latent(fresh.features).latent_mean,
            estimator.result_.latent_mean[nearest],
            atol=1e-9,
        )
    estimator.save(tmp_path / "fit.nc")
    loaded = gq.GraphClassifier.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        loaded.predict_proba(fresh.features), estimator.predict_proba(fresh.features)
    )


def test_sparse_features_by_the_cosine(tmp_path):
    """A sparse matrix, as for text, is fitted, saved and used to predict new rows."""
    rng = np.random.default_rng(0)
    words = rng.poisson(0.3 + 0.8 * ((np.arange(30) < 15) == (np.arange(80) < 40)[:, None]))
    x = sparse.csr_array(words.astype(float))
    y = np.where(np.isin(np.arange(80), [0, 1, 2, 50, 51, 52]), np.arange(80) < 40, -1)
    estimator = classifier(metric="cosine", n_neighbors=8).fit(x, y)
    truth = np.arange(80) < 40
    assert (estimator.transduction_ == truth).mean() > 0.9
    estimator.save(tmp_path / "fit.nc")
    loaded = gq.GraphClassifier.load(tmp_path / "fit.nc")
    new = sparse.csr_array(words[[3, 70]] + np.eye(2, 30))
    np.testing.assert_array_equal(loaded.predict(new), estimator.predict(new))
    np.testing.assert_array_equal(estimator.predict(new), [1, 0])


def test_given_distances_have_no_other_rows():
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    estimator = classifier(metric="precomputed", n_neighbors=8).fit(distances, Y)
    same = classifier(n_neighbors=8).fit(X, Y)
    np.testing.assert_allclose(estimator.label_distributions_, same.label_distributions_, atol=1e-9)
    with pytest.raises(InvalidInput, match="made from distances"):
        estimator.predict(distances)


def test_exact_prior_and_its_likelihood_by_evidence():
    """Noise "auto" is chosen for `RegularizedLaplacian` without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        model = gq.models.LargestEvidence(prior="regularized-laplacian")
        fitted = gq.GraphClassifier(
            model=model, inference="expectation-propagation", n_neighbors=8
        ).fit(X, Y)
    assert fitted.result_.settings["solver"] == "cholesky"
    assert fitted.result_.posterior.likelihood != gq.likelihoods.Probit()
    with pytest.raises(InvalidInput, match="leave it out"):
        gq.GraphClassifier(model=model, tail_eigenvalue=True).fit(X, Y)
    with pytest.raises(InvalidInput, match="out_of_sample: 'knn'"):
        gq.GraphClassifier(out_of_sample="knn").fit(X, Y)
    with pytest.raises(IncompatibleParts):
        gq.Posterior(
            gq.Laplacian(fitted.graph_),
            gq.priors.InverseLaplacian(),
            gq.likelihoods.Probit(),
            [0, 1],
            [1, -1],
        )


def test_a_pipeline_is_refused():
    with pytest.raises(InvalidInput, match="estimator: a Pipeline; give a GraphClassifier"):
        gq.EvidenceSearch(make_pipeline(gq.GraphClassifier()), {}).fit(np.eye(4), [0, 1, -1, -1])
