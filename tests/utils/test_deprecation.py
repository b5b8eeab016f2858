"""Old public names keep working for one release."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import InvalidInput

GRAPH = gq.graphs.from_adjacency(random_adjacency(16))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: gq.growing_posterior, lambda: gq.adapt_truncation),
        (lambda: gq.simulate_evidence, lambda: gq.estimate_evidence),
        (lambda: gq.likelihoods.Gaussian, lambda: gq.likelihoods.GaussianNoise),
        (lambda: gq.inference.Gaussian, lambda: gq.inference.GaussianApproximation),
    ],
)
def test_old_attributes(old, new):
    with pytest.warns(FutureWarning, match="deprecated and will be removed"):
        assert old() is new()


def test_old_arguments():
    with pytest.warns(FutureWarning, match=r"use tail_eigenvalue="):
        old = gq.laplacian_spectrum(GRAPH, n_eigenpairs=8, tail=0.7)
    new = gq.laplacian_spectrum(GRAPH, n_eigenpairs=8, tail_eigenvalue=0.7)
    assert old.tail_eigenvalue == new.tail_eigenvalue == 0.7
    with pytest.warns(FutureWarning, match=r"use include_constant="):
        assert gq.priors.Matern(tau=0.2, constant=True).include_constant is True
    posterior = gq.Posterior(
        new, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(), [0, 5], [1, -1]
    )
    with pytest.warns(FutureWarning, match=r"use on_first_result="):
        gq.infer(posterior, gq.inference.ExpectationPropagation(), preview=None)


def test_the_warning_names_the_line_of_the_user():
    """A process of its own, since tests wrap functions to check types."""
    code = "import graphuq as gq; gq.priors.Matern(tau=0.2, constant=True)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stderr.startswith("<string>:1: FutureWarning: constant= is deprecated")


def test_old_arguments_of_the_classifier():
    with pytest.warns(FutureWarning, match=r"use max_classes="):
        old = gq.GraphClassifier(most_classes=4)
    assert clone(old).max_classes == 4
    assert "most_classes" not in old.get_params()


def test_both_names_are_refused():
    with pytest.raises(InvalidInput, match="given beside tail_eigenvalue"):
        gq.laplacian_spectrum(GRAPH, tail=True, tail_eigenvalue=True)


def test_old_words():
    features = np.random.default_rng(0).normal(size=(30, 2))
    classifier = gq.GraphClassifier(inference="expectation-propagation")
    y = np.where(features[:, 0] > 0, 1, 0)
    y[6:] = -1
    classifier.fit(features, y)
    with pytest.warns(FutureWarning, match=r"eigenpairs='extend'"):
        classifier.add_rows(features[:2] + 0.01, eigenpairs="extended")


def test_old_names_of_attributes_and_fields():
    spectrum = gq.laplacian_spectrum(GRAPH, n_eigenpairs=8, tail_eigenvalue=0.7)
    with pytest.warns(FutureWarning, match=r"use Spectrum\.tail_eigenvalue") as caught:
        assert spectrum.tail == 0.7
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match="use lookahead=") as caught:
        sampler = gq.inference.SequentialIndependence(looks_ahead=False)
    assert sampler.lookahead is False
    assert caught[0].filename == __file__


@pytest.mark.parametrize("old", ["smooth", "step", "everywhere", "several"])
def test_own_likelihoods_of_version_0_1_are_refused(old):
    """A flag under its old name would be ignored, and another sampler chosen."""
    body = {old: False, "log_prob": lambda self, u, y: -((y - u) ** 2)}
    Own = type("Own", (gq.likelihoods.Likelihood,), body)
    with pytest.raises(InvalidInput, match=f"sets {old}, which has no effect; rename it to"):
        Own()


def test_own_priors_of_version_0_1_are_refused():
    class Own(gq.priors.Prior):
        constant: bool | None = True

        def log_variances(self, eigenvalues):
            return -eigenvalues

    with pytest.raises(InvalidInput, match="rename it to include_constant"):
        Own()


def test_old_parameters_are_set():
    classifier = gq.GraphClassifier()
    with pytest.warns(FutureWarning, match=r"use out_of_sample=") as caught:
        assert classifier.set_params(outside="nearest", max_classes=4) is classifier
    assert caught[0].filename == __file__
    assert (classifier.out_of_sample, classifier.max_classes) == ("nearest", 4)
    with pytest.warns(FutureWarning, match=r"use tail_eigenvalue="):
        Pipeline([("c", classifier)]).set_params(c__tail=0.5)
    assert classifier.tail_eigenvalue == 0.5
    with pytest.raises(InvalidInput, match="most_classes: given beside max_classes"):
        classifier.set_params(most_classes=3, max_classes=4)


def test_old_parameters_are_searched():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.r_[0, 1, 0, 1, np.full(26, -1)]
    quick = gq.GraphClassifier(
        n_eigenpairs=10, likelihood="probit", inference="expectation-propagation"
    )
    search = gq.EvidenceSearch(quick, {"tail": [False, "mean"]}, refit=False)
    with pytest.warns(FutureWarning, match=r"use tail_eigenvalue="):
        search.fit(X, y)
    assert list(search.best_params_) == ["tail_eigenvalue"]


POSTERIOR = gq.Posterior(
    gq.laplacian_spectrum(GRAPH, n_eigenpairs=8),
    gq.priors.Matern(0.3, 2.0),
    gq.likelihoods.Probit(),
    [0, 5, 9],
    [1, -1, 1],
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: POSTERIOR.seen_nodes, lambda: POSTERIOR.observed_nodes),
        (lambda: POSTERIOR.seen_labels, lambda: POSTERIOR.observed_labels),
        (
            lambda: gq.priors.Matern(include_constant=True).constant,
            lambda: gq.priors.Matern(include_constant=True).include_constant,
        ),
        (
            lambda: gq.inference.Hamiltonian.usual_warmup,
            lambda: gq.inference.Hamiltonian.default_warmup,
        ),
        (
            lambda: gq.inference.TemperedHamiltonian().usual_chains,
            lambda: gq.inference.TemperedHamiltonian.default_chains,
        ),
        (
            lambda: gq.inference.EllipticalSlice.usual_thin,
            lambda: gq.inference.EllipticalSlice.default_thin,
        ),
    ],
)
def test_old_attributes_of_instances_and_classes(old, new):
    with pytest.warns(FutureWarning, match="deprecated and will be removed") as caught:
        assert old() is new()
    assert caught[0].filename == __file__


def test_old_methods_and_words():
    with pytest.warns(FutureWarning, match="use 'include_constant'"):
        values = gq.maximize_evidence(POSTERIOR, names=["constant"]).values
    assert list(values) == ["include_constant"]


@pytest.mark.filterwarnings("error::FutureWarning")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("classifier", "GraphClassifier"),
        ("posterior", "Posterior"),
        ("evidence", "maximize_evidence"),
        ("evidence", "EvidenceMaximum"),
        ("results", "Result"),
    ],
)
def test_names_are_found_where_version_0_1_had_them(module, name):
    package = importlib.import_module(f"graphuq.{module}")
    assert getattr(package, name) is getattr(gq, name)
    assert not hasattr(package, "unknown")


def test_old_names_of_the_probability_of_an_unseen_class():
    features = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(np.arange(30) < 6, np.arange(30) % 2, -1)
    classifier = gq.GraphClassifier(inference="expectation-propagation").fit(features, y)
    with pytest.warns(FutureWarning, match="use GraphClassifier.unseen_class_probability_"):
        old = classifier.novelty_
    np.testing.assert_array_equal(old, classifier.unseen_class_probability_)
    with pytest.warns(FutureWarning, match="use GraphClassifier.predict_unseen_class"):
        np.testing.assert_array_equal(classifier.predict_novelty(features), old)
