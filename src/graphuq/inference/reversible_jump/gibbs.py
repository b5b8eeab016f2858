"""The Gibbs updates of `ReversibleJump`: noisy labels, length and coefficients, scale."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import lapack
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import binom

from graphuq.inference.reversible_jump.log_cdf import label_curvature, label_slope, log_cdf

FORMS = ("marginal", "reduced", "plain")
WALKS = ("binomial", "uniform", "triangular")
REACH = {"window": 32, **dict.fromkeys(WALKS, 2)}  # default reach of each proposal
START = -2.0  # log of noise variance over field variance at the start of a chain
SLICE = 3.0  # width of the first bracket about log c
MIN_SCALE = 1e-16  # smallest c in units of the noise, which an improper posterior may reach
MAX_JUMP = 256  # largest number of modes that a jump adds or drops
MAX_GRAM = 4_000  # eigenpairs up to which their Gram matrix and its root save time


class SeriesState(NamedTuple):
    """States of the chains, one per column, in units of the noise; coefficients are 0 from k on."""

    coefficients: Any  # (L, C)
    length: Any  # (C,)
    scale: Any  # (C,)
    field: Any  # (J, C) at the labelled nodes, or (N, C) if all nodes have noisy labels


class Kept(NamedTuple):
    """What is kept of the steps, shape (C, S, …)."""

    coefficients: Any
    log_likelihood: Any
    acceptance: Any
    scale: Any
    length: Any


class GibbsUpdates:
    """Gibbs updates of all chains, with what every step needs of the posterior."""

    def __init__(
        self, target: Any, proposal: str, reach: int | None, form: str, interweave: bool, jump: bool
    ) -> None:
        self.target = target
        self.labels = target.labels[:, None]
        self.precisions = target.precisions[:, None]
        self.log_prior, self.scale_prior = target.log_prior_truncation(), target.scale_prior
        self.moves_length = np.isfinite(self.log_prior).sum() > 1
        self.walk = proposal in WALKS
        self.reach = REACH[proposal] if reach is None else reach
        self.interweave, self.jump = interweave, jump
        self.steps, self.odds = _walk(proposal, self.reach)
        n_nodes, n_modes = target.eigenvectors.shape
        self.n_nodes, self.n_modes = n_nodes, n_modes
        self.form = form
        if self.form == "auto":
            sparse = 2 * len(target.labelled) < n_nodes
            expensive = n_modes > MAX_GRAM or not isinstance(target.eigenvectors, np.ndarray)
            self.form = "marginal" if sparse else "plain" if expensive else "reduced"
        self.all_nodes = self.form == "plain"
        self.noisy_nodes = target.labelled if self.all_nodes else slice(None)
        self.rows = target.eigenvectors
        if not self.all_nodes:
            self.rows = np.ascontiguousarray(target.eigenvectors[target.labelled])
            self.gram = self.rows.T @ self.rows
        if self.form == "reduced":
            self.root = triangular_root(np.eye(n_modes) - self.gram)

    def start(self, rng: np.random.Generator, n_chains: int) -> SeriesState:
        """Return starting states: a length from its prior, a field of zero and a moderate scale.

        The scale allows a field as large as the noise. A chain that starts at a large c, for
        example at a draw from a flat prior, may stay there for thousands of steps: no length
        then shows more than the noise, and nothing reduces c.
        """
        target = self.target
        weights = np.exp(self.log_prior - self.log_prior.max())
        length = 1 + rng.choice(len(weights), size=n_chains, p=weights / weights.sum())
        if self.scale_prior is None:
            scale = np.full(n_chains, float(target.scale) * target.noise_std**2)
        else:
            present = np.cumsum(weights[::-1])[::-1] / weights.sum()
            if present[1:].any():
                present[0] = 0.0  # the constant's variance is of another size
            at_nodes = float((present / target.precisions).sum()) / self.n_nodes
            scale = at_nodes * np.exp(rng.normal(START, 1.0, size=n_chains))
        field = np.zeros((self.rows.shape[0], n_chains))
        return SeriesState(np.zeros((target.n_modes, n_chains)), length, scale, field)

    def step(
        self, rng: np.random.Generator, state: SeriesState, *, holds_scale: bool = False
    ) -> tuple[SeriesState, Float[np.ndarray, " C"]]:
        """Return the state after one update of each block, and the acceptance of the length."""
        n_active = min(int(state.length.max()) + self.reach, self.n_modes)
        cut = self.labels * truncated_normal(rng, self.margins(state.field))
        noise = rng.normal(size=state.field.shape) if self.all_nodes else np.empty_like(cut)
        noise[self.noisy_nodes] = cut
        noisy = state.field + noise
        statistics = self.rows[:, :n_active].T @ noisy
        length, drawn, acceptance = (
            self._given_labelled(rng, state, statistics, (noisy**2).sum(axis=0))
            if self.form == "marginal"
            else self._given_all(rng, state, statistics)
        )
        coefficients = np.zeros_like(state.coefficients)
        coefficients[:n_active] = drawn
        field, scale = self.rows[:, : length.max()] @ coefficients[: length.max()], state.scale
        if (scale_prior := self.scale_prior) is not None and not holds_scale:
            squares = (self.precisions * coefficients**2).sum(axis=0)
            scale = rng.gamma(scale_prior[0] + length / 2) / (scale_prior[1] + squares / 2)
            if self.interweave:
                factor = self._rescaling(rng, field, scale)
                coefficients, field, scale = (
                    coefficients * factor,
                    field * factor,
                    scale / factor**2,
                )
        moved = SeriesState(coefficients, length, np.maximum(scale, MIN_SCALE), field)
        if self.jump and self.moves_length:
            for chain in range(len(length)):
                self._jump(rng, moved, chain)
        return moved, acceptance

    def _jump(self, rng: np.random.Generator, state: SeriesState, chain: int) -> None:
        """Add or drop many modes of one chain, with z integrated out; changes the state.

        New coefficients are drawn from normals fitted to their conditional distributions at the
        shorter series. A mode that the labels hardly determine is drawn from nearly its prior,
        and is accepted.
        """
        length, scale = int(state.length[chain]), state.scale[chain]
        size = int(np.exp(rng.uniform(0.0, np.log(min(MAX_JUMP, self.n_modes)))))
        proposed = length + (size if rng.uniform() < 0.5 else -size)
        if not 1 <= proposed <= self.n_modes:
            return
        part = slice(min(length, proposed), max(length, proposed))
        rows, prior = self.rows[:, part], scale * self.precisions[part, 0]
        field, old = state.field[:, chain], state.coefficients[part, chain]
        longer = proposed > length
        short = field if longer else field - rows @ old
        labels = np.broadcast_to(self.labels, (len(self.labels), len(state.length)))[:, chain]
        margins = labels * short[self.noisy_nodes]
        slope = label_slope(margins)
        force = np.zeros_like(short)
        force[self.noisy_nodes] = labels * slope
        curvature = float(label_curvature(slope, margins).sum()) / self.n_nodes
        fitted = curvature + prior
        mean = (rows.T @ force) / fitted
        new = mean + rng.normal(size=len(mean)) / np.sqrt(fitted) if longer else old
        long = short + rows @ new if longer else field
        gain = log_cdf(labels * long[self.noisy_nodes]).sum() - log_cdf(margins).sum()
        gain += 0.5 * (np.log(prior / fitted) - prior * new**2 + fitted * (new - mean) ** 2).sum()
        gain += self.log_prior[part.stop - 1] - self.log_prior[part.start - 1]
        if np.log(rng.uniform()) < (gain if longer else -gain):
            state.length[chain] = proposed
            state.coefficients[part, chain] = new if longer else 0.0
            state.field[:, chain] = long if longer else short

    def margins(self, field: Float[np.ndarray, "n C"]) -> Float[np.ndarray, "J C"]:
        """Return the margins ``y f`` at the labelled nodes."""
        margins: Float[np.ndarray, "J C"] = self.labels * field[self.noisy_nodes]
        return margins

    def _rescaling(
        self,
        rng: np.random.Generator,
        field: Float[np.ndarray, "n C"],
        scale: Float[np.ndarray, " C"],
    ) -> Float[np.ndarray, " C"]:
        """Return the factor of the field, with c divided by its square and ``g √c`` fixed.

        It is drawn by slice sampling of log c (Neal 2003), with the noise integrated out.
        """
        (shape, rate), margins = self.scale_prior, self.margins(field)

        def log_density(change: Any) -> Any:  # density of log c, which has one more factor c
            c = scale * np.exp(change)
            return shape * change - rate * c + log_cdf(margins * np.exp(-change / 2)).sum(axis=0)

        change = np.zeros_like(scale)
        level = log_density(change) - rng.exponential(size=len(scale))
        low = -SLICE * rng.uniform(size=len(scale))
        high, going = low + SLICE, np.ones(len(scale), dtype=bool)
        while going.any():
            change = np.where(going, low + (high - low) * rng.uniform(size=len(scale)), change)
            going &= log_density(change) < level
            low = np.where(going & (change < 0), change, low)
            high = np.where(going & (change > 0), change, high)
        factor: Float[np.ndarray, " C"] = np.exp(-change / 2)
        return factor

    def _given_all(
        self, rng: np.random.Generator, state: SeriesState, statistics: Float[np.ndarray, "m C"]
    ) -> tuple[Any, Any, Any]:
        """Draw k and g given z at all nodes, which makes the coefficients independent."""
        n_active, n_used = len(statistics), int(state.length.max())
        if not self.all_nodes:
            g = state.coefficients[:n_used]
            noise = rng.normal(size=statistics.shape)
            statistics = statistics - self.gram[:n_active, :n_used] @ g
            statistics[:n_used] += g
            statistics += self.root[:n_active, :n_active] @ noise
        prior = state.scale * self.precisions[:n_active]
        length, acceptance = self._length(rng, state.length, log_gain(statistics, prior))
        shrunk = 1 / (1 + prior)  # posterior variance of g
        drawn = shrunk * statistics + np.sqrt(shrunk) * rng.normal(size=shrunk.shape)
        return length, np.where(np.arange(n_active)[:, None] < length, drawn, 0.0), acceptance

    def _given_labelled(
        self,
        rng: np.random.Generator,
        state: SeriesState,
        statistics: Float[np.ndarray, "m C"],
        square: Float[np.ndarray, " C"],
    ) -> tuple[Any, Any, Any]:
        """Draw k, the scale of z, and g given z at the labelled nodes.

        The Cholesky factor of ``diag(c μ) + Q_LᵀQ_L`` contains those of all shorter series.
        """
        n_active, n_chains = statistics.shape
        gains, whitened, roots = np.zeros_like(statistics), np.zeros_like(statistics), []
        for chain, length in enumerate(state.length):
            m = min(int(length) + self.reach, n_active)  # largest length after this step
            prior = state.scale[chain] * self.precisions[:m, 0]
            inner = self.gram[:m, :m].copy()
            inner[np.arange(m), np.arange(m)] += prior
            root, failed = lapack.dpotrf(inner, lower=1)
            if failed:
                raise np.linalg.LinAlgError(
                    f"the precision is singular at c = {state.scale[chain]:g}"
                )
            white = lapack.dtrtrs(root, statistics[:m, chain], lower=1)[0]
            gains[:m, chain] = 0.5 * (np.log(prior) + white**2) - np.log(np.diagonal(root))
            whitened[:m, chain] = white
            roots.append(root)
        length, acceptance = self._length(rng, state.length, gains)
        kept = np.arange(n_active)[:, None] < length
        rest = np.maximum(square - np.where(kept, whitened**2, 0.0).sum(axis=0), 1e-300)
        stretch = np.sqrt(rng.chisquare(len(self.rows), size=n_chains) / rest)
        whitened = stretch * whitened + rng.normal(size=whitened.shape)
        drawn = np.zeros_like(whitened)
        for chain, (root, k) in enumerate(zip(roots, length, strict=True)):
            drawn[:k, chain] = lapack.dtrtrs(root[:k, :k], whitened[:k, chain], lower=1, trans=1)[0]
        return length, drawn, acceptance

    def _length(
        self,
        rng: np.random.Generator,
        length: Int[np.ndarray, " C"],
        gains: Float[np.ndarray, "m C"],
    ) -> tuple[Int[np.ndarray, " C"], Float[np.ndarray, " C"]]:
        """Draw k given what each further mode adds to ``log p(z | k, c)``."""
        n_chains = len(length)
        if not self.moves_length:
            return length, np.ones(n_chains)
        log_weight = np.cumsum(gains, axis=0) + self.log_prior[: len(gains), None]
        chains = np.arange(n_chains)
        if self.walk:
            proposed = length + rng.choice(self.steps, size=n_chains, p=self.odds)
            inside = (proposed >= 1) & (proposed <= len(gains))
            at = np.where(inside, proposed, 1) - 1
            log_ratio = log_weight[at, chains] - log_weight[length - 1, chains]
            probability = np.where(inside, np.exp(np.minimum(log_ratio, 0.0)), 0.0)
            accepted = rng.uniform(size=n_chains) < probability
            return np.where(accepted, proposed, length), probability
        first = length - 1 - rng.integers(0, self.reach + 1, size=n_chains)
        window = np.arange(len(gains))[:, None] - first
        inside = (window >= 0) & (window <= self.reach)
        gumbel = rng.gumbel(size=log_weight.shape)
        drawn = np.where(inside, log_weight + gumbel, -np.inf).argmax(axis=0)
        return 1 + drawn, np.ones(n_chains)

    def kept(self, state: SeriesState, acceptance: Float[np.ndarray, " C"]) -> Kept:
        """Return what is kept of a state, in the user's units."""
        noise_std = self.target.noise_std
        return Kept(
            noise_std * state.coefficients.T,
            log_cdf(self.margins(state.field)).sum(axis=0),
            acceptance,
            state.scale / noise_std**2,
            state.length,
        )


