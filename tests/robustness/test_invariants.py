"""What must not change an answer does not, on random small problems of every awkward kind."""

import os
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import GraphuqError

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")
FEW, MANY = 4, int(os.environ.get("GRAPHUQ_PROBLEMS", "150"))
ROUNDING = 1e-6  # of the same numbers in another container, and of distances after a shift
CONVERGED = 2e-4  # of the fixed points of expectation propagation, which stops at 1e-4
N_DRAWS = 2000  # from which probabilities of more than two classes are counted, at least
STANDARD_ERRORS = 6  # of thousands of probabilities, none of which may be farther away
METHODS = {
    "default": {},
    "expectation propagation": {"inference": "expectation-propagation"},
    "laplace": {"inference": "laplace"},
    "draws": {"inference": gq.inference.MCMC("exact-hamiltonian", n_samples=100)},
}


class Problem:
    """Random features with duplicates, clusters far apart, and labels, some contradictory."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rng, self.n_classes = rng, int(rng.integers(2, 7))
        n = int(rng.integers(max(4, self.n_classes), 40))
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

    def fitted(self, method, X=None, y=None):
        """Return the fit of a method to features and labels, or None if they are refused."""
        X, y = self.X if X is None else X, self.y if y is None else y
        own = {} if method == "default" else {"model": self.model}
        classifier = gq.GraphClassifier(
            missing_label="", n_neighbors=self.n_neighbors, **own, **METHODS[method]
        )
        try:
            return classifier.fit(X, y)
        except GraphuqError:
            return None

    def has_another_graph(self, X, order):
        """Return whether nearest neighbours tie, so that rounding or another order decide."""
        first = gq.graphs.knn_graph(self.X, self.n_neighbors).weights.toarray()
        second = gq.graphs.knn_graph(X, self.n_neighbors).weights.toarray()
        return np.abs(first[np.ix_(order, order)] - second).max() > ROUNDING


def agree(found, expected, what, order=slice(None), classes=slice(None), exact=False):
    """Require equal probabilities, within what each method leaves open.

    Numbers of a Gaussian of two classes differ by its tolerance, those of draws by their standard
    errors, and those of more classes by the errors of counted draws.
    """
    assert found is not None, what
    one, two = found.label_distributions_[:, classes], expected.label_distributions_[order]
    if exact:
        np.testing.assert_array_equal(one, two, err_msg=what)
        return
    pooled = (one + two) / 2
    errors = np.hypot(found.result_.mcse.max(axis=1), expected.result_.mcse.max(axis=1)[order])
    bound = ROUNDING + CONVERGED + STANDARD_ERRORS * errors[:, None]
    if two.shape[1] > 2:
        bound = bound + STANDARD_ERRORS * np.sqrt(
            2 * (pooled * (1 - pooled) + 1 / N_DRAWS) / N_DRAWS
        )
    excess = np.abs(one - two) - bound
    assert (excess <= 0).all(), (what, np.abs(one - two).max(), excess.max())


def containers(X):
    """Return the same numbers as other types hold them."""
    yield "list", X.tolist()
    yield "frame", pd.DataFrame(X)
    yield "columns first", np.asfortranarray(X)
    yield "every second row", np.repeat(X, 2, axis=0)[::2]
    yield "sparse", sparse.csc_array(X)


def check(seed, method, folder):
    """Return whether a problem has an answer, after all that must not change it."""
    problem = Problem(seed)
    first = problem.fitted(method)
    if first is None:
        return False
    found = first.label_distributions_
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    n, name = len(problem.X), f"{method}, {seed}: "
    order = problem.rng.permutation(n)
    if not problem.has_another_graph(problem.X[order], order):
        moved = problem.fitted(method, problem.X[order], problem.y[order])
        agree(moved, first, name + "rows in another order", order)
    agree(problem.fitted(method, problem.X * 2.0**17), first, name + "scale")
    shifted = problem.X + problem.rng.integers(-64, 64, problem.X.shape[1])
    if not problem.has_another_graph(shifted, np.arange(n)):
        agree(problem.fitted(method, shifted), first, name + "shift")
    other = problem.rng.permutation(problem.n_classes)
    names = {f"class{k}": f"class{other[k]}" for k in range(problem.n_classes)} | {"": ""}
    renamed = problem.fitted(method, y=np.array([names[label] for label in problem.y]))
    agree(renamed, first, name + "names of classes", classes=other)
    kinds = list(containers(problem.X))
    kind, values = kinds[seed % len(kinds)]
    if kind != "sparse" or not problem.has_another_graph(values, np.arange(n)):
        agree(problem.fitted(method, values), first, name + kind, exact=kind != "sparse")
    first.save(folder / "fit.nc")
    again = gq.load(folder / "fit.nc")
    agree(again, first, name + "saved", exact=True)
    new = problem.X[:3] + 0.25
    np.testing.assert_allclose(again.predict_proba(new), first.predict_proba(new), atol=1e-9)
    return True


def answered(seeds, folder):
    """Return how many problems had an answer; all had to be invariant."""
    methods = list(METHODS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sum(check(seed, methods[seed % len(methods)], folder) for seed in seeds)


def test_few_problems(tmp_path):
    assert answered(range(FEW), tmp_path) >= FEW // 2


@pytest.mark.slow
def test_many_problems(tmp_path):
    assert answered(range(MANY), tmp_path) >= MANY // 2
