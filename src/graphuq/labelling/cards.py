"""What the page shows: cards, small views, the state, the map, and the table of predictions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.classifier.multilabel.table import frame_of_tags
from graphuq.labelling.items import Items
from graphuq.labelling.model import Snapshot
from graphuq.labelling.standing import Disagreement, Standing
from graphuq.labelling.tag_model import TagResult
from graphuq.results.result import Result
from graphuq.results.table import Latent, answer_columns, columns_of, frame_of

if TYPE_CHECKING:
    import pandas as pd

SHOWN_CLASSES = 60  # likeliest classes of an item
NEIGHBORS = 4  # labelled items that explain a prediction
SHOWN_DISAGREEMENTS = 50
SNIPPET = 160  # characters of a text in a small view


def card_of(
    items: Items, row: int, snapshot: Snapshot, labels: Mapping[int, str], similarity: Any
) -> dict[str, Any]:
    """Return all that the page shows of an item; similarity is None until it is computed."""
    card = thumb_of(items, row, snapshot, labels)
    card["content"] = items.shown(row)
    card["version"] = snapshot.version
    card["classes"] = _with_intervals(_ranked(row, snapshot), row, snapshot)
    labelled = [r for r in labels if r != row]
    near: list[dict[str, Any]] = []
    if labelled and similarity is not None:
        for found in similarity.closest(row, labelled, NEIGHBORS):
            closeness = float(similarity.to(row, [found])[0])
            thumb = thumb_of(items, int(found), snapshot, labels)
            near.append({**thumb, "closeness": round(max(closeness, 0.0), 3)})
    card["neighbours"] = near
    return card


def without_help(card: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Return a card without label and probabilities, which a person is to read without help.

    Parameters
    ----------
    card : mapping of str to Any
        As of `card_of`.
    reason : str
        Why: "audit", or "second" of two people.
    """
    hidden: dict[str, Any] = {"label": None, "likeliest": None, "classes": [], "neighbours": []}
    return {**card, **hidden, "blind": reason}


def remarks_of(standing: Standing, row: int) -> dict[str, Any]:
    """Return notes, flags, and different labels of an item."""
    disputed = standing.labels_of(row) if standing.is_disputed(row) else {}
    return {
        "notes": dict(standing.notes.get(row, {})),
        "flags": list(standing.flags.get(row, {})),
        "disputed": disputed,
    }


def thumb_of(
    items: Items, row: int, snapshot: Snapshot, labels: Mapping[int, str]
) -> dict[str, Any]:
    """Return a small view of an item with its label, or else its likeliest class."""
    content, likeliest = items.content(row), snapshot.likeliest(row)
    return {
        "row": row,
        "id": items.ids[row],
        "kind": content["kind"],
        "pixelated": bool(content.get("pixelated")),
        "snippet": items.summary(row)[:SNIPPET],
        "label": labels.get(row),
        "likeliest": None if likeliest is None else _share(*likeliest),
    }


def state_of(
    items: Items,
    snapshot: Snapshot,
    labels: Mapping[int, str],
    names: Sequence[str],
    counts: Mapping[str, int],
    disagreements: Sequence[Disagreement],
) -> dict[str, Any]:
    """Return counts, classes, and what to look at again."""
    return {
        "version": snapshot.version,
        "queued": snapshot.is_queued,
        "notes": list(snapshot.notes),
        "n_items": len(items),
        "n_labelled": len(labels),
        "classes": [{"name": name, "count": counts.get(name, 0)} for name in names],
        "suspects": [
            {**found, **thumb_of(items, found["row"], snapshot, labels)}
            for found in snapshot.suspects
        ],
        "disagreements": [
            {**thumb_of(items, d.row, snapshot, labels), "labels": dict(d.labels)}
            for d in disagreements[:SHOWN_DISAGREEMENTS]
        ],
    }


def predictions_of(
    items: Items,
    result: Result | TagResult | None,
    labels: Mapping[int, str],
    has_tags: bool = False,
) -> "pd.DataFrame":
    """Return a table with a row for each item, whose columns docs/files.md describes.

    Without a result, before there are labels of two classes, class and probabilities are empty.
    """
    given = np.full(len(items), None, dtype=object)
    for row, name in labels.items():
        given[row] = name
    ids = np.array(items.ids, dtype=object)
    if isinstance(result, TagResult):
        table = frame_of_tags(result.probabilities, result.classes, ids)
        return table.assign(given=given)
    if result is not None:
        return frame_of({**columns_of(result, ids), "given": given})
    empty = np.full((len(items), 1), np.nan)
    if has_tags:
        return frame_of_tags(empty[:, :0], (), ids).assign(tags=None, rank=np.nan, given=given)
    latent = Latent(empty[:, 0], empty[:, 0], np.hstack([empty, empty]))
    columns = answer_columns(
        ids,
        np.array([None], dtype=object),
        empty,
        mcse=empty,
        has_evidence=np.zeros(len(items), dtype=bool),
        given=given,
        latent=latent,
    )
    return frame_of({k: v for k, v in columns.items() if k != "probability_None"})


def map_of(
    items: Items, similarity: Any, snapshot: Snapshot, labels: Mapping[int, str]
) -> dict[str, Any]:
    """Return a place in the plane and the likeliest class of each item; pixels have a picture."""
    coordinates = similarity.coordinates() if items.map_places is None else items.map_places
    places = np.round(coordinates.astype(np.float64), 5)
    p = snapshot.probabilities
    color = np.zeros(len(places), int) if p is None else p.argmax(axis=1)
    names = list(snapshot.classes) or ["no class yet"]
    for row, label in labels.items():
        if label in names:
            color[row] = names.index(label)
    found = {
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "color": color.tolist(),
        "classes": names,
        "labelled": sorted(labels),
    }
    if items.map_colors is None:
        return found
    palette, shade = np.unique(items.map_colors, return_inverse=True)
    picture = {"palette": palette.tolist(), "color": shade.tolist()}
    return {**found, "picture": picture, "next": snapshot.queue.tolist()}


def _ranked(row: int, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the likeliest classes of an item with their probabilities."""
    if snapshot.probabilities is None:
        return []
    p = snapshot.probabilities[row]
    order = np.argsort(-p, kind="stable")[:SHOWN_CLASSES]
    return [_share(snapshot.classes[k], p[k]) for k in order]


def _share(name: str, probability: float) -> dict[str, Any]:
    return {"name": name, "probability": round(float(probability), 4)}


def _with_intervals(
    ranked: list[dict[str, Any]], row: int, snapshot: Snapshot
) -> list[dict[str, Any]]:
    """Add the ends of the 90 % interval of each probability, if they are known."""
    if snapshot.intervals is None:
        return ranked
    ends = snapshot.intervals.at(np.array([row]))[0].round(4).tolist()
    by_name = dict(zip(snapshot.classes, ends, strict=True))
    return [{**found, "interval": by_name[found["name"]]} for found in ranked]
