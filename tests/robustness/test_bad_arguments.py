"""Bad values of every argument of every part, and bad matrices for every function that takes one.

Each case is a promise: an error of graphuq, which names the argument, before any work.
"""

import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import MAX_MESSAGE, GraphuqError, InvalidInput, StorageError
from graphuq.inference import Approximation, Sampler
from graphuq.likelihoods import Likelihood
from graphuq.models import Model
from graphuq.priors import Prior
from graphuq.run.words import _callables
from robustness import hostile

pytestmark = [
    pytest.mark.usefixtures("unchecked_types"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of scikit-learn, which adds up NaN
    pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning"),
    pytest.mark.filterwarnings("ignore:X has feature names:UserWarning"),
]

KINDS = (Prior, Likelihood, Sampler, Approximation, Model)
PARTS = {  # of the library: other tests define parts of their own, which need not check numbers
    name: part
    for name, part in _callables(KINDS, "part", " ".join(gq.inference.WITH_JAX))[0].items()
    if name != "Mixture" and part.__module__.startswith("graphuq.")
}
NEVER = {
    "text": "a",
    "long text": hostile.LONG,
    "bytes": b"x",
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": -float("inf"),
    "1e300": 1e300,
    "1e-300": 1e-300,
    "25 digits": 10**25,
    "complex": 1j,
    "dict": {},
    "list": [1.0, "a"],
    "object": object(),
    "function": print,
    "class": int,
    "array of texts": np.array(["a", "b"]),
    "date": np.datetime64("2020-01-01"),
}
NEEDED = {  # arguments without a default
    "low": 1.0,
    "high": 2.0,
    "median": 1.0,
    "log_std": 1.0,
    "shape": 1.0,
    "rate": 1.0,
    "name": "gamma",
    "parameters": (1.0, 0.0, 1.0),
    "probabilities": [0.5, 0.5],
    "kernel": gq.inference.PCN(),
    "label_model": gq.likelihoods.AtomicNoise(),
    "thresholds": [-0.5, 0.5],
    "experts": ["sklearn.naive_bayes:GaussianNB"],
}


def arguments_of(part):
    return [
        name
        for name, one in inspect.signature(PARTS[part]).parameters.items()
        if one.kind is not one.VAR_KEYWORD
    ]


@pytest.mark.parametrize("kind", NEVER)
@pytest.mark.parametrize(
    ("part", "argument"), [(part, name) for part in sorted(PARTS) for name in arguments_of(part)]
)
def test_parts(part, argument, kind):
    needed = {n: NEEDED[n] for n in arguments_of(part) if n in NEEDED} | {argument: NEVER[kind]}
    if part == "DiscreteUniform":
        needed = {"low": 1, "high": 2} | {argument: NEVER[kind]}
    if part in ("Poisson", "NegativeBinomial"):
        needed = {"mean": 2.0, "shape": 1.0, "low": 1} | {argument: NEVER[kind]}
        needed = {name: needed[name] for name in arguments_of(part)}
    with pytest.raises(GraphuqError) as caught:
        PARTS[part](**needed)
    assert len(str(caught.value)) <= MAX_MESSAGE


N = hostile.N
MATRICES = {
    "None": None,
    "text": "features.csv",
    "long text": hostile.LONG,
    "bytes": b"1234",
    "number": 5,
    "dict": {"a": 1},
    "set": {1, 2},
    "generator": (x for x in range(3)),
    "function": print,
    "class": int,
    "empty list": [],
    "ragged list": [[1.0, 2.0], [3.0]],
    "list of texts": [["1", "2"], ["3", "4"]],
    "list of lists of lists": [[[1.0]], [[2.0]]],
    "complex": hostile.MOONS.features * 1j,
    "texts": hostile.MOONS.features.astype(str),
    "bytes array": hostile.MOONS.features.astype("S"),
    "dates": (100 * hostile.MOONS.features).astype("M8[D]"),
    "records": np.zeros(N, [("a", float)]),
    "objects": np.array([[object()] * 2] * N),
    "objects of texts": np.array([["1", "2"]] * N, dtype=object),
    "NaN": hostile.MOONS.features * np.nan,
    "one NaN": hostile.replaced(hostile.MOONS.features, (3, 1), np.nan),
    "infinite": hostile.MOONS.features * np.inf,
    "one infinite": hostile.replaced(hostile.MOONS.features, (3, 1), -np.inf),
    "too large": hostile.MOONS.features * 1e200,
    "one too large": hostile.replaced(hostile.MOONS.features, (3, 1), 1e200),
    "too small": hostile.MOONS.features * 1e-200,
    "one axis": hostile.MOONS.features.ravel(),
    "three axes": hostile.MOONS.features[..., None],
    "no rows": hostile.MOONS.features[:0],
    "no columns": hostile.MOONS.features[:, :0],
    "one row": hostile.MOONS.features[:1],
    "frame of texts": pd.DataFrame({"a": ["1", "2"] * 20, "b": 1.0}),
    "frame of dates": pd.DataFrame({"a": pd.date_range("2020", periods=N)}),
    "frame of objects": pd.DataFrame({"a": [object()] * N}),
    "frame with a gap": pd.DataFrame({"a": [None, *range(N - 1)], "b": 1.0}),
    "frame without columns": pd.DataFrame(index=range(N)),
    "a graph": hostile.gq.graphs.ring_graph(N),
    "masked": np.ma.masked_less(hostile.MOONS.features, 0),
}


def tampered(name):
    """Return a sparse matrix whose parts were changed after it was made."""
    matrix = hostile.RING.copy()
    if name == "coordinates":
        matrix = matrix.tocoo()
        matrix.coords = (hostile.replaced(matrix.coords[0], 3, 10**7), matrix.coords[1])
    elif name == "rows":
        matrix.indptr = hostile.replaced(matrix.indptr, slice(5, 20), 10**7)
    elif name == "negative":
        matrix.indices = hostile.replaced(matrix.indices, 3, -5_000_000)
    elif name == "columns":
        matrix = matrix.tocsc()
        matrix.indices = hostile.replaced(matrix.indices, 3, 10**7)
    elif name == "blocks":
        matrix = matrix.tobsr()
        matrix.indices = hostile.replaced(matrix.indices, 3, 10**7)
    else:
        matrix.data = matrix.data * 1j
    return matrix


for part in ("coordinates", "rows", "negative", "columns", "blocks", "complex data"):
    MATRICES[f"sparse, {part}"] = tampered(part)
FUNCTIONS = {
    "knn_graph": lambda X: gq.graphs.knn_graph(X),
    "complete_graph": lambda X: gq.graphs.complete_graph(X),
    "epsilon_graph": lambda X: gq.graphs.epsilon_graph(X, radius=0.5),
    "from_adjacency": lambda X: gq.graphs.from_adjacency(X),
    "from_distances": lambda X: gq.graphs.from_distances(X),
    "fit": lambda X: gq.GraphClassifier(
        model="largest-evidence", inference="laplace", missing_label=""
    ).fit(X, hostile.LABELS),
    "predict": lambda X: fitted().predict(X),
    "predict_proba": lambda X: fitted().predict_proba(X),
}
FITTED = []


def fitted():
    if not FITTED:
        classifier = gq.GraphClassifier(
            model="largest-evidence", inference="laplace", missing_label=""
        )
        FITTED.append(classifier.fit(hostile.MOONS.features, hostile.LABELS))
    return FITTED[0]


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_matrices(function, kind):
    row_for_prediction = function.startswith("predict") and kind == "one row"
    if row_for_prediction:
        FUNCTIONS[function](MATRICES[kind])
        return
    with pytest.raises((GraphuqError, ValueError, TypeError)) as caught:
        FUNCTIONS[function](copy.copy(MATRICES[kind]) if kind != "generator" else iter([1.0]))
    estimator = function in ("fit", "predict", "predict_proba")  # scikit-learn's own messages
    assert estimator or isinstance(caught.value, GraphuqError), caught.value
    assert estimator or len(str(caught.value)) <= MAX_MESSAGE


LENGTHS = {
    "max_classes": (0, 1, -1, 10**20, 2.5, "a", True),
    "random_state": (-1, 10**20, "a", 1.5),
    "n_neighbors": (0, -1, 10**20, 1.5, "a", float("nan"), None, True),
    "n_eigenpairs": (0, -1, 10**20, 1.5, "a", float("nan"), True),
    "tail_eigenvalue": (0, -1, float("inf"), float("nan"), 1e300, "a", None, [1]),
    "graph": ("foo", 1, None, b"knn", [], object()),
    "weights": ("foo", 1, None, b"knn", [], object()),
    "metric": ("foo", 1, b"euclidean", [], object()),
    "laplacian": ("foo", 1, None, b"symmetric", [], object()),
    "model": ("foo", 1, None, [], object(), gq.models.Average, gq.priors.Matern()),
    "inference": ("foo", 1, [], object(), gq.inference.PCN, gq.priors.Matern()),
    "out_of_sample": ("foo", 1, None, [], object()),
    "class_proportions": ("foo", [0.5], [0.5, 0.6], [-1, 2], {"left": 1}, [float("nan")] * 2),
}
SETTINGS = {
    "n_samples": (0, -5, 3, 10**20, 1.5, "a", True, float("nan"), [4]),
    "n_chains": (0, -1, 10**20, 1.5, "a", float("nan")),
    "n_warmup": (-1, 10**20, 1.5, "a", float("nan")),
    "thin": (0, -1, 10**20, 1.5, "a", float("nan")),
    "precision": ("float16", "double", 64, float, b"float32"),
    "stop": ("foo", 1, True, object()),
    "method": (gq.inference.Laplace(), "laplace", "foo", 1),
}
RADII = (0, -1, float("inf"), float("nan"), "a", True, [1])


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in LENGTHS.items() for value in values],
    ids=lambda value: str(value)[:20],
)
def test_parameters_of_the_classifier(name, value):
    """A parameter is refused also by a method that would not use it."""
    classifier = gq.GraphClassifier(missing_label="", **{"inference": "laplace", name: value})
    with pytest.raises(GraphuqError) as caught:
        classifier.fit(hostile.MOONS.features, hostile.LABELS)
    assert len(str(caught.value)) <= MAX_MESSAGE


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in SETTINGS.items() for value in values],
    ids=lambda value: str(value)[:20],
)
def test_settings_of_sampling(name, value):
    def fit():
        sampling = gq.inference.MCMC(**{name: value})
        classifier = gq.GraphClassifier(missing_label="", inference=sampling)
        classifier.fit(hostile.MOONS.features, hostile.LABELS)

    with pytest.raises(GraphuqError) as caught:
        fit()
    assert len(str(caught.value)) <= MAX_MESSAGE


