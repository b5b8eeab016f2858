"""Parts from the words that users type, and checks of what is given."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphuq.classifier.feature_scales import warn_of_unequal_scales
from graphuq.classifier.suspect_columns import warn_of_suspects
from graphuq.errors import require
from graphuq.graphs import (
    Graph,
    GraphBuilder,
    SelfTuning,
    Unweighted,
    complete_graph,
    from_adjacency,
    knn_graph,
    with_features,
)
from graphuq.graphs.feature_space import RULES
from graphuq.graphs.features import check_size
from graphuq.graphs.node_graph import are_graphs, is_graph, node_graph
from graphuq.graphs.weights import WeightFunction, weight_function
from graphuq.inference import MCMC, Approximation
from graphuq.likelihoods.multiclass import MAX_CLASSES
from graphuq.models import MODELS, Model
from graphuq.run.words import inference_from, part_from
from graphuq.spectrum import Basis, Laplacian
from graphuq.spectrum.solve import DEFAULT_EIGENPAIRS
from graphuq.utils.checks import check_seed, require_integer
from graphuq.utils.expressions import built, classes_by_name, is_expression
from graphuq.utils.progress import Progress

GRAPHS = ("knn", "complete", "precomputed")
DEFAULT_NEIGHBORS = {"knn": 15, "complete": 10}
DEFAULT_SHARPNESS = {"knn": 4.0, "complete": 0.5}


def model_of(model: Any) -> Model:
    """Return the model of a name or of text as in Python, or the given model."""
    found: Model = part_from(model, MODELS, Model, "model")
    return found


def value_of(estimator: Any, name: str) -> Any:
    """Return the value of an estimator's parameter, also where it is a word or text."""
    value = getattr(estimator, name)
    if name == "inference":
        return value if isinstance(value, MCMC) else inference_from(value)
    if name == "model":
        return model_of(value)
    if name == "graph":
        return graph_from(value)
    if name == "weights" and isinstance(value, str):
        word = graph_from(estimator.graph)
        if isinstance(word, GraphBuilder) and is_word(value, "auto"):
            return Unweighted()
        known = isinstance(word, str) and word in DEFAULT_SHARPNESS
        return weights_of(word, value, None) if known else value
    return value


def graph_from(graph: Any) -> Any:
    """Return the builder of text as in Python, given graphs as one `Graph`, or the value itself."""
    if is_expression(graph):
        return part_from(graph, {}, GraphBuilder, "graph")
    given = not isinstance(graph, Graph) and (is_graph(graph) or are_graphs(graph))
    return node_graph(graph) if given else graph


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
        isinstance(graph, Graph | GraphBuilder) or (isinstance(graph, str) and graph in GRAPHS),
        "graph",
        f"{graph!r} is unknown" if isinstance(graph, str) else f"a {type(graph).__name__}",
        f"use one of {', '.join(GRAPHS)}, "
        + (
            "a builder such as 'Epsilon(radius=0.4)', or a Graph"
            if isinstance(graph, str)
            else "or a Graph, such as gq.graphs.from_adjacency(your_graph), or a list or a dict "
            "of graphs"
        ),
    )
    words = {"n_neighbors": ("auto",), "n_eigenpairs": ("auto", "all")}
    for name, value in (("n_neighbors", n_neighbors), ("n_eigenpairs", n_eigenpairs)):
        require(
            not isinstance(value, str) or value in words[name],
            name,
            f"{value!r} is unknown",
            f"give a number, or {' or '.join(map(repr, words[name]))}",
        )


def weights_of(graph: str, weights: Any, metric: str | None) -> Any:
    """Return the weight function of a name or of text as in Python, or the given one.

    "auto" depends on the kind of graph.
    """
    if is_word(weights, "auto"):
        weights = SelfTuning(DEFAULT_SHARPNESS[graph])
    if is_expression(weights):
        kinds = classes_by_name(WeightFunction.__subclasses__(), "weights")
        weights = built(weights, kinds, "weights")
    return weight_function(weights, metric=metric)


def builder_weights(builder: GraphBuilder, weights: Any, metric: str | None) -> Any:
    """Return the weight function for a builder of graphs, None if it has its own.

    Raises
    ------
    InvalidInput
        If the builder takes none.
    """
    given = {"weights": not is_word(weights, "auto"), "metric": metric is not None}
    names = [name for name, is_given in given.items() if is_given]
    require(
        builder.takes_weights or not names,
        ", ".join(names),
        f"given beside graph={builder!r}, which has weights of its own",
        "leave it out",
    )
    if not names:
        return None
    return weights_of("", "unweighted" if is_word(weights, "auto") else weights, metric)


