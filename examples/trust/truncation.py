"""
The truncation certificate
==========================

A fit uses the smoothest eigenvectors of the graph, and not all of them. Those left out would make
labels less certain. ``truncation_effect`` says by how much, without computing them: an estimate and
a bound for each row.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

moons = gq.datasets.two_moons(200, n_features=20, noise_std=0.25)
rng = np.random.default_rng(0)
labelled = np.concatenate(
    [rng.choice(np.flatnonzero(moons.classes == k), 5, replace=False) for k in (0, 1)]
)
labels = moons.signs(1)[labelled]
graph = gq.graphs.knn_graph(moons.features, 10)


def answer(n_eigenpairs):
    """Return the result with the smoothest eigenpairs."""
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=n_eigenpairs)
    posterior = gq.Posterior(
        spectrum, gq.priors.Matern(), gq.likelihoods.Probit(), labelled, labels
    )
    return gq.infer(posterior, gq.inference.ExpectationPropagation())


# %%
# With 200 nodes all eigenpairs can be computed, so that the real move is known.
counts = np.array([5, 10, 20, 30, 50, 80, 120, 160])
everything = answer(200)
real, estimate, bound = [], [], []
for count in counts:
    result = answer(int(count))
    effect = gq.truncation_effect(result)
    moved = np.abs(gq.results.label_mean(result) - gq.results.label_mean(everything))[effect.nodes]
    real.append(moved.mean())
    estimate.append(effect.estimate.mean())
    bound.append(effect.bound.mean())
    print(f"{count:4} eigenpairs: moves by {real[-1]:.3f}; estimate {estimate[-1]:.3f}")

# %%
# Left: mean move of the label means. Below the line the verdict has no objection. Right: every row,
# with 20 eigenpairs. Single rows may move by far more than the estimate.
result = answer(20)
effect = gq.truncation_effect(result)
moved = np.abs(gq.results.label_mean(result) - gq.results.label_mean(everything))[effect.nodes]
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
panels[0].plot(counts, bound, "^:", color="#94a4a2", label="bound")
panels[0].plot(counts, estimate, "o-", color="#2f80cc", label="estimate")
panels[0].plot(counts, real, "s--", color="#e76300", label="real move")
panels[0].axhline(0.05, color="black", lw=1, label="green below")
panels[0].set(
    xlabel="eigenpairs used, of 200",
    ylabel="mean move of label means",
    yscale="log",
    title="all rows",
)
panels[1].scatter(effect.estimate, moved, s=12, color="#2f80cc")
panels[1].axline((0, 0), slope=1, color="#94a4a2", ls="--", label="estimate = real move")
panels[1].set(xlabel="estimate", ylabel="real move", title="each row, 20 eigenpairs")
for ax in panels:
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
