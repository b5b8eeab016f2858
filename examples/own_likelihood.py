"""A likelihood of your own: labels with heavy-tailed noise."""

import jax.numpy as jnp
import numpy as np

import graphuq as gq


class Cauchit(gq.likelihoods.Likelihood):
    r"""``p(y | u) = 1/2 + arctan(y u / γ) / π``: Cauchy noise, so wrong labels cost little."""

    scale: float = 0.3  # γ > 0, in units of u

    def log_prob(self, u, y):
        """Return the log probability of each label y = ±1."""
        return jnp.log(0.5 + jnp.arctan(y * u / self.scale) / jnp.pi)


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, rng=1)
    labelled = np.arange(20)
    labels = moons.signs(1)[labelled]
    labels[0] = -labels[0]  # a wrong label
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features, 10), n_eigenpairs=20)
    posterior = gq.Posterior(spectrum, gq.priors.Matern(), Cauchit(), labelled, labels)
    fast = gq.infer(posterior, gq.inference.ExpectationPropagation())
    result = gq.infer(posterior, n_samples=500, rng=0)
    difference = np.abs(gq.results.label_mean(result) - gq.results.label_mean(fast)).max()
    right = (gq.results.labels(result) == moons.signs(1)).mean()
    print(f"accuracy {right:.2f}; expectation propagation differs by at most {difference:.2f}")
