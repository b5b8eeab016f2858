"""Ranks of the truth are uniform, for every method and likelihood that suit each other.

These tests are slow: each makes hundreds of complete runs.
"""

import inspect

import pytest
from simulation import (
    AVERAGED,
    HIERARCHICAL,
    LIKELIHOODS,
    METHODS,
    MULTICLASS,
    ON_BLOCKS,
    SERIES,
    annotated_ranks,
    averaged_grades_ranks,
    averaged_ranks,
    hierarchical_ranks,
    multiclass_ranks,
    p_values,
    ranks,
    series_ranks,
    suits,
    with_block,
)

import graphuq as gq
from graphuq.inference import Approximation, Kernel, Sampler

PAIRS = [
    (kind, name)
    for kind, likelihood in LIKELIHOODS.items()
    for name, (method, _, _) in METHODS.items()
    if suits(method, likelihood)
]
# Bound on p-values: one false alarm in a thousand suites, with two nodes, with and without tail.
ALARM = 1e-3 / (4 * len(PAIRS))
DETECTED = 1e-4  # of a negative control, whose two p-values are not part of that number


def test_no_pair_is_left_out_by_accident():
    """A second likelihood of a kind has the methods of the first."""
    assert len(PAIRS) == 52
    again = {"probit": gq.likelihoods.Probit(2.0), "noise-free": gq.likelihoods.NoiseFree()}
    for kind, likelihood in again.items():
        methods = {name for name, (method, _, _) in METHODS.items() if suits(method, likelihood)}
        assert methods == {name for pair, name in PAIRS if pair == kind}


@pytest.mark.parametrize("tail", [False, True])
def test_no_pair_is_refused(tail):
    """Every method accepts the likelihoods that suit it."""
    graph = gq.graphs.path_graph(12)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=8, tail_eigenvalue=tail)
    for kind, name in PAIRS:
        prior, nodes = gq.priors.InverseLaplacian(), [0, 5, 9]
        posterior = gq.Posterior(spectrum, prior, LIKELIHOODS[kind], nodes, [1, -1, 1])
        assert METHODS[name][0].refusal(posterior) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # one short chain
@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_ranks_are_uniform(kind, name, tail):
    found = ranks(LIKELIHOODS[kind], LIKELIHOODS[kind], tail, *METHODS[name])
    assert min(p_values(found)) > ALARM


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("name", ["pCN", "Hamiltonian about EP", "expectation propagation"])
def test_wrong_noise_is_detected(name):
    """Negative control: labels are far noisier than the model assumes."""
    noisy, assumed = gq.likelihoods.Probit(3.0), gq.likelihoods.Probit(0.1)
    assert min(p_values(ranks(noisy, assumed, False, *METHODS[name]))) < DETECTED


