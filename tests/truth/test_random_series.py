"""Reversible jump against enumeration over k, quadrature over c and orthant probabilities."""

import functools
import warnings

import numpy as np
import pytest
from reference import normal_cdf
from scipy import stats
from scipy.special import ndtr

import graphuq as gq
from graphuq.errors import NotConvergedWarning
from graphuq.inference import MetropolisWithinGibbs, ReversibleJump
from graphuq.inference.reversible_jump import gibbs, hmc
from graphuq.results.summaries.marginals import QUANTILE_DRAWS

N, RATE, EXPONENT = 20, 0.15, 1.0
LABELLED, LABELS = np.array([2, 6, 13, 17]), np.array([1, 1, -1, 1])
SHOWN = [0, 10]
BELOW = [2, 6]
SCALE = gq.Gamma(2.0, 1.0)
GEOMETRIC = gq.Distribution("boltzmann", (RATE, N, 1))  # p(k) ∝ e^{−ρk}
LENGTHS = np.arange(1, N + 1)


def series(noise_std=1.0, scale=SCALE, labelled=LABELLED, labels=LABELS, length=None):
    path = np.diag(np.ones(N - 1), 1)
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path + path.T), "unnormalized")
    prior = gq.priors.RandomSeries(scale, EXPONENT, length, truncation_rate=RATE)
    return gq.Posterior(spectrum, prior, gq.likelihoods.Probit(noise_std), labelled, labels)


def quadrature():
    """Return nodes and weights for c."""
    z, weights = np.polynomial.legendre.leggauss(12)
    return SCALE.frozen.ppf(stats.norm.cdf(5 * z)), weights * stats.norm.pdf(5 * z)


def covariance(k, c):
    """Return the covariance of f on the path, in closed form.

    Hartog & van Zanten 2018, (4), corrected.
    """
    i, j = np.arange(N)[:, None], np.arange(k)[None, :]
    q = np.sqrt(2 / N) * np.cos(np.pi * (i + 0.5) * j / N)
    q[:, 0] = 1 / np.sqrt(N)
    eigenvalues = 4 * np.sin(np.pi * np.arange(k) / (2 * N)) ** 2
    return (q / (c * (eigenvalues + N**-2.0) ** EXPONENT)) @ q.T


def probability(matrix, limits):
    """Return P(x < limits) for x ~ N(0, matrix)."""
    return normal_cdf(limits, matrix, abseps=1e-5, releps=1e-5)


def over_models(event):
    """Return the probability of labels and an event, for each k and with the weight of each c."""
    return np.array([[w * event(k, x) for x, w in zip(*quadrature(), strict=True)]
                     for k in LENGTHS])  # fmt: skip


def with_labels(k, c, node=None, noise=0.0, limit=0.0):
    """Return P(labels, and f_node + noise below a limit)."""
    index = list(LABELLED) if node is None else [*LABELLED, node]
    signs = np.append(-LABELS, 1.0)[: len(index)]
    matrix = covariance(k, c)[np.ix_(index, index)]
    matrix = matrix + np.diag([1.0] * len(LABELLED) + [noise**2])[: len(index), : len(index)]
    limits = np.append(np.zeros(len(LABELLED)), limit)[: len(index)]
    return probability(signs[:, None] * matrix * signs, limits)


@functools.cache
def given_length():
    """Return the probability of the labels, also with a negative soft label, for each k and c."""
    soft = [over_models(lambda k, c, i=i: with_labels(k, c, i, noise=1.0)) for i in SHOWN]
    return over_models(with_labels), soft


def truth(length=GEOMETRIC):
    """Return E c, P(k ≤ 2), P(k ≤ 6) and E ℓ at two nodes; and the evidence."""
    c, _ = quadrature()
    p_k = length.frozen.pmf(LENGTHS)
    p_k = (p_k / p_k.sum())[:, None]
    labels, negative = given_length()
    joint = p_k * labels
    evidence = joint.sum()
    below = [joint[:k].sum() / evidence for k in BELOW]
    soft = [1 - (p_k * part).sum() / evidence for part in negative]
    return np.array([(joint * c).sum() / evidence, *below, *soft]), evidence


