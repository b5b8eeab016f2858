"""
Many rows, scaled down
======================

What takes time as rows grow? Graph, eigenpairs and summaries; the model itself only sees the
labelled rows. Here are up to 16,000 rows, so that the script takes seconds. The page on scale has a
million.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import graphuq as gq

LABELS = 40


def timed(n_rows):
    """Return the seconds of each part and the accuracy, for two clusters in ten dimensions."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, 10))
    X[:, 0] += 3.2 * truth
    clock = [perf_counter()]
    graph = gq.graphs.knn_graph(X, 15)
    clock.append(perf_counter())
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=50)
    clock.append(perf_counter())
    posterior = gq.Posterior(
        spectrum,
        gq.priors.Matern(),
        gq.likelihoods.Probit(0.3),
        np.arange(LABELS),
        2 * truth[:LABELS] - 1,
    )
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    clock.append(perf_counter())
    return np.diff(clock), (gq.results.labels(result) == 2 * truth - 1).mean()


timed(500)  # compiles
sizes = [1000, 2000, 4000, 8000, 16000]
seconds, accuracies = zip(*(timed(size) for size in sizes), strict=True)
seconds = np.array(seconds)
for size, parts, accuracy in zip(sizes, seconds, accuracies, strict=True):
    print(f"{size:6} rows: {parts.sum():.2f} s, {accuracy:.1%} right from {LABELS} labels")

# %%
# Both axes are logarithmic. At these sizes all pairs of rows are compared, so the graph takes more
# than its share as rows grow. Beyond 50,000 rows, lists of near rows are searched instead.
names = ["graph", "eigenpairs", "inference and summaries"]
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
styles = zip(names, seconds.T, ("o-", "s--", "^:"), ("#2f80cc", "#e76300", "#832db6"), strict=True)
for name, values, style, color in styles:
    ax.plot(sizes, values, style, color=color, label=name)
linear = seconds.sum(axis=1)[-1] * np.array(sizes) / sizes[-1]
ax.plot(sizes, linear, color="#94a4a2", lw=1, label="proportional to rows")
ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds", title="where the time goes")
ax.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
