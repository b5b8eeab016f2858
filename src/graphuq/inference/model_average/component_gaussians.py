"""Nearly independent draws of a mixture, for more labels than its chains can serve.

With many labels few components have any weight, and some labels tell which. The evidence of the
first labels of all components is compared, then that of twice as many, and so on. A component that
is far behind is left out. Expectation propagation of the others, at all labels, gives Gaussians.
A field that is drawn from one of them is then moved by some sweeps of collapsed Gibbs, whose
distribution is the posterior of the component. So few sweeps do not forget their start, but they
take away most of what a Gaussian cannot have, such as its skewness.
"""

from typing import Any

import numpy as np
from jaxtyping import Int
from scipy.special import log_softmax

from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_chains import TRIES
from graphuq.inference.model_average.components import Components, require_any
from graphuq.inference.model_average.walk import Made

N_FIRST = 60  # labels that are compared first
BEHIND = 8.0  # log weight behind the largest, from which a component is left out
LEAST_WEIGHT = 1e-3  # share of the likeliest component, below which a component is not drawn
MAX_SWEEPS, TOLERANCE = 100, 1e-3  # of expectation propagation, as `nested_sites` has them
N_SWEEPS = 1  # of collapsed Gibbs, after each draw of a Gaussian


class ComponentGaussians:
    """Independent proposals: a component, and a field near its posterior.

    Parameters
    ----------
    given : Components
    shares : ClassShares, optional
        Weights for labels that were drawn class by class.

    Attributes
    ----------
    log_evidence : float
    n_tries : int
        Proposals for each kept draw.
    """

    def __init__(self, given: Components, shares: ClassShares | None = None) -> None:
        given = given.at(stratified(given.codes), slice(None))
        n_all, n_labels = len(given.codes), min(N_FIRST, len(given.codes))
        sites: list[Any] = [None] * len(given.stds)
        while True:
            sites = _fitted(given.at(slice(n_labels), slice(None)), sites)
            logs = given.log_prior + [-np.inf if one is None else one.log_evidence for one in sites]
            require_any(logs)
            if n_labels == n_all:
                break
            kept = np.flatnonzero(logs >= logs.max() - BEHIND)
            given, sites = given.at(slice(None), kept), [sites[m] for m in kept]
            n_labels = 2 * n_labels if 3 * n_labels < n_all else n_all
        self.log_evidence = float(np.logaddexp.reduce(logs))
        kept = np.flatnonzero(logs >= logs.max() + np.log(LEAST_WEIGHT))
        self.given, self.sites = given.at(slice(None), kept), [sites[m] for m in kept]
        self.log_weights = log_softmax(logs[kept])
        self.shares, self.n_tries = shares, 1 if shares is None else TRIES
        binary = given.n_classes == 2
        self.noisy = [
            NoisyValues(given.rows * std, given.noise_std, given.codes, given.n_classes, binary)
            for std in self.given.stds
        ]

    def start(self, rng: np.random.Generator) -> tuple[()]:
        """Return the state of a chain of proposals: they are independent."""
        return ()

    def propose(self, rng: np.random.Generator, state: Any, n: int) -> tuple[Any, Made]:
        """Return n independent proposals, in random order."""
        counts = rng.multinomial(n, np.exp(self.log_weights)).tolist()
        parts = [self._of_component(i, rng, count) for i, count in enumerate(counts) if count]
        order = rng.permutation(n)
        made = Made(*(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)))
        if self.shares is not None:
            made = made._replace(log_ratio=self.shares.log_weights(made.coefficients))
        return state, made

    def _of_component(self, i: int, rng: np.random.Generator, n: int) -> Made:
        """Return draws from one component."""
        noisy, sites = self.noisy[i], self.sites[i]
        n_labels, r = noisy.factor.shape
        white = rng.normal(size=(self.given.n_classes, n, r)) @ sites.roots
        white += rng.normal(size=(n, n_labels)) @ sites.common
        white += sites.white_mean[:, None]
        if noisy.one_field:  # the difference of the two has the distribution of the one
            white = (white[1:] - white[:1]) / np.sqrt(2.0)
        values = noisy.noisy_given(rng, np.swapaxes(white @ noisy.factor.T, 0, 1))
        for one in values:
            one[:] = noisy.run(rng, one, 1, N_SWEEPS)[-1]
        found = noisy.white_given(rng, values)
        return Made(
            coefficients=(found * self.given.stds[i]).reshape(n, -1),
            model=np.full(n, float(self.given.numbers[i])),
            log_ratio=np.zeros(n),
            log_likelihood=noisy.log_likelihood(noisy.fields(found)),
        )


def _fitted(some: Components, starts: list[Any]) -> list[Any]:
    """Return the sites of each component, or None where they have no fixed point."""
    from graphuq.inference.nested_low_rank import fit_low_rank_sites

    if len(some.codes) <= N_FIRST:
        sites: list[Any] = [one.sites for one in some.fit()]
    else:
        settings = some.codes, some.n_classes, some.noise_std, MAX_SWEEPS, TOLERANCE
        sites = []
        for std, start in zip(some.stds, starts, strict=True):
            try:
                sites.append(fit_low_rank_sites(some.rows * std, *settings, start))
            except np.linalg.LinAlgError:
                sites.append(None)
    return [one if one and one.converged else None for one in sites]


def stratified(codes: Int[np.ndarray, " J"]) -> Int[np.ndarray, " J"]:
    """Return a random order of the labels, whose first ones have the shares of all classes."""
    rng, places = np.random.default_rng(0), np.empty(len(codes))
    for k in np.unique(codes):
        own = rng.permutation(np.flatnonzero(codes == k))
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
    return np.argsort(places, kind="stable")
