"""Grades: where their order comes from, what a fit of them answers, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import graphuq as gq
from graphuq.errors import GraphuqError, IncompatibleParts, InvalidInput

GRADES = ["low", "mid", "high"]
N = 120


def table():
    """Return two features, and grades by the first of them, whose names sort otherwise."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.linspace(-2, 2, N), 0.3 * rng.normal(size=N)])
    noisy = X[:, 0] + 0.2 * rng.normal(size=N)
    return X, np.array(GRADES)[np.digitize(noisy, [-0.7, 0.7])]


X, TRUTH = table()
GIVEN = np.random.default_rng(1).permutation(N)[:24]
Y = np.full(N, None, dtype=object)
Y[GIVEN] = TRUTH[GIVEN]


@pytest.fixture(scope="module")
def fitted():
    return gq.GraphClassifier(ordered=GRADES).fit(X, Y)


def test_grades_are_found(fitted):
    assert fitted.classes_.tolist() == GRADES
    assert (fitted.transduction_ == TRUTH).mean() > 0.85
    assert fitted.label_distributions_.sum(axis=1) == pytest.approx(np.ones(N), abs=1e-12)
    assert repr(fitted.model_) == "OrderedAverage()"
    assert fitted.result_.posterior.n_fields == 1
    assert fitted.result_.latent_mean.shape == (N,)


def test_probabilities_follow_the_order(fitted):
    """Between low and high lies mid: the shares above each threshold rise with the field."""
    order = np.argsort(fitted.result_.latent_mean)
    above = 1 - np.cumsum(fitted.label_distributions_[order], axis=1)[:, :2]
    outside = np.setdiff1d(np.arange(N), GIVEN)
    kept = np.isin(order, outside)
    assert (np.corrcoef(above[kept, 0], np.arange(kept.sum()))[0, 1]) > 0.8
    ends = fitted.label_distributions_[[0, -1]]
    assert ends[0].argmax() == 0
    assert ends[1].argmax() == 2
    assert ends[0, 2] < 0.02
    assert ends[1, 0] < 0.02


def test_new_rows(fitted):
    proba = fitted.predict_proba([[-1.9, 0.0], [0.0, 0.0], [1.9, 0.0]])
    assert proba.argmax(axis=1).tolist() == [0, 1, 2]
    assert proba.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    assert fitted.predict([[1.9, 0.0]]).tolist() == ["high"]
    assert fitted.predict_proba(X[:5]) == pytest.approx(fitted.label_distributions_[:5], abs=1e-12)
    assert fitted.predict_set(X[:5], 0.9).any(axis=1).all()
    assert fitted.predict_interval(X[:5]).shape == (5, 2)


def test_sources_of_the_order(fitted):
    series = pd.Series(pd.Categorical(Y, categories=GRADES, ordered=True))
    of_pandas = gq.GraphClassifier(ordered=True).fit(X, series)
    numbers = np.array([np.nan if name is None else 10 ** GRADES.index(name) for name in Y])
    of_numbers = gq.GraphClassifier(ordered=True).fit(X, numbers)
    assert of_numbers.classes_.tolist() == [1.0, 10.0, 100.0]
    for other in (of_pandas, of_numbers):
        assert other.label_distributions_.tolist() == fitted.label_distributions_.tolist()


def test_order_of_text_must_be_given():
    with pytest.raises(InvalidInput, match=r"(?s)text.*from the lowest to the highest"):
        gq.GraphClassifier(ordered=True).fit(X, Y)
    plain = pd.Series(pd.Categorical(Y, categories=GRADES))
    with pytest.raises(InvalidInput, match="ordered categorical"):
        gq.GraphClassifier(ordered=True).fit(X, plain)


@pytest.mark.parametrize(
    ("ordered", "words"),
    [
        (["low", "high"], r"without the label \['mid'\]"),
        (["low", "low", "mid", "high"], "each class once"),
        (["low"], "from the lowest"),
        ([1, 2, 3], "without the label"),
        ("low", "True or False"),
        (3, "True or False"),
    ],
)
def test_wrong_orders_are_refused(ordered, words):
    with pytest.raises(InvalidInput, match=words):
        gq.GraphClassifier(ordered=ordered).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"inference": "pcn"},
        {"inference": gq.inference.MCMC(n_samples=100)},
        {"inference": "model-average"},
        {"model": "average"},
        {"model": "likeliest"},
        {"model": "largest-evidence"},
        {"max_classes": 5},
        {"tail_eigenvalue": "mean"},
        {"store": "somewhere"},
        {"graph": gq.graphs.Epsilon(1e-9), "inference": "collapsed-gibbs"},  # before the graph
    ],
)
def test_what_cannot_serve_is_refused_before_the_graph(parameters, monkeypatch):
    def made(*_, **__):
        raise AssertionError("a graph was made")

    monkeypatch.setattr("graphuq.classifier.fitting.build_graph", made)
    with pytest.raises(GraphuqError, match="order"):
        gq.GraphClassifier(ordered=GRADES, **parameters).fit(X, Y)


