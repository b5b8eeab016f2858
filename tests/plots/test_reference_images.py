"""Pictures of every ``plot_`` function agree with reference images, and say what they show."""

import itertools

import numpy as np
import pytest
from matplotlib.container import BarContainer
from PIL import Image

from graphuq import plots
from plots.reference_figures import FOLDER, drawn, figures, save_without_words

TOLERANCE = 1.0  # grey levels, of 255; matplotlib 3.9 and 3.11 differ by 0.4 at most
WINDOW = tuple(itertools.product((-1, 0, 1), repeat=2))
FIGURES = figures()


def one_way(found, expected):
    """Return the root mean square difference of each pixel from the likest one beside it."""
    shifted = [np.roll(expected, step, axis=(0, 1)) for step in WINDOW]
    return np.sqrt(
        np.min([((found - other) ** 2).mean(axis=2) for other in shifted], axis=0).mean()
    )


def difference(figure, name, folder):
    """Return by how much a figure and its reference differ, but for shifts by one pixel."""
    path = folder / f"{name}.png"
    save_without_words(figure, path)
    images = [np.asarray(Image.open(p).convert("RGB"), float) for p in (path, FOLDER / path.name)]
    return max(one_way(*images), one_way(*images[::-1]))


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_agrees_with_its_reference(name, tmp_path):
    assert difference(drawn(name, *FIGURES[name]), name, tmp_path) < TOLERANCE


def shown(figure):
    """Return what holds data in a figure: each curve, set of points, set of bars and image."""
    parts = []
    for ax in figure.axes:
        if ax.get_label() != "<colorbar>":
            bars = [box.patches for box in ax.containers if isinstance(box, BarContainer)]
            steps = [[patch] for patch in ax.patches if patch not in itertools.chain(*bars)]
            points = [c for c in ax.collections if c.get_offsets().size or not len(c.get_sizes())]
            parts += [*bars, *steps, *([artist] for artist in (*ax.lines, *points, *ax.images))]
    return parts


@pytest.mark.parametrize("name", FIGURES)
def test_the_comparison_sees_what_is_missing(name, tmp_path):
    parts = shown(drawn(name, *FIGURES[name]))
    assert parts
    for k in {0, len(parts) - 1}:
        figure = drawn(name, *FIGURES[name])
        for artist in shown(figure)[k]:
            artist.set_visible(False)
        assert difference(figure, name, tmp_path) > TOLERANCE


def test_every_plot_has_a_reference():
    drawn_here = {name.split("_")[0] for name in FIGURES}
    assert drawn_here == {name[5:] for name in plots.__all__ if name.startswith("plot_")}
    assert {path.stem for path in FOLDER.glob("*.png")} == set(FIGURES)


def unnamed(figure):
    """Return what a reader could not name: an axis, a colour bar, or one of several curves."""
    faults = []
    for ax in figure.axes:
        bar = ax.get_label() == "<colorbar>"
        below = "" if bar else "".join(other.get_xlabel() for other in figure.axes)
        words = {"x": below or bar, "y": ax.get_ylabel()}
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            if len(axis.get_ticklocs()) and not words[axis.axis_name]:
                faults.append(f"{axis.axis_name} axis of '{ax.get_title()}'")
        named = [a for a in (*ax.lines, *ax.collections) if a.get_label()[:1] not in "_"]
        if len(named) > 1 and not ax.get_legend():
            faults.append(f"no legend of '{ax.get_title()}'")
    return faults


@pytest.mark.parametrize("name", FIGURES)
def test_axes_and_curves_have_names(name):
    assert unnamed(drawn(name, *FIGURES[name])) == []
