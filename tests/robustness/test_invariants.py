"""What must not change an answer does not, on random small problems of every awkward kind."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import GraphuqError

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")
FEW, MANY = 2, int(os.environ.get("GRAPHUQ_PROBLEMS", "150"))
ROUNDING = 1e-6  # of the same numbers in another container, and of distances after a shift
CONVERGED = 2e-4  # of the fixed points of expectation propagation, which stops at 1e-4
N_DRAWS = 2000  # from which probabilities of more than two classes are counted, at least
STRATA = 6e-3  # of an average: rounding may decide which component stands for a hundredth of it
STANDARD_ERRORS = 6  # of thousands of probabilities, none of which may be farther away
METHODS = {
    "default": {},
    "expectation propagation": {"inference": "expectation-propagation"},
    "laplace": {"inference": "laplace"},
    "draws": {"inference": gq.inference.MCMC("collapsed-gibbs", n_samples=100)},
}


class Problem:
    """Random features with duplicates, clusters far apart, and labels, some contradictory."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rng, self.n_classes = rng, int(rng.integers(2, 7))
        n = int(rng.integers(max(4, self.n_classes), 80))
        width = int(rng.integers(1, 6))
        X = rng.normal(size=(n, width))
        if rng.uniform() < 0.3:  # clusters far apart
            X += 20.0 * rng.integers(0, 3, n)[:, None]
        if rng.uniform() < 0.3:  # rows at one place
            X[rng.integers(0, n, n // 3)] = X[0]
        if rng.uniform() < 0.3:  # scales over six orders of magnitude
            X *= 10.0 ** rng.uniform(-3, 3, width)
        y = np.full(n, "", dtype="U12")
        n_labelled = n if rng.uniform() < 0.1 else int(rng.integers(self.n_classes, n + 1))
        rows = rng.permutation(n)[:n_labelled]
        y[rows] = [f"class{k}" for k in np.arange(n_labelled) % self.n_classes]
        self.X, self.y = np.round(X * 2**12) / 2**12, y  # which a shift does not round
        self.model = gq.models.Fixed(
            gq.priors.Matern(tau=float(rng.uniform(0.1, 1))),
            gq.likelihoods.Probit(float(rng.choice([0.1, 0.3, 1.0]))),
        )
        self.n_neighbors = int(rng.integers(1, n))

    def fitted(self, method, X=None, y=None, **more):
        """Return the fit of a method to features and labels, or None if they are refused."""
        X, y = self.X if X is None else X, self.y if y is None else y
        own = {} if method == "default" else {"model": self.model}
        more = {"n_neighbors": self.n_neighbors} | more
        classifier = gq.GraphClassifier(missing_label="", **own, **METHODS[method], **more)
        try:
            return classifier.fit(X, y)
        except GraphuqError:
            return None

    def has_another_graph(self, X, order):
        """Return whether nearest neighbours tie, so that rounding or another order decide."""
        first = gq.graphs.knn_graph(self.X, self.n_neighbors).weights.toarray()
        second = gq.graphs.knn_graph(X, self.n_neighbors).weights.toarray()
        return np.abs(first[np.ix_(order, order)] - second).max() > ROUNDING


def excess(found, expected, order=slice(None), classes=slice(None), rows=slice(None)):
    """Return by how much probabilities differ more than each method leaves open: 0 if they agree.

    Numbers of a Gaussian of two classes differ by its tolerance, those of draws by their standard
    errors, and those of more classes by the errors of counted draws.
    """
    if found is None:
        return 1.0
    one = found.label_distributions_[rows][:, classes]
    two = expected.label_distributions_[order]
    pooled = (one + two) / 2
    errors = np.hypot(
        found.result_.mcse.max(axis=1)[rows], expected.result_.mcse.max(axis=1)[order]
    )
    bound = ROUNDING + CONVERGED + STANDARD_ERRORS * errors[:, None]
    if found.result_.posterior.prior.is_mixture:
        bound = bound + STRATA
    if two.shape[1] > 2:
        bound = bound + STANDARD_ERRORS * np.sqrt(
            2 * (pooled * (1 - pooled) + 1 / N_DRAWS) / N_DRAWS
        )
    return max(0.0, float((np.abs(one - two) - bound).max()))


def largest_difference(found, expected):
    """Return the largest difference of probabilities that must be the same numbers."""
    if found is None:
        return 1.0
    return float(np.abs(found.label_distributions_ - expected.label_distributions_).max())


def containers(X):
    """Return the same numbers as other types hold them."""
    yield "list", X.tolist()
    yield "frame", pd.DataFrame(X)
    yield "columns first", np.asfortranarray(X)
    yield "every second row", np.repeat(X, 2, axis=0)[::2]
    yield "sparse", sparse.csc_array(X)


def differences(seed, method, folder):
    """Yield what must not change an answer, and by how much it does beyond its tolerance."""
    problem = Problem(seed)
    first = problem.fitted(method)
    if first is None:
        return
    found, n = first.label_distributions_, len(problem.X)
    sums = max(np.abs(found.sum(axis=1) - 1).max() - 1e-7, -found.min())
    yield "probabilities", max(0.0, float(sums)) if np.isfinite(found).all() else 1.0
    order = problem.rng.permutation(n)
    if not problem.has_another_graph(problem.X[order], order):
        moved = problem.fitted(method, problem.X[order], problem.y[order])
        yield "order of rows", excess(moved, first, order)
    yield "scale", excess(problem.fitted(method, problem.X * 2.0**17), first)
    shifted = problem.X + problem.rng.integers(-64, 64, problem.X.shape[1])
    if not problem.has_another_graph(shifted, np.arange(n)):
        yield "shift", excess(problem.fitted(method, shifted), first)
    other = problem.rng.permutation(problem.n_classes)
    names = {f"class{k}": f"class{other[k]}" for k in range(problem.n_classes)} | {"": ""}
    renamed = problem.fitted(method, y=np.array([names[label] for label in problem.y]))
    yield "names of classes", excess(renamed, first, classes=other)
    kinds = list(containers(problem.X))
    kind, values = kinds[seed % len(kinds)]
    if kind != "sparse":
        yield "container", largest_difference(problem.fitted(method, values), first)
    elif not problem.has_another_graph(values, np.arange(n)):
        yield "container", excess(problem.fitted(method, values), first)
    yield "duplicated row", of_equal_rows(problem, method)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: problem.fitted(method), range(2)))
    yield "threads", max(largest_difference(one, first) for one in both)
    first.save(folder / "fit.nc")
    again = gq.load(folder / "fit.nc")
    yield "saved", largest_difference(again, first)
    new = problem.X[:3] + 0.25
    apart = np.abs(again.predict_proba(new) - first.predict_proba(new)).max()
    yield "saved, new rows", max(0.0, float(apart) - 1e-9)
    twice = first.predict_proba(np.repeat(new, 2, axis=0))
    yield "new rows twice", max(0.0, float(np.abs(twice[::2] - twice[1::2]).max()) - 1e-9)


def of_equal_rows(problem, method):
    """Return by how much a row and its copy, with the same label and edges, differ too much."""
    n, row = len(problem.X), int(problem.rng.integers(len(problem.X)))
    X, y = np.vstack([problem.X, problem.X[row]]), np.append(problem.y, problem.y[row])
    found = problem.fitted(method, X, y, graph="complete", n_neighbors="auto")
    if found is None:  # the graph falls apart, for instance
        return 0.0
    weights, swapped = np.asarray(found.graph_.weights), np.arange(n + 1)
    swapped[[row, n]] = n, row
    assert np.abs(weights[np.ix_(swapped, swapped)] - weights).max() < ROUNDING
    return excess(found, found, order=[row], rows=[n])


def answered(seeds, folder):
    """Return how many problems had an answer; all had to be invariant."""
    methods, n_answers = list(METHODS), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            method = methods[seed % len(methods)]
            found = dict(differences(seed, method, folder))
            assert not any(found.values()), (method, seed, found)
            n_answers += bool(found)
    return n_answers


def test_few_problems(tmp_path):
    assert answered(range(FEW), tmp_path) >= FEW // 2


@pytest.mark.slow
def test_many_problems(tmp_path):
    assert answered(range(MANY), tmp_path) >= MANY // 2
