"""R-hat and effective sample sizes of many functionals in one call.

Rank-normalised, split and folded, with Geyer's initial monotone sequence, as Vehtari, Gelman,
Simpson, Carpenter & Bürkner (2021) define them. The numbers equal ArviZ's. ArviZ computes them one
functional at a time, which takes longer than sampling a small posterior.
"""

import os

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from graphuq.errors import require
from graphuq.utils.arrays import parallel_map

TAILS = (0.05, 0.95)  # quantiles whose indicators give the tail effective sample size
FEW_VALUES = (
    20  # distinct values; with fewer, quantiles are ties and the bulk size is used for the tail
)
BLOCK_ELEMENTS = 2_000_000  # functionals × draws in one block


def convergence_of(
    functionals: dict[str, Float[np.ndarray, "C S"]],
) -> dict[str, dict[str, float]]:
    """Return R-hat and effective sample sizes of numbers that chains have drawn.

    R-hat is rank-normalised and split (Vehtari et al. 2021). `Result.convergence_of` is the
    table of the functionals that graphuq monitors; this one takes functionals of your own.

    Parameters
    ----------
    functionals : dict of str to numpy.ndarray, shape (C, S)
        For each name S >= 4 draws of C chains, all of one shape.

    Returns
    -------
    dict
        A dictionary ``{"rhat", "ess_bulk", "ess_tail"}`` for each name. Constant functionals, such
        as a step likelihood that all draws fit, are left out.

    Raises
    ------
    InvalidInput
        If the draws of a functional have another shape, or are fewer than 4.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> table = gq.results.convergence_of({"good": draws, "bad": draws + np.arange(4.0)[:, None]})
    >>> table["good"]["rhat"] < 1.01 < table["bad"]["rhat"]
    True
    """
    shapes = {name: np.shape(values) for name, values in functionals.items()}
    first = next(iter(shapes.values()), (0, 0))
    for name, shape in shapes.items():
        require(
            len(shape) == 2 and shape == first and shape[1] >= 4,
            "functionals",
            f"{name!r} has shape {shape}",
            "give 4 draws or more, in arrays of one shape (chains, draws)",
        )
    moving = {name: values for name, values in functionals.items() if np.ptp(values) != 0}
    if not moving:
        return {}
    table = convergence(np.stack(list(moving.values())).astype(np.float64))
    names = ("rhat", "ess_bulk", "ess_tail")
    return {
        name: dict(zip(names, row.tolist(), strict=True))
        for name, row in zip(moving, table, strict=True)
    }


