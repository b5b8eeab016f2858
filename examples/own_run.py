"""A sampler of another shape: it defines ``run`` and makes no steps."""

import numpy as np

import graphuq as gq
from graphuq.inference.base import Sampler
from graphuq.inference.draws import Draws
from graphuq.posterior.target import log_likelihoods


class Rejection(Sampler):
    """Draws from the prior, accepted with probability equal to the likelihood of the labels."""

    reference: None = None

    def refusal(self, posterior):
        """Return why this posterior cannot be sampled, or None."""
        if len(posterior.labels) > 10:
            return "rejection is hopeless with more than 10 labels; use gq.infer(posterior)"
        return super().refusal(posterior)

    def run(self, posterior, settings, reference=None):
        """Return independent draws in the white coordinates of ``posterior.field``."""
        target = posterior.target
        rng = np.random.default_rng(settings.rng)
        n_chains, n_samples = settings.n_chains or 4, settings.n_samples
        kept, proposed = [], 0
        while len(kept) < n_chains * n_samples:
            white = rng.normal(size=(10_000, target.dimension))
            accepted = np.log(rng.uniform(size=len(white))) < log_likelihoods(target, white)
            kept, proposed = [*kept, *white[accepted]], proposed + len(white)
        white = np.array(kept[: n_chains * n_samples])
        shape = n_chains, n_samples
        return Draws(
            white=white.reshape(*shape, -1),
            log_likelihood=np.asarray(log_likelihoods(target, white)).reshape(shape),
            acceptance=np.full(shape, len(kept) / proposed),
            step_size=1.0,
            n_warmup=0,
            thin=1,
        )


if __name__ == "__main__":
    moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.1, rng=1)
    labelled = np.arange(6)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features, 10), n_eigenpairs=20)
    posterior = gq.Posterior(
        spectrum,
        gq.priors.Matern(),
        gq.likelihoods.Probit(),
        labelled,
        moons.signs(1)[labelled],
    )
    exact = gq.infer(posterior, Rejection(), n_samples=500, rng=0)
    default = gq.infer(posterior, n_samples=500, rng=0)
    difference = np.abs(gq.results.label_mean(exact) - gq.results.label_mean(default)).max()
    print(f"label means differ from the default sampler's by at most {difference:.2f}")
