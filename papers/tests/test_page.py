"""HTML page of all outcomes."""

import pytest
from matplotlib.figure import Figure

from graphuq_papers.base import OPEN_ROWS, Done, Outcome, experiment, write_summary


@experiment()
def figure12(context):
    """Title of the figure.

    Further explanation.
    """


@pytest.mark.parametrize(
    ("n_rows", "figure", "folded"),
    [(OPEN_ROWS + 1, True, True), (OPEN_ROWS, True, False), (OPEN_ROWS + 1, False, False)],
)
def test_long_table_beside_a_figure_is_folded(n_rows, figure, folded, tmp_path):
    rows = [{"x": i} for i in range(n_rows)]
    outcome = Outcome(rows, "Summary.", Figure() if figure else None)
    write_summary("all", [Done("zhu", figure12, outcome, 1.0)], tmp_path / "index.html", quick=True)
    page = (tmp_path / "index.html").read_text()
    assert '<h2 id="zhu-figure12">Zhu, figure 12: Title of the figure</h2>' in page
    assert "Further explanation" not in page
    assert (f"<summary>{n_rows} rows</summary>" in page) == folded
