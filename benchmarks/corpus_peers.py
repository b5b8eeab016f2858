"""Methods that `bench_corpus.py` compares, all given the same labels.

This module is not a benchmark. A method is a function of a `Problem` that returns the probability
of each class at each row, or None if it does not apply. Methods on the same graph use
`Problem.graph`, with the default graph of `GraphClassifier` (15 neighbours, self-tuning weights of
sharpness 4).
"""

import functools

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import splu
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from sklearn.semi_supervised import LabelSpreading

import corpus
import graphuq as gq
from corpus_scores import floored
from graphuq.utils.concurrency import cached_property

N_NEIGHBORS = 15
SPREADING_ALPHA = 0.2  # the default of LabelSpreading
MAX_GAUSSIAN_PROCESS = 300  # labelled rows, because time grows with their cube
RIDGE = 1e-8  # makes singular Laplacians invertible; their eigenvalues are of the order of one


class Problem:
    """A data set with some labelled rows."""

    def __init__(self, name, X, codes, graph, labelled):
        self.name, self.codes, self.graph, self.labelled = name, codes, graph, labelled
        self.features = None if isinstance(X, gq.graphs.Graph) else X
        self.given = codes[labelled]
        self.n_classes = int(codes.max()) + 1
        self.one_hot = np.eye(self.n_classes)[self.given]

    @property
    def y(self):
        """Codes of the classes, −1 where unlabelled."""
        y = np.full(len(self.codes), -1)
        y[self.labelled] = self.given
        return y

    @property
    def can_leave_out(self):
        """Whether each class keeps a label when one label is left out."""
        return np.bincount(self.given, minlength=self.n_classes).min() >= 2

    @cached_property
    def weights(self):
        return sparse.csr_matrix(self.graph.weights)


def default_graph(X):
    """Return the default graph of `GraphClassifier`, or X if it is a graph."""
    if isinstance(X, gq.graphs.Graph):
        return X
    n_neighbors = min(N_NEIGHBORS, X.shape[0] - 1)
    weights = gq.graphs.SelfTuning(4.0)
    return gq.graphs.knn_graph(X, n_neighbors, weights=weights, n_components="auto")


# ---- graphuq


def graphuq(problem, **settings):
    """Fit `GraphClassifier` with its defaults, except for the settings."""
    if problem.features is None:
        model = gq.GraphClassifier(graph=problem.graph, **settings).fit(None, problem.y)
    else:
        model = gq.GraphClassifier(**settings).fit(problem.features, problem.y)
    return model.label_distributions_


# ---- peers on the graph


def laplace_learning(problem):
    """Run Laplace learning of GraphLearning; its scores are shares of the classes."""
    import graphlearning

    return graphlearning.ssl.laplace(problem.weights).fit(problem.labelled, problem.given)


def poisson_learning(problem):
    """Run Poisson learning of GraphLearning; a softmax makes probabilities of its scores.

    The scores have any size, so they are divided by their mean absolute value. Conjugate gradients
    need a connected graph; gradient descent, the other solver of GraphLearning, does not.
    """
    import graphlearning

    solver = "conjugate_gradient" if problem.graph.n_components == 1 else "gradient_descent"
    model = graphlearning.ssl.poisson(problem.weights, solver=solver)
    scores = model.fit(problem.labelled, problem.given)
    return softmax(scores / np.abs(scores).mean(), axis=1)


def _spreading_weights(problem, own_graph):
    if not own_graph or problem.features is None:
        return problem.weights
    n_neighbors = min(N_NEIGHBORS, problem.features.shape[0])
    return kneighbors_graph(problem.features, n_neighbors, include_self=True)


def label_spreading(problem, own_graph):
    """Run LabelSpreading on its own graph of 15 neighbours or on the same graph."""
    weights = _spreading_weights(problem, own_graph)
    model = LabelSpreading(kernel=lambda X, Y=None: weights, alpha=SPREADING_ALPHA)
    return model.fit(np.zeros((len(problem.codes), 1)), problem.y).label_distributions_


# ---- the same with a temperature that is fitted by leave-one-out


