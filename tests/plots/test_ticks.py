"""Words below an axis, which must not lie upon each other."""

import pytest

pytest.importorskip("matplotlib", reason="pip install graphuq[plots], to test figures")
from matplotlib.backends.backend_agg import FigureCanvasAgg

from graphuq import plots
from graphuq.plots.panels import figure_text, show_label_mean_ticks

NAMES = [
    ["comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"],
    [figure_text("a" * 100), figure_text("b" * 100)],
]


@pytest.mark.parametrize("names", NAMES, ids=["groups", "long"])
def test_names_of_classes_have_a_line_of_their_own(names):
    figure, (ax,) = plots.panels()
    ax.set_xlim(-1.05, 1.05)
    show_label_mean_ticks(ax, names)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    first, *between, last = (tick.get_window_extent(renderer) for tick in ax.get_xticklabels())
    lines = [label.get_text().split("\n") for label in ax.get_xticklabels()]
    assert [lines[0], lines[-1]] == [["−1", names[0]], ["+1", names[1]]]
    assert not first.overlaps(last)
    below = max(first.y0 + first.height / 2, last.y0 + last.height / 2)  # where names begin
    assert all(box.y0 > below - 1 for box in between)
    assert figure.bbox.x0 <= first.x0
    assert last.x1 <= figure.bbox.x1
