"""Colours of classes in figures, in notebooks, and on the pages' maps."""

CLASS_COLORS = {
    "light": [
        "#2f80cc",
        "#e76300",
        "#66c8cc",
        "#5a5e6b",
        "#bd1f01",
        "#b9ac70",
        "#832db6",
        "#ffa90e",
        "#94a4a2",
        "#a96b59",
    ],
    "dark": [
        "#5aa6ea",
        "#f58a3c",
        "#a8ecee",
        "#7b808f",
        "#d8402a",
        "#d3c98f",
        "#a45cd6",
        "#ffb52e",
        "#a9b7b5",
        "#b97c6a",
    ],
}
"""Ten colours by the background, those of web/points.js, after Petroff 2021, arXiv:2107.02270.

Also readers who cannot see red, green or blue tell any two of them apart.
"""
NUMBER_COLORS = {
    "light": ("#1f5f9e", "#6f9dc4", "#b9c4c9", "#e0a15a", "#c8501e"),
    "dark": ("#7cc0ff", "#5f95c4", "#6d7880", "#d9a066", "#ff8a4c"),
}
"""Colours of numbers on the map, from low to high; ``points.js`` has them from high to low."""
SECOND_TEN = {"light": 0, "dark": 255}  # black or white, half of which is in colours 11 to 20


def class_color(code: int, theme: str) -> str:
    """Return the colour of a class as "#rrggbb"; colours repeat after 20.

    Examples
    --------
    >>> class_color(0, "light"), class_color(10, "light"), class_color(20, "light")
    ('#2f80cc', '#184066', '#2f80cc')
    """
    color = CLASS_COLORS[theme][code % 10]
    if code % 20 < 10:
        return color
    channels = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(c + SECOND_TEN[theme] + 1) // 2:02x}" for c in channels)
