"""Krippendorff's alpha: published examples, all pairs counted, and the coverage of its interval."""

from itertools import permutations

import numpy as np
import pytest

from graphuq.errors import InvalidInput
from graphuq.labelling.agreement import krippendorff_alpha

# Krippendorff (2011), Computing Krippendorff's alpha-reliability: two observers and binary data,
# and four observers of twelve units with missing values (a point).
BINARY = ("0100000010", "1110010000")
MISSING = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def items_of(observers):
    return [
        {str(who): value for who, value in enumerate(values) if value != "."}
        for values in zip(*observers, strict=True)
    ]


def by_pairs(items):
    """Count all pairs of values, as the definition has it."""
    pairable = [list(item.values()) for item in items if len(item) > 1]
    values = [value for item in pairable for value in item]
    observed = sum(
        sum(a != b for a, b in permutations(item, 2)) / (len(item) - 1) for item in pairable
    )
    expected = sum(a != b for a, b in permutations(values, 2)) / (len(values) - 1)
    return 1 - observed / expected


@pytest.mark.parametrize(("observers", "alpha"), [(BINARY, 0.095), (MISSING, 0.743)])
def test_published_examples(observers, alpha):
    found = krippendorff_alpha(items_of(observers))
    assert round(found.alpha, 3) == alpha
    assert found.lower < alpha < found.upper
    assert found.n_items == (10 if observers is BINARY else 11)  # one unit has a single value


def test_all_pairs_counted():
    rng = np.random.default_rng(1)
    for _ in range(20):
        n_people, n_classes = rng.integers(2, 6), rng.integers(2, 5)
        items = [
            {
                str(who): str(rng.integers(n_classes))
                for who in range(n_people)
                if rng.random() < 0.6
            }
            for _ in range(30)
        ]
        assert krippendorff_alpha(items).alpha == pytest.approx(by_pairs(items), abs=1e-12)


def test_agreement_and_contradiction():
    both = [{"a": str(k % 3), "b": str(k % 3)} for k in range(9)]
    assert krippendorff_alpha(both).alpha == krippendorff_alpha(both).upper == 1
    assert krippendorff_alpha([{"a": "x", "b": "y"}] * 9).alpha < 0


def test_a_few_items_that_agree_do_not_show_full_agreement():
    """The lower end is 1 − (1 − 0.05^(1/n)) / D_e: of 15 items, a fifth may differ."""
    lower = {}
    for n in (15, 150):
        lower[n] = krippendorff_alpha([{"a": str(k % 3), "b": str(k % 3)} for k in range(n)]).lower
        chance = (1 - 1 / 3) * 2 * n / (2 * n - 1)
        assert lower[n] == pytest.approx(1 - (1 - 0.05 ** (1 / n)) / chance, abs=1e-12)
    assert lower[15] < 0.75 < 0.95 < lower[150] < 1


def test_interval_holds_the_alpha_of_the_population():
    """Two people with accuracy .8 and three classes: 1 − D_o / D_e of endless items."""
    rng, held, n_trials = np.random.default_rng(0), 0, 300
    same = 0.8**2 + 0.2**2 / 2
    truth = 1 - (1 - same) / (2 / 3)
    for _ in range(n_trials):
        classes = rng.integers(3, size=80)
        people = [
            np.where(rng.random(80) < 0.8, classes, (classes + rng.integers(1, 3, 80)) % 3)
            for _ in range(2)
        ]
        found = krippendorff_alpha(
            [{"a": str(a), "b": str(b)} for a, b in zip(*people, strict=True)]
        )
        held += found.lower <= truth <= found.upper
    error = np.sqrt(0.9 * 0.1 / n_trials)
    assert abs(held / n_trials - 0.9) < 4 * error


def test_what_has_no_alpha_is_refused():
    with pytest.raises(InvalidInput, match="two people"):
        krippendorff_alpha([{"a": "x"}, {"b": "y"}])
    with pytest.raises(InvalidInput, match="one class"):
        krippendorff_alpha([{"a": "x", "b": "x"}] * 3)
