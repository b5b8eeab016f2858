"""A verdict as HTML, for notebooks."""

from typing import TYPE_CHECKING

from graphuq.utils.html.fragment import Html, element

if TYPE_CHECKING:
    from graphuq.results.trust.base import Trust

DARK = ", ".join(
    f"{place} .graphuq-answer"
    for place in (
        "[data-jp-theme-light=false]",  # Jupyter
        ".vscode-dark",
        ".vscode-high-contrast",
        "html[theme=dark]",  # Colab
        "[data-theme=dark]",  # marimo, and sites made by Sphinx
        ".dark",
    )
)
STYLE = f"""
.graphuq-answer {{color-scheme: light; color: inherit; font-size: .9rem; line-height: 1.45;
 max-width: 52rem; margin: .4rem 0}}
{DARK} {{color-scheme: dark}}
@media (prefers-color-scheme: dark) {{[data-theme=auto] .graphuq-answer {{color-scheme: dark}}}}
.graphuq-answer p, .graphuq-answer ul {{margin: .45rem 0}}
.graphuq-answer b.green {{background: light-dark(#1f7a4d, #6fd3a0)}}
.graphuq-answer b.amber {{background: light-dark(#8a5a00, #edbd5a)}}
.graphuq-answer b.red {{background: light-dark(#b3261e, #ff8f85)}}
.graphuq-answer p > b {{color: light-dark(#fff, #14171c); border-radius: 99px;
 padding: .15rem .7rem; margin-right: .4rem}}
.graphuq-answer .parts {{display: flex; flex-wrap: wrap; gap: .5rem 2rem; align-items: flex-start}}
.graphuq-answer table {{border-collapse: collapse; margin: 0; font-size: inherit;
 font-variant-numeric: tabular-nums}}
.graphuq-answer :is(th, td) {{border: 0; border-bottom: 1px solid rgba(128, 128, 128, .35);
 background: none; padding: .15rem .7rem .15rem 0; text-align: right; vertical-align: top}}
.graphuq-answer :is(th:first-child, .left) {{text-align: left}}
.graphuq-answer tbody th {{font-weight: normal; overflow-wrap: anywhere}}
.graphuq-answer th.name {{white-space: nowrap}}
.graphuq-answer i {{font-style: normal}}
.graphuq-answer figure {{margin: 0}}
.graphuq-answer figcaption {{font-size: .85em; max-width: 300px}}
.graphuq-answer svg {{width: 300px; max-width: 100%; display: block}}
.graphuq-answer path {{stroke: currentColor; stroke-width: 6; stroke-linecap: round; fill: none}}
.graphuq-answer path.faint {{opacity: .45}}
.graphuq-answer path.given {{stroke-width: 10}}
.graphuq-answer summary {{cursor: pointer}}
"""
"""Style of every fragment. What a theme of a notebook does not decide has a colour for each."""


def verdict_html(trust: "Trust") -> Html:
    """Return the verdict and the reasons for it."""
    level, words = trust.level, trust.headline.partition("(")[2].rstrip(").")
    badge = element("b", f"{trust.mark} {level.upper()}", class_=level)
    reasons = element("ul", *(element("li", reason) for reason in trust.reasons))
    return element(
        "div",
        element("p", badge, f"{words[0].upper()}{words[1:]}."),
        reasons if trust.reasons else "",
    )


def trust_html(trust: "Trust") -> Html:
    """Return the verdict and a table with the finding of each check."""
    header = [element("th", name, scope="col", class_="left") for name in ("check", "finding")]
    rows = [
        element(
            "tr",
            element("th", f"{check.mark} {name.replace('_', ' ')}", scope="row", class_="name"),
            element("td", check.sentence, class_="left"),
        )
        for name, check in trust.checks.items()
    ]
    return element(
        "section",
        element("style", Html(STYLE)),
        verdict_html(trust),
        element("table", element("thead", element("tr", *header)), element("tbody", *rows)),
        class_="graphuq-answer",
        aria_label="Verdict of graphuq",
    )
