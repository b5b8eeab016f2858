"""
A scene: what grows where?
==========================

A simulated scene has six bands and 40 fields of four crops. Five pixels of each crop are labelled.
What grows in all other fields, and where should somebody go and look?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

import graphuq as gq

rng = np.random.default_rng(4)
rows, columns, n_crops = 60, 80, 4
places = np.argwhere(np.ones((rows, columns)))
field = cKDTree(rng.uniform(0, (rows, columns), (40, 2))).query(places)[1]
crop = rng.integers(0, n_crops, 40)[field]
own = rng.normal(0, 0.4, (40, 6))[field]  # each field differs a little from others of its crop
spectra = rng.normal(size=(n_crops, 6))[crop] + own + rng.normal(0, 1.2, (len(crop), 6))
scene = spectra.T.reshape(6, rows, columns)

# %%
# The graph joins a pixel to its neighbours, and to pixels of similar spectra. The labels tell how
# much of each counts.
labelled = np.concatenate([rng.permutation(np.flatnonzero(crop == k))[:5] for k in range(n_crops)])
y = np.full(len(crop), -1)
y[labelled] = crop[labelled]
classifier = gq.GraphClassifier(gq.graphs.pixel_graph(scene), random_state=0).fit(None, y)
right = classifier.transduction_ == crop
print(f"{right.mean():.0%} of the pixels right, from {len(labelled)} labels")
print(gq.results.block_weights(classifier.result_))

# %%
# The probability is low at the borders of fields, and in fields that look like two crops. The
# pixels to label next (triangles) are there, and do not repeat each other.
probability = classifier.label_distributions_.max(axis=1)
next_ones = gq.acquisition.query(classifier.result_, 10)
pictures = (
    ("Three of six bands", np.clip(0.5 + scene[:3].transpose(1, 2, 0) / 6, 0, 1), {}),
    ("Crop", crop, {"cmap": "tab10", "vmax": 9}),
    ("Inferred crop", classifier.transduction_, {"cmap": "tab10", "vmax": 9}),
    ("Probability of it", probability, {"cmap": "cividis", "vmin": 0, "vmax": 1}),
)
figure, axes = plt.subplots(2, 2, figsize=(8, 6.4), layout="constrained")
for ax, (title, values, colors) in zip(axes.ravel(), pictures, strict=True):
    shown = values if values.ndim == 3 else values.reshape(rows, columns)
    ax.imshow(shown, interpolation="nearest", **colors)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()
for ax, nodes, mark in ((axes[0, 0], labelled, "o"), (axes[1, 1], next_ones, "^")):
    ax.scatter(*places[nodes].T[::-1], s=30, c="white", marker=mark, edgecolors="black")
figure.suptitle(f"{right.mean():.0%} of the pixels right, from {len(labelled)} labels", fontsize=10)
plt.show()
