"""Compute the `Spectrum` of a graph: choose a solver, add the null space, fix signs."""

from functools import partial

import numpy as np

from graphuq.errors import InvalidInput, NotConvergedWarning, require
from graphuq.graphs import Graph
from graphuq.spectrum import closed_form, dense, lanczos
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.multiple_eigenvalue import TAIL, Solution, whole_eigenvalues
from graphuq.spectrum.small_components import SmallComponents
from graphuq.spectrum.spectrum import Spectrum
from graphuq.utils.checks import check_integer, check_number, describe, require_scale
from graphuq.utils.progress import Progress
from graphuq.utils.user_warnings import warn_user

DENSE_BELOW = 1500  # nodes; with 150 pairs both solvers then take about the same time
DENSE_AT_MOST = 5_000  # nodes up to which the dense solver takes over if Lanczos does not converge
DEFAULT_EIGENPAIRS = 150  # null vectors beyond the first not counted
DEFAULT_TOLERANCE = 1e-3  # changes label means by less than the sampling error (docs/scale.md)


def laplacian_spectrum(
    graph: Graph,
    laplacian: str = "symmetric",
    n_eigenpairs: int | None = None,
    *,
    algorithm: str | None = None,
    tail_eigenvalue: bool | float | str = False,
    solver: str = "auto",
    tolerance: float = DEFAULT_TOLERANCE,
    progress: Progress | None = None,
) -> Spectrum:
    """Compute the ℓ smallest eigenpairs of a graph Laplacian.

    Parameters
    ----------
    graph : Graph
        Graph with N nodes.
    laplacian : {"symmetric", "unnormalized", "random-walk"}, default "symmetric"
        See `Laplacian`.
    n_eigenpairs : int, optional
        ℓ, null vectors included. ``N`` gives the full spectrum (Bertozzi et al. 2018, Algorithm 1).
        By default 150, or N if that is less, but all copies of a multiple eigenvalue or none: its
        eigenvectors are an arbitrary basis, and with some of them alone equal nodes would get
        unequal answers. See `graphuq.spectrum.multiple_eigenvalue`.
    algorithm : {"full", "projection", "approximation"}, optional
        Algorithm 1, 2 or 3 of Bertozzi et al. 2018. They mean ``n_eigenpairs=N``,
        ``tail_eigenvalue=False``, and ``tail_eigenvalue=True`` unless a λ̄ is given.
    tail_eigenvalue : bool, float or "mean", default False
        λ̄, one value for all eigenvalues from ℓ on (Algorithm 3). With False they are left out
        (Algorithm 2). True is the last computed eigenvalue, and ``"mean"`` their true mean, which
        the trace gives. It has no effect if ℓ = N.
    solver : {"auto", "dense", "lanczos", "closed-form"}, default "auto"
        ``"auto"`` is closed-form for the unnormalised Laplacian of a grid. Otherwise it is dense
        below 1,500 nodes or for more than a fifth of all pairs, and else Lanczos. Where Lanczos
        does not converge, it is dense up to 5,000 nodes. Components of up to 64 nodes are solved
        each by itself, and do not count among these nodes and pairs.
    tolerance : float, default 1e-3
        Largest residual ``|L q − λ q|`` of Lanczos, relative to the largest computed eigenvalue.
        The error of eigenvalues is of the order of its square. Down to 1e-5 most of the work is in
        single precision.
    progress : callable, optional
        Function of "eigenpairs", the number that have converged, ℓ, and the largest residual.

    Returns
    -------
    Spectrum

    Raises
    ------
    InvalidInput
        If an option is unknown, or ℓ is not above the number of components and at most N. If
        Lanczos does not converge.

    Warns
    -----
    NotConvergedWarning
        If fewer pairs are computed, because ℓ was not given and 150 did not converge. The settings
        of the spectrum say so.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path), "unnormalized")
    >>> spectrum.eigenvalues.round(3).tolist()
    [0.0, 0.586, 2.0, 3.414]
    """
    operator = Laplacian(graph, laplacian)
    n_nodes, n_null = graph.n_nodes, operator.n_null
    n_eigenpairs, tail_eigenvalue = _by_name(algorithm, n_nodes, n_eigenpairs, tail_eigenvalue)
    asked = n_eigenpairs is not None
    if n_eigenpairs is not None:
        check_integer("n_eigenpairs", n_eigenpairs, f"use an integer up to N = {n_nodes}")
    else:
        n_eigenpairs = min(n_nodes, DEFAULT_EIGENPAIRS + graph.n_components - 1)
    require(
        n_eigenpairs <= n_nodes,
        "n_eigenpairs",
        f"{n_eigenpairs} pairs of a graph of {n_nodes} nodes",
        f"use at most {n_nodes}",
    )
    require(
        n_eigenpairs > n_null,
        "n_eigenpairs",
        f"{n_eigenpairs} pairs of a graph with {n_null} component(s), each of which has a null "
        "vector",
        f"use more than {n_null}, or join the components with more neighbours",
    )
    known = ("auto", "dense", "lanczos", "closed-form")
    require(
        isinstance(solver, str) and solver in known,
        "solver",
        f"{describe(solver)} is unknown",
        f"use one of {', '.join(known)}",
    )
    regular = graph.settings.get("graph") == "grid" and laplacian == "unnormalized"
    require(
        regular or solver != "closed-form",
        "solver",
        f"'closed-form' of {laplacian} on {graph.settings.get('graph', 'a ready-made')} graph",
        "use it for the unnormalized Laplacian of grid_graph, path_graph or ring_graph",
    )
    any_solver = solver == "auto"
    if solver == "auto" and regular:
        solver = "closed-form"
    apart = None
    if solver == "auto":
        solver, apart = _chosen(operator, n_eigenpairs)
    if solver == "lanczos" and n_eigenpairs == n_nodes:
        raise InvalidInput("solver", "'lanczos' cannot give all N pairs", "use solver='dense'")
    check_tail(tail_eigenvalue)

    check_number("tolerance", tolerance, "use a number such as 1e-3")
    require(tolerance > 0, "tolerance", f"{tolerance} is not positive", "use a number such as 1e-3")

    def solved(n_pairs: int) -> tuple[Solution, str]:
        try:
            return _solved(operator, solver, n_pairs, tolerance, progress, apart), solver
        except lanczos.PairsNotConverged:
            if not any_solver or n_nodes > DENSE_AT_MOST:
                return _fewer_pairs(operator, n_eigenpairs, asked, tolerance, progress, apart)
        found = _solved(operator, "dense", n_pairs, tolerance, progress, apart)
        return found, "dense, since lanczos did not converge"

    found, used, copies = whole_eigenvalues(
        solved, n_eigenpairs, n_null, n_nodes, operator.upper_bound, may_change=not asked
    )
    eigenvalues, eigenvectors, residuals = found
    if copies == TAIL and tail_eigenvalue is False:
        tail_eigenvalue = True
    return Spectrum(
        eigenvalues=eigenvalues,
        eigenvectors=eigenvectors,
        residuals=residuals,
        tail_eigenvalue=tail_value(tail_eigenvalue, eigenvalues, n_nodes, operator.trace),
        components=graph.components,
        degrees=graph.degrees,
        node_scale=operator.node_scale,
        settings={
            **graph.settings,
            "laplacian": laplacian,
            "n_eigenpairs": len(eigenvalues),
            "tail_eigenvalue": tail_eigenvalue,
            "solver": used,
            **operator.signs,
            **({"multiple_eigenvalue": copies} if copies else {}),
        },
    )


