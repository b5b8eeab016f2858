"""Multiclass posteriors against rejection sampling from the prior.

Eight nodes have three classes. Fields are drawn from the prior, labels from fields and noise.
Draws whose labels equal the given ones are draws of the posterior, for every likelihood.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import orthant
from scipy import integrate, stats

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import (
    PCN,
    EllipticalSlice,
    ExactHamiltonian,
    ExpectationPropagation,
    Hamiltonian,
    Laplace,
    MetropolisWithinGibbs,
)
from graphuq.posterior.field import TailField
from graphuq.utils.with_jax import with_dtype

N_NODES, N_PAIRS = 8, 6
WEIGHTS = random_adjacency(N_NODES, seed=2)
LABELLED, LABELS = [0, 3, 6], [0, 2, 1]
N_DRAWS = 1_000_000
TAU, ALPHA = 0.5, 2.0
LEARNT_TAU = gq.LogUniform(0.1, 2.0)
GUMBEL_STD = np.pi / np.sqrt(6)


@functools.cache
def eigenpairs():
    degrees = WEIGHTS.sum(axis=1)
    values, vectors = np.linalg.eigh(
        np.eye(N_NODES) - WEIGHTS / np.sqrt(np.outer(degrees, degrees))
    )
    return values[:N_PAIRS], vectors[:, :N_PAIRS]


def posterior(likelihood, *, prior=None, labels=LABELS, n_eigenpairs=N_PAIRS, **options):
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(
        graph, n_eigenpairs=n_eigenpairs, tail_eigenvalue=options.pop("tail", False)
    )
    prior = prior or gq.priors.Matern(tau=TAU, alpha=ALPHA)
    return gq.Posterior(spectrum, prior, likelihood, LABELLED, labels, **options)


def deviations(tau):
    """Return s_j of each draw, by the formula."""
    values, _ = eigenpairs()
    variances = (values[1:] + np.asarray(tau)[..., None] ** 2) ** -ALPHA
    return np.sqrt(N_NODES * variances / variances.sum(axis=-1, keepdims=True))


@functools.cache
def truth(law, gamma=0.5, tau="fixed", n_classes=(3,), labels=tuple(LABELS)):
    """Return class probabilities of all nodes, E τ, E K and the effective number of draws."""
    rng = np.random.default_rng(0)
    most = max(n_classes)
    present = rng.choice(n_classes, size=N_DRAWS)
    shape = {"fixed": (), "shared": (N_DRAWS, 1), "per class": (N_DRAWS, most)}[tau]
    value = LEARNT_TAU.frozen.rvs(shape, random_state=rng) if shape else np.asarray(TAU)
    xi = rng.standard_normal((N_DRAWS, most, N_PAIRS - 1), dtype=np.float32)
    u = (xi * deviations(value)) @ eigenpairs()[1][:, 1:].T  # (S, K, N)
    u[np.arange(most)[None, :] >= present[:, None]] = -np.inf
    seen = u[:, :, LABELLED]
    if law == "softmax":
        seen = seen + gamma * rng.gumbel(size=seen.shape) / GUMBEL_STD
    elif law == "probit":
        seen = seen + gamma * rng.normal(size=seen.shape)
    agrees = seen.argmax(axis=1) == np.array(labels)
    weights = agrees.all(axis=1).astype(float)
    if law == "level set":  # each wrong label costs 1/γ²
        cost = np.exp(-1 / gamma**2)
        normalizer = 1 + (present - 1) * cost
        weights = np.where(agrees, 1.0, cost).prod(axis=1) / normalizer ** len(labels)
    weights /= weights.sum()
    best = u.argmax(axis=1)
    probabilities = np.stack([weights @ (best == k) for k in range(most)], axis=1)
    effective = 1 / (weights**2).sum()
    mean_tau = weights @ np.broadcast_to(value, (N_DRAWS, max(1, value.shape[-1] if shape else 1)))
    return probabilities, mean_tau, weights @ present, effective


def check(result, expected, effective):
    """Check agreement within four standard errors of the run and the simulation."""
    error = np.sqrt(gq.results.label_mcse(result) ** 2 + expected * (1 - expected) / effective)
    assert result.diagnostics.rhat < 1.02
    assert (np.abs(gq.results.label_mean(result) - expected) < 4 * error + 1e-4).all()
    np.testing.assert_allclose(gq.results.label_mean(result).sum(axis=1), 1.0, atol=1e-9)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


LIKELIHOODS = {
    "softmax": gq.likelihoods.Softmax(0.5, n_classes=3),
    "probit": gq.likelihoods.Probit(0.5, n_classes=3),
    "level set": gq.likelihoods.LevelSet(0.7, n_classes=3),
}
GAMMA = {"softmax": 0.5, "probit": 0.5, "level set": 0.7}
PAIRS = [
    slow("softmax", Hamiltonian(), 1500),
    slow("softmax", Hamiltonian(reference=Laplace()), 1500),
    slow("probit", Hamiltonian(reference=ExpectationPropagation()), 1500),
    slow("probit", Hamiltonian(), 1500),
    slow("level set", ExactHamiltonian(), 1500),
    slow("probit", ExactHamiltonian(), 1500),
    slow("level set", EllipticalSlice(), 1500),
    slow("level set", MetropolisWithinGibbs(PCN(), by_class=True), 2000),
]


@pytest.mark.parametrize(("law", "kernel", "n_samples"), PAIRS, ids=str)
def test_class_probabilities(law, kernel, n_samples):
    result = gq.infer(posterior(LIKELIHOODS[law]), kernel, n_samples=n_samples, rng=1)
    expected, _, _, effective = truth(law, GAMMA[law])
    check(result, expected, effective)


@pytest.mark.slow
def test_rejection_sampling_detects_other_noise():
    """Negative control: probabilities of a posterior with other noise are rejected."""
    result = gq.infer(posterior(gq.likelihoods.Softmax(2.0, n_classes=3)), n_samples=1500, rng=1)
    expected, _, _, effective = truth("softmax", 0.5)
    with pytest.raises(AssertionError):
        check(result, expected, effective)


@pytest.mark.slow
def test_level_set_against_orthants():
    """Probabilities of one node agree with an exact sum over all patterns of largest fields."""
    node = 5
    _, q = eigenpairs()
    covariance = (q[:, 1:] * deviations(np.asarray(TAU)) ** 2) @ q[:, 1:].T
    index = [LABELLED[0], LABELLED[1], node]
    block, labels = covariance[np.ix_(index, index)], LABELS[:2]
    total = np.zeros(3)
    for pattern in np.ndindex(3, 3, 3):
        # Differences between the largest field and the others, at each of the three nodes.
        leads = np.zeros((6, 9))
        for row, (place, other) in enumerate(np.ndindex(3, 2)):
            k = pattern[place]
            leads[row, 3 * place + k] = 1
            leads[row, 3 * place + (k + 1 + other) % 3] = -1
        matrix = leads @ np.kron(block, np.eye(3)) @ leads.T
        n_wrong = (np.array(pattern[:2]) != labels).sum()
        total[pattern[2]] += np.exp(-n_wrong / 0.7**2) * orthant(matrix, [1] * 6)
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=N_PAIRS)
    prior = gq.priors.Matern(tau=TAU, alpha=ALPHA)
    two = gq.Posterior(spectrum, prior, LIKELIHOODS["level set"], LABELLED[:2], labels)
    result = gq.infer(two, n_samples=3000, rng=2)
    expected = total / total.sum()
    assert (
        np.abs(gq.results.label_mean(result)[node] - expected)
        < 4 * gq.results.label_mcse(result)[node] + 1e-4
    ).all()


@pytest.mark.parametrize("tail", [slow(True), slow("mean")])
def test_tail(tail):
    """The labelled-node chain with a tail agrees with the papers' N-dimensional form."""
    target = posterior(LIKELIHOODS["softmax"], n_eigenpairs=2, tail=tail)
    assert isinstance(target.field.field, TailField)
    result = gq.infer(target, n_samples=2000, rng=1)
    plain = gq.inference.chains.run_chains(
        target.node_target, Hamiltonian(), n_samples=2000, n_warmup=300, thin=1, rng=2
    )
    field = target.node_target.field
    white = plain.white.reshape(-1, plain.white.shape[-1])
    u = np.stack([field.field.at_nodes(x) for x in field.by_class(white).reshape(-1, 2 + N_NODES)])
    best = u.reshape(plain.n_chains, plain.n_samples, 3, N_NODES).argmax(axis=2)
    by_chain = np.stack([(best == k).mean(axis=1) for k in range(3)], axis=2)  # (C, N, K)
    theirs = by_chain.std(axis=0, ddof=1) / np.sqrt(plain.n_chains)
    error = np.sqrt(gq.results.label_mcse(result) ** 2 + theirs**2)
    assert (np.abs(gq.results.label_mean(result) - by_chain.mean(axis=0)) < 5 * error + 1e-4).all()


