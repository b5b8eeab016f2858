"""Fit the odds of the blocks of the default model, learnt from a corpus.

    python benchmarks/fit_blocks.py collect    # half an hour: one file a data set; new blocks alone
    python benchmarks/fit_blocks.py fit        # leave-sets-out scores, and the table
    python benchmarks/fit_blocks.py answer     # half an hour: the default's answers, no power
    python benchmarks/fit_blocks.py sharpen    # the power of the average's probabilities

`collect` computes, for each set, number of labels a class and draw of labels, the evidence of each
block (a graph, functions of the features), averaged over its components, and the class
probabilities that these give to 150 other nodes, by expectation propagation. `fit` maximises the
mean log probability of the true classes under the average over blocks, weighted by evidence times
``exp(a + b log(J/K) + c log K)``. It prints what each block is worth, always for sets that had no
part in the fit, and the sets that move. `answer` fits the default without a power, and `sharpen`
the power of its probabilities as a function of the labels a class; it prints what that is worth,
also for sets that had no part in the fit. Sets that are kept for judging have no part in it.
"""

import argparse
import itertools
import json
import pickle
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp, ndtr, softmax

import corpus
import graphuq as gq
from corpus_peers import default_graph
from graphuq.inference.model_average.components import Components
from graphuq.models import average
from graphuq.models.learnt_odds import ALIKE, STEEP, learnt_mixture, steep_terms
from graphuq.spectrum.blocks import EIGENPAIRS
from peers import RESULTS, ROOT

RATES, N_DRAWS, N_TEST, MAX_LABELS = (1, 2, 5, 20, 50), 2, 150, 100
N_SAMPLES = 256  # draws of the fields of several classes
MAX_AVERAGED, BEHIND = 10, 5.0  # components of a block, and log weight behind the first of them
SMALLEST = 1e-5  # probabilities are at least this in the score
PENALTY, FOLDS = 1e-3, 8
FOLDER = RESULTS / "blocks"
ANSWERS = RESULTS / "answers.pickle"
TABLE = ROOT / "src" / "graphuq" / "models" / "block_odds.json"


def collect(part, n_parts):
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = [*corpus.NAMES, *corpus.DEVELOPMENT]
    for name in names[part::n_parts]:
        path = FOLDER / f"{names.index(name):02d}.pickle"
        stored = pickle.loads(path.read_bytes())["runs"] if path.exists() else []
        X, classes = corpus.load(name)
        basis = gq.Basis.of(default_graph(X))
        n_classes = int(classes.max()) + 1
        rates = [r for r in RATES if r * n_classes <= MAX_LABELS for _ in range(N_DRAWS)]
        runs = [
            run(basis, classes, rate, i % N_DRAWS, stored[i]["blocks"] if stored else {})
            for i, rate in enumerate(rates)
        ]
        path.write_bytes(pickle.dumps({"name": name, "runs": runs}))
        print(name, len(runs), flush=True)


