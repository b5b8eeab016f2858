"""A quick posterior for simulated labelling, which `bench_acquisition.py` uses.

This module is not a benchmark. Hundreds of labels in tens of rounds, for many rules and draws, need
a posterior in a fraction of a second. The model is the mixture of priors of
`graphuq.evidence.learnt_mixture`, of which the two components with the largest evidence are kept.
Expectation propagation is that of the library (`graphuq.inference.nested_sites`). Class
probabilities treat the fields of the classes at a node as independent, which they nearly are, and
need no draws.
"""

import numpy as np
from scipy.special import ndtr

from graphuq.acquisition.pool import FLOOR, SHARPNESS, Pool
from graphuq.evidence.learnt_mixture import learnt_mixture
from graphuq.inference.nested_sites import fit_sites

N_COMPONENTS = 2  # components that are averaged
SHARE = 0.1  # of the largest evidence, below which a component is left out until labels double
N_TARGETS = 400  # unlabelled nodes that stand for all in the rules
JITTER = 1e-9  # added to the diagonal, as a share of its largest entry


class LabellingModel:
    """Class probabilities and covariance of all nodes, given labels.

    Parameters
    ----------
    spectrum : graphuq.Spectrum
    n_classes : int
    """

    def __init__(self, spectrum, n_classes):
        self.spectrum, self.n_classes = spectrum, n_classes
        self.rows = np.asarray(spectrum.eigenvectors) * spectrum.node_scale[:, None]
        self.kept, self.n_searched, self.sites = None, 0, {}

    def fit(self, labelled, codes):
        """Condition on labels, and return class probabilities, shape (N, K).

        The labels of the last call must come first: their sites are the start.
        """
        prior = learnt_mixture(self.spectrum, self.n_classes, len(labelled))
        modes, log_prior = prior.modes(self.spectrum), prior.log_probabilities
        identity = {
            m: (round(prior.tau[m], 9), prior.alpha[m], prior.scale[m], prior.with_constant[m])
            for m in np.flatnonzero(np.isfinite(log_prior)).tolist()
        }
        numbers = [m for m in identity if self.kept and identity[m] in self.kept]
        if not numbers or len(labelled) >= 2 * self.n_searched:
            numbers, self.n_searched = list(identity), len(labelled)
        found = {}
        for m in numbers:
            std = np.asarray(prior.component(m).std_of(modes).modes)
            factor = self.rows[labelled] * std
            covariance = factor @ factor.T
            covariance[np.diag_indices_from(covariance)] += JITTER * covariance.diagonal().max()
            try:
                sites = fit_sites(
                    covariance,
                    codes,
                    self.n_classes,
                    1.0,
                    tolerance=1e-2,
                    start=self.sites.get(identity[m]),
                )
            except np.linalg.LinAlgError:
                continue
            if np.isfinite(sites.log_evidence):
                self.sites[identity[m]] = sites
                found[m] = log_prior[m] + sites.log_evidence, std, sites
        best = max(value for value, _, _ in found.values())
        self.kept = {identity[m] for m in found if found[m][0] > best + np.log(SHARE)}
        order = sorted(found, key=lambda m: -found[m][0])[:N_COMPONENTS]
        weights = np.exp([found[m][0] - best for m in order])
        self._average(labelled, [found[m][1:] for m in order], weights / weights.sum())
        self.free = np.setdiff1d(np.arange(len(self.rows)), labelled)
        return self.probabilities

    def _average(self, labelled, components, weights):
        shape = len(self.rows), self.n_classes
        probabilities, covariance = np.zeros(shape), 0.0
        for weight, (std, sites) in zip(weights, components, strict=True):
            factor, loadings = self.rows[labelled] * std, self.rows * std
            across = loadings @ factor.T
            mean = across @ _pulls(sites)
            lost = [
                gain - (sites.inner_root @ gain).T @ (sites.inner_root @ gain)
                for gain in sites.gains
            ]
            prior = (loadings**2).sum(axis=1)
            variance = np.stack([prior - ((across @ x) * across).sum(axis=1) for x in lost], axis=1)
            probabilities += weight * largest_shares(mean, np.maximum(variance, 0.0) + 1.0)
            inner = np.eye(len(std)) - factor.T @ (sum(lost) / self.n_classes) @ factor
            covariance = covariance + weight * std[:, None] * inner * std
        values, vectors = np.linalg.eigh(covariance)
        self.factor = self.rows @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        probabilities = np.maximum(probabilities, FLOOR)
        self.probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)

    def pool(self, rng):
        """Return the pool of the rules: all unlabelled nodes are candidates."""
        targets = rng.choice(len(self.free), min(N_TARGETS, len(self.free)), replace=False)
        factor, p = self.factor[self.free], self.probabilities[self.free]
        sharpness = SHARPNESS / np.sqrt((factor**2).sum(axis=1) + 1.0)
        return Pool(
            rows=self.free,
            n_represented=np.ones(len(self.free)),
            probabilities=p,
            target_rows=self.free[targets],
            target_probabilities=p[targets],
            sharpness=sharpness,
            target_sharpness=sharpness[targets],
            covariance=factor @ factor.T,
            cross_covariance=factor @ factor[targets].T,
            noise_std=1.0,
            rng=rng,
        )


def _pulls(sites):
    """Return α with ``E u = C_·J α``, shape (J, K); see `graphuq.inference.nested_sites`."""
    gained = np.einsum("kij,jk->ik", sites.gains, sites.covariance @ sites.pull)
    shared = sites.inner_root.T @ (sites.inner_root @ gained.sum(axis=1))
    return sites.pull - gained + np.einsum("kij,j->ik", sites.gains, shared)


def largest_shares(mean, variance):
    """Return the probability that each of K independent Gaussians is the largest."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    std, shares = np.sqrt(variance), np.empty_like(mean)
    for k in range(mean.shape[1]):
        x = mean[:, k, None] + std[:, k, None] * nodes
        product = np.ones_like(x)
        for other in range(mean.shape[1]):
            if other != k:
                product *= ndtr((x - mean[:, other, None]) / std[:, other, None])
        shares[:, k] = product @ (weights / weights.sum())
    return shares
