"""A result as HTML, for notebooks: one fragment without scripts, for light and dark pages."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, shortened
from graphuq.results.caching import kept
from graphuq.results.errors_left import expected_errors
from graphuq.results.label_numbers import class_codes, is_labelled
from graphuq.results.map_html import map_html, map_words, places_on_map
from graphuq.results.summary import CERTAIN, class_rows, detail_lines, size_line, uncertain_line
from graphuq.results.trust.verdict_html import STYLE, verdict_html
from graphuq.utils.class_colors import class_color
from graphuq.utils.html.fragment import Html, element

if TYPE_CHECKING:
    from graphuq.results.result import Result

MAX_CLASSES = 20  # rows of the table
MAX_NAME = 40  # characters of a class's name


def result_html(result: "Result", codes: Int[np.ndarray, " N"] | None = None) -> Html:
    """Return verdict, errors left, classes and a small map.

    Parameters
    ----------
    result : Result
    codes : numpy.ndarray of int, shape (N,), optional
        Inferred classes, as indices of ``result.classes``; by default the most probable ones.
    """
    own = class_codes(result) if codes is None else codes
    size = f"{size_line(result)}. {errors_line(result)} {uncertain_line(result)}"
    details = [element("li", line) for line in detail_lines(result)]
    return element(
        "section",
        element("style", Html(STYLE + _colors(min(len(result.classes), 20)))),
        verdict_html(result.trust),
        element("p", size),
        element("div", _table(result, own), _map(result, own), class_="parts"),
        element("details", element("summary", "How it was computed"), element("ul", *details)),
        class_="graphuq-answer",
        aria_label="Answer of graphuq",
    )


@kept
def errors_line(result: "Result") -> str:
    """Return how many labels are probably wrong, in a sentence."""
    n_free = int((~is_labelled(result)).sum())
    try:
        errors = expected_errors(result)
    except IncompatibleParts:  # a point
        return "A point estimate does not tell how many labels are wrong."
    return (
        f"Errors left: about {errors.expected:,.0f} of {n_free:,} inferred labels are wrong "
        f"({errors.lower:,.0f} to {errors.upper:,.0f} with probability 0.9, by the model)."
    )


def _table(result: "Result", codes: Int[np.ndarray, " N"]) -> Html:
    """Return given and inferred nodes and mean probability of each class, with its colour."""
    rows = class_rows(result, codes)
    header = [
        element("th", name, scope="col")
        for name in ("class", "given", "inferred", "mean probability")
    ]
    body = [
        element(
            "tr",
            element(
                "th",
                element("i", "●", class_=f"c{k % 20}", aria_hidden="true"),
                f" {shortened(str(row.name), MAX_NAME)}",
                scope="row",
            ),
            element("td", f"{row.given:,}"),
            element("td", f"{row.inferred:,}"),
            element("td", "–" if row.probability is None else f"{row.probability:.3f}"),
        )
        for k, row in enumerate(rows[:MAX_CLASSES])
    ]
    table = element("table", element("thead", element("tr", *header)), element("tbody", *body))
    more = len(rows) - MAX_CLASSES
    return element("div", table, element("p", f"and {more:,} more classes") if more > 0 else "")


def _map(result: "Result", codes: Int[np.ndarray, " N"]) -> Html:
    """Return a picture of nodes beside similar ones: class by colour, faint where uncertain."""
    nodes, places = map_places(result)
    given = is_labelled(result)[nodes]
    certain = given | (result.probabilities[nodes].max(axis=1) >= CERTAIN)
    kinds = []
    for k in range(len(result.classes)):
        of_class, color = codes[nodes] == k, f"c{k % 20}"
        kinds += [(f"{color} faint", of_class & ~certain), (color, of_class & certain)]
    words = map_words(len(nodes), len(result.has_evidence), "nodes")
    note = f"{words}. Ringed: labelled. Faint: without a label, probability below {CERTAIN}."
    return map_html(places, given, kinds, f"Map of {words}, coloured by class", note)


@kept
def map_places(result: "Result") -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n 2"]]:
    """Return nodes for the map of a result, some of them labelled, and their places."""
    return places_on_map(result.posterior.spectrum, result.posterior.labelled)


def _colors(n_classes: int) -> str:
    """Return the rules of style that give each class its colour."""
    return "".join(
        f".graphuq-answer .c{k}{{color:light-dark({class_color(k, 'light')},"
        f"{class_color(k, 'dark')})}}"
        for k in range(n_classes)
    )
