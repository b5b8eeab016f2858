"""Numbers and dates as people write them: what each text is was written down by hand."""

import numpy as np
import pandas as pd
import pytest

from graphuq.utils.written.dates import DateFormat, formats_of_dates
from graphuq.utils.written.gaps import is_gap_word
from graphuq.utils.written.numbers import NumberFormat, decimal_mark, format_of_numbers

NAN = np.nan


@pytest.mark.parametrize(
    ("cells", "expected", "values"),
    [
        (["12 %", "3.5%", "0"], NumberFormat(".", "%"), [12, 3.5, 0]),
        (["$12.50", "$1,234", "-$3", "($4)"], NumberFormat(".", "$"), [12.5, 1234, -3, -4]),
        (["CHF 3", "CHF 4.50"], NumberFormat(".", "CHF"), [3, 4.5]),
        (["23.4 km", "12km"], NumberFormat(".", "km"), [23.4, 12]),
        (["1,234", "12,345,678"], NumberFormat(), [1234, 12345678]),
        (["1,5", "2,75", "1.234,5"], NumberFormat(","), [1.5, 2.75, 1234.5]),
        (["0,123", "1,234"], NumberFormat(","), [0.123, 1.234]),
        (["1.234.567"], NumberFormat(","), [1234567]),
        (["1 234,5", "12\u202f345", "1\u00a0000"], NumberFormat(","), [1234.5, 12345, 1000]),
        (["1'234.5", "2’000"], NumberFormat(), [1234.5, 2000]),
        (["−5", "+3", ".5", "5.", "1e5", "2E-3"], NumberFormat(), [-5, 3, 0.5, 5, 1e5, 2e-3]),
        ([3, 2.5, "1,000"], NumberFormat(), [3, 2.5, 1000]),
        (["1", "2", "12:30", "1.2.3", "10-20", "A1", "1_000"], NumberFormat(), [1, 2, *[NAN] * 5]),
        (["12 kg", "13 kg", "14 lb", "15"], NumberFormat(".", "kg"), [12, 13, NAN, NAN]),
    ],
    ids=str,
)
def test_numbers(cells, expected, values):
    found = format_of_numbers(cells)
    assert found == expected
    np.testing.assert_array_equal(found(cells).values, values)
    assert not found(cells).is_bound.any()


def test_bounds():
    cells = ["<0.1", "0.5", "> 9", "≤3"]
    found = format_of_numbers(cells)(cells)
    np.testing.assert_array_equal(found.values, [0.1, 0.5, 9, 3])
    assert found.is_bound.tolist() == [True, False, True, True]
    top = NumberFormat()(["0", "1", "2", "3+"])
    np.testing.assert_array_equal(top.values, [0, 1, 2, 3])
    assert top.is_bound.tolist() == [False, False, False, True]
    grades = NumberFormat()(["1", "1+", "2"])  # no top of a scale
    np.testing.assert_array_equal(grades.values, [1, NAN, 2])


def test_a_mark_of_one_column_decides_for_others():
    assert decimal_mark([["1,234"], ["1,5"]]) == ","
    assert decimal_mark([["1,234"], ["a", "b"]]) is None
    assert decimal_mark([["1,5"], ["1.5"]]) is None
    assert format_of_numbers(["1,234"], ",")(["1,234"]).values == [1.234]
    assert format_of_numbers(["1,234"])(["1,234"]).values == [1234]


@pytest.mark.parametrize(
    ("texts", "patterns"),
    [
        (["2012-01-05", "2012-02-01T10:00:00"], ["ISO8601"]),
        (["2012/01/05", "2012/2/3"], ["%Y/%m/%d"]),
        (["5.1.2012", "13.6.2012"], ["%d.%m.%Y"]),
        (["Jan 5, 2012", "Feb 6, 2013"], ["%b %d, %Y"]),
        (["5 January 2012", "6 March 2012"], ["%d %B %Y"]),
        (["05-Jan-12"], ["%d-%b-%y"]),
        (["1/2/2012", "3/4/2012"], ["%m/%d/%Y", "%d/%m/%Y"]),
        (["13/2/2012", "3/4/2012"], ["%d/%m/%Y"]),
        (["5.1.2012 12:30", "2.5.2012 13:00"], ["%d.%m.%Y %H:%M"]),
        (["1/5/2012 1:30 PM", "1/13/2012 2:00 AM"], ["%m/%d/%Y %I:%M %p"]),
        (["1", "2"], []),
        (["2012", "2013"], []),
        (["room 1", "room 2"], []),
        (["2012/01/05", "5.1.2012"], []),
        (["31.2.2012"], []),
    ],
    ids=str,
)
def test_dates(texts, patterns):
    found = formats_of_dates(pd.Series(texts))
    assert [one.pattern for one in found] == patterns


def test_days_since_1970():
    days = DateFormat("%d.%m.%Y %H:%M")(pd.Series(["2.1.1970 12:00", "x"]))
    np.testing.assert_array_equal(days, [1.5, NAN])


def test_words_for_nothing():
    assert all(is_gap_word(text) for text in ("", " ", "N/A", "na", "-", "?", "Unknown", "#N/A"))
    assert not any(is_gap_word(text) for text in ("0", "no", "north", "nano", "x"))
