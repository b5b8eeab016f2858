"""The meaning of "auto", and the samplers that it chooses."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import graphuq as gq
from conftest import random_adjacency
from graphuq.classifier.options import build_graph
from graphuq.errors import InvalidInput, NotConvergedWarning
from graphuq.inference import PCN, Kernel
from graphuq.models.evidence import LargestEvidence, likelihood_of, prior_of
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import label_errors
from graphuq.run import choose_sampler as rules
from graphuq.run import stopping
from graphuq.run.choose_sampler import choose_sampler
from graphuq.run.words import method_from

GRAPH = gq.graphs.from_adjacency(random_adjacency(24, seed=3))


def build(likelihood, n_eigenpairs=12, tail=False, n_labelled=4):
    spectrum = gq.laplacian_spectrum(GRAPH, n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail)
    labels = np.tile([1, -1], n_labelled)[:n_labelled]
    nodes = np.arange(n_labelled) * 3
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, nodes, labels)


@pytest.mark.parametrize(
    ("posterior", "kernel", "about"),
    [
        (build(gq.likelihoods.LevelSet(0.5)), "SequentialIndependence", True),
        (build(gq.likelihoods.AtomicNoise(0.9, 0.9), n_labelled=8), "SequentialIndependence", True),
        (build(gq.likelihoods.LevelSet(0.5), 4, n_labelled=8), "ExactHamiltonian", False),
        (build(gq.likelihoods.Probit(1.0)), "Independence", True),
        (build(gq.likelihoods.Probit(0.3), 4, n_labelled=8), "Independence", True),
        (build(gq.likelihoods.Probit(0.1), 24, n_labelled=8), "ExactHamiltonian", False),
        (build(gq.likelihoods.Probit(0.1), 4, 0.8, n_labelled=8), "ExactHamiltonian", False),
        (build(gq.likelihoods.Probit(0.02), 6, n_labelled=8), "ExactHamiltonian", False),
        (build(gq.likelihoods.Logistic(), n_labelled=8), "Independence", True),
    ],
    ids=["steps", "atomic", "few modes", "close", "near", "off", "tail", "far", "logistic"],
)
def test_the_sampler_depends_on_the_posterior(posterior, kernel, about):
    gaussian = gq.inference.ExpectationPropagation().fit(posterior.target)
    found = choose_sampler(posterior, gaussian)
    assert type(found).__name__ == kernel
    assert (found.reference is not None) == about


def test_few_labels_need_no_lookahead():
    """Proposals without lookahead have bounded weights; they suffice if acceptance is high."""
    for n_labelled, ahead in ((4, False), (8, True)):
        posterior = build(gq.likelihoods.LevelSet(0.5), n_labelled=n_labelled)
        gaussian = gq.inference.ExpectationPropagation().fit(posterior.target)
        assert choose_sampler(posterior, gaussian).lookahead == ahead


def test_probit_of_many_labels_is_sampled_about_the_gaussian(monkeypatch):
    """Exact trajectories of many noisy labels hit walls too often."""
    posterior = build(gq.likelihoods.Probit(0.02), 6, n_labelled=8)
    monkeypatch.setattr(rules, "MAX_NOISY_LABELS", 7)
    found = choose_sampler(posterior, gq.inference.ExpectationPropagation().fit(posterior.target))
    assert type(found).__name__ == "Hamiltonian"
    assert found.reference is not None


def test_many_modes_are_tempered():
    found = choose_sampler(build(gq.likelihoods.GinzburgLandau()), None)
    assert type(found).__name__ == "ParallelTempering"
    assert type(found.kernel).__name__ == "Hamiltonian"


def test_without_expectation_propagation_there_is_no_reference():
    for likelihood, kernel in (
        (gq.likelihoods.Logistic(), gq.inference.Hamiltonian),
        (gq.likelihoods.Probit(0.1), gq.inference.ExactHamiltonian),
        (gq.likelihoods.LevelSet(0.1), gq.inference.ExactHamiltonian),
    ):
        found = choose_sampler(build(likelihood), None)
        assert isinstance(found, kernel)
        assert found.reference is None


def test_infer_without_a_method_reports_the_first_result():
    posterior, seen = build(gq.likelihoods.Probit(0.5)), []
    result = gq.infer(posterior, on_first_result=seen.append, stop=gq.Converged(label_mcse=0.02))
    (first,) = seen
    direct = gq.infer(posterior, gq.inference.ExpectationPropagation())
    np.testing.assert_array_equal(gq.results.label_mean(first), gq.results.label_mean(direct))
    assert result.diagnostics.converged
    assert result.diagnostics.label_mcse <= 0.02
    assert "Monte-Carlo errors of label means below 0.02" in result.diagnostics.stopped_by
    assert np.abs(gq.results.label_mean(result) - gq.results.label_mean(first)).max() < 0.1


@pytest.mark.slow
def test_a_stop_rule_serves_many_runs(monkeypatch):
    """A rule stores the node that it watches for one run only."""
    monkeypatch.setattr(stopping, "WORST_NODES", 1)
    kept, watched = gq.Converged(label_mcse=0.01), []
    for noise_std, seed in ((0.5, 0), (0.5, 1), (4.0, 0)):
        posterior = build(gq.likelihoods.Probit(noise_std))
        draws = gq.infer(posterior, gq.inference.PCN(), n_samples=300, n_chains=4, rng=seed).answer
        for part in (draws, draws.first(280)):
            fresh = gq.Converged(label_mcse=0.01)
            for bound in (0.001, 0.02, 0.04, 0.08, 1.0):
                found = [rule._has_larger_error(posterior, part, bound) for rule in (kept, fresh)]
                assert found[0] == found[1]
            assert kept._sought[2].tolist() == fresh._sought[2].tolist()
        watched.append(int(kept._sought[2][0]))
    assert len(set(watched)) > 1, "else one that is never sought again would do"


def test_a_share_of_the_nodes_may_have_a_larger_error():
    posterior = build(gq.likelihoods.Probit(0.5))
    draws = gq.infer(posterior, gq.inference.PCN(), n_samples=300, n_chains=4, rng=0).answer
    unlabelled = np.setdiff1d(np.arange(posterior.spectrum.n_nodes), posterior.labelled)
    rows = node_rows(posterior)[unlabelled]
    errors = np.sort(label_errors(draws, posterior.field, rows, posterior.likelihood.link))
    few = int(0.1 * len(unlabelled) + 1e-9)
    assert few > 0
    for n_larger in range(2 * few):
        bound = errors[-1 - n_larger] * (1 + 1e-9)
        every, most = (gq.Converged(label_mcse=bound, label_mcse_share=s) for s in (1.0, 0.9))
        assert every._has_larger_error(posterior, draws, bound) == (n_larger > 0)
        assert most._has_larger_error(posterior, draws, bound) == (n_larger > few)


def test_stop_rule_refuses_a_share_below_nine_tenths():
    with pytest.raises(InvalidInput, match=r"label_mcse_share: 0\.5"):
        gq.Converged(label_mcse=0.01, label_mcse_share=0.5)


def test_stop_rule_refuses_a_negative_error():
    with pytest.raises(InvalidInput, match="label_mcse: -1"):
        gq.Converged(label_mcse=-1.0)


def test_many_labels_have_fewer_chains():
    pcn = PCN()
    assert pcn.n_chains(build(gq.likelihoods.Probit())) == 32
    posterior = build(gq.likelihoods.Probit())
    object.__setattr__(posterior, "labels", np.ones(8000))
    assert pcn.n_chains(posterior) == 4


def test_samplers_with_inner_chains_run_few():
    posterior = build(gq.likelihoods.LevelSet())
    assert gq.inference.TemperedHamiltonian().n_chains(posterior) == 4
    assert gq.inference.ReversibleJump().n_chains(posterior) == 8


def test_options_by_name():
    both = LargestEvidence(likelihood="probit"), LargestEvidence(gq.priors.Matern(), "auto", "auto")
    assert both[0].chosen == ["tau", "alpha", "include_constant"]
    assert both[1].chosen == ["noise_std", "truncation"]
    assert prior_of("matern") == gq.priors.Matern()
    assert likelihood_of("noise-free") == gq.likelihoods.NoiseFree()
    X = np.random.default_rng(0).normal(size=(40, 3))
    graph = build_graph("knn", X, "auto", "auto", None)
    assert "sharpness=4.0" in graph.settings["weights"]
    assert graph.settings["n_neighbors"] == 15
    assert build_graph("knn", X[:9], "auto", "auto", None).settings["n_neighbors"] == 8


def test_sharper_weights_favour_the_nearest():
    X = np.random.default_rng(0).normal(size=(40, 3))
    usual, sharp = (gq.graphs.knn_graph(X, 10, gq.graphs.SelfTuning(s)).weights for s in (0.5, 4.0))
    np.testing.assert_allclose(sharp.data, usual.data**8, rtol=1e-10)
    with pytest.raises(InvalidInput, match="sharpness: 0"):
        gq.graphs.SelfTuning(0.0)


@pytest.mark.slow
def test_map_and_ginzburg_landau_by_name():
    """MAP classifies without probabilities; Ginzburg-Landau warns that it has no evidence."""
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, rng=0)
    y = np.full(200, -1)
    y[:20] = moons.classes[:20]
    point = gq.GraphClassifier(inference="map", model="fixed")
    assert (point.fit(moons.features, y).transduction_ == moons.classes).mean() > 0.9
    assert set(np.unique(point.label_distributions_)) == {0.0, 1.0}
    assert "a point" in point.result_.diagnostics.verdict.lower()
    model = gq.models.LargestEvidence(likelihood="ginzburg-landau")
    wells = gq.GraphClassifier(model=model, inference="map")
    with pytest.warns(NotConvergedWarning, match="could not choose tau, alpha"):
        wells.fit(moons.features, y)
    assert (wells.transduction_ == moons.classes).mean() > 0.9


@pytest.mark.parametrize(
    "part",
    [
        gq.priors.Matern(tau=gq.LogUniform(0.02, 3.0), alpha=2.0),
        gq.priors.Matern(truncation=gq.DiscreteUniform(2, 70), include_constant=True),
        gq.priors.EigenScales(scales=gq.Uniform(0.5, 1.5)),
        gq.priors.LearnedSpectrum(),
    ],
    ids=repr,
)
def test_a_part_is_read_from_its_repr(part):
    assert repr(prior_of(repr(part))) == repr(part)


def test_samplers_and_likelihoods_are_read():
    assert method_from("gq.inference.MetropolisWithinGibbs(PCN(step_size=0.2))").kernel == PCN(0.2)
    found = likelihood_of("LevelSet(noise_std=Uniform(0.1, 1))", n_classes=3)
    assert (found.noise_std, found.n_classes) == (gq.Uniform(0.1, 1), 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Matern(tua=3)", "use its arguments tau, alpha"),
        ("Matern(tau=", "cannot be read"),
        ("Matern(tau=x)", r"'x' in 'Matern\(tau=x\)' is not a value"),
        ("Matern(**{})", r"'\*\*'"),
        ("Matern(tau=Normal(0, 1))", "'Normal' in .* is unknown; use .*AnnotatorGibbs, Atomic"),
        ("Matren()", "'Matren' in .* is unknown; use Diffusion, EigenScales, "),
        ("__import__('os').system('true')", "'system' in .* is unknown"),
        ("Prior()", "'Prior' in .* is unknown"),
        ("Probit()", "is unknown; use one of auto, matern"),
        ("Matern(tau=-1)", "tau: -1 is out of range"),
    ],
)
def test_bad_expressions_are_refused(text, words):
    with pytest.raises(InvalidInput, match=words):
        prior_of(text)


class OwnPower(gq.priors.Prior):
    """A prior of a user; defined here, it can be named in text."""

    power: Any = 2.0

    def log_variances(self, eigenvalues):
        return -self.power * jnp.log(eigenvalues + 0.1)


class OwnFlat(gq.likelihoods.Likelihood):
    def log_prob(self, u, y):
        return jnp.log(0.5 + jnp.arctan(y * u) / jnp.pi)


class OwnWalk(Kernel):
    step_size: float = 0.3
    target_acceptance: float = 0.3
    reference: Any = None

    def step(self, key, state, target, step_size):
        raise AssertionError("nobody calls it")


def test_text_names_classes_of_the_user():
    assert prior_of("OwnPower(power=LogUniform(1, 4))") == OwnPower(gq.LogUniform(1, 4))
    assert likelihood_of("OwnFlat()") == OwnFlat()
    assert method_from("OwnWalk(step_size=0.2)") == OwnWalk(0.2)
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.r_[0, 1, 0, 1, np.full(26, -1)]
    model = "Fixed(OwnPower(power=3), Probit())"
    found = gq.GraphClassifier(model=model, inference="laplace").fit(X, y)
    assert found.result_.posterior.prior == OwnPower(3)
    for refused, words in {
        "OwnPowr()": "prior: 'OwnPowr' in .* is unknown; use .*Matern, .*OwnPower",
        "OwnPower(1, 2, 3)": "does not fit OwnPower; use its arguments power",
        "OwnWalk()": r"prior: OwnWalk\(.*\) is unknown; use one of auto, matern",
    }.items():
        with pytest.raises(InvalidInput, match=words):
            prior_of(refused)
    with pytest.raises(InvalidInput, match=r"method: .X. in .* unknown; use .*AnnotatorGibbs, "):
        method_from("X()")


def test_the_last_definition_counts_and_two_classes_of_one_name_are_refused():
    def define(default, place="a"):
        body = {"power": default, "__annotations__": {"power": float}, "__module__": place}
        body["log_variances"] = lambda self, eigenvalues: -self.power * eigenvalues
        return type("OwnTwice", (gq.priors.Prior,), body)

    first, second = define(1.0), define(2.0)  # a cell of a notebook that ran twice
    assert prior_of("OwnTwice()").power == 2.0
    elsewhere = define(3.0, "b")
    with pytest.raises(InvalidInput, match="'OwnTwice' is the name of 2 classes, of a and b; pass"):
        prior_of("OwnTwice()")
    assert prior_of(elsewhere()).power == 3.0
    del first, second
    type("RandomWalk", (OwnWalk,), {"__module__": "a"})  # of another kind
    assert prior_of("RandomWalk()") == gq.priors.RandomWalk()


@pytest.mark.parametrize("inference", ["expectation-propagation", "laplace", "map"])
@pytest.mark.parametrize("name", ["n_chains", "n_warmup", "thin"])
def test_arguments_of_samplers_are_refused_beside_approximations(inference, name):
    with pytest.raises(InvalidInput, match=f"{name}: given beside .* draws no samples"):
        gq.infer(posterior(), inference, **{name: 4})
    classifier = gq.GraphClassifier(inference=inference)
    with pytest.raises(InvalidInput, match=f"inference__{name}: .* has no '{name}'"):
        classifier.set_params(**{f"inference__{name}": 4})
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.r_[0, 1, np.full(18, -1)]
    with pytest.raises(InvalidInput, match=r"method: .* draws no samples"):
        classifier.set_params(inference=f"MCMC('{inference}')").fit(X, y)


def posterior():
    spectrum = gq.laplacian_spectrum(gq.graphs.path_graph(20), n_eigenpairs=5)
    parts = (spectrum, gq.priors.Matern(), gq.likelihoods.Probit())
    return gq.Posterior(*parts, labelled=[0, 19], labels=[-1, 1])


def test_nested_names_set_fields_of_values():
    classifier = gq.GraphClassifier().set_params(inference__n_samples=20, inference__thin=2)
    assert classifier.inference == gq.inference.MCMC(n_samples=20, thin=2)
    changed = clone(classifier).set_params(inference__method="pcn", inference__thin=None)
    assert repr(changed.inference) == "MCMC('pcn', n_samples=20)"
    assert classifier.get_params()["inference__n_samples"] == 20
    noise = {"model": "largest-evidence", "model__likelihood": gq.likelihoods.Probit()}
    deeper = classifier.set_params(**noise).set_params(model__likelihood__noise_std=0.3)
    assert deeper.model == gq.models.LargestEvidence(likelihood=gq.likelihoods.Probit(0.3))
    ball = gq.GraphClassifier("Epsilon(radius=0.4)").set_params(graph__radius=0.5)
    assert ball.graph == gq.graphs.Epsilon(0.5)
    tuned = gq.GraphClassifier().set_params(weights__sharpness=2.0)
    assert tuned.weights == gq.graphs.SelfTuning(2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'foo'"):
        classifier.set_params(foo__bar=1)
    with pytest.raises(InvalidInput, match=r"inference__foo: .* has no 'foo'; use one of method"):
        classifier.set_params(inference__foo=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_a_grid_search_reaches_settings_of_sampling():
    moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.1)
    short = gq.inference.MCMC("pcn", n_chains=2, n_warmup=50, stop=None)
    classifier = gq.GraphClassifier(model="largest-evidence", inference=short)
    search = GridSearchCV(classifier, {"inference__n_samples": [10, 20]}, cv=2)
    search.fit(moons.features, moons.classes)
    assert search.best_estimator_.n_iter_ == search.best_params_["inference__n_samples"]


def test_a_first_result_needs_the_automatic_method():
    with pytest.raises(InvalidInput, match="on_first_result: given beside method='pcn'"):
        gq.inference.MCMC("pcn", on_first_result=print)
