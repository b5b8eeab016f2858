"""Parameters of a classifier beside a store: what is served, and what is needed."""

from typing import Any

from graphuq.classifier.options import DEFAULT_NEIGHBORS, is_word, model_of
from graphuq.engine import pairs
from graphuq.engine.resources import Estimate, estimate
from graphuq.engine.settings import Store
from graphuq.engine.sources import Source, open_source
from graphuq.engine.tasks import Tasks
from graphuq.errors import require
from graphuq.graphs.containers import is_frame, is_polars
from graphuq.inference import MCMC, ExpectationPropagation
from graphuq.models import Model
from graphuq.run.words import inference_from
from graphuq.spectrum.solve import DEFAULT_EIGENPAIRS
from graphuq.utils.checks import check_seed, require_integer
from graphuq.utils.extras import require_extra

SERVED = {
    "graph": "knn", "weights": "auto", "metric": None, "laplacian": "symmetric",
    "tail_eigenvalue": False, "max_classes": None, "ordered": False, "class_proportions": None,
    "out_of_sample": "mean",
}  # fmt: skip
"""Parameters of the classifier that have one value beside a store."""


def check_parameters(classifier: Any, sample_weight: Any = None) -> tuple[Store, Model]:
    """Return the store and the model; refuse parameters that have no meaning beside a store.

    Raises
    ------
    InvalidInput
        If there is one, or a value is out of range.
    """
    require_extra("store")
    store, model = Store.of(classifier.store), model_of(classifier.model)
    for name, only in SERVED.items():
        value = getattr(classifier, name)
        require(
            isinstance(value, type(only)) and value == only,
            name,
            f"{value!r} beside a store, where it can only be {only!r}",
            "leave it out, or leave store out",
        )
    require(sample_weight is None, "sample_weight", "given beside a store", "leave it out")
    for name in ("n_neighbors", "n_eigenpairs"):
        value = getattr(classifier, name)
        if not is_word(value, "auto"):
            require_integer(name, value, 1 + (name == "n_eigenpairs"))
    check_seed("random_state", classifier.random_state)
    require(
        model.needs_eigenpairs or not is_word(classifier.n_eigenpairs, "auto"),
        "model",
        f"{model!r}, which is solved exactly",
        "give n_eigenpairs, or another prior",
    )
    likelihood = getattr(model, "likelihood", None)
    require(
        not (model.needs_features or getattr(likelihood, "uses_all_nodes", False)),
        "model",
        f"{model!r} beside a store: it needs all rows at a time",
        "use another model, or leave store out",
    )
    inference_of(classifier)
    Tasks(classifier.client)  # raise for another kind of client
    return store, model


def inference_of(classifier: Any) -> Any:
    """Return the method; "auto" is expectation propagation, so that large tables take minutes."""
    if is_word(classifier.inference, "auto"):
        return ExpectationPropagation()
    found = inference_from(classifier.inference)
    if isinstance(found, MCMC):
        require(
            found.on_first_result is None and found.checkpoint is None,
            "inference",
            f"{found!r} beside a store, which keeps what is done",
            "leave on_first_result and checkpoint out",
        )
    return found


def n_neighbors_of(classifier: Any) -> int:
    """Return the number of neighbours of a row."""
    given = classifier.n_neighbors
    return DEFAULT_NEIGHBORS["knn"] if is_word(given, "auto") else int(given)


def n_eigenpairs_of(classifier: Any) -> int | None:
    """Return the number of eigenpairs, or None for the default."""
    return None if is_word(classifier.n_eigenpairs, "auto") else int(classifier.n_eigenpairs)


def needed_for(classifier: Any, table: Source) -> Estimate:
    """Return the memory and disk that a fit needs."""
    store = Store.of(classifier.store)
    n_columns = n_eigenpairs_of(classifier) or DEFAULT_EIGENPAIRS
    n_columns += max(pairs.MIN_SPARE, round(pairs.SPARE_SHARE * n_columns))
    n_workers = Tasks(classifier.client).n_workers
    return estimate(
        table.n_rows, table.width, n_neighbors_of(classifier), n_columns, n_workers,
        store.n_parts, store.memory,
    )  # fmt: skip


def table_of(X: Any, y: Any, store: Store) -> tuple[Source, Any]:
    """Return a table in blocks, and labels; those in a column of a frame are taken out of it."""
    special = [*([y] if isinstance(y, str) else []), *store.no_features]
    if isinstance(y, str) and (is_frame(X) or is_polars(X)):
        require(y in X.columns, "y", f"no column {y!r}", "name a column of X")
        y = X[y]
    return open_source(X, special), y
