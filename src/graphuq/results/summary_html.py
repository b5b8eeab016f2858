"""A result as HTML, for notebooks: one fragment without scripts, for light and dark pages."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, shortened
from graphuq.results.caching import kept
from graphuq.results.errors_left import expected_errors
from graphuq.results.label_numbers import class_codes, is_labelled
from graphuq.results.summary import CERTAIN, class_rows, detail_lines, size_line, uncertain_line
from graphuq.results.trust.verdict_html import STYLE, verdict_html
from graphuq.utils.class_colors import class_color
from graphuq.utils.html.fragment import Html, element

if TYPE_CHECKING:
    from graphuq.results.result import Result

MAX_NODES = 500  # on the map: t-SNE of these takes less than a second
MAX_OUTLINED = 100  # labelled nodes among them
MAX_CLASSES = 20  # rows of the table
MAX_NAME = 40  # characters of a class's name
WIDTH, HEIGHT = 300, 220  # of the map, in pixels
MARGIN = 6  # from the outermost nodes to the border


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
    x = np.rint(MARGIN + places[:, 0] * (WIDTH - 2 * MARGIN)).astype(int)
    y = np.rint(HEIGHT - MARGIN - places[:, 1] * (HEIGHT - 2 * MARGIN)).astype(int)
    given = is_labelled(result)[nodes]
    certain = given | (result.probabilities[nodes].max(axis=1) >= CERTAIN)

    def dots(chosen: np.ndarray, kind: str) -> Html:
        lines = "".join(f"M{a} {b}h0" for a, b in zip(x[chosen], y[chosen], strict=True))
        return element("path", d=lines, class_=kind) if lines else Html("")

    drawn = [dots(given, "given")]
    for k in range(len(result.classes)):
        of_class, color = codes[nodes] == k, f"c{k % 20}"
        drawn += [dots(of_class & ~certain, f"{color} faint"), dots(of_class & certain, color)]
    n_nodes = len(result.has_evidence)
    shown = f"{len(nodes):,} of {n_nodes:,} nodes" if len(nodes) < n_nodes else f"{n_nodes:,} nodes"
    words = f"{shown}; similar ones lie side by side"
    picture = element(
        "svg",
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"Map of {words}, coloured by class",
    )
    note = f"{words}. Ringed: labelled. Faint: without a label, probability below {CERTAIN}."
    return element("figure", picture, element("figcaption", note))


@kept
def map_places(result: "Result") -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n 2"]]:
    """Return at most `MAX_NODES` nodes, some of them labelled, and their places on the map."""
    from graphuq.spectrum.layout import node_layout  # imports scikit-learn's manifolds

    rng = np.random.default_rng(0)
    labelled = rng.permutation(np.unique(result.posterior.labelled))[:MAX_OUTLINED]
    others = np.setdiff1d(rng.permutation(len(result.has_evidence))[:MAX_NODES], labelled)
    chosen = rng.permutation(others)[: MAX_NODES - len(labelled)]
    nodes = np.sort(np.concatenate([labelled, chosen]))
    first = np.flatnonzero(np.isin(nodes, labelled))
    return nodes, node_layout(result.posterior.spectrum, nodes, first=first)


def _colors(n_classes: int) -> str:
    """Return the rules of style that give each class its colour."""
    return "".join(
        f".graphuq-answer .c{k}{{color:light-dark({class_color(k, 'light')},"
        f"{class_color(k, 'dark')})}}"
        for k in range(n_classes)
    )
