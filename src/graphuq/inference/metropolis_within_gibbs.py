"""Metropolis within Gibbs: the field and the hyperparameters move in turn."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.distributions import DiscreteQuantile
from graphuq.errors import IncompatibleParts, require
from graphuq.inference.base import Approximation, WhiteTarget
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import Info, State, metropolis
from graphuq.posterior.hierarchical import HierarchicalTarget, Learnt
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import Target
from graphuq.utils.arrays import Array
from graphuq.utils.checks import check_fields
from graphuq.utils.part import Part, unchecked
from graphuq.utils.with_jax import PRNGKeyArray, jax, jnp

SHORT_SHARE = 0.1  # share of joint moves with a smaller step


class MetropolisWithinGibbs(Kernel):
    r"""A step of the field given the hyperparameters, then steps of each hyperparameter.

    These are Chen's Algorithms 2 and 3 in non-centred form: a hyperparameter moves while the
    white coefficients of the field stay fixed. A continuous hyperparameter moves in the
    coordinate w in which its prior is standard normal, ``w' = √(1−β²) w + β ζ``. This is the
    paper's random walk with its prior included in the proposal. A hyperparameter with a value
    for each mode moves as one block. An integer jumps by ±k with probability ∝ ``1/(1 + k)``.
    Warm-up adapts each step size to an acceptance of its own.

    Then each continuous hyperparameter of the prior moves once more with the *field* fixed, and
    the white coefficients change with it (the centred move, interweaved: Yu & Meng 2011). No
    likelihood is computed, so this move is cheap. It goes far if many labels or small noise
    determine the field.

    Parameters
    ----------
    kernel : Kernel
        Kernel that moves the field: ``PCN()`` (the paper's), ``EllipticalSlice()``,
        ``Hamiltonian()``, or, for step likelihoods, ``ExactHamiltonian()``.
    joint : bool, default False
        Whether the kernel moves the continuous hyperparameters together with the field, along
        the gradient if it uses one. Only integers then move by themselves.
    interweave : bool, default True
        Whether the centred moves are made; the paper's algorithm has none.
    repeats : int, default 10
        Moves of each hyperparameter per step of the field, which costs many times as much; the
        paper's algorithm has 1.
    by_class : bool, default False
        Whether the fields of a multiclass likelihood move one after the other instead of
        together (Chen's Algorithm 4 and §8). Each then has its own step size.
    step_size : float or array, default 0.3
        Step size of each block, the field's first. A number stands for the kernel's own step
        size, and for 0.3 in the other blocks.
    target_acceptance : float, default 0.44
        Target of the hyperparameters, best for a random walk of one coordinate (Roberts &
        Rosenthal 2001). The field has its kernel's target.
    reference : None
        A reference is not supported, since its Gaussian would change with the hyperparameters.
    n_field_blocks : int
        Set when a run begins; a given value is replaced.
    """

    kernel: Kernel
    joint: bool = False
    interweave: bool = True
    repeats: int = 10
    by_class: bool = False
    step_size: float | Float[Array, " b"] = 0.3
    target_acceptance: float = 0.44
    reference: Approximation | None = None
    n_field_blocks: int = 1
    default_warmup: ClassVar[int] = 1000
    averages: ClassVar[bool] = True
    default_thin: ClassVar[int] = 5

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.repeats >= 1, "repeats", f"{self.repeats}", "use 1 or more")
        if self.reference is not None or self.kernel.reference is not None:
            raise IncompatibleParts(
                "a reference cannot be kept while hyperparameters are learnt, because the Gaussian "
                "would change; leave reference out"
            )
        if self.joint and self.kernel.requires_step:
            raise IncompatibleParts(
                f"{self.kernel} moves the field alone and no hyperparameter; use joint=False"
            )
        if self.by_class and (self.joint or self.kernel.requires_step):
            raise IncompatibleParts(
                f"by_class=True moves one class at a time, and {self.kernel} with "
                f"joint={self.joint} all of them; use a kernel such as PCN()"
            )

    @property
    def requires_gradient(self) -> bool:  # type: ignore[override]
        """Whether the kernel requires a gradient."""
        return self.kernel.requires_gradient

    @property
    def requires_step(self) -> bool:  # type: ignore[override]
        """Whether the kernel requires a step likelihood."""
        return self.kernel.requires_step

    @property
    def block_target_acceptance(self) -> Any:
        """Target acceptance of each block."""
        targets = [self.kernel.target_acceptance] * self.n_field_blocks
        targets += [self.target_acceptance] * self._n_others
        return jnp.stack([jnp.asarray(value) for value in targets])

    @property
    def max_step_size(self) -> Any:
        """Largest step size of each block."""
        most = [self.kernel.max_step_size] * self.n_field_blocks + [1.0] * self._n_others
        return np.array(most, np.float32)

    @property
    def _n_others(self) -> int:
        return int(np.size(self.step_size)) - self.n_field_blocks

    def bind(self, target: WhiteTarget) -> "MetropolisWithinGibbs":
        """Return the sampler with a step size for each block.

        Raises
        ------
        IncompatibleParts
            If nothing is learnt and there is one field only.
        """
        if not isinstance(target, Target | HierarchicalTarget):
            raise IncompatibleParts(f"{self} moves no {type(target).__name__}")
        reason = self._nothing_to_alternate(bool(target.learnt), target.n_fields)
        if reason is not None:
            raise IncompatibleParts(reason)
        n_field_blocks = target.n_fields if self.by_class else 1
        n_others = len(self._others(target)) + len(self._centred(target))
        steps = [float(self.kernel.step_size)] * n_field_blocks + [0.3] * n_others
        chosen: Any = self.step_size
        if np.size(chosen) != len(steps) or np.ndim(chosen) == 0:
            chosen = np.array(steps)
        return dataclasses.replace(self, n_field_blocks=n_field_blocks, step_size=chosen)

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot sample this posterior and what to do instead, or None."""
        reason = self._nothing_to_alternate(bool(posterior.learnt), posterior.n_fields)
        return reason or super().refusal(posterior)

    def learning_refusal(self, posterior: Posterior) -> str | None:
        """Return why the kernel cannot move the field while hyperparameters are learnt."""
        if self.requires_step and not posterior.likelihood.is_step:
            return super().learning_refusal(posterior)
        return None

    def _nothing_to_alternate(self, learns: bool, n_fields: int) -> str | None:
        if learns or (self.by_class and n_fields > 1):
            return None
        return (
            f"{self} finds no hyperparameter to learn and no classes to move one after the other; "
            f"use {self.kernel} itself"
        )

    def _others(self, target: Target | HierarchicalTarget) -> list[Learnt]:
        """Return the hyperparameters that have a block of their own."""
        return [part for part in target.learnt if part.discrete or not self.joint]

    def _centred(self, target: Target | HierarchicalTarget) -> list[Learnt]:
        """Return the hyperparameters that also move with the field fixed."""
        return [p for p in target.learnt if self.interweave and p.of_prior and not p.discrete]

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """Return the state after a step of the field and moves of the hyperparameters."""
        steps = jnp.atleast_1d(self.step_size)
        key_fields, key_others = jax.random.split(key)
        infos = []
        for k, moving in enumerate(self._moving(target)):
            key_size, key_field = jax.random.split(jax.random.fold_in(key_fields, k))
            size = steps[k] * _share(key_size, steps.dtype) if self.joint else steps[k]
            kernel = unchecked(self.kernel, {"step_size": size})
            state, info = self._move_field(key_field, state, target, kernel, moving)
            infos.append(info)
        info = Info(*(jnp.stack(leaves) for leaves in zip(*infos, strict=True)))
        moves = [(_jump if part.discrete else _walk, part) for part in self._others(target)]
        moves += [(_walk_with_field_held, part) for part in self._centred(target)]
        if not moves:
            return state, info
        steps = steps[self.n_field_blocks :]

        def sweep(state: State, key: PRNGKeyArray) -> tuple[State, Info]:
            infos = []
            for k, (move, part) in enumerate(moves):
                state, info = move(jax.random.fold_in(key, k), state, target, part, steps[k])
                infos.append(info)
            return state, Info(*(jnp.stack(leaves) for leaves in zip(*infos, strict=True)))

        state, swept = jax.lax.scan(sweep, state, jax.random.split(key_others, self.repeats))
        return state, Info(
            jnp.concatenate([info.acceptance_probability, swept.acceptance_probability.mean(0)]),
            jnp.concatenate([info.accepted, swept.accepted.any(0)]),
        )

    def _moving(self, target: Target | HierarchicalTarget) -> list[np.ndarray]:
        """Return the coordinates of each block of the field and of what moves jointly with it."""
        moving = np.arange(target.n_coefficients)
        if self.by_class:
            return np.split(moving, self.n_field_blocks)
        if self.joint:
            continuous = [np.r_[part.coordinates] for part in target.learnt if not part.discrete]
            moving = np.concatenate([moving, *continuous])
        return [moving]

    def _move_field(
        self, key: PRNGKeyArray, state: State, target: Any, kernel: Kernel, moving: np.ndarray
    ) -> tuple[State, Info]:
        block: Any = target.given(state.white)
        if self.joint:
            block = _Block(target, state.white, moving)
        elif self.by_class:
            block = _Block(block, state.white[: target.n_coefficients], moving)
        inner = State(state.white[moving], state.log_likelihood)
        inner, info = kernel.step(key, inner, kernel.prepare(block))
        return State(state.white.at[moving].set(inner.white), inner.log_likelihood), info


def _share(key: PRNGKeyArray, dtype: Any) -> Float[Array, ""]:
    """Return the share of the step size in a joint move: 1, or 0.01 to 1 one time in ten.

    Learnt spectra have narrow regions in which the pooled step size is always rejected. A chain
    that is there after warm-up would otherwise never leave.
    """
    key_short, key_share = jax.random.split(key)
    share = 10.0 ** jax.random.uniform(key_share, (), dtype, -2.0, 0.0)
    return jnp.where(jax.random.bernoulli(key_short, SHORT_SHARE), share, 1.0)


class _Block(Part):
    """A target as a function of some coordinates, with the others fixed."""

    target: Target | HierarchicalTarget
    white: Array
    moving: np.ndarray

    @property
    def dimension(self) -> int:
        """Number of coordinates that move."""
        return len(self.moving)

    def log_likelihood(self, white: Float[Array, " m"]) -> Float[Array, ""]:
        """Return the log likelihood with these values of the moving coordinates."""
        return self.target.log_likelihood(self.white.at[self.moving].set(white))


def _walk(
    key: PRNGKeyArray, state: State, target: HierarchicalTarget, part: Learnt, step: Array
) -> tuple[State, Info]:
    """Move a hyperparameter by ``w' = √(1−β²) w + β ζ`` with ξ fixed."""
    key_move, key_accept = jax.random.split(key)
    w = state.white[part.coordinates]
    noise = jax.random.normal(key_move, w.shape, w.dtype)
    white = state.white.at[part.coordinates].set(jnp.sqrt(1 - step**2) * w + step * noise)
    return metropolis(key_accept, state, State(white, target.log_likelihood(white)))


def _walk_with_field_held(
    key: PRNGKeyArray, state: State, target: HierarchicalTarget, part: Learnt, step: Array
) -> tuple[State, Info]:
    """Move a hyperparameter with the field ``s ξ`` fixed: ``ξ' = ξ s/s'``.

    Jacobian and prior decide. The field and so its likelihood stay the same.
    """
    key_move, key_accept = jax.random.split(key)
    w = state.white[part.coordinates]
    noise = jax.random.normal(key_move, w.shape, w.dtype)
    moved = state.white.at[part.coordinates].set(jnp.sqrt(1 - step**2) * w + step * noise)
    now, new = (target.log_std(at, part.of_class) for at in (state.white, moved))
    owned = slice(0, target.n_coefficients)
    if part.of_class is not None:
        owned = slice(part.of_class * target.n_modes, (part.of_class + 1) * target.n_modes)
    xi = state.white[owned].reshape(-1, target.n_modes)
    stretch = (now - new)[None, :]
    followed = xi * jnp.exp(stretch)
    log_ratio = len(xi) * stretch.sum() - 0.5 * (followed**2 - xi**2).sum()
    proposal = State(moved.at[owned].set(followed.ravel()), state.log_likelihood)
    return metropolis(key_accept, state, proposal, log_ratio)


def _jump(
    key: PRNGKeyArray, state: State, target: HierarchicalTarget, part: Learnt, step: Array
) -> tuple[State, Info]:
    """Move an integer by ±k with ``P(k) ∝ 1/(1 + k)``.

    The new coordinate is uniform on the interval of the new value.
    """
    key_size, key_sign, key_share, key_accept = jax.random.split(key, 4)
    dtype = state.white.dtype
    steps = part.quantile
    assert isinstance(steps, DiscreteQuantile)
    sizes = np.arange(1, len(steps.cumulative))
    weights = jnp.asarray(-np.log1p(sizes), dtype)
    jump = 1 + jax.random.categorical(key_size, weights)
    sign = jnp.where(jax.random.bernoulli(key_sign), 1, -1)
    now = steps.index(state.white[part.begin])
    new = now + sign * jump
    share = jax.random.uniform(key_share, (), dtype)
    white = state.white.at[part.begin].set(steps.coordinate(new, share))
    log_ratio = jnp.log(steps.probability(new)) - jnp.log(steps.probability(now))
    return metropolis(key_accept, state, State(white, target.log_likelihood(white)), log_ratio)