def estimate(posterior, method):
    """Return estimates by sampling, their errors from 64 independent chains, and the result."""
    with warnings.catch_warnings():  # errors are estimated between chains
        warnings.simplefilter("ignore", NotConvergedWarning)
        result = gq.infer(
            posterior, method, n_samples=500, n_chains=64, n_warmup=200, thin=4, rng=3
        )
    found, gamma = result.hyperparameters, posterior.likelihood.noise_std
    k, white = found["truncation"], result.answer.white
    soft = [ndtr(white @ posterior.spectrum.eigenvectors[i] / gamma) for i in SHOWN]
    functionals = [found["scale"] * gamma**2, *(k <= b for b in BELOW), *soft]
    chains = np.stack([values.mean(axis=1) for values in functionals])
    return chains.mean(axis=1), chains.std(axis=1, ddof=1) / 8, result


METHODS = [ReversibleJump("binomial", form="reduced", interweave=False, jump=False)]
SLOW = [
    ReversibleJump(),
    ReversibleJump(whitened=True),
    ReversibleJump("binomial", form="plain", interweave=False, jump=False, whitened=False),
    ReversibleJump("triangular", reach=5, form="reduced"),
    ReversibleJump("binomial", form="marginal", interweave=False),
    ReversibleJump("uniform", reach=3, form="plain"),
    ReversibleJump("window", reach=3, form="reduced"),
    MetropolisWithinGibbs(gq.inference.Hamiltonian(), joint=True),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [*METHODS, *(pytest.param(m, marks=pytest.mark.slow) for m in SLOW)], ids=repr
)
def test_scale_length_and_soft_labels(method):
    expected, _ = truth()
    found, error, _ = estimate(series(), method)
    assert (error < [0.05, 0.02, 0.02, 0.01, 0.01]).all()
    np.testing.assert_array_less(np.abs(found - expected), 4 * error)


