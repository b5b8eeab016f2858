"""Seconds to a label error of 0.01: graphuq, NUTS of NumPyro, and pCN as in the paper.

Question: on the same posterior, how long does each method take from the spectrum to a Monte-Carlo
error of at most 0.01 in every label mean? How many effective samples per second does it give?

How to run:

    pip install numpyro
    python benchmarks/bench_race.py [--cases ...] [--literal-seconds 20]

All methods run in one process.

graphuq (float32 chains, its default, and float64) runs until R-hat < 1.01, there are 400 effective
samples, and the error is at most 0.01. If 4,000 draws per chain are too few, its time is scaled
like that of the others. A second run excludes compilation.

NUTS (float64, two vectorised chains, 500 steps of warm-up) runs in the same white coordinates, and
gets the conditional means of unlabelled nodes from graphuq. If its error is above or below 0.01,
sampling time is scaled by the square of the ratio. NUTS sees no gradient of a step likelihood; it
runs there nevertheless.

The literal chain (NumPy, N dimensions) has the step size that the warm-up of pCN finds. It starts
in equilibrium, so that it has no warm-up, and its time is scaled in the same way.

The number of effective samples is Var(X) / error² at 50 unlabelled nodes, for all of the time
spent. Times include compilation and exclude imports.

Prints: for each case and method, seconds to an error of 0.01 with compilation (without), and the
ratio to graphuq. Then the median (minimum) of effective samples per second, of the latent field and
of the labels. For NUTS and the literal chain, the last column is the mean difference of label
means.

Results go to ``benchmarks/results/race.json``.
"""

import argparse
import json
import time
import warnings

import jax
import jax.numpy as jnp
import numba  # noqa: F401  imported here because graphuq imports it on first use
import numpy as np
from scipy.special import log_ndtr

import graphuq as gq
import graphuq.run.infer
from bench_pcn import DATA, effective_samples
from graphuq.inference.chains import run_chains
from graphuq.inference.draws import Draws
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import conditional_moments, summarize
from graphuq.run.stopping import Converged
from graphuq.utils.with_jax import with_dtype
from peers import RESULTS

TARGET = 0.01  # Monte-Carlo error of every label mean
P, S, A = gq.likelihoods.Probit, gq.likelihoods.LevelSet, gq.likelihoods.AtomicNoise
CASES = {
    "voting, J = 5, probit 0.1": ("voting", P(0.1)),
    "voting, J = 5, level set 0.5": ("voting", S(0.5)),
    "voting, J = 5, atomic 0.9": ("voting", A(0.9, 0.9)),
    "MNIST, J = 160, probit 0.05": ("mnist160", P(0.05)),
    "MNIST, J = 160, probit 0.1": ("mnist160", P(0.1)),
    "MNIST, J = 160, probit 1": ("mnist160", P(1.0)),
    "MNIST, J = 160, level set 0.1": ("mnist160", S(0.1)),
    "MNIST, J = 160, level set 1": ("mnist160", S(1.0)),
    "MNIST, J = 160, atomic 0.9": ("mnist160", A(0.9, 0.9)),
    "MNIST, J = 551, probit 0.1": ("mnist551", P(0.1)),
    "MNIST, J = 551, level set 0.1": ("mnist551", S(0.1)),
    "286,720 nodes, J = 8,000, probit 1": ("large", P(1.0)),
    "286,720 nodes, J = 8,000, probit 0.1": ("large", P(0.1)),
    "286,720 nodes, J = 8,000, level set 0.5": ("large steps", S(0.5)),
    "286,720 nodes, J = 8,000, atomic 0.9": ("large steps", A(0.9, 0.9)),
}
MAX_DRAWS = 4_000  # draws per chain
MIN_VARIANCE = 1e-4  # smallest label variance of the monitored nodes; below, labels are certain


def spectrum_and_labels(name, likelihood):
    """Return the spectrum, labelled nodes and their signs.

    For "large steps", signs are drawn from the likelihood.
    """
    rng = np.random.default_rng(0)
    if name.startswith("large"):
        n_nodes, n_pairs = 286_720, 50
        basis = np.linalg.qr(rng.normal(size=(n_nodes, n_pairs)))[0]
        spectrum = gq.Spectrum(
            eigenvalues=np.linspace(0, 1, n_pairs),
            eigenvectors=basis,
            residuals=np.zeros(n_pairs),
            tail_eigenvalue=None,
            components=np.zeros(n_nodes, dtype=np.int64),
            degrees=np.ones(n_nodes),
            node_scale=np.ones(n_nodes),
            settings={"laplacian": "symmetric"},
        )
        std = gq.priors.InverseLaplacian().spectral_std(spectrum)
        u = basis @ (std.modes * rng.normal(size=n_pairs))
        labelled = rng.choice(n_nodes, 8000, replace=False)
        if name == "large":
            return spectrum, labelled, np.sign(u + rng.normal(size=n_nodes))[labelled]
        signs = np.where(u[labelled] >= 0, 1.0, -1.0)
        right, wrong = likelihood.log_levels(signs)
        p_wrong = 1 / (1 + np.exp(np.asarray(right - wrong, dtype=np.float64)))
        return spectrum, labelled, np.where(rng.uniform(size=8000) < p_wrong, -signs, signs)
    if name == "voting":
        data = gq.datasets.load_voting(DATA)
        graph = gq.graphs.complete_graph(data.features, "gaussian", scale=1.25)
        truth = data.signs("democrat")
        labelled = np.concatenate(
            [rng.choice(np.flatnonzero(truth == s), k, False) for s, k in ((1, 3), (-1, 2))]
        )
        return gq.laplacian_spectrum(graph, n_eigenpairs=435), labelled, truth[labelled]
    n_each, n_labels = (2000, 160) if name == "mnist160" else (None, 551)
    data = gq.datasets.load_mnist((4, 9), n_each, n_components=50, folder=DATA)
    truth = data.signs(4)
    labelled = rng.choice(len(truth), n_labels, replace=False)
    graph = gq.graphs.knn_graph(data.features, 20)
    return gq.laplacian_spectrum(graph, n_eigenpairs=300), labelled, truth[labelled]