def laplace_scores(problem):
    """Return log shares of Laplace learning, and those of each label given the other labels.

    With the Schur complement S of the Laplacian on the labelled nodes, the value at label i given
    the others is ``−Σ_{j≠i} S_ij y_j / S_ii``.
    """
    matrix = (laplacian(problem.weights) + RIDGE * sparse.eye(len(problem.codes))).tocsr()
    known = problem.labelled
    unknown = np.setdiff1d(np.arange(len(problem.codes)), known)
    across = matrix[unknown][:, known].toarray()
    response = splu(matrix[unknown][:, unknown].tocsc()).solve(across)
    shares = np.zeros((len(problem.codes), problem.n_classes))
    shares[unknown], shares[known] = -response @ problem.one_hot, problem.one_hot
    schur = matrix[known][:, known].toarray() - across.T @ response
    others = schur - np.diag(schur.diagonal())
    left_out = -(others @ problem.one_hot) / schur.diagonal()[:, None]
    return np.log(floored(shares)), np.log(floored(left_out))


def poisson_scores(problem):
    """Return scores of Poisson learning, and those of each label given the other labels.

    The scores are ``Σ_j g_j (y_j − ȳ)``, where g_j is a column of ``D^-½ 𝓛⁺ D^-½`` and 𝓛 the
    normalised Laplacian (Calder et al. 2020). Without label i the sum and the mean ȳ lack it.
    """
    normalised, roots = laplacian(problem.weights, normed=True, return_diag=True)
    n, known = len(problem.codes), problem.labelled
    sources = np.zeros((n, len(known)))
    sources[known, np.arange(len(known))] = 1 / roots[known]
    _, component = connected_components(problem.weights, directed=False)
    kernel = sparse.csr_array((roots, (np.arange(n), component)))  # of 𝓛, one column a component
    kernel = kernel / sparse.linalg.norm(kernel, axis=0)
    sources -= kernel @ (kernel.T @ sources)
    solver = splu((normalised + RIDGE * sparse.eye(n)).tocsc())
    green = solver.solve(sources)
    green = (green - kernel @ (kernel.T @ green)) / roots[:, None]
    y, count = problem.one_hot, len(known)
    scores = green @ (y - y.mean(axis=0))
    at_labels = green[known]
    own = at_labels.diagonal()[:, None]
    means = (y.sum(axis=0) - y) / (count - 1)
    left_out = at_labels @ y - own * y - (at_labels.sum(axis=1)[:, None] - own) * means
    size = np.abs(scores).mean()
    return scores / size, left_out / size


def spreading_scores(problem, own_graph):
    """Return log shares of LabelSpreading, and those of each label given the other labels.

    LabelSpreading converges to ``F = (1 − α)(I − αS)⁻¹ Y``. Without label i its row of Y is zero.
    """
    weights = _spreading_weights(problem, own_graph).astype(float)
    step = -laplacian(weights, normed=True).tolil()
    step.setdiag(0)
    n, known = len(problem.codes), problem.labelled
    sources = np.zeros((n, len(known)))
    sources[known, np.arange(len(known))] = 1 - SPREADING_ALPHA
    response = splu((sparse.eye(n) - SPREADING_ALPHA * step).tocsc()).solve(sources)
    at_labels = response[known] - np.diag(response[known].diagonal())
    return (
        np.log(floored(response @ problem.one_hot)),
        np.log(floored(at_labels @ problem.one_hot)),
    )


def with_temperature(problem, scores):
    """Return ``softmax(t · scores)``, with the t of the best leave-one-out log score.

    One more label of a class drawn at random is assumed, so that t stays finite if all labels are
    predicted correctly.
    """
    if not problem.can_leave_out:
        return None
    everywhere, left_out = scores(problem)

    def loss(log_slope):
        found = log_softmax(np.exp(log_slope) * left_out, axis=1)
        given = found[np.arange(len(found)), problem.given]
        return -given.sum() - found.mean()

    best = minimize_scalar(loss, bounds=(-6, 6), method="bounded")
    return softmax(np.exp(best.x) * everywhere, axis=1)


# ---- peers on the features, and the bound


def _scaled(X):
    """Return dense features divided by one number, so that their mean variance is one."""
    return X if sparse.issparse(X) else X / np.sqrt(np.mean(np.var(X, axis=0)))


