"""A GPU beside the processor: 70,000 digits in ten classes by stage, and chains.

Question: which stages does a GPU make faster, by how much, and are its answers those of the
processor?

How to run, on a machine with an NVIDIA GPU (GRAPHUQ_DATA names the folder of the data sets):

    pip install 'graphuq[gpu,neighbors]'
    python benchmarks/bench_gpu.py [--nodes 70000] [--chains 32 512] [--output DIR]

Raw pixels go to class probabilities with 50 labels a class: 50 components, 15 nearest neighbours
(exact), 150 eigenpairs, hyperparameters by evidence, expectation propagation. The chains are pCN
on 4,000 fours and nines, 160 labels. One process has JAX on the GPU, another has it on the
processor (``JAX_PLATFORMS=cpu``). Each repeats all stages: the first time programs are compiled
or read from a cache, the second time they are there.

Prints: card and versions; seconds of each stage, first and second time, on both; seconds of the
chains after compilation; and how far the answers are apart. Without a GPU the processor's alone.

Results go to ``benchmarks/results/gpu.json``.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from peers import DATA, RESULTS

LABELS, K, PAIRS, COMPONENTS = 50, 15, 150, 50
STEPS = {"n_samples": 100, "n_warmup": 2000, "thin": 20}


def stages(pixels, truth, labelled):
    """Return seconds of each stage, and the answers of all."""
    import graphuq as gq
    from graphuq.cli.preprocessing import fit_preprocessing
    from graphuq.evidence.maximize import maximize_evidence
    from graphuq.graphs.neighbors import nearest_neighbors

    seconds, last = {}, time.perf_counter()

    def done(name):
        nonlocal last
        seconds[name] = time.perf_counter() - last
        last = time.perf_counter()

    features = fit_preprocessing(pixels, "none", COMPONENTS)(pixels)
    done("components")
    found = nearest_neighbors(features, K, "euclidean", search="exact")
    done("exact neighbours, alone")
    chosen = nearest_neighbors(features, K, "euclidean")
    done("default neighbours, alone")
    graph = gq.graphs.knn_graph(features, K, weights=gq.graphs.SelfTuning(4.0), search="exact")
    done("graph")
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=PAIRS)
    done("eigenpairs")
    prior = gq.priors.Matern(tau=0.25, alpha=4.0)
    likelihood = gq.likelihoods.Probit(0.1, n_classes=10)
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, truth[labelled])
    names = ["tau", "alpha", "noise_std", "include_constant"]
    posterior = maximize_evidence(posterior, names).posterior
    done("evidence")
    approximation = gq.inference.ExpectationPropagation()
    answer = approximation.fit(posterior.plain_target)
    done("expectation propagation, alone")
    result = gq.infer(posterior, approximation)
    done("answer and node summaries")
    alone = [name for name in seconds if name.endswith("alone")]
    seconds["pixels to probabilities"] = sum(seconds.values()) - sum(seconds[n] for n in alone)
    answers = {
        "neighbours": np.sort(found.indices, axis=1),
        "distances": found.distances,
        "default recall": np.float64(chosen.recall),
        "eigenvalues": spectrum.eigenvalues,
        "evidence": np.float64(answer.log_evidence),
        "probabilities": result.probabilities,
        "accuracy": gq.scores.accuracy(result.probabilities, truth, labelled),
    }
    return seconds, answers


def chains(counts, precision):
    """Return seconds of pCN chains after compilation, by their number, and label means."""
    import graphuq as gq

    data = gq.datasets.load_mnist((4, 9), 2000, n_components=50, folder=DATA)
    truth = data.signs(4)
    graph = gq.graphs.knn_graph(data.features, n_neighbors=20)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=300)
    labelled = np.random.default_rng(0).choice(len(truth), 160, replace=False)
    posterior = gq.Posterior(
        spectrum,
        gq.priors.InverseLaplacian(),
        gq.likelihoods.Probit(0.5),
        labelled,
        truth[labelled],
    )
    seconds, means = {}, {}
    for n_chains in counts:
        for _ in range(2):
            began = time.perf_counter()
            result = gq.infer(
                posterior, gq.inference.PCN(), n_chains=n_chains, precision=precision, **STEPS
            )
            total = time.perf_counter() - began
            seconds[n_chains] = {"chains": result.answer.seconds, "with summaries": total}
        means[n_chains] = gq.results.label_mean(result), gq.results.label_mcse(result)
    return seconds, means


def measure(options):
    """Measure in this process, and write numbers and answers."""
    import jax

    import graphuq as gq

    warnings.simplefilter("ignore")
    data = gq.datasets.load_mnist(folder=DATA)
    truth = data.codes()
    kept = np.sort(np.random.default_rng(1).permutation(len(truth))[: options.nodes])
    pixels, truth = data.features[kept].astype(np.float32), truth[kept]
    rng = np.random.default_rng([LABELS, 0])
    labelled = np.concatenate(
        [rng.choice(np.flatnonzero(truth == k), LABELS, replace=False) for k in range(10)]
    )
    times = []
    for _ in range(2):
        seconds, answers = stages(pixels, truth, labelled)
        times.append(seconds)
        print(jax.default_backend(), {name: round(s, 2) for name, s in seconds.items()}, flush=True)
    found = {"stages": times, "chains": {}}
    for precision in ("float64", "float32"):
        found["chains"][precision], means = chains(options.chains, precision)
        print(jax.default_backend(), precision, found["chains"][precision], flush=True)
        for n_chains, (mean, mcse) in means.items():
            answers[f"chains {precision} {n_chains}"] = np.stack([mean, mcse])
    device = jax.devices()[0]
    found["device"] = f"{device.platform}: {device.device_kind}"
    found["versions"] = {"python": platform.python_version(), "jax": jax.__version__}
    found["cores"] = os.cpu_count()
    np.savez(options.worker.with_suffix(".npz"), **answers)
    options.worker.write_text(json.dumps(found))


def run(options, name, platforms):
    """Return the numbers and answers of a process with these platforms, or None."""
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / f"gpu_{name}.json"
    command = [sys.executable, __file__, "--worker", str(file), "--nodes", str(options.nodes)]
    command += ["--chains", *map(str, options.chains)]
    environment = dict(os.environ)
    if platforms:
        environment["JAX_PLATFORMS"] = platforms
    subprocess.run(command, env=environment, check=True)
    return json.loads(file.read_text()), dict(np.load(file.with_suffix(".npz")))


def compare(gpu, cpu):
    """Return how far the answers of two processes are apart."""
    both = zip(gpu["neighbours"], cpu["neighbours"], strict=True)
    shared = np.mean([np.isin(a, b).mean() for a, b in both])
    moved = np.abs(gpu["probabilities"] - cpu["probabilities"])
    scale = cpu["eigenvalues"][-1]
    other = gpu["probabilities"].argmax(axis=1) != cpu["probabilities"].argmax(axis=1)
    found = {
        "neighbours in common": shared,
        "largest difference of a distance": np.abs(gpu["distances"] - cpu["distances"]).max(),
        "largest difference of an eigenvalue / the last": np.abs(
            gpu["eigenvalues"] - cpu["eigenvalues"]
        ).max()
        / scale,
        "difference of the log evidence": abs(gpu["evidence"] - cpu["evidence"]),
        "mean difference of a probability": moved.mean(),
        "largest difference of a probability": moved.max(),
        "nodes of another class": other.mean(),
        "accuracies": [float(gpu["accuracy"]), float(cpu["accuracy"])],
    }
    for name in cpu:
        if name.startswith("chains"):
            z = (gpu[name][0] - cpu[name][0]) / np.hypot(gpu[name][1], cpu[name][1])
            found[f"{name}: root mean square of z"] = float(np.sqrt(np.nanmean(z**2)))
    return {name: np.asarray(value).tolist() for name, value in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=70_000)
    parser.add_argument("--chains", type=int, nargs="+", default=[32, 512])
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: no data sets in {DATA}; set GRAPHUQ_DATA")
        return
    if options.worker:
        measure(options)
        return
    found = {}
    gpu, gpu_answers = run(options, "default", None)
    found["default"] = gpu
    if gpu["device"].startswith("cpu"):
        print("JAX has no GPU: figures of the processor alone")
    else:
        cpu, cpu_answers = run(options, "cpu", "cpu")
        found |= {"cpu": cpu, "differences": compare(gpu_answers, cpu_answers)}
    for name, one in found.items():
        if "stages" in one:
            print(f"{name}: {one['device']}, {one['cores']} cores, {one['versions']}")
            for stage in one["stages"][0]:
                first, second = (run[stage] for run in one["stages"])
                print(f"  {stage:32} {first:7.2f} {second:7.2f}")
            for precision, by_number in one["chains"].items():
                print(f"  pCN {precision}: {by_number}")
    for name, value in found.get("differences", {}).items():
        print(f"{name}: {value}")
    (options.output / "gpu.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
