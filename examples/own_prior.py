"""A prior of your own: the heat kernel."""

import numpy as np

import graphuq as gq


class HeatKernel(gq.priors.Prior):
    r"""``s_j² = κ exp(−t λ_j)``, with κ such that ``E|u|² = N``."""

    time: float = 5.0  # t > 0; larger is smoother

    def log_variances(self, eigenvalues):
        """Return the log variance of each mode, up to a constant."""
        return -self.time * eigenvalues


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, rng=1)
    labelled = np.arange(10)
    labels = moons.signs(1)[labelled]
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features, 10), n_eigenpairs=20)
    for time in (1.0, 10.0, 100.0):
        posterior = gq.Posterior(
            spectrum, HeatKernel(time), gq.likelihoods.Probit(), labelled, labels
        )
        result = gq.infer(posterior, gq.inference.ExpectationPropagation())
        right = (gq.results.labels(result) == moons.signs(1)).mean()
        print(f"t = {time:5.1f}: log evidence {result.log_evidence:6.2f}, accuracy {right:.2f}")
