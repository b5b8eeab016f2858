"""Smallest eigenpairs of the Laplacian in row blocks, by a Chebyshev-filtered subspace.

A pass applies a Chebyshev polynomial of L to all columns, which amplifies the smallest eigenvalues,
and rotates the columns to Ritz vectors (Zhou, Saad, Tiago & Chelikowsky 2006). Those that have
settled are not filtered again. The first columns are the eigenvectors of the graph of lists,
extended to the rows, and a few random ones. Columns are in single precision; their products, of
one small matrix a part, are in double precision.
"""

import itertools
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from graphuq.engine.graph import load_block
from graphuq.engine.neighbors import list_of
from graphuq.engine.operator import Columns, PartedOperator, step_of_part
from graphuq.engine.store import SCRATCH, Stage
from graphuq.engine.tasks import Tasks
from graphuq.errors import NotConvergedWarning, require
from graphuq.spectrum.chebyshev import ChebyshevFilter
from graphuq.utils.user_warnings import warn_user

SPARE_SHARE, MIN_SPARE = 0.25, 12  # columns beyond those that are wanted
RANDOM_SHARE = 0.1  # of the columns; a pair that no list shows is found from these
GROUP = 64  # columns that are filtered together
SETTLED = 0.1  # share of the tolerance below which a column is not filtered again
MAX_PASSES = 60
DENSE_BELOW = 1_500  # rows for which a dense factorisation is quicker
DENSE_AT_MOST = 3_000  # rows for which it takes over where the passes do not converge
HIGH = 2.0 * (1 + 1e-6)  # no eigenvalue of the normalised Laplacian is larger
FIRST_LOW = 0.45  # largest begin of the first window, as the first Ritz values are far too large
LAST_LOW = 0.9 * HIGH  # largest begin of any window, so that its polynomial has a degree
DEPENDENT = 1e-7  # share of the largest square below which a direction is rounding error
GRAM_ROWS = 16_384  # rows whose products are summed at a time


def most_pairs(n_rows: int) -> int:
    """Return the largest number of pairs, null ones included: of many rows a quarter."""
    return n_rows if n_rows < DENSE_BELOW else n_rows // 4


