"""
Right or wrong: the verdict
===========================

The same rows twice: once with their labels, once with labels that were shuffled. Both fits return
probabilities, but only one of them can be relied on. The verdict tells which, without any truth.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

moons = gq.datasets.two_moons(400, n_features=2, noise_std=0.12, rng=1)
truth = np.where(moons.signs(1) > 0, "lower", "upper")
rng = np.random.default_rng(1)
labelled = rng.choice(400, 24, replace=False)
given = {"labels as they are": truth[labelled], "labels shuffled": rng.permutation(truth[labelled])}

fitted = {}
for title, labels in given.items():
    y = np.full(400, "", dtype=object)
    y[labelled] = labels
    fitted[title] = gq.GraphClassifier().fit(moons.data, y)
    print(f"{title}: {fitted[title].result_.trust}\n")

# %%
# Colours are probabilities of the upper moon, and triangles are given labels.
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, (title, classifier) in zip(panels, fitted.items(), strict=True):
    result = classifier.result_
    drawn = ax.scatter(
        *moons.data.T, c=result.probabilities[:, 1], s=14, cmap="RdBu", vmin=0, vmax=1
    )
    for name, marker in (("upper", "^"), ("lower", "v")):
        shown = labelled[given[title] == name]
        ax.scatter(
            *moons.data[shown].T,
            marker=marker,
            s=60,
            facecolors="white",
            edgecolors="black",
            label=f"label: {name}",
        )
    ax.set(title=f"{title}: {result.trust.level}", xticks=[], yticks=[], xlabel="feature 1")
panels[0].set_ylabel("feature 2")
panels[1].legend(frameon=False, loc="upper right", fontsize=8)
figure.colorbar(drawn, ax=panels, label="probability of the upper moon")
plt.show()
