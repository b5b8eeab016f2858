"""``gq.label_studio.serve``: a model that a running Label Studio asks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import require
from graphuq.labelling.features import check_rows, features_and_classifier
from graphuq.labelling.items import TextItems, items_of
from graphuq.labelling.known import known_labels
from graphuq.labelling.local_server import LocalServer
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore
from graphuq.utils.extras import require_extra


def serve(
    X: Any,
    items: Any = None,
    *,
    keys: Sequence[str] | None = None,
    field: str | None = None,
    y: Any = None,
    labels: str | Path = "label-studio.jsonl",
    classifier: GraphClassifier | None = None,
    port: int = 0,
) -> "ModelServer":
    """Serve predictions to a Label Studio on this machine, and take its annotations.

    Add the address as a model in the settings of the project, and choose uncertainty sampling:
    Label Studio then shows first what graphuq would label next. It tells each annotation at once,
    and the posterior is renewed in the background.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (N, d), or None
        Features of all tasks; None computes them from the items, as for `graphuq.label`.
    items : list of str, list of pathlib.Path, numpy.ndarray or pandas.DataFrame, optional
        The items of all tasks.
    keys : sequence of str, length N, optional
        Value that names each item in the data of a task; by default the texts, or the names of
        files, or row numbers.
    field : str, optional
        Field of a task's data that holds the key; by default the one that the project shows.
    y : array_like, shape (N,), optional
        Classes that are known already.
    labels : path, default "label-studio.jsonl"
        File of labels, which is continued; see `graphuq.label`.
    classifier : GraphClassifier, optional
        Settings; by default expectation propagation.
    port : int, default 0
        0 takes a free one.

    Returns
    -------
    ModelServer

    Raises
    ------
    InvalidInput
        If an argument cannot be used.
    StorageError
        If the file of labels cannot be used.
    MissingPackage
        If the extra ``graphuq[label]`` is not installed.

    Examples
    --------
    >>> import tempfile, graphuq as gq
    >>> moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.05)
    >>> file = tempfile.mkdtemp() + "/labels.jsonl"
    >>> with gq.label_studio.serve(moons.features, labels=file, field="row") as server:
    ...     server.address[:17]
    'http://127.0.0.1:'
    """
    require_extra("label")
    shown = items_of(items, X)
    if X is not None:
        check_rows(X, shown)
    if keys is None:
        keys = shown.texts if isinstance(shown, TextItems) else shown.ids
    names = [str(key) for key in keys]
    require(len(names) == len(shown), "keys", f"{len(names)} values", f"give {len(shown)}")
    repeated = len(names) - len(set(names))
    require(repeated == 0, "keys", f"{repeated} values repeat",
            "give keys= that differ, and the field= of the tasks that holds them")  # fmt: skip
    given = known_labels(y, len(shown))
    X, classifier = features_and_classifier(X, shown, classifier)
    store = LabelStore(labels, shown)
    server = ModelServer(Session(shown, Model(X, classifier), store, given), names, field, port)
    server.start()
    return server


class ModelServer(LocalServer):
    """A model that is being served; `serve` makes one.

    Attributes
    ----------
    address : str
        Address to give to Label Studio. Who knows it, on this machine, can read and add labels.
    session : Session
    """

    def __init__(
        self, session: Session, keys: Sequence[str], field: str | None = None, port: int = 0
    ) -> None:
        super().__init__(session, port)
        self.address = f"{self.origin}/{self.token}"
        from graphuq.labelling.label_studio.backend import Backend, application

        self.use(application(Backend(session, keys, field), self.token))

    def __repr__(self) -> str:
        return f"ModelServer({self.address}, {len(self.session.items)} items)"
