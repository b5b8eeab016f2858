"""Names of classes that are likely mistakes are named in a warning, however they come."""

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.classifier.class_names import warn_of_class_names
from graphuq.errors import GraphuqWarning, MissingLabelWarning

ALL = np.ones(12, dtype=bool)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("setosa", "SETOSA"),
        ("New York", "New  york"),
        ("New York", "new-york"),
        ("a b", "a_b"),
        ("cat", "cat "),
        ("café", "cafe\u0301"),
        ("1", "1.0"),
        ("7", "07"),
    ],
)
def test_names_that_are_nearly_alike_are_named(first, second):
    labels = np.array([first, second, "other"] * 4)
    with pytest.warns(GraphuqWarning, match="the classes .* and .* differ in capitals") as caught:
        warn_of_class_names(labels, ALL)
    assert all(repr(name) in str(caught[0].message) for name in (first, second))


@pytest.mark.parametrize(
    "names",
    [["a", "A", "b"], ["1", "10", "11"], ["Mr. Hi", "Officer", "Mr. H"], [1, 2, 3], [1.0, 10.0, 2]],
)
def test_different_names_are_not(names):
    warn_of_class_names(np.array(names * 4), ALL)


X = np.random.default_rng(0).normal(size=(30, 2))
NAMES = np.where(X[:, 0] > 0, "cat", "Cat")
QUICK = {"n_neighbors": 5, "model": "fixed", "inference": "expectation-propagation"}
GIVEN = {
    "classes": (gq.GraphClassifier(**QUICK), NAMES),
    "annotators": (gq.AnnotatorClassifier(**QUICK), pd.DataFrame({"ann": NAMES, "bob": NAMES})),
    "tags": (gq.MultilabelClassifier(gq.GraphClassifier(**QUICK)), [{name} for name in NAMES]),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_every_estimator_says_so(kind):
    estimator, y = GIVEN[kind]
    with pytest.warns(GraphuqWarning, match="'Cat' and 'cat' differ"):
        estimator.fit(X, y)


@pytest.mark.parametrize(
    ("code", "others", "is_suspect"),
    [
        ("99", ["0", "1", "2"], True),
        (99, [0, 1, 2], True),
        (-9, [1, 2], True),
        (999, [5, 7], True),
        (9, [7, 8], False),
        (99, [98, 100], False),
        (3, [0, 1], False),
        ("not labelled", ["cat", "dog"], True),
        ("99", ["cat", "dog"], False),
    ],
)
def test_a_class_of_most_rows_whose_name_is_a_code_is_asked_about(code, others, is_suspect):
    labels = np.array([code] * 7 + (others * 5)[:5])
    if is_suspect:
        with pytest.warns(MissingLabelWarning, match="holds 7 of 12 rows. Does it mean unlabelled"):
            warn_of_class_names(labels, ALL)
    else:
        warn_of_class_names(labels, ALL)


def test_a_word_for_unlabelled_is_asked_about_even_if_it_holds_few_rows():
    """The command line takes such words as unlabelled, with a warning; Python said nothing."""
    labels = np.array(["cat", "dog", "unknown"] * 4)
    with pytest.warns(MissingLabelWarning, match="'unknown' .4 rows. is a class. Does it mean"):
        warn_of_class_names(labels, ALL)
    warn_of_class_names(labels, ALL, words_are_classes=True)
    warn_of_class_names(np.where(labels == "unknown", "none", labels), ALL)  # often a class
