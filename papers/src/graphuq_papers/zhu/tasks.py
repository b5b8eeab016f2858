"""The six tasks and the four graphs of the paper, with their search and their accuracies."""

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import pairwise_distances

from graphuq import EvidenceSearch, GraphClassifier, Result
from graphuq.datasets import load_mnist, load_newsgroups
from graphuq.errors import DisconnectedGraphWarning
from graphuq.graphs import Epsilon, GaussianWeights, TanhWeights
from graphuq.likelihoods import Logistic
from graphuq.models import Fixed
from graphuq.priors import RegularizedLaplacian
from graphuq.results import class_thresholds
from graphuq.scores import accuracy
from graphuq_papers.base import Context
from graphuq_papers.problems import space

# The values of β, σ and γ are those of the paper.
PRIOR, LIKELIHOOD = RegularizedLaplacian(beta=0.1, sigma=1000.0), Logistic(steepness=1.0)
GRAPHS = ("knn", "epsilon", "tanh", "exp")
MAX_NEIGHBORS = 128  # the largest k that a search tries


class Task(NamedTuple):
    """A binary classification task.

    Attributes
    ----------
    name : str
    distances : numpy.ndarray, shape (N, N)
        Distances between all pairs of nodes.
    truth : numpy.ndarray, shape (N,)
        True classes, −1 or +1.
    n_labels : int
        Number of labels per draw.
    """

    name: str
    distances: Float[np.ndarray, "N N"]
    truth: Float[np.ndarray, " N"]
    n_labels: int

    def draw(self, seed: int) -> Int[np.ndarray, " J"]:
        """Draw nodes at random until both classes are among them."""
        rng = np.random.default_rng(seed)
        while True:
            labelled = rng.choice(len(self.truth), self.n_labels, replace=False)
            if abs(self.truth[labelled].sum()) < self.n_labels:
                return np.sort(labelled)

    def given(self, labelled: Int[np.ndarray, " J"]) -> np.ndarray:
        """Return the label of each node for a classifier; 0 marks an unlabelled node."""
        given = np.zeros(len(self.truth))
        given[labelled] = self.truth[labelled]
        return given


def tasks(context: Context) -> list[Task]:
    """Return the six tasks: 1/2, 2/3 and odd/even of MNIST, and three pairs of newsgroups.

    A quick run has a third of the rows.
    """
    names = ("1/2", "2/3", "o/e", "b/h", "p/m", "r/a")
    return [task(name, context) for name in names]


@lru_cache(maxsize=6)
def task(name: str, context: Context) -> Task:
    """Return the task with the given name; see `tasks`."""
    if name in ("1/2", "2/3", "o/e"):
        digits = tuple(range(10)) if name == "o/e" else (int(name[0]), int(name[2]))
        n_each = context.pick(120, 400) if name == "o/e" else context.pick(350, 1100)
        data = load_mnist(digits, n_each, folder=context.folder, rng=context.seed)
        first = data.classes % 2 == 1 if name == "o/e" else data.classes == digits[0]
        distances = _distances(*space(context, data.features))
    else:
        pairs = {
            "b/h": ("rec.sport.baseball", "rec.sport.hockey"),
            "p/m": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
            "r/a": ("talk.religion.misc", "alt.atheism"),
        }
        classical = context.classical_idf
        data = load_newsgroups(pairs[name], classical_idf=classical, folder=context.folder)
        if context.quick:
            data = data.of_classes(pairs[name], 350, context.seed)
        first = data.classes == pairs[name][0]
        distances = np.maximum(_distances(data.features, "cosine"), 0.0)
    return Task(name, distances, np.where(first, 1.0, -1.0), 50 if name in ("o/e", "r/a") else 20)


def _distances(features: Any, metric: str) -> Float[np.ndarray, "N N"]:
    """Return the distances between all pairs of rows, exactly symmetric."""
    distances: np.ndarray = pairwise_distances(features, metric=metric)
    np.fill_diagonal(distances, 0.0)
    return (distances + distances.T) / 2


def classifier(graph: str, task: Task, **changes: Any) -> GraphClassifier:
    """Return the model of Zhu et al. on one of their graphs, with initial graph parameters."""
    near = np.quantile(task.distances[task.distances > 0], 0.05)
    of_graph: dict[str, dict[str, Any]] = {
        "knn": {"graph": "knn", "weights": "unweighted", "n_neighbors": 10},
        "epsilon": {"graph": Epsilon(float(near)), "weights": "unweighted"},
        "tanh": {"graph": "complete", "weights": TanhWeights(10 / float(near), float(near))},
        "exp": {"graph": "complete", "weights": GaussianWeights(float(near) / 3)},
    }
    return GraphClassifier(
        **of_graph[graph],
        metric="precomputed",
        laplacian="unnormalized",
        model=Fixed(PRIOR, LIKELIHOOD),
        inference="laplace",
        missing_label=0,
        **changes,
    )


def evidence_search(
    graph: str, task: Task, labelled: Int[np.ndarray, " J"], seed: int
) -> EvidenceSearch:
    """Search the graph parameters with the largest evidence.

    The paper gives no ranges for the parameters, so the ranges here are wide.
    """
    positive = task.distances[task.distances > 0]
    low, high = (float(np.quantile(positive, q)) for q in (1e-4, 0.9))
    k = [k for k in range(1, MAX_NEIGHBORS + 1) if k < len(task.truth)]
    parameters: dict[str, dict[str, Any]] = {
        "knn": {"n_neighbors": k},
        "epsilon": {"graph__radius": (low, high)},
        "tanh": {"weights__steepness": (1 / high, 300 / low), "weights__cutoff": (low, high)},
        "exp": {"weights__scale": (low / 5, high)},
    }
    search = EvidenceSearch(classifier(graph, task), parameters[graph], random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        return search.fit(task.distances, task.given(labelled))


def accuracies(result: Result, task: Task, labelled: Int[np.ndarray, " J"]) -> tuple[float, float]:
    """Return accuracies on the unlabelled nodes.

    The first is that at threshold 0. The second is the tuned accuracy, whose threshold is set by
    the true class proportions.
    """
    free = np.setdiff1d(np.arange(len(task.truth)), labelled)
    mean, truth = result.latent_mean[free], task.truth[free]
    share = float((truth > 0).mean())
    threshold = class_thresholds(result, [1 - share, share])
    assert threshold is not None
    level = threshold.for_labels[0]
    # A node exactly on the threshold counts one half, so the order of the data breaks no tie.
    return tuple(accuracy(np.sign(mean - c), truth) for c in (0.0, level))  # type: ignore[return-value]
