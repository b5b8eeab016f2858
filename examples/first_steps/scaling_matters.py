"""
Scaling matters: wine
=====================

Neighbours are found by distance, so columns with large numbers decide. The wine table of
scikit-learn has 13 chemical measurements in different units: proline is in the hundreds, hue is
about one. Without scaling, proline alone makes the graph. graphuq warns about it. The default
averages over a second graph, of whitened features, which does not depend on units and mends most of
it. A ``StandardScaler`` mends the rest.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphuq as gq

wine = load_wine()
rng = np.random.default_rng(3)
y = np.full(len(wine.target), -1)
for kind in range(3):
    y[rng.choice(np.flatnonzero(wine.target == kind), 4, replace=False)] = kind

# %%
# The same twelve labels: one graph of the columns as they are, the default, and the default with
# columns of equal size.
one_graph = gq.GraphClassifier(model="largest-evidence", inference="expectation-propagation")
as_they_are = gq.GraphClassifier(inference="expectation-propagation")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    one_graph.fit(wine.data, y)
    as_they_are.fit(wine.data, y)
print(caught[0].message)
scaled = make_pipeline(
    StandardScaler(), gq.GraphClassifier(inference="expectation-propagation")
).fit(wine.data, y)

# %%
# Wines at two of their measurements, in the colour of the inferred kind; crosses are wrong. The
# labelled wines have a rim.
answers = {
    "one graph": one_graph,
    "default": as_they_are,
    "default, columns scaled": scaled[-1],
}
figure, panels = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained", sharey=True)
colors = gq.plots.class_colors(3)
accuracy = {}
for ax, (title, classifier) in zip(panels, answers.items(), strict=True):
    inferred = classifier.transduction_
    right = inferred == wine.target
    accuracy[title] = right[y < 0].mean()
    for kind in range(3):
        for rows, marker in ((right, "o"), (~right, "x")):
            shown = rows & (inferred == kind)
            label = f"kind {kind}" if marker == "o" else None
            ax.scatter(
                wine.data[shown, 12],
                wine.data[shown, 6],
                color=colors(kind),
                marker=marker,
                label=label,
            )
    ax.scatter(
        wine.data[y >= 0, 12],
        wine.data[y >= 0, 6],
        s=90,
        facecolors="none",
        edgecolors="black",
        label="labelled",
    )
    ax.set(title=f"{title}: {accuracy[title]:.0%} right", xlabel="proline")
    ax.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("flavanoids")
panels[2].scatter([], [], color="black", marker="x", label="wrong")
panels[2].legend(frameon=False)
plt.show()