def nonnull_pairs(
    operator: Laplacian, n_pairs: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the eigenpairs of the smallest positive eigenvalues.

    Returns
    -------
    eigenvalues : numpy.ndarray, shape (n_pairs,)
    eigenvectors : numpy.ndarray, shape (N, n_pairs)

    Raises
    ------
    InvalidInput
        If Lanczos does not converge.
    """
    solver, apart = _chosen(operator, n_pairs + operator.n_null)
    try:
        return _nonnull(operator, solver, n_pairs, tolerance, None, apart)[:2]
    except lanczos.PairsNotConverged as error:
        raise InvalidInput(
            "graph",
            f"{n_pairs} eigenpair(s) did not converge in {lanczos.RESTARTS} restarts",
            "join its nearly separate parts by more neighbours",
        ) from error


def _chosen(operator: Laplacian, n_eigenpairs: int) -> tuple[str, SmallComponents | None]:
    """Return the solver for so many pairs, and the small components if they are apart."""
    n_null = operator.n_null
    apart = SmallComponents(operator) if operator.graph.n_components > 1 else None
    n_left = operator.n_nodes if apart is None else len(apart.others)
    n_pairs = n_eigenpairs if apart is None else apart.n_rest(n_eigenpairs - n_null)
    small = n_left < DENSE_BELOW or n_pairs > n_left // 5
    return "dense" if small else "lanczos", apart


def _fewer_pairs(
    operator: Laplacian,
    n_eigenpairs: int,
    asked: bool,
    tolerance: float,
    progress: Progress | None,
    apart: SmallComponents | None,
) -> tuple[Solution, str]:
    """Return half as many pairs, or a quarter and so on, and the solver in words.

    Raises
    ------
    InvalidInput
        If the number of pairs was asked for, or too few are left.
    """
    n_null = operator.n_null
    words = f"did not converge in {lanczos.RESTARTS} restarts"
    require(
        not asked,
        "n_eigenpairs",
        f"the {n_eigenpairs} pairs {words}",
        f"use fewer pairs, a tolerance above {tolerance:g}, or solver='dense'",
    )
    fewer = n_eigenpairs
    while (fewer := n_null + (fewer - n_null) // 2) > n_null:
        try:
            found = _solved(operator, "lanczos", fewer, tolerance, progress, apart)
        except lanczos.PairsNotConverged:
            continue
        warn_user(
            f"{n_eigenpairs} eigenpairs {words}, so there are {fewer}; give n_eigenpairs, or a "
            f"tolerance above {tolerance:g}, to choose otherwise",
            NotConvergedWarning,
        )
        return found, f"lanczos, since {n_eigenpairs} pairs did not converge"
    raise InvalidInput(
        "graph",
        f"eigenpairs {words}",
        f"use a tolerance above {tolerance:g}, solver='dense', or another graph",
    )


def _solved(
    operator: Laplacian,
    solver: str,
    n_eigenpairs: int,
    tolerance: float,
    progress: Progress | None,
    apart: SmallComponents | None,
) -> Solution:
    """Return eigenvalues, eigenvectors and residuals; small components may be solved apart.

    Raises
    ------
    lanczos.PairsNotConverged
    """
    graph = operator.graph
    if solver == "closed-form":
        sizes, periodic = graph.settings["shape"], graph.settings["periodic"]
        return *closed_form.smallest_pairs(sizes, periodic, n_eigenpairs), np.zeros(n_eigenpairs)
    n_null = operator.n_null
    n_others = n_eigenpairs - n_null
    values, vectors, residuals = _nonnull(operator, solver, n_others, tolerance, progress, apart)
    eigenvectors = np.empty((graph.n_nodes, n_eigenpairs))
    eigenvectors[:, :n_null] = operator.null_vectors()
    eigenvectors[:, n_null:] = vectors
    fix_signs(eigenvectors)
    zeros = np.zeros(n_null)
    return np.append(zeros, np.maximum(values, 0.0)), eigenvectors, np.append(zeros, residuals)


def _nonnull(
    operator: Laplacian,
    solver: str,
    n_pairs: int,
    tolerance: float,
    progress: Progress | None,
    apart: SmallComponents | None,
) -> Solution:
    """Return pairs besides the null vectors, and residuals, by a dense solver or Lanczos."""

    def pairs(laplacian: Laplacian, n_pairs: int) -> Solution:
        if solver == "lanczos" and n_pairs < laplacian.n_nodes - laplacian.n_null:
            return lanczos.nonnull_pairs(laplacian, n_pairs, tolerance, progress)
        values, vectors = dense.nonnull_pairs(laplacian, n_pairs)
        return values, vectors, np.linalg.norm(laplacian @ vectors - values * vectors, axis=0)

    whole = pairs if apart is None else partial(apart.nonnull_pairs, pairs)
    return whole(operator, n_pairs)


def _by_name(
    algorithm: str | None, n_nodes: int, n_eigenpairs: int | None, tail: bool | float | str
) -> tuple[int | None, bool | float | str]:
    """Return ``n_eigenpairs`` and ``tail_eigenvalue`` of a named algorithm."""
    if algorithm is None:
        return n_eigenpairs, tail
    fits = {
        "full": n_eigenpairs in (None, n_nodes) and tail is False,
        "projection": tail is False,
        "approximation": True,
    }
    require(
        isinstance(algorithm, str) and algorithm in fits,
        "algorithm",
        f"{describe(algorithm)} is unknown",
        f"use one of {', '.join(fits)}",
    )
    require(
        fits[algorithm],
        "algorithm",
        f"{algorithm!r} beside n_eigenpairs={n_eigenpairs} and tail_eigenvalue={tail}",
        "leave those out, or use another algorithm",
    )
    if algorithm == "full":
        return n_nodes, False
    return n_eigenpairs, True if algorithm == "approximation" and tail is False else tail


def check_tail(tail: bool | float | str) -> None:
    """Raise `InvalidInput` unless a value is a valid ``tail_eigenvalue``."""
    if isinstance(tail, str):
        require(
            tail == "mean",
            "tail_eigenvalue",
            f"{tail!r} is unknown",
            "use True, False, 'mean' or λ̄ > 0",
        )
    elif not isinstance(tail, bool):
        check_number("tail_eigenvalue", tail, "give λ̄ > 0, True, False or 'mean'")
        require(
            tail > 0,
            "tail_eigenvalue",
            f"{tail!r} is not positive",
            "give λ̄ > 0, True, False or 'mean'",
        )
        require_scale("tail_eigenvalue", tail)


def tail_value(
    tail: bool | float | str, eigenvalues: np.ndarray, n_nodes: int, trace: float
) -> float | None:
    """Return λ̄ for a value of ``tail_eigenvalue``, or None without a tail."""
    n_left_out = n_nodes - len(eigenvalues)
    if tail is False or n_left_out == 0:
        return None
    if tail is True:
        return float(eigenvalues[-1])
    if tail == "mean":
        return float((trace - eigenvalues.sum()) / n_left_out)
    return float(tail)


def fix_signs(vectors: np.ndarray) -> None:
    """Make the entry of largest magnitude of each column positive, in place."""
    largest, smallest = vectors.max(axis=0), vectors.min(axis=0)
    vectors *= np.where(-smallest > largest, -1.0, 1.0)