@pytest.mark.parametrize(
    ("length", "method"),
    [
        (gq.Poisson(3.0, low=1), METHODS[0]),
        (gq.NegativeBinomial(8.0, 1.5, low=1), METHODS[0]),
        pytest.param(gq.Poisson(3.0, low=1), SLOW[-1], marks=pytest.mark.slow),
        pytest.param(gq.NegativeBinomial(8.0, 1.5, low=1), SLOW[0], marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_other_priors_of_the_length(length, method):
    """Numbers above N, which are no length, are left out: 7 % of the second prior."""
    expected, _ = truth(length)
    found, error, result = estimate(series(length=length), method)
    assert result.hyperparameters["truncation"].max() <= N
    assert (error < [0.05, 0.02, 0.02, 0.01, 0.01]).all()
    np.testing.assert_array_less(np.abs(found - expected), 4 * error)
    assert abs(expected - truth()[0]).max() > 0.1  # another prior than the paper's


@pytest.mark.slow
def test_noise_std_is_the_unit_of_the_field():
    """The posterior of labels does not depend on γ with u = γ f and c = c' / γ²."""
    expected, _ = truth()
    scale = gq.Gamma(2.0, 0.3**2)  # c γ² ~ Gamma(2, 1)
    found, error, _ = estimate(series(0.3, scale), ReversibleJump())
    np.testing.assert_array_less(np.abs(found - expected), 4 * error)


def printed(statistics, prior):
    """Return the log ratio as §3.2 and Algorithm 1 print it, with statistics not squared."""
    return 0.5 * (np.log(prior) - np.log1p(prior) + statistics / (1 + prior))


@pytest.mark.slow
def test_the_printed_ratio_fails(monkeypatch):
    """Negative control: the ratio as printed gives another posterior."""
    monkeypatch.setattr(gibbs, "log_gain", printed)
    expected, _ = truth()
    found, error, _ = estimate(series(), ReversibleJump("binomial", form="reduced", jump=False))
    assert (np.abs(found - expected) > 4 * error).any()


@pytest.mark.slow
def test_a_jump_without_its_jacobian_fails(monkeypatch):
    """Negative control: without its Jacobian, a jump leads to another posterior."""
    monkeypatch.setattr(hmc.Factor, "log_diagonal", np.zeros((1, 1)))
    expected, _ = truth()
    found, error, _ = estimate(series(), ReversibleJump(whitened=True))
    assert (np.abs(found - expected) > 4 * error).any()


@pytest.mark.slow
def test_a_diagonal_metric_agrees(monkeypatch):
    """A diagonal metric, used with many eigenpairs, leads to the same posterior."""
    monkeypatch.setattr(hmc, "MAX_DENSE_FACTOR", 1)
    expected, _ = truth()
    found, error, _ = estimate(series(), ReversibleJump(whitened=True))
    np.testing.assert_array_less(np.abs(found - expected), 4 * error)


@pytest.mark.slow
def test_credible_intervals_have_their_coverage():
    """P(f_i below either end of its 95 % interval) agrees with orthant probabilities."""
    _, evidence = truth()
    posterior = series()
    _, _, result = estimate(posterior, ReversibleJump())
    for node in SHOWN:
        f = result.answer.white @ posterior.spectrum.eigenvectors[node]
        for end, share in zip(
            gq.credible_interval(result, 0.95)[node], (0.025, 0.975), strict=True
        ):
            below = over_models(lambda k, c, i=node, x=end: with_labels(k, c, i, limit=x))
            below = GEOMETRIC.frozen.pmf(LENGTHS) @ below.sum(axis=1)
            of_chains = (f <= end).mean(axis=1).var(ddof=1) / len(f)
            of_quantile = share * (1 - share) / QUANTILE_DRAWS
            assert abs(below / evidence - share) < 4 * np.sqrt(of_chains + of_quantile)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(ReversibleJump(), marks=pytest.mark.slow),
        pytest.param(ReversibleJump("binomial", form="plain"), marks=pytest.mark.slow),
        pytest.param(ReversibleJump(form="plain", whitened=True), marks=pytest.mark.slow),
    ],
)
def test_joint_draws_keep_the_prior(method):
    """Geweke's joint test on independent chains: joint draws keep their distribution."""
    assert prior_is_left(method)


def test_joint_draws_reject_the_printed_ratio(monkeypatch):
    """Negative control: the joint test rejects the ratio as printed."""
    monkeypatch.setattr(gibbs, "log_gain", printed)
    assert not prior_is_left(ReversibleJump("binomial", form="plain", jump=False))


def prior_is_left(method, n_chains=2000, n_steps=40):
    posterior = series()
    target, rng = posterior.series, np.random.default_rng(5)
    chains = gibbs.GibbsUpdates(
        target, method.proposal, method.reach, method.form, method.interweave, method.jump
    )
    whitened = hmc.HMCUpdates(target, chains.rows, chains.noisy_nodes)
    tuning = whitened.start()._replace(scale=np.asarray(1.5), centre=rng.normal(size=N))
    p_k = GEOMETRIC.frozen.pmf(LENGTHS)
    k = 1 + rng.choice(N, size=n_chains, p=p_k)
    c = SCALE.frozen.rvs(n_chains, random_state=rng)
    g = rng.normal(size=(N, n_chains)) / np.sqrt(c * target.precisions[:, None])
    g = np.where(np.arange(N)[:, None] < k, g, 0.0)
    state = gibbs.SeriesState(g, k, c, chains.rows @ g)
    for _ in range(n_steps):
        field = state.field[chains.noisy_nodes]
        chains.labels = np.where(rng.uniform(size=field.shape) < ndtr(field), 1.0, -1.0)
        if method.whitened:
            whitened.signs = whitened.at_nodes(chains.labels)
            state, _ = whitened.trajectory(rng, state, tuning)
            state = whitened.jump(rng, state, tuning, chains.log_prior)
        state, _ = chains.step(rng, state)
    counts = np.bincount(state.length, minlength=N + 1)[1:]
    merged = np.append(counts[:12], counts[12:].sum())
    expected = n_chains * np.append(p_k[:12], p_k[12:].sum())
    p_values = [
        stats.chisquare(merged, expected).pvalue,
        stats.kstest(state.scale, SCALE.frozen.cdf).pvalue,
        stats.kstest(np.sqrt(state.scale * target.precisions[0]) * state.coefficients[0],
                     stats.norm.cdf).pvalue,
    ]  # fmt: skip
    return min(p_values) > 0.001 / 3


@pytest.mark.parametrize("length", [1, 5])
def test_a_fixed_length_is_kept(length):
    posterior = series()
    prior = gq.priors.RandomSeries(SCALE, truncation=length)
    fixed = gq.Posterior(posterior.spectrum, prior, posterior.likelihood, LABELLED, LABELS)
    with pytest.warns(NotConvergedWarning):
        result = gq.infer(fixed, ReversibleJump(), n_samples=50, n_chains=2)
    assert set(result.hyperparameters) == {"scale"}
    assert (result.hyperparameters["scale"] > 0).all()
    assert result.answer.white[..., :length].all()
    assert not result.answer.white[..., length:].any()