@pytest.mark.slow
def test_two_classes_are_the_binary_model():
    """``(u_1 − u_0)/√2`` has the binary prior, and the noise of probit is the binary one."""
    binary = gq.Posterior(
        posterior(LIKELIHOODS["softmax"]).spectrum,
        gq.priors.Matern(tau=TAU, alpha=ALPHA),
        gq.likelihoods.Probit(0.5),
        LABELLED,
        [-1, 1, 1],
    )
    two = dataclasses.replace(
        binary, likelihood=gq.likelihoods.Probit(0.5, gq.DiscreteUniform(2, 3)), labels=[0, 1, 1]
    )
    assert two.n_classes == 3
    soft = dataclasses.replace(binary, likelihood=gq.likelihoods.Softmax(0.5, 2), labels=[0, 1, 1])
    ours = gq.infer(soft, n_samples=2000, rng=0)
    theirs = gq.infer(binary, n_samples=2000, rng=0)
    # Logistic and normal noise of equal deviation differ by a few per cent of probability.
    assert np.abs(gq.results.label_mean(ours)[:, 1] - theirs.probabilities[:, 1]).max() < 0.03


@pytest.mark.parametrize("law", [slow("softmax"), slow("level set")])
def test_learnt_scale(law):
    """One τ is learnt and shared by the classes."""
    prior = gq.priors.Matern(tau=LEARNT_TAU, alpha=ALPHA)
    result = gq.infer(posterior(LIKELIHOODS[law], prior=prior), n_samples=2000, rng=3)
    expected, tau, _, effective = truth(law, GAMMA[law], "shared")
    check(result, expected, effective)
    draws = result.hyperparameters["tau"]
    assert draws.shape == (result.answer.n_chains, 2000)
    spread = LEARNT_TAU.frozen.std()
    ess = gq.results.convergence_table(result)["tau"]["ess_bulk"]
    assert abs(draws.mean() - tau[0]) < 4 * spread * np.sqrt(1 / ess + 1 / effective)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["softmax", "level set"])
