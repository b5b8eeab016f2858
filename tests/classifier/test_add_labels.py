"""Labels that are added, corrected and withdrawn, and rows to label next."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput

OPTIONS = {"inference": "expectation-propagation", "n_neighbors": 8, "missing_label": None}


def clouds(n_classes, n_each=60):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(n_classes), n_each))
    features = rng.normal(size=(len(truth), 2)) + 3.0 * truth[:, None] * [1, -1]
    return features, np.array(["c", "a", "b", "d"])[truth]


def fitted(features, names, rows, model="auto"):
    y = np.full(len(names), "", dtype="U1")
    y[rows] = names[rows]
    return gq.GraphClassifier(model=model, **OPTIONS).fit(features, y)


@pytest.mark.parametrize("model", ["auto", "largest-evidence"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_withdrawn_labels_are_equal_to_labels_never_given(n_classes, model):
    features, names = clouds(n_classes)
    classifier = fitted(features, names, np.arange(8), model)
    before = classifier.label_distributions_
    classifier.add_labels(np.arange(8, 13), names[8:13])
    assert np.abs(classifier.label_distributions_ - before).max() > 0.01
    classifier.add_labels(np.arange(8, 13), [None] * 5)
    np.testing.assert_allclose(classifier.label_distributions_, before, atol=1e-3)
    assert classifier.withdrawn_.tolist() == list(range(8, 13))
    classifier.add_labels([8, 30], [names[8], None])  # a row without a label stays as it is
    assert classifier.withdrawn_.tolist() == list(range(9, 13))


@pytest.mark.parametrize("model", ["auto", "largest-evidence"])
def test_a_new_class_is_equal_to_fitted_labels(model):
    features, names = clouds(3)
    two = np.flatnonzero(names != "b")
    classifier = fitted(features, names, two[:12], model)
    assert classifier.classes_.tolist() == ["a", "c"]
    before = classifier.label_distributions_
    new = np.flatnonzero(names == "b")[:4]
    classifier.add_labels(new, names[new])
    assert classifier.classes_.tolist() == ["a", "b", "c"]
    expected = fitted(features, names, np.append(two[:12], new), classifier.model_)
    np.testing.assert_allclose(
        classifier.label_distributions_, expected.label_distributions_, atol=0.06
    )
    classifier.add_labels(new, [None] * 4)  # undo: the class is gone as well
    assert classifier.classes_.tolist() == ["a", "c"]
    # Components of an average are weighed by draws, which depend on the order of the labels.
    error = 0.05 if model == "auto" else 1e-4
    np.testing.assert_allclose(classifier.label_distributions_, before, atol=error)


def test_bad_labels_change_nothing():
    features, names = clouds(2)
    classifier = fitted(features, names, np.arange(8))
    before = classifier.result_
    with pytest.raises(InvalidInput, match="text"):
        classifier.add_labels([9], [3])
    withdrawn = np.arange(8)[names[:8] == "a"]
    with pytest.raises(InvalidInput, match="one class"):
        classifier.add_labels(withdrawn, [None] * len(withdrawn))
    with pytest.raises(InvalidInput, match="twice"):
        classifier.add_labels([9, 9], ["a", "a"])
    assert classifier.result_ is before
    assert classifier.classes_.tolist() == ["a", "c"]
    assert len(classifier.withdrawn_) == 0


@pytest.mark.slow
def test_labels_are_added_by_names_of_nodes():
    path = gq.graphs.from_edges(["Ada", "Bo", "Cy"], ["Bo", "Cy", "Di"])

    def fit(labels):
        made = gq.GraphClassifier("precomputed", inference="expectation-propagation")
        return made.fit(path, labels)

    by_name, by_number = (fit({"Ada": "red", "Di": "blue"}) for _ in range(2))
    by_name.add_labels(["Cy"], ["red"])
    by_number.add_labels([2], ["red"])
    np.testing.assert_array_equal(by_name.label_distributions_, by_number.label_distributions_)
    with pytest.raises(InvalidInput, match=r"rows: 'Cyd' is not a node; did you mean 'Cy'\?"):
        by_name.add_labels(["Cyd"], ["red"])
    with pytest.raises(InvalidInput, match=r"y: 'Bob' is not a node; did you mean 'Bo'\?"):
        fit({"Bob": "red", "Di": "blue"})


def test_rows_to_label_next_are_neither_labelled_nor_withdrawn(tmp_path):
    features, names = clouds(3)
    classifier = fitted(features, names, np.arange(20)).add_labels([3, 4], [None, None])
    rows = classifier.query(n=500)
    assert sorted(rows) == list(range(20, 180))
    assert classifier.query(n=3, candidates=[2, 3, 50]).tolist() == [50]
    classifier.save(tmp_path / "fit.nc")
    assert 3 not in gq.load(tmp_path / "fit.nc").query(n=500)
    with pytest.raises(InvalidInput, match=r"row .180. does not exist"):
        classifier.query(candidates=[180])
    with pytest.raises(InvalidInput, match="unknown"):
        classifier.query(rule="best")


@pytest.mark.parametrize("is_loaded", [False, True])
def test_equal_numbers_of_proposed_rows_are_no_sign_of_a_choice(is_loaded, tmp_path):
    """Two classes of 20 and 100 rows that meet: rows between them are equally often of either.

    The same labels, added without `query`, look as if someone had chosen ten of each class.
    """
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [20, 100])
    features = rng.normal(size=(120, 2)) + 1.5 * truth[:, None]
    y = np.full(120, -1)
    y[[0, 119]] = truth[[0, 119]]
    options = {**OPTIONS, "missing_label": -1}
    proposing = gq.GraphClassifier(**options).fit(features, y)
    rows = proposing.query(n=116, candidates=np.arange(2, 118))
    rows = np.concatenate([rows[truth[rows] == k][:9] for k in (0, 1)])
    if is_loaded:
        proposing.save(tmp_path / "fit.nc")
        proposing = gq.load(tmp_path / "fit.nc")
    proposing.add_labels(rows, truth[rows])
    assert proposing.result_.posterior.label_design == "random"
    other = gq.GraphClassifier(**options).fit(features, y).add_labels(rows, truth[rows])
    assert other.result_.posterior.label_design == "by-class"
    said = gq.models.Average("random")
    y[rows] = truth[rows]
    expected = gq.GraphClassifier(model=said, **options).fit(features, y)
    found, wrong = (
        np.abs(one.label_distributions_ - expected.label_distributions_).max()
        for one in (proposing, other)
    )
    assert found < 0.02 < 0.05 < wrong
    proposing.add_labels(rows, np.full(len(rows), -1)).add_labels([1, 118], truth[[1, 118]])
    assert proposing.result_.posterior.label_design == "by-class"  # none is proposed any more
