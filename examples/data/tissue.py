"""
A tissue: cells that have genes and places
==========================================

A simulated slide has 1,500 cells of five types, which make patches. Their expression tells the
types apart only roughly, and the types of eight cells each are known. Which type has every other
cell, and what are the patches made of?
"""

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

tissue = gq.datasets.simulated_tissue(1500, contrast=2.2, patchiness=0.97, rng=1)
adata = tissue.to_anndata(tissue.known(8, rng=1))
print(adata)

# %%
# `label_cells` makes one graph of expression and one of places. The labels tell how much of each
# counts. Without places fewer cells are right.
label_cells = gq.external.scanpy.label_cells
label_cells(adata, "few", use_rep="X", spatial_key=None, key_added="blind")
fitted = label_cells(adata, "few", use_rep="X")
unknown = (adata.obs["few"] == "Unknown").to_numpy()
right = {
    key: float((adata.obs[f"{key}_label"].astype(str) == tissue.classes)[unknown].mean())
    for key in ("blind", "gq")
}
print(right)
print(gq.results.block_weights(fitted.result_))

# %%
# Cells between patches have the smallest probabilities.
codes = {name: k for k, name in enumerate(tissue.target_names)}
pictures = (
    ("Type", tissue.classes),
    (f"Expression alone: {right['blind']:.0%} right", adata.obs["blind_label"]),
    (f"With places: {right['gq']:.0%} right", adata.obs["gq_label"]),
    ("Probability, and the known cells", adata.obs["gq_probability"]),
)
figure, axes = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
for ax, (title, values) in zip(axes.ravel(), pictures, strict=True):
    of_types = not title.startswith("Probability")
    shown = [codes[name] for name in values] if of_types else values
    colors = {"cmap": "tab10", "vmin": 0, "vmax": 9} if of_types else {"cmap": "cividis", "vmin": 0}
    drawn = ax.scatter(*tissue.places.T, s=9, c=shown, **colors)
    ax.set_title(title, fontsize=10)
    ax.set_aspect("equal")
    ax.set_axis_off()
axes[1, 1].scatter(*tissue.places[~unknown].T, s=28, c="none", edgecolors="crimson")
figure.colorbar(drawn, ax=axes[1, 1], shrink=0.7)
plt.show()

# %%
# Of each square of a third of the side: which share has the last type, and in which interval does
# it lie with probability 0.9? Neighbours are wrong together: the interval comes from joint draws.
table = gq.external.scanpy.per_patch(adata, fitted, side=1 / 3)
first = table[table["type"] == "type 4"].sort_values("share")
own = [tissue.classes[adata.obs["gq_patch"] == patch] == "type 4" for patch in first["patch"]]
truth = np.array([cells.mean() for cells in own])
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
place = np.arange(len(first))
ends = [first["share"] - first["lower"], first["upper"] - first["share"]]
ax.errorbar(place, first["share"], ends, fmt="o", capsize=4, label="expected, with interval")
ax.scatter(place, truth, marker="x", c="crimson", zorder=3, label="true share")
ax.set(ylabel="share of type 4", xlabel="square of the slide", xticks=[])
ax.legend(frameon=False)
plt.show()
