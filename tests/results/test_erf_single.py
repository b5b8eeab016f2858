"""The error function in single precision."""

import numpy as np
from scipy.special import erf

from graphuq.results.summaries.erf_single import erf_single


def test_erf_in_single_precision_has_its_rounding_error():
    x = np.concatenate([np.linspace(-6, 6, 100_000), [0.0, -1e30, 1e30, 1e-30]])
    x = x.astype(np.float32).reshape(2, -1)
    truth = erf(x.astype(np.float64))
    found = erf_single(x.T.copy().T)  # not contiguous
    assert found.dtype == np.float32
    assert found.shape == x.shape
    assert np.abs(found - truth).max() < 1e-7
    assert found[1, -4] == 0.0
    assert found[1, -1] > 0  # small numbers keep their sign