GRADES = gq.likelihoods.Ordered([-0.6, 0.1, 0.9], 0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # one short chain
@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("name", ["expectation propagation", "elliptical slice about EP"])
def test_fields_of_grades_are_calibrated(name, tail):
    assert min(p_values(ranks(GRADES, GRADES, tail, *METHODS[name]))) > 1e-3 / 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # one short chain
@pytest.mark.parametrize("name", ["expectation propagation", "elliptical slice about EP"])
def test_wrong_thresholds_are_detected(name):
    """Negative control: the thresholds of the labels are one field's deviation higher."""
    higher = gq.likelihoods.Ordered(GRADES.thresholds + 1.0, 0.5)
    assert min(p_values(ranks(higher, GRADES, False, *METHODS[name]))) < DETECTED


@pytest.mark.slow
def test_average_of_grades_is_calibrated():
    """Each component has its own noise; a field twenty times smaller is detected."""
    own = gq.likelihoods.Ordered([-0.6, 0.4], [0.5, 1.0])
    assert min(p_values(averaged_grades_ranks(own))) > 1e-3 / 2
    assert min(p_values(averaged_grades_ranks(own, wrong_scale=0.05))) < DETECTED


@pytest.mark.slow
def test_every_method_is_calibrated():
    """All methods are tested except MAP and Laplace.

    MAP gives a point, which has no ranks, and the Gaussian of Laplace is too wide.
    """
    exported = {
        value
        for name in gq.inference.__all__
        for value in [getattr(gq.inference, name)]
        if isinstance(value, type)
        and issubclass(value, Sampler | Approximation)
        and not inspect.isabstract(value)
        and value not in (Sampler, Kernel, Approximation, gq.inference.MAP, gq.inference.Laplace)
    }
    calibrated = {type(method) for method, _, _ in METHODS.values()}
    learning = [*HIERARCHICAL.values(), *SERIES.values()]
    learning_too = {type(sampler) for sampler in learning}
    others = {gq.inference.ModelAverage, gq.inference.AnnotatorGibbs}  # tests of their own
    assert exported == calibrated | learning_too | others


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("block", ["eigenpairs", *ON_BLOCKS])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_averaged_model_is_calibrated(n_classes, block):
    """Component and field are drawn from the prior of the mixture, and found again."""
    prior = with_block(block) if block in ON_BLOCKS else AVERAGED
    found = averaged_ranks(prior, n_classes)
    assert min(p_values(found)) > 1e-3 / 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("block", ["eigenpairs", *ON_BLOCKS])
def test_wrong_scale_of_the_averaged_model_is_detected(block):
    """Negative control: the field is twenty times smaller than all components assume."""
    prior = with_block(block) if block in ON_BLOCKS else AVERAGED
    found = averaged_ranks(prior, 2, wrong_scale=0.05)
    assert min(p_values(found)) < DETECTED


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_third_power_of_words_is_calibrated(n_classes):
    """Functions of sparse features: of centred rows, which keep their weights."""
    found = averaged_ranks(with_block("third power"), n_classes, words=True)
    assert min(p_values(found)) > 1e-3 / 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_wrong_scale_of_words_is_detected():
    """Negative control: the field is twenty times smaller than both components assume."""
    found = averaged_ranks(with_block("third power"), 2, wrong_scale=0.05, words=True)
    assert min(p_values(found)) < DETECTED


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("kind", HIERARCHICAL)
def test_hyperparameters_are_calibrated(kind, tail):
    found = hierarchical_ranks(LIKELIHOODS[kind], LIKELIHOODS[kind], HIERARCHICAL[kind], tail)
    assert min(p_values(found)) > 1e-3 / (9 * len(HIERARCHICAL))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_wrong_noise_is_detected_with_learnt_hyperparameters():
    noisy, assumed = gq.likelihoods.Probit(3.0), gq.likelihoods.Probit(0.1)
    assert min(p_values(hierarchical_ranks(noisy, assumed, HIERARCHICAL["probit"]))) < 1e-4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.filterwarnings("ignore::graphuq.errors.TruncationWarning")
@pytest.mark.parametrize("kind", SERIES)
def test_series_are_calibrated(kind):
    noise = gq.likelihoods.Probit(1.0)
    assert min(p_values(series_ranks(noise, noise, SERIES[kind]))) > 1e-3 / (4 * len(SERIES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.filterwarnings("ignore::graphuq.errors.TruncationWarning")
def test_wrong_noise_of_a_series_is_detected():
    noisy, assumed = gq.likelihoods.Probit(30.0), gq.likelihoods.Probit(0.3)
    assert min(p_values(series_ranks(noisy, assumed, SERIES["auto"]))) < 1e-4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("kind", MULTICLASS)
def test_multiclass_methods_are_calibrated(kind):
    likelihood, kernel = MULTICLASS[kind]
    assert min(p_values(multiclass_ranks(likelihood, likelihood, kernel))) > 1e-3 / (
        4 * len(MULTICLASS)
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_wrong_multiclass_noise_is_detected():
    noisy, (assumed, kernel) = gq.likelihoods.Softmax(5.0, n_classes=3), MULTICLASS["softmax"]
    assert min(p_values(multiclass_ranks(noisy, assumed, kernel))) < 1e-4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_annotators_are_calibrated(n_classes):
    """Field, accuracies of annotators and true classes are drawn from the model."""
    assert min(p_values(annotated_ranks(n_classes))) > 1e-3 / 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_other_accuracies_of_annotators_are_detected():
    """Negative control: annotators are nearly always right, far more often than assumed."""
    assert min(p_values(annotated_ranks(2, right=40.0))) < DETECTED
