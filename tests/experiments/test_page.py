"""The page of all outcomes."""

import pytest
from matplotlib.figure import Figure

from graphuq.experiments.base import OPEN_ROWS, Outcome, registered, write_summary


def figure12(context):
    """What is shown.

    And what more there is to say.
    """


@pytest.mark.parametrize(
    ("n_rows", "figure", "folded"),
    [(OPEN_ROWS + 1, True, True), (OPEN_ROWS, True, False), (OPEN_ROWS + 1, False, False)],
)
def test_a_long_table_is_folded_beside_its_figure(n_rows, figure, folded, tmp_path):
    (experiment,) = registered(figure12).values()
    rows = [{"x": i} for i in range(n_rows)]
    outcome = Outcome(rows, "In words.", Figure() if figure else None)
    write_summary("all", [(experiment, outcome, 1.0)], tmp_path / "index.html", quick=True)
    page = (tmp_path / "index.html").read_text()
    assert '<h2 id="figure12">Figure 12: What is shown</h2>' in page
    assert "what more" not in page
    assert (f"<summary>{n_rows} rows</summary>" in page) == folded
