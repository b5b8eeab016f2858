"""Simulation-based calibration (Talts et al. 2018).

Truth from the prior, labels from the likelihood, then the rank of u at unlabelled nodes among draws
of a method. Ranks are uniform if it is right.

    python tests/calibration/simulation.py docs/images/ranks.png [METHOD ...]

draws the rank histograms of every method, or of those named.
"""

import sys

import jax
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import graphuq as gq
from graphuq.inference import Approximation
from graphuq.results.summaries import Rows, conditional_moments, latent_draws

N_NODES, N_EIGENPAIRS, N_RANKS = 20, 10, 19
LABELLED = np.array([0, 4, 8, 12, 16])
NODES = np.array([2, 10])
LIKELIHOODS = {
    "probit": gq.likelihoods.Probit(0.5),
    "level set": gq.likelihoods.LevelSet(1.0),
    "atomic noise": gq.likelihoods.AtomicNoise(0.9, 0.7),
    "noise-free": gq.likelihoods.NoiseFree(),
}
EP = gq.inference.ExpectationPropagation()
METHODS = {
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
    "parallel tempering": (
        gq.inference.ParallelTempering(gq.inference.EllipticalSlice(), n_replicas=5),
        10,
        500,
    ),
    "tempered Hamiltonian": (gq.inference.TemperedHamiltonian(flattest=0.3, n_replicas=3), 2, 200),
    "expectation propagation": (EP, 0, 0),
}


def ring_with_chords(n_nodes, seed):
    """The random graph of the other tests."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.2, 1, (n_nodes, n_nodes)), 1)
    weights *= rng.uniform(size=weights.shape) < 0.3
    ring = np.arange(n_nodes)
    ends = np.minimum(ring, (ring + 1) % n_nodes), np.maximum(ring, (ring + 1) % n_nodes)
    weights[ends] = 0.5
    return weights + weights.T


def simulate_labels(likelihood, u, rng):
    """Labels by the models' own definitions."""
    sign = np.where(u >= 0, 1, -1)
    if isinstance(likelihood, gq.likelihoods.Probit):
        return np.sign(u + likelihood.noise_std * rng.normal(size=len(u)))
    if isinstance(likelihood, gq.likelihoods.NoiseFree):
        return sign
    if isinstance(likelihood, gq.likelihoods.AtomicNoise):
        right = np.where(sign > 0, likelihood.p, likelihood.q)
        return sign * np.where(rng.uniform(size=len(u)) < right, 1, -1)
    # Level-set with labels ±1: p(y | u) ∝ exp(−|y − sign u|² / 2γ²)
    wrong = 1 / (1 + np.exp(2 / likelihood.noise_std**2))
    return sign * np.where(rng.uniform(size=len(u)) < wrong, -1, 1)


def suits(method, likelihood):
    """Whether a method can sample a likelihood."""
    from_prior = isinstance(method, gq.inference.Independence) and method.reference is None
    if from_prior and isinstance(likelihood, gq.likelihoods.NoiseFree):
        return False  # it may take thousands of proposals until one fits five labels
    if isinstance(method, gq.inference.TemperedHamiltonian):
        return likelihood.is_step and not isinstance(likelihood, gq.likelihoods.NoiseFree)
    needs_gradient = method.requires_gradient and not likelihood.has_gradient
    walls = likelihood.is_step or isinstance(likelihood, gq.likelihoods.Probit)
    return not needs_gradient and (walls or not getattr(method, "requires_step", False))


def draws_at_nodes(posterior, method, thin, n_warmup, seed, rng):
    """Draws of u at `NODES`, shape (2, 19)."""
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
        posterior, method, n_samples=N_RANKS, n_chains=1, n_warmup=n_warmup, thin=thin, seed=seed
    )
    with jax.enable_x64(True):
        mean, sd = conditional_moments(posterior.field, result.draws.white[0], rows)
    return mean + sd[:, None] * rng.normal(size=mean.shape)


def ranks(simulated, assumed, tail, method, thin, n_warmup, n_runs=300):
    """Ranks from 0 to 19 of u at two nodes over many simulated data sets."""
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
        posterior = gq.Posterior(spectrum, prior, assumed, LABELLED, [1, 1, 1, 1, -1])
        object.__setattr__(posterior, "labels", labels)  # one class only may occur, too
        draws = draws_at_nodes(posterior, method, thin, n_warmup, len(found), rng)
        found.append((draws < u[NODES, None]).sum(axis=1))
    return np.array(found)


