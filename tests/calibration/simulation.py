"""Simulation-based calibration (Talts et al. 2018).

Each run draws a true field u from the prior and labels from the likelihood. Then it computes the
rank of the true u at two nodes among draws of a method. If the method is correct, ranks are
uniformly distributed.

    python tests/calibration/simulation.py docs/images/ranks.png [METHOD ...]

This command draws the rank histograms of all methods, or of the named ones.
"""

import sys

import jax
import numpy as np
from matplotlib.figure import Figure
from scipy import sparse, stats

import graphuq as gq
from graphuq.inference import Approximation
from graphuq.inference.model_average import EachComponent
from graphuq.inference.settings import RunSettings
from graphuq.results.joint_draws import joint_draws
from graphuq.results.summaries import Rows, conditional_moments, latent_draws
from graphuq.spectrum.blocks import EIGENPAIRS

N_NODES, N_EIGENPAIRS = 20, 10
N_RANKS = 19  # draws per run, so that ranks are 0 to 19
LABELLED = np.array([0, 4, 8, 12, 16])
NODES = np.array([2, 10])  # unlabelled nodes whose ranks are computed
LIKELIHOODS = {
    "probit": gq.likelihoods.Probit(0.5),
    "level set": gq.likelihoods.LevelSet(1.0),
    "atomic noise": gq.likelihoods.AtomicNoise(0.9, 0.7),
    "noise-free": gq.likelihoods.NoiseFree(),
}
EP = gq.inference.ExpectationPropagation()
METHODS = {  # method, thinning, and steps of warm-up
    "pCN": (gq.inference.PCN(), 80, 4000),
    "pCN about EP": (gq.inference.PCN(reference=EP), 80, 4000),
    "elliptical slice": (gq.inference.EllipticalSlice(), 20, 1000),
    "elliptical slice about EP": (gq.inference.EllipticalSlice(reference=EP), 20, 1000),
    "Hamiltonian": (gq.inference.Hamiltonian(), 10, 500),
    "Hamiltonian about EP": (gq.inference.Hamiltonian(reference=EP), 10, 500),
    "exact Hamiltonian": (gq.inference.ExactHamiltonian(), 10, 500),
    "reflective Hamiltonian": (gq.inference.ReflectiveHamiltonian(reference=EP), 10, 500),
    "independence": (gq.inference.Independence(), 50, 500),
    "independence about EP": (gq.inference.Independence(reference=EP), 20, 200),
    "label by label": (gq.inference.SequentialIndependence(), 50, 500),
    "label by label about EP": (gq.inference.SequentialIndependence(reference=EP), 5, 50),
    "collapsed Gibbs": (gq.inference.CollapsedGibbs(), 10, 200),
    "parallel tempering": (
        gq.inference.ParallelTempering(gq.inference.EllipticalSlice(), n_replicas=5),
        10,
        500,
    ),
    "tempered Hamiltonian": (gq.inference.TemperedHamiltonian(flattest=0.3, n_replicas=3), 2, 200),
    "expectation propagation": (EP, 0, 0),
}


