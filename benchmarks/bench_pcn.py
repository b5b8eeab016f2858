"""pCN as the paper states it, in plain NumPy, beside the chain of labelled nodes in graphuq.

Question: what does one step of each chain cost? How many effective samples per second does it give,
of the latent field and of the labels? Sizes are those of Bertozzi et al. 2018, Table 2.

How to run:

    python benchmarks/bench_pcn.py [--seconds 20] [--cases voting mnist49 hyperspectral]

Both samplers have the same posterior and the same step size, which the warm-up of graphuq finds,
and start in equilibrium. Times are those of sampling; compilation is a column of its own. The
number of effective samples is Var(X) / error², where error is that of the sampler's own estimate of
E X. The literal chain averages draws of u or sign(u); graphuq averages their conditional means
given the state of the chain. Each run has a process of its own.

The cases use real graphs if GRAPHUQ_DATA or ../shared/data has the data. The hyperspectral case,
and cases without data, use a random orthonormal basis.

Prints: one line for each case and method. The columns are microseconds per step, seconds of
compilation, effective samples per second (median and minimum over 50 nodes), and peak memory. Then
ratios of graphuq to the literal chain.

Results go to ``benchmarks/results/pcn.json``.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("GRAPHUQ_DATA", ROOT.parent / "shared" / "data"))
CASES = {"voting": (435, 435, 5, 0.1), "mnist49": (13_782, 300, 551, 0.1)}
CASES |= {"hyperspectral": (286_720, 50, 8_000, 1.0)}
METHODS = ("literal", "graphuq float64", "graphuq float32")


def make_case(name, tail):
    """Return a posterior of the stated size."""
    import graphuq as gq

    n_nodes, n_eigenpairs, n_labelled, noise_std = CASES[name]
    rng = np.random.default_rng(0)
    if name == "voting" and DATA.exists():
        data = gq.datasets.load_voting(DATA)
        graph = gq.graphs.complete_graph(data.features, "gaussian", scale=1.25)
        truth = data.signs("democrat")
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs)
        labelled = np.concatenate(
            [rng.choice(np.flatnonzero(truth == s), k, False) for s, k in ((1, 3), (-1, 2))]
        )
    elif name == "mnist49" and DATA.exists():
        data = gq.datasets.load_mnist((4, 9), n_components=50, folder=DATA)
        graph = gq.graphs.knn_graph(data.features, 20)
        truth = data.signs(4)
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail)
        labelled = rng.choice(n_nodes, n_labelled, replace=False)
    else:
        basis = np.linalg.qr(rng.normal(size=(n_nodes, n_eigenpairs)))[0]
        eigenvalues = np.linspace(0, 1, n_eigenpairs)
        spectrum = gq.Spectrum(
            eigenvalues=eigenvalues,
            eigenvectors=basis,
            residuals=np.zeros(n_eigenpairs),
            tail_eigenvalue=1.0 if tail else None,
            components=np.zeros(n_nodes, dtype=np.int64),
            degrees=np.ones(n_nodes),
            node_scale=np.ones(n_nodes),
            settings={"laplacian": "symmetric"},
        )
        std = gq.priors.InverseLaplacian().spectral_std(spectrum)
        truth = np.sign(basis @ (std.modes * rng.normal(size=n_eigenpairs)))
        labelled = rng.choice(n_nodes, n_labelled, replace=False)
    labels = truth[labelled]
    prior, likelihood = gq.priors.InverseLaplacian(), gq.likelihoods.Probit(noise_std)
    return gq.Posterior(spectrum, prior, likelihood, labelled, labels)


def literal_pcn(posterior, u, step_size, seconds, nodes, rng):
    """Run Algorithm 1 or 2, or 3 if there is a tail, line by line; return u at some nodes.

    Numbers in brackets are equations of Bertozzi et al. 2018.
    """
    q, std = posterior.spectrum.eigenvectors, posterior.std
    labelled, labels = posterior.labelled, posterior.labels
    noise_std = posterior.likelihood.noise_std

    def phi(u):
        return -norm.logcdf(labels * u[labelled] / noise_std).sum()

    energy, kept, n_steps, began = phi(u), [], 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        xi = q @ (std.modes * rng.normal(size=q.shape[1]))  # (10), (11)
        if std.tail:
            z = rng.normal(size=len(u))
            xi += std.tail * (z - q @ (q.T @ z))  # (14), corrected
        proposal = np.sqrt(1 - step_size**2) * u + step_size * xi
        energy_proposed = phi(proposal)
        if np.log(rng.uniform()) < energy - energy_proposed:
            u, energy = proposal, energy_proposed
        kept.append(u[nodes])
        n_steps += 1
    return np.array(kept), n_steps, time.perf_counter() - began


def effective_samples(values, variance):
    """Return Var(X) / error² of the mean for each node, from chains of shape (C, S, nodes)."""
    from graphuq.results.arviz_data import import_arviz

    arviz = import_arviz()
    out = []
    for node in range(values.shape[-1]):
        chain = values[..., node]
        if np.ptp(chain) == 0:
            continue
        # The effective sample size of the chain's values, rescaled to the variance of X.
        out.append(float(arviz.ess(chain, method="mean")) * variance[node] / chain.var())
    return np.array(out) if out else np.array([np.nan])


def run_graphuq(posterior, precision, seconds, nodes, output):
    import jax

    from graphuq.inference import PCN
    from graphuq.inference.chains import run_chains
    from graphuq.results.summaries import Rows, conditional_moments

    options = {"n_chains": 32, "thin": 20, "n_warmup": 2000, "precision": precision}
    first = run_chains(posterior.target, PCN(), n_samples=50, rng=0, **options)
    probe = run_chains(posterior.target, PCN(), n_samples=50, rng=1, **options)
    a_step = probe.seconds / (probe.n_warmup + 50 * 20)
    n_samples = int(np.clip(seconds / a_step / 20, 100, 4000))
    draws = run_chains(posterior.target, PCN(), n_samples=n_samples, rng=2, **options)
    n_steps = draws.n_warmup + n_samples * 20
    sampling = draws.seconds * n_samples * 20 / n_steps
    spectrum = posterior.spectrum
    white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
    rows = Rows(spectrum.eigenvectors[nodes], np.ones(len(nodes)), np.full(len(nodes), -1))
    with jax.enable_x64(True):
        mean, std = conditional_moments(posterior.field, white, rows)
        sign = np.where(std[:, None] > 0, 2 * norm.cdf(mean / std[:, None]) - 1, np.sign(mean))
    shape = (32, n_samples, len(nodes))
    latent_variance = mean.var(axis=1) + std**2
    label_variance = 1 - sign.mean(axis=1) ** 2
    np.savez(
        output,
        step_size=draws.step_size,
        latent_variance=latent_variance,
        label_variance=label_variance,
        start=white[-1],
    )
    return {
        "us_a_chain_step": draws.seconds / n_steps / 32 * 1e6,
        "compile_s": first.seconds - probe.seconds,
        "acceptance": float(draws.acceptance.mean()),
        "latent": effective_samples(mean.T.reshape(shape), latent_variance) / sampling,
        "label": effective_samples(sign.T.reshape(shape), label_variance) / sampling,
        "label_means": sign.mean(axis=1),
    }


def run_literal(posterior, seconds, nodes, reference):
    import jax

    rng = np.random.default_rng(3)
    spectrum, std = posterior.spectrum, posterior.std
    q = spectrum.eigenvectors
    with jax.enable_x64(True):
        white = reference["start"]
        at_labelled = np.asarray(posterior.field.at_labelled(white))
        coefficients = np.asarray(posterior.field.mean_coefficients(white))
    u = q @ coefficients
    u[posterior.labelled] = at_labelled
    if std.tail:  # the other nodes get the variance of the tail
        rest = np.setdiff1d(np.arange(len(u)), posterior.labelled)
        u[rest] += std.tail * rng.normal(size=len(rest))
    kept, n_steps, elapsed = literal_pcn(
        posterior, u, float(reference["step_size"]), seconds, nodes, rng
    )
    signs = np.where(kept >= 0, 1.0, -1.0)
    return {
        "us_a_chain_step": elapsed / n_steps * 1e6,
        "compile_s": 0.0,
        "latent": effective_samples(kept[None], reference["latent_variance"]) / elapsed,
        "label": effective_samples(signs[None], reference["label_variance"]) / elapsed,
        "label_means": signs.mean(axis=0),
    }


def worker(name, tail, method, seconds, folder):
    """Run one method on one case, in this process, and print JSON."""
    warnings.simplefilter("ignore")
    posterior = make_case(name, tail)
    unlabelled = np.setdiff1d(np.arange(posterior.spectrum.n_nodes), posterior.labelled)
    nodes = np.random.default_rng(1).choice(unlabelled, 50, replace=False)
    posterior.target  # noqa: B018  # cached here, before memory and time are measured
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reference = Path(folder) / "reference.npz"
    if method == "literal":
        out = run_literal(posterior, seconds, nodes, np.load(reference))
    else:
        out = run_graphuq(posterior, method.split()[1], seconds, nodes, reference)
    out["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    out["above_set_up_mb"] = out["peak_mb"] - before / 1024
    print(json.dumps({k: v.tolist() if hasattr(v, "tolist") else v for k, v in out.items()}))


def compare(rows):
    """Return a sentence on the ratio of graphuq to the literal chain, and on float32."""
    exact, single = rows["graphuq float64"], rows["graphuq float32"]
    plain = rows["literal"]
    step = plain["us_a_chain_step"] / exact["us_a_chain_step"]
    latent, label = (np.median(exact[k]) / np.median(plain[k]) for k in ("latent", "label"))
    gap = np.abs(np.array(exact["label_means"]) - np.array(single["label_means"])).mean()
    return (
        f"graphuq float64 to literal: {step:.0f} times faster per step, {latent:.0f} times the "
        f"latent and {label:.0f} times the label ESS/s; label means of float32 and float64 differ "
        f"by {gap:.4f} on average, including Monte-Carlo error"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--output", default=ROOT / "benchmarks" / "results" / "pcn.json")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        name, tail, method, folder = options.worker
        return worker(name, tail == "tail", method, options.seconds, folder)
    table = []
    print(
        f"{'case':14} {'form':10} {'method':16} {'µs/step':>9} {'compile s':>9} "
        f"{'latent ESS/s':>20} {'label ESS/s':>20} {'peak MB':>8}   "
        "(ESS/s: effective samples per second, median and minimum)"
    )
    for name in options.cases:
        for tail in ("projected", "tail") if CASES[name][0] != CASES[name][1] else ("full",):
            with tempfile.TemporaryDirectory() as folder:
                rows = {}
                for method in ("graphuq float64", "graphuq float32", "literal"):
                    command = [sys.executable, __file__, "--seconds", str(options.seconds)]
                    command += ["--worker", name, tail, method, folder]
                    printed = subprocess.run(command, capture_output=True, text=True, check=True)
                    rows[method] = json.loads(printed.stdout.splitlines()[-1])
            for method, row in rows.items():
                latent, label = np.array(row["latent"]), np.array(row["label"])
                numbers = [np.median(latent), latent.min(), np.median(label), label.min()]
                print(
                    f"{name:14} {tail:10} {method:16} {row['us_a_chain_step']:9.2f} "
                    f"{row['compile_s']:9.2f} {numbers[0]:11.1f} {numbers[1]:8.1f} "
                    f"{numbers[2]:11.1f} {numbers[3]:8.1f} {row['peak_mb']:8.0f}",
                    flush=True,
                )
                table.append({"case": name, "form": tail, "method": method, **row})
            print(f"{'':14} {compare(rows)}", flush=True)
    Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    Path(options.output).write_text(json.dumps(table, indent=1))
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
