"""Model parts from the words that users type, and the rules behind "auto"."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.preprocessing import normalize

from graphuq.classifier.feature_scales import warn_of_unequal_scales
from graphuq.distributions import DiscreteUniform
from graphuq.errors import IncompatibleParts, require
from graphuq.evidence.learnt_models import (
    average_of_models,
    has_enough_labels,
    likeliest_model,
)
from graphuq.graphs import (
    Graph,
    SelfTuning,
    complete_graph,
    epsilon_graph,
    from_adjacency,
    knn_graph,
)
from graphuq.graphs.feature_space import RULES, FeatureSpace
from graphuq.graphs.features import check_size
from graphuq.graphs.inputs import Features
from graphuq.graphs.weights import weight_function
from graphuq.inference import Approximation, ModelAverage, Sampler
from graphuq.inference.settings import check_lengths
from graphuq.likelihoods import (
    AtomicNoise,
    GaussianNoise,
    GinzburgLandau,
    LevelSet,
    Likelihood,
    Logistic,
    NoiseFree,
    Probit,
    Softmax,
)
from graphuq.likelihoods.multiclass import MAX_CLASSES
from graphuq.posterior.posterior import Posterior
from graphuq.priors import (
    Diffusion,
    InverseCosine,
    InverseLaplacian,
    Matern,
    Prior,
    RandomWalk,
    RegularizedLaplacian,
)
from graphuq.run.words import method_from, part_from
from graphuq.spectrum import Laplacian, Spectrum, laplacian_spectrum
from graphuq.utils.checks import check_seed, require_integer
from graphuq.utils.progress import Progress

MAX_AVERAGED = 1_000  # labels up to which averages over models are quick
GRAPHS = ("knn", "complete", "epsilon", "precomputed")
DEFAULT_NEIGHBORS = {"knn": 15, "complete": 10}
DEFAULT_SHARPNESS = {"knn": 4.0, "complete": 0.5}
LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {
    "auto": Probit,
    "probit": Probit,
    "softmax": Softmax,
    "level-set": LevelSet,
    "atomic-noise": AtomicNoise,
    "noise-free": NoiseFree,
    "ginzburg-landau": GinzburgLandau,
    "logistic": Logistic,
    "gaussian": GaussianNoise,
}
PRIORS: dict[str, Callable[[], Prior]] = {
    "auto": lambda: Matern(tau=0.25, alpha=4.0),
    "matern": Matern,
    "inverse-laplacian": InverseLaplacian,
    "regularized-laplacian": RegularizedLaplacian,
    "diffusion": Diffusion,
    "random-walk": RandomWalk,
    "inverse-cosine": InverseCosine,
}


def prior_of(prior: str | Prior) -> Prior:
    """Return the prior of a name, or the given prior."""
    return part_from(prior, PRIORS, Prior, "prior")


def likelihood_of(
    likelihood: str | Likelihood, n_classes: int | None = 2, max_classes: int | None = None
) -> Any:
    """Return the likelihood of a name, or the given one, for a number of classes, if it is known.

    With ``max_classes``, the number of classes is learnt.
    """
    found = part_from(likelihood, LIKELIHOODS, Likelihood, "likelihood")
    if n_classes is None:
        return found
    count: Any = n_classes
    require(
        max_classes is None or max_classes >= n_classes,
        "max_classes",
        f"{max_classes} with {n_classes} labelled classes",
        f"use {n_classes} or more, or leave it out",
    )
    if max_classes is not None and max_classes > n_classes:
        count = DiscreteUniform(n_classes, max_classes)
    if "n_classes" in {field.name for field in dataclasses.fields(found)}:
        return dataclasses.replace(found, n_classes=count)
    own = getattr(found, "n_classes", 2)
    require(
        count == own,
        "likelihood",
        f"{found} is for {'two' if own == 2 else own} classes, not {count}",
        "use softmax, probit, level-set or noise-free",
    )
    return found


def method_of(method: Any) -> Sampler | Approximation | None:
    """Return the sampler or approximation that ``inference=`` stands for, or None for "auto"."""
    return method_from(method, "inference")


def chosen_by_evidence(prior: object, likelihood: object, n_eigenpairs: object) -> list[str]:
    """Return the hyperparameters that "auto" leaves to the evidence."""
    names = {
        "tau": prior,
        "alpha": prior,
        "include_constant": prior,
        "noise_std": likelihood,
        "truncation": n_eigenpairs,
    }
    return [name for name, word in names.items() if is_word(word, "auto")]


def posterior_of_learnt_models(
    classifier: Any,
    method: Sampler | Approximation | None,
    spectrum: Spectrum | Laplacian,
    labelled: Int[np.ndarray, " J"],
    codes: Int[np.ndarray, " J"],
    weights: Float[np.ndarray, " J"] | None,
    space: FeatureSpace | None,
) -> Posterior | None:
    """Return the posterior under models learnt from other data, if prior and likelihood are "auto".

    It is the average over the models with ``inference="model-average"``. It is that, too, with
    inference "auto", no warm-up or thinning of chains, and at most `MAX_AVERAGED` labels. Otherwise
    it is the posterior of the likeliest model. It is None if the labels are too few to tell the
    model, or another parameter excludes both.

    Functions of the features may be among the models if ``space`` has the features of all nodes.

    Raises
    ------
    IncompatibleParts
        If ``inference="model-average"``, and another parameter excludes it.
    """
    if not (is_word(classifier.prior, "auto") and is_word(classifier.likelihood, "auto")):
        return None
    named = isinstance(method, ModelAverage)
    if (
        classifier.max_classes is not None
        or not isinstance(spectrum, Spectrum)
        or spectrum.tail_eigenvalue is not None
        or is_word(classifier.n_eigenpairs, "auto")
    ):
        if not named:
            return None
        raise IncompatibleParts(
            "inference='model-average' needs a number of eigenpairs, no tail, and a known number "
            "of classes; leave n_eigenpairs, tail_eigenvalue and max_classes out"
        )
    features = None if space is None else features_of_nodes(space, spectrum.n_nodes)
    default = method is None and classifier.n_warmup is None and classifier.thin is None
    averaged = named or (default and len(codes) <= MAX_AVERAGED)
    if not averaged and not has_enough_labels(codes):
        return None
    average = average_of_models(spectrum, labelled, codes, weights, features, prune=averaged)
    return average if averaged else likeliest_model(average)


def features_of_nodes(space: FeatureSpace, n_nodes: int) -> Features | None:
    """Return the features of all nodes, of length 1 for cosines; None if there are fewer."""
    if space.features.shape[0] != n_nodes:
        return None
    return normalize(space.features) if space.weight.metric == "cosine" else space.features


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
    n_eigenpairs: int | str | None,
    tail_eigenvalue: bool | float | str,
    prior: Prior,
    progress: Progress | None = None,
) -> Spectrum | Laplacian:
    """Return the eigenpairs, or the Laplacian itself for a prior that is solved exactly.

    A prior with a sparse precision, such as `RegularizedLaplacian`, is solved exactly unless
    ``n_eigenpairs`` is given.
    """
    if prior.has_sparse_precision and n_eigenpairs is None and not prior.learnt:
        require(
            tail_eigenvalue is False,
            "tail_eigenvalue",
            f"{tail_eigenvalue!r} beside {prior}",
            "leave it out: the prior is solved exactly and has no tail",
        )
        return Laplacian(graph, laplacian)
    n_pairs = None if isinstance(n_eigenpairs, str) else n_eigenpairs
    return laplacian_spectrum(
        graph, laplacian, n_pairs, tail_eigenvalue=tail_eigenvalue, progress=progress
    )


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
