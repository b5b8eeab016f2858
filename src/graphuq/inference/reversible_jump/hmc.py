"""Updates of all coefficients of a series together, with the label noise integrated out.

There are Hamiltonian trajectories (Neal 2011), and jumps of the length that move every
coefficient (Green 1995). Both use coordinates whitened by a fixed mass matrix. It is the
geometric mean of two matrices: the mean curvature ``H = c μ + Q_LᵀD Q_L``, with D the curvature
of the labels' energy, and the inverse covariance of the draws of warm-up.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from graphuq.inference.reversible_jump.gibbs import SeriesState
from graphuq.inference.reversible_jump.log_cdf import (
    label_curvature,
    label_slope,
    log_cdf,
    quick_slope,
)
from graphuq.inference.reversible_jump.mass_matrix import Factor, geometric_mean_root

TARGET_ACCEPTANCE = 0.8  # acceptance of trajectories to which warm-up tunes the step size
MAX_STEP_SIZE = 1.2
MAX_LENGTH, MAX_STEPS = 6.0, 256  # largest length of a trajectory, whitened; its most steps
JUMPS = 8  # jumps of the length per trajectory
FIRST_WINDOW = 8  # steps of the first averaging window; each window is twice the one before
MAX_DENSE_FACTOR = 2_000  # eigenpairs up to which the whole mass matrix is kept
ROWS = 4_096  # rows of the eigenvectors per block
AT_ZERO = 2 / np.pi  # curvature of −log Φ(f) at f = 0
FIRST_SPREAD, SPREADS = 0.1, (0.01, 1.0)  # first standard deviation of log c; its bounds
MAX_MOMENTUM = 1e8  # squared momentum above which a trajectory is unstable and stops
MAX_CURVATURE = 0.2  # mean curvature below which these updates pay; that of the noise is 1


class Adaptation(NamedTuple):
    """What warm-up adapts: mass matrix and step size, and the sums for the next window."""

    curvature: Any  # (J,): curvature of the labels' energy
    scale: Any  # c
    scale_spread: Any  # standard deviation of log c
    centre: Any  # (L,): b in the quadratic ``bᵀg − gᵀQ_LᵀDQ_L g/2`` of the log likelihood
    covariance: Any  # (L, L) or its diagonal (L,): covariance of the coefficients
    n_draws: Any  # draws in the covariance
    log_step: Any
    curvature_sum: Any
    pull_sum: Any  # (J,): force plus curvature times field
    log_scale_sum: Any
    log_scale_squares: Any
    first: Any  # (L,): sum of the coefficients
    second: Any  # (L, L) or (L,): sum of their products
    seen: Any  # draws in these sums
    count: Any
    window: Any


class _Point(NamedTuple):
    """A point of a trajectory."""

    g: Any
    field: Any
    log_scale: Any

    @property
    def scale(self) -> Any:
        return np.exp(self.log_scale)


class HMCUpdates:
    """Trajectories and jumps in the whitened coordinates ``x = Rᵀ(g − mean)``.

    R is the lower triangular factor of the mass matrix. The factor of all modes contains that
    of the first k, so one factor serves all chains and lengths. If the posterior is the Gaussian
    with this precision and mean, x is standard normal for every k.

    Parameters
    ----------
    target : ProbitSeries
    rows : array or ProductBasis, shape (n, L)
        Eigenvectors at the nodes of the field.
    labelled : slice or array
        Positions of the labelled nodes among these nodes.
    """

    def __init__(self, target: Any, rows: Any, labelled: Any) -> None:
        self.target, self.rows, self.labelled = target, rows, labelled
        self.labels, self.precisions = target.labels[:, None], target.precisions[:, None]
        self.n_nodes, self.n_modes = target.eigenvectors.shape
        self.signs = self.at_nodes(self.labels)
        self._factor_of: Any = None  # curvature from which the factor was computed

    def at_nodes(self, labels: Float[np.ndarray, "J C"]) -> Float[np.ndarray, "n C"]:
        """Return the labels at the nodes of the field, zero at nodes without label."""
        signs = np.zeros((self.rows.shape[0], labels.shape[1]))
        signs[self.labelled] = labels
        return signs

    def start(self) -> Adaptation:
        """Return the adaptation before warm-up, as if the field were zero."""
        none, zero = np.zeros(len(self.labels)), np.zeros(())
        flat = np.zeros(self.n_modes)
        square = flat if self.n_modes > MAX_DENSE_FACTOR else np.zeros((self.n_modes, self.n_modes))
        return Adaptation(
            curvature=np.full(len(self.labels), AT_ZERO),
            scale=np.ones(()),
            scale_spread=np.asarray(FIRST_SPREAD),
            centre=flat,
            covariance=square,
            n_draws=zero,
            log_step=np.asarray(np.log(0.3)),
            curvature_sum=none,
            pull_sum=none,
            log_scale_sum=zero,
            log_scale_squares=zero,
            first=flat,
            second=square,
            seen=zero,
            count=zero,
            window=np.asarray(FIRST_WINDOW),
        )

    @staticmethod
    def pays(tuning: Adaptation) -> bool:
        """Return whether the labels determine the coefficients far less than their noise does."""
        return bool(tuning.curvature.mean() < MAX_CURVATURE)

    def trajectory(
        self,
        rng: np.random.Generator,
        state: SeriesState,
        tuning: Adaptation,
        *,
        holds_scale: bool = False,
    ) -> tuple[SeriesState, Float[np.ndarray, " C"]]:
        """Return the state after a leapfrog trajectory of g and log c, and its acceptance."""
        n_chains, m = len(state.length), int(state.length.max())
        active = np.arange(m)[:, None] < state.length
        factor, rows, precisions = self._factor(tuning).first(m), self.rows[:, :m], self.precisions
        scale_prior = None if holds_scale else self.target.scale_prior
        spread = float(tuning.scale_spread) if scale_prior else 0.0
        shape, rate = scale_prior or (0.0, 0.0)

        def energy(at: _Point) -> Any:
            squares = 0.5 * (precisions[:m] * at.g**2).sum(axis=0)
            of_scale = (shape + 0.5 * state.length) * at.log_scale - rate * at.scale
            of_labels = log_cdf(self.signs * at.field).sum(axis=0)
            return at.scale * squares - (of_scale if scale_prior else 0.0) - of_labels

        def forces(at: _Point) -> tuple[Any, Any]:
            pull = self.signs * quick_slope(self.signs * at.field)
            weighted = precisions[:m] * at.g
            gradient = np.where(active, rows.T @ pull - at.scale * weighted, 0.0)
            squares = 0.5 * (weighted * at.g).sum(axis=0)
            of_scale = shape + 0.5 * state.length - at.scale * (rate + squares)
            return np.where(active, factor.solve(gradient), 0.0), spread * of_scale

        step = float(np.exp(tuning.log_step))
        steps = step * rng.uniform(0.8, 1.2, size=n_chains)
        longest = np.clip(np.rint(MAX_LENGTH / step), 1, MAX_STEPS)
        n_steps = 1 + int(rng.integers(longest))
        at = _Point(state.coefficients[:m], state.field, np.log(state.scale))
        p, of_c = np.where(active, rng.normal(size=at.g.shape), 0.0), rng.normal(size=n_chains)
        before = energy(at) + 0.5 * ((p**2).sum(axis=0) + of_c**2)
        gone = np.zeros(n_chains, dtype=bool)
        for i in range(n_steps + 1):
            if i > 0:
                g = at.g + steps * factor.solve_transposed(p)
                at = _Point(g, rows @ g, at.log_scale + steps * spread * of_c)
            kick = (0.5 if i in (0, n_steps) else 1.0) * steps
            on_g, on_c = forces(at)
            p, of_c = p + kick * on_g, of_c + kick * on_c
            gone |= (p**2).sum(axis=0) + of_c**2 > MAX_MOMENTUM
            p, of_c, steps = (np.where(gone, 0.0, x) for x in (p, of_c, steps))
        lost = energy(at) + 0.5 * ((p**2).sum(axis=0) + of_c**2) - before
        lost = np.where(gone | np.isnan(lost), np.inf, lost)
        probability = np.exp(-np.maximum(lost, 0.0))
        accepted = rng.uniform(size=n_chains) < probability
        moved = _moved(state, accepted, at.g, at.field, state.length)
        if scale_prior:
            moved = moved._replace(scale=np.where(accepted, at.scale, state.scale))
        return moved, probability

    def jump(
        self,
        rng: np.random.Generator,
        state: SeriesState,
        tuning: Adaptation,
        log_prior: Float[np.ndarray, " L"],
    ) -> SeriesState:
        """Return the state after a jump of the length; whitened coordinates are kept."""
        n_chains = len(state.length)
        u = 1 - rng.uniform(size=n_chains)  # sizes from p(size) ∝ 1/size, and about 1/size²
        size = np.where(rng.uniform(size=n_chains) < 0.5, self.n_modes**u, 1 / u).astype(int)
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
        self,
        rng: np.random.Generator,
        state: SeriesState,
        tuning: Adaptation,
        acceptance: Float[np.ndarray, " C"] | None,
    ) -> Adaptation:
        """Return the adaptation after one step of warm-up.

        The step size changes at every step, the mass matrix at the end of a window.
        ``acceptance`` is that of the trajectory, or None if the step had no trajectory.
        """
        field = state.field[self.labelled]
        margins = self.labels * field
        slope = label_slope(margins)
        curvature = label_curvature(slope, margins)
        count, log_scale = tuning.count + 1, np.log(state.scale)
        log_step = tuning.log_step
        if acceptance is not None:
            log_step = log_step + (acceptance.mean() - TARGET_ACCEPTANCE) / np.sqrt(count)
            tuning = self._counted(rng, state, tuning)
        tuning = tuning._replace(
            log_step=np.minimum(log_step, np.log(MAX_STEP_SIZE)),
            curvature_sum=tuning.curvature_sum + curvature.mean(axis=1),
            pull_sum=tuning.pull_sum + (self.labels * slope + curvature * field).mean(axis=1),
            log_scale_sum=tuning.log_scale_sum + log_scale.mean(),
            log_scale_squares=tuning.log_scale_squares + (log_scale**2).mean(),
            count=count,
        )
        if count < tuning.window:
            return tuning
        pull, seen = tuning.pull_sum / count, np.maximum(tuning.seen, 1)
        mean, mean_log_scale = tuning.first / seen, tuning.log_scale_sum / count
        variance = tuning.log_scale_squares / count - mean_log_scale**2
        square = mean**2 if tuning.second.ndim == 1 else np.outer(mean, mean)
        return self.start()._replace(
            curvature=tuning.curvature_sum / count,
            scale=np.exp(mean_log_scale),
            scale_spread=np.clip(np.sqrt(np.maximum(variance, 0.0)), *SPREADS),
            centre=sum(rows.T @ pull[at] for at, rows in self._blocks()),
            covariance=tuning.second / seen - square,
            n_draws=tuning.seen,
            log_step=tuning.log_step,
            window=2 * tuning.window,
        )

    def _counted(
        self, rng: np.random.Generator, state: SeriesState, tuning: Adaptation
    ) -> Adaptation:
        """Return the adaptation with these coefficients added; missing ones are drawn."""
        factor, g = self._factor(tuning), state.coefficients
        present = np.arange(self.n_modes)[:, None] < state.length
        x = factor.transposed_times(g) - factor.centre
        g = factor.solve_transposed(np.where(present, x, rng.normal(size=g.shape)))
        products = (g**2).sum(axis=1) if tuning.second.ndim == 1 else g @ g.T
        return tuning._replace(
            first=tuning.first + g.sum(axis=1),
            second=tuning.second + products,
            seen=tuning.seen + g.shape[1],
        )

    def _log_density(
        self, g: Any, field: Any, length: Any, scale: Any, log_prior: Any
    ) -> Float[np.ndarray, " C"]:
        """Return the log density of k and g given c and the labels."""
        prior = scale * self.precisions[: len(g)]
        normal = 0.5 * (np.log(prior / (2 * np.pi)) - prior * g**2)
        of_modes = np.where(np.arange(len(g))[:, None] < length, normal, 0.0).sum(axis=0)
        of_labels = log_cdf(self.signs * field).sum(axis=0)
        result: Float[np.ndarray, " C"] = of_modes + of_labels + log_prior[length - 1]
        return result

    def _factor(self, tuning: Adaptation) -> Factor:
        if self._factor_of is not tuning.curvature:
            metric = tuning.scale * self.target.precisions
            if self.n_modes > MAX_DENSE_FACTOR:
                metric = metric + tuning.curvature.sum() / self.n_nodes
                mean = tuning.centre / metric
            else:
                metric = np.diag(metric)
                for at, rows in self._blocks():
                    metric += rows.T @ (tuning.curvature[at, None] * rows)
                mean = np.linalg.solve(metric, tuning.centre)
            root = geometric_mean_root(metric, tuning.covariance, float(tuning.n_draws))
            self._kept, self._factor_of = Factor.of(root, mean), tuning.curvature
        return self._kept

    def _blocks(self) -> Any:
        """Yield positions of labelled nodes and their rows of the eigenvectors, by blocks."""
        for start in range(0, len(self.labels), ROWS):
            at = slice(start, start + ROWS)
            yield at, self.target.eigenvectors[self.target.labelled[at]]


def _moved(
    state: SeriesState, accepted: Bool[np.ndarray, " C"], g: Any, field: Any, length: Any
) -> SeriesState:
    """The state, with accepted chains at their proposals."""
    coefficients = state.coefficients.copy()
    coefficients[: len(g)] = np.where(accepted, g, coefficients[: len(g)])
    return state._replace(
        coefficients=coefficients,
        field=np.where(accepted, field, state.field),
        length=np.where(accepted, length, state.length),
    )
