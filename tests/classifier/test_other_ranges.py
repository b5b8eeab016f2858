"""New rows in other units, or far outside the rows of the fit, are named in a warning."""

import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

import graphuq as gq
from graphuq.errors import FarRowsWarning
from graphuq.graphs.column_ranges import ColumnRanges

RNG = np.random.default_rng(0)
SEX = np.arange(200) % 2
PEOPLE = pd.DataFrame(
    {"height": 165.0 + 12 * SEX + RNG.normal(0, 6, 200), "age": RNG.uniform(20, 60, 200)}
)
NEW = pd.DataFrame({"height": [160.0, 171.0, 182.0], "age": [30.0, 40.0, 50.0]})
IN_METRES = NEW.assign(height=NEW.height / 100)
QUICK = gq.GraphClassifier(model="fixed", inference="expectation-propagation")


def labels():
    y = SEX.astype(float)
    y[40:] = np.nan
    return y


def test_mean_distance_and_ranges_agree_with_all_pairs():
    rows = RNG.normal(size=(70, 3)) * [1, 5, 0.1]
    ranges = ColumnRanges.of(rows)
    with_itself = 2 * (pdist(rows) ** 2).sum() / 70**2
    assert ranges.distance == pytest.approx(np.sqrt(with_itself), rel=1e-12)
    np.testing.assert_array_equal([ranges.low, ranges.high], [rows.min(axis=0), rows.max(axis=0)])


@pytest.mark.parametrize("estimator", ["classifier", "regressor", "tags"])
def test_other_units_are_named(estimator):
    if estimator == "classifier":
        fitted = QUICK.fit(PEOPLE, labels())
    elif estimator == "regressor":
        fitted = gq.GraphRegressor().fit(PEOPLE, np.where(np.arange(200) < 40, PEOPLE.age, np.nan))
    else:
        fitted = gq.MultilabelClassifier(QUICK).fit(PEOPLE, labels()[:, None])
    with pytest.warns(FarRowsWarning, match="3 of 3 rows, such as row 0, .* in column 'height'; "):
        fitted.predict(IN_METRES)
    mixed = pd.concat([NEW.iloc[:1], IN_METRES.iloc[1:]])
    with pytest.warns(FarRowsWarning, match="2 of 3 rows, such as row 1, "):
        fitted.predict(mixed)
    fitted.predict(NEW)


def test_arrays_have_numbers_of_columns():
    fitted = QUICK.fit(PEOPLE.to_numpy(), labels())
    with pytest.warns(FarRowsWarning, match="in columns 0, 1; "):
        fitted.predict(6 * NEW.to_numpy())


def test_usual_new_rows_are_not_suspected():
    """At most 1 % of the rows with heavy tails are, and no image with new values in a pixel."""
    warnings.simplefilter("error", FarRowsWarning)
    for seed in range(20):
        rows = np.random.default_rng(seed).standard_t(4, size=(400, 5))
        assert ColumnRanges.of(rows[:200]).beyond(rows[200:]).any(axis=1).mean() <= 0.01
    digits = gq.datasets.load_digits()
    assert not ColumnRanges.of(digits.data[:300]).beyond(digits.data[300:]).any()


def test_sparse_rows_and_cosines_are_not_checked():
    words = sparse.csr_array(sparse.random(200, 30, 0.3, rng=0))
    QUICK.fit(words, labels()).predict(100 * words[:3])
    cosine = gq.GraphClassifier(metric="cosine", model="fixed", inference="expectation-propagation")
    cosine.fit(PEOPLE, labels()).predict(1000 * NEW)


def test_rows_of_the_fit_are_read_once():
    """A prediction of one row takes milliseconds also where the fit had a million rows."""
    fitted = QUICK.fit(PEOPLE, labels())
    with mock.patch.object(ColumnRanges, "of", wraps=ColumnRanges.of) as read:
        fitted.predict(NEW)
        fitted.predict(NEW)
    assert read.call_count == 1
