"""Multiclass expectation propagation: distance of its class probabilities from those of chains.

Question: how far is the first answer of a multinomial probit from the posterior?

How to run:

    python benchmarks/bench_nested.py

The data are the 8 × 8 digits of scikit-learn: 10 neighbours, 60 eigenpairs, a Matérn prior, and
four labels for each of three or ten digits. The chains are `Hamiltonian` about expectation
propagation, with a mean Monte-Carlo error below 0.003.

Prints: one line for each number of classes and γ. The columns are seconds of expectation
propagation (second run), its log evidence, the share of its draws that would be accepted, mean and
largest absolute difference of class probabilities, and mean Monte-Carlo error.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits

import graphuq as gq

EP = gq.inference.ExpectationPropagation()


def make_posterior(n_classes, noise_std):
    """Return the posterior of some digits with four labels a class."""
    features, codes = load_digits(n_class=n_classes, return_X_y=True)
    rng = np.random.default_rng(0)
    labelled = np.concatenate(
        [rng.choice(np.flatnonzero(codes == k), 4, replace=False) for k in range(n_classes)]
    )
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features, 10), n_eigenpairs=60)
    likelihood = gq.likelihoods.Probit(noise_std, n_classes=n_classes)
    prior = gq.priors.Matern(tau=0.25, alpha=4.0)
    return gq.Posterior(spectrum, prior, likelihood, labelled, codes[labelled])


def main():
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    print("classes    γ  seconds  evidence  share   mean  largest   error")
    for n_classes in (3, 10):
        for noise_std in (0.1, 0.5, 1.0):
            posterior = make_posterior(n_classes, noise_std)
            gq.infer(posterior, EP)
            began = time.perf_counter()
            fast = gq.infer(posterior, EP)
            seconds = time.perf_counter() - began
            sampler = gq.inference.Hamiltonian(reference=EP)
            slow = gq.infer(posterior, sampler, n_samples=1000, n_chains=8, rng=0)
            gap = np.abs(gq.results.label_mean(fast) - gq.results.label_mean(slow))
            print(
                f"{n_classes:7} {noise_std:4} {seconds:8.2f} {fast.log_evidence:9.3f} "
                f"{fast.diagnostics.acceptance:6.2f} {gap.mean():6.4f} {gap.max():8.4f} "
                f"{gq.results.label_mcse(slow).mean():7.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