def ring_with_chords(n_nodes, seed):
    """Return the weights of a random graph that contains a ring, as in the other tests."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.2, 1, (n_nodes, n_nodes)), 1)
    weights *= rng.uniform(size=weights.shape) < 0.3
    ring = np.arange(n_nodes)
    ends = np.minimum(ring, (ring + 1) % n_nodes), np.maximum(ring, (ring + 1) % n_nodes)
    weights[ends] = 0.5
    return weights + weights.T


def sign_of(u):
    return np.where(u >= 0, 1, -1)


def probit_labels(likelihood, u, rng):
    """y = sign(u + γ ε), ε ~ N(0, 1)."""
    return np.sign(u + likelihood.noise_std * rng.normal(size=len(u)))


def level_set_labels(likelihood, u, rng):
    """p(y | u) ∝ exp(−|y − sign u|² / 2γ²), y = ±1."""
    wrong = 1 / (1 + np.exp(2 / likelihood.noise_std**2))
    return sign_of(u) * np.where(rng.uniform(size=len(u)) < wrong, -1, 1)


def atomic_labels(likelihood, u, rng):
    """y = sign u with probability p if u ≥ 0, and with probability q otherwise."""
    right = np.where(sign_of(u) > 0, likelihood.p, likelihood.q)
    return sign_of(u) * np.where(rng.uniform(size=len(u)) < right, 1, -1)


def grades(likelihood, u, rng):
    """b_k < u + γ ε ≤ b_{k+1}: the number of thresholds below the noisy value."""
    noisy = u + likelihood.noise_std * rng.normal(size=len(u))
    return (noisy[:, None] > likelihood.thresholds).sum(axis=1)


LABELS = {
    gq.likelihoods.Ordered: grades,
    gq.likelihoods.Probit: probit_labels,
    gq.likelihoods.LevelSet: level_set_labels,
    gq.likelihoods.AtomicNoise: atomic_labels,
    gq.likelihoods.NoiseFree: lambda likelihood, u, rng: sign_of(u),
}


def simulate_labels(likelihood, u, rng):
    """Draw labels by the definition of the model, without code of the library."""
    return LABELS[type(likelihood)](likelihood, u, rng)


def suits(method, likelihood):
    """Whether a method of `METHODS` can sample a likelihood of `LIKELIHOODS`."""
    noise_free = isinstance(likelihood, gq.likelihoods.NoiseFree)
    from_prior = isinstance(method, gq.inference.Independence) and method.reference is None
    if from_prior and noise_free:
        return False  # a proposal from the prior may fit five labels once in thousands of times
    if isinstance(method, gq.inference.TemperedHamiltonian):
        return likelihood.is_step and not noise_free
    if isinstance(method, gq.inference.CollapsedGibbs):
        return isinstance(likelihood, gq.likelihoods.Probit)
    needs_gradient = method.requires_gradient and not likelihood.has_gradient
    needs_step = getattr(method, "requires_step", False) and not likelihood.is_step_given_noise
    return not needs_gradient and not needs_step


def draws_at_nodes(posterior, method, thin, n_warmup, seed, rng):
    """Draw u at `NODES`; the result has shape (2, 19)."""
    rows = Rows(posterior.spectrum.eigenvectors[NODES], np.ones(2), np.full(2, -1))
    if isinstance(method, Approximation):
        gaussian = method.fit(posterior.target)
        loadings = rows.eigenvectors @ posterior.field.coefficient_map
        spread = loadings @ gaussian.white_covariance @ loadings.T
        root = np.linalg.cholesky(
            spread + np.diag(posterior.field.conditional_std(rows.eigenvectors) ** 2 + 1e-12)
        )
        return (loadings @ gaussian.white_mean)[:, None] + root @ rng.normal(size=(2, N_RANKS))
    result = gq.infer(
        posterior, method, n_samples=N_RANKS, n_chains=1, n_warmup=n_warmup, thin=thin, rng=seed
    )
    with jax.enable_x64(True):
        mean, sd = conditional_moments(posterior.field, result.answer.white[0], rows)
    return mean + sd[:, None] * rng.normal(size=mean.shape)


def ranks(simulated, assumed, tail, method, thin, n_warmup, n_runs=300):
    """Return the ranks, 0 to 19, of u at two nodes over many simulated data sets.

    Labels are drawn from the likelihood `simulated`; the method assumes the likelihood `assumed`.
    """
    graph = gq.graphs.from_adjacency(ring_with_chords(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=N_EIGENPAIRS, tail_eigenvalue=tail)
    prior = gq.priors.InverseLaplacian()
    std, q = prior.spectral_std(spectrum), spectrum.eigenvectors
    rng = np.random.default_rng(0)
    found = []
    while len(found) < n_runs:
        z = rng.normal(size=N_NODES)
        u = q @ (std.modes * rng.normal(size=N_EIGENPAIRS)) + std.tail * (z - q @ (q.T @ z))
        labels = simulate_labels(simulated, u[LABELLED], rng).astype(float)
        both = [1, 1, 1, 1, 0 if assumed.has_codes else -1]
        posterior = gq.Posterior(spectrum, prior, assumed, LABELLED, both)
        # Posterior() requires both classes, but simulated labels may all be of one class.
        object.__setattr__(posterior, "labels", labels)
        draws = draws_at_nodes(posterior, method, thin, n_warmup, len(found), rng)
        found.append((draws < u[NODES, None]).sum(axis=1))
    return np.array(found)


SMOOTH = gq.models.Term(2.0, gq.priors.Matern(0.2, 3.0))
AVERAGED = gq.models.Mixture(
    [SMOOTH, gq.models.Term(0.8, gq.priors.Matern(0.7, 1.5, include_constant=True))],
    gq.Categorical([0.4, 0.6]),
)
ON_BLOCKS = {
    "exponential": gq.models.Term(3.0, block="exponential"),
    "powers": gq.models.Term(3.0, block="powers"),
    "third power": gq.models.Term(3.0, block="third power"),
    "whitened linear": gq.models.Term(3.0, block="whitened linear"),
    "whitened graph": gq.models.Term(2.0, gq.priors.Matern(0.3, 3.0), "whitened graph"),
}


def with_block(name):
    """Return a mixture of a component on the graph and one on another block."""
    return gq.models.Mixture([SMOOTH, ON_BLOCKS[name]], gq.Categorical([0.4, 0.6]))


def rows_of(block, words):
    """Return features of the nodes: normal ones, or sparse counts of words, most of them rare."""
    rng, width = np.random.default_rng(1), 101 if block == "third power" else 3
    if not words:
        return rng.normal(size=(N_NODES, width))
    return sparse.csr_array(rng.poisson(rng.gamma(0.2, 2.0, size=(N_NODES, width))) * 1.0)


def covariance_of(term, rows):
    """Return the covariance of a component on a block, of mean variance 1, by dense matrices."""
    x = rows.toarray() if sparse.issparse(rows) else rows
    centred = x - x.mean(axis=0)
    standard = centred / np.where(centred.any(axis=0), centred.std(axis=0), 1.0)
    inner = np.linalg.inv(standard.T @ standard / len(x) + 0.01 * np.eye(x.shape[1]))
    products = centred @ centred.T
    power = np.linalg.matrix_power(products / np.trace(products), 17)
    cubed = centred if sparse.issparse(rows) else standard  # words keep their weights
    third = np.linalg.matrix_power(cubed @ cubed.T, 3)
    whitened = standard @ inner @ standard.T
    distances = np.abs(standard[:, None] - standard).sum(axis=2)
    if term.block == "whitened graph":
        rows = standard @ np.linalg.cholesky(inner)
        graph = gq.graphs.knn_graph(rows, 15, weights=gq.graphs.SelfTuning(4.0))
        weights = graph.weights.toarray() if sparse.issparse(graph.weights) else graph.weights
        root = np.sqrt(weights.sum(axis=1))
        values, vectors = np.linalg.eigh(np.eye(len(x)) - weights / np.outer(root, root))
        variances = (values + term.prior.tau**2) ** -term.prior.alpha
        variances[0] = 0.0
        covariance = (vectors * variances) @ vectors.T
    else:
        covariance = {
            "exponential": np.exp(-distances * (len(x) - 1) / (2 * distances.sum(axis=1).mean())),
            "powers": 1 + power * len(x) / np.trace(power),
            "third power": 1 + third * len(x) / np.trace(third),
            "whitened linear": 1 + whitened * len(x) / np.trace(whitened),
        }[term.block]
    return covariance * len(x) / np.trace(covariance)


def averaged_ranks(prior, n_classes, wrong_scale=1.0, n_runs=300, words=False):
    """Return the ranks of u at two nodes, where the component is drawn from its prior.

    With several classes it is the difference of two fields. ``wrong_scale`` multiplies u. Fields
    of components on other blocks are drawn from their covariance at all nodes. Features are sparse
    if they are ``words``.
    """
    graph = gq.graphs.from_adjacency(ring_with_chords(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=N_EIGENPAIRS, tail_eigenvalue=False)
    q, rng, found = spectrum.eigenvectors, np.random.default_rng(0), []
    eigenvalues, other = spectrum.eigenvalues, prior.components[1][0]
    x = rows_of(other.block, words)
    if other.block != EIGENPAIRS:
        values, vectors = np.linalg.eigh(covariance_of(other, x))
        root = vectors * np.sqrt(np.maximum(values, 0))
    basis = gq.Basis(spectrum).with_functions(x).with_blocks(prior.blocks)
    likelihood = gq.likelihoods.Probit(1.0, n_classes, random_labels=True)
    some = [1, 1, 1, 1, -1] if n_classes == 2 else [0, 0, 0, 1, 2]
    while len(found) < n_runs:
        m = int(rng.uniform() < prior.component.parameters[1])
        (term,) = prior.components[m]
        n_fields = 1 if n_classes == 2 else n_classes
        if term.block != EIGENPAIRS:
            u = term.scale * wrong_scale * root @ rng.normal(size=(N_NODES, n_fields))
        else:
            variances = (eigenvalues + term.prior.tau**2) ** -term.prior.alpha
            variances[0] *= bool(term.prior.include_constant)
            std = term.scale * np.sqrt(N_NODES * variances / variances.sum()) * wrong_scale
            u = q @ (std[:, None] * rng.normal(size=(N_EIGENPAIRS, n_fields)))
        noisy = u[LABELLED] + rng.normal(size=(5, n_fields))
        labels = np.sign(noisy[:, 0]) if n_classes == 2 else noisy.argmax(axis=1).astype(float)
        posterior = gq.Posterior(basis, prior, likelihood, LABELLED, some)
        object.__setattr__(posterior, "labels", labels)
        draws = gq.inference.ModelAverage(fields="exact").run(
            posterior, RunSettings(n_samples=1000, n_chains=1, rng=len(found))
        )
        kept = draws.white[0, 50::50].reshape(N_RANKS, n_fields, basis.n_columns)
        at_nodes = np.einsum("nl,skl->nsk", basis.basis[NODES], kept)
        truth = u[NODES]
        if n_classes > 2:
            at_nodes, truth = at_nodes[:, :, 0] - at_nodes[:, :, 1], truth[:, 0] - truth[:, 1]
        found.append((at_nodes.reshape(2, N_RANKS) < truth.reshape(2, 1)).sum(axis=1))
    return np.array(found)


def averaged_grades_ranks(likelihood, wrong_scale=1.0, n_runs=300):
    """Return the ranks of u at two nodes, of grades, where the component is drawn from its prior.

    The answer is a mixture of Gaussians, weighed by expectation propagation.
    """
    graph = gq.graphs.from_adjacency(ring_with_chords(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=N_EIGENPAIRS)
    rng, found = np.random.default_rng(0), []
    method = EachComponent(EP)
    while len(found) < n_runs:
        m = int(rng.uniform() < AVERAGED.component.parameters[1])
        (term,) = AVERAGED.components[m]
        variances = (spectrum.eigenvalues + term.prior.tau**2) ** -term.prior.alpha
        variances[0] *= bool(term.prior.include_constant)
        std = term.scale * np.sqrt(N_NODES * variances / variances.sum()) * wrong_scale
        u = spectrum.eigenvectors @ (std * rng.normal(size=N_EIGENPAIRS))
        labels = simulate_labels(likelihood.of_component(m), u[LABELLED], rng).astype(float)
        if len(np.unique(labels)) < 2:  # refused; what is drawn depends on the labels alone
            continue
        posterior = gq.Posterior(spectrum, AVERAGED, likelihood, LABELLED, labels)
        answer = method.run(posterior, RunSettings())
        drawn = joint_draws(answer, posterior, NODES, N_RANKS, rng)[:, :, 0]
        found.append((drawn < u[NODES, None]).sum(axis=1))
    return np.array(found)


HIERARCHICAL = {
    "probit": gq.inference.MetropolisWithinGibbs(gq.inference.Hamiltonian(), joint=True),
    "level set": gq.inference.MetropolisWithinGibbs(gq.inference.ExactHamiltonian()),
    "atomic noise": gq.inference.MetropolisWithinGibbs(gq.inference.PCN()),
}


def hierarchical_ranks(simulated, assumed, kernel, tail=False, n_runs=300):
    """Return the ranks of u at two nodes, of τ, of α and, without a tail, of M.

    All of them are drawn from their priors. Ties are broken at random.
    """
    graph = gq.graphs.from_adjacency(ring_with_chords(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=N_EIGENPAIRS, tail_eigenvalue=tail)
    prior = gq.priors.Matern(
        tau=gq.LogUniform(0.1, 1.0),
        alpha=gq.Gamma(4.0, 2.0),
        truncation=None if tail else gq.DiscreteUniform(3, N_EIGENPAIRS),
    )
    q = spectrum.eigenvectors
    rng = np.random.default_rng(0)
    found = []
    while len(found) < n_runs:
        tau, alpha = np.exp(rng.uniform(np.log(0.1), 0.0)), rng.gamma(4.0, 0.5)
        m = int(rng.integers(3, N_EIGENPAIRS + 1))
        variances = (spectrum.eigenvalues + tau**2) ** -alpha
        of_tail = (spectrum.tail_eigenvalue + tau**2) ** -alpha if tail else 0.0
        variances[0] = 0.0
        variances[m if not tail else N_EIGENPAIRS :] = 0.0
        total = variances.sum() + (N_NODES - N_EIGENPAIRS) * of_tail
        u = q @ (np.sqrt(N_NODES / total * variances) * rng.normal(size=N_EIGENPAIRS))
        rest = rng.normal(size=N_NODES)
        u += np.sqrt(N_NODES / total * of_tail) * (rest - q @ (q.T @ rest))
        labels = simulate_labels(simulated, u[LABELLED], rng).astype(float)
        posterior = gq.Posterior(spectrum, prior, assumed, LABELLED, [1, 1, 1, 1, -1])
        object.__setattr__(posterior, "labels", labels)
        result = gq.infer(
            posterior, kernel, n_samples=N_RANKS, n_chains=1, n_warmup=500, thin=40, rng=len(found)
        )
        draws = result.hyperparameters
        # Each run has its own seed for the residuals of the tail; ranks of all runs would
        # otherwise depend on a single seed.
        rows = Rows(q[NODES], np.ones(len(NODES)), np.full(len(NODES), -1))
        at_nodes = latent_draws(result.answer, posterior.field, rows, seed=len(found))
        values = [*at_nodes, draws["tau"][0], draws["alpha"][0]]
        truth = [*u[NODES], tau, alpha]
        if not tail:
            values, truth = [*values, draws["truncation"][0]], [*truth, m]
        values, truth = np.stack(values), np.array(truth)[:, None]
        noise = 1e-6 * rng.uniform(size=(2, *values.shape))
        found.append((values + noise[0] < truth + noise[1][:, :1]).sum(axis=1))
    return np.array(found)


SERIES = {
    "auto": gq.inference.ReversibleJump(),
    "plain, walk": gq.inference.ReversibleJump("binomial", form="plain"),
    "whitened": gq.inference.ReversibleJump(form="reduced", whitened=True),
}


def series_ranks(simulated, assumed, sampler, n_runs=200):
    """Return the ranks of u at two nodes, of c and of k, all drawn from their priors.

    Ties are broken at random.
    """
    graph = gq.graphs.from_adjacency(ring_with_chords(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, "unnormalized", N_EIGENPAIRS)
    prior = gq.priors.RandomSeries(gq.Gamma(2.0, 20.0), truncation_rate=0.2)
    rates = np.exp(-0.2 * np.arange(1, N_EIGENPAIRS + 1))
    q = spectrum.eigenvectors
    rng = np.random.default_rng(0)
    found = []
    while len(found) < n_runs:
        c = rng.gamma(2.0, 1 / 20.0)
        k = 1 + rng.choice(N_EIGENPAIRS, p=rates / rates.sum())
        std = 1 / np.sqrt(c * (spectrum.eigenvalues + N_NODES**-2.0))
        u = q[:, :k] @ (std[:k] * rng.normal(size=k))
        labels = simulate_labels(simulated, u[LABELLED], rng).astype(float)
        posterior = gq.Posterior(spectrum, prior, assumed, LABELLED, [1, 1, 1, 1, -1])
        object.__setattr__(posterior, "labels", labels)
        result = gq.infer(
            posterior, sampler, n_samples=N_RANKS, n_chains=1, n_warmup=400, thin=8,
            rng=len(found),
        )  # fmt: skip
        draws = result.hyperparameters
        values = np.stack(
            [*(q[NODES] @ result.answer.white[0].T), draws["scale"][0], draws["truncation"][0]]
        )
        truth = np.array([*u[NODES], c, k])[:, None]
        noise = 1e-6 * rng.uniform(size=(2, *values.shape))
        found.append((values + noise[0] < truth + noise[1][:, :1]).sum(axis=1))
    return np.array(found)


MULTICLASS = {
    "softmax": (gq.likelihoods.Softmax(0.5, n_classes=3), gq.inference.Hamiltonian()),
    "probit": (gq.likelihoods.Probit(0.5, n_classes=3), gq.inference.ExactHamiltonian()),
    "level set": (gq.likelihoods.LevelSet(0.7, n_classes=3), gq.inference.ExactHamiltonian()),
}


def probit_codes(gamma, u, rng):
    """Class of the largest u_k + γ ε_k, ε_k ~ N(0, 1)."""
    return (u + gamma * rng.normal(size=u.shape)).argmax(axis=1)


def softmax_codes(gamma, u, rng):
    """Class of the largest u_k + γ ε_k, with Gumbel noise ε_k of unit variance."""
    return (u + gamma * np.sqrt(6) / np.pi * rng.gumbel(size=u.shape)).argmax(axis=1)


def level_set_codes(gamma, u, rng):
    """Class of the largest u_k, or either of the other two at a cost of 1/γ²."""
    wrong = 2 / (2 + np.exp(1 / gamma**2))
    shift = np.where(rng.uniform(size=len(u)) < wrong, rng.integers(1, 3, size=len(u)), 0)
    return (u.argmax(axis=1) + shift) % 3


CODES = {
    gq.likelihoods.Probit: probit_codes,
    gq.likelihoods.Softmax: softmax_codes,
    gq.likelihoods.LevelSet: level_set_codes,
}


def simulate_codes(likelihood, u, rng):
    """Draw multiclass labels by the definition of the model; u has shape (J, 3)."""
    return CODES[type(likelihood)](likelihood.noise_std, u, rng)


def multiclass_ranks(simulated, assumed, kernel, n_runs=300):
    """Return the ranks of differences of u between consecutive classes at two nodes.

    Labels carry information about differences between classes only.
    """
    graph = gq.graphs.from_adjacency(ring_with_chords(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=N_EIGENPAIRS)
    prior = gq.priors.InverseLaplacian()
    std, q = prior.spectral_std(spectrum).modes, spectrum.eigenvectors
    nodes = np.array([NODES[0], LABELLED[0]])
    rows = Rows(q[nodes], np.ones(2), np.full(2, -1))
    rng = np.random.default_rng(0)
    found = []
    while len(found) < n_runs:
        u = q @ (std[:, None] * rng.normal(size=(N_EIGENPAIRS, 3)))
        labels = simulate_codes(simulated, u[LABELLED], rng).astype(float)
        posterior = gq.Posterior(spectrum, prior, assumed, LABELLED, [0, 1, 2, 0, 1])
        object.__setattr__(posterior, "labels", labels)
        result = gq.infer(
            posterior, kernel, n_samples=N_RANKS, n_chains=1, n_warmup=500, thin=10, rng=len(found)
        )
        with jax.enable_x64(True):
            mean, sd = conditional_moments(posterior.field, result.answer.white[0], rows)
        differences = np.diff(mean + sd[:, None, None] * rng.normal(size=mean.shape))
        found.append((differences < np.diff(u[nodes])[:, None]).sum(axis=1).ravel())
    return np.array(found)


def annotated_ranks(n_classes, right=2.0, n_runs=300):
    """Return the ranks of u at two nodes and of two accuracies of classes, for three annotators.

    Accuracies over all classes are ``Beta(right, 1)`` on the grid of the model, which assumes
    ``right=2`` here. With three classes u is a difference of two fields.
    """
    graph = gq.graphs.from_adjacency(ring_with_chords(N_NODES, seed=6))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=N_EIGENPAIRS, tail_eigenvalue=False)
    prior = gq.priors.InverseLaplacian()
    std, q = prior.spectral_std(spectrum).modes, spectrum.eigenvectors
    rng, found = np.random.default_rng(0), []
    grid = (np.arange(24) + 0.5) / 24
    n_fields = 1 if n_classes == 2 else n_classes
    flat = np.full((len(LABELLED), n_classes), 1 / n_classes)
    likelihood = gq.likelihoods.SoftProbit(0.5, flat)
    rows = Rows(q[NODES], np.ones(2), np.full(2, -1))
    while len(found) < n_runs:
        u = q @ (std[:, None] * rng.normal(size=(N_EIGENPAIRS, n_fields)))
        noisy = u[LABELLED] + 0.5 * rng.normal(size=(len(LABELLED), n_fields))
        classes = (noisy[:, 0] >= 0).astype(int) if n_classes == 2 else noisy.argmax(axis=1)
        readings, truth = np.empty((len(LABELLED), 3), int), []
        for a in range(3):
            alpha = rng.choice(grid, p=grid ** (right - 1) / (grid ** (right - 1)).sum())
            s = rng.choice([2.0, 8.0, 32.0, 128.0])
            own = rng.beta(s * alpha, s * (1 - alpha), size=n_classes)
            shares = rng.dirichlet([1 / (n_classes - 1)] * (n_classes - 1), size=n_classes)
            for j, k in enumerate(classes):
                other = np.delete(np.arange(n_classes), k)
                wrong = rng.uniform() > own[k]
                readings[j, a] = rng.choice(other, p=shares[k]) if wrong else k
            truth.append(own[a % n_classes])
        target = gq.Posterior(spectrum, prior, likelihood, LABELLED, likelihood.most_probable)
        sampler = gq.inference.AnnotatorGibbs(readings=readings, right=2.0)
        result = gq.infer(
            target, sampler, n_samples=N_RANKS, n_chains=1, n_warmup=500, thin=60, rng=len(found)
        )
        with jax.enable_x64(True):
            mean, sd = conditional_moments(target.field, result.answer.white[0], rows)
        values = mean.reshape(2, -1, n_fields) + sd.reshape(2, 1, 1) * rng.normal(
            size=(2, N_RANKS, n_fields)
        )
        at_nodes = u[NODES]
        if n_classes > 2:
            values, at_nodes = -np.diff(values)[..., :1], -np.diff(at_nodes)[:, :1]
        drawn = result.hyperparameters["confusion"].reshape(N_RANKS, 3, n_classes, n_classes)
        own = np.stack([drawn[:, a, a, a] for a in range(2)])
        below = [*(values[..., 0] < at_nodes[:, :1]), *(own < np.array(truth[:2])[:, None])]
        found.append(np.array(below).sum(axis=1))
    return np.array(found)


def p_values(found):
    """Return the p-value of the χ² test of uniformity, with five bins, for each column."""
    counts = np.array([np.bincount(column, minlength=N_RANKS + 1) for column in found.T])
    return [stats.chisquare(row.reshape(5, 4).sum(axis=1)).pvalue for row in counts]


def draw_histograms(path, names):
    """Draw a histogram for each method and likelihood that suit each other.

    Each histogram pools runs with a tail and without one.
    """
    size = (10, 2 + 12.5 * len(names) / len(METHODS))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(names), len(LIKELIHOODS), sharex=True, sharey=True, squeeze=False)
    for axes_row, name in zip(grid, names, strict=True):
        method, thin, n_warmup = METHODS[name]
        for axes, (kind, likelihood) in zip(axes_row, LIKELIHOODS.items(), strict=True):
            if not suits(method, likelihood):
                axes.set_axis_off()
                continue
            found = [
                ranks(likelihood, likelihood, tail, method, thin, n_warmup)
                for tail in (False, True)
            ]
            pooled = np.concatenate(found).ravel()
            expected = len(pooled) / 10
            axes.hist(pooled, bins=np.arange(0, 21, 2) - 0.5, color="#3b6fb6", edgecolor="white")
            band = 2.58 * np.sqrt(expected * 0.9)
            axes.axhspan(expected - band, expected + band, color="#8a8f98", alpha=0.3, zorder=0)
            p = min(min(p_values(f)) for f in found)
            axes.set_title(f"{name}, {kind}\nsmallest of 4 p-values {p:.3f}", fontsize=7)
            axes.spines[["top", "right"]].set_visible(False)
            sys.stdout.write(f"{name}, {kind}: {p:.4f}\n")
            sys.stdout.flush()
    figure.supxlabel("rank of the true u among 19 draws")
    figure.supylabel("simulated data sets × nodes;\ngrey: 99 % band of the uniform distribution")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    draw_histograms(sys.argv[1], sys.argv[2:] or list(METHODS))
