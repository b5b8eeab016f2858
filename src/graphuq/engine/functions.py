"""Functions of the features as columns of a basis, from sums over the parts.

They are those of `graphuq.spectrum`: each is known from a few numbers, such as means and
covariances of all rows, and has a value at any row.
"""

import numpy as np
from jaxtyping import Float

from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.graphs.column_ranges import ColumnRanges
from graphuq.graphs.principal import EXACT_WIDTH, Axes, Moments, principal_axes
from graphuq.graphs.variables import Variables
from graphuq.spectrum.exponential import (
    EXPONENTIAL,
    ExponentialColumns,
    Landmarks,
    evenly_along,
    has_exponential,
    line_of,
)
from graphuq.spectrum.powers import (
    POWER,
    POWERS,
    THIRD,
    THIRD_POWER,
    has_third_power,
    power_weights,
)
from graphuq.spectrum.whitened import WHITENED_LINEAR, whitening_weights

MAX_WIDTH = 4_000  # features up to which their covariance, of 128 MB, is computed
ROWS = 8_192  # rows whose numbers are in memory together


def compute(stage: Stage, parts: Stage, ranges: ColumnRanges, tasks: Tasks) -> None:
    """Find what the functions need, given the ranges of all rows.

    The record has the names of the blocks.

    There are none if all rows are equal, or have more than 4,000 features.
    """
    starts = parts.record["starts"]
    numbers, n_rows = range(len(starts) - 1), starts[-1]
    centre, low, high = ranges.mean, ranges.low, ranges.high
    if len(centre) > MAX_WIDTH or not (low < high).any():
        stage.finish({"blocks": []})
        return
    squares = tasks.map(_covariance_part, [(parts, p, centre) for p in numbers], "functions")
    moments = Moments(centre, np.sum(squares, axis=0) / n_rows)
    stage.save("centre", None, centre)
    stage.save("covariance", None, moments.covariance)
    axes = principal_axes(moments)
    _save_linear(stage, POWERS, axes, power_weights(axes.variances, POWER))
    axes = principal_axes(moments, standardised=True)
    _save_linear(stage, WHITENED_LINEAR, axes, whitening_weights(axes.variances))
    blocks = [POWERS, WHITENED_LINEAR]
    if has_third_power(table_like(n_rows, len(centre))):
        _save_linear(stage, THIRD_POWER, axes, power_weights(axes.variances, THIRD))
        blocks.append(THIRD_POWER)
    variables = Variables.of(moments, low, high) if len(centre) <= EXACT_WIDTH else None
    if variables is not None and has_exponential(variables):
        scales = variables.scales
        lines = tasks.map(_line_part, [(parts, p, ranges) for p in numbers], "functions")
        rows = evenly_along(np.concatenate(lines))
        landmarks = Landmarks(scales, parts.parts("features", starts).take(rows).astype(float))
        sums = tasks.map(_distances_part, [(parts, p, landmarks) for p in numbers], "functions")
        columns = landmarks.columns(landmarks.rate(sum(sums), n_rows))
        stage.save("scales", None, scales)
        stage.save("variables", None, variables.numbers)
        stage.save("landmarks", None, landmarks.rows)
        stage.save("rate", None, np.array(columns.rate))
        stage.save("turn", None, columns.turn)
        blocks.append(EXPONENTIAL)
    stage.finish({"blocks": blocks})


def table_like(n_rows: int, width: int) -> np.ndarray:
    """Return an array of this shape that takes no memory."""
    return np.broadcast_to(np.float32(0), (n_rows, width))


def values(stage: Stage, name: str, features: np.ndarray) -> Float[np.ndarray, "R m"]:
    """Return the columns of a block at rows with these features."""
    if name == EXPONENTIAL:
        scales, rows, turn = (np.asarray(stage.load(n)) for n in ("scales", "landmarks", "turn"))
        columns = ExponentialColumns(Landmarks(scales, rows), float(stage.load("rate")), turn)
        return columns.of_distances(columns.landmarks.distances(features))
    key = _key(name)
    linear = (features - stage.load("centre")) @ stage.load(f"{key}_directions")
    return np.hstack([linear, np.ones((len(linear), 1))])


def whiten(
    features: np.ndarray, centre: np.ndarray, directions: Float[np.ndarray, "d r"]
) -> Float[np.ndarray, "R r"]:
    """Return whitened rows in single precision, with what `whitening` gives."""
    return ((features - centre) @ directions).astype(np.float32)


def whitening(moments: Moments) -> Axes:
    """Return the axes of rows with these moments, each of nearly unit variance."""
    axes = principal_axes(moments, standardised=True)
    return axes._replace(directions=axes.directions * whitening_weights(axes.variances))


def _key(name: str) -> str:
    return name.replace(" ", "_")


def _save_linear(stage: Stage, name: str, axes: Axes, weights: Float[np.ndarray, " r"]) -> None:
    """Write directions whose rows have a mean square length of 1."""
    used = weights > 0
    size = np.sqrt((axes.variances[used] * weights[used] ** 2).sum())
    stage.save(f"{_key(name)}_directions", None, axes.directions[:, used] * weights[used] / size)


def _covariance_part(parts: Stage, p: int, centre: Float[np.ndarray, " d"]) -> np.ndarray:
    """Return the sum of products of centred columns over a part."""
    rows, total = parts.load("features", p), np.zeros((len(centre), len(centre)))
    for begin in range(0, len(rows), ROWS):
        some = rows[begin : begin + ROWS] - centre
        total += some.T @ some
    return total


def _line_part(parts: Stage, p: int, ranges: ColumnRanges) -> Float[np.ndarray, " R"]:
    """Return where the rows of a part lie on the line along which landmarks are chosen."""
    return line_of(parts.load("features", p), ranges)


def _distances_part(parts: Stage, p: int, landmarks: Landmarks) -> float:
    """Return the sum of the distances of all rows of a part from the landmarks."""
    rows = parts.load("features", p)
    begins = range(0, len(rows), ROWS)
    return sum(float(landmarks.distances(rows[b : b + ROWS]).sum()) for b in begins)
