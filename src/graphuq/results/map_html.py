"""A small map of nodes as HTML, for notebooks: one picture without scripts."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.spectrum.basis import NodeBasis
from graphuq.utils.html.fragment import Html, element

MAX_NODES = 500  # on the map: t-SNE of these takes less than a second
MAX_OUTLINED = 100  # labelled nodes among them
WIDTH, HEIGHT = 300, 220  # of the map, in pixels
MARGIN = 6  # from the outermost nodes to the border


def places_on_map(
    basis: NodeBasis, labelled: Int[np.ndarray, " J"]
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n 2"]]:
    """Return at most `MAX_NODES` nodes, some of them labelled, and their places in [0, 1]²."""
    from graphuq.spectrum.layout import node_layout  # imports scikit-learn's manifolds

    rng, n_nodes = np.random.default_rng(0), len(basis.components)
    outlined = rng.permutation(np.unique(labelled))[:MAX_OUTLINED]
    others = np.setdiff1d(rng.permutation(n_nodes)[:MAX_NODES], outlined)
    chosen = rng.permutation(others)[: MAX_NODES - len(outlined)]
    nodes = np.sort(np.concatenate([outlined, chosen]))
    first = np.flatnonzero(np.isin(nodes, outlined))
    return nodes, node_layout(basis, nodes, first=first)


def map_words(n_shown: int, n_nodes: int, name: str) -> str:
    """Return what the map shows, such as "500 of 1,797 nodes; similar ones lie side by side"."""
    shown = f"{n_shown:,} of {n_nodes:,} {name}" if n_shown < n_nodes else f"{n_nodes:,} {name}"
    return f"{shown}; similar ones lie side by side"


def map_html(
    places: Float[np.ndarray, "n 2"],
    given: Bool[np.ndarray, " n"],
    kinds: Sequence[tuple[str, Bool[np.ndarray, " n"]]],
    words: str,
    note: object,
) -> Html:
    """Return a map with a note below it.

    Parameters
    ----------
    places : numpy.ndarray, shape (n, 2)
        Places in [0, 1]².
    given : numpy.ndarray of bool, shape (n,)
        Nodes with a ring.
    kinds : sequence of tuple
        Name of the style of some dots, and which nodes they are; each node is of one kind.
    words : str
        What the picture shows, for readers who cannot see it.
    note : str or Html
    """
    x = np.rint(MARGIN + places[:, 0] * (WIDTH - 2 * MARGIN)).astype(int)
    y = np.rint(HEIGHT - MARGIN - places[:, 1] * (HEIGHT - 2 * MARGIN)).astype(int)

    def dots(kind: str, chosen: np.ndarray) -> Html:
        lines = "".join(f"M{a} {b}h0" for a, b in zip(x[chosen], y[chosen], strict=True))
        return element("path", d=lines, class_=kind) if lines else Html("")

    drawn = [dots(kind, chosen) for kind, chosen in [("given", given), *kinds]]
    view = f"0 0 {WIDTH} {HEIGHT}"
    picture = element("svg", *drawn, viewBox=view, role="img", aria_label=words)
    return element("figure", picture, element("figcaption", note))
