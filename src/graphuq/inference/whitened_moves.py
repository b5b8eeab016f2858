"""Moves of all coefficients of a series at once, the noise of the labels integrated out.

In coordinates whitened by a fixed metric ``H = c μ + Q_LᵀD Q_L``, D the mean curvature of the
labels' energy: Hamiltonian trajectories (Neal 2011), and jumps of the length that carry every
coefficient along (Green 1995).
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import solve_triangular

from graphuq.inference.moves import State, label_curvature, label_slope, log_cdf

WANTED = 0.8  # acceptance of trajectories that warm-up tunes the step to
LARGEST_STEP = 1.2
LONGEST, MOST_STEPS = 5.0, 64  # of a trajectory, in whitened coordinates; lengths are random
JUMPS = 4  # a trajectory
FIRST_WINDOW = 8  # steps over which curvature is first averaged; each window is twice the last
DEAR_FACTOR = 2_000  # eigenpairs from which only the metric's diagonal is kept
ROWS = 4_096  # of the eigenvectors, at once
AT_ZERO = 2 / np.pi  # curvature of −log Φ(f) at f = 0
LOOSE = 0.2  # mean curvature below which noise, whose own is 1, holds coefficients back


class Tuning(NamedTuple):
    """What warm-up adapts, frozen after it: the metric, a step size, and what the next is from."""

    curvature: Any  # (J,) of the labels' energy
    scale: Any  # c
    centre: Any  # (L,) b of the labels' log likelihood, about ``bᵀg − gᵀQ_LᵀDQ_L g/2``
    log_step: Any
    curvature_sum: Any
    pull_sum: Any  # (J,) of force plus curvature times field
    log_scale_sum: Any
    count: Any
    window: Any


class WhitenedMoves:
    """Whitened coordinates ``x = Rᵀg − R⁻¹b``, R the metric's lower triangular factor.

    The factor of all modes has those of the first k in it, so that one serves all chains and
    lengths; and where the posterior is the Gaussian that metric and centre describe, x is standard
    normal whatever k is.

    Parameters
    ----------
    target : ProbitSeries
    rows : array or ProductBasis, shape (n, L)
        Eigenvectors at the nodes of the field.
    labelled : slice or array
        Where the labelled nodes are among those.
    """

    def __init__(self, target: Any, rows: Any, labelled: Any) -> None:
        self.target, self.rows, self.labelled = target, rows, labelled
        self.labels, self.precisions = target.labels[:, None], target.precisions[:, None]
        self.n_nodes, self.n_modes = target.eigenvectors.shape
        self._factor_of: Any = None  # the curvature that the factor was made of

    def start(self) -> Tuning:
        """A metric as if the field were zero."""
        none, zero = np.zeros(len(self.labels)), np.zeros(())
        return Tuning(
            curvature=np.full(len(self.labels), AT_ZERO),
            scale=np.ones(()),
            centre=np.zeros(self.n_modes),
            log_step=np.asarray(np.log(0.3)),
            curvature_sum=none,
            pull_sum=none,
            log_scale_sum=zero,
            count=zero,
            window=np.asarray(FIRST_WINDOW),
        )

    @staticmethod
    def pays(tuning: Tuning) -> bool:
        """Whether the labels leave coefficients much looser than their noise holds them."""
        return bool(tuning.curvature.mean() < LOOSE)

    def trajectory(
        self, rng: np.random.Generator, state: State, tuning: Tuning
    ) -> tuple[State, Float[np.ndarray, " C"]]:
        """Leapfrog from a random momentum; the probability that its end is accepted with."""
        n_chains, m = len(state.length), int(state.length.max())
        active = np.arange(m)[:, None] < state.length
        factor, rows = self._factor(tuning).first(m), self.rows[:, :m]
        prior = state.scale * self.precisions[:m]

        def energy(g: Any, field: Any) -> Any:
            of_labels = log_cdf(self.labels * field[self.labelled]).sum(axis=0)
            return 0.5 * (prior * g**2).sum(axis=0) - of_labels

        def force(g: Any, field: Any) -> Any:
            pull = self.labels * label_slope(self.labels * field[self.labelled])
            if len(field) != len(pull):
                pull, at = np.zeros_like(field), pull
                pull[self.labelled] = at
            gradient = np.where(active, rows.T @ pull - prior * g, 0.0)
            return np.where(active, factor.solve(gradient), 0.0)

        step = float(np.exp(tuning.log_step))
        steps = step * rng.uniform(0.8, 1.2, size=n_chains)
        g, field = state.coefficients[:m], state.field
        p = np.where(active, rng.normal(size=g.shape), 0.0)
        before = energy(g, field) + 0.5 * (p**2).sum(axis=0)
        p = p + 0.5 * steps * force(g, field)
        longest = np.clip(np.rint(LONGEST / step), 1, MOST_STEPS)
        n_steps = 1 + int(rng.integers(longest))
        for i in range(n_steps):
            g = g + steps * factor.solve_transposed(p)
            field = rows @ g
            p = p + (0.5 if i == n_steps - 1 else 1.0) * steps * force(g, field)
        lost = energy(g, field) + 0.5 * (p**2).sum(axis=0) - before
        probability = np.exp(-np.maximum(np.nan_to_num(lost, nan=np.inf), 0.0))
        accepted = rng.uniform(size=n_chains) < probability
        return _moved(state, accepted, g, field, state.length), probability

    def jump(
        self,
        rng: np.random.Generator,
        state: State,
        tuning: Tuning,
        log_prior: Float[np.ndarray, " L"],
    ) -> State:
        """Another length: whitened coordinates stay, further ones are drawn or dropped."""
        n_chains = len(state.length)
        size = np.exp(rng.uniform(0.0, np.log(self.n_modes), size=n_chains)).astype(int)
        proposed = state.length + np.where(rng.uniform(size=n_chains) < 0.5, size, -size)
        inside = (proposed >= 1) & (proposed <= self.n_modes)
        proposed = np.where(inside, proposed, state.length)
        m = int(np.maximum(state.length, proposed).max())
        factor, g = self._factor(tuning).first(m), state.coefficients[:m]
        before, after = (np.arange(m)[:, None] < k for k in (state.length, proposed))
        fresh = rng.normal(size=g.shape)
        x = np.where(before, factor.transposed_times(g) - factor.centre, fresh)
        moved = factor.solve_transposed(np.where(after, x + factor.centre, 0.0))
        field = self.rows[:, :m] @ moved
        gain = np.zeros(n_chains)
        for sign, values, of, k, on in (
            (1, moved, field, proposed, after),
            (-1, g, state.field, state.length, before),
        ):
            gain += sign * (self._log_density(values, of, k, state.scale, log_prior))
            log_gaussian = -0.5 * (x**2 + np.log(2 * np.pi)) + factor.log_diagonal
            gain -= sign * np.where(on, log_gaussian, 0.0).sum(axis=0)
        accepted = inside & (np.log(rng.uniform(size=n_chains)) < gain)
        return _moved(state, accepted, moved, field, proposed)

    def adapted(
        self, state: State, tuning: Tuning, acceptance: Float[np.ndarray, " C"] | None
    ) -> Tuning:
        """One step of warm-up later: another step size, and at a window's end another metric.

        ``acceptance`` is that of a trajectory; None where there was none.
        """
        field = state.field[self.labelled]
        margins = self.labels * field
        slope = label_slope(margins)
        curvature = label_curvature(slope, margins)
        count = tuning.count + 1
        log_step = tuning.log_step
        if acceptance is not None:
            log_step = log_step + (acceptance.mean() - WANTED) / np.sqrt(count)
        tuning = tuning._replace(
            log_step=np.minimum(log_step, np.log(LARGEST_STEP)),
            curvature_sum=tuning.curvature_sum + curvature.mean(axis=1),
            pull_sum=tuning.pull_sum + (self.labels * slope + curvature * field).mean(axis=1),
            log_scale_sum=tuning.log_scale_sum + np.log(state.scale).mean(),
            count=count,
        )
        if count < tuning.window:
            return tuning
        pull = tuning.pull_sum / count
        centre = sum(rows.T @ pull[at] for at, rows in self._blocks())
        return self.start()._replace(
            curvature=tuning.curvature_sum / count,
            scale=np.exp(tuning.log_scale_sum / count),
            centre=centre,
            log_step=tuning.log_step,
            window=2 * tuning.window,
        )

    def _log_density(
        self, g: Any, field: Any, length: Any, scale: Any, log_prior: Any
    ) -> Float[np.ndarray, " C"]:
        """Of k and g, given c and the labels."""
        prior = scale * self.precisions[: len(g)]
        normal = 0.5 * (np.log(prior / (2 * np.pi)) - prior * g**2)
        of_modes = np.where(np.arange(len(g))[:, None] < length, normal, 0.0).sum(axis=0)
        of_labels = log_cdf(self.labels * field[self.labelled]).sum(axis=0)
        result: Float[np.ndarray, " C"] = of_modes + of_labels + log_prior[length - 1]
        return result

    def _factor(self, tuning: Tuning) -> "Factor":
        if self._factor_of is not tuning.curvature:
            metric = tuning.scale * self.target.precisions
            if self.n_modes > DEAR_FACTOR:
                root = np.sqrt(metric + tuning.curvature.sum() / self.n_nodes)
            else:
                metric = np.diag(metric)
                for at, rows in self._blocks():
                    metric += rows.T @ (tuning.curvature[at, None] * rows)
                root = np.linalg.cholesky(metric)
            self._kept, self._factor_of = Factor.of(root, tuning.centre), tuning.curvature
        return self._kept

    def _blocks(self) -> Any:
        """Labelled nodes, and their rows of the eigenvectors, some at a time."""
        for start in range(0, len(self.labels), ROWS):
            at = slice(start, start + ROWS)
            yield at, self.target.eigenvectors[self.target.labelled[at]]


class Factor(NamedTuple):
    """Lower triangular R and its inverse, or their diagonals alone; and ``R⁻¹b``.

    Leading blocks of the inverse are inverses of the leading blocks.
    """

    root: Any  # (m, m) or (m,)
    inverse: Any
    centre: Any  # (m, 1)

    @classmethod
    def of(cls, root: Any, b: Float[np.ndarray, " L"]) -> "Factor":
        """From R, or its diagonal, and b."""
        if root.ndim == 1:
            return cls(root, 1 / root, (b / root)[:, None])
        inverse = solve_triangular(root, np.eye(len(root)), lower=True)
        return cls(root, np.ascontiguousarray(inverse), (inverse @ b)[:, None])

    def first(self, m: int) -> "Factor":
        """Of the first so many modes."""
        part = (slice(m),) * self.root.ndim
        return Factor(self.root[part], self.inverse[part], self.centre[:m])

    def solve(self, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """``R⁻¹x``."""
        return _product(self.inverse, x)

    def solve_transposed(self, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """``R⁻ᵀx``."""
        return _product(self.inverse.T, x)

    def transposed_times(self, g: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """``Rᵀg``."""
        return _product(self.root.T, g)

    @property
    def log_diagonal(self) -> Float[np.ndarray, "m 1"]:
        """``log R_jj``."""
        diagonal = self.root if self.root.ndim == 1 else np.diagonal(self.root)
        result: Float[np.ndarray, "m 1"] = np.log(diagonal)[:, None]
        return result


def _product(matrix: np.ndarray, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
    """With a matrix or a diagonal."""
    product: Float[np.ndarray, "m C"] = matrix[:, None] * x if matrix.ndim == 1 else matrix @ x
    return product


def _moved(
    state: State, accepted: Bool[np.ndarray, " C"], g: Any, field: Any, length: Any
) -> State:
    """The state, with accepted chains at their proposals."""
    coefficients = state.coefficients.copy()
    coefficients[: len(g)] = np.where(accepted, g, coefficients[: len(g)])
    return state._replace(
        coefficients=coefficients,
        field=np.where(accepted, field, state.field),
        length=np.where(accepted, length, state.length),
    )