def convergence(values: Float[np.ndarray, "F C S"]) -> Float[np.ndarray, "F 3"]:
    """Return R-hat, bulk and tail effective sample size of each functional.

    Parameters
    ----------
    values : array, shape (F, C, S)
        F functionals of C chains with S draws each; S is at least 4.

    Returns
    -------
    array, shape (F, 3)
        R-hat is NaN for a single chain. All three are NaN for a functional with a NaN value.
    """
    if not len(values):
        return np.empty((0, 3))
    at_once = min(BLOCK_ELEMENTS // values[0].size, -(-len(values) // (os.cpu_count() or 1)))
    parts = range(0, len(values), max(1, at_once))
    return np.concatenate(
        parallel_map(lambda begin: _convergence(values[begin : begin + parts.step]), parts)
    )


def _convergence(values: Float[np.ndarray, "F C S"]) -> Float[np.ndarray, "F 3"]:
    split = _split(values)
    flat = split.reshape(len(split), -1)
    order = np.argsort(flat, axis=1)
    in_order = np.take_along_axis(flat, order, axis=1)
    scores, few = _normal_scores(in_order, order, split.shape)
    # The folded values fall and then rise: two sorted runs, which a stable sort merges.
    size = flat.shape[1]
    middle = (in_order[:, [(size - 1) // 2]] + in_order[:, [size // 2]]) / 2
    folded = np.abs(in_order - middle)
    turn = np.argsort(folded, axis=1, kind="stable")
    folded, turned = (np.take_along_axis(part, turn, axis=1) for part in (folded, order))
    rhat = np.maximum(_rhat(scores), _rhat(_normal_scores(folded, turned, split.shape)[0]))
    bulk = _effective_size(scores)
    quantiles = np.quantile(values, TAILS, axis=(1, 2))
    tails = [_effective_size((split <= q[:, None, None]).astype(float)) for q in quantiles]
    tail = np.where(few, bulk, np.minimum(*tails))
    if values.shape[1] == 1:
        rhat[:] = np.nan
    table = np.stack([rhat, bulk, tail], axis=1)
    table[np.isnan(values).any(axis=(1, 2))] = np.nan
    return table


def _split(values: Float[np.ndarray, "F C S"]) -> Float[np.ndarray, "F D H"]:
    """Return each chain as two: its first half and its last half."""
    half = values.shape[2] // 2
    return np.concatenate([values[:, :, :half], values[:, :, -half:]], axis=1)


def _normal_scores(
    in_order: Float[np.ndarray, "F n"], order: Int[np.ndarray, "F n"], shape: tuple[int, ...]
) -> tuple[Float[np.ndarray, "F D H"], Bool[np.ndarray, " F"]]:
    """Return ranks over all draws as normal quantiles, and whether there are few distinct values.

    Blom's offset is used. The arguments are the sorted values and their places before sorting.
    """
    size = in_order.shape[1]
    begins = np.ones(in_order.shape, dtype=bool)  # whether a value differs from the one before
    begins[:, 1:] = in_order[:, 1:] > in_order[:, :-1]
    n_distinct = begins.sum(axis=1)
    # The sum of the first and the last place of a value is twice its rank, less one.
    halves = ndtri((np.arange(2 * size - 1) / 2 + 1 - 3 / 8) / (size + 1 / 4))
    scores = np.empty_like(in_order)
    np.put_along_axis(scores, order, halves[None, ::2], 1)
    tied = n_distinct < size
    if tied.any():
        own = np.empty_like(in_order[tied])
        np.put_along_axis(own, order[tied], halves[_first_and_last(begins[tied])], 1)
        scores[tied] = own
    return scores.reshape(shape), n_distinct < FEW_VALUES


def _first_and_last(begins: Bool[np.ndarray, "F n"]) -> Int[np.ndarray, "F n"]:
    """Return the sum of the first and the last place of the run of equal values at each place."""
    places = np.arange(begins.shape[1])
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    ends = np.ones_like(begins)
    ends[:, :-1] = begins[:, 1:]
    last = np.where(ends, places, places[-1])[:, ::-1]
    return first + np.minimum.accumulate(last, axis=1)[:, ::-1]


def _rhat(values: Float[np.ndarray, "F D H"]) -> Float[np.ndarray, " F"]:
    length = values.shape[2]
    between = values.mean(axis=2).var(axis=1, ddof=1)
    within = values.var(axis=2, ddof=1).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: np.ndarray = np.sqrt(between / within + (length - 1) / length)
    return ratio


def _effective_size(values: Float[np.ndarray, "F D H"]) -> Float[np.ndarray, " F"]:
    """Return the number of draws divided by their integrated autocorrelation time."""
    n_chains, length = values.shape[1:]
    size = n_chains * length
    means = values.mean(axis=2, keepdims=True)
    padded = next_fast_len(2 * length, real=True)
    power = np.abs(rfft(values - means, padded, axis=2)) ** 2
    # The transform is linear: the mean over chains comes first, and one inverse is enough.
    covariance = irfft(power.mean(axis=1), padded, axis=1)[:, :length] / length
    variance = covariance[:, :1] * length / (length - 1)
    total = covariance[:, :1].copy()
    if n_chains > 1:
        total += means[:, :, 0].var(axis=1, ddof=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (variance - covariance) / total
    correlation[:, 0] = 1.0
    n_pairs = max(1, (length - 3) // 2 + 1)
    even = correlation[:, : 2 * n_pairs : 2]
    pairs = even + correlation[:, 1 : 2 * n_pairs : 2]
    # Geyer: pairs are summed while they are positive, and are forced to decrease.
    ended = pairs <= 0
    last = np.where(ended.any(axis=1), ended.argmax(axis=1), n_pairs - 1)
    summed = np.arange(n_pairs)[None, :] < last[:, None]
    decreasing = np.where(summed, np.minimum.accumulate(pairs, axis=1), 0.0)
    rows = np.arange(len(values))
    rest = np.where((even > 0) | (pairs >= 0), even, 0.0)[rows, last]
    time = np.maximum(2 * decreasing.sum(axis=1) - 1 + rest, 1 / np.log10(size))
    constant = np.ptp(values, axis=(1, 2)) < np.finfo(float).resolution
    sizes: np.ndarray = np.where(constant, float(size), size / time)
    return sizes
