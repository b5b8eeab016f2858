"""Features of items for which none were given: words of texts, pixels of pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.classifier.class_order import is_ordered, refuse_order
from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import InvalidInput, require
from graphuq.graphs import Graph
from graphuq.labelling.items import Items, TextItems
from graphuq.labelling.pictures import picture_of
from graphuq.models import OrderedAverage
from graphuq.models.likeliest import likeliest_of

SIDE = 28  # pixels of a side, of pictures that are compared
N_COMPONENTS = 50  # principal components of pixels
MANY = 100  # texts, above which a word must occur in two of them


def default_classifier(ordered: bool | Sequence[str] = False) -> GraphClassifier:
    """Return the settings of the labelling page, whose posterior is renewed in a moment.

    One model is chosen; of ordered classes it is the likeliest one of the average. The average
    itself, the default of `GraphClassifier`, would take seconds for each label.
    """
    model = likeliest_of(OrderedAverage()) if is_ordered(ordered) else "largest-evidence"
    return GraphClassifier(model=model, inference="expectation-propagation", ordered=ordered)


def features_and_classifier(
    X: Any,
    items: Items,
    classifier: GraphClassifier | None,
    ordered: bool | Sequence[str] = False,
) -> tuple[Any, GraphClassifier]:
    """Return features and settings; features are computed from the items if there are none.

    Parameters
    ----------
    X : array_like, sparse matrix or None
        Features, if they are known. None is right too for a classifier with a ready-made graph.
    items : Items
    classifier : GraphClassifier or None
        Settings; by default those of `default_classifier`.
    ordered : bool or sequence of str, default False
        Order of the classes, for the default settings.

    Raises
    ------
    InvalidInput
        If there are no features, and the items are neither texts nor pictures.
    """
    if classifier is not None:
        refuse_order(ordered, "beside classifier")
    settings = default_classifier(ordered) if classifier is None else classifier
    if X is not None or isinstance(settings.graph, Graph):
        return X, settings
    if isinstance(items, TextItems):
        if settings.metric is None and settings.weights == "auto":
            settings = GraphClassifier(**{**settings.get_params(deep=False), "metric": "cosine"})
        return text_features(items.texts), settings
    if items.has_pictures:
        return picture_features(items), settings
    raise InvalidInput("X", "not given", "give features, or texts or pictures as items")


def text_features(texts: Sequence[str]) -> sparse.csr_array:
    """Return the words of texts as sparse tf-idf vectors of unit length, for cosine distances.

    Counts are damped (1 + log count). Words of more than half of the texts are left out, and of
    more than 100 texts those that occur in one only. Texts without a word left are all alike.

    Parameters
    ----------
    texts : sequence of str, length N

    Returns
    -------
    scipy.sparse.csr_array, shape (N, number of words + 1)

    Examples
    --------
    >>> text_features(["red apple", "green apple", "red car", "a blue car", ""]).shape
    (5, 6)
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    rare = 2 if len(texts) > MANY else 1
    words = TfidfVectorizer(sublinear_tf=True, min_df=rare, max_df=0.5)
    try:
        found = sparse.csr_array(words.fit_transform(texts))
    except ValueError:  # no word is left
        raise InvalidInput(
            "items", "texts that share no words", "give features, such as embeddings of the texts"
        ) from None
    empty = np.diff(found.indptr) == 0
    return sparse.csr_array(sparse.hstack([found, sparse.csr_array(empty[:, None] * 1.0)]))


def picture_features(items: Items) -> Float[np.ndarray, "N d"]:
    """Return principal components of the pixels of pictures.

    Such features tell digits, scans and icons apart. Photographs of one class have few pixels in
    common: give features of an image model for them.

    Parameters
    ----------
    items : Items
        N items with pictures.

    Returns
    -------
    numpy.ndarray of float32, shape (N, d)
        At most 50 components.

    Raises
    ------
    StorageError
        If a file is not a picture.
    """
    from sklearn.decomposition import PCA

    pixels = reduced_pixels(items)
    n_components = min(N_COMPONENTS, *pixels.shape)
    components: np.ndarray = PCA(n_components, random_state=0).fit_transform(pixels)
    return components


def reduced_pixels(items: Items) -> Float[np.ndarray, "N d"]:
    """Return pictures reduced to 28 × 28 pixels, in [0, 1].

    Returns
    -------
    numpy.ndarray of float32, shape (N, 784) or (N, 2352)
        The second shape, with three colours, if any picture is coloured.
    """
    pixels = np.stack([_reduced(items, row) for row in range(len(items))])
    is_grey = bool((pixels == pixels[..., :1]).all())
    kept = pixels[..., :1] if is_grey else pixels
    return kept.reshape(len(pixels), -1).astype(np.float32) / 255


def _reduced(items: Items, row: int) -> np.ndarray:
    """Return a picture as SIDE × SIDE pixels of three colours."""
    from PIL import Image

    picture = picture_of(items, row, 4 * SIDE)
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX))


def check_rows(X: Any, items: Items) -> None:
    """Require that there are as many rows of features as items."""
    n_rows = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    remedy = "give one item for each row"
    require(len(items) == n_rows, "items", f"{len(items)} items for {n_rows} rows of X", remedy)