def run(basis, classes, rate, draw, stored):
    """Return evidence and class probabilities of each block for one draw of labels.

    Blocks that are stored are not computed again.
    """
    n_classes = int(classes.max()) + 1
    labelled = corpus.draw_labels(classes, rate, draw)
    others = np.setdiff1d(np.arange(len(classes)), labelled)
    test = np.random.default_rng(draw).permutation(others)[:N_TEST]
    prior = learnt_mixture(basis, n_classes, len(labelled))
    steep = [(one,) for one in steep_terms(basis)]
    names = list(prior.blocks)
    if basis.blocks:  # a graph without features has them already
        odds = np.append(np.exp(prior.log_probabilities), np.full(len(steep), 1 / len(steep)))
        prior = gq.models.Mixture([*prior.components, *steep], gq.Categorical(odds))
        names += [STEEP] * len(steep)
    names[-len(steep) :] = [STEEP] * len(steep)
    labels = classes[labelled] if n_classes > 2 else 2 * classes[labelled] - 1
    likelihood = gq.likelihoods.Probit(1.0, n_classes, random_labels=True)
    given = Components.of(gq.Posterior(basis, prior, likelihood, labelled, labels))
    blocks = np.array(names)[given.numbers]
    missing = [block for block in dict.fromkeys(names) if block not in {*stored, *ALIKE}]
    chosen = np.isin(blocks, missing)
    given, blocks = given.at(slice(None), chosen), blocks[chosen]
    rows = np.asarray(basis.basis[test]) * basis.node_scale[test, None]
    fitted = given.fit() if missing else []
    evidence = given.log_prior + np.array([one.log_evidence for one in fitted])
    found = {block: stored[block] for block in dict.fromkeys(names) if block in stored}
    for block in missing:
        own = np.flatnonzero((blocks == block) & np.isfinite(evidence))
        if not len(own):
            continue
        best = own[np.argsort(-evidence[own])][:MAX_AVERAGED]
        best = best[evidence[best] > evidence[best[0]] - BEHIND]
        probabilities = [predicted(fitted[m], rows) for m in best]
        total = logsumexp(evidence[own]) - logsumexp(given.log_prior[blocks == block])
        found[block] = total, np.tensordot(softmax(evidence[best]), probabilities, 1)
    return {
        "rate": rate,
        "known": np.array([1.0, np.log(len(labelled) / n_classes), np.log(n_classes)]),
        "blocks": found,
        "classes": classes[test],
    }


def predicted(component, rows):
    """Return class probabilities at rows of the basis, from the Gaussian of one component."""
    sites = component.sites
    white = rows * component.std
    across, own = white @ component.factor.T, (white**2).sum(axis=1)
    gains, root = sites.gains, sites.inner_root
    first = np.einsum("kij,kj->ki", gains, sites.pull.T @ sites.covariance)
    pull = np.einsum("kij,j->ki", gains, root.T @ (root @ first.sum(axis=0)))
    mean = across @ (sites.pull.T - first + pull).T
    gained = np.einsum("kij,tj->kti", gains, across)
    shared = np.einsum("ij,ktj->kti", root, gained)
    covariance = np.einsum("kti,lti->tkl", shared, shared)
    alone = own[:, None] - np.einsum("kti,ti->tk", gained, across)
    n_classes = mean.shape[1]
    places = np.arange(n_classes)
    covariance[:, places, places] += np.maximum(alone, 0.0) + 1.0  # the noise of a label
    if n_classes == 2:
        variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
        second = ndtr((mean[:, 1] - mean[:, 0]) / np.sqrt(variance))
        return np.stack([1 - second, second], axis=1)
    normal = np.random.default_rng(0).normal(size=(N_SAMPLES, n_classes))
    fields = mean[:, None] + np.einsum("tkl,sl->tsk", np.linalg.cholesky(covariance), normal)
    largest = (fields.argmax(axis=2)[..., None] == places).sum(axis=1)
    return (largest + 0.5 / n_classes) / (N_SAMPLES + 0.5)