@pytest.mark.parametrize("radius", RADII, ids=str)
def test_radius(radius):
    with pytest.raises(GraphuqError):
        gq.graphs.Epsilon(radius)


MODEL_PARTS = {
    "prior": ("foo", 1, None, [], object(), gq.priors.Matern, gq.likelihoods.Probit()),
    "likelihood": ("foo", 1, None, [], object(), gq.likelihoods.Probit, gq.priors.Matern()),
}


@pytest.mark.parametrize("model", [gq.models.LargestEvidence, gq.models.Fixed])
@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in MODEL_PARTS.items() for value in values],
    ids=lambda value: str(value)[:20],
)
def test_parts_of_a_model(model, name, value):
    with pytest.raises(InvalidInput, match=name) as caught:
        model(**{name: value})
    assert len(str(caught.value)) <= MAX_MESSAGE


@pytest.mark.parametrize("seed", [-1, 2**63, 10**30, 1.5, "a", None, [1]])
def test_seeds(seed, posterior):
    for call in (
        lambda: gq.infer(posterior, "laplace", rng=seed),
        lambda: gq.datasets.two_moons(20, rng=seed),
        lambda: gq.graphs.small_world_graph(20, rng=seed),
    ):
        with pytest.raises(InvalidInput, match="rng"):
            call()


@pytest.mark.parametrize("value", [sparse.csr_array((3, 3)), np.zeros(3), "x" * 10**6, {1: 2}])
def test_messages_are_short_and_survive_another_process(value):
    error = InvalidInput("argument" * 1000, f"{value!r}", "remedy " * 1000)
    again = pickle.loads(pickle.dumps(error))
    assert len(str(error)) <= MAX_MESSAGE
    assert (str(again), again.problem) == (str(error), error.problem)
    long = StorageError("x" * 10**6)
    assert len(str(long)) <= MAX_MESSAGE
    assert str(pickle.loads(pickle.dumps(long))) == str(long)
