"""A sampler of your own: random-walk Metropolis, as one step of a chain."""

import jax
import numpy as np

import graphuq as gq
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import State, metropolis


class RandomWalk(Kernel):
    r"""``ξ' = ξ + β ζ`` with ζ white; the acceptance includes the ratio of white priors."""

    step_size: float = 0.5  # β, which warm-up adapts to the target acceptance
    target_acceptance: float = 0.25
    reference: None = None

    def step(self, key, state, target):
        """Return the next state and whether the proposal was accepted."""
        key_move, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_move, state.white.shape, state.white.dtype)
        white = state.white + self.step_size * noise
        proposal = State(white, target.log_likelihood(white))
        log_prior_ratio = ((state.white**2).sum() - (white**2).sum()) / 2
        return metropolis(key_accept, state, proposal, log_prior_ratio)


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, rng=1)
    labelled = np.arange(10)
    labels = moons.signs(1)[labelled]
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features, 10), n_eigenpairs=20)
    posterior = gq.Posterior(
        spectrum, gq.priors.Matern(), gq.likelihoods.Probit(), labelled, labels
    )
    ours = gq.infer(posterior, RandomWalk(), n_samples=500, rng=0)
    default = gq.infer(posterior, n_samples=500, rng=0)
    difference = np.abs(gq.results.label_mean(ours) - gq.results.label_mean(default)).max()
    print(ours.diagnostics.verdict)
    print(f"label means differ from the default sampler's by at most {difference:.2f}")