class Fit:
    """Scores of averages over some blocks."""

    def __init__(self, runs, blocks):
        self.runs, self.blocks = runs, blocks
        self.evidence = np.array(
            [[r["blocks"].get(b, (-1e9,))[0] for b in blocks] for r in runs], dtype=float
        )
        self.known = np.array([r["known"] for r in runs])
        self.true = np.ones((len(runs), len(blocks), N_TEST))
        self.mask = np.zeros((len(runs), N_TEST))
        keys = [(r["name"], r["rate"]) for r in runs]
        self.weight = np.array([1 / keys.count(key) for key in keys])
        for i, r in enumerate(runs):
            n, at = len(r["classes"]), np.arange(len(r["classes"]))
            for b, name in enumerate(blocks):
                own = r["blocks"][name][1][at, r["classes"]] if name in r["blocks"] else SMALLEST
                self.true[i, b, :n] = np.maximum(own, SMALLEST)
            self.mask[i, :n] = 1 / n

    def odds(self, kept):
        """Return coefficients of each block but the first."""
        evidence, known, true, mask, weight = (
            jnp.asarray(a[kept])
            for a in (self.evidence, self.known, self.true, self.mask, self.weight)
        )

        @jax.jit
        @jax.value_and_grad
        def loss(theta):
            odds = theta.reshape(-1, known.shape[1])
            logs = evidence.at[:, 1:].add(known @ odds.T)
            p = jnp.einsum("rb,rbt->rt", jax.nn.softmax(logs, axis=1), true)
            score = (jnp.log(p) * mask).sum(axis=1)
            return -(weight * score).sum() / weight.sum() + PENALTY * (odds**2).mean()

        def value(theta):
            found, slope = loss(jnp.asarray(theta))
            return float(found), np.asarray(slope, dtype=float)

        start = -np.ones((len(self.blocks) - 1) * known.shape[1])
        found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
        return found.x.reshape(-1, self.known.shape[1])

    def left_out(self):
        """Return log score and accuracy of each set and rate, with odds learnt from other sets."""
        names = sorted({r["name"] for r in self.runs})
        order = np.random.default_rng(0).permutation(len(names)) % FOLDS
        fold = dict(zip(names, order, strict=True))
        folds = np.array([fold[r["name"]] for r in self.runs])
        found = {}
        for k in range(FOLDS):
            odds = self.odds(folds != k)
            for i in np.flatnonzero(folds == k):
                r, logs = self.runs[i], self.evidence[i] + np.append(0, odds @ self.known[i])
                blocks = [b for b in self.blocks if b in r["blocks"]]
                weight = softmax(logs[[self.blocks.index(b) for b in blocks]])
                p = np.tensordot(weight, [r["blocks"][b][1] for b in blocks], 1)
                own = np.maximum(p[np.arange(len(p)), r["classes"]], SMALLEST)
                score = -np.log(own).mean(), (p.argmax(axis=1) == r["classes"]).mean()
                found.setdefault((r["rate"], r["name"]), []).append(score)
        return {key: np.mean(values, axis=0) for key, values in found.items()}


def stored_runs():
    """Return the runs of all sets, with the name of the set."""
    runs = []
    for path in sorted(FOLDER.glob("*.pickle")):
        stored = pickle.loads(path.read_bytes())
        runs += [{**r, "name": stored["name"]} for r in stored["runs"]]
    return runs


def answer():
    """Store the default's answers without a power, for each set, rate and draw of labels."""
    found = []
    with mock.patch.object(average, "SHARPNESS", 0.0):
        for name in corpus.NAMES:
            X, classes = corpus.load(name)
            has_graph = isinstance(X, gq.graphs.Graph)
            for rate, draw in itertools.product(RATES, range(N_DRAWS)):
                labelled = corpus.draw_labels(classes, rate, draw)
                y = np.full(len(classes), -1)
                y[labelled] = classes[labelled]
                model = gq.GraphClassifier(graph=X) if has_graph else gq.GraphClassifier()
                p = model.fit(None if has_graph else X, y).label_distributions_
                others = y < 0
                power = model.result_.posterior.sharpness
                assert power == 1.0
                a_class = len(labelled) / (classes.max() + 1)
                found.append((name, rate, a_class, p[others].astype(np.float32), classes[others]))
            ANSWERS.write_bytes(pickle.dumps(found))
            print(name, flush=True)


def sharpened(p, classes, power):
    """Return the log score, and probabilities to a power."""
    logs = power * np.log(np.maximum(p, 1e-12))
    p = softmax(logs, axis=1)
    return -np.log(np.maximum(p[np.arange(len(p)), classes], SMALLEST)).mean(), p


def calibration(answers):
    """Return the calibration error of all sets together, each of the same weight."""
    largest = np.concatenate([p.max(axis=1) for p, _ in answers])
    right = np.concatenate([p.argmax(axis=1) == classes for p, classes in answers])
    weight = np.concatenate([np.full(len(p), 1 / len(p)) for p, _ in answers])
    bins = np.minimum((10 * largest).astype(int), 9)
    return np.abs(np.bincount(bins, weight * (largest - right))).sum() / weight.sum()


