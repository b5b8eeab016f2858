"""
How it works, in five pictures
==============================

From features to an answer: rows become the nodes of a graph, the graph has smooth patterns, and the
labels say which mixtures of patterns are plausible. What most plausible mixtures agree on is
certain.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import graphuq as gq

moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.12, rng=3)
truth, X = moons.signs(1), moons.features
rng = np.random.default_rng(4)
labelled = np.concatenate(
    [rng.choice(np.flatnonzero(truth == s), 3, replace=False) for s in (-1, 1)]
)

# %%
# 1. **Graph.** Each row is joined to its ten nearest neighbours; near ones weigh more.
# 2. **Spectrum.** The smoothest patterns on the graph are eigenvectors of its Laplacian.
# 3. **Prior.** A field is a random mixture of patterns, in which smooth ones are larger.
# 4. **Posterior.** Mixtures that contradict the labels are unlikely.
# 5. **Answer.** The probability of a class is the share of draws in which the field has its sign.
graph = gq.graphs.knn_graph(X, n_neighbors=10)
spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=40)
prior = gq.priors.Matern(tau=0.3, alpha=3.0)
posterior = gq.Posterior(
    spectrum, prior, gq.likelihoods.Probit(noise_std=0.2), labelled, truth[labelled]
)
result = gq.infer(posterior, n_samples=500, rng=0)
accuracy = (gq.results.labels(result) == truth).mean()
sure = result.probabilities.max(axis=1) > 0.95
accuracy_of_sure = (gq.results.labels(result) == truth)[sure].mean()
print(f"{accuracy:.0%} right from six labels; {accuracy_of_sure:.0%} of the {sure.sum()} sure ones")

# %%
std = prior.spectral_std(spectrum).modes
draw_of_prior = spectrum.eigenvectors @ (std * rng.normal(size=len(std)))
draws = gq.results.latent_draws(result, np.arange(300))
pictures = {
    "1. graph": None,
    "2. a smooth pattern": spectrum.eigenvectors[:, 2],
    "3. a draw of the prior": draw_of_prior,
    "4a. a draw of the posterior": draws[:, 100],
    "4b. another one": draws[:, 900],
    "5. probability of each class": gq.results.label_mean(result),
}
figure, panels = plt.subplots(
    2, 3, figsize=(11, 6.2), layout="constrained", sharex=True, sharey=True
)
edges = graph.weights.tocoo()
for ax, (title, values) in zip(panels.ravel(), pictures.items(), strict=True):
    if values is None:
        lines = LineCollection(
            X[np.stack([edges.row, edges.col], axis=1)], colors="#94a4a2", lw=0.4
        )
        ax.add_collection(lines)
        ax.scatter(*X.T, s=8, color="#5a5e6b", label="row")
    else:
        limit = 1 if title[0] == "5" else np.abs(values).max()
        drawn = ax.scatter(*X.T, c=values, s=12, cmap="RdBu", vmin=-limit, vmax=limit)
    if title[0] in "145":
        ax.scatter(
            *X[labelled].T,
            c=truth[labelled],
            s=70,
            cmap="RdBu",
            vmin=-1.4,
            vmax=1.4,
            edgecolors="black",
            zorder=3,
            label="label",
        )
    ax.set(title=title, xticks=[], yticks=[])
for ax in panels[1]:
    ax.set_xlabel("feature 1")
for ax in panels[:, 0]:
    ax.set_ylabel("feature 2")
panels[0, 0].legend(frameon=False, loc="upper right", fontsize=8)
bar = figure.colorbar(drawn, ax=panels[1, 2], ticks=[-1, 0, 1])
bar.set_ticklabels(["surely red", "unknown", "surely blue"])
plt.show()
