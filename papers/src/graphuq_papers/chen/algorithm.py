"""Chen's Algorithm 2 in plain NumPy, with the author's start, and its variants of section 3.

The library's own sampler moves a hyperparameter in the coordinate in which its prior is normal.
The author's moves it by a random walk, so that it forgets its start slowly, as figure 5 shows.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq_papers.problems import Problem

TAU, ALPHA = (0.01, 20.0), (0.1, 60.0)  # bounds of the uniform priors of model C
STEP_SIZES = (0.1, 3.0)  # of τ and α; the paper names them for figure 13
FIELD_THIN = 10  # steps per update of the mean field


class Walk(NamedTuple):
    """Draws of one chain.

    Attributes
    ----------
    tau, alpha : numpy.ndarray, shape (S,)
    accepted : numpy.ndarray of bool, shape (S,)
        Whether the move of the field was accepted.
    mean_field : numpy.ndarray, shape (N,)
        Mean of u.
    label_mean : numpy.ndarray, shape (N,)
        Mean of sign(u).
    steps : numpy.ndarray, shape (B,)
        Steps after which the running mean of the labels was stored.
    running : numpy.ndarray, shape (B, N)
        Running means of the labels.
    """

    tau: Float[np.ndarray, " S"]
    alpha: Float[np.ndarray, " S"]
    accepted: Bool[np.ndarray, " S"]
    mean_field: Float[np.ndarray, " N"]
    label_mean: Float[np.ndarray, " N"]
    steps: Int[np.ndarray, " B"]
    running: Float[np.ndarray, "B N"]


def walk(
    problem: Problem,
    labelled: Int[np.ndarray, " J"],
    noise_std: float,
    n_modes: int,
    n_steps: int,
    *,
    beta: float,
    start: tuple[float, float],
    seed: int,
    centred: bool = False,
    block: bool = False,
    n_stored: int = 40,
    step_sizes: tuple[float, float] = STEP_SIZES,
) -> Walk:
    """Run one chain of model C with fixed M on the level set of two classes.

    Parameters
    ----------
    problem : Problem
    labelled : numpy.ndarray of int, shape (J,)
    noise_std : float
        γ > 0 of the level set.
    n_modes : int
        M: the eigenvectors ``q_0, …`` kept.
    n_steps : int
    beta : float
        Step size of the field.
    start : tuple of float
        τ and α of the first step.
    seed : int
    centred : bool, default False
        Whether τ and α move while the *field* is fixed; in Algorithm 2 ξ is.
    block : bool, default False
        Whether field, τ and α move together; in Algorithm 2 one after the other.
    n_stored : int, default 40
        Number of running means that are stored.
    step_sizes : tuple of float, default (0.1, 3)
        Standard deviations of the moves of τ and α.
    """
    rng = np.random.default_rng(seed)
    model = _Model.of(problem, labelled, noise_std, n_modes)
    theta, xi = np.array(start), rng.normal(size=n_modes)
    scale = model.std(theta)
    now = model.cost(scale, xi)
    traces, accepted = np.empty((n_steps, 2)), np.zeros(n_steps, dtype=bool)
    stored = np.unique(np.linspace(0, n_steps, n_stored + 1).astype(int)[1:])
    sums, n_sums, running = np.zeros((2, len(model.vectors))), 0, []
    for step in range(n_steps):
        # Algorithm 2, lines 3 and 4: the field; in a block, with τ and α.
        proposal = np.sqrt(1 - beta**2) * xi + beta * rng.normal(size=n_modes)
        moved = theta + step_sizes * rng.normal(size=2) if block else theta
        if inside(moved):
            moved_scale = model.std(moved) if block else scale
            new = model.cost(moved_scale, proposal)
            if np.log(rng.uniform()) < now - new:
                xi, theta, scale, now = proposal, moved, moved_scale, new
                accepted[step] = True
        for k in () if block else (0, 1):  # lines 5 to 8: τ, then α
            moved = theta.copy()
            moved[k] += step_sizes[k] * rng.normal()
            if not inside(moved):
                continue
            moved_scale = model.std(moved)
            kept, change = _followed(xi, scale, moved_scale) if centred else (xi, 0.0)
            new = now if centred else model.cost(moved_scale, xi)
            if np.log(rng.uniform()) < change + now - new:
                xi, theta, scale, now = kept, moved, moved_scale, new
        traces[step] = theta
        if step % FIELD_THIN == 0:
            u = model.vectors @ (scale * xi)
            sums += u, np.sign(u)
            n_sums += 1
        if step + 1 in stored:
            running.append(sums[1] / n_sums)
    return Walk(
        tau=traces[:, 0],
        alpha=traces[:, 1],
        accepted=accepted,
        mean_field=sums[0] / n_sums,
        label_mean=running[-1],
        steps=stored,
        running=np.array(running),
    )


def inside(theta: Float[np.ndarray, " 2"]) -> bool:
    """Return whether τ and α are within the bounds of their priors."""
    return bool(TAU[0] <= theta[0] <= TAU[1] and ALPHA[0] <= theta[1] <= ALPHA[1])


def _followed(
    xi: Float[np.ndarray, " M"], old: Float[np.ndarray, " M"], new: Float[np.ndarray, " M"]
) -> tuple[Float[np.ndarray, " M"], float]:
    """Return ξ of the same field under other deviations, and the log ratio of its prior density."""
    kept = xi * old / new
    return kept, float(np.log(old / new).sum() - (kept @ kept - xi @ xi) / 2)


class _Model(NamedTuple):
    """The level set of two classes with model C's prior and fixed M."""

    eigenvalues: Float[np.ndarray, " M"]
    vectors: Float[np.ndarray, "N M"]
    at_labelled: Float[np.ndarray, "J M"]
    labels: Float[np.ndarray, " J"]
    cost_of_one: float

    @staticmethod
    def of(
        problem: Problem, labelled: Int[np.ndarray, " J"], noise_std: float, n_modes: int
    ) -> "_Model":
        """Return the model; a wrong label costs 2/γ²."""
        vectors = problem.spectrum.eigenvectors[:, :n_modes]
        return _Model(
            problem.spectrum.eigenvalues[:n_modes],
            vectors,
            vectors[labelled],
            problem.truth[labelled],
            2 / noise_std**2,
        )

    def std(self, theta: Float[np.ndarray, " 2"]) -> Float[np.ndarray, " M"]:
        """Return standard deviations with E|u|² = N; equation (7), corrected."""
        log_variance = -theta[1] * np.log(self.eigenvalues + theta[0] ** 2)
        variance = np.exp(log_variance - log_variance.max())
        return np.asarray(np.sqrt(len(self.vectors) * variance / variance.sum()))

    def cost(self, scale: Float[np.ndarray, " M"], xi: Float[np.ndarray, " M"]) -> float:
        """Return Φ, equation (4)."""
        wrong = np.sign(self.at_labelled @ (scale * xi)) != self.labels
        return self.cost_of_one * int(wrong.sum())
