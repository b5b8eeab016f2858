"""The average over learnt components: how labels were chosen, and what it refuses."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.models import Average, Labels

MOONS = gq.datasets.two_moons(80, n_features=2, noise_std=0.08)
BASIS = gq.Basis.of(gq.graphs.knn_graph(MOONS.features), n_eigenpairs=20)


def labels_of(codes):
    return Labels.of(np.append(codes, np.full(80 - len(codes), -1)))


def test_equal_numbers_of_labels_were_drawn_class_by_class():
    def of(codes, label_design="auto"):
        return Average(label_design).posterior(BASIS, labels_of(codes)).label_design

    assert of([1, 1, 0, 0]) == "by-class"
    assert of([1, 0]) == "random"  # one label of each class is not enough to tell
    assert of([1, 1, 0]) == "random"
    assert of([1, 1, 0, 0], "random") == "random"
    assert of([1, 1, 0], "by-class") == "by-class"
    assert of([0, 0, 1, 1, 2, 2]) == "by-class"
    assert of([0, 0, 1, 1, 2, 2, 2]) == "random"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([10, 10, 9], "by-class"),
        ([6, 6, 6, 6, 6, 5], "by-class"),
        ([5, 5, 4], "random"),
        ([10, 9, 7], "random"),
        ([20, 19], "random"),
    ],
)
def test_nearly_equal_numbers_too_if_chance_seldom_makes_them(counts, expected):
    """Against draws of labels from equally common classes; draws as equal count half."""
    labels = labels_of(np.repeat(np.arange(len(counts)), counts))
    assert Average().design_of(labels) == expected
    draws = np.random.default_rng(0).multinomial(
        sum(counts), np.full(len(counts), 1 / len(counts)), 20_000
    )
    spread, own = draws.var(axis=1), np.var(counts)
    chance = (spread < own - 1e-9).mean() + (np.abs(spread - own) < 1e-9).mean() / 2
    assert (chance < 0.05) == (expected == "by-class")


def test_rows_that_were_proposed_were_not_chosen_class_by_class():
    labels = labels_of([1, 1, 0, 0])._replace(rows_were_chosen=True)
    assert Average().design_of(labels) == "random"
    assert Average("by-class").design_of(labels) == "by-class"  # the user knows


def test_label_design_that_cannot_be_used():
    with pytest.raises(InvalidInput, match="label_design: 'sorted'"):
        Average(label_design="sorted")
    given = BASIS, gq.priors.Matern(), gq.likelihoods.Probit(), [0, 1], [1, -1]
    with pytest.raises(InvalidInput, match="label_design: 'sorted'"):
        gq.Posterior(*given, label_design="sorted")
    with pytest.raises(IncompatibleParts, match="needs a mixture of priors if there are two"):
        gq.Posterior(*given, label_design="by-class")


def test_other_labels_and_bases_are_refused_with_the_remedy():
    labels = labels_of([0, 1, 1])
    soft = labels._replace(distributions=np.full((3, 2), 0.5))
    with pytest.raises(IncompatibleParts, match="LargestEvidence"):
        Average().check(soft)
    with pytest.raises(IncompatibleParts, match="leave max_classes out"):
        Average().check(labels._replace(max_classes=3))
    tail = gq.Basis.of(gq.graphs.knn_graph(MOONS.features), n_eigenpairs=9, tail_eigenvalue=1.0)
    laplacian = gq.spectrum.Laplacian(gq.graphs.knn_graph(MOONS.features), "symmetric")
    for basis in (tail, laplacian):
        with pytest.raises(IncompatibleParts, match="needs eigenpairs without a tail"):
            Average().posterior(basis, labels)
