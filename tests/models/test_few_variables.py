"""The default on tables whose classes depend on few of many variables."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.models import Labels
from graphuq.models.few_variables import _some_of_each, has_same_few, with_few_variables
from graphuq.models.learnt_odds import learnt_mixture


def table(n=300, n_others=20, seed=0):
    """Return rows whose class says whether the first of many variables is in one of two bands."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 1 + n_others))
    return X, ((X[:, 0] * 4).astype(int) % 2)


def few_labels(classes, n, seed=0):
    y = np.full(len(classes), -1)
    rows = np.random.default_rng(seed).choice(len(classes), n, replace=False)
    y[rows] = classes[rows]
    return y


def labels_of(y):
    return Labels(np.flatnonzero(y >= 0), y[y >= 0], 2)


def block_of(basis):
    found = [block for block in basis.blocks if block.name == "few variables"]
    return found[0] if found else None


def test_one_of_many_variables_is_found():
    X, classes = table()
    y = few_labels(classes, 50)
    found = gq.GraphClassifier().fit(X, y)
    hidden = y < 0
    assert (found.transduction_[hidden] == classes[hidden]).mean() > 0.9
    block = block_of(found.result_.posterior.spectrum)
    assert np.flatnonzero(np.isfinite(block.scales)).tolist() == [0]
    new, of_new = table(seed=1)
    assert (found.predict(new) == of_new).mean() > 0.9


def test_odds_are_those_of_all_variables_times_those_of_the_few():
    X, classes = table(n_others=3)
    basis = with_few_variables(gq.Basis.of(gq.graphs.knn_graph(X)), labels_of(classes[:20]))
    mixture = learnt_mixture(basis, 2, 20)
    logs = mixture.log_probabilities
    totals = {
        b: np.logaddexp.reduce(logs[mixture.uses(b)]) for b in ("exponential", "few variables")
    }
    expected = block_of(basis).log_prior
    assert totals["few variables"] - totals["exponential"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "kind", ["one variable", "sparse", "wide", "without features", "one class"]
)
def test_other_bases_stay_as_they_are(kind):
    X, classes = table(n=120, n_others=4 if kind != "wide" else 120)
    rows = {"one variable": X[:, :1], "sparse": sparse.csr_array(np.eye(120))}.get(kind, X)
    basis = gq.Basis.of(gq.graphs.knn_graph(rows), n_eigenpairs=20)
    if kind == "without features":
        basis = gq.Basis(basis.spectrum, basis.blocks)
    y = np.where(np.arange(120) < 30, classes, -1)
    if kind == "one class":
        y = np.where(y == 1, y, -1)
    assert with_few_variables(basis, labels_of(y)) is basis


@pytest.mark.parametrize("n_labels", [20, 150, 2_000])
def test_labels_that_choose_have_one_of_each_class(n_labels):
    """All of few labels choose; of many a part does, in which no rare class is missing."""
    codes = np.full(n_labels, 1)
    codes[[3, 17]] = 0, 2
    chosen = _some_of_each(codes)
    assert len(chosen) == len(set(chosen.tolist())) == min(n_labels, 150)
    assert set(codes[chosen]) == {0, 1, 2}


def test_units_order_and_names_do_not_matter():
    X, classes = table(n=120, n_others=4)
    y = few_labels(classes, 30)
    order = np.array([3, 1, 0, 4, 2])
    first = block_of(with_few_variables(gq.Basis.of(gq.graphs.knn_graph(X)), labels_of(y)))
    changed = (X * [1e3, 1.0, 1e-3, 7.0, 1.0] + 5)[:, order]
    other = np.where(y >= 0, 1 - y, -1)
    basis = gq.Basis.of(gq.graphs.knn_graph(changed))
    second = block_of(with_few_variables(basis, labels_of(other)))
    assert second.log_prior == first.log_prior
    np.testing.assert_allclose(second.values @ second.values.T, first.values @ first.values.T)


def test_added_labels_choose_again_as_a_fit_would():
    X, classes = table()
    y, more = few_labels(classes, 12), few_labels(classes, 60, seed=1)
    grown = gq.GraphClassifier().fit(X, y)
    rows = np.flatnonzero((more >= 0) & (y < 0))
    grown.add_labels(rows, classes[rows])
    fresh = gq.GraphClassifier().fit(X, np.where(more >= 0, more, y))
    assert has_same_few(grown.result_.posterior.spectrum, fresh.result_.posterior.spectrum)
    apart = np.abs(grown.label_distributions_ - fresh.label_distributions_)
    assert apart.mean() < 0.01


def test_a_file_predicts_as_the_fit(tmp_path):
    X, classes = table()
    fitted = gq.GraphClassifier().fit(X, few_labels(classes, 40))
    fitted.save(tmp_path / "fit.nc")
    again = gq.GraphClassifier.load(tmp_path / "fit.nc")
    new = table(seed=1)[0]
    np.testing.assert_allclose(again.predict_proba(new), fitted.predict_proba(new), atol=1e-9)
    added = [5, 6, 7]
    for one in (fitted, again):
        one.add_labels(added, classes[added])
    assert has_same_few(fitted.result_.posterior.spectrum, again.result_.posterior.spectrum)


@pytest.mark.parametrize("model", ["auto", gq.models.Likeliest()])
@pytest.mark.parametrize("eigenpairs", ["extend", "recompute"])
def test_rows_are_added_to_an_answer_of_few_variables(model, eigenpairs):
    X, classes = table(n=200)
    new, of_new = table(n=40, seed=1)
    fitted = gq.GraphClassifier(model=model).fit(X, few_labels(classes, 50))
    assert fitted.result_.posterior.spectrum.has("few variables")
    fitted.add_rows(new, eigenpairs=eigenpairs)
    if model == "auto" or eigenpairs == "recompute":  # else means over neighbours, as eigenvectors
        assert (fitted.transduction_[200:] == of_new).mean() > 0.8
    fitted.add_labels([200, 201], of_new[:2])
    fitted.add_rows(new[:2] + 1e-3, eigenpairs="recompute")
    assert len(fitted.transduction_) == 242


def test_the_likeliest_component_may_be_of_few_variables():
    X, classes = table()
    y = few_labels(classes, 50)
    found = gq.GraphClassifier(model=gq.models.Likeliest()).fit(X, y)
    assert found.result_.posterior.prior.blocks == ["few variables"]
    assert (found.transduction_[y < 0] == classes[y < 0]).mean() > 0.9


def test_thirty_of_the_labels_do_not_forget_variables_that_all_of_them_find():
    """Which thirty these are depends on the order of the rows; the answer did, too."""
    rng = np.random.default_rng(1)
    kind = rng.integers(15, size=200)
    classes = kind % 4
    columns = {"kind": [f"kind {k}" for k in kind]}
    for j in range(4):
        columns[f"x{j}"] = rng.normal(size=4)[classes] + rng.normal(size=200)
    X = gq.TableEncoder().fit_transform(pd.DataFrame(columns))
    y = np.where(np.arange(200) < 60, classes, -1)
    for seed in (0, 2):
        rows = np.random.default_rng(seed).permutation(200)
        found = gq.GraphClassifier(inference="expectation-propagation").fit(X[rows], y[rows])
        assert gq.results.block_weights(found.result_)["few variables"] > 0.2
