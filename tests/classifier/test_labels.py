"""Missing labels in every spelling, and classes that look like a missing label."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.classifier.labels import split_labels, unknown_mask
from graphuq.errors import InvalidInput, MissingLabelWarning

MOONS = gq.datasets.two_moons(120, n_features=2, noise_std=0.12, rng=1)
QUICK = {"model": "fixed", "inference": "expectation-propagation"}
NAMES = np.array(["a", "b"], dtype=object)[MOONS.classes]


def few(values, missing):
    y = np.array(values, dtype=object)
    y[12:] = missing
    return y


@pytest.mark.parametrize("missing_label", [-1, None, np.nan, pd.NA])
@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (few(NAMES, pd.NA), "U"),
        (pd.Series(few(NAMES, pd.NA), dtype="string"), "U"),
        (pd.Series(few(NAMES, None), dtype="category"), "U"),
        (pd.Series(few(NAMES, pd.NA)), "U"),
        (list(few(NAMES, np.nan)), "U"),
        (pd.Series(few(MOONS.classes, pd.NA), dtype="Int64"), "i"),
        (pd.Series(few(MOONS.classes, None), dtype="category"), "i"),
        (pd.Series(few(MOONS.classes == 1, pd.NA), dtype="boolean"), "b"),
        (few(MOONS.classes, pd.NaT), "i"),
    ],
    ids=["object", "string", "category", "series", "list", "Int64", "integers", "boolean", "NaT"],
)
def test_missing_values_of_pandas(y, kind, missing_label):
    values, given = split_labels(y, missing_label)
    np.testing.assert_array_equal(given, np.arange(120) < 12)
    assert values.dtype.kind == kind


def test_pandas_labels_in_fit_add_labels_and_score():
    y = pd.Series(few(NAMES, pd.NA), dtype="string")
    classifier = gq.GraphClassifier(missing_label=pd.NA, **QUICK).fit(MOONS.features, y)
    assert classifier.classes_.tolist() == ["a", "b"]
    expected = gq.GraphClassifier(**QUICK).fit(MOONS.features, few(MOONS.classes, -1).astype(int))
    np.testing.assert_array_equal(classifier.label_distributions_, expected.label_distributions_)
    rows = [20, 21, 22]
    classifier.add_labels(rows, pd.array([NAMES[20], pd.NA, NAMES[22]], dtype="string"))
    assert np.isin([20, 22], classifier.result_.posterior.labelled).all()
    assert 21 not in classifier.result_.posterior.labelled
    with pytest.raises(InvalidInput, match="labels: 2 values; give 3"):
        classifier.add_labels(rows, ["a", "b"])
    with pytest.warns(UserWarning, match="108 of 120 rows have no label"):
        assert classifier.score(MOONS.features, y) > 0.9


@pytest.mark.parametrize("name", ["?", "unknown", "N/A", " none ", "Unlabelled", "-", "unassigned"])
def test_class_that_looks_like_no_label(name):
    y = few(NAMES, name).astype(str)
    classifier = gq.GraphClassifier(**{**QUICK, "model": "Fixed(likelihood=Softmax())"})
    with pytest.warns(MissingLabelWarning, match=r"108 of 120 rows.*missing_label='"):
        classifier.fit(MOONS.features, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingLabelWarning)
        gq.GraphClassifier(missing_label=name, **QUICK).fit(MOONS.features, y)
    y[60:] = NAMES[60:].astype(str)  # no longer the majority of rows
    if name.strip() == "none":  # is a class in many files
        classifier.fit(MOONS.features, y)
    else:
        with pytest.warns(MissingLabelWarning, match=r"\(48 rows\) is a class. Does it mean"):
            classifier.fit(MOONS.features, y)


@pytest.mark.slow
def test_zero_beside_both_signs_is_asked_about():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.zeros(40, dtype=int)
    y[:6] = [-1, 1, -1, 1, -1, 1]
    model = gq.GraphClassifier(inference="expectation-propagation")
    with pytest.warns(MissingLabelWarning, match=r"class 0 holds 34 of 40 .* missing_label=0"):
        model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingLabelWarning)
        assert model.set_params(missing_label=0).fit(X, y).classes_.tolist() == [-1, 1]
        model.set_params(missing_label=-1).fit(X, np.where(np.arange(40) < 30, y, -1))


@pytest.mark.parametrize("wrap", [list, lambda y: np.array(y, dtype=object), pd.Series])
def test_texts_among_numbers_are_refused(wrap):
    y = wrap(["a", "b", 3, None, None])
    with pytest.raises(InvalidInput, match=r"y: labels of types str and int, such as 'a' and 3;"):
        split_labels(y, -1)


def test_the_missing_label_may_be_a_number_among_texts():
    values, given = split_labels(["a", "b", -1, -1], -1)
    assert values[given].tolist() == ["a", "b"]
    assert given.tolist() == [True, True, False, False]


def test_the_text_of_minus_one_is_asked_about():
    """A file turns -1 into text; the number -1 may be a class if the user says so."""
    classifier = gq.GraphClassifier(**QUICK)
    with pytest.warns(MissingLabelWarning, match=r"class '-1' holds 108.*missing_label='-1'"):
        classifier.set_params(model="Fixed(likelihood=Softmax())").fit(
            MOONS.features, few(NAMES, "-1")
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingLabelWarning)
        classifier.set_params(missing_label=None, model="fixed")
        classifier.fit(MOONS.features, np.where(np.arange(120) < 100, -1, 1))


def test_warnings_name_the_line_of_the_user():
    with pytest.warns(UserWarning, match="column-vector") as caught:
        gq.GraphClassifier(**QUICK).fit(MOONS.features, few(MOONS.classes, -1)[:, None].astype(int))
    assert caught[0].filename == __file__


def test_unknown_values_are_those_of_pandas():
    unlike = [
        None,
        np.nan,
        pd.NA,
        pd.NaT,
        Decimal("nan"),
        np.float32("nan"),
        np.datetime64("NaT", "ns"),
    ]
    known = ["nan", "", 0, 1.5, False, Decimal(1), np.int64(3), np.str_("a"), np.inf, (1, 2)]
    values = np.empty(len(unlike) + len(known), dtype=object)
    values[:] = unlike + known
    np.testing.assert_array_equal(unknown_mask(values), pd.isna(values))
    for typed in (np.array([1, np.nan]), np.array(["2020", "NaT"], "M8[D]"), np.arange(2)):
        np.testing.assert_array_equal(unknown_mask(typed), pd.isna(typed))
    np.testing.assert_array_equal(unknown_mask(np.array(["nan", ""])), [False, False])
