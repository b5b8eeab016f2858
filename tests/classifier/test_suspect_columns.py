"""Columns of numbers that are likely no features are named, whatever reads the table."""

import re

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.classifier.suspect_columns import warn_of_suspects
from graphuq.cli.tables import read_table
from graphuq.errors import GraphuqWarning

N = 60
RNG = np.random.default_rng(0)
DAYS = pd.date_range("2023-12-20", periods=N, freq="D").strftime("%Y%m%d").astype(int)
AGES = pd.Series(RNG.integers(18, 90, N))
WITH_CODES = AGES.where(np.arange(N) % 9 != 4, -999)


def warn_of(column):
    warn_of_suspects([str(column.name)], lambda _: column.to_numpy())


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (WITH_CODES.rename("age"), "-999 of 'age' is far from all other numbers"),
        (WITH_CODES.astype(float).rename("age"), "-999 of 'age' is far"),
        (AGES.where(np.arange(N) % 9 != 4, 9999).rename("age"), "9999 of 'age' is far"),
        (pd.Series(DAYS, name="when"), "the numbers of 'when' look like days"),
        (pd.Series(RNG.permutation(N) + 7000, name="Sample No"), "'Sample No' is named like an id"),
        (pd.Series(RNG.permutation(N) + 7000, name="patientID"), "'patientID' is named like an id"),
        (pd.Series(np.arange(N), name="x"), "'x' numbers the rows"),
    ],
)
def test_suspects_are_named(column, words):
    with pytest.warns(GraphuqWarning, match=re.escape(words)):
        warn_of(column)


@pytest.mark.parametrize(
    "column",
    [
        AGES.where(np.arange(N) != 4, -999).rename("one such code"),
        AGES.where(np.arange(N) % 9 != 4, 99).rename("an age"),
        pd.Series(RNG.integers(-2000, 2000, N), name="some -999 among others"),
        pd.Series(np.where(np.arange(N) % 9 == 4, 99, 0), name="no range"),
        pd.Series(20_000_000 + RNG.integers(0, 10**6, N), name="no days"),
        pd.Series(RNG.normal(size=N), name="id"),
        pd.Series(RNG.permutation(N), name="paid"),
        pd.Series(RNG.permutation(N), name="body mass index"),
    ],
    ids=lambda column: column.name,
)
def test_others_are_not(column):
    if column.name == "no range":
        with pytest.warns(GraphuqWarning, match="99 of 'no range'"):
            warn_of(column)
    else:
        warn_of(column)


READERS = {
    "file": lambda table, path: read_table(path),
    "encoded file": lambda table, path: read_table(path, encoder=gq.TableEncoder()),
    "encoder": lambda table, path: gq.TableEncoder().fit(table),
    "classifier": lambda table, path: QUICK.fit(table, np.arange(N) % 3 - 1),
}
QUICK = gq.GraphClassifier(n_neighbors=15, model="fixed", inference="expectation-propagation")


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_says_so(reader, tmp_path):
    table = pd.DataFrame({"age": WITH_CODES, "size": RNG.normal(50, 300, N)})
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(GraphuqWarning, match="-999 of 'age' is far"):
        READERS[reader](table, tmp_path / "t.csv")


@pytest.mark.parametrize("missing", ["-999", "-999.0", " -999"])
def test_codes_that_mean_empty_are_empty_among_numbers_too(missing):
    """They were looked for among texts alone, and ignored without a word among numbers."""
    table = WITH_CODES.to_frame("age")
    encoder = gq.TableEncoder(impute=True, scale=False, missing_values=[missing])
    found = encoder.fit_transform(table)
    is_empty = (WITH_CODES == -999).to_numpy()
    np.testing.assert_array_equal(found[:, 1], is_empty)
    np.testing.assert_array_equal(found[is_empty, 0], np.median(AGES[~is_empty]))
    np.testing.assert_array_equal(encoder.transform(table), found)


def test_what_the_user_says_of_a_column_ends_the_doubt():
    kinds = {"when": "date %Y%m%d"}
    days = gq.TableEncoder(kinds=kinds, scale=False).fit_transform(pd.DataFrame({"when": DAYS}))
    np.testing.assert_array_equal(np.diff(days[:, 0]), 1)


def test_numbers_of_several_units_are_named():
    """Taken as categories, 1.2 m and 120 cm are as different as any other two."""
    heights = pd.DataFrame({"height": ["1.2 m", "120 cm", "1.3 m", "130"] * 5})
    with pytest.warns(GraphuqWarning, match="of 'height' have several units \\('m', 'cm', ''"):
        gq.TableEncoder().fit(heights)
    gq.TableEncoder(kinds={"height": "category"}).fit(heights)
    gq.TableEncoder().fit(pd.DataFrame({"type": ["4x4", "a 4", "4"] * 7}))
    gq.TableEncoder().fit(pd.DataFrame({"class": ["1st", "2nd", "3rd", "1st"] * 7}))
