"""
Single cells: types from a few known ones
=========================================

An AnnData object, as scanpy makes it: 900 cells, 60 genes, three types of which one is half way
between the others. Five cells of each type are known. graphuq writes the type of each cell and its
probability into ``obs``, and leaves cells open that it cannot tell.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

import graphuq as gq

# %%
# Counts of genes are Poisson. Each type has its own genes; "activated" cells are T cells that have
# begun to make the genes of another programme.
rng = np.random.default_rng(1)
TYPES = np.array(["B cell", "T cell", "activated T cell"])
truth = rng.choice(TYPES, 900, p=[0.35, 0.4, 0.25])
level = np.full((900, 60), 0.4)
level[truth == "B cell", :20] = 2.0
level[truth != "B cell", 20:40] = 2.0
progress = rng.uniform(0.15, 1.0, 900) * (truth == "activated T cell")
level[:, 40:] += 1.6 * progress[:, None]
counts = rng.poisson(level * rng.lognormal(0, 0.3, (900, 1)))

few = np.full(900, "Unknown", dtype=object)
for name in TYPES:
    few[np.flatnonzero(truth == name)[:5]] = name
cells = anndata.AnnData(
    np.log1p(counts).astype(np.float32),
    obs=pd.DataFrame({"few": pd.Categorical(few)}, index=[f"cell{k}" for k in range(900)]),
)
cells.obsm["X_pca"] = PCA(10, random_state=0).fit_transform(cells.X)

# %%
# With scanpy, ``sc.pp.neighbors`` would have made the graph; ``use_rep`` makes one of an embedding.
quick = gq.GraphClassifier(inference="expectation-propagation")
fitted = gq.external.scanpy.label_cells(cells, "few", classifier=quick, use_rep="X_pca")
hidden = few == "Unknown"
accuracy = (cells.obs["gq_label"].astype(str) == truth)[hidden].mean()
print(cells.obs[["few", "gq", "gq_probability", "gq_entropy"]].head(3))
print(f"{accuracy:.0%} of {hidden.sum()} cells right; {(cells.obs['gq'] == 'Unknown').sum()} open")

# %%
# Left: types, with the 15 known cells in a rim. Right: how sure each type is. Cells that have just
# begun to be activated are the doubtful ones.
places = cells.obsm["X_pca"][:, :2]
figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharey=True)
colors = gq.plots.class_colors(3)
for code, name in enumerate(TYPES):
    shown = cells.obs["gq_label"].astype(str) == name
    panels[0].scatter(*places[shown].T, s=10, color=colors(code), label=name)
panels[0].scatter(*places[~hidden].T, s=60, facecolors="none", edgecolors="black", label="known")
panels[0].legend(frameon=False, markerscale=1.4)
drawn = panels[1].scatter(
    *places.T, c=cells.obs["gq_probability"], s=10, cmap="cividis", vmin=1 / 3, vmax=1
)
figure.colorbar(drawn, ax=panels[1], label="probability of the type")
for ax, title in zip(panels, ["type", "certainty"], strict=True):
    ax.set(title=title, xlabel="principal component 1", xticks=[], yticks=[])
panels[0].set_ylabel("principal component 2")
plt.show()
