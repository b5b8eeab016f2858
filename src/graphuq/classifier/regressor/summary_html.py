"""A fitted regressor as HTML, for notebooks: one fragment without scripts."""

from typing import TYPE_CHECKING

import numpy as np

from graphuq.classifier.regressor.rows import unit_of_field
from graphuq.classifier.regressor.trust import COVERAGES, Predicted, left_out, trust_of
from graphuq.classifier.regressor.values import COLOR_ENDS, number_format
from graphuq.results.map_html import map_html, map_words, places_on_map
from graphuq.results.trust.verdict_html import STYLE, verdict_html
from graphuq.utils.class_colors import NUMBER_COLORS
from graphuq.utils.html.fragment import Html, element, joined

if TYPE_CHECKING:
    from graphuq.classifier.regressor.regressor import GraphRegressor

N_COLORS = len(NUMBER_COLORS["light"])


def regressor_html(regressor: "GraphRegressor") -> Html:
    """Return verdict, size of the errors, coverage of the intervals and a small map."""
    others = left_out(regressor)
    show, _ = number_format(regressor.posterior_.unit)
    noise, _ = number_format(regressor.posterior_.spread)
    size = (
        f"{len(regressor.transduction_):,} rows, {len(others.known):,} with a number. "
        f"Left out one at a time, given numbers are off by {show(others.error)} (root mean "
        f"square); their standard deviation is {show(float(others.known.std()))}, and that of the "
        f"{regressor.posterior_.noise} {noise(regressor.noise_std_)}."
    )
    return element(
        "section",
        element("style", Html(STYLE + _colors())),
        verdict_html(trust_of(regressor)),
        element("p", size),
        element("div", _coverage(others), _map(regressor), class_="parts"),
        class_="graphuq-answer",
        aria_label="Answer of graphuq",
    )


def _coverage(others: Predicted) -> Html:
    """Return the share of given numbers in intervals that did not use them."""
    names = ("interval", "holds")
    header = element("tr", *(element("th", name, scope="col") for name in names))
    rows = [
        element("tr", element("th", f"{p:.0%}", scope="row"), element("td", f"{share:.1%}"))
        for p, share in zip(COVERAGES, others.shares(), strict=True)
    ]
    words = "Given numbers in intervals from all others."
    table = element("table", element("thead", header), element("tbody", *rows))
    return element("div", table, element("p", words))


def _map(regressor: "GraphRegressor") -> Html:
    """Return a picture of rows beside similar ones, coloured by predicted number."""
    model, mean = regressor.posterior_.engine, regressor.transduction_
    nodes, places = places_on_map(model.spectrum, model.labelled)
    low, high = np.quantile(mean, COLOR_ENDS)
    show, _ = number_format(unit_of_field(regressor))
    inner = np.linspace(low, high, N_COLORS + 1)[1:-1]
    level = np.searchsorted(inner, mean[nodes])
    kinds = [(f"v{k}", level == k) for k in range(N_COLORS)]
    words = map_words(len(nodes), len(mean), "rows")
    scale = [element("i", "●", class_=f"v{k}", aria_hidden="true") for k in range(N_COLORS)]
    ends = joined(f"{show(low)} ", *scale, f" {show(high)}")
    what = "Predicted" if regressor.exposure_ is None else "Predicted for an exposure of 1"
    note = joined(f"{words}. Ringed: with a number. {what}: ", ends)
    given = np.isin(nodes, model.labelled)
    return map_html(places, given, kinds, f"Map of {words}, coloured by predicted number", note)


def _colors() -> str:
    """Return the rules of style that give each range of numbers its colour."""
    pairs = zip(NUMBER_COLORS["light"], NUMBER_COLORS["dark"], strict=True)
    return "".join(
        f".graphuq-answer .v{k}{{color:light-dark({light},{dark})}}"
        for k, (light, dark) in enumerate(pairs)
    )
