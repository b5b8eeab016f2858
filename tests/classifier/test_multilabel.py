"""``MultilabelClassifier``: rows that have several tags at once."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.multioutput import MultiOutputClassifier

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput, UnlabelledScoreWarning
from graphuq.results.storage import read_tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
TRUE = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.4, X.sum(axis=1) > 0]).astype(int)
NAMES = ["right", "high", "above"]
Y = np.where(np.arange(120)[:, None] < 40, TRUE, -1)
Y[:10, 1] = -1  # ten rows are labelled for two tags only
FAST = gq.GraphClassifier(inference="expectation-propagation")
# One component for each tag, which no other tag has a say in.
ALONE = clone(FAST).set_params(model=gq.models.Likeliest(gq.models.Average(label_design="random")))


@pytest.fixture(scope="module")
def fitted():
    return gq.MultilabelClassifier(FAST).fit(X, pd.DataFrame(Y, columns=NAMES))


@pytest.fixture(scope="module")
def alone():
    return gq.MultilabelClassifier(ALONE).fit(X, pd.DataFrame(Y, columns=NAMES))


def test_a_tag_has_the_answer_of_its_own_classifier(alone):
    """If the model lets tags have nothing in common."""
    for t, name in enumerate(NAMES):
        own = clone(ALONE).fit(X, Y[:, t])
        found = alone.tag_probabilities_[:, t]
        np.testing.assert_allclose(found, own.label_distributions_[:, 1], atol=1e-12)
        assert alone.of(name).result_.log_evidence == pytest.approx(own.result_.log_evidence)
    assert (alone.transduction_[40:] == TRUE[40:]).mean() > 0.9


def test_one_tag_is_the_default_of_two_classes():
    model = gq.models.Average(label_design="random")
    own = clone(FAST).set_params(model=model).fit(X, Y[:, 0])
    several = gq.MultilabelClassifier(FAST).fit(X, Y[:, :1])
    found = several.tag_probabilities_[:, 0]
    np.testing.assert_allclose(found, own.label_distributions_[:, 1], atol=1e-12)


def test_tags_have_odds_in_common(fitted):
    """The first tag has as many labels as before; those of the others change its answer."""
    own = gq.MultilabelClassifier(FAST).fit(X, Y[:, :1])
    change = fitted.tag_probabilities_[:, 0] - own.tag_probabilities_[:, 0]
    assert 1e-4 < abs(change).mean() < 0.05
    assert (fitted.transduction_[40:] == TRUE[40:]).mean() > 0.9
    assert fitted.transduction_.shape == (120, 3)
    assert fitted.classes_.tolist() == NAMES


def test_tags_share_graph_and_basis(fitted):
    first = fitted.estimators_[0]
    assert all(one.graph_ is first.graph_ for one in fitted.estimators_)
    assert all(one._basis is first._basis for one in fitted.estimators_)


def test_equal_numbers_of_a_tag_are_chance():
    """Nobody chose labels of a tag class by class, so its share among them is evidence."""
    y = np.full(120, -1)
    y[np.flatnonzero(TRUE[:, 0] == 1)[:10]], y[np.flatnonzero(TRUE[:, 0] == 0)[:10]] = 1, 0
    assert clone(FAST).fit(X, y).result_.posterior.label_design == "by-class"
    several = gq.MultilabelClassifier(FAST).fit(X, np.column_stack([y, Y[:, 2]]))
    assert several.of(0).result_.posterior.label_design == "random"


def test_probabilities_agree_with_draws_of_the_prior():
    """Draws of the prior on a path of 12 nodes, weighed by the labels of one tag at a time."""
    path = sparse.diags_array([np.ones(11), np.ones(11)], offsets=[-1, 1]).toarray()
    tags = np.full((12, 2), -1)
    tags[[0, 5, 11], 0], tags[[0, 3, 8], 1] = (1, 0, 1), (0, 1, 1)
    model = gq.models.Fixed(gq.priors.Matern(tau=0.5, alpha=2.0), gq.likelihoods.Probit(0.5))
    own = gq.GraphClassifier(
        "precomputed", n_eigenpairs="all", model=model, inference="expectation-propagation"
    )
    found = gq.MultilabelClassifier(own).fit(path, tags).tag_probabilities_
    degrees = path.sum(axis=0)
    values, vectors = np.linalg.eigh(np.eye(12) - path / np.sqrt(np.outer(degrees, degrees)))
    variances = (values + 0.25) ** -2.0
    variances[0] = 0.0  # the default prior leaves the constant out
    variances *= 12 / variances.sum()
    draws = np.random.default_rng(1).normal(size=(400_000, 12)) * np.sqrt(variances) @ vectors.T
    for t in range(2):
        rows = np.flatnonzero(tags[:, t] >= 0)
        weights = ndtr((2 * tags[rows, t] - 1) * draws[:, rows] / 0.5).prod(axis=1)
        weights /= weights.sum()
        truth = weights @ (draws > 0)
        error = np.sqrt((weights**2) @ (draws > 0) * 1.0 + (weights**2).sum() * truth**2)
        assert error.max() < 4e-3
        # Expectation propagation itself is off by up to 0.01 on graphs of this size.
        assert np.abs(found[:, t] - truth).max() < 0.01 + 4 * error.max()


@pytest.mark.parametrize(
    "given",
    [
        Y,
        Y.astype(float),
        np.where(Y < 0, np.nan, Y),
        np.where(Y < 0, None, Y == 1),
        np.ma.masked_less(Y, 0),
        sparse.csr_array(Y),
        Y.tolist(),
        pd.DataFrame(np.where(Y < 0, np.nan, Y)).astype("Int64"),
        pd.DataFrame(np.where(Y < 0, None, Y == 1)).astype("boolean"),
    ],
    ids=["int", "float", "nan", "bool", "masked", "sparse", "lists", "Int64", "boolean"],
)
def test_tags_may_be_given_in_any_form(given):
    """The model is fixed, which is quicker; each tag has another answer."""
    model = gq.models.Fixed("matern", gq.likelihoods.Probit(0.3))
    fixed = gq.MultilabelClassifier(clone(FAST).set_params(model=model))
    expected = clone(fixed).fit(X, pd.DataFrame(Y, columns=NAMES)).tag_probabilities_
    assert np.abs(np.diff(expected, axis=1)).min(axis=1).max() > 0.1
    np.testing.assert_array_equal(fixed.fit(X, given).tag_probabilities_, expected)


def test_sets_of_names_are_tags():
    sets = [
        {name for name, value in zip(NAMES, row, strict=True) if value} if n < 40 else None
        for n, row in enumerate(TRUE.tolist())
    ]
    found = gq.MultilabelClassifier(FAST).fit(X, sets)
    whole = gq.MultilabelClassifier(FAST).fit(X, np.where(np.arange(120)[:, None] < 40, TRUE, -1))
    assert found.classes_.tolist() == sorted(NAMES)
    order = [NAMES.index(name) for name in sorted(NAMES)]
    np.testing.assert_array_equal(found.tag_probabilities_, whole.tag_probabilities_[:, order])
    expected = (found.predict(X[:40]) == TRUE[:40, order]).all(axis=1).mean()
    assert found.score(X[:40], sets[:40]) == pytest.approx(expected)
    assert found.score(X[:2], [set(), {"high"}]) == pytest.approx(
        (found.predict(X[:2]) == [[0, 0, 0], [0, 1, 0]]).all(axis=1).mean()
    )


def test_new_rows_and_rows_of_the_fit(fitted):
    new = RNG.normal(size=(7, 2))
    found = fitted.predict_proba(np.vstack([X, new]))
    np.testing.assert_array_equal(found[:120], fitted.tag_probabilities_)
    by_tag = [fitted.of(name).predict_proba(new)[:, 1] for name in NAMES]
    np.testing.assert_allclose(found[120:], np.column_stack(by_tag), atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(new), found[120:] > 0.5)


def test_rows_to_label_are_those_whose_tags_are_uncertain_together(fitted):
    p = fitted.tag_probabilities_
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p)).sum(axis=1)
    free = (Y < 0).all(axis=1)
    picks = fitted.query(8, "entropy")
    assert picks[0] == np.flatnonzero(free)[entropy[free].argmax()]
    assert free[picks].all()
    assert len(set(picks.tolist())) == 8
    drawn = fitted.query(60)
    doubt = (1 - abs(2 * p - 1)).mean(axis=1)
    assert doubt[drawn[:15]].mean() > doubt[drawn[-15:]].mean()
    some = fitted.query(20, candidates=np.arange(40))  # one tag is unknown in ten of them
    assert sorted(some.tolist()) == list(range(10))
    assert fitted.query(3, candidates=np.arange(20, 40)).tolist() == []
    with pytest.raises(InvalidInput, match="ask for 1 row"):
        fitted.query(0)


def test_tables(fitted):
    table = fitted.to_dataframe(ids=[f"f{i}" for i in range(120)])
    p = fitted.tag_probabilities_
    assert table.columns.tolist() == [
        "id", "tags", *(f"probability_{n}" for n in NAMES),
        "expected_errors", "rank", "has_evidence", "given", "n_given",
    ]  # fmt: skip
    assert table["tags"][0] == ";".join(np.array(NAMES)[p[0] > 0.5])
    np.testing.assert_allclose(table["expected_errors"], np.minimum(p, 1 - p).sum(axis=1))
    assert table["expected_errors"][table["rank"].idxmin()] == table["expected_errors"].max()
    assert table["n_given"].tolist() == (Y >= 0).sum(axis=1).tolist()
    assert table["given"][:40].tolist() == [";".join(np.array(NAMES)[r == 1]) for r in Y[:40]]
    assert table["given"][40:].isna().all()
    tags = fitted.tags_
    assert tags["tag"].tolist() == NAMES
    assert tags["n_labels"].tolist() == [40, 30, 40]
    assert tags["n_with"].tolist() == (Y == 1).sum(axis=0).tolist()
    np.testing.assert_allclose(tags["share"], p.mean(axis=0))
    assert tags["verdict"].tolist() == [fitted.of(name).result_.trust.level for name in NAMES]
    left_out = gq.leave_one_out(fitted.of("high").result_).of_class
    rows = fitted.of("high").result_.posterior.labelled
    own = np.log(left_out[np.arange(30), Y[rows, 1]]).mean()
    assert tags["log_score"][1] == pytest.approx(own)


def test_more_labels_of_one_tag(fitted):
    changed = pickle.loads(pickle.dumps(fitted))
    doubtful = 40 + int(abs(fitted.tag_probabilities_[40:, 1] - 0.5).argmin())
    changed.of("high").add_labels([doubtful], [1])
    assert fitted.tag_probabilities_[doubtful, 1] < 0.7 < changed.tag_probabilities_[doubtful, 1]
    np.testing.assert_array_equal(changed.tag_probabilities_[:, 0], fitted.tag_probabilities_[:, 0])


def test_files_and_copies(fitted, tmp_path):
    fitted.save(tmp_path / "tags.nc")
    again = gq.load(tmp_path / "tags.nc")
    assert isinstance(again, gq.MultilabelClassifier)
    assert again.classes_.tolist() == NAMES
    assert again.estimator.inference == "expectation-propagation"
    new = RNG.normal(size=(5, 2))
    np.testing.assert_allclose(again.predict_proba(new), fitted.predict_proba(new), atol=1e-9)
    written = Counter(
        name for group in read_tree(tmp_path / "tags.nc").subtree for name in group.data_vars
    )
    assert written["eigenvectors"] == written["block_powers"] == 1  # tags share them
    few = [block for one in fitted.estimators_ for block in one.result_.posterior.spectrum.blocks
           if block.name == "few variables"]  # fmt: skip
    assert written["block_few variables"] == len(few) > 1  # each tag has its own
    other = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(other.tag_probabilities_, fitted.tag_probabilities_)
    copy = clone(fitted).set_params(estimator__n_neighbors=7).fit(X, Y)
    assert copy.of(0).n_neighbors == 7
    assert fitted.of("high").n_neighbors == "auto"


def test_score_is_that_of_whole_rows(fitted):
    right = (fitted.predict(X) == TRUE).all(axis=1)
    assert fitted.score(X, TRUE) == pytest.approx(right.mean())
    weights = np.arange(120.0)
    assert fitted.score(X, TRUE, weights) == pytest.approx(np.average(right, weights=weights))
    with pytest.warns(UnlabelledScoreWarning, match="90 of 120 rows have unknown tags"):
        assert fitted.score(X, Y) == pytest.approx(right[10:40].mean())
    scores = cross_val_score(gq.MultilabelClassifier(FAST), X[:60], TRUE[:60], cv=2)
    assert scores.shape == (2,)
    assert scores.min() > 0.3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "Y: None"),
        (TRUE[:, 0], r"Y: shape \(120,\).*sets of names"),
        (np.where(Y == 1, 2, Y), r"Y: 2 in row 0.*by \(table == 'yes'\)"),
        (np.where(Y == 1, "yes", "no"), "Y: '(yes|no)' in row"),
        (np.where(Y == 1, 0.5, Y), "Y: 0.5 in row"),
        (np.where(Y == 1, -1, Y), "no labelled row is with the tag 0"),
        (np.where(Y == 0, -1, Y), "no labelled row is without the tag 0"),
        (pd.DataFrame(Y, columns=["a", "a", "b"]), r"two columns \['a'\]"),
        ([{"a"}] * 60 + ["a"] * 60, "Y: 'a' in row 60.*give a set of names"),
        ([{1}] * 60 + [{2}] * 60, "names of tags that are no text"),
        (Y[:100], "100"),
        (pd.DataFrame(Y, index=np.arange(120)[::-1]), "index"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value[:20],
)
def test_wrong_tags_are_refused(given, words):
    features = pd.DataFrame(X) if isinstance(given, pd.DataFrame) else X
    with pytest.raises(InvalidInput, match=words):
        gq.MultilabelClassifier(FAST).fit(features, given)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ordered": True}, "estimator__ordered: True beside several tags"),
        ({"max_classes": 3}, "estimator__max_classes: 3"),
        ({"class_proportions": "labels"}, "estimator__class_proportions: 'labels'"),
        ({"store": "folder"}, "estimator__store: 'folder'"),
        ({"model": "nothing"}, "model: 'nothing'"),
    ],
)
def test_wrong_parameters_are_refused(changed, words):
    with pytest.raises(InvalidInput, match=words):
        gq.MultilabelClassifier(clone(FAST).set_params(**changed)).fit(X, Y)


def test_other_estimators_are_refused(fitted):
    with pytest.raises(InvalidInput, match="a AnnotatorClassifier; give a GraphClassifier"):
        gq.MultilabelClassifier(gq.AnnotatorClassifier()).fit(X, Y)
    with pytest.raises(InvalidInput, match="'low' is none of them"):
        fitted.of("low")
    with pytest.raises(InvalidInput, match=r"give .* in this order"):
        fitted.score(X, pd.DataFrame(TRUE, columns=NAMES[::-1]))
    with pytest.raises(InvalidInput, match=r"the tag \['low'\]"):
        fitted.score(X, [{"low"}] * 120)
    model = gq.models.Fixed(gq.priors.Matern(), gq.likelihoods.NoiseFree())
    own = gq.MultilabelClassifier(gq.GraphClassifier(model=model, inference="elliptical-slice"))
    with pytest.raises(IncompatibleParts, match="weights"):
        own.fit(X, Y, sample_weight=np.linspace(0.5, 1, 120))


def test_weights_of_rows_count_for_all_tags():
    weights = np.where(np.arange(120) < 20, 1.0, 0.05)
    found = gq.MultilabelClassifier(ALONE).fit(X, Y, weights)
    expected = clone(ALONE).fit(X, Y[:, 1], weights).label_distributions_[:, 1]
    np.testing.assert_allclose(found.tag_probabilities_[:, 1], expected, atol=1e-12)


def test_scikit_learn_fits_one_classifier_a_tag(alone):
    """`MultiOutputClassifier` takes −1 for unlabelled; it makes the graph for each tag again."""
    several = MultiOutputClassifier(clone(ALONE)).fit(X, Y)
    found = np.column_stack([one[:, 1] for one in several.predict_proba(X)])
    np.testing.assert_allclose(found, alone.tag_probabilities_, atol=1e-12)
    with pytest.raises(ValueError, match="NaN"):
        several.fit(X, np.where(Y < 0, np.nan, Y))
