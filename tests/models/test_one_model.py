"""No method and no other parameter changes the model; the default has public parts."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.models import Auto, Average, Fixed, Labels, LargestEvidence, Likeliest

MOONS = gq.datasets.two_moons(120, n_features=2, noise_std=0.1)
LABELLED = np.random.default_rng(4).permutation(120)[:12]
Y = np.full(120, -1)
Y[LABELLED] = MOONS.codes()[LABELLED]

UNCHANGED = [
    {},
    {"inference": gq.inference.MCMC(thin=1)},
    {"inference": gq.inference.MCMC(n_warmup=300)},
    {"max_classes": 2},
    {"n_eigenpairs": "auto"},
    {"inference": "expectation-propagation"},
    pytest.param({"inference": "laplace"}, marks=pytest.mark.slow),
    pytest.param({"inference": gq.inference.MCMC("pcn", n_samples=100)}, marks=pytest.mark.slow),
]


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("parameters", UNCHANGED, ids=lambda p: "-".join(map(str, p)) or "default")
def test_no_other_parameter_changes_the_model(parameters):
    classifier = gq.GraphClassifier(**parameters).fit(MOONS.features, Y)
    basis = gq.Basis.of(gq.graphs.knn_graph(MOONS.features, 15, gq.graphs.SelfTuning(4.0)))
    expected = Auto().posterior(basis, Labels.of(Y))
    posterior = classifier.result_.posterior
    assert classifier.model_ == Average()
    assert posterior.likelihood == expected.likelihood
    assert repr(posterior.prior) == repr(expected.prior)
    np.testing.assert_allclose(posterior.modes.stds, expected.modes.stds)
    np.testing.assert_allclose(posterior.prior.log_probabilities, expected.prior.log_probabilities)
    assert posterior.label_design == expected.label_design


def test_the_default_is_built_from_public_parts():
    classifier = gq.GraphClassifier().fit(MOONS.features, Y)
    basis = gq.Basis.of(gq.graphs.knn_graph(MOONS.features, 15, gq.graphs.SelfTuning(4.0)))
    result = gq.infer(Auto().posterior(basis, Labels.of(Y)))
    assert np.abs(result.probabilities - classifier.label_distributions_).max() < 1e-12


def labels(n_classes=2, n_each=6, **more):
    codes = np.repeat(np.arange(n_classes), n_each)
    return Labels(np.arange(len(codes)), codes, n_classes, **more)


BASIS = gq.Basis.of(gq.graphs.knn_graph(MOONS.features, 15), n_eigenpairs=20)
SOFT = np.full((12, 2), 0.5)


@pytest.mark.parametrize(
    ("basis", "given", "expected"),
    [
        (BASIS, labels(), Average()),
        (BASIS, labels(max_classes=2), Average()),
        (BASIS, labels(max_classes=3), LargestEvidence()),
        (BASIS, labels(distributions=SOFT), LargestEvidence()),
        (BASIS.with_tail(1.0), labels(), LargestEvidence()),
        (BASIS, labels(n_each=751), Likeliest()),
        (BASIS, labels(n_classes=300, n_each=4), Likeliest()),
        (BASIS, labels(n_classes=60, n_each=4), Likeliest()),
        (BASIS, labels(n_classes=60, n_each=3), Average()),
    ],
)
def test_the_rule_of_the_default(basis, given, expected):
    assert Auto().select(basis, given) == expected


@pytest.mark.parametrize(
    "model", ["auto", "likeliest", "largest-evidence", Fixed(gq.priors.Matern(0.4), "probit")]
)
def test_the_model_of_a_fit_can_be_pasted(model):
    classifier = gq.GraphClassifier(model=model, inference="expectation-propagation")
    classifier.fit(MOONS.features, Y)
    text = repr(classifier)
    names = vars(gq) | vars(gq.models) | vars(gq.priors) | vars(gq.likelihoods)
    again = eval(text, dict(names))  # the text of the test's own classifier
    again.fit(MOONS.features, Y)
    assert np.abs(again.label_distributions_ - classifier.label_distributions_).max() < 1e-9
    assert "model=" in text


def test_what_a_model_is_not_made_for_is_refused():
    with pytest.raises(IncompatibleParts, match="certain labels"):
        Average().posterior(BASIS, labels(distributions=SOFT))
    with pytest.raises(IncompatibleParts, match="without a tail"):
        Average().posterior(BASIS.with_tail(1.0), labels())
    with pytest.raises(InvalidInput, match="use LargestEvidence"):
        Fixed(prior="auto")
    with pytest.raises(InvalidInput, match="numbered from 0"):
        Labels.of([0, 2, -1])
    with pytest.raises(IncompatibleParts, match="points of several components"):
        gq.GraphClassifier(inference="map").fit(MOONS.features, Y)
    with pytest.raises(InvalidInput, match="model"):
        gq.GraphClassifier(model="averaged").fit(MOONS.features, Y)


def problem(name):
    """Return rows of a data set and labels of five rows of each class."""
    if name == "two moons":
        features, classes = MOONS.features, MOONS.codes()
    elif name == "three blobs":
        rng = np.random.default_rng(5)
        classes = np.repeat([0, 1, 2], 40)
        features = rng.normal(size=(120, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[classes]
    else:
        data = {"iris": load_iris, "wine": load_wine}[name]()
        features, classes = data.data / data.data.std(axis=0), data.target
    rng, y = np.random.default_rng(6), np.full(len(classes), -1)
    for k in np.unique(classes):
        own = rng.permutation(np.flatnonzero(classes == k))[: 5 if name != "two moons" else 4 + k]
        y[own] = k
    return features, y


METHODS = {
    name: gq.inference.MCMC(name, n_samples=400, n_chains=8)
    for name in ("exact-hamiltonian", "hamiltonian", "collapsed-gibbs", "pcn")
}
METHODS["expectation-propagation"] = "expectation-propagation"
SEVERAL = ("hamiltonian", "collapsed-gibbs", "expectation-propagation", "pcn")
CASES = [
    pytest.param(data, method, marks=[] if (data, method) in QUICK else [pytest.mark.slow])
    for QUICK in [{("two moons", "expectation-propagation")}]
    for data in ("two moons", "iris", "wine", "three blobs")
    for method in (METHODS if data == "two moons" else SEVERAL)
]


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize(("data", "method"), CASES)
def test_methods_agree_within_their_stated_errors(data, method):
    """An approximation states its largest error; the mean over nodes is below it."""
    X, y = problem(data)
    default = gq.GraphClassifier().fit(X, y)
    other = gq.GraphClassifier(inference=METHODS[method]).fit(X, y)
    found, expected = other.result_, default.result_
    difference = np.abs(found.probabilities - expected.probabilities)
    if method == "expectation-propagation":
        stated = found.diagnostics.probability_error
        if stated is None:  # too few draws have weight, and the answer says so
            assert "too far from the posterior to tell" in found.diagnostics.verdict
        else:
            assert difference.max() < stated + 5 * expected.mcse.max()
        assert difference.mean() < 0.04
    else:
        # Draws of the components are exact; their weights are those of expectation propagation
        # for several classes, in both answers.
        error = np.hypot(found.mcse, expected.mcse)
        assert np.quantile(difference / np.maximum(error, 1e-3), 0.95) < 5
        assert difference.max() < 0.06
