"""Names that somebody may have meant."""

import pytest

from graphuq.utils.near_names import did_you_mean

NAMES = ["Valjean", "side", "170", 3, "V-18"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Valjan", "did you mean 'Valjean'?"),
        ("bub", "use another"),  # one letter of four
        ("17", "use another"),  # no slip for 170
        (17, "use another"),
        ("V-17", "use another"),
        ("v-18", "did you mean 'V-18'?"),
        ("", "use another"),
    ],
)
def test_near_names(name, said):
    assert did_you_mean(name, NAMES, "use another") == said
