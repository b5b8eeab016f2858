"""
Unequal classes: one in thirty
==============================

A rare class has 3 % of the rows, and two of the 60 labels. The usual prior on a graph has no
constant: it expects halves, and calls far too many rows rare. By default graphuq averages over
models with and without a constant, so the shares of the classes are learnt.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

rng = np.random.default_rng(0)
common = rng.normal(size=(1940, 2)) * [1.6, 1.0]
rare = rng.normal(size=(60, 2)) * 0.35 + [2.6, 2.0]
X = np.vstack([common, rare])
truth = np.repeat(["common", "rare"], [1940, 60])
labelled = np.concatenate([rng.choice(1940, 58, replace=False), [1940, 1941]])
y = np.full(len(X), "", dtype=object)
y[labelled] = truth[labelled]

NO_CONSTANT = gq.models.LargestEvidence(prior="Matern(include_constant=False)")
MODELS = {"no constant": NO_CONSTANT, "default": "auto"}
answers = {
    name: gq.GraphClassifier(model=model, inference="expectation-propagation")
    .fit(X, y)
    .transduction_
    for name, model in MODELS.items()
}


def recall_and_precision(inferred):
    """Return the two shares for the rare class, over the rows without a label."""
    hit = ((inferred == "rare") & (truth == "rare"))[y == ""].sum()
    return hit / (truth == "rare")[y == ""].sum(), hit / max((inferred == "rare")[y == ""].sum(), 1)


numbers = {name: recall_and_precision(inferred) for name, inferred in answers.items()}
for name, (recall, precision) in numbers.items():
    print(
        f"{name}: finds {recall:.0%} of the rare rows; {precision:.0%} of those it names are rare"
    )

# %%
# The true classes, and those inferred without and with a constant. Legends count the rows.
figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
truth_and_answers = {"truth": truth, **answers}
for ax, (name, classes) in zip(panels, truth_and_answers.items(), strict=True):
    for kind, color in (("common", "#94a4a2"), ("rare", "#bd1f01")):
        shown = classes == kind
        ax.scatter(*X[shown].T, s=6, color=color, label=f"{kind}: {shown.sum()}")
    ax.scatter(
        *X[labelled].T, s=40, facecolors="none", edgecolors="black", lw=0.8, label="labelled"
    )
    ax.set(title=name, xlabel="feature 1")
    ax.legend(frameon=False, loc="lower left", fontsize=8)
panels[0].set_ylabel("feature 2")
plt.show()