HIERARCHICAL = {
    "probit": gq.inference.MetropolisWithinGibbs(gq.inference.Hamiltonian(), joint=True),
    "level set": gq.inference.MetropolisWithinGibbs(gq.inference.ExactHamiltonian()),
    "atomic noise": gq.inference.MetropolisWithinGibbs(gq.inference.PCN()),
}


def hierarchical_ranks(simulated, assumed, kernel, tail=False, n_runs=300):
    """Ranks of u at two nodes, τ, α and, without tail, M (ties broken at random).

    All drawn from their priors.
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
            posterior, kernel, n_samples=N_RANKS, n_chains=1, n_warmup=500, thin=40, seed=len(found)
        )
        draws = result.hyperparameters
        # What a tail leaves open is drawn anew in each run: ranks would depend on one seed.
        rows = Rows(q[NODES], np.ones(len(NODES)), np.full(len(NODES), -1))
        at_nodes = latent_draws(result.draws, posterior.field, rows, seed=len(found))
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
    """Ranks of u at two nodes, c and k (ties broken at random), all drawn from their priors."""
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
            seed=len(found),
        )  # fmt: skip
        draws = result.hyperparameters
        values = np.stack(
            [*(q[NODES] @ result.draws.white[0].T), draws["scale"][0], draws["truncation"][0]]
        )
        truth = np.array([*u[NODES], c, k])[:, None]
        noise = 1e-6 * rng.uniform(size=(2, *values.shape))
        found.append((values + noise[0] < truth + noise[1][:, :1]).sum(axis=1))
    return np.array(found)


SEVERAL = {
    "softmax": (gq.likelihoods.Softmax(0.5, n_classes=3), gq.inference.Hamiltonian()),
    "probit": (gq.likelihoods.Probit(0.5, n_classes=3), gq.inference.ExactHamiltonian()),
    "level set": (gq.likelihoods.LevelSet(0.7, n_classes=3), gq.inference.ExactHamiltonian()),
}


def simulate_codes(likelihood, u, rng):
    """Labels of several classes by the models' own definitions, u of shape (J, 3)."""
    gamma = likelihood.noise_std
    if isinstance(likelihood, gq.likelihoods.Probit):
        return (u + gamma * rng.normal(size=u.shape)).argmax(axis=1)
    if isinstance(likelihood, gq.likelihoods.Softmax):
        return (u + gamma * np.sqrt(6) / np.pi * rng.gumbel(size=u.shape)).argmax(axis=1)
    wrong = 2 / (2 + np.exp(1 / gamma**2))  # either of two others, at a cost of 1/γ²
    shift = np.where(rng.uniform(size=len(u)) < wrong, rng.integers(1, 3, size=len(u)), 0)
    return (u.argmax(axis=1) + shift) % 3


def ranks_of_classes(simulated, assumed, kernel, n_runs=300):
    """Ranks, at two nodes, of the lead of one class over the next: of that labels tell."""
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
            posterior, kernel, n_samples=N_RANKS, n_chains=1, n_warmup=500, thin=10, seed=len(found)
        )
        with jax.enable_x64(True):
            mean, sd = conditional_moments(posterior.field, result.draws.white[0], rows)
        leads = np.diff(mean + sd[:, None, None] * rng.normal(size=mean.shape))
        found.append((leads < np.diff(u[nodes])[:, None]).sum(axis=1).ravel())
    return np.array(found)


def p_values(found):
    """Of the χ² test of uniformity at each node, in five bins."""
    counts = np.array([np.bincount(column, minlength=N_RANKS + 1) for column in found.T])
    return [stats.chisquare(row.reshape(5, 4).sum(axis=1)).pvalue for row in counts]


def draw_histograms(path, names):
    """A histogram for each method and likelihood that suit each other, tail and no tail pooled."""
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
    figure.supylabel("simulated data sets × nodes;\ngrey: 99 % band of the uniform law")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    draw_histograms(sys.argv[1], sys.argv[2:] or list(METHODS))