def test_learnt_per_class(law):
    """Each class learns a τ of its own."""
    prior = gq.priors.Matern(tau=LEARNT_TAU, alpha=ALPHA)
    target = posterior(LIKELIHOODS[law], prior=prior, per_class=True)
    result = gq.infer(target, n_samples=2000, rng=3)
    expected, tau, _, effective = truth(law, GAMMA[law], "per class")
    check(result, expected, effective)
    draws = result.hyperparameters["tau"]
    assert draws.shape == (result.answer.n_chains, 2000, 3)
    table = gq.results.convergence_table(result)
    for k in range(3):
        ess = table[f"tau[{k}]"]["ess_bulk"]
        bound = 4 * LEARNT_TAU.frozen.std() * np.sqrt(1 / ess + 1 / effective)
        assert abs(draws[..., k].mean() - tau[k]) < bound


@pytest.mark.parametrize("law", [slow("softmax"), slow("level set"), slow("probit")])
def test_unseen_classes(law):
    """Two classes have labels; the number of classes, two to four, is learnt."""
    likelihood = dataclasses.replace(LIKELIHOODS[law], n_classes=gq.DiscreteUniform(2, 4))
    target = posterior(likelihood, labels=[0, 1, 1])
    result = gq.infer(target, n_samples=2000, rng=4)
    expected, _, mean, effective = truth(law, GAMMA[law], n_classes=(2, 3, 4), labels=(0, 1, 1))
    check(result, expected, effective)
    ess = gq.results.convergence_table(result)["n_classes"]["ess_bulk"]
    error = np.sqrt(1 / ess + 1 / effective)  # the variable has a deviation below 1
    assert abs(result.hyperparameters["n_classes"].mean() - mean) < 4 * error
    unseen = gq.results.label_mean(result)[:, 2:].sum(axis=1)
    assert unseen[LABELLED].max() < unseen[[1, 2, 4, 5, 7]].max()