def sharpen():
    """Fit b of the power ``exp(b √(K/J))``, and print what it is worth on sets left out."""
    answers = pickle.loads(ANSWERS.read_bytes())
    names = sorted({name for name, *_ in answers})
    order = np.random.default_rng(0).permutation(len(names)) % FOLDS
    fold = np.array([order[names.index(name)] for name, *_ in answers])

    def fitted(kept):
        own = [answers[i] for i in np.flatnonzero(kept)]

        def loss(b):
            return np.mean([sharpened(p, k, np.exp(b * n**-0.5))[0] for _, _, n, p, k in own])

        return float(minimize_scalar(loss, bounds=(-0.5, 1.5), method="bounded").x)

    powers = np.array([fitted(fold != k) for k in range(FOLDS)])
    for rate in RATES:
        moved, before, after = {}, [], []
        for i, (name, own_rate, n, p, classes) in enumerate(answers):
            if own_rate == rate:
                old, _ = sharpened(p, classes, 1.0)
                new, sharp = sharpened(p, classes, np.exp(powers[fold[i]] * n**-0.5))
                moved.setdefault(name, []).append(new - old)
                before.append((p, classes))
                after.append((sharp, classes))
        change = np.array([np.mean(one) for one in moved.values()])
        worst = sorted(moved, key=lambda name: -np.mean(moved[name]))[:3]
        print(
            f"{rate} labels: log score {change.mean():+.4f} ± "
            f"{change.std() / np.sqrt(len(change)):.4f}, calibration error "
            f"{calibration(before):.3f} → {calibration(after):.3f}, worst",
            *(f"{name} {np.mean(moved[name]):+.2f}" for name in worst),
        )
    print("b for all sets:", round(fitted(fold >= 0), 3), "of folds", powers.round(3))


def means(scores):
    """Return the mean log score and accuracy over sets, at each rate."""
    return {
        rate: np.mean([value for key, value in scores.items() if key[0] == rate], axis=0)
        for rate in RATES
    }


def fit():
    jax.config.update("jax_enable_x64", True)
    runs = stored_runs()
    every = dict.fromkeys(b for r in runs for b in r["blocks"])
    blocks = (EIGENPAIRS, *(b for b in every if b not in (EIGENPAIRS, STEEP)))
    print(
        f"{len({r['name'] for r in runs})} sets; log score and accuracy at {RATES} labels a class"
    )
    cases = {"all": blocks, "graph alone": blocks[:1]}
    cases |= {f"without {b}": tuple(o for o in blocks if o != b) for b in blocks[1:]}
    cases["and steep priors on the graph"] = (*blocks, STEEP)
    scores = {}
    for name, chosen in cases.items():
        scores[name] = Fit(runs, chosen).left_out()
        shown = [f"{s:.4f} {a:.4f}" for s, a in means(scores[name]).values()]
        print(name, *shown, sep=" | ", flush=True)
    moved = {key: scores["all"][key] - scores["graph alone"][key] for key in scores["all"]}
    for key in sorted(moved, key=lambda key: moved[key][0]):
        if abs(moved[key][0]) > 0.03:
            print(f"{key[1]}, {key[0]} a class: {moved[key][0]:+.3f} {moved[key][1]:+.3f}")
    whole = Fit(runs, blocks)
    odds = whole.odds(np.ones(len(runs), bool)).round(3)
    content = dict(zip(blocks[1:], odds.tolist(), strict=True))
    # They are for graphs without features, of which there are few: their odds are those of all.
    steep = Fit(runs, (*blocks, STEEP)).odds(np.ones(len(runs), bool)).round(3)
    content[STEEP] = steep[-1].tolist()
    TABLE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("collect", "fit", "answer", "sharpen"))
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), help="part, number of parts")
    arguments = parser.parse_args()
    steps = {
        "fit": fit,
        "answer": answer,
        "sharpen": sharpen,
        "collect": lambda: collect(*arguments.part),
    }
    steps[arguments.step]()
