"""
Your own likelihood in 20 lines
===============================

A likelihood needs one method, the log probability of a label given the field at its node. Here is
one with heavy tails, under which a wrong label costs little. Samplers, summaries, plots and files
work with it at once; nothing has to be registered.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq


class Cauchit(gq.likelihoods.Likelihood):
    r"""``p(y | u) = 1/2 + arctan(y u / γ) / π``: labels with Cauchy noise."""

    scale: float = 0.3  # γ > 0, in units of u

    def log_prob(self, u, y):
        """Return the log probability of each label y = ±1."""
        return jnp.log(0.5 + jnp.arctan(y * u / self.scale) / jnp.pi)


# %%
# Two moons with 40 labels, of which six are wrong.
moons = gq.datasets.two_moons(400, n_features=2, noise_std=0.08, rng=1)
truth = moons.signs(1)
rng = np.random.default_rng(2)
labelled = rng.choice(400, 40, replace=False)
labels = truth[labelled]
wrong = rng.choice(40, 6, replace=False)
labels[wrong] *= -1
spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features, 10), n_eigenpairs=40)

results, accuracy = {}, {}
for likelihood in (gq.likelihoods.Probit(0.1), Cauchit(0.3)):
    posterior = gq.Posterior(spectrum, gq.priors.Matern(), likelihood, labelled, labels)
    name = type(likelihood).__name__
    results[name] = gq.infer(posterior, n_samples=500, rng=0)
    accuracy[name] = (gq.results.labels(results[name]) == truth).mean()
    print(f"{name}: {accuracy[name]:.1%} right. {results[name].diagnostics.verdict}")

# %%
# Left: both likelihoods of the label +1. Right: what they make of the labels; wrong ones have a
# ring.
figure, panels = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
u = np.linspace(-1, 1, 401)
for likelihood, style in ((gq.likelihoods.Probit(0.1), "-"), (Cauchit(0.3), "--")):
    probability = np.exp(likelihood.log_prob(jnp.asarray(u), jnp.ones(401)))
    panels[0].plot(u, probability, style, color="black", label=type(likelihood).__name__)
panels[0].set(xlabel="field u at the node", ylabel="p(y = +1 | u)", title="likelihoods")
panels[0].legend(frameon=False)
for ax, (name, result) in zip(panels[1:], results.items(), strict=True):
    drawn = ax.scatter(
        *moons.features.T, c=gq.results.label_mean(result), s=12, cmap="RdBu", vmin=-1, vmax=1
    )
    ax.scatter(
        *moons.features[labelled].T, c=labels, s=45, cmap="RdBu", edgecolors="black", label="label"
    )
    ax.scatter(
        *moons.features[labelled[wrong]].T,
        s=160,
        facecolors="none",
        edgecolors="#d97706",
        lw=2,
        label="wrong",
    )
    ax.set(title=f"{name}: {accuracy[name]:.1%} right", xlabel="feature 1", xticks=[], yticks=[])
panels[1].set_ylabel("feature 2")
panels[1].legend(frameon=False, fontsize=8)
figure.colorbar(drawn, ax=panels[1:], label="mean label")
plt.show()