def test_multiclass_probit_by_quadrature():
    """The quadrature agrees with an adaptive one, also far in the tail."""
    likelihood = gq.likelihoods.Probit(0.5, n_classes=3)
    for u in ([0.1, -0.2, 0.3], [3.0, 0.0, -1.0], [-4.0, 1.0, 1.1], [-9.0, 0.0, -8.0]):
        for y in range(3):
            others = [k for k in range(3) if k != y]

            def integrand(z, u=u, y=y, others=others):
                leads = [z + (u[y] - u[k]) / 0.5 for k in others]
                return np.exp(stats.norm.logpdf(z) + stats.norm.logcdf(leads).sum())

            lead = max(0.0, max(u[k] - u[y] for k in others) / 0.5)
            exact, _ = integrate.quad(
                integrand, -12, 12 + lead, points=[lead / 2], epsabs=0, epsrel=1e-10, limit=200
            )
            with jax.enable_x64(True):
                at, label = jnp.array([u]), jnp.array([float(y)])
                found = float(likelihood.log_prob(at, label)[0])
            assert found == pytest.approx(np.log(exact), rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_laplace_is_the_mode():
    """The gradient is zero by finite differences; the evidence of a near-Gaussian is exact."""
    target = posterior(gq.likelihoods.Softmax(3.0, n_classes=3))
    gaussian = Laplace().fit(target.plain_target)
    rng = np.random.default_rng(0)
    white = rng.normal(size=(400_000, target.dimension))
    with jax.enable_x64(True):
        plain = with_dtype(target.plain_target, jnp.float64)

        def value(white):
            return plain.log_density(jnp.asarray(white))

        best = float(value(gaussian.white_mean))
        for direction in np.eye(target.dimension):
            near = [float(value(gaussian.white_mean + h * direction)) for h in (-1e-3, 1e-3)]
            assert max(near) < best
            assert abs(near[1] - near[0]) < 1e-8
        factor = target.field.field.factor
    u = np.einsum("jr,skr->sjk", factor, white.reshape(len(white), 3, -1)) * GUMBEL_STD / 3.0
    shares = np.exp(u) / np.exp(u).sum(axis=2, keepdims=True)
    evidence = shares[:, np.arange(3), LABELS].prod(axis=1)
    assert gaussian.log_evidence == pytest.approx(np.log(evidence.mean()), abs=0.01)


def test_refusals():
    with pytest.raises(InvalidInput, match="code the classes as 0 to 2"):
        posterior(LIKELIHOODS["softmax"], labels=[0, 1, 3])
    with pytest.raises(InvalidInput, match="only the class"):
        posterior(LIKELIHOODS["softmax"], labels=[1, 1, 1])
    with pytest.raises(InvalidInput, match="0 to 1"):  # a third class may be absent
        posterior(gq.likelihoods.Softmax(0.5, gq.DiscreteUniform(2, 4)), labels=[0, 1, 2])
    with pytest.raises(IncompatibleParts, match="per_class"):
        posterior(LIKELIHOODS["softmax"], per_class=True)
    with pytest.raises(InvalidInput, match="n_classes"):
        gq.likelihoods.Softmax(0.5, n_classes=1)
    with pytest.raises(InvalidInput, match="n_classes"):
        gq.likelihoods.LevelSet(0.5, n_classes=2.5)
    with pytest.raises(IncompatibleParts, match="Laplace"):
        gq.infer(posterior(LIKELIHOODS["softmax"]), gq.inference.MAP())
    with pytest.raises(IncompatibleParts, match="needs a probit of pairs of classes"):
        gq.infer(posterior(LIKELIHOODS["level set"]), ExpectationPropagation())
    with pytest.raises(IncompatibleParts, match="gradient"):
        gq.infer(posterior(LIKELIHOODS["level set"]), Laplace())
    with pytest.raises(IncompatibleParts, match="by_class"):
        MetropolisWithinGibbs(ExactHamiltonian(), by_class=True)
    with pytest.raises(IncompatibleParts, match="ExactHamiltonian"):
        gq.infer(posterior(LIKELIHOODS["softmax"]), ExactHamiltonian())
