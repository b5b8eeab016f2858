"""Components of many classes, compared by the labels of some of them."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference.model_average import screened
from graphuq.inference.model_average.components import Components
from graphuq.inference.model_average.likely_components import (
    A_CLASS,
    N_CHECKED,
    likely_components,
    likely_places,
    some_of,
)
from graphuq.models import Mixture, Term

N_CLASSES, N_LABELS = 50, 200
PRIOR = Mixture(
    [Term(1 / 3, gq.priors.Matern(0.08, 64.0)), Term(100 / 3, gq.priors.Matern(0.69, 5.0))],
    gq.Categorical([0.5, 0.5]),
)


def posterior(seed):
    """Return that of 200 labels of 50 classes, each of which has six places on a square."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(size=(1200, 2))
    centres = rng.uniform(size=(6 * N_CLASSES, 2))
    classes = ((features[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1) % N_CLASSES
    labelled = np.sort(rng.permutation(1200)[:N_LABELS])
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features))
    likelihood = gq.likelihoods.Probit(1.0, N_CLASSES, random_labels=True)
    return gq.Posterior(spectrum, PRIOR, likelihood, labelled, classes[labelled])


@pytest.mark.parametrize("seed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_labels_that_leave_components_out_agree_with_all_labels(seed):
    """Labels of a class each are likeliest where every label is noise."""
    target = posterior(seed)
    given = Components.of(target)
    noisy, own = given.log_prior + [one.log_evidence for one in given.fit()]
    assert own > noisy + 50
    first = screened(target).log_weights
    assert first[1] > first[0]
    assert likely_components(target).given.numbers.tolist() == [1]


def test_first_labels_are_of_as_many_classes_as_have_three():
    given = Components.of(posterior(0))
    few, places = some_of(given, N_CHECKED)
    assert few.n_classes == N_CHECKED // A_CLASS == len(np.unique(few.codes))
    np.testing.assert_array_equal(few.rows, given.rows[places])
    # Equal codes are of equal classes, the commonest ones.
    pairs = np.unique(np.stack([few.codes, given.codes[places]]), axis=1)
    assert pairs.shape[1] == few.n_classes
    counts = np.bincount(given.codes)
    assert counts[pairs[1]].min() >= np.sort(counts)[-few.n_classes]


@pytest.mark.parametrize(("n", "n_classes"), [(5, 2), (9, 5), (12, 8), (15, 11), (20, 16)])
def test_other_classes_are_added_where_some_have_too_few_labels(n, n_classes):
    """One class has three labels, two have two, and the others have one."""
    codes = np.r_[np.arange(16), 0, 1, 2, 2]
    given = Components.of(posterior(0)).at(slice(20), slice(None))
    given = given._replace(codes=codes, n_classes=16)
    few, places = some_of(given, n)
    assert len(np.unique(places)) == len(few.codes) == n
    assert few.n_classes == n_classes
    assert len(np.unique(few.codes)) <= n_classes


def test_labels_to_come_keep_components_of_one_block():
    logs, blocks = np.array([-20.0, -24.0, 0.0]), np.array(["graph", "graph", "features"])
    assert likely_places(logs, blocks, 10.0, reach=15.0).tolist() == [0, 2]
    assert likely_places(logs, blocks, 10.0, reach=25.0).tolist() == [0, 1, 2]