def graphuq_race(posterior, precision, seed):
    """Run the default sampler; return its result, scaled seconds to the error, and seconds."""
    began = time.perf_counter()
    result = gq.infer(
        posterior,
        n_samples=MAX_DRAWS,
        precision=precision,
        rng=seed,
        stop=Converged(label_mcse=TARGET),
    )
    seconds = time.perf_counter() - began
    more = 1.0
    if result.answer.n_samples == MAX_DRAWS:  # the error may be above the target
        more = max(1.0, result.diagnostics.label_mcse / TARGET) ** 2
    return result, seconds * more, seconds


def nuts_race(posterior, n_samples, seed=0):
    """Return white draws of NUTS, seconds before sampling, and seconds of sampling."""
    import numpyro.infer

    with jax.enable_x64(True):
        target = with_dtype(posterior.target, jnp.float64)
        kernel = numpyro.infer.NUTS(potential_fn=lambda x: -target.log_density(x))
        sampler = numpyro.infer.MCMC(
            kernel,
            num_warmup=500,
            num_samples=n_samples,
            num_chains=2,
            chain_method="vectorized",
            progress_bar=False,
        )
        keys = jax.random.split(jax.random.key(seed), 2)
        start = jax.vmap(target.start)(keys)
        began = time.perf_counter()
        sampler.warmup(jax.random.PRNGKey(seed), init_params=start)
        before = time.perf_counter() - began
        began = time.perf_counter()
        sampler.run(sampler.post_warmup_state.rng_key, init_params=start)
        white = np.asarray(sampler.get_samples(group_by_chain=True))
        sampling = time.perf_counter() - began
    zeros = np.zeros(white.shape[:2])
    return Draws(white, zeros, zeros, 0.0, 500, 1), before, sampling


def negative_log_likelihood(posterior):
    """Return the function Φ(u) in plain NumPy."""
    likelihood, labels, nodes = posterior.likelihood, posterior.labels, posterior.labelled
    if isinstance(likelihood, P):
        return lambda u: -log_ndtr(labels * u[nodes] / likelihood.noise_std).sum()
    with jax.enable_x64(True):
        right, wrong = map(np.asarray, likelihood.log_levels(jnp.asarray(labels)))
    return lambda u: -np.where(np.where(u[nodes] >= 0, 1, -1) == labels, right, wrong).sum()


def literal_race(posterior, u, step_size, seconds, nodes):
    """Run Algorithm 2 line by line; return u at some nodes and the seconds of the run."""
    rng = np.random.default_rng(3)
    q, std, phi = posterior.spectrum.eigenvectors, posterior.std, negative_log_likelihood(posterior)
    energy, kept, began = phi(u), [], time.perf_counter()
    while time.perf_counter() - began < seconds:
        xi = q @ (std.modes * rng.normal(size=q.shape[1]))
        proposal = np.sqrt(1 - step_size**2) * u + step_size * xi
        proposed = phi(proposal)
        if np.log(rng.uniform()) < energy - proposed:
            u, energy = proposal, proposed
        kept.append(u[nodes])
    return np.array(kept), time.perf_counter() - began


def ess_per_second(posterior, draws, seconds, nodes, label_variance, latent_variance):
    """Return median and minimum over nodes of effective samples per second, latent and label."""
    summary = summarize(draws, posterior.field, node_rows(posterior)[nodes])
    error = summary.label_mcse
    label = np.where(error > 0, label_variance / np.where(error > 0, error, 1.0) ** 2, 0.0)
    white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
    with jax.enable_x64(True):
        mean, _ = conditional_moments(posterior.field, white, node_rows(posterior)[nodes])
    latent = effective_samples(mean.T.reshape(*draws.white.shape[:2], -1), latent_variance)
    return [float(f(x)) / seconds for x in (latent, label) for f in (np.median, np.min)]


