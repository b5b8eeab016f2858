"""A quick posterior for simulated labelling, which `bench_acquisition.py` uses.

This module is not a benchmark. Hundreds of labels in tens of rounds, for many rules and draws, need
a posterior in a fraction of a second. The model is the mixture of priors of
`graphuq.models.learnt_odds`, of which the two components with the largest evidence are kept.
Expectation propagation is that of the library (`graphuq.inference.nested_sites`). Class
probabilities treat the fields of the classes at a node as independent, which they nearly are, and
need no draws. As in `graphuq.acquisition.query`, rules choose among the
least certain nodes and a random sample.
"""

import numpy as np

from graphuq.acquisition.joint_covariance import JointCovariance
from graphuq.acquisition.pool import FLOOR, SHARPNESS, Pool
from graphuq.inference.nested_sites import fit_sites
from graphuq.models.learnt_odds import learnt_mixture
from graphuq.results.summaries.gaussian_fields import largest_shares

N_COMPONENTS = 1  # components that are averaged
SHARE = 0.1  # of the largest evidence, below which a component is left out until labels double
N_SEARCHED = 300  # components times labels, at most, that are looked at when labels have doubled
N_CANDIDATES = 1_000  # nodes among which the rules choose: half are the least certain ones
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
        self.kept, self.ranked, self.n_searched, self.sites = None, None, 0, {}

    def fit(self, labelled, codes):
        """Condition on labels, and return class probabilities, shape (N, K).

        The labels of the last call must come first: their sites are the start.
        """
        prior = learnt_mixture(self.spectrum, self.n_classes, len(labelled))
        modes, log_prior = prior.modes(self.spectrum), prior.log_probabilities
        numbers = np.flatnonzero(np.isfinite(log_prior)).tolist()
        identity = {m: _identity(prior.components[m][0]) for m in numbers}
        numbers = [m for m in identity if self.kept and identity[m] in self.kept]
        search = not numbers or len(labelled) >= 2 * self.n_searched
        if search:
            self.n_searched, numbers = len(labelled), list(identity)
            if self.ranked is not None:
                likely = self.ranked[: max(5, N_SEARCHED // len(labelled))]
                numbers = [m for m in identity if identity[m] in likely]
        found = {}
        for m in numbers:
            std = np.asarray(prior.only(m).std_of(modes).modes)
            factor = self.rows[labelled] * std
            covariance = factor @ factor.T
            covariance[np.diag_indices_from(covariance)] += JITTER * covariance.diagonal().max()
            given = codes, self.n_classes, 1.0
            start = self.sites.get(identity[m])
            [sites] = fit_sites(covariance[None], *given, tolerance=1e-2, start=start)
            if sites is not None and np.isfinite(sites.log_evidence):
                self.sites[identity[m]] = sites
                found[m] = log_prior[m] + sites.log_evidence, std, sites
        best = max(value for value, _, _ in found.values())
        self.kept = {identity[m] for m in found if found[m][0] > best + np.log(SHARE)}
        order = sorted(found, key=lambda m: -found[m][0])
        if search:
            self.ranked = [identity[m] for m in order]
        order = order[:N_COMPONENTS]
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
            probabilities += weight * largest_shares(mean, np.sqrt(np.maximum(variance, 0.0) + 1.0))
            inner = np.eye(len(std)) - factor.T @ (sum(lost) / self.n_classes) @ factor
            covariance = covariance + weight * std[:, None] * inner * std
        values, vectors = np.linalg.eigh(covariance)
        self.root = vectors * np.sqrt(np.maximum(values, 0.0))
        probabilities = np.maximum(probabilities, FLOOR)
        self.probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)

    def pool(self, rng):
        """Return the pool of the rules."""
        rows, stands_for = self.free, np.ones(len(self.free))
        if len(rows) > N_CANDIDATES:
            half = N_CANDIDATES // 2
            two = np.partition(self.probabilities[rows], -2, axis=1)[:, -2:]
            order = rows[np.argsort(two[:, 1] - two[:, 0])]
            rest = rng.choice(order[half:], N_CANDIDATES - half, replace=False)
            stands_for = np.repeat([1.0, (len(rows) - half) / half], half)
            rows = np.append(order[:half], rest)
        targets = rng.choice(self.free, min(N_TARGETS, len(self.free)), replace=False)
        at = self.rows[rows] @ self.root, self.rows[targets] @ self.root
        sharpness = [SHARPNESS / np.sqrt((one**2).sum(axis=1) + 1.0) for one in at]
        return Pool(
            rows=rows,
            n_represented=stands_for,
            probabilities=self.probabilities[rows],
            target_rows=targets,
            target_probabilities=self.probabilities[targets],
            sharpness=sharpness[0],
            target_sharpness=sharpness[1],
            joint=JointCovariance(*at, np.zeros(len(rows))),
            noise_std=1.0,
            rng=rng,
        )


def _identity(term):
    """Return what a component keeps when others join or leave the mixture."""
    own = term.prior
    return round(own.tau, 9), own.alpha, term.scale, own.include_constant


def _pulls(sites):
    """Return α with ``E u = C_·J α``, shape (J, K); see `graphuq.inference.nested_sites`."""
    gained = np.einsum("kij,jk->ik", sites.gains, sites.covariance @ sites.pull)
    shared = sites.inner_root.T @ (sites.inner_root @ gained.sum(axis=1))
    return sites.pull - gained + np.einsum("kij,j->ik", sites.gains, shared)
