"""A method of a user's own that breaks its contract is refused by name, before any work."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from graphuq.errors import InvalidInput

SPECTRUM = gq.laplacian_spectrum(gq.graphs.ring_graph(10))
LABELLED, LABELS = [0, 3, 6], [1, -1, 1]


def raising(u, y):
    raise KeyError("mine")


LOG_PROBS = {
    "numpy": (lambda u, y: norm.logcdf(u * y), r"TracerArrayConversionError: NumPy, float\(\)"),
    "float": (lambda u, y: [float(value) for value in u], "float"),
    "if": (lambda u, y: u * y if u[0] > 0 else -u * y, "or if was applied"),
    "sum": (lambda u, y: (u * y).sum(), r"shape \(\), type float64 for 3 entries"),
    "nothing": (lambda u, y: None, "None"),
    "one argument": (lambda u: u, "positional argument"),
    "error": (raising, "KeyError: 'mine'"),
    "nan": (lambda u, y: u * y * jnp.nan, "NaN at u = "),
    "integers": (lambda u, y: jnp.where(u * y > 0, 1, 0), "type int64"),
    "complex": (lambda u, y: (u * y).astype(complex), "type complex128"),
}
LOG_VARIANCES = {
    "one number": (lambda e: -float(e[0]), "-0"),
    "short": (lambda e: -e[:3], r"shape \(3,\), type float64 for 10 entries"),
    "nothing": (lambda e: None, "None"),
    "list": (lambda e: [-value for value in e], "list of length 10"),
    "nan": (lambda e: e * np.nan, r"\[nan\] at eigenvalue"),
    "infinite": (lambda e: e / 0, r"\[inf\] at eigenvalue"),
}


def likelihood_of(function):
    class Own(gq.likelihoods.Likelihood):
        scale: float = 0.3
        log_prob = lambda self, *given: function(*given)  # noqa: E731

    return Own()


def prior_of(function, time=1.0):
    class Own(gq.priors.Prior):
        scale: float = 0.3
        log_variances = lambda self, eigenvalues: function(eigenvalues)  # noqa: E731

    return Own(time)


@pytest.mark.parametrize("case", LOG_PROBS)
def test_log_prob_is_tried(case):
    function, said = LOG_PROBS[case]
    with pytest.raises(InvalidInput, match=rf"^Own\.log_prob: .*{said}.*; define log_prob\(u, y\)"):
        gq.Posterior(SPECTRUM, gq.priors.Matern(), likelihood_of(function), LABELLED, LABELS)


@pytest.mark.parametrize("case", LOG_VARIANCES)
def test_log_variances_is_tried(case):
    function, said = LOG_VARIANCES[case]
    posterior = gq.Posterior(
        SPECTRUM, prior_of(function), gq.likelihoods.Probit(), LABELLED, LABELS
    )
    with pytest.raises(InvalidInput, match=rf"^Own\.log_variances: .*{said}.*; define log_var"):
        gq.infer(posterior)


def test_numpy_serves_a_prior_that_is_not_learnt():
    likelihood = gq.likelihoods.Probit()
    own = prior_of(lambda e: -np.exp(e))
    fixed = gq.Posterior(SPECTRUM, own, likelihood, LABELLED, LABELS)
    assert np.isfinite(gq.infer(fixed, "expectation-propagation").probabilities).all()
    learnt = prior_of(lambda e: -np.exp(e), gq.Uniform(0.1, 1.0))
    posterior = gq.Posterior(SPECTRUM, learnt, likelihood, LABELLED, LABELS)
    with pytest.raises(InvalidInput, match=r"^Own\.log_variances: TracerArrayConversionError"):
        gq.infer(posterior)


def test_the_error_of_the_method_stays_in_the_traceback():
    with pytest.raises(InvalidInput) as found:
        gq.Posterior(SPECTRUM, gq.priors.Matern(), likelihood_of(raising), LABELLED, LABELS)
    assert isinstance(found.value.__cause__, KeyError)
