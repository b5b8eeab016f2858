"""What the page shows of items: cards, small views, the map, and the course of the errors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.labelling.items import Items
from graphuq.labelling.model import Snapshot
from graphuq.labelling.records import Record

SHOWN_CLASSES = 60  # likeliest classes of an item
NEIGHBORS = 4  # labelled items that explain a prediction
SNIPPET = 160  # characters of a text in a small view


def card_of(
    items: Items, row: int, snapshot: Snapshot, labels: Mapping[int, str], similarity: Any
) -> dict[str, Any]:
    """Return all that the page shows of an item; similarity is None until it is computed."""
    card = thumb_of(items, row, snapshot, labels)
    card["content"] = items.content(row)
    card["version"] = snapshot.version
    card["classes"] = _ranked(row, snapshot)
    labelled = [r for r in labels if r != row]
    near: list[dict[str, Any]] = []
    if labelled and similarity is not None:
        for found in similarity.closest(row, labelled, NEIGHBORS):
            closeness = float(similarity.to(row, [found])[0])
            thumb = thumb_of(items, int(found), snapshot, labels)
            near.append({**thumb, "closeness": round(max(closeness, 0.0), 3)})
    card["neighbours"] = near
    return card


def thumb_of(
    items: Items, row: int, snapshot: Snapshot, labels: Mapping[int, str]
) -> dict[str, Any]:
    """Return a small view of an item with its label, or else its likeliest class."""
    content = items.content(row)
    ranked = _ranked(row, snapshot)
    return {
        "row": row,
        "id": items.ids[row],
        "kind": content["kind"],
        "pixelated": bool(content.get("pixelated")),
        "snippet": items.words(row)[:SNIPPET],
        "label": labels.get(row),
        "likeliest": ranked[0] if ranked else None,
    }


def map_of(
    coordinates: Float[np.ndarray, "N 2"], snapshot: Snapshot, labels: Mapping[int, str]
) -> dict[str, Any]:
    """Return a place in the plane and the likeliest class of each item."""
    places = np.round(coordinates.astype(np.float64), 5)
    p = snapshot.probabilities
    color = np.zeros(len(places), int) if p is None else p.argmax(axis=1)
    names = list(snapshot.classes) or ["no class yet"]
    for row, label in labels.items():
        if label in names:
            color[row] = names.index(label)
    return {
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "color": color.tolist(),
        "classes": names,
        "labelled": sorted(labels),
    }


def history_of(records: Sequence[Record], given: Mapping[int, str]) -> dict[int, list[float]]:
    """Return the expected errors that were shown, by the number of labels at that time."""
    found: dict[int, list[float]] = {}
    labelled = set(given)
    for record in records:
        if record.expected_errors is not None:
            value = float(record.expected_errors)
            found[len(labelled)] = [value, value, value]
        if record.label is None:
            labelled.discard(record.row)
        else:
            labelled.add(record.row)
    return found


def _ranked(row: int, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the likeliest classes of an item with their probabilities."""
    if snapshot.probabilities is None:
        return []
    p = snapshot.probabilities[row]
    order = np.argsort(-p, kind="stable")[:SHOWN_CLASSES]
    return [{"name": snapshot.classes[k], "probability": round(float(p[k]), 4)} for k in order]
