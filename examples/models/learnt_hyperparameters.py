"""
Learnt hyperparameters, with ArviZ
==================================

A number is fixed, a distribution is learnt: ``Matern(tau=LogUniform(0.02, 2))`` samples τ together
with the field. ``to_arviz`` hands the chains to ArviZ for its plots and tables.
"""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

digits = gq.datasets.load_digits((4, 9))
labelled = np.arange(20)
labels = 2 * digits.codes()[labelled] - 1
spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(digits.data, 10), n_eigenpairs=50)
prior = gq.priors.Matern(tau=gq.LogUniform(0.02, 2.0), alpha=gq.Uniform(1.0, 6.0))
posterior = gq.Posterior(spectrum, prior, gq.likelihoods.Probit(0.3), labelled, labels)
result = gq.infer(posterior, n_samples=1500, n_chains=4, rng=0)
print(result.diagnostics.verdict)

# %%
chains = gq.to_arviz(result)
table = az.summary(chains, var_names=["tau", "alpha"], round_to=2)
print(table[["mean", "sd", "hdi_3%", "hdi_97%", "ess_bulk", "r_hat"]].to_string())

# %%
# Left: draws of both, which are dependent: a large τ only goes with a large α. Middle
# and right: posterior and prior of each.
tau, alpha = (np.asarray(result.hyperparameters[name]).ravel() for name in ("tau", "alpha"))
figure, panels = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained")
panels[0].scatter(tau, alpha, s=3, alpha=0.3, color="#2f80cc")
panels[0].set(xscale="log", xlabel="τ", ylabel="α", title="draws")
panels[1].hist(np.log10(tau), bins=40, density=True, color="#2f80cc", label="posterior")
panels[1].axhline(0.5, color="#e76300", ls="--", label="prior")
panels[1].set(xlabel="log₁₀ τ", ylabel="density", title="range: τ")
panels[2].hist(alpha, bins=40, density=True, color="#2f80cc", label="posterior")
panels[2].axhline(0.2, color="#e76300", ls="--", label="prior")
panels[2].set(xlabel="α", title="smoothness: α")
for ax in panels:
    ax.spines[["top", "right"]].set_visible(False)
panels[1].legend(frameon=False)
plt.show()
