"""
The likelihoods, side by side
=============================

How probable is the label +1 if the field at its node is u? The likelihoods differ in what they
think of a label that contradicts the field: impossible, unlikely, or a slip that happens now and
then.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

u = np.linspace(-2, 3, 1200)  # 0, where steps jump, is not among them
LIKELIHOODS = {
    "Probit(0.3)": (gq.likelihoods.Probit(0.3), "-", "#2f80cc"),
    "Logistic(1.5)": (gq.likelihoods.Logistic(1.5), "--", "#832db6"),
    "NoiseFree()": (gq.likelihoods.NoiseFree(), "-", "black"),
    "LevelSet(1)": (gq.likelihoods.LevelSet(1.0), "-.", "#e76300"),
    "AtomicNoise(0.9, 0.7)": (gq.likelihoods.AtomicNoise(0.9, 0.7), ":", "#bd1f01"),
}
probability = {
    name: np.exp(likelihood.log_prob(jnp.asarray(u), jnp.ones(len(u))))
    for name, (likelihood, _, _) in LIKELIHOODS.items()
}

# %%
# What four labels +1 and one label −1 of the same node say about it: the posterior of a field that
# is standard normal before. A step keeps both sides, at different heights; without noise the labels
# contradict each other, and nothing is left.
prior = np.exp(-(u**2) / 2)
posterior = {}
for name, (likelihood, _, _) in LIKELIHOODS.items():
    other = np.exp(likelihood.log_prob(jnp.asarray(u), -jnp.ones(len(u))))
    density = prior * probability[name] ** 4 * other
    if density.sum() > 0:
        posterior[name] = density / density.sum() / (u[1] - u[0])

# %%
figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for name, (_, style, color) in LIKELIHOODS.items():
    panels[0].plot(u, probability[name], style, color=color, label=name)
    if name in posterior:
        panels[1].plot(u, posterior[name], style, color=color, label=name)
panels[0].set(xlabel="field u at the node", ylabel="p(y = +1 | u)", title="one label")
panels[1].set(
    xlabel="field u at the node", ylabel="density given the labels", title="labels + + + + −"
)
panels[0].legend(frameon=False)
for ax in panels:
    ax.axvline(0, color="#94a4a2", lw=0.8)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
