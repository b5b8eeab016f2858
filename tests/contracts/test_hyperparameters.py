"""A hyperparameter is a number or a distribution; anything else is refused by name."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.distributions import Hyperparameter, parameter
from graphuq.errors import InvalidInput
from graphuq.likelihoods import Likelihood
from graphuq.priors import Prior

NUMBERS = [
    (gq.priors.Matern, "tau"),
    (gq.priors.Matern, "alpha"),
    (gq.priors.Matern, "truncation"),
    (gq.priors.Diffusion, "time"),
    (gq.priors.RandomWalk, "n_steps"),
    (gq.priors.EigenScales, "tau"),
    (gq.priors.EigenScales, "scales"),
    (gq.priors.LearnedSpectrum, "slopes"),
    (gq.priors.LearnedSpectrum, "n_knots"),
    (gq.priors.RandomSeries, "scale"),
    (gq.priors.RandomSeries, "exponent"),
    (gq.priors.RandomSeries, "truncation"),
    (gq.priors.RandomSeries, "truncation_rate"),
    (gq.priors.RegularizedLaplacian, "beta"),
    (gq.priors.RegularizedLaplacian, "sigma"),
    (gq.likelihoods.AtomicNoise, "p"),
    (gq.likelihoods.AtomicNoise, "q"),
    (gq.likelihoods.GaussianNoise, "noise_std"),
    (gq.likelihoods.GinzburgLandau, "epsilon"),
    (gq.likelihoods.GinzburgLandau, "noise_std"),
    (gq.likelihoods.GinzburgLandau, "n_classes"),
    (gq.likelihoods.LevelSet, "noise_std"),
    (gq.likelihoods.LevelSet, "n_classes"),
    (gq.likelihoods.Logistic, "steepness"),
    (gq.likelihoods.NoiseFree, "n_classes"),
    (gq.likelihoods.Probit, "noise_std"),
    (gq.likelihoods.Probit, "n_classes"),
    (gq.likelihoods.SoftProbit, "noise_std"),
    (gq.likelihoods.Softmax, "noise_std"),
    (gq.likelihoods.Softmax, "n_classes"),
]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("value", [True, "0.3", [0.3], (0.3,), {"a": 1}], ids=repr)
@pytest.mark.parametrize(
    ("part", "name"), NUMBERS, ids=[f"{part.__name__}.{name}" for part, name in NUMBERS]
)
def test_values_that_are_not_numbers_are_refused(part, name, value):
    with pytest.raises(InvalidInput, match=f"^{name}: .*; (use|give) "):
        part(**{name: value})


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("value", ["no", 2, [True]], ids=repr)
@pytest.mark.parametrize("prior", [gq.priors.Matern, gq.priors.InverseLaplacian])
def test_include_constant_is_a_boolean_or_none(prior, value):
    with pytest.raises(InvalidInput, match=r"^include_constant: .*; use True, False or None"):
        prior(include_constant=value)


def test_numpy_numbers_are_accepted():
    assert gq.priors.Matern(np.float64(0.5), np.int64(3)).alpha == 3
    assert gq.likelihoods.Probit(np.array(0.5)).noise_std == 0.5
    assert gq.likelihoods.Probit(n_classes=np.int64(4)).n_fields == 4


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("value", [True, "1", [1.0], None], ids=repr)
@pytest.mark.parametrize(
    ("distribution", "name"),
    [
        (lambda x: gq.Uniform(x, 2.0), "low"),
        (lambda x: gq.LogUniform(0.1, x), "high"),
        (lambda x: gq.LogNormal(x, 1.0), "median"),
        (lambda x: gq.Gamma(1.0, x), "rate"),
        (lambda x: gq.DiscreteUniform(0, x), "high"),
        (lambda x: gq.Poisson(x, low=1), "mean"),
        (lambda x: gq.Poisson(2.0, low=x), "low"),
        (lambda x: gq.NegativeBinomial(2.0, x), "shape"),
        (lambda x: gq.Distribution("gamma", (x, 0.0, 1.0)), "parameters"),
    ],
)
def test_distributions_have_numbers_as_parameters(distribution, name, value):
    with pytest.raises(InvalidInput, match=f"^{name}: .*; use "):
        distribution(value)


def test_counts_have_their_moments_and_names():
    poisson, wide = gq.Poisson(3.0, low=1), gq.NegativeBinomial(4.0, 2.0, low=2)
    assert (poisson.frozen.mean(), poisson.frozen.var()) == pytest.approx((4.0, 3.0))
    assert (wide.frozen.mean(), wide.frozen.var()) == pytest.approx((6.0, 4.0 + 4.0**2 / 2.0))
    assert (repr(poisson), repr(wide)) == ("Poisson(3, 1)", "NegativeBinomial(4, 2, 2)")
    for make in (lambda: gq.Poisson(0.0), lambda: gq.NegativeBinomial(1.0, -2.0)):
        with pytest.raises(InvalidInput, match=r"is not positive; use (mean|shape) > 0"):
            make()


def test_a_length_without_end_is_bounded_by_the_eigenpairs():
    path = np.diag(np.ones(9), 1) + np.diag(np.ones(9), -1)
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path), n_eigenpairs=6)
    bound = gq.priors.Matern(truncation=gq.Poisson(4.0, low=2)).bind(spectrum).truncation
    expected = gq.Poisson(4.0, low=2).frozen.pmf(np.arange(2, 7))
    assert bound.support == (2.0, 6.0)
    np.testing.assert_allclose(bound.frozen.pmf(np.arange(2, 7)), expected / expected.sum())
    with pytest.raises(InvalidInput, match=r"^truncation: Poisson\(4, 1\) has support \[1, inf"):
        gq.priors.Matern(truncation=gq.Poisson(4.0, low=1))


class OwnPrior(Prior):
    rate: Hyperparameter = parameter(2.0)

    def log_variances(self, eigenvalues):
        return -self.rate * eigenvalues


class OwnLikelihood(Likelihood):
    scale: Hyperparameter = parameter(1.0)

    def log_prob(self, u, y):
        return -((y - u) ** 2) / self.scale


@pytest.mark.parametrize(("part", "name"), [(OwnPrior, "rate"), (OwnLikelihood, "scale")])
def test_hyperparameters_of_own_parts_are_checked(part, name):
    for value in (True, "1", [1.0], None):
        with pytest.raises(InvalidInput, match=f"^{name}: .* is not a number; use a number, or a"):
            part(value)
    assert list(part(gq.Uniform(1, 2)).learnt) == [name]


def test_a_missing_method_is_named():
    class NoMethod(Likelihood):
        scale: float = 1.0

    class NoVariances(Prior):
        rate: float = 1.0

    with pytest.raises(InvalidInput, match=r"^NoMethod: the class does not define log_prob; "):
        NoMethod()
    with pytest.raises(InvalidInput, match=r"^NoVariances: .* not define log_variances"):
        NoVariances()
