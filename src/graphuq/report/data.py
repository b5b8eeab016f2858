"""Numbers of the nodes for the script of the report, in few bytes."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import shortened
from graphuq.report.thumbnails import thumbnails
from graphuq.results.label_numbers import class_codes, label_mean, most_uncertain
from graphuq.results.leaving_out import given_classes
from graphuq.results.result import Result
from graphuq.spectrum.basis import NodeBasis
from graphuq.spectrum.layout import node_layout

MAX_SHOWN = 50_000  # nodes on the map and in the table
MAX_BYTES = 1_400_000  # of all numbers and names of nodes
MAX_BYTES_WITH_IMAGES = 900_000  # the same, where thumbnails need room
N_TOP = 3  # classes whose probabilities are shown
N_UNCERTAIN = 1000  # least certain nodes that are always among those shown
MAX_LENGTH = 80  # characters of a node's name
N_CELLS = 60_000  # of [0, 1], for probabilities; `nodes.js` has the same number


def node_data(
    result: Result,
    names: Sequence[str],
    ids: Sequence[Any] | np.ndarray,
    *,
    next_nodes: Int[np.ndarray, " M"],
    truth: Float[np.ndarray, " N"] | None = None,
    images: Float[np.ndarray, "N h w"] | None = None,
    max_shown: int = MAX_SHOWN,
) -> dict[str, Any]:
    """Return what the map and the table show, as a dictionary for JSON.

    A million nodes do not fit in a page that opens quickly. If there are more than ``max_shown``
    nodes, or their names are long, the page has the nodes to label next, the least certain ones,
    the labelled ones and a random sample of the others.

    Parameters
    ----------
    result : Result
    names : sequence of str
        Names of all classes.
    ids : sequence of length N
        Names of the nodes.
    next_nodes : numpy.ndarray of int, shape (M,)
        Nodes to label next, in order.
    truth : numpy.ndarray, shape (N,), optional
        True labels, as in `write_report`.
    images : numpy.ndarray, shape (N, h, w), optional
    max_shown : int, default `MAX_SHOWN`

    Returns
    -------
    dict
        ``columns`` holds arrays with one entry for each node that is shown, in base 64; see
        `packed`. Probabilities are their cells, see `cells_of`. ``unknown`` is the code of a class
        that is not known. ``ids`` is None if the names of nodes are their indices.
    """
    n_top = min(N_TOP, result.posterior.n_classes)
    code = np.uint8 if result.posterior.n_classes < 255 else np.uint16
    size = 9 + 2 * n_top + (2 + n_top) * np.dtype(code).itemsize
    important = [next_nodes, most_uncertain(result, N_UNCERTAIN), result.posterior.labelled]
    order = shown_nodes(important, len(result.has_evidence), ids, size, images, max_shown)
    nodes = np.sort(order)
    probability = result.probabilities[nodes]
    top = _most_probable(result, nodes, probability, n_top)
    columns = {
        "top": top.astype(code).ravel(),
        "probability": cells_of(np.take_along_axis(probability, top, axis=1)).ravel(),
        "evidence": result.has_evidence[nodes].astype(np.uint8),
        "given": _given(result, code)[nodes],
    }
    if truth is not None:
        columns["truth"] = _codes_of_truth(result, truth, code)[nodes]
    return page_data(
        result.posterior.spectrum,
        order,
        columns,
        ids,
        labelled=result.posterior.labelled,
        next_nodes=next_nodes,
        images=images,
        n_top=n_top,
        unknown=int(np.iinfo(code).max),
        classes=[_short(name) for name in names],
    )


def shown_nodes(
    important: Sequence[Int[np.ndarray, " _"]],
    n_nodes: int,
    ids: Sequence[Any] | np.ndarray,
    size: int,
    images: np.ndarray | None,
    max_shown: int = MAX_SHOWN,
) -> Int[np.ndarray, " n"]:
    """Return the nodes that the page has room for: important ones first, then others at random.

    Parameters
    ----------
    important : sequence of numpy.ndarray of int
        Nodes in order of importance; some may be repeated.
    n_nodes : int
    ids : sequence of length N
        Names of the nodes.
    size : int
        Bytes of the columns of a node, without its name.
    images : numpy.ndarray, shape (N, h, w), or None
        Pictures, which need room too.
    max_shown : int, default `MAX_SHOWN`
    """
    cost = 4 / 3 * size + (0 if _are_indices(ids) else _bytes_of_ids(np.asarray(ids)))
    room = MAX_BYTES if images is None else MAX_BYTES_WITH_IMAGES
    every = np.concatenate([*important, np.random.default_rng(0).permutation(n_nodes)])
    _, place = np.unique(every, return_index=True)
    return np.asarray(every[np.sort(place)][: min(max_shown, int(room / cost))])


def page_data(
    basis: NodeBasis,
    order: Int[np.ndarray, " n"],
    columns: Mapping[str, np.ndarray],
    ids: Sequence[Any] | np.ndarray,
    *,
    labelled: Int[np.ndarray, " J"],
    next_nodes: Int[np.ndarray, " M"],
    images: Float[np.ndarray, "N h w"] | None,
    **values: Any,
) -> dict[str, Any]:
    """Return columns, names, places and pictures of the nodes that are shown, and own values.

    Parameters
    ----------
    basis : NodeBasis
        Basis that places the nodes on the map.
    order : numpy.ndarray of int, shape (n,)
        Nodes that are shown; the first ones get pictures.
    columns : dict of numpy.ndarray
        Unsigned integers of the nodes in ascending order.
    ids, next_nodes, images
        As for `node_data`.
    labelled : numpy.ndarray of int, shape (J,)
    **values
        Entries of the page's own.
    """
    ids, nodes, plain = np.asarray(ids), np.sort(order), _are_indices(ids)
    place = node_layout(basis, nodes, first=np.flatnonzero(np.isin(nodes, labelled)))
    columns = {
        "node": nodes.astype(np.uint32),
        **columns,
        "x": _quantised(place[:, 0]),
        "y": _quantised(place[:, 1]),
    }
    found = {
        "n_nodes": len(ids),
        "n_shown": len(nodes),
        **values,
        "ids": None if plain else [_short(str(ids[node])) for node in nodes],
        "next": np.searchsorted(nodes, next_nodes[np.isin(next_nodes, nodes)]).tolist(),
        "columns": {name: packed(values) for name, values in columns.items()},
        "thumbnails": None,
    }
    if images is not None:
        sheet = thumbnails(images, order)
        found["thumbnails"] = sheet
        place_in_sheet = np.searchsorted(nodes, order[: sheet["count"]])
        sheet["nodes"] = packed(place_in_sheet.astype(np.uint32))
    return found


def places_of(payload: dict[str, Any]) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n 2"]]:
    """Return the nodes that are shown, and their places on the map."""
    node, x, y = (unpacked(payload["columns"][name]) for name in ("node", "x", "y"))
    return node.astype(np.int64), np.stack([x, y], axis=1) / 65_535


def packed(values: np.ndarray) -> dict[str, str]:
    """Return an array of unsigned integers as its type and its bytes in base 64."""
    kinds = {1: "Uint8", 2: "Uint16", 4: "Uint32"}
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode()
    return {"type": kinds[values.dtype.itemsize], "data": data}


def unpacked(column: dict[str, str]) -> np.ndarray:
    """Return the array that `packed` has packed."""
    kind = np.dtype(column["type"].lower()).newbyteorder("<")
    return np.frombuffer(base64.b64decode(column["data"]), kind)


def _are_indices(ids: Any) -> bool:
    """Whether the names of nodes are 0, 1, 2 and so on."""
    array = np.asarray(ids)
    if array.dtype.kind in "iu":
        return bool((array == np.arange(len(array))).all())
    return all(str(value) == str(i) for i, value in enumerate(array))


def _short(text: str) -> str:
    """Return a name without its middle if it is long: names often differ at their ends."""
    return shortened(text, MAX_LENGTH)


def _bytes_of_ids(ids: np.ndarray) -> float:
    """Mean number of bytes of a name in the page, from a thousand of them."""
    sample = ids[:: max(1, len(ids) // 1000)]
    return float(np.mean([len(json.dumps(_short(str(name)))) + 1 for name in sample]))


def _most_probable(
    result: Result, nodes: Int[np.ndarray, " n"], probability: Float[np.ndarray, "n K"], n_top: int
) -> Int[np.ndarray, "n T"]:
    """Codes of the most probable classes; the first is the label, also where classes tie."""
    certain = probability.copy()
    certain[np.arange(len(nodes)), class_codes(result)[nodes]] += 2.0
    return np.asarray(np.argsort(-certain, axis=1, kind="stable")[:, :n_top])


def _given(result: Result, code: Any) -> np.ndarray:
    """Code of each node's given class; the largest number if it has none."""
    codes = np.full(len(result.has_evidence), np.iinfo(code).max, dtype=code)
    codes[result.posterior.labelled] = given_classes(result.posterior)
    return codes


def _codes_of_truth(result: Result, truth: np.ndarray, code: Any) -> np.ndarray:
    """Code of each node's true class; the largest number if it is not known."""
    known = np.isfinite(truth)
    codes = np.full(len(truth), np.iinfo(code).max, dtype=code)
    codes[known] = truth[known] > 0 if label_mean(result).ndim == 1 else truth[known]
    return codes


def cells_of(probability: np.ndarray) -> np.ndarray:
    """Return the cell of each probability, of `N_CELLS` equal ones.

    Rounding to two, three or four digits has its borders between cells, as 60,000 is a multiple of
    20,000. So the script rounds the middle of a cell as Python rounds the probability. A nearest
    multiple would be rounded twice, and .5265001 would be .527 in one place and .526 in another.
    """
    return np.clip(np.floor(np.asarray(probability) * N_CELLS), 0, N_CELLS - 1).astype(np.uint16)


def middle_of_cell(probability: np.ndarray) -> np.ndarray:
    """Return probabilities as the script of the page has them, for all that is shown twice."""
    return (cells_of(probability) + 0.5) / N_CELLS


def _quantised(values: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1] as multiples of 1/65535."""
    return np.rint(np.clip(values, 0, 1) * 65_535).astype(np.uint16)
