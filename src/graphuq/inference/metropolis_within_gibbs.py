"""Field and hyperparameters in turn."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from graphuq.errors import IncompatibleParts
from graphuq.hierarchy import HierarchicalTarget, Learnt
from graphuq.hyperparameters import Steps
from graphuq.inference.base import Approximation, Info, Kernel, State, WhiteTarget, metropolis


class MetropolisWithinGibbs(Kernel):
    r"""A step of the field given the hyperparameters, then of each hyperparameter given the rest.

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
    step_size : float or array, default 0.3
        Of each block, the field's first; a number stands for the kernel's own, and 0.3 for others.
    target_acceptance : float, default 0.44
        Of hyperparameters: best for a random walk of one coordinate (Roberts & Rosenthal 2001).
        The field's is its kernel's.
    reference : None
        There is none: the Gaussian would change with the hyperparameters.
    """

    kernel: Kernel  # type: ignore[misc]  # AbstractVar is no field
    joint: bool = False
    interweave: bool = True
    step_size: float | Float[Array, " b"] = 0.3
    target_acceptance: float = 0.44
    reference: Approximation | None = None
    usual_warmup: ClassVar[int] = 1000
    usual_thin: ClassVar[int] = 5

    def __check_init__(self) -> None:
        if self.reference is not None or self.kernel.reference is not None:
            raise IncompatibleParts(
                "with hyperparameters to learn there is no one Gaussian to move about; leave "
                "reference out"
            )
        if self.joint and self.kernel.requires_step:
            raise IncompatibleParts(
                f"{self.kernel} moves a field between walls and no hyperparameter; use joint=False"
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
    def wanted_acceptance(self) -> Any:
        """Of each block."""
        wanted = [self.kernel.target_acceptance] + [self.target_acceptance] * self._n_others
        return jnp.stack([jnp.asarray(value) for value in wanted])

    @property
    def max_step_size(self) -> Any:
        """Of each block."""
        return np.array([self.kernel.max_step_size] + [1.0] * self._n_others, np.float32)

    @property
    def _n_others(self) -> int:
        return int(np.size(self.step_size)) - 1

    def suited_to(self, target: WhiteTarget) -> "MetropolisWithinGibbs":
        """With a step size for each block.

        Raises
        ------
        IncompatibleParts
            If nothing is learnt.
        """
        if not isinstance(target, HierarchicalTarget):
            raise IncompatibleParts(f"no hyperparameter is learnt; use {self.kernel} itself")
        n_others = len(self._others(target)) + len(self._centred(target))
        steps = [float(self.kernel.step_size)] + [0.3] * n_others
        if np.shape(self.step_size) == (len(steps),):
            return self
        return eqx.tree_at(lambda k: k.step_size, self, np.array(steps))

    def _others(self, target: HierarchicalTarget) -> list[Learnt]:
        """Hyperparameters that have a block of their own."""
        return [part for part in target.learnt if part.discrete or not self.joint]

    def _centred(self, target: HierarchicalTarget) -> list[Learnt]:
        """Hyperparameters that move with the field held as well."""
        return [p for p in target.learnt if self.interweave and p.of_prior and not p.discrete]

    def step(self, key: PRNGKeyArray, state: State, target: Any) -> tuple[State, Info]:
        """Each block once."""
        steps = jnp.atleast_1d(self.step_size)
        others, centred = self._others(target), self._centred(target)
        keys = jax.random.split(key, 1 + len(others) + len(centred))
        kernel = eqx.tree_at(lambda k: k.step_size, self.kernel, steps[0])
        state, info = self._move_field(keys[0], state, target, kernel)
        infos = [info]
        for k, part in enumerate(others, start=1):
            move = _jump if part.discrete else _walk
            state, info = move(keys[k], state, target, part, steps[k])
            infos.append(info)
        for k, part in enumerate(centred, start=1 + len(others)):
            state, info = _walk_with_field_held(keys[k], state, target, part, steps[k])
            infos.append(info)
        return state, Info(*(jnp.stack(leaves) for leaves in zip(*infos, strict=True)))

    def _move_field(
        self, key: PRNGKeyArray, state: State, target: HierarchicalTarget, kernel: Kernel
    ) -> tuple[State, Info]:
        if self.joint:
            moving = np.arange(target.n_modes)
            for part in target.learnt:
                if not part.discrete:
                    moving = np.concatenate([moving, np.r_[part.coordinates]])
            block: Any = _Block(target, state.white, moving)
        else:
            moving, block = np.arange(target.n_modes), target.given(state.white)
        inner = State(state.white[moving], state.log_likelihood)
        inner, info = kernel.step(key, inner, kernel.prepare(block))
        return State(state.white.at[moving].set(inner.white), inner.log_likelihood), info


class _Block(eqx.Module):
    """Some of the coordinates, the others as they are."""

    target: HierarchicalTarget
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
    now, new = (target.parts(white)[0].log_std_of(target.modes) for white in (state.white, moved))
    xi = state.white[: target.n_modes]
    stretch = now - new
    followed = xi * jnp.exp(stretch)
    log_ratio = stretch.sum() - 0.5 * (followed**2 - xi**2).sum()
    proposal = State(moved.at[: target.n_modes].set(followed), state.log_likelihood)
    return metropolis(key_accept, state, proposal, log_ratio)


def _jump(
    key: PRNGKeyArray, state: State, target: HierarchicalTarget, part: Learnt, step: Array
) -> tuple[State, Info]:
    """``P(±k) ∝ 1/(1 + k)``, to a point drawn uniformly from the new value's step."""
    key_size, key_sign, key_share, key_accept = jax.random.split(key, 4)
    dtype = state.white.dtype
    steps = part.quantile
    assert isinstance(steps, Steps)
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
