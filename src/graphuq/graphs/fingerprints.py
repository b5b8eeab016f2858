"""Hashes of rows, by which a row is found again among many."""

import numpy as np
from jaxtyping import UInt

from graphuq.graphs.features import row_blocks
from graphuq.graphs.inputs import Features


def fingerprints(features: Features) -> UInt[np.ndarray, " R"]:
    """Compute a hash of each row; equal rows have equal hashes, other rows almost never."""
    factors = np.random.default_rng(0).integers(1, 2**63, features.shape[1]).astype(np.uint64) | 1
    if not isinstance(features, np.ndarray):
        factors = np.asarray(factors)[features.indices]
        bits = _mixed_bits(features.data) * factors
        rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
        sums = np.zeros(features.shape[0], np.uint64)
        np.add.at(sums, rows, bits)
        return sums
    sums = np.empty(len(features), np.uint64)
    for part in row_blocks(*features.shape):
        sums[part] = (_mixed_bits(features[part]) * factors).sum(axis=1)
    return sums


def _mixed_bits(numbers: np.ndarray) -> np.ndarray:
    """Return the bits of numbers, mixed because integers leave the low bits empty; −0 is 0."""
    bits = (np.asarray(numbers, np.float64) + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))
