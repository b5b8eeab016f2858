"""What a fitted classifier was made of is found again, or refused by name: files, words, nests."""

import dataclasses

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput, StorageError
from graphuq.graphs import GraphBuilder, SelfTuning, epsilon_graph, knn_graph
from graphuq.graphs.weights import WeightFunction
from graphuq.inference import MCMC, EachComponent
from graphuq.models import Fixed, LargestEvidence, Model

MOONS = gq.datasets.two_moons(80, n_features=2, noise_std=0.1)
X, Y = MOONS.features, np.full(80, -1)
Y[[0, 1, 2, 77, 78, 79]] = MOONS.codes()[[0, 1, 2, 77, 78, 79]]
EP = "expectation-propagation"
QUICK = {"model": Fixed(gq.priors.Matern(0.3, 4.0), gq.likelihoods.Probit(0.1)), "inference": EP}


def fitted(**more):
    return gq.GraphClassifier(**(QUICK | more)).fit(X, Y)


def again(classifier, tmp_path):
    classifier.save(tmp_path / "c.nc")
    return gq.load(tmp_path / "c.nc")


def test_a_loaded_classifier_has_its_model(tmp_path):
    first = fitted(model=LargestEvidence(likelihood=gq.likelihoods.Probit(0.2)))
    second = again(first, tmp_path)
    assert second.model_ == first.model_
    assert repr(second) == repr(first)


def local_parts():
    @dataclasses.dataclass(frozen=True)
    class LocalBuilder(GraphBuilder):
        radius: float = 0.6

        def build(self, X, weights=None):
            return epsilon_graph(X, self.radius)

    @dataclasses.dataclass(frozen=True, repr=False)
    class LocalModel(Model):
        def posterior(self, basis, labels):
            return QUICK["model"].posterior(basis, labels)

    return [{"graph": LocalBuilder()}, {"model": LocalModel()}]


@pytest.mark.parametrize("place", [0, 1], ids=["builder", "model"])
def test_a_part_that_no_process_would_find_is_not_left_out_of_a_file(place, tmp_path):
    own = local_parts()[place]
    classifier = fitted(**own)
    with pytest.raises(StorageError, match="local to a function"):
        classifier.save(tmp_path / "c.nc")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_a_stop_rule_of_ones_own_leaves_the_other_settings_in_the_file(tmp_path):
    sampling = MCMC("pcn", n_samples=40, n_chains=2, n_warmup=40, thin=2, stop=lambda draws: None)
    found = again(fitted(inference=sampling), tmp_path)
    assert found.inference == dataclasses.replace(sampling, stop="converged")


def test_shares_of_classes_that_are_numbers_are_stored(tmp_path):
    shares = {0: 0.3, 1: 0.7}
    second = again(fitted(class_proportions=shares), tmp_path)
    assert second.class_proportions == shares
    assert (second.fit(X, Y).transduction_ == fitted(class_proportions=shares).transduction_).all()


class Plain(WeightFunction):
    """Weights of a class without fields."""

    metric = "euclidean"

    def weight(self, distance, scale_rows, scale_columns):
        return 1 / (1 + distance)


def test_a_metric_is_shown_and_makes_another_search(tmp_path):
    weights = SelfTuning(4.0, metric="cosine")
    assert repr(weights) == "SelfTuning(sharpness=4.0, metric='cosine')"
    assert repr(SelfTuning(4.0)) == "SelfTuning(sharpness=4.0)"
    assert "Plain object" in repr(Plain())

    def search(metric):
        classifier = gq.GraphClassifier(**QUICK, weights=SelfTuning(4.0, metric=metric))
        path = tmp_path / "search.json"
        return gq.EvidenceSearch(classifier, {"n_neighbors": [5]}, checkpoint=path, refit=False)

    search("euclidean").fit(X + 1, Y)
    with pytest.raises(StorageError, match="another search"):
        search("cosine").fit(X + 1, Y)


def test_a_search_of_a_prior_refuses_a_model_without_one():
    search = gq.EvidenceSearch(gq.GraphClassifier(model="average"), {"prior__tau": [0.1, 0.5]})
    with pytest.raises(InvalidInput, match=r"model: Average\(\) beside a search of prior__tau"):
        search.fit(X, Y)


def test_truncation_by_evidence_beside_a_sampled_prior_is_refused():
    prior = gq.priors.Matern(gq.LogUniform(0.02, 3))
    with pytest.raises(InvalidInput, match="truncation: 'auto' beside Matern"):
        LargestEvidence(prior=prior, truncation="auto")


@pytest.mark.parametrize("graph", ["precomputed", knn_graph(X, 15)], ids=["word", "graph"])
def test_weights_of_a_given_graph_have_no_fields(graph):
    with pytest.raises(InvalidInput, match="weights__sharpness: 'auto' has no 'sharpness'"):
        gq.GraphClassifier(graph).set_params(weights__sharpness=2.0)


def test_weights_of_numbers_have_their_own_default():
    regressor = gq.GraphRegressor().set_params(weights__metric="cosine")
    assert regressor.weights == SelfTuning(1.0, metric="cosine")


def test_nested_names_do_not_depend_on_their_order():
    classifier = gq.GraphClassifier(model=Fixed(gq.priors.Matern(), gq.likelihoods.Probit()))
    changes = {"model__likelihood__noise_std": 0.3,
               "model__likelihood": gq.likelihoods.Probit(n_classes=3)}  # fmt: skip
    expected = gq.likelihoods.Probit(0.3, 3)
    for names in (list(changes), list(changes)[::-1]):
        classifier.set_params(**{name: changes[name] for name in names})
        assert classifier.model.likelihood == expected


def test_a_builder_that_loses_rows_is_named():
    @dataclasses.dataclass(frozen=True)
    class Half(GraphBuilder):
        def build(self, X, weights=None):
            return epsilon_graph(X[:40], 0.6)

    with pytest.raises(InvalidInput, match=r"graph: .*Half\(\) made .* of 80 rows"):
        fitted(graph=Half())
    numbers = np.where(Y < 0, np.nan, X[:, 0])
    with pytest.raises(InvalidInput, match=r"graph: .*Half\(\) made"):
        gq.GraphRegressor(Half()).fit(X, numbers)


def test_each_component_has_the_precision_of_its_method():
    assert not EachComponent(gq.inference.PCN()).always_float64
    assert EachComponent(gq.inference.ExpectationPropagation()).always_float64


@pytest.mark.parametrize("inference", [
    MCMC("pcn", stop="Converged(ess=100)"), "MCMC('pcn', stop=Converged(ess=100))",
])  # fmt: skip
def test_a_stop_rule_may_be_text(inference):
    from graphuq.run.words import inference_from

    assert inference_from(inference).stop == gq.Converged(ess=100)


def test_the_page_refuses_an_unknown_model_before_it_opens(tmp_path):
    for wrong, message in [
        ({"model": "foo"}, "model: 'foo' is unknown"),
        ({"weights": "foo"}, "weights: 'foo' is unknown"),
        ({"graph": "foo"}, "graph: 'foo' is unknown"),
        ({"n_neighbors": 0}, "n_neighbors: 0"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            gq.label(X, labels=tmp_path / "l.jsonl", classifier=gq.GraphClassifier(**wrong),
                     open_browser=False)  # fmt: skip
