"""The report of a campaign as a page without scripts, which changes nothing."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader

from graphuq.labelling.campaign import Campaign, duration

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 220, 46, 26, 12
N_COLORS = 6  # of lines; the style sheet has them


def campaign_page(campaign: Campaign, title: str, base: str | None = None) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    campaign : Campaign
    title : str
    base : str, optional
        Path of the page that has the style; by default the style is in the report itself.
    """
    pages = Environment(loader=PackageLoader("graphuq.labelling", "static"), autoescape=True)
    pages.filters |= {"percent": _percent, "duration": _duration, "minute": _minute}
    last = max([0.0, *(at for line in campaign.growth.values() for at, _ in line)])
    last = max(last, *(audit["seconds"] for audit in campaign.audits), 1.0)
    growth = {user: _steps(line, last) for user, line in campaign.growth.items()}
    most = max([1, *(n for line in campaign.growth.values() for _, n in line)])
    return pages.get_template("campaign.html").render(
        c=campaign,
        title=title,
        base=base,
        style=None if base is not None else _style(),
        labels_chart=_Chart(last, most, growth),
        errors_chart=_Chart(
            last, max([1.0, *(e for _, e in campaign.expected)]), {"": campaign.expected}
        ),
        n_colors=N_COLORS,
    )


class _Chart:
    """Lines over time, in coordinates of the picture."""

    width, height, left, floor, top_y = WIDTH, HEIGHT, LEFT, HEIGHT - BOTTOM, TOP

    def __init__(self, last: float, top: float, lines: dict[str, list[tuple[float, Any]]]) -> None:
        self.top, self.last = round(top), last
        self.lines = {
            name: " ".join(f"{self._x(at):.1f},{self._y(value / top):.1f}" for at, value in line)
            for name, line in lines.items()
        }

    def _x(self, at: float) -> float:
        return LEFT + at / self.last * (WIDTH - LEFT - 12)

    def _y(self, share: float) -> float:
        return TOP + (1 - share) * (self.floor - TOP)


def _style() -> str:
    return (files("graphuq") / "labelling" / "static" / "label.css").read_text(encoding="utf-8")


def _steps(line: Sequence[tuple[float, int]], last: float) -> list[tuple[float, int]]:
    """Return the corners of a line that stays level between labels."""
    found, before = [(line[0][0], 0)], 0
    for at, n in line:
        found += [(at, before), (at, n)]
        before = n
    return [*found, (last, before)]


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share:.1f}".removesuffix(".0") + "\u00a0%"


def _duration(seconds: float | None) -> str:
    return duration(seconds).replace(" ", "\u00a0")


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")
