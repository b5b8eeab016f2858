"""How right is an answer far from labels? Labels of whole squares are left out."""

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import cKDTree

from graphuq.classifier.place_folds import PlaceKFold
from graphuq.errors import IncompatibleParts, UnlabelledScoreWarning, require
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.leaving_out import given_classes
from graphuq.results.trust.base import Check
from graphuq.results.trust.chance import MAX_ERROR_AMBER, N_SIMULATED, bounds_of_error
from graphuq.utils.checks import require_integer
from graphuq.utils.user_warnings import held_warnings

if TYPE_CHECKING:
    from graphuq.classifier.classifier import GraphClassifier

FAR = 0.9  # quantile of the distances of nodes to labels that a label in a square's centre has
MIN_LABELS = 20  # that are left out, to tell anything
FLOOR = 1e-3  # of the probability of a class, in the log score


class PlacesLeftOut(NamedTuple):
    """What an answer says of labels, when all labels of their square are left out.

    Attributes
    ----------
    probability : numpy.ndarray, shape (M,)
        Largest probability of each label that was left out.
    is_right : numpy.ndarray of bool, shape (M,)
        Whether that is its class.
    log_score : float
        Mean of minus the log probability of its class, which is at least 0.001.
    one_by_one : tuple of float
        Accuracy and log score of the same labels if each is left out alone; NaN if unknown.
    group : numpy.ndarray of int, shape (M,)
        Square and class of each label.
    distance : float
        Median distance of these labels to the nearest one that was not left out.
    side : float
        Of the squares.
    """

    probability: Float[np.ndarray, " M"]
    is_right: np.ndarray
    log_score: float
    one_by_one: tuple[float, float]
    group: Int[np.ndarray, " M"]
    distance: float
    side: float

    @property
    def accuracy(self) -> float:
        """Share of the labels whose class is the most probable one; NaN without any."""
        return float(self.is_right.mean()) if len(self.is_right) else float("nan")


def leave_places_out(
    classifier: "GraphClassifier", places: Any, side: float | None = None, n_splits: int = 3
) -> PlacesLeftOut:
    """Return what an answer says of labels, when all labels of their square are left out.

    Labels near each other confirm each other, so that labels left out one by one promise too much
    for places without any label nearby. Graph and eigenpairs stay; an average is made again, by
    expectation propagation, without the labels of each fold.

    Parameters
    ----------
    classifier : GraphClassifier
        Fitted; it is not changed.
    places : array_like, shape (N, 2)
        Coordinates of the nodes.
    side : float, optional
        Side of the squares. By default twice the distance within which nine of ten nodes have a
        label: a label in the centre of a square is then as far from others.
    n_splits : int, default 3
        Number of folds, to which the squares are dealt at random; fewer if there are fewer squares.

    Returns
    -------
    PlacesLeftOut
        Without labels of classes that are only in the squares of one fold.

    Raises
    ------
    InvalidInput
        If there is not one place a node, or all labels are in one square.
    """
    require_integer("n_splits", n_splits, 2)
    posterior = classifier.result_.posterior
    labelled, places = np.asarray(posterior.labelled), np.asarray(places, dtype=np.float64)
    n_nodes = len(classifier.result_.has_evidence)
    require(
        places.shape == (n_nodes, 2),
        "places",
        f"shape {places.shape} for {n_nodes} nodes",
        "give two coordinates a node",
    )
    own = places[labelled]
    if side is None:
        side = max(2 * float(np.quantile(cKDTree(own).query(places)[0], FAR)), 1e-9)
    squares = np.unique(np.floor((own - own.min(axis=0)) / side), axis=0, return_inverse=True)[1]
    squares = squares.ravel()
    n_squares = int(squares.max()) + 1
    require(n_squares > 1, "side", f"{side:.4g}, so that all labels are in one square", "reduce it")
    folds = PlaceKFold(own - own.min(axis=0), side, min(n_splits, n_squares))
    codes = given_classes(posterior)
    names = classifier.classes_[codes]
    found: list[tuple[Any, ...]] = []
    with held_warnings(UnlabelledScoreWarning):  # a class in one fold is left out below
        tests = [test for _, test in folds.split(own, codes)]
    for test in tests:
        kept = np.setdiff1d(np.arange(len(labelled)), test)
        if len(np.unique(codes[kept])) < 2:
            continue
        fewer = copy.copy(classifier)
        fewer.add_labels(labelled[test], np.full(len(test), None))
        known = test[np.isin(names[test], fewer.classes_)]
        p = fewer.label_distributions_[labelled[known]]
        column = np.searchsorted(fewer.classes_, names[known])
        near = cKDTree(own[kept]).query(own[known])[0]
        found.append((p.max(axis=1), p.argmax(axis=1) == column,
                      p[np.arange(len(known)), column], known, near))  # fmt: skip
    columns = [np.concatenate(part) for part in zip(*found, strict=True)] or [np.empty(0)] * 5
    top, right, given, rows, near = columns
    rows = rows.astype(int)
    return PlacesLeftOut(
        probability=top,
        is_right=right.astype(bool),
        log_score=_log_score(given),
        one_by_one=_left_out_alone(classifier, rows),
        group=squares[rows] * len(classifier.classes_) + codes[rows],
        distance=float(np.median(near)) if len(rows) else float("nan"),
        side=float(side),
    )


