"""``gq.label``: a labelling page on this machine."""

import getpass
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.options import check_options
from graphuq.errors import require
from graphuq.labelling.accounts import Accounts
from graphuq.labelling.cards import predictions_of
from graphuq.labelling.encoders import encoder_named
from graphuq.labelling.feature_store import stored_features
from graphuq.labelling.features import check_rows, features_and_classifier
from graphuq.labelling.forecast import Forecasts
from graphuq.labelling.guidelines import guidelines_of
from graphuq.labelling.hosting import ADDRESS, Hosting
from graphuq.labelling.items import TableItems, items_of
from graphuq.labelling.known import known_labels
from graphuq.labelling.layouts import labelled_by, write_labelled
from graphuq.labelling.local_server import LocalServer
from graphuq.labelling.model import Model
from graphuq.labelling.names import check_name
from graphuq.labelling.notebook import page_text, widget
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore
from graphuq.labelling.tag_model import TagModel
from graphuq.labelling.tags import TAGS, known_tags, unknown_tags
from graphuq.utils.extras import require_extra
from graphuq.utils.progress import Progress, reporting

if TYPE_CHECKING:
    import pandas as pd


def label(
    X: Any,
    items: Any = None,
    *,
    y: Any = None,
    columns: "pd.DataFrame | None" = None,
    embed: str | None = None,
    classes: Sequence[str] = (),
    ordered: bool | Sequence[str] = False,
    tags: bool = False,
    ids: Sequence[str] | None = None,
    labels: str | Path = "labels.jsonl",
    classifier: GraphClassifier | None = None,
    rule: Any = "auto",
    user: str | None = None,
    port: int = 0,
    open_browser: bool = True,
    title: str = "graphuq label",
    overlap: float = 0.0,
    goal: float = 0.95,
    guidelines: str | Path | None = None,
    hosting: Hosting | None = None,
    progress: bool | Progress = False,
) -> "LabellingPage":
    """Label items on a page in the browser, which proposes what to label next.

    The page runs on this machine and needs no network. It is closed with `LabellingPage.close`;
    a script waits for its end with `LabellingPage.wait`.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (N, d), or None
        Features from which the graph is built, as for `GraphClassifier.fit`. None computes them
        from the items: words of texts (tf-idf), or pixels of pictures, which are good for digits
        and scans but poor for photographs.
    items : list of str, list of pathlib.Path, numpy.ndarray, pandas.DataFrame, optional
        What a person sees: texts, files of pictures, pixels of shape (N, H, W) or (N, H, W, 3),
        or a table. By default the features.
    y : array_like, shape (N,), optional
        Classes that are known already; −1, NaN, None or "" where there is none.
    columns : pandas.DataFrame, N rows, optional
        What is shown beside each item, such as sender and date of a text.
    embed : str, optional
        Model that computes features of texts or pictures, where its package is installed:
        "sentence-transformers/NAME", "timm/NAME", or a file that ends in ".onnx". They are
        computed once, and kept in the folder of ``labels``.
    classes : sequence of str, optional
        Classes that the page offers from the start; new ones can be added there.
    ordered : bool or sequence of str, default False
        Grades: all classes, from the lowest to the highest. True: classes are numbers. See
        `GraphClassifier`; beside ``classifier`` give it there.
    tags : bool, default False
        An item may have several classes, or none: tags. ``y`` is then as for
        `MultilabelClassifier`, with all tags of an item or none, and ``classifier`` has the
        settings of all tags.
    ids : sequence of str, optional
        Names of the items; by default row numbers, or names of files.
    labels : path, default "labels.jsonl"
        File of labels. Each label is written to the disk at once; an existing file is continued.
    classifier : GraphClassifier, optional
        Settings; by default expectation propagation. Samplers are slow here.
    rule : str or Rule, default "auto"
        What the page proposes next; see `graphuq.acquisition.query`.
    user : str, optional
        Name that is stored with each label; by default the name of the account.
    port : int, default 0
        Port of the page; 0 takes a free one.
    open_browser : bool, default True
    title : str
    overlap : float, default 0
        Share of the items that two people label, chosen at random. The second person sees neither
        the label of the first one nor probabilities.
    goal : float, default 0.95
        Accuracy of the predictions at which you want to stop, in (0, 1). An audit on the page says
        whether it is reached.
    guidelines : path, optional
        Text or Markdown file that the page shows beside the item.
    hosting : Hosting, optional
        People who log in, and the address at which a proxy offers the page. By default the page is
        for this machine only.
    progress : bool or callable, default False
        Progress of features that ``embed`` computes; see `graphuq.infer`.

    Returns
    -------
    LabellingPage

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or there are no features and none can be computed.
    StorageError
        If the file of labels cannot be used.
    MissingPackage
        If the extra ``graphuq[label]`` is not installed.

    Examples
    --------
    >>> import tempfile, graphuq as gq
    >>> moons = gq.datasets.two_moons(60, n_features=2, noise_std=0.05)
    >>> file = tempfile.mkdtemp() + "/labels.jsonl"
    >>> with gq.label(moons.features, labels=file, open_browser=False) as page:
    ...     page.address[:17], set(page.labels)
    ('http://127.0.0.1:', {''})
    """
    require_extra("label")
    shown = items_of(items, X, ids)
    if X is not None:
        check_rows(X, shown)
    if columns is not None:
        shown.beside = TableItems(columns, shown.ids)
    if guidelines is not None:
        guidelines_of(guidelines)
    if hosting is not None:
        Accounts(hosting.users)
    require(not (tags and ordered), "ordered", f"{ordered!r} beside tags", "leave it out")
    is_scene = shown.map_places is not None
    require(not (tags and is_scene), "tags", "given beside a scene", "give each pixel one class")
    given = known_tags(y, len(shown)) if tags else known_labels(y, len(shown))
    names = [check_name(str(name), "classes") for name in classes]
    if embed is not None:
        require(X is None, "embed", "given beside X", "leave out one of the two")
        encoder = encoder_named(embed)
        with reporting(progress) as report:
            X = stored_features(shown, encoder, Path(labels), report)
    X, classifier = features_and_classifier(X, shown, classifier, ordered)
    check_options(classifier)
    model: Model = TagModel(X, classifier, rule) if tags else Model(X, classifier, rule)
    model.classes.check({*names, *model.classes.counts(given)}, "classes")
    offered = [*dict.fromkeys([*names, *sorted(model.classes.counts(given))])]
    store = LabelStore(labels, shown, offered if tags else None)
    if isinstance(model, TagModel):
        model.unknown = lambda: unknown_tags(store.standing, store.tags or ())
    try:
        session = Session(shown, model, store, given, names, overlap)
        page = LabellingPage(session, user, port, title, goal, guidelines, hosting)
    except BaseException:
        store.close()
        raise
    page.start()
    if open_browser:
        webbrowser.open(page.address)
    return page


