"""A `Graph` in place of a name, and features of very different scales."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.classifier.feature_scales import column_scales
from graphuq.errors import FeatureScaleWarning, GraphuqWarning, InvalidInput

MOONS = gq.datasets.two_moons(200, n_features=2, noise_std=0.12, rng=1)
Y = np.where(np.arange(200) < 20, MOONS.classes, -1)
MODEL = {"model": "fixed", "inference": "expectation-propagation"}
KNN = gq.graphs.knn_graph(MOONS.features, 15, gq.graphs.SelfTuning(4.0))
WEIGHTS = gq.graphs.from_adjacency(KNN.weights)


@pytest.mark.parametrize("X", [MOONS.features, None], ids=["features", "None"])
def test_graph_of_features_is_the_graph_of_its_word(X):
    expected = gq.GraphClassifier(**MODEL).fit(MOONS.features, Y)
    fitted = clone(gq.GraphClassifier(KNN, **MODEL)).fit(X, Y)
    np.testing.assert_array_equal(fitted.label_distributions_, expected.label_distributions_)
    new = MOONS.features[:5] + 0.01
    np.testing.assert_array_equal(fitted.predict_proba(new), expected.predict_proba(new))
    np.testing.assert_array_equal(fitted.predict(MOONS.features), fitted.transduction_)


@pytest.mark.parametrize("graph", [WEIGHTS, WEIGHTS.weights], ids=["Graph", "sparse"])
def test_graph_of_weights(graph, tmp_path):
    expected = gq.GraphClassifier("precomputed", **MODEL).fit(WEIGHTS.weights, Y)
    fitted = gq.GraphClassifier(graph, **MODEL).fit(None, Y)
    np.testing.assert_array_equal(fitted.label_distributions_, expected.label_distributions_)
    np.testing.assert_array_equal(
        fitted.predict(WEIGHTS.weights[:7]), expected.predict(WEIGHTS.weights[:7])
    )
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 200"):
        fitted.predict(MOONS.features)
    fitted.save(tmp_path / "fit.nc")
    again = gq.GraphClassifier.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        again.predict(WEIGHTS.weights[:7]), fitted.predict(WEIGHTS.weights[:7])
    )


@pytest.mark.parametrize(
    ("graph", "X", "options", "words"),
    [
        (
            KNN,
            MOONS.features[:150],
            {},
            "150 rows, and the graph has 200 nodes; .*cross-val",
        ),
        (KNN, MOONS.features * 2, {}, "differs from the features that the graph was made from"),
        (KNN, MOONS.features[:, :1], {}, "X: 1 features; "),
        (KNN, None, {"n_neighbors": 10}, r"n_neighbors: 10 beside Graph\(200 nodes"),
        (WEIGHTS, None, {"metric": "cosine"}, r"metric: 'cosine' beside Graph\("),
    ],
)
def test_rows_that_do_not_fit_the_graph(graph, X, options, words):
    with pytest.raises(InvalidInput, match=words):
        gq.GraphClassifier(graph, **options, **MODEL).fit(X, Y)


def test_graph_is_refused_as_anything_else():
    with pytest.raises(InvalidInput, match="or a Graph"):
        gq.GraphClassifier(WEIGHTS.weights.toarray(), **MODEL).fit(None, Y)


def test_evidence_search_on_a_graph():
    words = {"weights": "unweighted", "n_neighbors": 15}
    graph = gq.graphs.knn_graph(MOONS.features, 15, "unweighted")
    scores = []
    for estimator in (gq.GraphClassifier(**words, **MODEL), gq.GraphClassifier(graph, **MODEL)):
        search = gq.EvidenceSearch(estimator, {"laplacian": ["symmetric", "unnormalized"]})
        scores.append([row["score"] for row in search.fit(MOONS.features, Y).results_])
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)


def test_features_of_different_scales():
    X, truth = load_wine(return_X_y=True)
    y = np.where(np.arange(178) % 6 == 0, truth, -1)
    classifier = gq.GraphClassifier(
        model="Fixed(likelihood=Softmax())", inference="expectation-propagation"
    )
    with pytest.warns(FeatureScaleWarning, match=r"column 12: 314.*StandardScaler.*--scaling"):
        classifier.fit(X, y)
    as_they_are = (classifier.transduction_ == truth)[y == -1].mean()
    pipeline = make_pipeline(StandardScaler(), classifier)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FeatureScaleWarning)
        pipeline.fit(X, y)
    assert (pipeline[-1].transduction_ == truth)[y == -1].mean() > as_they_are + 0.15


def units(X):
    """Return whether a fit warns about the scales of features."""
    y = np.where(np.arange(X.shape[0]) < 8, np.arange(X.shape[0]) % 2, -1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FeatureScaleWarning)
        options = {"metric": "cosine", "weights": "cosine"} if sparse.issparse(X) else {}
        gq.GraphClassifier(n_eigenpairs=10, **options, **MODEL).fit(X, y)
    return len(caught) > 0


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (RNG.normal(size=(60, 2)) * [1, 1000], True),
        (RNG.normal(size=(60, 2)) * [1, 50], False),
        (load_breast_cancer().data[:100], True),
        (load_iris().data, False),
        (load_digits().data[:200], False),
        (PCA().fit_transform(load_wine().data), False),
        (np.c_[RNG.normal(size=(60, 2)), np.full(60, 1e6)], False),
        (np.c_[RNG.normal(size=(300, 2)), np.arange(300) < 1], False),
        ((RNG.uniform(size=(300, 20)) < np.geomspace(0.004, 0.5, 20)).astype(float), False),
        (sparse.csr_array(RNG.uniform(size=(60, 30)) * (RNG.uniform(size=(60, 30)) < 0.3)), False),
    ],
    ids=[
        "units",
        "mild",
        "cancer",
        "iris",
        "digits",
        "components",
        "constant",
        "rare",
        "one-hot",
        "sparse",
    ],
)
def test_warning_about_scales(X, expected):
    assert units(X) == expected


def test_distances_and_scaled_weights_do_not_warn():
    X = RNG.normal(size=(60, 2)) * [1, 1000]
    y = np.where(np.arange(60) < 8, np.arange(60) % 2, -1)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphuqWarning)
        warnings.simplefilter("error", FeatureScaleWarning)
        gq.GraphClassifier(metric="precomputed", **MODEL).fit(distances, y)
        gq.GraphClassifier(weights=gq.graphs.GaussianWeights([1.0, 1000.0]), **MODEL).fit(X, y)


def test_scales_of_columns():
    X = np.c_[np.arange(100.0), np.arange(100) % 4 == 0, np.arange(100) == 0, np.ones(100)]
    np.testing.assert_allclose(column_scales(X), [np.arange(100).std(), 1, 0, 0])


def test_no_features_without_a_graph():
    with pytest.raises(InvalidInput, match=r"X: None beside graph='knn'; .* pass a Graph"):
        gq.GraphClassifier().fit(None, [0, 1, -1])
    with pytest.raises(InvalidInput, match="X: None beside graph='complete'"):
        gq.EvidenceSearch(gq.GraphClassifier("complete"), {"n_neighbors": [3]}).fit(None, [0, 1])
