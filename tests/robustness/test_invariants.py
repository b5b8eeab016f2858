"""What must not change an answer does not, on random small problems of every awkward kind."""

import os
import warnings

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import GraphuqError

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")
FEW, MANY = 6, int(os.environ.get("GRAPHUQ_PROBLEMS", "150"))
CONVERGED = 2e-4  # of the fixed points of expectation propagation, which stops at 1e-4
N_DRAWS = 2000  # from which probabilities of more than two classes are counted


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
        self.X, self.y = X, y
        self.parameters = {
            "inference": "expectation-propagation",
            "model": gq.models.Fixed(
                gq.priors.Matern(tau=float(rng.uniform(0.1, 1))),
                gq.likelihoods.Probit(float(rng.choice([0.1, 0.3, 1.0]))),
            ),
            "n_neighbors": int(rng.integers(1, n)),
        }

    def has_ties(self, order):
        """Return whether nearest neighbours tie, so that another order gives another graph."""
        make = gq.graphs.knn_graph
        n_neighbors = self.parameters["n_neighbors"]
        first = make(self.X, n_neighbors=n_neighbors).weights.toarray()
        second = make(self.X[order], n_neighbors=n_neighbors).weights.toarray()
        return np.abs(first[np.ix_(order, order)] - second).max() > 1e-9

    def probabilities(self, X=None, y=None):
        """Return the probabilities of the classes in sorted order, or None if refused."""
        classifier = gq.GraphClassifier(missing_label="", **self.parameters)
        try:
            classifier.fit(self.X if X is None else X, self.y if y is None else y)
        except GraphuqError:
            return None
        return classifier.label_distributions_


def agree(one, two, what):
    """Require equality within the accuracy of the method, five standard errors of counted draws."""
    error = 0.0
    if two.shape[1] > 2:
        pooled = (one + two) / 2
        error = 5 * np.sqrt(2 * (pooled * (1 - pooled) + 1 / N_DRAWS) / N_DRAWS)
    assert (np.abs(one - two) <= CONVERGED + error).all(), (what, np.abs(one - two).max())


def check(seed):
    problem = Problem(seed)
    found = problem.probabilities()
    if found is None:
        return False
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    order = problem.rng.permutation(len(problem.X))
    moved = problem.probabilities(problem.X[order], problem.y[order])
    if not problem.has_ties(order):
        agree(moved, found[order], f"rows, {seed}")
    scaled = problem.probabilities(problem.X * 2.0**17)
    agree(scaled, found, f"scale, {seed}")
    other = problem.rng.permutation(problem.n_classes)
    names = {f"class{k}": f"class{other[k]}" for k in range(problem.n_classes)} | {"": ""}
    renamed = problem.probabilities(y=np.array([names[label] for label in problem.y]))
    agree(renamed[:, other], found, f"names, {seed}")
    return True


def answered(seeds):
    """Return how many problems had an answer; all had to be invariant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sum(check(seed) for seed in seeds)


def test_few_problems():
    assert answered(range(FEW)) >= FEW // 2


@pytest.mark.slow
def test_many_problems():
    assert answered(range(MANY)) >= MANY // 2