def check_options(classifier: Any) -> tuple[Any, Model, MCMC | Approximation]:
    """Return graph, model and inference of a classifier, of which nothing is unknown.

    Raises
    ------
    InvalidInput
        If a word is unknown, or a number is out of range.
    """
    graph = graph_from(classifier.graph)
    check_words(graph, classifier.n_neighbors, classifier.n_eigenpairs, classifier.out_of_sample)
    check_numbers(classifier)
    if isinstance(graph, str) and graph in DEFAULT_SHARPNESS:
        weights_of(graph, classifier.weights, classifier.metric)
    return graph, model_of(classifier.model), inference_from(classifier.inference)


def check_numbers(classifier: Any) -> None:
    """Raise `InvalidInput` for a number of a classifier that is out of range, used or not."""
    if classifier.max_classes is not None:
        require_integer("max_classes", classifier.max_classes, 2, int(MAX_CLASSES))
    if isinstance(classifier.random_state, int | np.integer):
        check_seed("random_state", classifier.random_state)
    if not isinstance(classifier.n_neighbors, str):
        require_integer("n_neighbors", classifier.n_neighbors, 1)


def neighbors_of(graph: str, n_neighbors: int | str, n_nodes: int) -> int:
    """Return the number of neighbours; "auto" is the default of the graph."""
    if is_word(n_neighbors, "auto"):
        return min(DEFAULT_NEIGHBORS[graph], n_nodes - 1)
    require_integer("n_neighbors", n_neighbors, 1)
    return int(n_neighbors)


def build_graph(
    graph: str | Graph | GraphBuilder,
    X: Any,
    n_neighbors: int | str,
    weights: Any,
    metric: str | None = None,
    progress: Progress | None = None,
    names: Sequence[str] | np.ndarray | None = None,
    search: str = "auto",
) -> Graph:
    """Return the graph of a word or builder, or the given one.

    ``names`` of features are for a warning, and ``search`` is that of `knn_graph`.
    """
    if isinstance(graph, Graph):
        return graph
    if graph == "precomputed":
        return from_adjacency(X)
    if isinstance(graph, GraphBuilder):
        require(
            is_word(n_neighbors, "auto"),
            "n_neighbors",
            f"{n_neighbors!r} beside graph={graph!r}",
            "leave it out",
        )
        weight = builder_weights(graph, weights, metric)
        check_size(X, "X")
        if graph.takes_weights:
            warn_of_unequal_scales(X, Unweighted() if weight is None else weight, names)
        made = graph.build(X, weight)
        require(
            isinstance(made, Graph) and made.n_nodes == X.shape[0],
            "graph",
            f"{graph!r} made {made!r} of {X.shape[0]} rows",
            "let its build return a Graph with one node for each row",
        )
        return made if made.feature_space is not None else with_features(made, X)
    weight = weights_of(graph, weights, metric)
    check_size(X, "X")
    warn_of_unequal_scales(X, weight, names)
    if names is not None:
        warn_of_suspects(names, lambda k: X[:, k])
    n_neighbors = neighbors_of(graph, n_neighbors, X.shape[0])
    if graph == "complete":
        return complete_graph(X, n_neighbors=n_neighbors, weights=weight)
    return knn_graph(
        X,
        n_neighbors=n_neighbors,
        weights=weight,
        search=search,
        n_components="auto",
        progress=progress,
    )


def basis_of(
    graph: Graph,
    laplacian: str,
    n_eigenpairs: int | str,
    tail_eigenvalue: bool | float | str,
    model: Model,
    progress: Progress | None = None,
    n_classes: int = 2,
) -> Basis | Laplacian:
    """Return the basis of a graph, or its Laplacian for a prior that is solved exactly.

    A prior with a sparse precision, such as `RegularizedLaplacian`, is solved exactly where
    ``n_eigenpairs`` is "auto".
    """
    if not model.needs_eigenpairs and is_word(n_eigenpairs, "auto"):
        require(
            tail_eigenvalue is False,
            "tail_eigenvalue",
            f"{tail_eigenvalue!r} beside {model}",
            "leave it out: the prior is solved exactly and has no tail",
        )
        return Laplacian(graph, laplacian)
    n_pairs = n_pairs_of(n_eigenpairs, graph.n_nodes)
    default = DEFAULT_EIGENPAIRS + graph.n_components - 1
    if n_pairs is None and default < n_classes < graph.n_nodes:  # each is a place of its own
        n_pairs = n_classes
    return Basis.of(graph, laplacian, n_pairs, tail_eigenvalue=tail_eigenvalue, progress=progress)


def n_pairs_of(n_eigenpairs: int | str, n_nodes: int) -> int | None:
    """Return the number of eigenpairs of a graph, or None for the default of the spectrum."""
    if isinstance(n_eigenpairs, str):
        return n_nodes if n_eigenpairs == "all" else None
    return n_eigenpairs


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