class LabellingPage(LocalServer):
    """A page that is being served; `graphuq.label` makes one.

    Attributes
    ----------
    address : str
        Address with its token. Who knows it, on this machine, can see items and label them. With
        `Hosting`, the address for people who log in.
    session : Session
    forecasts : Forecasts
        How many errors are left.
    """

    def __init__(
        self,
        session: Session,
        user: str | None = None,
        port: int = 0,
        title: str = "graphuq label",
        goal: float = 0.95,
        guidelines: str | Path | None = None,
        hosting: Hosting | None = None,
    ) -> None:
        self.user = check_name(_account() if user is None else user, "user")
        super().__init__(session, port, ADDRESS if hosting is None else hosting.host)
        self._title, self._hosting = title, hosting
        self.forecasts = Forecasts(session)
        from graphuq.labelling.application import (  # imports Starlette
            PageOptions,
            application,
            hosted_application,
        )

        path = None if guidelines is None else Path(guidelines)
        options = PageOptions(title, self.user, goal, path)
        try:
            if hosting is None:
                self.address = f"{self.origin}/?token={self.token}"
                app = application(session, self.token, options, self.forecasts)
            else:
                self.address = hosting.origin + "/"
                app = hosted_application(session, hosting, options, self.forecasts)
            self.use(app)
        except BaseException:
            self._socket.close()
            raise

    def start(self) -> None:
        """Serve until `close`."""
        super().start()
        self.forecasts.start()

    @property
    def is_hosted(self) -> bool:
        """Whether people log in, and a proxy offers the page."""
        return self._hosting is not None

    @property
    def labels(self) -> np.ndarray:
        """Class of each item as text, an empty string where there is none, shape (N,)."""
        found = np.full(len(self.session.items), "", dtype=object)
        for row, name in {**self.session.given, **self.session.store.labels()}.items():
            found[row] = name
        return found

    def predictions(self) -> "pd.DataFrame":
        """Return a table with a row for each item, whose columns docs/files.md describes.

        ``label`` is the most probable class by an average over models, and ``given`` what a person
        gave. The average may not know the latest labels yet: ``forecasts.wait`` waits for it.
        Until it is first there, the quick model of the page answers. Before there are labels of
        two classes there is none: class and probabilities are empty.
        """
        session = self.session
        has_tags = session.classes.order == TAGS
        return predictions_of(session.items, session.result, session.latest[1], has_tags)

    def export(self, layout: str, path: str | Path) -> None:
        """Write items and labels for another tool.

        Parameters
        ----------
        layout : {"csv", "parquet", "jsonl", "label-studio", "prodigy", "huggingface"}
            See docs/labelling_page.md.
        path : path

        Raises
        ------
        InvalidInput
            If there is no layout of this name, or it cannot hold the items.
        StorageError
            If the file cannot be written.
        """
        write_labelled(labelled_by(self.session), layout, path)

    def widget(self, height: int = 900) -> Any:
        """Return the page as a widget for Jupyter (extra ``graphuq[jupyter]``).

        The page runs in the notebook, also on another machine, and its requests go to the kernel:
        they wait while a cell runs.

        Parameters
        ----------
        height : int, default 900
            Pixels.

        Raises
        ------
        InvalidInput
            If people log in to the page.
        MissingPackage
            If anywidget is not installed.
        """
        require(self._hosting is None, "hosting", "given beside a widget", "leave it out")
        has_tags = self.session.classes.order == TAGS
        text = page_text(self._title, self.user, self.session.items, has_tags)
        return widget(text, height, self.port, self.token)

    def __repr__(self) -> str:
        return f"LabellingPage({self.address}, {len(self.session.items)} items)"


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name
        return "me"