def logistic_regression(problem):
    if problem.features is None:
        return None
    X = _scaled(problem.features)
    model = LogisticRegression(max_iter=2000).fit(X[problem.labelled], problem.given)
    return model.predict_proba(X)


def of_features(problem, model):
    """Run a classifier of scikit-learn on the features; classes it refuses are equally probable."""
    if problem.features is None or sparse.issparse(problem.features):
        return None
    X = _scaled(problem.features)
    return probabilities_of(model, X[problem.labelled], problem.given, X)


def probabilities_of(model, X, given, rows):
    """Return probabilities of the classes that are given; equal ones where a model refuses."""
    try:
        return clone(model).fit(X, given).predict_proba(rows)
    except (ValueError, np.linalg.LinAlgError):  # one label a class, for discriminants
        n_classes = len(np.unique(given))
        return np.full((len(rows), n_classes), 1 / n_classes)


def with_experts(problem):
    """Fit `GraphClassifier` with three of the peers on features as experts."""
    if problem.features is None or not problem.can_leave_out:
        return None
    experts = [functools.partial(probabilities_of, model) for model in OF_FEATURES.values()]
    for name, expert in zip(OF_FEATURES, experts, strict=True):
        expert.__name__ = name
    model = gq.models.Pooled(experts)
    return graphuq(problem, model=model, inference="expectation-propagation")


def nearest_neighbours(problem):
    """Return shares of the classes among 1 (up to 2 labels a class) or 5 labelled neighbours."""
    if problem.features is None:
        return None
    n_neighbors = 1 if len(problem.given) <= 2 * problem.n_classes else 5
    model = KNeighborsClassifier(n_neighbors)
    model.fit(problem.features[problem.labelled], problem.given)
    return model.predict_proba(problem.features)


def gaussian_process(problem):
    """Run GaussianProcessClassifier, one class against the rest, with a squared exponential."""
    X = problem.features
    if X is None or sparse.issparse(X) or len(problem.given) > MAX_GAUSSIAN_PROCESS:
        return None
    X = _scaled(X)
    kernel = 1.0 * RBF(np.sqrt(X.shape[1]))
    model = GaussianProcessClassifier(kernel, random_state=0)
    return model.fit(X[problem.labelled], problem.given).predict_proba(X)


def bayes_posterior(problem):
    """Return the probabilities given the true distribution: a bound for the mean, not a peer."""
    if problem.features is None:
        return None
    return corpus.bayes_posterior(problem.name, problem.features)


OF_FEATURES = {
    "logistic": LogisticRegression(max_iter=500),
    "discriminants": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "forest": RandomForestClassifier(100, random_state=0),
}
BOUND = "Bayes posterior"
METHODS = {
    "graphuq": graphuq,
    "graphuq, random labels": functools.partial(
        graphuq, model=gq.models.Average(label_design="random")
    ),
    "graphuq, by evidence": functools.partial(graphuq, model="largest-evidence"),
    "graphuq, first answer": functools.partial(graphuq, inference="expectation-propagation"),
    "Laplace learning": laplace_learning,
    "Laplace, temperature": functools.partial(with_temperature, scores=laplace_scores),
    "Poisson learning": poisson_learning,
    "Poisson, temperature": functools.partial(with_temperature, scores=poisson_scores),
    "LabelSpreading": functools.partial(label_spreading, own_graph=True),
    "LabelSpreading, temperature": functools.partial(
        with_temperature, scores=functools.partial(spreading_scores, own_graph=True)
    ),
    "spreading, same graph": functools.partial(label_spreading, own_graph=False),
    "spreading, same graph, temperature": functools.partial(
        with_temperature, scores=functools.partial(spreading_scores, own_graph=False)
    ),
    "LogisticRegression": logistic_regression,
    "LinearDiscriminantAnalysis": functools.partial(
        of_features, model=OF_FEATURES["discriminants"]
    ),
    "RandomForestClassifier": functools.partial(
        of_features, model=RandomForestClassifier(300, random_state=0)
    ),
    "gradient boosting": functools.partial(
        of_features, model=GradientBoostingClassifier(random_state=0)
    ),
    "graphuq, with experts": with_experts,
    "nearest neighbours": nearest_neighbours,
    "GaussianProcessClassifier": gaussian_process,
    BOUND: bayes_posterior,
}
