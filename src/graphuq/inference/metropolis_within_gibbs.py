"""Field and hyperparameters in turn."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from graphuq.distributions import DiscreteQuantile
from graphuq.errors import IncompatibleParts, require
from graphuq.inference.base import Approximation, Info, State, WhiteTarget, metropolis
from graphuq.inference.kernel import Kernel
from graphuq.posterior.hierarchical import HierarchicalTarget, Learnt
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import Target
from graphuq.utils.arrays import Array

SHORT = 0.1  # share of joint moves with a smaller step


class MetropolisWithinGibbs(Kernel):
    r"""A step of the field given the hyperparameters, then several of each of those given the rest.

    Chen's Algorithms 2 and 3, non-centred: the field's white coefficients stay as they are while
    a hyperparameter moves. A continuous one moves in the coordinate w in which its prior is
    standard normal, ``w' = √(1−β²) w + β ζ``, which is the paper's random walk with its prior taken
    care of; one with a value for each mode moves as a block. An integer jumps by ±k with
    probability ∝ ``1/(1 + k)``. Each step size is adapted in warm-up to an acceptance of its own.

    Then each continuous hyperparameter of the prior moves once more with the *field* held, its
    white coefficients following (the centred move, interweaved: Yu & Meng 2011). No label changes
    side and no likelihood is computed, so that it is cheap, and goes far where many labels or
    small noise pin the field down.

    Parameters
    ----------
    kernel : Kernel
        What moves the field: ``PCN()`` (the paper's), ``EllipticalSlice()``, ``Hamiltonian()``,
        or, for step likelihoods, ``ExactHamiltonian()``.
    joint : bool, default False
        Let the kernel move the continuous hyperparameters as well, along the gradient if it has
        one; only integers are then left to jump.
    interweave : bool, default True
        Make the centred moves; without them it is the paper's.
    repeats : int, default 10
        How often each hyperparameter moves for one step of the field, which costs many times as
        much; with 1 it is the paper's.
    by_class : bool, default False
        Of several classes: move the field of one after the other, each with a step size of its
        own (Chen's Algorithm 4 and §8), instead of all together.
    step_size : float or array, default 0.3
        Of each block, the field's first; a number stands for the kernel's own, and 0.3 for others.
    target_acceptance : float, default 0.44
        Of hyperparameters: best for a random walk of one coordinate (Roberts & Rosenthal 2001).
        The field's is its kernel's.
    reference : None
        There is none: the Gaussian would change with the hyperparameters.
    n_field_blocks : int
        Without use: set when a run begins.
    """

    kernel: Kernel  # type: ignore[misc]  # AbstractVar is no field
    joint: bool = False
    interweave: bool = True
    repeats: int = 10
    by_class: bool = False
    step_size: float | Float[Array, " b"] = 0.3
    target_acceptance: float = 0.44
    reference: Approximation | None = None
    n_field_blocks: int = 1
    default_warmup: ClassVar[int] = 1000
    default_thin: ClassVar[int] = 5

    def __check_init__(self) -> None:
        require(self.repeats >= 1, "repeats", f"{self.repeats}", "use 1 or more")
        if self.reference is not None or self.kernel.reference is not None:
            raise IncompatibleParts(
                "with hyperparameters to learn there is no one Gaussian to move about; leave "
                "reference out"
            )
        if self.joint and self.kernel.requires_step:
            raise IncompatibleParts(
                f"{self.kernel} moves a field between walls and no hyperparameter; use joint=False"
            )
        if self.by_class and (self.joint or self.kernel.requires_step):
            raise IncompatibleParts(
                f"by_class=True moves one class at a time, and {self.kernel} with "
                f"joint={self.joint} all of them; use a kernel such as PCN()"
            )

    @property
    def requires_gradient(self) -> bool:  # type: ignore[override]
        """What the kernel requires."""
        return self.kernel.requires_gradient

    @property
    def requires_step(self) -> bool:  # type: ignore[override]
        """What the kernel requires."""
        return self.kernel.requires_step

    @property
    def block_target_acceptance(self) -> Any:
        """Of each block."""
        wanted = [self.kernel.target_acceptance] * self.n_field_blocks
        wanted += [self.target_acceptance] * self._n_others
        return jnp.stack([jnp.asarray(value) for value in wanted])

    @property
    def max_step_size(self) -> Any:
        """Of each block."""
        most = [self.kernel.max_step_size] * self.n_field_blocks + [1.0] * self._n_others
        return np.array(most, np.float32)

    @property
    def _n_others(self) -> int:
        return int(np.size(self.step_size)) - self.n_field_blocks

    def bind(self, target: WhiteTarget) -> "MetropolisWithinGibbs":
        """With a step size for each block.

        Raises
        ------
        IncompatibleParts
            If nothing is learnt, and there is but one field to move.
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
        """Hyperparameters that have a block of their own."""
        return [part for part in target.learnt if part.discrete or not self.joint]

    def _centred(self, target: Target | HierarchicalTarget) -> list[Learnt]:
        """Hyperparameters that move with the field held as well."""
        return [p for p in target.learnt if self.interweave and p.of_prior and not p.discrete]

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """Each block once."""
        steps = jnp.atleast_1d(self.step_size)
        key_fields, key_others = jax.random.split(key)
        infos = []
        for k, moving in enumerate(self._moving(target)):
            key_size, key_field = jax.random.split(jax.random.fold_in(key_fields, k))
            size = steps[k] * _share(key_size, steps.dtype) if self.joint else steps[k]
            kernel = eqx.tree_at(lambda k: k.step_size, self.kernel, size)
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
        """Coordinates of each block of the field, with those that move jointly with it."""
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
    """Of the step size, in a joint move: all of it, and one time in ten down to a hundredth.

    Learnt spectra have narrow places, where the step that suits all chains together is never
    accepted: a chain that warm-up leaves there would stay.
    """
    key_short, key_share = jax.random.split(key)
    share = 10.0 ** jax.random.uniform(key_share, (), dtype, -2.0, 0.0)
    return jnp.where(jax.random.bernoulli(key_short, SHORT), share, 1.0)


class _Block(eqx.Module):
    """Some of the coordinates, the others as they are."""

    target: Target | HierarchicalTarget
    white: Array
    moving: np.ndarray

    @property
    def dimension(self) -> int:
        """How many move."""
        return len(self.moving)

    def log_likelihood(self, white: Float[Array, " m"]) -> Float[Array, ""]:
        """Log likelihood with these coordinates in place."""
        return self.target.log_likelihood(self.white.at[self.moving].set(white))


def _walk(
    key: PRNGKeyArray, state: State, target: HierarchicalTarget, part: Learnt, step: Array
) -> tuple[State, Info]:
    """``w' = √(1−β²) w + β ζ``."""
    key_move, key_accept = jax.random.split(key)
    w = state.white[part.coordinates]
    noise = jax.random.normal(key_move, w.shape, w.dtype)
    white = state.white.at[part.coordinates].set(jnp.sqrt(1 - step**2) * w + step * noise)
    return metropolis(key_accept, state, State(white, target.log_likelihood(white)))


def _walk_with_field_held(
    key: PRNGKeyArray, state: State, target: HierarchicalTarget, part: Learnt, step: Array
) -> tuple[State, Info]:
    """The same, ``s ξ`` held: ``ξ' = ξ s/s'``, whose Jacobian and prior decide.

    The likelihood is that of the same field; it is not computed anew.
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
    """``P(±k) ∝ 1/(1 + k)``, to a point drawn uniformly from the new value's step."""
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
