"""The six tasks, the four graphs, and how each is searched and judged."""

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.search import EvidenceSearch
from graphuq.datasets import load_mnist, load_newsgroups
from graphuq.errors import DisconnectedGraphWarning
from graphuq.experiments.base import Context
from graphuq.graphs import TanhWeights
from graphuq.graphs.neighbors import all_distances
from graphuq.likelihoods import Logistic
from graphuq.priors import RegularizedLaplacian
from graphuq.results.class_proportions import tuning_of_two
from graphuq.results.result import Result
from graphuq.scores import accuracy

PRIOR, LIKELIHOOD = (
    RegularizedLaplacian(beta=0.1, sigma=1000.0),
    Logistic(steepness=1.0),
)  # the paper's β, σ and γ
GRAPHS = ("knn", "epsilon", "tanh", "exp")
MAX_NEIGHBORS = 128


class Task(NamedTuple):
    """Distances of all pairs, the true class, and how many labels are drawn."""

    name: str
    distances: Float[np.ndarray, "N N"]
    truth: Float[np.ndarray, " N"]
    n_labels: int

    def draw(self, seed: int) -> Int[np.ndarray, " J"]:
        """Nodes drawn at random, again where one class has none."""
        rng = np.random.default_rng(seed)
        while True:
            labelled = rng.choice(len(self.truth), self.n_labels, replace=False)
            if abs(self.truth[labelled].sum()) < self.n_labels:
                return np.sort(labelled)

    def given(self, labelled: Int[np.ndarray, " J"]) -> np.ndarray:
        """Labels as a classifier takes them, 0 where there is none."""
        given = np.zeros(len(self.truth))
        given[labelled] = self.truth[labelled]
        return given


def tasks(context: Context) -> list[Task]:
    """1/2, 2/3, odd/even of MNIST; three pairs of newsgroups. Quick: a third of the rows."""
    names = ("1/2", "2/3", "o/e", "b/h", "p/m", "r/a")
    return [task(name, context) for name in names]


@lru_cache(maxsize=6)
def task(name: str, context: Context) -> Task:
    """One of them."""
    if name in ("1/2", "2/3", "o/e"):
        digits = tuple(range(10)) if name == "o/e" else (int(name[0]), int(name[2]))
        n_each = context.pick(120, 400) if name == "o/e" else context.pick(350, 1100)
        data = load_mnist(digits, n_each, folder=context.folder, seed=context.seed)
        first = data.classes % 2 == 1 if name == "o/e" else data.classes == digits[0]
        distances = all_distances(data.features, "euclidean")
    else:
        pairs = {
            "b/h": ("rec.sport.baseball", "rec.sport.hockey"),
            "p/m": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
            "r/a": ("talk.religion.misc", "alt.atheism"),
        }
        data = load_newsgroups(pairs[name], folder=context.folder)
        if context.quick:
            data = data.of_classes(pairs[name], 350, context.seed)
        first = data.classes == pairs[name][0]
        distances = np.maximum(all_distances(data.features, "cosine"), 0.0)
    return Task(name, distances, np.where(first, 1.0, -1.0), 50 if name in ("o/e", "r/a") else 20)


def classifier(graph: str, task: Task, **changes: Any) -> GraphClassifier:
    """Zhu et al.'s model on one of their graphs, with parameters to start from."""
    near = np.quantile(task.distances[task.distances > 0], 0.05)
    of_graph: dict[str, dict[str, Any]] = {
        "knn": {"graph": "knn", "weights": "unweighted", "n_neighbors": 10},
        "epsilon": {"graph": "epsilon", "radius": float(near)},
        "tanh": {"graph": "complete", "weights": TanhWeights(10 / float(near), float(near))},
        "exp": {"graph": "complete", "weights": "gaussian", "scale": float(near) / 3},
    }
    return GraphClassifier(
        **of_graph[graph],
        metric="precomputed",
        laplacian="unnormalized",
        prior=PRIOR,
        likelihood=LIKELIHOOD,
        inference="laplace",
        missing_label=0,
        **changes,
    )


def searched(graph: str, task: Task, labelled: Int[np.ndarray, " J"], seed: int) -> EvidenceSearch:
    """The graph's parameters of the largest evidence; ranges are wide, as none is known."""
    positive = task.distances[task.distances > 0]
    low, high = (float(np.quantile(positive, q)) for q in (1e-4, 0.9))
    k = [k for k in range(1, MAX_NEIGHBORS + 1) if k < len(task.truth)]
    parameters: dict[str, dict[str, Any]] = {
        "knn": {"n_neighbors": k},
        "epsilon": {"radius": (low, high)},
        "tanh": {"weights__steepness": (1 / high, 300 / low), "weights__cutoff": (low, high)},
        "exp": {"weights__scale": (low / 5, high)},
    }
    search = EvidenceSearch(classifier(graph, task), parameters[graph], random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        return search.fit(task.distances, task.given(labelled))


def judged(result: Result, task: Task, labelled: Int[np.ndarray, " J"]) -> tuple[float, float]:
    """Accuracy on the other nodes at threshold 0, and with the classes' true proportions."""
    free = np.setdiff1d(np.arange(len(task.truth)), labelled)
    mean, std = result.latent_mean[free], result.latent_std[free]
    truth = task.truth[free]
    link = result.posterior.likelihood.link
    level = tuning_of_two(mean, std, link, float((truth > 0).mean())).for_labels[0]
    # A node on the threshold is right by half: no order of the data may break ties.
    return tuple(accuracy(np.sign(mean - c), truth) for c in (0.0, level))  # type: ignore[return-value]