def test_soft_labels_and_weights_are_refused():
    soft = np.full((N, 3), np.nan)
    soft[GIVEN] = [0.2, 0.5, 0.3]
    with pytest.raises(InvalidInput, match="beside soft labels"):
        gq.GraphClassifier(ordered=True).fit(X, soft)
    with pytest.raises(IncompatibleParts, match="no weights of labels"):
        gq.GraphClassifier(ordered=GRADES).fit(X, Y, np.linspace(0.5, 1, N))


def test_model_without_order_is_refused():
    for model in (
        gq.models.OrderedAverage(),
        gq.models.Fixed("matern", gq.likelihoods.Ordered([-0.5, 0.5])),
    ):
        with pytest.raises(IncompatibleParts, match="needs the order"):
            gq.GraphClassifier(model=model).fit(X, Y)


def test_fixed_thresholds():
    likelihood = gq.likelihoods.Ordered([-0.5, 0.5], 0.5)
    model = gq.models.Fixed(gq.priors.Matern(0.3, 3.0), likelihood)
    own = gq.GraphClassifier(ordered=GRADES, model=model, inference="expectation-propagation")
    found = own.fit(X, Y)
    assert found.result_.posterior.likelihood == likelihood
    assert (found.transduction_ == TRUTH).mean() > 0.75
    drawn = clone(own).set_params(inference=gq.inference.MCMC(n_samples=200)).fit(X, Y)
    assert drawn.label_distributions_ == pytest.approx(found.label_distributions_, abs=0.05)


def test_two_grades_are_two_classes():
    two = np.where(Y == "mid", "high", Y)
    ordered = gq.GraphClassifier(ordered=["low", "high"]).fit(X, two)
    usual = gq.GraphClassifier().fit(X, np.where(two == "high", "z high", two))
    assert ordered.classes_.tolist() == ["low", "high"]
    assert ordered.label_distributions_.tolist() == usual.label_distributions_.tolist()
    assert repr(ordered.model_) == repr(usual.model_)


def test_a_grade_without_labels_has_a_probability():
    """Nobody has the grade between low and mid, which a list names."""
    found = gq.GraphClassifier(ordered=["low", "fair", "mid", "high"]).fit(X, Y)
    assert found.classes_.tolist() == ["low", "fair", "mid", "high"]
    share = found.label_distributions_.mean(axis=0)
    assert 0.001 < share[1] < 0.2
    assert found.result_.trust.checks["labels_per_class"].ok


def test_labels_are_added_corrected_and_withdrawn(fitted, tmp_path):
    own = gq.GraphClassifier(ordered=GRADES).fit(X, Y)
    rows = own.query(4)
    assert len(np.intersect1d(rows, GIVEN)) == 0
    own.add_labels(rows, TRUTH[rows])
    assert own.classes_.tolist() == GRADES
    y = Y.copy()
    y[rows] = TRUTH[rows]
    again = gq.GraphClassifier(ordered=GRADES).fit(X, y)
    assert own.label_distributions_ == pytest.approx(again.label_distributions_, abs=0.01)
    own.add_labels(rows, [None] * 4)
    assert own.label_distributions_ == pytest.approx(fitted.label_distributions_, abs=0.01)
    with pytest.raises(InvalidInput, match="not among the classes"):
        own.add_labels([0], ["top"])


def test_saved_classifier_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "grades.nc")
    again = gq.GraphClassifier.load(tmp_path / "grades.nc")
    assert again.get_params()["ordered"] == GRADES
    assert again.classes_.tolist() == GRADES
    new = [[-1.9, 0.0], [0.1, 0.2]]
    assert again.predict_proba(new) == pytest.approx(fitted.predict_proba(new), abs=1e-12)


def test_verdict_table_summary_and_report(fitted, tmp_path):
    trust = fitted.result_.trust
    assert all(check.value is not None for check in trust.checks.values())
    text = str(fitted.result_)
    assert "3 classes" in text
    frame = fitted.predict_table(X)
    assert frame["label"].tolist() == fitted.transduction_.tolist()
    columns = [name for name in frame.columns if name.startswith("probability_")]
    assert columns == [f"probability_{name}" for name in GRADES]
    assert frame["latent_mean"].tolist() == fitted.result_.latent_mean.tolist()
    gq.write_report(fitted.result_, tmp_path / "report.html")
    assert "mid" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_suspect_labels_are_found():
    y = Y.copy()
    row = GIVEN[np.argmin(X[GIVEN, 0])]
    y[row] = "high"
    found = gq.GraphClassifier(ordered=GRADES).fit(X, y).suspect_labels(1)
    assert found["node"].tolist() == [row]
    assert found["other"].tolist() == ["low"]