def log_gain(
    statistics: Float[np.ndarray, "m C"], prior: Float[np.ndarray, "m C"]
) -> Float[np.ndarray, "m C"]:
    """Return what each further mode adds to ``log p(z | k, c)``.

    The coefficient is integrated out; ``prior`` is its precision c μ.
    """
    return 0.5 * (np.log(prior) - np.log1p(prior) + statistics**2 / (1 + prior))


def _walk(proposal: str, reach: int) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the steps of a symmetric random walk and their probabilities."""
    steps = np.arange(-reach, reach + 1)
    odds = {
        "binomial": binom.pmf(steps + reach, 2 * reach, 0.5),
        "triangular": reach + 1.0 - np.abs(steps),
    }.get(proposal, np.ones(len(steps)))
    return steps, odds / odds.sum()


def truncated_normal(
    rng: np.random.Generator, mean: Float[np.ndarray, "*n"]
) -> Float[np.ndarray, "*n"]:
    """Draw standard normals w given that ``mean + w > 0``.

    The logarithm of the upper tail is inverted, which is exact however far out the bound is.
    """
    log_share = -rng.exponential(size=mean.shape)
    result: Float[np.ndarray, "*n"] = -ndtri_exp(log_share + log_ndtr(mean))
    return result


def triangular_root(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Return the lower triangular root R of a matrix ``R Rᵀ`` that may be singular.

    Leading blocks of R are roots of the leading blocks.
    """
    values, vectors = np.linalg.eigh(matrix)
    half = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    upper: Any = np.linalg.qr(half, mode="r")
    root: Float[np.ndarray, "n n"] = upper.T
    return root
