"""Colours of classes: also colour-blind readers tell them apart; figures and pages agree."""

import itertools
import re
from importlib.resources import files

import matplotlib.style
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from graphuq.plots import class_colors
from graphuq.plots.panels import GREY, accents, label_colors

# Machado, Oliveira & Fernandes 2009, severity 1: linear RGB as seen by dichromats.
SIGHT = {
    "all colours": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Ottosson 2020: Oklab, in which equal distances look equal.
CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
OKLAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def palette_of_pages(theme):
    text = (files("graphuq") / "web" / "points.js").read_text("utf-8")
    block = re.search(rf"CLASS_COLORS = {{.*?\b{theme}: \[(.*?)\]", text, re.DOTALL)[1]
    return re.findall(r"#[0-9a-f]{6}", block)


def least_distance(colors, sight):
    """Smallest distance of two colours, in hundredths of the distance from black to white."""
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(sight).T, 0, 1)
    lab = np.cbrt(seen @ np.array(CONES).T) @ np.array(OKLAB).T
    return min(100 * np.linalg.norm(a - b) for a, b in itertools.combinations(lab, 2))


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_ten_colours_differ_to_all_readers(theme, sight):
    """Measured 6.3 and more; of matplotlib's tab10 two colours are 0.7 apart without red."""
    colors = palette_of_pages(theme)
    assert len(colors) == 10
    assert least_distance(colors, SIGHT[sight]) > 6
    assert least_distance(colors[:4], SIGHT[sight]) > 12


def test_the_measure_finds_a_bad_palette():
    assert least_distance([f"C{k}" for k in range(10)], SIGHT["no red"]) < 1


@pytest.mark.parametrize(("theme", "style"), [("light", "default"), ("dark", "dark_background")])
def test_figures_have_the_colours_of_the_pages(theme, style):
    with matplotlib.style.context(style):
        figures = [to_rgb(class_colors(10)(k)) for k in range(10)]
        twenty = {class_colors(20)(k) for k in range(20)}
    assert figures == [to_rgb(color) for color in palette_of_pages(theme)]
    assert len(twenty) == 20


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_curves_and_ends_of_label_means_differ_to_all_readers(style, sight):
    with matplotlib.style.context(style):
        curves = [*accents(), GREY]
        means = [label_colors()(x) for x in (0.0, 0.5, 1.0)]
    assert least_distance(curves, SIGHT[sight]) > 11
    assert least_distance(means, SIGHT[sight]) > 20