def _log_score(given: Float[np.ndarray, " M"]) -> float:
    return float(-np.log(np.maximum(given, FLOOR)).mean()) if len(given) else float("nan")


def _left_out_alone(
    classifier: "GraphClassifier", rows: Int[np.ndarray, " M"]
) -> tuple[float, float]:
    """Return accuracy and log score of some labels, each given all others."""
    try:
        p = kept_leave_one_out(classifier.result_).of_class[rows]
    except IncompatibleParts:
        return float("nan"), float("nan")
    if not len(rows):
        return float("nan"), float("nan")
    codes = given_classes(classifier.result_.posterior)[rows]
    right = float((p.argmax(axis=1) == codes).mean())
    return right, _log_score(p[np.arange(len(rows)), codes])


def check_places(found: PlacesLeftOut, unit: str) -> Check:
    """Check that the answer holds for labels in squares whose labels are left out.

    The share that is right is compared with that of the same labels, each left out alone, and with
    their mean probability. By chance the latter differs, too: labels of one class in one square are
    taken to be right or wrong together.

    Parameters
    ----------
    found : PlacesLeftOut
    unit : str
        Of the distance, in the plural.
    """
    if len(found.is_right) < MIN_LABELS:
        sentence = f"Only {len(found.is_right)} labels have others of their class in other squares"
        return Check(
            None, None, "amber", f"{sentence}: how right places far from labels are is unknown."
        )
    mean, right = float(found.probability.mean()), found.accuracy
    rng, group = np.random.default_rng(0), np.unique(found.group, return_inverse=True)[1]
    drawn = rng.random((N_SIMULATED, group.max() + 1))[:, group] < found.probability
    by_chance = np.abs(drawn.mean(axis=1) - mean)
    amber, _, why = bounds_of_error(by_chance, "labels")
    alone = found.one_by_one[0]
    one_by_one = "" if np.isnan(alone) else f" ({alone:.0%} if each is left out alone)"
    numbers = (
        f"with all labels of squares of {found.side:.3g} {unit} left out, {right:.0%} of them are "
        f"right{one_by_one} and their mean probability is {mean:.0%}, at a median of "
        f"{found.distance:.3g} {unit} from other labels"
    )
    remedy = "Rely on places near labels, or label some in the parts without any."
    if mean - right > amber:
        sentence = f"Far from labels the answer is too sure: {numbers}. {remedy}"
        return Check(mean - right, amber, "amber", sentence)
    if alone - right > MAX_ERROR_AMBER:
        sentence = f"Labels near each other confirm each other: {numbers}. {remedy}"
        return Check(alone - right, MAX_ERROR_AMBER, "amber", sentence)
    sentence = f"The answer holds far from labels: {numbers}{why}."
    return Check(mean - right, amber, "green", sentence)
