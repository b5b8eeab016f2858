"""Draw the picture at the top of the README: certain and uncertain digits.

The data are 4s and 9s of scikit-learn's digits, with four labels per class. The left panel shows
all images in the plane of two eigenvectors; the right panel shows the least and the most certain
images.

    python examples/readme_figure.py docs/images/digits.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import graphuq as gq

digits = gq.datasets.load_digits((4, 9))
truth = digits.signs(9)
rng = np.random.default_rng(0)
labelled = np.concatenate(
    [rng.choice(np.flatnonzero(truth == s), 4, replace=False) for s in (-1, 1)]
)

graph = gq.graphs.knn_graph(digits.features, n_neighbors=10)
spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=50)
posterior = gq.Posterior(
    spectrum,
    gq.priors.InverseLaplacian(),
    gq.likelihoods.Probit(noise_std=0.1),
    labelled,
    truth[labelled],
)
result = gq.infer(posterior, gq.inference.PCN(), n_samples=2000, rng=0)

figure = Figure(figsize=(10, 3.9), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.25, 1])
axes = left.subplots()
x, y = spectrum.eigenvectors[:, 1], spectrum.eigenvectors[:, 2]
style = {"cmap": "coolwarm", "vmin": -1, "vmax": 1}
points = axes.scatter(x, y, c=gq.results.label_mean(result), s=14, linewidths=0, **style)
axes.scatter(x[labelled], y[labelled], c=truth[labelled], s=80, edgecolors="black", **style)
left.colorbar(points, label="mean label: −1 is certainly a 4, +1 certainly a 9")
axes.set(xticks=[], yticks=[], xlabel="eigenvector 1", ylabel="eigenvector 2")
axes.set_title(f"{len(truth)} images, {len(labelled)} labels (circled)", fontsize=11)
axes.spines[["top", "right"]].set_visible(False)

grids = right.subplots(4, 6)
right.suptitle("least certain (top) and most certain (bottom)", fontsize=11)
shown = np.concatenate([gq.most_uncertain(result, 12), gq.results.most_certain(result, 12)])
for axes, node in zip(grids.ravel(), shown, strict=True):
    axes.imshow(digits.features[node].reshape(8, 8), cmap="gray_r")
    name, probability = (
        "49"[int(gq.results.labels(result)[node] > 0)],
        result.probabilities[node].max(),
    )
    axes.set_title(f"{name}: {probability:.0%}", fontsize=8, pad=2)
    axes.set_axis_off()
figure.savefig(sys.argv[1], dpi=110)
