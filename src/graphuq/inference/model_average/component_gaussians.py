"""Nearly exact, independent draws of a mixture, for more labels than its chains can serve.

Expectation propagation of the likely components gives Gaussians. A field that is drawn from one of
them is then moved by a sweep of collapsed Gibbs, which leaves the posterior of the component as it
is. One sweep does not forget its start, but it takes away most of what a Gaussian cannot have, such
as skewness.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax

from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_chains import TRIES, coefficients_of
from graphuq.inference.model_average.likely_components import likely_components
from graphuq.inference.model_average.walk import Moves
from graphuq.posterior.posterior import Posterior

MIN_WEIGHT = 1e-3  # share of the likeliest component, below which a component is not drawn
N_SWEEPS = 1  # of collapsed Gibbs, after each draw of a Gaussian


class ComponentGaussians:
    """Independent proposals: a component, and a field near its posterior.

    Parameters
    ----------
    posterior : Posterior
    shares : ClassShares, optional
        Weights for labels that were drawn class by class.

    Attributes
    ----------
    log_evidence : float
    n_tries : int
        Proposals for each kept draw.
    """

    def __init__(self, posterior: Posterior, shares: ClassShares | None = None) -> None:
        given, sites, logs, _ = likely_components(posterior)
        self.log_evidence = float(np.logaddexp.reduce(logs))
        kept = np.flatnonzero(logs >= logs.max() + np.log(MIN_WEIGHT))
        self.given, self.sites = given.at(slice(None), kept), [sites[m] for m in kept]
        self.log_weights = log_softmax(logs[kept])
        self.shares, self.n_tries = shares, 1 if shares is None else TRIES
        binary = given.n_classes == 2
        self.noisy = [
            NoisyValues(self.given.factor(i), given.noise_std, given.codes, given.n_classes, binary)
            for i in range(len(kept))
        ]

    def start(self, rng: np.random.Generator) -> tuple[()]:
        """Return the state of a chain of proposals: they are independent."""
        return ()

    def propose(self, rng: np.random.Generator, state: Any, n: int) -> tuple[Any, Moves]:
        """Return n independent proposals, in random order."""
        counts = rng.multinomial(n, np.exp(self.log_weights)).tolist()
        parts = [self._of_component(i, rng, count) for i, count in enumerate(counts) if count]
        order = rng.permutation(n)
        made = Moves(*(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)))
        if self.shares is not None:
            made = made._replace(log_ratio=self.shares.log_weights(made.coefficients))
        return state, made

    def gaussian_draws(
        self, i: int, rng: np.random.Generator, n: int
    ) -> Float[np.ndarray, "S R J"]:
        """Return fields at the labels from the Gaussian of one component: one row or K rows."""
        noisy, sites = self.noisy[i], self.sites[i]
        white = sites.white_draws(rng, n)
        if noisy.one_field:  # the difference of the two has the distribution of the one
            white = (white[1:] - white[:1]) / np.sqrt(2.0)
        return np.swapaxes(white @ noisy.factor.T, 0, 1)

    def _of_component(self, i: int, rng: np.random.Generator, n: int) -> Moves:
        """Return draws near the posterior of one component."""
        noisy = self.noisy[i]
        values = noisy.noisy_given(rng, self.gaussian_draws(i, rng, n))
        for one in values:
            one[:] = noisy.run(rng, one, 1, N_SWEEPS)[-1]
        found = noisy.white_given(rng, values)
        return Moves(
            coefficients=coefficients_of(found, self.given.stds[i]),
            component=np.full(n, float(self.given.numbers[i])),
            log_ratio=np.zeros(n),
            log_likelihood=noisy.log_likelihood(noisy.fields(found)),
        )