def race(name, posterior, options):
    """Run all methods on one posterior; return a row for each."""
    rng = np.random.default_rng(1)
    posterior.field  # noqa: B018  cached here, before any clock starts
    unlabelled = np.setdiff1d(np.arange(posterior.spectrum.n_nodes), posterior.labelled)
    rows, reference = {}, None
    for precision in options.precisions:
        whole = graphuq_race(posterior, precision, seed=0)
        runs = [graphuq_race(posterior, precision, seed) for seed in range(1, options.runs + 1)]
        result, seconds, elapsed = runs[0] if runs else whole
        if reference is None:
            reference = result
            uncertain = unlabelled[gq.results.label_variance(result)[unlabelled] > MIN_VARIANCE]
            nodes = rng.choice(uncertain, min(50, len(uncertain)), replace=False)
            label_variance = gq.results.label_variance(result)[nodes]
            latent_variance = result.latent_std[nodes] ** 2
        rows[f"graphuq {precision}"] = {
            "seconds": whole[1],
            "compiled": seconds if runs else None,
            "all_compiled": [seconds_of_run for _, seconds_of_run, _ in runs],
            "mcse": result.diagnostics.label_mcse,
            "rhat": result.diagnostics.rhat,
            "ess": ess_per_second(
                posterior, result.answer, elapsed, nodes, label_variance, latent_variance
            ),
        }
    if options.nuts_samples and not (posterior.likelihood.is_step and len(posterior.labels) > 1000):
        draws, before, sampling = nuts_race(posterior, options.nuts_samples)
        summary = summarize(draws, posterior.field, node_rows(posterior))
        error = float(summary.label_mcse.max())
        rows["NUTS float64"] = {
            "seconds": before + sampling * (error / TARGET) ** 2,
            "compiled": None,
            "mcse": error,
            "gap": float(np.abs(summary.label_mean - gq.results.label_mean(reference)).mean()),
            "ess": ess_per_second(
                posterior, draws, before + sampling, nodes, label_variance, latent_variance
            ),
        }
    pcn = run_chains(
        posterior.target, gq.inference.PCN(), n_samples=50, n_chains=4, thin=20, precision="float32"
    )
    with jax.enable_x64(True):
        white = reference.answer.white[-1, -1].astype(np.float64)
        u = posterior.spectrum.eigenvectors @ np.asarray(posterior.field.mean_coefficients(white))
        u[posterior.labelled] = np.asarray(posterior.field.at_labelled(white))
    kept, elapsed = literal_race(posterior, u, pcn.step_size, options.literal_seconds, nodes)
    signs = np.where(kept >= 0, 1.0, -1.0)
    label = effective_samples(signs[None], label_variance)
    latent = effective_samples(kept[None], latent_variance)
    label, latent = np.nan_to_num(label), np.nan_to_num(latent)  # 0 where nothing moved
    # A node whose sign never changed in all that time has at most one effective sample.
    moved = label[label > 0]
    n_worst = float(min(moved, default=1.0))
    if len(moved) < len(nodes):
        n_worst = min(n_worst, 1.0)
    error = np.sqrt(gq.results.label_variance(reference).max() / n_worst)
    rows["literal pCN"] = {
        "seconds": elapsed * (error / TARGET) ** 2,
        "compiled": None,
        "mcse": float(error),
        "ess": [float(f(x)) / elapsed for x in (latent, label) for f in (np.median, np.min)],
    }
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--literal-seconds", type=float, default=20)
    parser.add_argument(
        "--nuts-samples", type=int, default=1000, help="draws per chain of NUTS; 0 leaves NUTS out"
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="number of runs of graphuq after compilation"
    )
    parser.add_argument("--precisions", nargs="+", default=["float32", "float64"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        import numpyro  # noqa: F401
    except ImportError:
        print("NumPyro is not installed: pip install numpyro")
        options.nuts_samples = 0
    everything, held = [], (None, None)
    print(
        "seconds to an error of 0.01 at every node, with compilation (without); ratio to graphuq; "
        "effective samples per second, median (minimum)"
    )
    for name in options.cases:
        kind, likelihood = CASES[name]
        if not kind.startswith("large") and not DATA.exists():
            print(f"{name} skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
            continue
        if held[0] != kind or kind == "large steps":
            held = kind, spectrum_and_labels(kind, likelihood)
        spectrum, labelled, labels = held[1]
        prior = gq.priors.InverseLaplacian()
        rows = race(name, gq.Posterior(spectrum, prior, likelihood, labelled, labels), options)
        print(name)
        ours = rows[f"graphuq {options.precisions[0]}"]["seconds"]
        for method, row in rows.items():
            compiled = "" if row["compiled"] is None else f"({row['compiled']:.2f})"
            latent, min_latent, label, min_label = row["ess"]
            print(
                f"  {method:16} {row['seconds']:12,.2f} s {compiled:9} "
                f"x{row['seconds'] / ours:<10,.1f} latent {latent:10,.0f} ({min_latent:,.0f})"
                f"  label {label:10,.0f} ({min_label:,.0f})"
                + (f"  label means differ by {row['gap']:.4f}" if "gap" in row else ""),
                flush=True,
            )
            if options.runs > 1 and "all_compiled" in row:
                print("    compiled:", ", ".join(f"{s:.2f}" for s in row["all_compiled"]), "s")
            everything.append({"case": name, "method": method, **row})
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "race.json").write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
