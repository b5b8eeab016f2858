"""
The likelihoods, side by side
=============================

How probable is a label if the field at its node is u? The likelihoods differ in what they think of
a label that contradicts the field: impossible, unlikely, or a slip that happens now and then.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from graphuq import likelihoods as gql

u = np.linspace(-3, 3, 1200)  # 0, where steps jump, is not among them
N = len(u)


def of_sign(likelihood):
    """Return the log likelihood of a label +1 or −1 (0: no label), as a function of that label."""
    return lambda y: likelihood.log_prob(jnp.asarray(u), y * jnp.ones(N))


def soft(y):
    """Return that of somebody who is sure of the label to 90 %."""
    belief = [0.1, 0.9] if y > 0 else [0.9, 0.1]
    return gql.SoftProbit(0.3, [belief] * N).log_prob(jnp.asarray(u), y * jnp.ones(N))


def of_class(likelihood):
    """Return that of the first of three classes, or of another; u is the field of the first."""
    fields = jnp.stack([jnp.asarray(u), jnp.zeros(N), jnp.zeros(N)], axis=1)
    return lambda y: likelihood.log_prob(fields, (0.0 if y > 0 else 1.0) * jnp.ones(N))


def of_grade(likelihood):
    """Return that of the middle of three grades, or of the lowest."""
    return lambda y: likelihood.log_prob(jnp.asarray(u), (1.0 if y > 0 else 0.0) * jnp.ones(N))


LIKELIHOODS = {
    "Probit(0.3)": of_sign(gql.Probit(0.3)),
    "Logistic(1.5)": of_sign(gql.Logistic(1.5)),
    "NoiseFree()": of_sign(gql.NoiseFree()),
    "LevelSet(1)": of_sign(gql.LevelSet(1.0)),
    "AtomicNoise(0.9, 0.7)": of_sign(gql.AtomicNoise(0.9, 0.7)),
    "SoftProbit(0.3), 90 % sure": soft,
    "Softmax(0.5), three classes": of_class(gql.Softmax(0.5)),
    "ConfusionMatrix(), three classes": of_class(gql.ConfusionMatrix()),
    "Ordered([-1, 1], 0.3), grades": of_grade(gql.Ordered([-1.0, 1.0], 0.3)),
    "GaussianNoise(0.5)": of_sign(gql.GaussianNoise(0.5)),
    "GinzburgLandau(0.5, 0.7)": of_sign(gql.GinzburgLandau(0.5, 0.7)),
    "GinzburgLandauPrior(AtomicNoise(0.9), 0.5)": of_sign(
        gql.GinzburgLandauPrior(gql.AtomicNoise(0.9), 0.5)
    ),
}
probability = {
    name: [np.exp(log_prob(y)) for y in (1, -1)] for name, log_prob in LIKELIHOODS.items()
}

# %%
# What four labels +1 and one label −1 of the same node say about it: the posterior of a field that
# is standard normal before. Steps keep both sides, at different heights. Without noise the labels
# contradict each other, and nothing is left. With `GaussianNoise` labels are numbers, and the field
# is near their mean. The double well of Ginzburg and Landau, which counts once a node, keeps it
# near ±1; its labels are numbers, too, or follow another model. With `Ordered`, +1 stands for the
# middle of three grades and −1 for the lowest.
posterior = {}
for name, log_prob in LIKELIHOODS.items():
    wells = log_prob(0) if "GinzburgLandau" in name else 0.0  # 0: no label
    density = np.exp(4 * log_prob(1) + log_prob(-1) - 4 * wells - u**2 / 2)
    if density.sum() > 0:
        posterior[name] = density / density.sum() / (u[1] - u[0])

# %%
figure, panels = plt.subplots(4, 3, figsize=(11, 10), layout="constrained", sharex=True)
for ax, (name, (plus, minus)) in zip(panels.flat, probability.items(), strict=True):
    if name in posterior:
        ax.fill_between(u, posterior[name], color="#d5d8dd", label="density of u after ++++−")
    ax.plot(u, plus, color="#2f80cc", label="likelihood of +1")
    ax.plot(u, minus, "--", color="#e76300", label="likelihood of −1")
    ax.set_title(name, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
for ax in panels[-1]:
    ax.set_xlabel("field u at the node")
for ax in panels[:, 0]:
    ax.set_ylabel("probability or density")
figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
