"""Parts from the words that users type, and checks of what is given."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphuq.classifier.feature_scales import warn_of_unequal_scales
from graphuq.errors import require
from graphuq.graphs import (
    Graph,
    SelfTuning,
    complete_graph,
    epsilon_graph,
    from_adjacency,
    knn_graph,
)
from graphuq.graphs.feature_space import RULES
from graphuq.graphs.features import check_size
from graphuq.graphs.weights import weight_function
from graphuq.inference import Approximation, Sampler
from graphuq.inference.settings import check_lengths
from graphuq.likelihoods.multiclass import MAX_CLASSES
from graphuq.models import MODELS, Model
from graphuq.run.words import method_from, part_from
from graphuq.spectrum import Basis, Laplacian
from graphuq.utils.checks import check_seed, require_integer
from graphuq.utils.progress import Progress

GRAPHS = ("knn", "complete", "epsilon", "precomputed")
DEFAULT_NEIGHBORS = {"knn": 15, "complete": 10}
DEFAULT_SHARPNESS = {"knn": 4.0, "complete": 0.5}


def method_of(method: Any) -> Sampler | Approximation | None:
    """Return the sampler or approximation that ``inference=`` stands for, or None for "auto"."""
    return method_from(method, "inference")


def model_of(model: Any) -> Model:
    """Return the model of a name or of text as in Python, or the given model."""
    found: Model = part_from(model, MODELS, Model, "model")
    return found


def check_words(
    graph: object, n_neighbors: object, n_eigenpairs: object, out_of_sample: object = "mean"
) -> None:
    """Raise `InvalidInput` for an unknown word."""
    require(
        isinstance(out_of_sample, str) and out_of_sample in RULES,
        "out_of_sample",
        f"{out_of_sample!r} is unknown",
        f"use one of {', '.join(RULES)}",
    )
    require(
        isinstance(graph, Graph) or (isinstance(graph, str) and graph in GRAPHS),
        "graph",
        f"{graph!r} is unknown" if isinstance(graph, str) else f"a {type(graph).__name__}",
        f"use one of {', '.join(GRAPHS)}, or a Graph"
        + ("" if isinstance(graph, str) else ", such as gq.graphs.from_adjacency(your_graph)"),
    )
    for name, value in (("n_neighbors", n_neighbors), ("n_eigenpairs", n_eigenpairs)):
        require(
            not isinstance(value, str) or value == "auto",
            name,
            f"{value!r} is unknown",
            "give a number, or 'auto'",
        )


def check_numbers(classifier: Any) -> None:
    """Raise `InvalidInput` for a number of a classifier that is out of range, used or not."""
    check_lengths(
        classifier.n_samples,
        classifier.n_chains,
        classifier.n_warmup,
        classifier.thin,
        classifier.precision,
    )
    if classifier.max_classes is not None:
        require_integer("max_classes", classifier.max_classes, 2, int(MAX_CLASSES))
    if isinstance(classifier.random_state, int | np.integer):
        check_seed("random_state", classifier.random_state)


def check_unused(classifier: Any, method: Sampler | Approximation | None) -> None:
    """Raise `InvalidInput` for parameters that the method would ignore, or are out of range."""
    check_numbers(classifier)
    if method is None:
        return
    require(
        classifier.on_first_result is None,
        "on_first_result",
        f"given beside inference={classifier.inference!r}",
        "leave one out: only inference='auto' has a first result",
    )
    names = ("n_chains", "n_warmup", "thin", "checkpoint")
    given = [name for name in names if getattr(classifier, name) is not None]
    unused = method.unused_arguments(given)
    require(
        not unused,
        ", ".join(unused),
        f"given beside inference={classifier.inference!r}, which draws no samples",
        "leave it out, or name a sampler",
    )


def weights_of(graph: str, weights: Any, scale: Any, metric: str | None) -> Any:
    """Return the weight function of a name; "auto" depends on the kind of graph."""
    if is_word(weights, "auto"):
        weights = "unweighted" if graph == "epsilon" else SelfTuning(DEFAULT_SHARPNESS[graph])
    return weight_function(weights, scale, metric)


def neighbors_of(graph: str, n_neighbors: int | str, n_nodes: int) -> int:
    """Return the number of neighbours; "auto" is the default of the graph."""
    if is_word(n_neighbors, "auto"):
        return min(DEFAULT_NEIGHBORS[graph], n_nodes - 1)
    require_integer("n_neighbors", n_neighbors, 1)
    return int(n_neighbors)


def build_graph(
    graph: str | Graph,
    X: Any,
    n_neighbors: int | str,
    weights: Any,
    scale: Any,
    metric: str | None = None,
    radius: Any = None,
    progress: Progress | None = None,
    names: Sequence[str] | np.ndarray | None = None,
) -> Graph:
    """Return the graph of a word, or the given graph; ``names`` of features are for a warning."""
    if isinstance(graph, Graph):
        return graph
    if graph == "precomputed":
        return from_adjacency(X)
    weight = weights_of(graph, weights, scale, metric)
    check_size(X, "X")
    warn_of_unequal_scales(X, weight, names)
    if graph == "epsilon":
        require(radius is not None, "radius", "missing", "graph='epsilon' needs a distance")
        return epsilon_graph(X, radius, weight)
    require(radius is None, "radius", f"{radius!r} beside graph={graph!r}", "use it with 'epsilon'")
    n_neighbors = neighbors_of(graph, n_neighbors, X.shape[0])
    if graph == "complete":
        return complete_graph(X, n_neighbors=n_neighbors, weights=weight)
    return knn_graph(X, n_neighbors=n_neighbors, weights=weight, progress=progress)


def basis_of(
    graph: Graph,
    laplacian: str,
    n_eigenpairs: int | str,
    tail_eigenvalue: bool | float | str,
    model: Model,
    progress: Progress | None = None,
) -> Basis | Laplacian:
    """Return the basis of a graph, or its Laplacian for a prior that is solved exactly.

    A prior with a sparse precision, such as `RegularizedLaplacian`, is solved exactly unless
    ``n_eigenpairs`` is a number.
    """
    if not model.needs_eigenpairs and isinstance(n_eigenpairs, str):
        require(
            tail_eigenvalue is False,
            "tail_eigenvalue",
            f"{tail_eigenvalue!r} beside {model}",
            "leave it out: the prior is solved exactly and has no tail",
        )
        return Laplacian(graph, laplacian)
    n_pairs = None if isinstance(n_eigenpairs, str) else n_eigenpairs
    return Basis.of(graph, laplacian, n_pairs, tail_eigenvalue=tail_eigenvalue, progress=progress)


def seed_of(random_state: object) -> int | np.random.Generator:
    """Return a seed for a random state of scikit-learn."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    require(random_state is None, "random_state", f"{random_state!r}", "give an integer")
    return np.random.default_rng()


def is_word(value: object, word: str) -> bool:
    """Return whether a value is this text (False for an array)."""
    return isinstance(value, str) and value == word