def test_expected_errors_and_joint_labels(fitted):
    errors = gq.expected_errors(fitted.result_)
    free = np.setdiff1d(np.arange(N), GIVEN)
    p = fitted.label_distributions_[free]
    assert errors.expected == pytest.approx((1 - p.max(axis=1)).sum())
    assert errors.lower <= errors.expected <= errors.upper
    rng = np.random.default_rng(0)
    drawn = gq.results.joint_labels.joint_labels(fitted.result_, free, 4000, rng)
    shares = np.stack([(drawn == k).mean(axis=1) for k in range(3)], axis=1)
    assert shares == pytest.approx(p, abs=0.002)  # up to rounding of draws
    near = np.abs(np.diff(X[free, 0])) < 0.05
    together = (drawn[:-1] == drawn[1:]).mean(axis=1)[near].mean()
    apart = (p[:-1] * p[1:]).sum(axis=1)[near].mean()
    assert together > apart  # neighbours have a grade together


def test_shares_can_be_imposed():
    own = gq.GraphClassifier(ordered=GRADES, class_proportions=[0.5, 0.3, 0.2]).fit(X, Y)
    free = np.setdiff1d(np.arange(N), GIVEN)
    shares = own.label_distributions_[free].mean(axis=0)
    assert shares == pytest.approx([0.5, 0.3, 0.2], abs=0.01)


RULES = [
    "auto",
    "random",
    "margin",
    "entropy",
    "v-optimality",
    "sigma-optimality",
    "variance-reduction",
    "model-change",
    "mutual-information",
    "expected-error-reduction",
]


@pytest.mark.parametrize("rule", RULES)
def test_rules_of_acquisition(fitted, rule):
    rows = fitted.query(3, rule)
    assert len(set(rows.tolist())) == 3
    assert not np.isin(rows, GIVEN).any()


def test_uncertain_rows_are_near_thresholds(fitted):
    thresholds = fitted.result_.posterior.likelihood.thresholds
    near = np.abs(fitted.result_.latent_mean[:, None] - thresholds).min(axis=1)
    rows = gq.most_uncertain(fitted.result_, 10)
    assert near[rows].mean() < 0.5 * near.mean()


def test_evidence_chooses_the_prior_beside_given_thresholds():
    """What the search says is the evidence of the posterior that it returns."""
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(X, 15))
    codes = [GRADES.index(name) for name in TRUTH[GIVEN]]
    likelihood = gq.likelihoods.Ordered([-0.5, 0.5], 0.4)
    before = gq.Posterior(spectrum, gq.priors.Matern(0.25, 4.0), likelihood, GIVEN, codes)
    best = gq.maximize_evidence(before, ["tau", "noise_std"], hyperprior=False)
    found = gq.infer(best.posterior, "expectation-propagation").log_evidence
    assert best.log_evidence == pytest.approx(found, abs=1e-4)
    assert found > gq.infer(before, "expectation-propagation").log_evidence + 0.1


def test_what_knows_no_order_refuses_it():
    own = gq.GraphClassifier(ordered=GRADES)
    with pytest.raises(InvalidInput, match="beside a search"):
        gq.EvidenceSearch(own, {"n_neighbors": [10, 15]}).fit(X, Y)
    readings = np.stack([Y, Y], axis=1)
    with pytest.raises(InvalidInput, match="beside annotators"):
        gq.AnnotatorClassifier(ordered=GRADES).fit(X, readings)


def test_soft_labels_of_two_classes_are_refused(fitted):
    with pytest.raises(IncompatibleParts, match="two classes"):
        gq.results.soft_label_mean(fitted.result_)


def test_arviz_has_probabilities_of_grades(fitted):
    pytest.importorskip("arviz", reason="pip install arviz")
    data = gq.to_arviz(fitted.result_)
    drawn = data.posterior["class_probability"]
    assert drawn.sizes["class"] == 3
    nodes = drawn["node"].to_numpy()
    mean = drawn.mean(("chain", "draw")).to_numpy()
    assert mean == pytest.approx(fitted.result_.probabilities[nodes], abs=0.08)


def test_verdict_names_no_sampler_that_cannot_serve(fitted):
    assert not fitted.result_.diagnostics.can_be_sampled
    assert "Sample" not in fitted.result_.diagnostics.verdict