def ritz_pairs(
    gram: Float[np.ndarray, "b b"],
    energy: Float[np.ndarray, "b b"],
    square: Float[np.ndarray, "b b"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ascending Ritz values, coefficients of the vectors, and residuals.

    With ``L y = λ y + r``, ``|r|² = uᵀ (|LY|² − 2 λ YᵀLY + λ² YᵀY) u``. Directions that are
    rounding error are left out.

    Parameters
    ----------
    gram, energy, square : numpy.ndarray, shape (b, b)
        ``YᵀY``, without the part of null vectors, ``YᵀLY`` and ``|LY|²``.
    """
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    squares, turn = eigh(gram * np.outer(scale, scale))
    kept = squares > DEPENDENT * squares[-1]
    white = scale[:, None] * turn[:, kept] / np.sqrt(squares[kept])
    inner = white.T @ energy @ white
    values, vectors = eigh((inner + inner.T) / 2)
    u = white @ vectors
    quadratic = [((m @ u) * u).sum(axis=0) for m in (square, energy, gram)]
    residuals = quadratic[0] - 2 * values * quadratic[1] + values**2 * quadratic[2]
    return values, u, np.sqrt(np.maximum(residuals, 0.0))


def compute(
    stage: Stage,
    rows: Stage,
    graph: Stage,
    n_wanted: int,
    asked: bool,
    tolerance: float,
    seed: int,
    tasks: Tasks,
) -> None:
    """Compute the pairs of the ``n_wanted`` smallest positive eigenvalues.

    The stage then holds, for part p, ``vectors-p``, in single precision. Each pass is a checkpoint.
    Unless their number was ``asked`` for, pairs that do not converge are left out.

    Raises
    ------
    InvalidInput
        If the pairs do not converge.

    Warns
    -----
    NotConvergedWarning
        If some are left out.
    """
    if rows.record["starts"][-1] < DENSE_BELOW:
        _solve_densely(stage, rows, graph, n_wanted, "dense")
        return
    starts, n_null = rows.record["starts"], graph.record["n_components"]
    operator = PartedOperator(stage, graph, starts, tasks)
    solver = _Solver(stage, operator, n_null, n_wanted, seed)
    stage.remove(SCRATCH)
    done = max((n for n in range(MAX_PASSES) if solver.has_pass(n)), default=-1)
    if done < 0:
        done = 0
        solver.start(rows)
    for number in range(done, MAX_PASSES):
        values, residuals = solver.load_pass(number)
        wanted = residuals[:n_wanted]
        bound = tolerance * float(values[n_wanted - 1]) if len(values) >= n_wanted else 0.0
        if tasks.progress is not None:
            tasks.progress(
                "eigenpairs", int((wanted <= bound).sum()), n_wanted, float(wanted.max())
            )
        if len(values) >= n_wanted and wanted.max() <= bound:
            solver.finish(number, n_wanted)
            return
        solver.filter(number, values, int((wanted > SETTLED * bound).argmax()))
    words = f"did not converge in {MAX_PASSES} passes"
    if starts[-1] <= DENSE_AT_MOST:
        _solve_densely(stage, rows, graph, n_wanted, f"dense, since pairs {words}")
        return
    require(
        not asked,
        "n_eigenpairs",
        f"the {n_wanted} pairs {words}",
        f"use fewer pairs, or a tolerance above {tolerance:g}",
    )
    n_found = _n_converged(*solver.load_pass(MAX_PASSES), tolerance)
    require(
        n_found > 0,
        "source",
        f"the eigenpairs of its graph {words}",
        f"use a tolerance above {tolerance:g}, or other features",
    )
    warn_user(
        f"{n_wanted} eigenpairs {words}, so there are {n_found}; give n_eigenpairs, or a tolerance "
        f"above {tolerance:g}, to choose otherwise",
        NotConvergedWarning,
    )
    solver.finish(MAX_PASSES, min(n_found, n_wanted), f", {n_found} of {n_wanted} pairs converged")


def _n_converged(values: np.ndarray, residuals: np.ndarray, tolerance: float) -> int:
    """Return the largest number of first pairs of which all have converged."""
    good = np.maximum.accumulate(residuals) <= tolerance * values
    return int(np.flatnonzero(good).max(initial=-1)) + 1


def _solve_densely(stage: Stage, rows: Stage, graph: Stage, n_wanted: int, solver: str) -> None:
    """Write the pairs of a dense factorisation, null vectors shifted above all others."""
    starts, n_null = rows.record["starts"], graph.record["n_components"]
    n_rows = starts[-1]
    parts = [slice(*ends) for ends in itertools.pairwise(starts)]
    adjacency, null = np.zeros((n_rows, n_rows)), np.zeros((n_rows, n_null))
    for p, own in enumerate(parts):
        block = load_block(graph, p)
        columns = np.append(np.arange(own.start, own.stop), block.halo)
        adjacency[own, columns] = block.weights.toarray()
        null[np.arange(own.start, own.stop), graph.load("component", p)] = graph.load("profile", p)
    laplacian = np.eye(n_rows) - (adjacency + adjacency.T) / 2
    values, vectors = eigh(laplacian + 2 * HIGH * null @ null.T, subset_by_index=[0, n_wanted - 1])
    for p, own in enumerate(parts):
        stage.save("vectors", p, vectors[own].astype(np.float32))
    stage.finish(
        {
            "eigenvalues": values.tolist(),
            "residuals": np.linalg.norm(laplacian @ vectors - values * vectors, axis=0).tolist(),
            "n_passes": 0,
            "n_columns": n_wanted,
            "n_steps": 0,
            "solver": solver,
        },
        temporary=[*(f"columns_{n}" for n in range(MAX_PASSES + 1)), SCRATCH],
    )


class _Solver:
    """Columns of each pass in the store, and the steps from one to the next."""

    def __init__(
        self, stage: Stage, operator: PartedOperator, n_null: int, n_wanted: int, seed: int
    ) -> None:
        self.stage, self.operator, self.seed = stage, operator, seed
        self.n_null, self.tasks = n_null, operator.tasks
        self.starts, self.graph = operator.starts, operator.graph
        spare = max(MIN_SPARE, round(SPARE_SHARE * n_wanted))
        self.width = min(n_wanted + spare, self.starts[-1] - n_null)

    def has_pass(self, number: int) -> bool:
        """Return whether the columns of a pass are complete."""
        return self.stage.has(f"ritz_{number}")

    def load_pass(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return Ritz values and residuals of a pass."""
        values, residuals = self.stage.load(f"ritz_{number}")
        return values, residuals

    def start(self, rows: Stage) -> None:
        """Write the columns of pass 0."""
        n_random = max(4, round(RANDOM_SHARE * self.width))
        if not self.stage.has("coarse"):
            found = self._list_vectors(rows, self.width - n_random)
            self.stage.save("coarse", None, found)
        columns = Columns(self.stage, len(self.starts) - 1)
        arguments = [
            (self.stage, rows, self.graph, self.starts, p, self.width, self.seed, columns.name)
            for p in range(len(self.starts) - 1)
        ]
        self.tasks.map(_start_part, arguments)
        self._rotate(0, [columns])

    def _list_vectors(self, rows: Stage, n: int) -> Float[np.ndarray, "C n"]:
        """Return eigenvectors of the graph of lists, divided by the roots of their degrees."""
        parts = range(len(self.starts) - 1)
        found = self.tasks.map(_list_weights, [(rows, self.graph, self.starts, p) for p in parts])
        weights = sparse.csr_array(sum(some for some in found[1:]) + found[0])
        degrees = np.asarray(weights.sum(axis=1)).ravel()
        root = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
        scaled = sparse.csr_array(sparse.diags_array(root) @ weights @ sparse.diags_array(root))
        n = min(n + self.n_null, len(root) - 2)
        if n < 1:
            return np.zeros((len(root), 0))
        ones = np.random.default_rng(self.seed).standard_normal(len(root))
        if len(root) < 600:
            values, vectors = eigh(scaled.toarray())
        else:
            values, vectors = eigsh(scaled, n, which="LA", v0=ones, tol=1e-3)
        order = np.argsort(-values)[:n]
        order = order[values[order] < 1 - 1e-9][: n - self.n_null]
        return root[:, None] * vectors[:, order]

    def filter(self, number: int, values: Float[np.ndarray, " b"], n_settled: int) -> None:
        """Write the columns of the next pass; the first ``n_settled`` are not filtered again."""
        low = float(values[-1]) if number else min(float(values[-1]), FIRST_LOW)
        window = ChebyshevFilter(min(low, LAST_LOW), HIGH)
        n_groups = -(-(self.width - n_settled) // GROUP)
        ends = np.linspace(n_settled, self.width, n_groups + 1).round().astype(int)
        groups = [self._group(number, 0, n_settled)] if n_settled else []
        for begin, end in itertools.pairwise(ends.tolist()):
            groups.append(window.polynomial(self.operator, self._group(number, begin, end)))
        self._rotate(number + 1, groups)
        if number > 0:
            self.stage.remove(f"columns_{number - 1}")

    def _group(self, number: int, begin: int, end: int) -> Columns:
        """Return some columns of a pass, in files of their own."""
        n_parts = self.operator.n_parts
        x = Columns(self.stage, n_parts)
        arguments = [
            (self.stage, p, number, slice(begin, end), self.width, self.seed, x.name)
            for p in range(n_parts)
        ]
        self.tasks.map(_group_part, arguments)
        return x

    def _rotate(self, number: int, groups: list[Columns]) -> None:
        """Write the Ritz vectors of columns as those of a pass, with their Ritz values."""
        names, parts = [group.name for group in groups], range(len(self.starts) - 1)
        arguments = [(self.stage, self.graph, self.starts, p, names, self.n_null) for p in parts]
        found = self.tasks.map(_products_part, arguments)
        gram, along = (sum(some) for some in zip(*found, strict=True))
        b = len(gram) // 2
        energy = (gram[:b, b:] + gram[b:, :b]) / 2
        values, turn, residuals = ritz_pairs(gram[:b, :b] - along.T @ along, energy, gram[b:, b:])
        rotation = turn, along @ turn
        turned = [(self.stage, self.graph, p, names, rotation, f"columns_{number}") for p in parts]
        self.tasks.map(_rotate_part, turned)
        self.stage.save(f"ritz_{number}", None, np.stack([values, residuals]))

    def finish(self, number: int, n_wanted: int, words: str = "") -> None:
        """Write the wanted vectors, and the record with these words on the solver."""
        values, residuals = self.load_pass(number)
        parts = range(len(self.starts) - 1)
        arguments = [(self.stage, p, f"columns_{number}", n_wanted) for p in parts]
        self.tasks.map(_finish_part, arguments)
        self.stage.finish(
            {
                "eigenvalues": values[:n_wanted].tolist(),
                "residuals": residuals[:n_wanted].tolist(),
                "n_passes": number,
                "n_columns": self.width,
                "n_steps": self.operator.n_steps,
                "solver": f"filtered subspace{words}",
            },
            temporary=[*(f"columns_{n}" for n in range(number + 1)), SCRATCH],
        )


def _list_weights(rows: Stage, graph: Stage, starts: list[int], p: int) -> sparse.csr_array:
    """Return the sums of weights between lists, from the rows of a part."""
    list_starts, block = rows.load("list_starts"), load_block(graph, p)
    n_lists, n_own = len(list_starts) - 1, starts[p + 1] - starts[p]
    places = np.append(np.arange(starts[p], starts[p + 1]), block.halo)
    lists = list_of(places, list_starts)
    degree = np.append(
        np.asarray(graph.load("degree", p)), graph.parts("degree", starts).take(block.halo)
    )
    own = np.repeat(np.arange(n_own), np.diff(block.weights.indptr))
    far = block.weights.indices
    values = block.weights.data * np.sqrt(degree[own] * degree[far])
    entries = values, (lists[own], lists[far])
    return sparse.csr_array(sparse.coo_array(entries, shape=(n_lists, n_lists)))


def _start_part(
    stage: Stage,
    rows: Stage,
    graph: Stage,
    starts: list[int],
    p: int,
    width: int,
    seed: int,
    name: str,
) -> None:
    coarse = stage.load("coarse")
    lists = list_of(np.arange(starts[p], starts[p + 1]), rows.load("list_starts"))
    degree = np.asarray(graph.load("degree", p))
    extended = np.sqrt(degree)[:, None] * coarse[lists]
    rng = np.random.default_rng([seed, p])
    random = rng.standard_normal((len(lists), width - coarse.shape[1]), dtype=np.float32)
    random /= np.sqrt(np.float32(starts[-1]))
    stage.save_scratch(name, p, np.concatenate([extended.astype(np.float32), random], axis=1))


def _group_part(
    stage: Stage, p: int, number: int, group: slice, width: int, seed: int, name: str
) -> None:
    """Write a group of the columns of a pass; random ones replace those that were lost."""
    columns = stage.load(f"columns_{number}", p)
    lost = width - columns.shape[1]
    if lost:
        rng = np.random.default_rng([seed, number + 1, p])
        random = rng.standard_normal((len(columns), lost), dtype=np.float32)
        columns = np.concatenate([columns, random], axis=1)
    stage.save_scratch(name, p, np.ascontiguousarray(columns[:, group]))


def _products_part(
    stage: Stage, graph: Stage, starts: list[int], p: int, names: list[str], n_null: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the products of [Y, L Y] with itself, and of null vectors with Y, over a part."""
    y = [stage.load(name, p) for name in names]
    images = [step_of_part(stage, graph, starts, p, name, 1.0, 0.0) for name in names]
    profile, component = graph.load("profile", p), graph.load("component", p)
    width = sum(some.shape[1] for some in y)
    gram, along = np.zeros((2 * width, 2 * width)), np.zeros((n_null, width))
    for begin in range(0, len(profile), GRAM_ROWS):
        part = slice(begin, begin + GRAM_ROWS)
        both = np.concatenate([some[part] for some in y + images], axis=1).astype(np.float64)
        gram += both.T @ both
        some = component[part]
        entries = profile[part], (some, np.arange(len(some)))
        along += sparse.csr_array(entries, shape=(n_null, len(some))) @ both[:, :width]
    return gram, along


def _rotate_part(
    stage: Stage, graph: Stage, p: int, names: list[str], rotation: tuple[Any, Any], name: str
) -> None:
    """Write ``Y turn`` without its null part."""
    turn, along = rotation
    y = [stage.load(some, p) for some in names]
    profile, component = graph.load("profile", p), graph.load("component", p)
    out = np.empty((len(profile), turn.shape[1]), np.float32)
    for begin in range(0, len(profile), GRAM_ROWS):
        part = slice(begin, begin + GRAM_ROWS)
        rows = np.concatenate([some[part] for some in y], axis=1).astype(np.float64) @ turn
        out[part] = rows - profile[part, None] * along[component[part]]
    stage.save(name, p, out)


def _finish_part(stage: Stage, p: int, name: str, n_wanted: int) -> None:
    stage.save("vectors", p, np.ascontiguousarray(stage.load(name, p)[:, :n_wanted]))
